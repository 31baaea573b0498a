//go:build cgo && (cuda || rocm) && linux

package gpu

/*
#cgo LDFLAGS: -ldl -lpthread
extern const void *concord_gpu_shim(void *vendor);
*/
import "C"

import (
	"unsafe"

	_ "github.com/concord-compute/concord/csrc" // so that an edit of its C rebuilds this package
)

// Shim fills the table in a vendor's gpu_vendor of csrc/gpu/gpu.h, which is memory of C that lives as long as the
// process, and returns it. It opens no library. Calls for one vendor must not run at the same time.
func Shim(vendor unsafe.Pointer) unsafe.Pointer {
	return unsafe.Pointer(C.concord_gpu_shim(vendor))
}
