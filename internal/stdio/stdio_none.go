//go:build !cgo || !unix

package stdio

// Knows says whether this build can tell.
const Knows = false

// StdoutClosed reports false: in this build nothing runs before Go's runtime.
func StdoutClosed() bool { return false }
