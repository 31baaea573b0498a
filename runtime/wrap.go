package runtime

// Buffers over memory that the program owns.

import (
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

// foreign is what a device knows of memory that the program owns.
type foreign struct {
	readOnly bool
	release  func() // or nil
}

// Wrap returns a buffer over memory of the host outside Go's heap, such as a mapped file, which the device uses
// in place. The memory begins at a multiple of 8 bytes and is whole elements of t. That it is outside Go's heap is not
// checked: of memory on the heap the garbage collector may make something else while the device uses it. A device that cannot use the host's
// memory in place, as most GPUs, is ErrUnsupported.
//
// access is ForReading, ForWriting or ForOverwriting; here the last two mean the same, since nothing is copied.
// If it is ForReading the pages may be read-only: launches whose parameter is not a pointer to const, and
// copies, writes and fills to the buffer, are ErrInvalidArgument. Pages that are not accessible as access says are
// ErrInvalidArgument as far as a look at the first and the last byte shows. If others are not, or a mapped file becomes
// shorter, a compiled kernel of cpu:0 that meets them fails with an error of its stream, while the CPU's own
// kernels and copies end the process with a message.
//
// release, unless it is nil, is called once: when the buffer and all views and graphs with it are closed and the work
// that uses it is done, or when the device is closed. It may be called on any goroutine, also of a call on another
// object of the device, and uses nothing of the device. Until then the memory stays as it is. If Wrap fails, release is
// not called. The memory counts in Stats.Wrapped and is not the pool's.
func (d *Device) Wrap(memory []byte, t Type, access Access, release func()) (*Buffer, error) {
	const op = "wrap memory"
	c, err := d.get(op)
	if err != nil {
		return nil, err
	}
	switch {
	case t.Size() == 0 || len(memory) == 0 || len(memory)%t.Size() != 0:
		return nil, c.error(op, fmt.Errorf("%d bytes are no elements of %v: %w", len(memory), t, ErrInvalidArgument))
	case access > ForOverwriting:
		return nil, c.error(op, fmt.Errorf("%d is no access: %w", access, ErrInvalidArgument))
	}
	host, ok := c.drv.(driver.HostWrapper)
	if !ok {
		return nil, c.error(op, fmt.Errorf("the device does not use the host's memory: %w", ErrUnsupported))
	}
	own := &foreign{readOnly: access == ForReading, release: release}
	return c.wrap(op, t, len(memory)/t.Size(), own, func() (driver.Memory, error) { return host.WrapHost(memory, access != ForReading) })
}

// WrapHandle returns a buffer of n elements over memory that the program has from the vendor's API: a cl_mem of the
// device's context, an address of the context of CUDA or HIP. Which context that is driver.NativeHandles tells, which
// [Device.Driver] implements where this is possible; elsewhere WrapHandle is ErrUnsupported. The program orders its own work with
// the memory. release and the accounts are as for Wrap.
func (d *Device) WrapHandle(handle uintptr, t Type, n int, release func()) (*Buffer, error) {
	const op = "wrap memory"
	c, err := d.get(op)
	if err != nil {
		return nil, err
	}
	size, err := sizeOf(t, n)
	if err != nil {
		return nil, c.error(op, err)
	}
	native, ok := c.drv.(driver.NativeHandles)
	if !ok {
		return nil, c.error(op, fmt.Errorf("the device has no handles of a vendor: %w", ErrUnsupported))
	}
	return c.wrap(op, t, n, &foreign{release: release}, func() (driver.Memory, error) { return native.WrapMemory(handle, size) })
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
		err = b.writable()
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
