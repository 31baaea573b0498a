//go:build cgo && metal && !darwin && !simmetal

package metal

const remedy = "Metal runs on macOS"
