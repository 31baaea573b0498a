//go:build !race && !asan && !msan

package cuda

const instrumented = false
