//go:build cgo && opencl && (linux || darwin)

package opencl

// Calls into csrc/opencl: one Go function per C function, with the types of the binding. No other
// file of the package imports "C". No C function calls back into Go or keeps a pointer, so that
// arguments do not escape to the heap.

/*
#cgo linux LDFLAGS: -L${SRCDIR} -ldl -lpthread

#include "../csrc/opencl/opencl.h"

#cgo noescape concord_cl_library
#cgo nocallback concord_cl_library
#cgo noescape concord_cl_queue_new
#cgo nocallback concord_cl_queue_new
#cgo noescape concord_cl_queue_free
#cgo nocallback concord_cl_queue_free
#cgo noescape concord_cl_settle
#cgo nocallback concord_cl_settle
#cgo noescape concord_cl_launch
#cgo nocallback concord_cl_launch
#cgo noescape concord_cl_write
#cgo nocallback concord_cl_write
#cgo noescape concord_cl_read
#cgo nocallback concord_cl_read
#cgo noescape concord_cl_copy
#cgo nocallback concord_cl_copy
#cgo noescape concord_cl_fill
#cgo nocallback concord_cl_fill
#cgo noescape concord_cl_mark
#cgo nocallback concord_cl_mark
#cgo noescape concord_cl_after
#cgo nocallback concord_cl_after
#cgo noescape concord_cl_at
#cgo nocallback concord_cl_at
#cgo noescape clRetainEvent
#cgo nocallback clRetainEvent
#cgo noescape clReleaseEvent
#cgo nocallback clReleaseEvent
#cgo noescape clGetEventInfo
#cgo nocallback clGetEventInfo
#cgo noescape concord_cl_event_wait
#cgo nocallback concord_cl_event_wait
#cgo noescape concord_cl_event_times
#cgo nocallback concord_cl_event_times
#cgo noescape concord_cl_touch
#cgo nocallback concord_cl_touch
#cgo noescape concord_cl_binary
#cgo nocallback concord_cl_binary
*/
import "C"

import (
	"strings"
	"unsafe"

	"github.com/go-gl/cl/v1.2/cl"

	_ "github.com/concord-compute/concord/csrc" // so that an edit of its C rebuilds this package
	"github.com/concord-compute/concord/runtime/driver"
)

const (
	ringSize   = C.CONCORD_CL_RING
	ringRoom   = C.CONCORD_CL_ROOM
	stageLimit = C.CONCORD_CL_STAGE
	stageTotal = C.CONCORD_CL_STAGED
)

// library opens the OpenCL loader, by the configured name if there is one, and returns the list of
// files that it tried.
func library(cfg *driver.Config) (tried []string, found bool) {
	name := C.CString(cfg.OpenCLLibrary)
	defer C.free(unsafe.Pointer(name))
	var text *C.char
	found = C.concord_cl_library(name, &text) != 0
	return strings.Split(C.GoString(text), "\n"), found
}

// queue is a command queue with a ring of the commands that are not known to be complete. Its
// methods need the lock of its stream, except those that may run at any time.
type queue struct{ c *C.concord_cl_queue }

func newQueue(q cl.CommandQueue) (queue, bool) {
	c := C.concord_cl_queue_new(C.cl_command_queue(unsafe.Pointer(q)))
	return queue{c}, c != nil
}

// free waits for the queue and releases it.
func (q queue) free() { C.concord_cl_queue_free(q.c) }

func (q queue) handle() unsafe.Pointer { return unsafe.Pointer(q.c.queue) }

// next returns the number of the next command.
func (q queue) next() uint64 { return uint64(q.c.pushed) }

// settle removes commands that are done from the ring, and reports whether the ring is empty.
func (q queue) settle() bool { return C.concord_cl_settle(q.c, 0) != 0 }

// room waits until the ring has room for a few commands.
func (q queue) room() {
	if q.c.pushed-q.c.done > ringSize-ringRoom {
		C.concord_cl_settle(q.c, 1)
	}
}

// failure returns the number of the first command that failed, and its code.
func (q queue) failure() (at uint64, code cl.ErrorCode) {
	return uint64(q.c.failed_at), cl.ErrorCode(q.c.failed)
}

// badArg returns the index of the argument for which the last launch was refused, or -1.
func (q queue) badArg() int { return int(q.c.bad_arg) }

// stageable reports whether there is room for n bytes in the staging memory now.
func (q queue) stageable(n int) bool {
	return n <= stageLimit && uint64(q.c.staged)+uint64(n) <= stageTotal
}

func (q queue) launch(k cl.Kernel, l *driver.Launch, args []driver.Arg, offsets bool) cl.ErrorCode {
	var with C.int
	if offsets {
		with = 1
	}
	return cl.ErrorCode(C.concord_cl_launch(q.c, C.cl_kernel(unsafe.Pointer(k)),
		(*C.cs_arg)(unsafe.Pointer(unsafe.SliceData(args))), C.uint32_t(len(args)),
		(*C.uchar)(unsafe.SliceData(l.Data)), with, C.uint32_t(l.Dim),
		(*C.size_t)(unsafe.Pointer(&l.Global)), (*C.size_t)(unsafe.Pointer(&l.Local))))
}

// write copies to the device. With later it copies src to staging memory and returns at once;
// without, it blocks, and may run at any time, as read may. done gets the event of a copy that was waited for,
// unless it is nil.
func (q queue) write(m driver.Memory, src []byte, later bool, done *clEvent) cl.ErrorCode {
	var aside C.int
	if later {
		aside = 1
	}
	return cl.ErrorCode(C.concord_cl_write(q.c, C.uint64_t(m.Handle), C.size_t(m.Offset),
		(*C.uchar)(unsafe.SliceData(src)), C.size_t(len(src)), aside, (*C.cl_event)(unsafe.Pointer(done))))
}

func (q queue) read(m driver.Memory, dst []byte, done *clEvent) cl.ErrorCode {
	return cl.ErrorCode(C.concord_cl_read(q.c, C.uint64_t(m.Handle), C.size_t(m.Offset),
		(*C.uchar)(unsafe.SliceData(dst)), C.size_t(len(dst)), (*C.cl_event)(unsafe.Pointer(done))))
}

func (q queue) copy(dst, src driver.Memory) cl.ErrorCode {
	return cl.ErrorCode(C.concord_cl_copy(q.c, C.uint64_t(dst.Handle), C.size_t(dst.Offset),
		C.uint64_t(src.Handle), C.size_t(src.Offset), C.size_t(src.Size)))
}

func (q queue) fill(m driver.Memory, pattern []byte) cl.ErrorCode {
	return cl.ErrorCode(C.concord_cl_fill(q.c, C.uint64_t(m.Handle), C.size_t(m.Offset), C.size_t(m.Size),
		(*C.uchar)(unsafe.SliceData(pattern)), C.size_t(len(pattern))))
}

// mark queues an event, which the caller releases.
func (q queue) mark() (clEvent, cl.ErrorCode) {
	var e C.cl_event
	code := cl.ErrorCode(C.concord_cl_mark(q.c, &e))
	return clEvent{e}, code
}

func (q queue) after(e clEvent) cl.ErrorCode { return cl.ErrorCode(C.concord_cl_after(q.c, e.c)) }

// at returns the event of command n, which the caller releases, if it is in the ring.
func (q queue) at(n uint64) (clEvent, bool) {
	e := C.concord_cl_at(q.c, C.uint64_t(n))
	return clEvent{e}, e != nil
}

// clEvent is a plain cl_event. The binding's type is a Go struct of four words, which cannot be
// used in lists of events.
type clEvent struct{ c C.cl_event }

func (e clEvent) retain() cl.ErrorCode { return cl.ErrorCode(C.clRetainEvent(e.c)) }

func (e clEvent) release() { C.clReleaseEvent(e.c) }

// status returns 0 for an event that is done, a negative number for one that failed, and a positive
// one otherwise.
func (e clEvent) status() (int, cl.ErrorCode) {
	var s C.cl_int
	code := cl.ErrorCode(C.clGetEventInfo(e.c, C.CL_EVENT_COMMAND_EXECUTION_STATUS, C.size_t(unsafe.Sizeof(s)),
		unsafe.Pointer(&s), nil))
	return int(s), code
}

// wait waits for the event and returns its failure.
func (e clEvent) wait() cl.ErrorCode { return cl.ErrorCode(C.concord_cl_event_wait(e.c)) }

// times returns the times at which the command was queued, submitted, started and ended, in
// nanoseconds of the device's clock.
func (e clEvent) times() (t [4]uint64, code cl.ErrorCode) {
	code = cl.ErrorCode(C.concord_cl_event_times(e.c, (*C.cl_ulong)(unsafe.Pointer(&t))))
	return t, code
}

// touch makes the device allocate the memory of a buffer now.
func touch(q cl.CommandQueue, handle uint64) cl.ErrorCode {
	return cl.ErrorCode(C.concord_cl_touch(C.cl_command_queue(unsafe.Pointer(q)), C.uint64_t(handle)))
}

// copyBinary copies a program's binary to dst.
func copyBinary(p cl.Program, dst []byte) cl.ErrorCode {
	return cl.ErrorCode(C.concord_cl_binary(C.cl_program(unsafe.Pointer(p)),
		(*C.uchar)(unsafe.SliceData(dst)), C.size_t(len(dst))))
}
