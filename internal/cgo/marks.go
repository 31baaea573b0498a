//go:build cgo && unix

package cgo

// Named parts of a program for the vendor's profilers: NVTX and rocTX.

/*
#cgo nocallback concord_mark_begin
#cgo noescape concord_mark_begin
#cgo nocallback concord_mark_end

#include <stdint.h>

static uint64_t concord_mark_begin(void *function, const char *name) {
  return ((uint64_t(*)(const char *))function)(name);
}

static void concord_mark_end(void *function, uint64_t id) { ((void (*)(uint64_t))function)(id); }
*/
import "C"

import (
	"strings"
	"sync"
	"unsafe"
)

// marks are the functions of a vendor's library, nil if there is none.
type marks struct {
	once       sync.Once
	begin, end unsafe.Pointer
}

// open looks for the library. Without a profiler, its functions do nothing.
func (m *marks) open(v *Vendor) {
	if v.Marks == nil {
		return
	}
	for _, name := range v.Marks() {
		library, err := Open(name)
		if err != nil {
			continue
		}
		begin, err := library.Lookup(v.MarkBegin)
		end, err2 := library.Lookup(v.MarkEnd)
		if err == nil && err2 == nil {
			m.begin, m.end = begin, end
			return
		}
	}
}

// Mark implements driver.Marker by ranges that may begin and end on different threads, as goroutines do.
func (b *backend) Mark(name string) (end func()) {
	m := &b.marks
	m.once.Do(func() { m.open(&b.v) })
	if m.begin == nil {
		return nil
	}
	text := append([]byte(strings.ReplaceAll(name, "\x00", " ")), 0)
	id := C.concord_mark_begin(m.begin, (*C.char)(unsafe.Pointer(&text[0])))
	return func() { C.concord_mark_end(m.end, id) }
}
