//go:build cgo && !cuda

package nvml

const reason = "not in this build: rebuild with -tags cuda"
