package runtime

// Buffers over memory that the program owns.

import (
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

// Access says what a program does with the contents of memory.
type Access uint8

// The kinds of access.
const (
	ForReading     Access = iota // they are read
	ForWriting                   // they are read and changed, or changed in part
	ForOverwriting               // they are all replaced; the old ones are not needed
)

// foreign is what a device knows of memory that the program owns.
type foreign struct {
	readOnly bool
	release  func() // or nil
}

// Wrap returns a buffer of elements of type t that are the given memory of the host, such as a mapped file. The
// device uses the memory in place; nothing is copied. A device that cannot, such as most GPUs, returns
// ErrUnsupported.
//
// The memory must begin at a multiple of 8 bytes and contain whole elements. It must not be on Go's heap,
// because the garbage collector could free it or use it again while the device still works with it; Wrap cannot
// check that.
//
// access says what the device may do. With ForReading the pages may be read-only. A launch that passes the buffer to a
// parameter that is not a pointer to const is then ErrInvalidArgument, and so is a copy, write or fill to it.
// ForWriting and ForOverwriting mean the same here. Wrap reads, and for writing also writes back, the first and the
// last byte, and returns ErrInvalidArgument if one of them does not allow that. It does not look at the pages between
// them. The device may meet a page that it may not use, for instance because a mapped file became shorter. Then a
// compiled kernel of cpu:0 fails with an error of its stream, but a copy or one of the CPU's own kernels ends the
// process with a message.
//
// The memory must stay mapped until release is called. That happens once: when the buffer, its views and the
// graphs that use it are closed and their work is done, or when the device is closed. release may be nil. It
// may run on any goroutine, during a call on any object of the device, so it must not use the device itself. If
// Wrap fails, release is not called. Stats.Wrapped counts the memory; the pool does not.
func (d *Device) Wrap(memory []byte, t Type, access Access, release func()) (*Buffer, error) {
	const op = "wrap memory"
	c, err := d.get(op)
	if err != nil {
		return nil, err
	}
	size, err := t.Bytes(1)
	switch {
	case err != nil:
	case len(memory) == 0 || len(memory)%int(size) != 0:
		err = fmt.Errorf("%d bytes are no elements of %v: %w", len(memory), t, ErrInvalidArgument)
	case access > ForOverwriting:
		err = fmt.Errorf("%d is no access: %w", access, ErrInvalidArgument)
	}
	if err != nil {
		return nil, c.error(op, err)
	}
	host, ok := c.drv.(driver.HostWrapper)
	if !ok {
		return nil, c.error(op, fmt.Errorf("the device does not use the host's memory: %w", ErrUnsupported))
	}
	own := &foreign{readOnly: access == ForReading, release: release}
	return c.wrap(op, t, len(memory)/int(size), own, func() (driver.Memory, error) {
		return host.WrapHost(memory, access != ForReading)
	})
}

// WrapHandle returns a buffer of n elements over memory that the program has from the vendor's API: a cl_mem of the
// device's context, an address of the context of CUDA or HIP. Which context that is driver.NativeHandles tells, which
// [Device.Driver] implements where this is possible; elsewhere WrapHandle is ErrUnsupported. The program orders
// its own work with the memory. release and the accounts are as for Wrap.
func (d *Device) WrapHandle(handle uintptr, t Type, n int, release func()) (*Buffer, error) {
	const op = "wrap memory"
	c, err := d.get(op)
	if err != nil {
		return nil, err
	}
	size, err := t.Bytes(n)
	if err != nil {
		return nil, c.error(op, err)
	}
	native, ok := c.drv.(driver.NativeHandles)
	if !ok {
		return nil, c.error(op, fmt.Errorf("the device has no handles of a vendor: %w", ErrUnsupported))
	}
	return c.wrap(op, t, n, &foreign{release: release}, func() (driver.Memory, error) {
		return native.WrapMemory(handle, size)
	})
}

func (c *core) wrap(op string, t Type, n int, own *foreign, wrap func() (driver.Memory, error)) (*Buffer, error) {
	if !c.enter() {
		return nil, c.closedError(op)
	}
	defer c.leave()
	m := &c.memory
	m.drain()
	if err := c.lost(); err != nil {
		return nil, err
	}
	mem, err := wrap()
	if err != nil {
		return nil, c.noticed(c.named(op, err))
	}
	if c.isClosed() { // close waits for this call
		_ = c.drv.Free(mem) // a reference of the backend
		return nil, c.closedError(op)
	}
	a := &allocation{core: c, mem: mem, foreign: own}
	a.refs.Store(1)
	m.mu.Lock()
	m.live[a] = struct{}{}
	m.stats.Wrapped += mem.Size
	m.mu.Unlock()
	return newBuffer(a, t, mem, n), nil
}

// end gives the memory back to the program.
func (f *foreign) end(c *core, mem driver.Memory) error {
	err := c.drv.Free(mem)
	if f.release != nil {
		f.release()
	}
	return err
}

// holdToWrite is hold for a buffer that the call writes.
func (s *Stream) holdToWrite(b *Buffer) error {
	err := s.hold(b)
	if err == nil {
		err = s.toWrite(b)
	}
	return err
}

// toWrite returns an error for a buffer of memory that is only read. A graph that is being recorded notes that
// it writes the others.
func (s *Stream) toWrite(b *Buffer) error {
	err := b.writable()
	if err == nil && s.capture != nil {
		s.capture.written[b.a] = struct{}{}
	}
	return err
}

// writable returns an error for a buffer of memory that is only read.
func (b *Buffer) writable() error {
	if b.a.foreign != nil && b.a.foreign.readOnly {
		return fmt.Errorf("memory was wrapped for reading: %w", ErrInvalidArgument)
	}
	return nil
}
