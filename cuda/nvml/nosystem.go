//go:build cgo && cuda && !linux

package nvml

const reason = "NVML is read on Linux only"
