//go:build cgo && !rocm

package rocm

const remedy = "rebuild with -tags rocm"
