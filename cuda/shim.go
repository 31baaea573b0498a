//go:build cgo && cuda && linux

package cuda

// extern const void *concord_shim_cuda(void);
import "C"

import (
	"unsafe"

	_ "github.com/concord-compute/concord/csrc" // an edit there rebuilds the shim
)

const missing = ""

// table returns the shim's functions: csrc/shim.h.
func table() unsafe.Pointer { return unsafe.Pointer(C.concord_shim_cuda()) }
