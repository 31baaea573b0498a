//go:build cgo && (!opencl || !(linux || darwin))

package opencl

const remedy = "rebuild with -tags opencl and the CGO_CFLAGS that `make env` prints"
