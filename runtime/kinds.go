package runtime

// Kinds of memory: the device's own, the host's that the device can access, and unified memory.

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// AllocKind returns a buffer of n elements, which may be 0, in memory of the given kind, contents
// undefined. Every call that takes a buffer takes all kinds.
//
//   - OnDevice is the kind that Alloc uses.
//   - Pinned is memory of the host that the device can read and write, slowly.
//     Stream.Copy between it and the device's memory does not make the host wait.
//   - Unified has one address for host and device; the driver moves its contents.
//
// A kind that the device does not have is ErrUnsupported. Host returns the contents of
// kinds that the host can access.
func (d *Device) AllocKind(kind MemoryKind, t Type, n int) (*Buffer, error) {
	c, err := d.get("alloc")
	if err != nil {
		return nil, err
	}
	size, err := t.Bytes(n)
	if err == nil && kind > driver.Unified {
		err = fmt.Errorf("%d is no kind of memory: %w", kind, ErrInvalidArgument)
	}
	if err != nil {
		return nil, c.error("alloc", err)
	}
	a, err := c.memory.alloc(size, kind, nil)
	if err != nil {
		return nil, err
	}
	return newBuffer(a, t, part(a.mem, 0, size), n), nil
}

// leastBytes is what a buffer without elements holds, so that drivers get an address for it.
const leastBytes = 8

// Kind returns where the buffer's memory lives.
func (b *Buffer) Kind() MemoryKind { return b.mem.Kind }

// Host returns a buffer's memory as the host sees it: Pinned and Unified memory, and all memory of
// a CPU. Other memory is ErrNoHostMemory.
//
// The slice is the memory itself, valid until the buffer, its last view or the device is closed;
// using it later crashes the process. So keep a reference to the buffer: a buffer that becomes
// garbage is freed. Access while queued work uses the buffer has undefined results: call Sync
// first.
func Host[T Element](b *Buffer) ([]T, error) {
	if err := sameType[T](b, "host"); err != nil {
		return nil, err
	}
	view, err := HostBytes(b)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(view))), b.n), nil
}

// HostBytes is Host for callers that know the element type only at run time: the same memory, as
// bytes in the machine's order. Stream.Write and Stream.Read copy bytes from and to any buffer.
func HostBytes(b *Buffer) ([]byte, error) {
	const op = "host"
	if b.none() {
		return nil, fmt.Errorf("%s: buffer is nil: %w", op, ErrInvalidArgument)
	}
	if b.isClosed() || b.a.core.isAbandoned() || !b.a.ref() {
		return nil, b.a.core.closedError(op)
	}
	defer b.a.unref()
	view, ok := b.hostBytes()
	if !ok {
		return nil, b.a.core.error(op, driver.ErrNoHostMemory)
	}
	return view, nil
}

// hostBytes returns the host's view of a buffer that the caller keeps alive.
func (b *Buffer) hostBytes() ([]byte, bool) {
	view, ok := b.a.core.hostBytes(b.a.address(b.mem))
	if !ok {
		return nil, false
	}
	return view[:b.mem.Size], true
}

// hostBytes returns the host's view of memory that the caller keeps alive.
func (c *core) hostBytes(m driver.Memory) ([]byte, bool) {
	visible, ok := c.drv.(driver.HostVisible)
	if !ok {
		return nil, false
	}
	view, ok := visible.HostBytes(m)
	return view, ok && int64(len(view)) == m.Size
}

// checkHost refuses more host memory than the machine has; a device's limits say
// nothing about it.
func checkHost(n int64) error {
	if _, total, known := mempool.SystemMemory(); known && n > total {
		return fmt.Errorf("the machine has %s: %w", driver.FormatBytes(total), ErrTooLarge)
	}
	return nil
}

// scarce reports whether plain memory can replace pinned memory after the error.
func scarce(err error) bool {
	return errors.Is(err, ErrOutOfMemory) || errors.Is(err, ErrUnsupported) || errors.Is(err, ErrBudget)
}
