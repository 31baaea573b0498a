//go:build !cgo || !metal || !(darwin || simmetal)

package metal

import "unsafe"

const missing = "not in this build: " + remedy

func table() unsafe.Pointer { return nil }
