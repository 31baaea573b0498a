//go:build cgo && rocm && linux

package rocm

// extern void *concord_vendor_rocm(void);
import "C"

import (
	"sync"
	"unsafe"

	_ "github.com/concord-compute/concord/csrc" // so that an edit of its C rebuilds this package
	"github.com/concord-compute/concord/internal/gpu"
)

const missing = ""

// table returns the shim's table of functions, concord_shim of csrc/shim.h.
var table = sync.OnceValue(func() unsafe.Pointer { return gpu.Shim(C.concord_vendor_rocm()) })
