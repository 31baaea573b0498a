//go:build cgo && unix && (race || asan || msan)

package cgo

// instrumented: allocations are not what they are without the checker.
const instrumented = true
