//go:build cgo && rocm && !linux

package rocm

const remedy = "ROCm runs on Linux"
