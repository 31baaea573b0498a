//go:build cgo && rocm && linux

package smi

// Calls into ROCm SMI. No other file of the package imports "C". The library's functions call nothing back and keep no
// pointer.

/*
#include <stdint.h>
#include <stdlib.h>

#cgo nocallback concord_smi_call

// Where ROCm runs, integers and pointers are passed in the same registers, whatever their size, and those that a
// function does not take are ignored. So one caller serves all functions.
static int32_t concord_smi_call(void *function, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  return ((int32_t(*)(uint64_t, uint64_t, uint64_t, uint64_t))function)(a, b, c, d);
}
*/
import "C"

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"github.com/concord-compute/concord/internal/cgo"
)

// Results of the library.
const (
	done           = 0
	notSupported   = 2
	outOfResources = 5
)

// library is an opened ROCm SMI. It stays open, since it has state and threads of its own.
type library struct {
	symbols cgo.Library
	// out is memory of C to which the functions write, until the next call.
	out []byte
}

// openLibrary opens and initializes the library. If initializing fails, status is its error code;
// if the library cannot be opened, err says why.
func openLibrary(path string) (lib *library, status int, err error) {
	symbols, err := cgo.Open(path)
	if err != nil {
		return nil, 0, err
	}
	l := &library{symbols: symbols}
	for _, needed := range []string{"rsmi_init", "rsmi_num_monitor_devices"} {
		if _, err := symbols.Lookup(needed); err != nil {
			return nil, 0, errors.New(path + ": no rsmi_init in it")
		}
	}
	if !l.room(1 << 15) {
		return nil, outOfResources, nil
	}
	if status := l.call("init", 0); status != done {
		C.free(unsafe.Pointer(unsafe.SliceData(l.out)))
		return nil, status, nil
	}
	return l, done, nil
}

// room makes out at least that large, and reports whether there was memory for that.
func (l *library) room(bytes int) bool {
	if len(l.out) >= bytes {
		return true
	}
	p := C.realloc(unsafe.Pointer(unsafe.SliceData(l.out)), C.size_t(bytes))
	if p == nil {
		return false
	}
	l.out = unsafe.Slice((*byte)(p), bytes)
	return true
}

// at returns the address of a byte of out, as an argument.
func (l *library) at(offset int) uint64 { return uint64(uintptr(unsafe.Pointer(&l.out[offset]))) }

// call calls a function of at most four arguments, which a version of the library may lack, and returns its status.
func (l *library) call(name string, args ...uint64) (status int) {
	f, err := l.symbols.Lookup("rsmi_" + name)
	if err != nil {
		return notSupported
	}
	var a [4]C.uint64_t
	for i, arg := range args {
		a[i] = C.uint64_t(arg)
	}
	return int(C.concord_smi_call(f, a[0], a[1], a[2], a[3]))
}

// number calls a function that writes a number of up to 8 bytes to its last argument. The number is known if ok.
func (l *library) number(name string, args ...uint64) (n uint64, ok bool) {
	clear(l.out[:8])
	ok = l.call(name, append(args, l.at(0))...) == done
	return binary.LittleEndian.Uint64(l.out), ok
}

// process is one process on a device.
type process struct {
	pid    uint32
	memory uint64 // on all devices, or on one
	known  bool   // whether memory is known
}

// The library's description of a process begins with its number, and has the bytes of its memory at memoryAt. Its size
// is that of version 5, into whose padding version 6 has put a field.
const (
	processBytes = 32
	memoryAt     = 8
)

// processes lists the processes that compute on a device.
func (l *library) processes(device int) (list []process, status int) {
	if _, err := l.symbols.Lookup("rsmi_compute_process_gpus_get"); err != nil {
		return nil, notSupported
	}
	clear(l.out[:8])
	if status := l.call("compute_process_info_get", 0, l.at(0)); status != done {
		return nil, status
	}
	most := int(binary.LittleEndian.Uint32(l.out)) + 16 // further processes may start meanwhile
	if !l.room(8 + most*processBytes) {
		return nil, outOfResources
	}
	clear(l.out)
	binary.LittleEndian.PutUint32(l.out, uint32(most))
	if status := l.call("compute_process_info_get", l.at(8), l.at(0)); status != done {
		return nil, status
	}
	var all []process
	for i := range min(int(binary.LittleEndian.Uint32(l.out)), most) {
		row := l.out[8+i*processBytes:]
		all = append(all, process{pid: binary.LittleEndian.Uint32(row), memory: binary.LittleEndian.Uint64(row[memoryAt:])})
	}
	for _, p := range all {
		if l.on(&p, device) {
			list = append(list, p)
		}
	}
	return list, done
}

// on reports whether a process computes on a device, and sets how much of its memory it uses if that
// is known: an older library reports only the sum over all devices.
func (l *library) on(p *process, device int) (found bool) {
	const most = 256
	binary.LittleEndian.PutUint32(l.out, most)
	if l.call("compute_process_gpus_get", uint64(p.pid), l.at(8), l.at(0)) != done {
		return false // it has ended
	}
	count := min(int(binary.LittleEndian.Uint32(l.out)), most)
	for i := range count {
		found = found || int(binary.LittleEndian.Uint32(l.out[8+4*i:])) == device
	}
	clear(l.out[:processBytes])
	const function = "compute_process_info_by_device_get"
	if _, err := l.symbols.Lookup("rsmi_" + function); err != nil {
		p.known = count == 1
	} else if l.call(function, uint64(p.pid), uint64(device), l.at(0)) == done {
		p.memory, p.known = binary.LittleEndian.Uint64(l.out[memoryAt:]), true
	}
	return found
}

// clocks returns the current and the highest clock rate in Hz, 0 if unknown. Version 6 of the library has inserted a
// bool at the beginning of its structure, and distributors build it without version numbers; but the two
// layouts can be told apart: the first words of the older one are a count and an index
// below it, those of the newer one 0 or 1 and a count.
func (l *library) clocks(device, clock uint64) (now, highest uint64) {
	const most = 64 * 8 // 35 words are used
	clear(l.out[:most])
	if l.call("dev_gpu_clk_freq_get", device, clock, l.at(0)) != done {
		return 0, 0
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(l.out[4*i:]) }
	count, current, at := word(0), word(1), 8
	switch {
	case count >= 1 && count <= 32 && current < count:
	case word(0)&0xff <= 1 && word(1) >= 1 && word(1) <= 33:
		count, current, at = word(1), word(2), 16
	default:
		return 0, 0
	}
	for i := range count {
		hz := binary.LittleEndian.Uint64(l.out[at+8*int(i):])
		highest = max(highest, hz)
		if i == current {
			now = hz
		}
	}
	return now, highest
}

// throttling returns the reasons why the clock is reduced; nil means unknown. They are in a table that has grown from
// 96 bytes to several thousand, whose two fields have kept their offsets. All bits set means unknown: the
// kernel writes that, and it remains if the table is too old to have the field.
func (l *library) throttling(device uint64) []string {
	const dependent, independent = 68, 112
	for i := range l.out {
		l.out[i] = 0xff
	}
	if l.call("dev_gpu_metrics_info_get", device, l.at(0)) != done {
		return nil
	}
	if mask := binary.LittleEndian.Uint64(l.out[independent:]); mask != 1<<64-1 {
		return words(mask)
	}
	switch binary.LittleEndian.Uint32(l.out[dependent:]) {
	case 0:
		return []string{}
	case 1<<32 - 1:
		return nil
	}
	return []string{"throttled"} // the reason is only in bits that differ from model to model
}

// errors returns the memory errors of all parts, given as bits, that detect them and can be read; ok if any can.
func (l *library) errors(device, parts uint64) (corrected, uncorrected uint64, ok bool) {
	for bit := range 63 { // the last one is reserved
		part := uint64(1) << bit
		clear(l.out[:16])
		if parts&part != 0 && l.call("dev_ecc_count_get", device, part, l.at(0)) == done {
			corrected += binary.LittleEndian.Uint64(l.out)
			uncorrected += binary.LittleEndian.Uint64(l.out[8:])
			ok = true
		}
	}
	return corrected, uncorrected, ok
}
