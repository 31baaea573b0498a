//go:build cgo && unix

package null

// The Go functions for the table and its controls.

/*
#cgo linux LDFLAGS: -lpthread
#include <stdlib.h>
#include "null.h"

#cgo noescape null_nothing
#cgo nocallback null_nothing
*/
import "C"

import (
	"unsafe"

	_ "github.com/concord-compute/concord/csrc" // so that an edit of shim.h rebuilds this package
)

// Table returns a table with every entry of csrc/shim.h.
func Table() unsafe.Pointer { return unsafe.Pointer(&C.null_table) }

// Bare returns a table with only the required entries, and with a launch that does nothing.
func Bare() unsafe.Pointer { return unsafe.Pointer(&C.null_bare) }

// Without returns Bare without entry i, counted from 0 in the order of csrc/shim.h.
func Without(i int) unsafe.Pointer {
	t := C.null_bare
	*(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(&t), uintptr(i)*unsafe.Sizeof(unsafe.Pointer(nil)))) = nil
	return unsafe.Pointer(&t)
}

// Reset undoes the effects of the functions below.
func Reset() { C.null_reset() }

// Fail makes an entry fail once with a status, after that many successful calls.
func Fail(entry string, after, status int) {
	name := C.CString(entry)
	defer C.free(unsafe.Pointer(name))
	C.null_fail(name, C.int32_t(after), C.int32_t(status))
}

// Break makes the next launch break its stream with a status. The status of a lost context breaks
// the whole device.
func Break(status int) { C.null_break(C.int32_t(status)) }

// Hold keeps queued work from being completed, until Hold(false).
func Hold(on bool) { C.null_hold(flag(on)) }

// Devices sets the number of devices.
func Devices(n int) { C.null_devices(C.int32_t(n)) }

// Absent makes the driver, the compiler or both missing.
func Absent(driver, compiler bool) { C.null_absent(flag(driver), flag(compiler)) }

func flag(on bool) C.int32_t {
	if on {
		return 1
	}
	return 0
}

// Kinds are the kinds of objects that are counted.
var Kinds = []string{"device", "stream", "event", "module", "graph", "memory", "blob",
	"communicator"}

// Live lists the kinds of objects that are not released, with their numbers.
func Live() map[string]int {
	live := map[string]int{}
	for _, kind := range Kinds {
		name := C.CString(kind)
		if n := C.null_live(name); n != 0 {
			live[kind] = int(n)
		}
		C.free(unsafe.Pointer(name))
	}
	return live
}

// Calls counts the calls of an entry since Reset.
func Calls(entry string) int {
	name := C.CString(entry)
	defer C.free(unsafe.Pointer(name))
	return int(C.null_calls(name))
}

// Launch holds the arguments of a launch.
type Launch struct {
	Groups, Group [3]uint64
	Args          int
	Sum           uint64 // FNV-1a of the arguments: kind, then address, value or size
}

// Last returns the last launch.
func Last() Launch {
	l := C.null_last()
	return Launch{Groups: *(*[3]uint64)(unsafe.Pointer(&l.groups)), Group: *(*[3]uint64)(unsafe.Pointer(&l.group)),
		Args: int(l.count), Sum: uint64(l.sum)}
}

// Product holds the arguments of a matrix product.
type Product struct {
	Type                   int
	TransA, TransB         bool
	M, N, K, LDA, LDB, LDC int
	Alpha, Beta            float64
	A, B, C                uint64
}

// LastProduct returns the last matrix product.
func LastProduct() Product {
	p := C.null_product()
	return Product{Type: int(p._type), TransA: p.trans_a != 0, TransB: p.trans_b != 0, M: int(p.m), N: int(p.n),
		K:   int(p.k),
		LDA: int(p.lda), LDB: int(p.ldb), LDC: int(p.ldc), Alpha: float64(p.alpha), Beta: float64(p.beta),
		A: uint64(p.a), B: uint64(p.b), C: uint64(p.c)}
}

// Nothing is an empty call, for comparing times.
func Nothing() { C.null_nothing() }

// Part is what the last collective had: cs_collective of csrc/shim.h.
type Part struct {
	Kind, Type, Op            int32
	Count, Received, Dst, Src uint64
}

// Collective returns the arguments of the last collective.
func Collective() Part {
	c := C.null_collective()
	return Part{Kind: int32(c.kind), Type: int32(c._type), Op: int32(c.op), Count: uint64(c.count),
		Received: uint64(c.received), Dst: uint64(c.dst), Src: uint64(c.src)}
}
