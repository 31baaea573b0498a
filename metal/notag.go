//go:build cgo && !metal

package metal

const remedy = "rebuild with -tags metal on macOS"
