//go:build !race && !asan && !msan

package memory

const instrumented = false
