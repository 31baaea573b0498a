//go:build cgo && linux

package control

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

static int concord_sim_call_control(void *f, const char *command) {
  return ((int (*)(const char *))f)(command);
}

static long concord_sim_call_count(void *f, const char *what) {
  return ((long (*)(const char *))f)(what);
}
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// Library is a simulated library with its two control symbols (tests/sim/lib/fault.h).
type Library struct{ control, count unsafe.Pointer }

// Open opens the library at a path. If the process already has it open, the Library is the same
// instance.
func Open(path string) (*Library, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	handle := C.dlopen(name, C.RTLD_NOW|C.RTLD_LOCAL)
	if handle == nil {
		return nil, fmt.Errorf("%s: %s", path, C.GoString(C.dlerror()))
	}
	l := &Library{}
	for symbol, p := range map[string]*unsafe.Pointer{"concord_sim_control": &l.control, "concord_sim_count": &l.count} {
		name := C.CString(symbol)
		*p = C.dlsym(handle, name)
		C.free(unsafe.Pointer(name))
		if *p == nil {
			return nil, fmt.Errorf("%s is no simulated library: it has no %s", path, symbol)
		}
	}
	return l, nil
}

// Control replaces the faults and sets the counters of calls to zero. "" clears the faults.
// lib/fault.h describes the commands.
func (l *Library) Control(command string) error {
	c := C.CString(command)
	defer C.free(unsafe.Pointer(c))
	if C.concord_sim_call_control(l.control, c) != 0 {
		return fmt.Errorf("%q is no list of faults", command)
	}
	return nil
}

// Count returns the number of live objects of a kind, or of calls of a kind; lib/fault.h lists the
// names. It is -1 for other names.
func (l *Library) Count(what string) int64 {
	c := C.CString(what)
	defer C.free(unsafe.Pointer(c))
	return int64(C.concord_sim_call_count(l.count, c))
}
