//go:build cgo && unix && (race || asan || msan)

package cgo

// instrumented is true in builds with a checker, which changes the number of allocations.
const instrumented = true
