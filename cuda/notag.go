//go:build cgo && !cuda

package cuda

const remedy = "rebuild with -tags cuda"
