//go:build !cgo

package cuda

const remedy = "needs cgo and -tags cuda"
