//go:build !cgo || !rocm || !linux

package rocm

import "unsafe"

const missing = "not in this build: " + remedy

func table() unsafe.Pointer { return nil }
