//go:build cgo && metal && (darwin || simmetal)

package metal

// Apple's frameworks are linked, not opened: every Mac has them, and Objective-C
// classes come with the library that is linked. The default device takes Core Graphics
// in programs without a window.
//
// Elsewhere it is the simulated framework (tests/sim/metal) over GNUstep, which `make
// test-metal` builds. The order matters: GNUstep has a copy of the blocks runtime that
// does not copy every block.

/*
#cgo darwin LDFLAGS: -framework Foundation -framework Metal -framework MetalPerformanceShaders -framework CoreGraphics
#cgo !darwin CFLAGS: -I${SRCDIR}/../tests/sim/metal/include -I${SRCDIR}/../build/sim/include -I/usr/include/GNUstep
#cgo !darwin CFLAGS: -DGNUSTEP -DGNUSTEP_BASE_LIBRARY=1 -DGNU_RUNTIME=1 -D_NATIVE_OBJC_EXCEPTIONS
#cgo !darwin CFLAGS: -fblocks -fexceptions -fobjc-exceptions -fobjc-runtime=gcc -fconstant-string-class=NSConstantString
#cgo !darwin LDFLAGS: -L${SRCDIR}/../build/sim -Wl,-rpath,${SRCDIR}/../build/sim -lSimMetal -lBlocksRuntime -lgnustep-base -lobjc

extern const void *concord_shim_metal(void);
*/
import "C"

import (
	"unsafe"

	_ "github.com/concord-compute/concord/csrc" // an edit there rebuilds the shim
)

const missing = ""

// table returns the shim's functions: csrc/shim.h.
func table() unsafe.Pointer { return unsafe.Pointer(C.concord_shim_metal()) }
