//go:build race || asan || msan

package sim

// instrumented is true in builds with a checker, which changes the number of allocations.
const instrumented = true
