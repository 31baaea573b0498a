//go:build !race && !asan && !msan

package rocm

const instrumented = false
