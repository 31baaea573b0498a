//go:build !race && !asan && !msan

package sim

const instrumented = false
