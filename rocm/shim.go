//go:build cgo && rocm && linux

package rocm

// extern const void *concord_shim_rocm(void);
import "C"

import (
	"unsafe"

	_ "github.com/concord-compute/concord/csrc" // an edit there rebuilds the shim
)

const missing = ""

// table returns the shim's functions: csrc/shim.h.
func table() unsafe.Pointer { return unsafe.Pointer(C.concord_shim_rocm()) }
