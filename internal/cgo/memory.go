//go:build cgo && unix

package cgo

// Memory. driver.Memory.Handle is its address on the device.

import (
	"unsafe"

	"github.com/concord-compute/concord/runtime/driver"
)

// allocation is one allocation that was not freed yet.
type allocation struct {
	kind    driver.MemoryKind
	size    int64
	host    uint64 // its address for the host, or 0
	ordered bool   // allocated by AllocHere
	wrapped bool   // owned by the program
	refs    int    // more than one if the program wrapped an allocation of this device
}

// address returns the address at which memory, or a view of it, begins.
func address(m driver.Memory) uint64 { return m.Handle + uint64(m.Offset) }

// Alloc implements driver.Device.
func (d *device) Alloc(n int64, kind driver.MemoryKind) (driver.Memory, error) {
	op := func() string { return "alloc " + driver.FormatBytes(n) }
	if err := d.enter("alloc"); err != nil {
		return driver.Memory{}, err
	}
	defer d.leave()
	if limit := d.largest(kind); limit > 0 && n > limit {
		return driver.Memory{}, d.errorf(op(), driver.ErrTooLarge, "an allocation has at most %s", driver.FormatBytes(limit))
	}
	address, host, f := d.t.alloc(d.c, kind, n)
	if f != nil {
		return driver.Memory{}, d.failed(op(), f)
	}
	d.keep(address, &allocation{kind: kind, size: n, host: host, refs: 1})
	return driver.Memory{Handle: address, Size: n, Kind: kind}, nil
}

// largest returns the largest possible size of memory of a kind in bytes; 0 means unknown. Pinned
// memory is the host's, so the size of the device's memory does not limit it.
func (d *device) largest(kind driver.MemoryKind) int64 {
	if kind != driver.OnDevice {
		return 0
	}
	limit := d.info.TotalMemory
	if m := d.info.MaxAllocation; m > 0 && (limit == 0 || m < limit) {
		limit = m
	}
	return limit
}

func (d *device) keep(address uint64, a *allocation) {
	d.mu.Lock()
	d.memory[address] = a
	d.mu.Unlock()
}

// Free implements driver.Device.
func (d *device) Free(m driver.Memory) error {
	const op = "free"
	d.alive.RLock() // not enter, since memory of a lost device is freed, too
	defer d.alive.RUnlock()
	if d.closed {
		return nil // freed by the device's Close
	}
	a, last := d.drop(m.Handle, false)
	switch {
	case a == nil:
		return d.errorf(op, driver.ErrInvalidArgument, "memory is not of this device")
	case !last || a.wrapped:
		return nil
	}
	err := d.freed(op, d.t.free(d.c, a.kind, m.Handle))
	if err != nil {
		a.refs = 1
		d.keep(m.Handle, a) // Close tries again: not every vendor's context frees its memory when it ends
	}
	return err
}

// freed returns the error of a call that frees memory. A failure in a context that is gone is none:
// the memory was freed with the context.
func (d *device) freed(op string, f *failure) error {
	if f == nil {
		return nil
	}
	err := d.failed(op, f)
	if d.cause.Load() != nil {
		return nil
	}
	return err
}

// drop takes one reference to an allocation, and reports whether it was the last.
func (d *device) drop(address uint64, ordered bool) (a *allocation, last bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a = d.memory[address]
	if a == nil || ordered && !a.ordered {
		return nil, false
	}
	a.refs--
	if a.refs == 0 {
		delete(d.memory, address)
	}
	return a, a.refs == 0
}

// host returns the address of memory for the host, if the host can access it.
func (d *device) host(m driver.Memory) (uint64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.memory[m.Handle]
	if a == nil || a.host == 0 {
		return 0, false
	}
	return a.host + uint64(m.Offset), true
}

// HostBytes implements driver.HostVisible.
func (d *device) HostBytes(m driver.Memory) ([]byte, bool) {
	at, ok := d.host(m)
	if !ok {
		return nil, false
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), m.Size), true
}

// WrapMemory implements driver.NativeHandles. The handle is an address on the device. It is not
// possible to check whether memory of that size begins there, unless Alloc returned it.
func (d *device) WrapMemory(handle uintptr, size int64) (driver.Memory, error) {
	const op = "wrap memory"
	if err := d.enter(op); err != nil {
		return driver.Memory{}, err
	}
	defer d.leave()
	if handle == 0 || size <= 0 {
		return driver.Memory{}, d.errorf(op, driver.ErrInvalidArgument, "address %#x with %d bytes", handle, size)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.memory[uint64(handle)]
	if a == nil {
		a = &allocation{kind: driver.OnDevice, size: size, wrapped: true}
		d.memory[uint64(handle)] = a
	}
	if !a.wrapped && size > a.size {
		return driver.Memory{}, d.errorf(op, driver.ErrBufferOverflow, "there are %d bytes, not %d", a.size, size)
	}
	a.refs++
	return driver.Memory{Handle: uint64(handle), Size: size, Kind: a.kind}, nil
}
