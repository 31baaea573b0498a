//go:build cgo && metal && (darwin || simmetal)

package metal

// Apple's frameworks are linked and not opened at run time: every Mac has them, and Objective-C
// classes are available only from linked libraries. In programs without a window the default device
// needs Core Graphics.
//
// On other systems the simulated framework (tests/sim/metal) on GNUstep is linked, which `make
// test-metal` builds. The order of the libraries matters: GNUstep contains another version of the
// blocks runtime, which does not copy every block.

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

	_ "github.com/concord-compute/concord/csrc" // so that an edit of its Objective-C rebuilds this package
)

const missing = ""

// table returns the shim's table of functions, concord_shim of csrc/shim.h.
func table() unsafe.Pointer { return unsafe.Pointer(C.concord_shim_metal()) }
