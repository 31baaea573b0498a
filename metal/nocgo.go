//go:build !cgo

package metal

const remedy = "needs cgo and -tags metal"
