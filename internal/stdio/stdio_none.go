//go:build !cgo || !unix

package stdio

// Knows says whether StdoutClosed can tell in this build.
const Knows = false

// StdoutClosed reports false: in this build nothing runs before Go's runtime.
func StdoutClosed() bool { return false }
