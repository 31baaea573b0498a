//go:build !cgo

package rocm

const remedy = "needs cgo and -tags rocm"
