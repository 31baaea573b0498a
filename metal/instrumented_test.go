//go:build race || asan || msan

package metal

// instrumented: allocations are not what they are without the checker.
const instrumented = true
