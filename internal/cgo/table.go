//go:build cgo && unix

package cgo

// Calls into C: one Go function per entry of the table. Besides this file, tablestream.go and
// dl.go, no file of the package imports "C".

/*
#include "table.h"

#cgo noescape table_open
#cgo nocallback table_open
#cgo noescape table_has_driver
#cgo nocallback table_has_driver
#cgo noescape table_has_compiler
#cgo nocallback table_has_compiler
#cgo noescape table_missing
#cgo nocallback table_missing
#cgo noescape table_versions
#cgo nocallback table_versions
#cgo noescape table_device_count
#cgo nocallback table_device_count
#cgo noescape table_device_info
#cgo nocallback table_device_info
#cgo noescape table_peer_access
#cgo nocallback table_peer_access
#cgo noescape table_targets
#cgo nocallback table_targets
#cgo noescape table_compile
#cgo nocallback table_compile
#cgo noescape table_assemble
#cgo nocallback table_assemble
#cgo noescape table_blob_free
#cgo nocallback table_blob_free
#cgo noescape table_device_open
#cgo nocallback table_device_open
#cgo noescape table_device_close
#cgo nocallback table_device_close
#cgo noescape table_device_handles
#cgo nocallback table_device_handles
#cgo noescape table_memory_info
#cgo nocallback table_memory_info
#cgo noescape table_alloc
#cgo nocallback table_alloc
#cgo noescape table_free
#cgo nocallback table_free
#cgo noescape table_module_load
#cgo nocallback table_module_load
#cgo noescape table_module_unload
#cgo nocallback table_module_unload
#cgo noescape table_module_kernel
#cgo nocallback table_module_kernel
#cgo noescape table_occupancy
#cgo nocallback table_occupancy
#cgo noescape table_suggest
#cgo nocallback table_suggest
#cgo noescape table_pipelines_put
#cgo nocallback table_pipelines_put
#cgo noescape table_pipelines_get
#cgo nocallback table_pipelines_get
#cgo noescape table_libraries
#cgo nocallback table_libraries
*/
import "C"

import (
	"bytes"
	"strings"
	"unsafe"

	_ "github.com/concord-compute/concord/csrc" // an edit of shim.h there rebuilds this package
	"github.com/concord-compute/concord/runtime/driver"
)

// driver.Arg is passed to C without conversion: these declarations fail to compile if its layout
// differs from that of the C struct.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(driver.Arg{})-unsafe.Sizeof(C.cs_arg{})]
	_ = [1]struct{}{}[unsafe.Offsetof(driver.Arg{}.Offset)-unsafe.Offsetof(C.cs_arg{}.offset)]
	_ = [1]struct{}{}[unsafe.Offsetof(driver.Arg{}.Size)-unsafe.Offsetof(C.cs_arg{}.size)]
	_ = [1]struct{}{}[unsafe.Offsetof(driver.Arg{}.Memory)+
		unsafe.Offsetof(driver.Memory{}.Handle)-unsafe.Offsetof(C.cs_arg{}.mem)]
	_ = [1]struct{}{}[unsafe.Offsetof(driver.Arg{}.Memory)+
		unsafe.Offsetof(driver.Memory{}.Offset)-unsafe.Offsetof(C.cs_arg{}.mem_offset)]
	_ = [1]struct{}{}[unsafe.Offsetof(driver.Arg{}.Memory)+
		unsafe.Offsetof(driver.Memory{}.Size)-unsafe.Offsetof(C.cs_arg{}.mem_size)]
	_ = [1]struct{}{}[unsafe.Offsetof(driver.Arg{}.Memory)+
		unsafe.Offsetof(driver.Memory{}.Kind)-unsafe.Offsetof(C.cs_arg{}.mem_kind)]
	_ = [1]struct{}{}[unsafe.Sizeof(int(0))-8]
	_ = [1]struct{}{}[driver.ArgValue-C.CS_ARG_VALUE]
	_ = [1]struct{}{}[driver.ArgMemory-C.CS_ARG_MEMORY]
	_ = [1]struct{}{}[driver.ArgLocal-C.CS_ARG_LOCAL]
	_ = [1]struct{}{}[driver.OnDevice-C.CS_ON_DEVICE]
	_ = [1]struct{}{}[driver.Pinned-C.CS_PINNED]
	_ = [1]struct{}{}[driver.Unified-C.CS_UNIFIED]
	_ = [1]struct{}{}[driver.AllReduce-C.CS_ALL_REDUCE]
	_ = [1]struct{}{}[driver.SendReceive-C.CS_SEND_RECEIVE]
	_ = [1]struct{}{}[statusLost-C.CS_LOST]
	_ = [1]struct{}{}[statusLaunch-C.CS_LAUNCH]
	_ = [1]struct{}{}[statusNoMemory-C.CS_NO_MEMORY]
)

// The objects and structs of the C side.
type (
	cLib        = *C.cs_lib
	cDevice     = *C.cs_device
	cStream     = *C.cs_stream
	cEvent      = *C.cs_event
	cModule     = *C.cs_module
	cKernel     = *C.cs_kernel
	cGraph      = *C.cs_graph
	cComm       = *C.cs_comm
	cInfo       = C.cs_info
	cVersions   = C.cs_versions
	cKernelInfo = C.cs_kernel_info
)

// table is the address of a vendor's concord_shim.
type table uintptr

// failed returns the failure that an entry reported, or nil for success.
func failed(s C.int32_t, e *C.cs_error) *failure {
	if s == C.CS_OK {
		return nil
	}
	return &failure{status: status(s), code: int(e.code), text: cText(e.text[:])}
}

// cText returns the text in an array of C, which ends at the first NUL.
func cText(a []C.char) string {
	return upToNUL(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(a))), len(a)))
}

// cList encodes strings as the entries take them: each ends with NUL, and the list with an empty
// string.
func cList(list []string) []byte {
	var b []byte
	for _, s := range list {
		if s != "" {
			b = append(append(b, s...), 0)
		}
	}
	return append(b, 0)
}

func chars(b []byte) *C.char { return (*C.char)(unsafe.Pointer(unsafe.SliceData(b))) }

func cBool(b bool) C.int32_t {
	if b {
		return 1
	}
	return 0
}

// lacks returns the name of an entry that the table lacks although csrc/shim.h requires it, either
// always or because the table has others of its group; "" if there is none.
func (t table) lacks() string { return C.GoString(C.table_lacks(C.uintptr_t(t))) }

// open opens the libraries, and returns the list of files that it tried.
func (t table) open(drivers, compilers []string) (lib cLib, tried string, f *failure) {
	var e C.cs_error
	d, c := cList(drivers), cList(compilers)
	text := make([]byte, 1<<14)
	f = failed(C.table_open(C.uintptr_t(t), chars(d), chars(c), &lib, chars(text), C.uint64_t(len(text)), &e), &e)
	return lib, upToNUL(text), f
}

func upToNUL(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}

func (t table) hasDriver(lib cLib) bool   { return C.table_has_driver(C.uintptr_t(t), lib) != 0 }
func (t table) hasCompiler(lib cLib) bool { return C.table_has_compiler(C.uintptr_t(t), lib) != 0 }

// missing lists the optional symbols that the libraries lack.
func (t table) missing(lib cLib) string {
	text := make([]byte, 1<<13)
	C.table_missing(C.uintptr_t(t), lib, chars(text), C.uint64_t(len(text)))
	return upToNUL(text)
}

// libraries lists the libraries that are open; d may be nil.
func (t table) libraries(lib cLib, d cDevice) (list []driver.Library) {
	text := make([]byte, 1<<14)
	C.table_libraries(C.uintptr_t(t), lib, d, chars(text), C.uint64_t(len(text)))
	for line := range strings.Lines(upToNUL(text)) {
		if f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 4); len(f) == 4 {
			list = append(list, driver.Library{Name: f[0], Version: f[1], Simulated: f[2] == "1", Path: f[3]})
		}
	}
	return list
}

func (t table) versions(lib cLib) (v cVersions, f *failure) {
	var e C.cs_error
	f = failed(C.table_versions(C.uintptr_t(t), lib, &v, &e), &e)
	return v, f
}

func (t table) deviceCount(lib cLib) (int, *failure) {
	var e C.cs_error
	var n C.int32_t
	f := failed(C.table_device_count(C.uintptr_t(t), lib, &n, &e), &e)
	return int(n), f
}

func (t table) deviceInfo(lib cLib, ordinal int) (*cInfo, *failure) {
	var e C.cs_error
	info := new(cInfo)
	f := failed(C.table_device_info(C.uintptr_t(t), lib, C.int32_t(ordinal), info, &e), &e)
	return info, f
}

func (t table) peerAccess(lib cLib, to, from int) (bool, *failure) {
	var e C.cs_error
	var can C.int32_t
	f := failed(C.table_peer_access(C.uintptr_t(t), lib, C.int32_t(to), C.int32_t(from), &can, &e), &e)
	return can != 0, f
}

// targets lists the architectures that the compiler knows, separated by spaces.
func (t table) targets(lib cLib) (string, *failure) {
	var e C.cs_error
	text := make([]byte, 1<<14)
	f := failed(C.table_targets(C.uintptr_t(t), lib, chars(text), C.uint64_t(len(text)), &e), &e)
	return upToNUL(text), f
}

func (t table) compile(lib cLib, name, text string, options []string) (code []byte, log string, f *failure) {
	var e C.cs_error
	var out C.cs_blob
	n, s, o := append([]byte(name), 0), append([]byte(text), 0), cList(options)
	f = failed(C.table_compile(C.uintptr_t(t), lib, chars(n), chars(s), chars(o), &out, &e), &e)
	code, log = t.take(&out)
	return code, log, f
}

func (t table) assemble(lib cLib, text []byte, options []string) (code []byte, log string, f *failure) {
	var e C.cs_error
	var out C.cs_blob
	o := cList(options)
	f = failed(C.table_assemble(C.uintptr_t(t), lib, (*C.uchar)(unsafe.SliceData(text)), C.uint64_t(len(text)),
		chars(o), &out, &e), &e)
	code, log = t.take(&out)
	return code, log, f
}

// take copies a blob to Go's memory and frees it.
func (t table) take(b *C.cs_blob) (code []byte, log string) {
	if b.data != nil {
		code = bytes.Clone(unsafe.Slice((*byte)(b.data), int(b.bytes)))
	}
	if b.log != nil {
		log = upToNUL(unsafe.Slice((*byte)(unsafe.Pointer(b.log)), int(b.log_bytes)))
	}
	C.table_blob_free(C.uintptr_t(t), b)
	return code, log
}

func (t table) deviceOpen(lib cLib, ordinal int) (d cDevice, f *failure) {
	var e C.cs_error
	f = failed(C.table_device_open(C.uintptr_t(t), lib, C.int32_t(ordinal), &d, &e), &e)
	return d, f
}

func (t table) deviceClose(d cDevice) *failure {
	var e C.cs_error
	return failed(C.table_device_close(C.uintptr_t(t), d, &e), &e)
}

func (t table) deviceHandles(d cDevice) (device, context uintptr) {
	var dev, con C.uint64_t
	C.table_device_handles(C.uintptr_t(t), d, &dev, &con)
	return uintptr(dev), uintptr(con)
}

// freeMemory returns bytes.
func (t table) freeMemory(d cDevice) (int64, *failure) {
	var e C.cs_error
	var n C.uint64_t
	f := failed(C.table_memory_info(C.uintptr_t(t), d, &n, &e), &e)
	return int64(n), f
}

func (t table) alloc(d cDevice, kind driver.MemoryKind, n int64) (address, host uint64, f *failure) {
	var e C.cs_error
	var m C.cs_memory
	f = failed(C.table_alloc(C.uintptr_t(t), d, C.uint8_t(kind), C.uint64_t(n), &m, &e), &e)
	return uint64(m.address), uint64(m.host), f
}

func (t table) free(d cDevice, kind driver.MemoryKind, address uint64) *failure {
	var e C.cs_error
	return failed(C.table_free(C.uintptr_t(t), d, C.uint8_t(kind), C.uint64_t(address), &e), &e)
}

// moduleLoad also returns the driver's log.
func (t table) moduleLoad(d cDevice, code []byte) (m cModule, log string, f *failure) {
	var e C.cs_error
	text := make([]byte, 1<<13)
	f = failed(C.table_module_load(C.uintptr_t(t), d, (*C.uchar)(unsafe.SliceData(code)), C.uint64_t(len(code)), &m,
		chars(text), C.uint64_t(len(text)), &e), &e)
	return m, upToNUL(text), f
}

func (t table) moduleUnload(m cModule) *failure {
	var e C.cs_error
	return failed(C.table_module_unload(C.uintptr_t(t), m, &e), &e)
}

func (t table) moduleKernel(m cModule, name string) (k cKernel, info cKernelInfo, f *failure) {
	var e C.cs_error
	n := append([]byte(name), 0)
	f = failed(C.table_module_kernel(C.uintptr_t(t), m, chars(n), &k, &info, &e), &e)
	return k, info, f
}

func (t table) occupancy(k cKernel, group int, local int64) (int, *failure) {
	var e C.cs_error
	var n C.int32_t
	f := failed(C.table_occupancy(C.uintptr_t(t), k, C.int32_t(group), C.uint64_t(local), &n, &e), &e)
	return int(n), f
}

func (t table) suggest(k cKernel, local int64) (int, *failure) {
	var e C.cs_error
	var n C.int32_t
	f := failed(C.table_suggest(C.uintptr_t(t), k, C.uint64_t(local), &n, &e), &e)
	return int(n), f
}

func (t table) hasPipelines() bool { return C.table_has_pipelines(C.uintptr_t(t)) != 0 }

func (t table) putPipelines(d cDevice, data []byte) *failure {
	var e C.cs_error
	return failed(C.table_pipelines_put(C.uintptr_t(t), d, (*C.uchar)(unsafe.SliceData(data)), C.uint64_t(len(data)),
		&e), &e)
}

func (t table) pipelines(d cDevice) ([]byte, *failure) {
	var e C.cs_error
	var out C.cs_blob
	f := failed(C.table_pipelines_get(C.uintptr_t(t), d, &out, &e), &e)
	data, _ := t.take(&out)
	return data, f
}
