//go:build !cgo || !cuda || !linux

package cuda

import "unsafe"

const missing = "not in this build: " + remedy

func table() unsafe.Pointer { return nil }
