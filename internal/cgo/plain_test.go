//go:build cgo && unix && !race && !asan && !msan

package cgo

const instrumented = false
