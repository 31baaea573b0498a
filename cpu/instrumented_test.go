//go:build race || asan || msan

package cpu

// instrumented: allocations are not what they are without the checker (sync.Pool
// drops at random under race), and everything is slower.
const instrumented = true
