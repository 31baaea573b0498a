//go:build cgo && cuda && !linux

package cuda

const remedy = "CUDA runs on Linux"
