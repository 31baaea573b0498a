//go:build cgo && vulkan && (linux || darwin)

package vulkan

// #cgo LDFLAGS: -lm
// #cgo linux LDFLAGS: -ldl
// extern const void *concord_shim_vulkan(void);
import "C"

import (
	"unsafe"

	_ "github.com/concord-compute/concord/csrc" // so that an edit of its C rebuilds this package
)

const missing = ""

// table returns the shim's table of functions, concord_shim of csrc/shim.h.
func table() unsafe.Pointer { return unsafe.Pointer(C.concord_shim_vulkan()) }
