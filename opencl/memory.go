//go:build cgo && opencl && (linux || darwin)

package opencl

// Memory: buffers, and sub-buffers for views of them.

import (
	"unsafe"

	"github.com/go-gl/cl/v1.2/cl"

	"github.com/concord-compute/concord/runtime/driver"
)

// allocation is one cl_mem that we hold a reference to.
type allocation struct {
	mem    cl.Mem
	parent cl.Mem // the buffer that sub-buffers are made of: mem, or its parent if the program wrapped a sub-buffer
	base   int64  // offset of mem in parent, in bytes
	size   int64
	refs   int // references that the device holds: more than one if the program wrapped mem twice
	views  map[span]cl.Mem
}

type span struct{ offset, size int64 }

// viewLimit is the maximum number of sub-buffers that are kept per allocation. A program that uses
// the same few views makes each sub-buffer once; a program that uses more views than this makes
// them again and again and is slower.
const viewLimit = 64

// touchFrom is the size from which Alloc makes the driver allocate the memory at once. Most drivers
// allocate at the first use, where a lack of memory would be a failed launch. For smaller buffers
// the round trip to the device would cost too much.
//
// CPU devices get CL_MEM_ALLOC_HOST_PTR instead: PoCL 3.1 then allocates at once
// and returns an error, where it would otherwise end the process at the first use.
const touchFrom = 1 << 20

// memOf turns Memory.Handle back into a cl_mem.
func memOf(handle uint64) cl.Mem { return *(*cl.Mem)(unsafe.Pointer(&handle)) }

func handleOf(m cl.Mem) uint64 { return uint64(uintptr(unsafe.Pointer(m))) }

func (d *device) Alloc(n int64, kind driver.MemoryKind) (driver.Memory, error) {
	op := "alloc " + driver.FormatBytes(n)
	if err := d.open(op); err != nil {
		return driver.Memory{}, err
	}
	flags := cl.MemFlags(cl.MEM_READ_WRITE)
	switch kind {
	case driver.OnDevice:
	case driver.Pinned:
		flags |= cl.MEM_ALLOC_HOST_PTR
	default:
		return driver.Memory{}, d.errorf(op, driver.ErrUnsupported, "OpenCL 1.2 has no memory with one address for host "+
			"and device")
	}
	if d.info.Kind == driver.CPU {
		flags |= cl.MEM_ALLOC_HOST_PTR
	}
	var code cl.ErrorCode
	mem := cl.CreateBuffer(d.context, flags, uint64(n), nil, &code)
	if code != cl.SUCCESS {
		return driver.Memory{}, d.failed(op, code, driver.ErrOutOfMemory)
	}
	if n >= touchFrom && d.info.Kind != driver.CPU {
		if err := d.touch(op, mem); err != nil {
			cl.ReleaseMemObject(mem)
			return driver.Memory{}, err
		}
	}
	d.mu.Lock()
	d.memory[handleOf(mem)] = &allocation{mem: mem, parent: mem, size: n, refs: 1}
	d.mu.Unlock()
	return driver.Memory{Handle: handleOf(mem), Size: n, Kind: kind}, nil
}

func (d *device) touch(op string, mem cl.Mem) error {
	return d.own(op, func(q cl.CommandQueue) error {
		switch code := touch(q, handleOf(mem)); code {
		case cl.SUCCESS, cl.INVALID_OPERATION: // a driver that cannot migrate allocates when it likes
			return nil
		default:
			return d.failed(op, code, driver.ErrOutOfMemory)
		}
	})
}

func (d *device) Free(m driver.Memory) error {
	d.mu.Lock()
	a := d.memory[m.Handle]
	if a != nil {
		if a.refs--; a.refs == 0 {
			delete(d.memory, m.Handle)
		}
	}
	d.mu.Unlock()
	switch {
	case a == nil && d.closed.Load():
		return nil
	case a == nil:
		return d.errorf("free", driver.ErrInvalidArgument, "memory is not of this device")
	case a.refs > 0:
		return d.failed("free", cl.ReleaseMemObject(a.mem), nil)
	}
	return d.failed("free", a.release(), nil)
}

// release drops the last reference and the sub-buffers. OpenCL retains the memory that queued
// commands use.
func (a *allocation) release() cl.ErrorCode {
	for _, sub := range a.views {
		cl.ReleaseMemObject(sub)
	}
	a.views = nil
	return cl.ReleaseMemObject(a.mem)
}

// needsView reports whether a memory argument does not begin at the start of its allocation.
func needsView(a *driver.Arg) bool { return a.Kind == driver.ArgMemory && a.Memory.Offset != 0 }

// aligned reports whether all views among the arguments can be sub-buffers. The
// caller holds d.mu.
func (d *device) aligned(args []driver.Arg) bool {
	for i := range args {
		if !needsView(&args[i]) {
			continue
		}
		m := &args[i].Memory
		a := d.memory[m.Handle]
		if a == nil || (a.base+m.Offset)%d.info.BaseAlign != 0 {
			return false
		}
	}
	return true
}

// replaceViews replaces views by existing sub-buffers, and reports whether there was one for every
// view. The caller holds d.mu for as long as it uses them.
func (d *device) replaceViews(args []driver.Arg) bool {
	for i := range args {
		if !needsView(&args[i]) {
			continue
		}
		m := &args[i].Memory
		sub, ok := d.memory[m.Handle].views[span{m.Offset, m.Size}]
		if !ok {
			return false
		}
		m.Handle, m.Offset = handleOf(sub), 0
	}
	return true
}

// makeViews makes the sub-buffers that are missing. The caller holds d.mu for writing, so that
// sub-buffers that are evicted are not in use.
func (d *device) makeViews(args []driver.Arg) cl.ErrorCode {
	for i := range args {
		if !needsView(&args[i]) {
			continue
		}
		m := &args[i].Memory
		a, at := d.memory[m.Handle], span{m.Offset, m.Size}
		if _, ok := a.views[at]; ok {
			continue
		}
		if a.views == nil {
			a.views = map[span]cl.Mem{}
		}
		region := [2]uint64{uint64(a.base + m.Offset), uint64(m.Size)}
		var code cl.ErrorCode
		// No access flags: a sub-buffer inherits its parent's.
		sub := cl.CreateSubBuffer(a.parent, 0, cl.BUFFER_CREATE_TYPE_REGION, unsafe.Pointer(&region), &code)
		if code != cl.SUCCESS {
			return code
		}
		a.views[at] = sub
		if len(a.views) > viewLimit {
			a.evict(args)
		}
	}
	return cl.SUCCESS
}

// evict drops half of the sub-buffers, but none that args use.
func (a *allocation) evict(args []driver.Arg) {
	for at, sub := range a.views {
		used := false
		for i := range args {
			m := &args[i].Memory
			used = used || needsView(&args[i]) && at == span{m.Offset, m.Size}
		}
		if !used {
			cl.ReleaseMemObject(sub)
			delete(a.views, at)
		}
		if len(a.views) <= viewLimit/2 {
			return
		}
	}
}
