//go:build !race && !asan && !msan

package cpu

const instrumented = false
