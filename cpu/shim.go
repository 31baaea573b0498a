//go:build cgo && unix

package cpu

// The calls of the host executor in C, about one per launch.

/*
#cgo linux LDFLAGS: -lpthread -lm
#cgo noescape cpu_begin
#cgo nocallback cpu_begin
#cgo noescape concord_host_help
#cgo nocallback concord_host_help
#cgo noescape concord_host_end
#cgo nocallback concord_host_end

#include "../csrc/host/host.h"

enum { CPU_MAX_ARGS = 256 };

// cpu_begin makes the array of pointers for the executor on the C stack, so that Go passes only
// memory without pointers. The executor copies the data that it needs after the call.
static concord_job *cpu_begin(const concord_kernel *kernel, uint32_t dim, uint32_t count, const uint64_t *grid,
                              unsigned char *block, const uint32_t *offsets, const uint64_t *locals,
                              uint32_t threads, uint64_t *groups, concord_error *err) {
  void *args[CPU_MAX_ARGS];
  concord_launch l = {.kernel = kernel, .dim = dim, .arg_count = count, .args = args, .local_bytes = locals,
                      .threads = threads};
  for (uint32_t i = 0; i < count; i++) args[i] = block + offsets[i];
  for (int i = 0; i < 3; i++) {
    l.global[i] = grid[i];
    l.local[i] = grid[3 + i];
  }
  return concord_host_begin(&l, groups, err);
}
*/
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
	"unsafe"

	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"

	// An edit of their C rebuilds this package.
	_ "github.com/concord-compute/concord/csrc"
	_ "github.com/concord-compute/concord/source/host"
)

// hostABI is the version of the binary interface between compiled programs and the executor.
const hostABI = C.CONCORD_HOST_ABI

// load loads the shared object of a compiled program and reads its table of kernels.
func (d *device) load(u *source.Unit, object []byte) (*module, error) {
	lib, err := openObject(object)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, driver.ErrCorrupt)
	}
	m, err := readProgram(d, u, lib)
	if err != nil {
		return nil, errors.Join(err, lib.Close())
	}
	return m, nil
}

func readProgram(d *device, u *source.Unit, lib cgo.Library) (*module, error) {
	at, err := lib.Lookup("concord_program")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, driver.ErrCorrupt)
	}
	program := (*C.concord_module)(at)
	if program.abi != C.CONCORD_HOST_ABI {
		return nil, fmt.Errorf("program for another executor (version %d instead of %d): %w", program.abi, hostABI,
			driver.ErrCorrupt)
	}
	var rows []hostKernel
	if program.kernels != nil {
		for i := range unsafe.Slice(program.kernels, program.kernel_count) {
			k := (*C.concord_kernel)(unsafe.Add(unsafe.Pointer(program.kernels), uintptr(i)*unsafe.Sizeof(*program.kernels)))
			row := hostKernel{
				name:       C.GoString(k.name),
				fibers:     k.flags&C.CONCORD_KERNEL_FIBERS != 0,
				localBytes: int64(k.local_bytes),
				entry:      hostEntry(k),
			}
			if k.param_count > C.CPU_MAX_ARGS {
				return nil, fmt.Errorf("kernel %s has %d parameters, more than the limit of %d: %w", row.name, k.param_count,
					C.CPU_MAX_ARGS, driver.ErrUnsupported)
			}
			if k.param_count > 0 {
				for _, n := range unsafe.Slice(k.param_bytes, k.param_count) {
					row.params = append(row.params, uint32(n))
				}
			}
			rows = append(rows, row)
		}
	}
	return newModule(d, u, lib, rows)
}

// runHost runs the launch on the executor and waits for it.
func (p *launch) runHost() error {
	h, d := &p.host, p.call.device
	var e C.concord_error
	var groups C.uint64_t
	job := C.cpu_begin((*C.concord_kernel)(p.kernel.entry), C.uint32_t(p.call.Dim), C.uint32_t(len(h.offsets)),
		(*C.uint64_t)(unsafe.Pointer(&h.grid[0])), (*C.uchar)(unsafe.Pointer(unsafe.SliceData(p.data))),
		(*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(h.offsets))), (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(h.locals))),
		C.uint32_t(d.threads), &groups, &e)
	if job != nil {
		cancel := (*C.int32_t)(unsafe.Pointer(&d.cancelled))
		start, shared, helped := time.Now(), p.kernel.pace.expects(uint64(groups)) > float64(p.call.Choose(helpNs)),
			time.Duration(0)
		alone := C.uint64_t(p.call.Choose(aloneNs))
		// A thread that gets no memory for its stacks stops helping, while other threads go on. So
		// this loop repeats until the job is done, or until this thread can no longer help.
		for shared || C.concord_host_help(job, nil, cancel, alone) != 0 {
			shared = false
			h.job = unsafe.Pointer(job)
			helped += p.shareJob(min(d.threads, int(min(groups, 1<<30))) - 1)
		}
		took := time.Since(start) + helped
		if C.concord_host_end(job, &e) == C.CONCORD_OK {
			p.kernel.pace.note(uint64(groups), took)
		}
	}
	if e.status == C.CONCORD_OK {
		return nil
	}
	return p.hostError(&e)
}

// shareJob runs the job on this thread and at most most others, and returns the time that the others
// worked.
func (p *launch) shareJob(most int) time.Duration {
	h, w := &p.host, &p.call.device.workers
	if h.share.most = most; h.share.help == nil {
		h.share.help = p.timedHelp
	}
	w.offer(&h.share)
	for p.help() {
		w.yield()
	}
	w.settle(&h.share)
	return time.Duration(h.helped.Swap(0))
}

// help works on the job until nothing is left, or until another launch waits for a place; then it
// returns true.
func (p *launch) help() bool {
	d := p.call.device
	return C.concord_host_help((*C.concord_job)(p.host.job), (*C.int32_t)(unsafe.Pointer(&d.workers.crowded)),
		(*C.int32_t)(unsafe.Pointer(&d.cancelled)), 0) != 0
}

func (p *launch) timedHelp() bool {
	start := time.Now()
	more := p.help()
	p.host.helped.Add(int64(time.Since(start)))
	return more
}

// dividesAt is the address that kernels read in order to fault for a division by zero, where the processor does not
// fault for it: CC_FAULT_DIVIDE in the prelude for the host.
const dividesAt = 0xd1d

// hostError converts an error of the executor to an error of this launch.
func (p *launch) hostError(e *C.concord_error) error {
	group := fmt.Sprintf("group (%s)", places(e.group, e.more))
	if e.more != [3]C.uint64_t{} { // one call ran several groups
		group = strings.Replace(group, "group", "groups", 1)
	}
	if e.has_item != 0 {
		group += fmt.Sprintf(" item (%d,%d,%d)", e.item[0], e.item[1], e.item[2])
	}
	switch e.status {
	case C.CONCORD_FAULT:
		what := "fault"
		switch e.fault {
		case C.CONCORD_FAULT_ADDRESS:
			if e.address == C.CONCORD_ADDRESS_UNKNOWN {
				what = "bad address (unknown)"
				break
			}
			if e.address == dividesAt {
				what = "division by zero"
				break
			}
			what = fmt.Sprintf("bad address %#x", uint64(e.address))
			if near := p.nearest(uint64(e.address)); near != "" {
				what += " (" + near + ")"
			}
		case C.CONCORD_FAULT_LOCAL:
			what = fmt.Sprintf("bad address %#x (behind the group's local memory)", uint64(e.address))
		case C.CONCORD_FAULT_STACK:
			what = "stack overflow"
		case C.CONCORD_FAULT_ARITHMETIC:
			what = "division by zero"
		case C.CONCORD_FAULT_ILLEGAL:
			what = "illegal instruction"
		}
		return p.failed(what+" in "+group, driver.ErrLaunch)
	case C.CONCORD_BARRIER:
		return p.failed("divergent barrier in "+group+": not all items of the group reached it", driver.ErrLaunch)
	case C.CONCORD_CANCELLED:
		return p.failed("the device was closed while it ran", driver.ErrClosed)
	case C.CONCORD_NOMEM:
		return p.failed(message(e), fmt.Errorf("%w: %w", driver.ErrLaunch, driver.ErrOutOfMemory))
	}
	return p.failed(message(e), fmt.Errorf("%w: %w", driver.ErrLaunch, driver.ErrInvalidArgument))
}

// places returns the range of groups in each dimension as text: "0..9,3,0".
func places(first, more [3]C.uint64_t) string {
	var all [3]string
	for i := range all {
		if all[i] = fmt.Sprint(first[i]); more[i] > 0 {
			all[i] += fmt.Sprintf("..%d", first[i]+more[i])
		}
	}
	return strings.Join(all[:], ",")
}

// nearest returns the distance of an address from the buffer argument in whose guard page it is,
// as text, or "".
func (p *launch) nearest(at uint64) string {
	const reach = 64 << 10 // the largest size of a page on any system
	for i := range p.call.Args {
		b := p.call.Args[i].Bytes
		if len(b) == 0 {
			continue
		}
		start := address(b)
		end := start + uint64(len(b))
		switch {
		case at >= end && at-end < reach:
			return fmt.Sprintf("%d bytes behind argument %d", at-end, i)
		case at < start && start-at < reach:
			return fmt.Sprintf("%d bytes before argument %d", start-at, i)
		}
	}
	return ""
}

// message returns the text in e. It does not pass e to C, because every launch would then
// allocate its e on the heap.
func message(e *C.concord_error) string {
	all := unsafe.Slice((*byte)(unsafe.Pointer(&e.message[0])), len(e.message))
	text, _, _ := bytes.Cut(all, []byte{0})
	return string(text)
}
