//go:build cgo && rocm && !linux

package smi

const reason = "ROCm SMI is read on Linux only"
