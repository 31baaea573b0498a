//go:build cgo && !rocm

package smi

const reason = "not in this build: rebuild with -tags rocm"
