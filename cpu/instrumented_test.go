//go:build race || asan || msan

package cpu

// instrumented says that a checker is built in. It changes the number of allocations (under race,
// sync.Pool drops objects at random), and slows everything down.
const instrumented = true
