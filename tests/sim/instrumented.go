//go:build race || asan || msan

package sim

// instrumented: allocations are not what they are without the checker.
const instrumented = true
