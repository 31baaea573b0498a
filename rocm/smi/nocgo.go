//go:build !cgo

package smi

const reason = "not in this build: rebuild with -tags rocm, CGO_ENABLED=1 and a C compiler"
