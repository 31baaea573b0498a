//go:build !cgo

package opencl

const remedy = "rebuild with -tags opencl, CGO_ENABLED=1 and a C compiler"
