//go:build cgo && rocm && linux

package smi

// Calls into csrc/rocm_smi. No other file of the package imports "C". No C function calls back into
// Go or keeps a pointer.

/*
#cgo LDFLAGS: -ldl

#include <stdlib.h>

#include "../../csrc/rocm_smi/smi.h"

#cgo noescape concord_smi_open
#cgo nocallback concord_smi_open
#cgo noescape concord_smi_count
#cgo nocallback concord_smi_count
#cgo noescape concord_smi_read
#cgo nocallback concord_smi_read
#cgo noescape concord_smi_processes
#cgo nocallback concord_smi_processes
*/
import "C"

import (
	"bytes"
	"unsafe"

	_ "github.com/concord-compute/concord/csrc" // so that an edit of its C rebuilds this package
)

// The values that a device may report, as in smi.h.
const (
	pci            = C.CONCORD_SMI_PCI
	unique         = C.CONCORD_SMI_UNIQUE
	busy           = C.CONCORD_SMI_BUSY
	memoryBusy     = C.CONCORD_SMI_MEMORY_BUSY
	memoryUsed     = C.CONCORD_SMI_MEMORY_USED
	memoryTotal    = C.CONCORD_SMI_MEMORY_TOTAL
	temperature    = C.CONCORD_SMI_TEMPERATURE
	power          = C.CONCORD_SMI_POWER
	powerLimit     = C.CONCORD_SMI_POWER_LIMIT
	fan            = C.CONCORD_SMI_FAN
	fanMax         = C.CONCORD_SMI_FAN_MAX
	clock          = C.CONCORD_SMI_CLOCK
	maxClock       = C.CONCORD_SMI_MAX_CLOCK
	memoryClock    = C.CONCORD_SMI_MEMORY_CLOCK
	maxMemoryClock = C.CONCORD_SMI_MAX_MEMORY_CLOCK
	ecc            = C.CONCORD_SMI_ECC
	eccCorrected   = C.CONCORD_SMI_ECC_CORRECTED
	eccUncorrected = C.CONCORD_SMI_ECC_UNCORRECTED
	throttle       = C.CONCORD_SMI_THROTTLE
	throttleAny    = C.CONCORD_SMI_THROTTLE_ANY
)

// library is the opened library; a nil pointer means that none is open.
type library struct{ c *C.concord_smi }

// openLibrary opens and initializes the library. If initializing fails, status is its error code;
// if the library cannot be opened, text is the loader's message.
func openLibrary(path string) (lib *library, status int, text string) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var code C.int32_t
	message := make([]byte, 1024)
	c := C.concord_smi_open(name, &code, (*C.char)(unsafe.Pointer(&message[0])), C.uint64_t(len(message)))
	if c == nil {
		return nil, int(code), untilNUL(message)
	}
	return &library{c}, 0, ""
}

func (l *library) count() (n, status int) {
	var count C.uint32_t
	code := C.concord_smi_count(l.c, &count)
	return int(count), int(code)
}

// values holds the values that one device reported.
type values struct{ c C.concord_smi_sample }

func (l *library) read(device int) *values {
	v := &values{}
	C.concord_smi_read(l.c, C.uint32_t(device), &v.c)
	return v
}

func (v *values) name() string {
	return untilNUL(unsafe.Slice((*byte)(unsafe.Pointer(&v.c.name[0])), len(v.c.name)))
}

// get returns a value, and whether it is known.
func (v *values) get(what int) (uint64, bool) {
	return uint64(v.c.value[what]), v.c.known>>what&1 != 0
}

// process is one process on a device.
type process struct {
	pid    int
	memory uint64
	known  bool // whether memory is known
}

// processes lists the processes that compute on a device.
func (l *library) processes(device int) (list []process, status int) {
	for room := 64; ; {
		raw := make([]C.concord_smi_process, room)
		var n C.uint32_t
		if status := C.concord_smi_processes(l.c, C.uint32_t(device), &raw[0], C.uint32_t(room), &n); status != 0 {
			return nil, int(status)
		}
		if int(n) > room {
			room = int(n) + 16
			continue
		}
		list = []process{}
		for _, p := range raw[:n] {
			list = append(list, process{int(p.pid), uint64(p.memory), p.known != 0})
		}
		return list, 0
	}
}

func untilNUL(b []byte) string {
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(text)
}
