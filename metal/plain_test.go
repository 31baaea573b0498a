//go:build !race && !asan && !msan

package metal

const instrumented = false
