package runtime

// Buffers with a host side and a device side that know which of the two is newer.

import (
	"fmt"
	goruntime "runtime"
	"sync/atomic"
)

// Managed is a buffer that the host and one device use in turn. It has a side for
// each, notes which of them has what the other lacks, and copies when that matters:
// Write, Read and Map work on the host's side, launches on the device's. A kernel's
// parameter that is a pointer to const is an input and never makes the device's side
// newer; any other is read and written, unless the argument is Overwrite(m).
//
// A Managed is a whole or, by Slice, a view of a part; views share both sides and
// what is known of them, so that a change anywhere counts for the whole. It is safe
// for concurrent use: calls on one buffer and its views take turns, and streams that
// use its device side wait for each other as its contents demand. What the host and a
// kernel do at the same time has some order, which is the program's business.
//
// Work that computes on the host where a device cannot, in a room above, maps its
// outputs with ForOverwriting: they are then newer on the host, and the next launch
// uploads them.
//
// When a stream fails, what it was to write is undefined, as with any Buffer.
type Managed struct {
	handle  *handle
	typ     Type
	off     int64 // bytes
	n       int
	closed  atomic.Bool
	cleanup goruntime.Cleanup
}

// ManagedOptions say how a Managed behaves. The zero value is Automatic and
// DevicePreferred.
type ManagedOptions struct {
	Mode     Mode
	Location Location

	// AllowDowngrade makes a buffer Automatic where UnifiedMode is not to be had.
	AllowDowngrade bool
	// Strict makes reading the host's side of an Explicit buffer an error while the
	// device's is newer.
	Strict bool
}

// Mode says who copies between the sides of a Managed.
type Mode uint8

// The modes.
const (
	AutomaticMode Mode = iota // whoever needs what the other side has
	ExplicitMode              // ToDevice and ToHost alone; a launch with inputs newer on the host is an error
	UnifiedMode               // nobody: both sides are one memory, of the kind Unified
)

// Location says which sides a Managed has. The side that is not preferred is
// allocated when it is first needed.
type Location uint8

// The locations.
const (
	DevicePreferred Location = iota
	HostPreferred
	HostOnly   // a launch is ErrNoDeviceMemory
	DeviceOnly // Read, Write and Map are ErrNoHostMemory
)

// Access says what is done with contents.
type Access uint8

// The kinds of access.
const (
	ForReading     Access = iota // they are looked at
	ForWriting                   // they are looked at and changed, or changed in part
	ForOverwriting               // they are all replaced; what was there is not needed
)

// NewManaged returns a buffer of n elements with two sides, contents undefined. UnifiedMode is ErrUnsupported where the device has no such
// memory, unless the options allow another mode; Mode tells which it is.
func (d *Device) NewManaged(t Type, n int, opt ManagedOptions) (*Managed, error) {
	const op = "alloc managed"
	c, err := d.get(op)
	if err != nil {
		return nil, err
	}
	size, err := sizeOf(t, n)
	if err == nil {
		err = opt.check()
	}
	if err != nil {
		return nil, c.error(op, err)
	}
	st, err := c.newSides(size, opt)
	if err != nil {
		return nil, c.named(op, err)
	}
	return newManaged(st, t, 0, n), nil
}

func (o *ManagedOptions) check() error {
	switch {
	case o.Mode > UnifiedMode:
		return fmt.Errorf("%d is no mode: %w", o.Mode, ErrInvalidArgument)
	case o.Location > DeviceOnly:
		return fmt.Errorf("%d is no location: %w", o.Location, ErrInvalidArgument)
	case o.Mode == UnifiedMode && o.Location >= HostOnly:
		return fmt.Errorf("unified memory has both sides: %w", ErrInvalidArgument)
	}
	return nil
}

// handle is one Managed's hold on its sides, apart from it so that the collector can
// tell that the Managed is forgotten.
type handle struct {
	st     *sides
	window atomic.Bool // Map is open
}

// newManaged makes a handle that owns one ref of st.
func newManaged(st *sides, t Type, off int64, n int) *Managed {
	m := &Managed{handle: &handle{st: st}, typ: t, off: off, n: n}
	m.cleanup = goruntime.AddCleanup(m, func(h *handle) { h.st.core.memory.noteForgotten(h) }, m.handle)
	return m
}

// unref gives the hold back, with the window.
func (h *handle) unref() {
	h.shut()
	h.st.unref()
}

func (h *handle) shut() bool {
	open := h.window.Swap(false)
	if open {
		h.st.windows.Add(-1)
	}
	return open
}

// Slice returns a view of n elements from element off on. It shares both sides and
// what is known of them, keeps them alive, and is closed by itself.
func (m *Managed) Slice(off, n int) (*Managed, error) {
	const op = "slice"
	if m.none() {
		return nil, fmt.Errorf("%s: buffer is nil: %w", op, ErrInvalidArgument)
	}
	c := m.handle.st.core
	if off < 0 || n <= 0 || off > m.n || n > m.n-off {
		return nil, c.error(op, fmt.Errorf("elements %d to %d of %d: %w", off, off+n, m.n, ErrBufferOverflow))
	}
	if m.closed.Load() || !m.handle.st.ref() {
		return nil, c.closedError(op)
	}
	return newManaged(m.handle.st, m.typ, m.off+int64(off)*int64(m.typ.Size()), n), nil
}

// none reports a Managed that is nil or that nobody allocated.
func (m *Managed) none() bool { return m == nil || m.handle == nil }

// whole reports whether m is all of its sides.
func (m *Managed) whole() bool { return m.Bytes() == m.handle.st.size }

// Len returns the number of elements.
func (m *Managed) Len() int { return m.n }

// Type returns the element type.
func (m *Managed) Type() Type { return m.typ }

// Bytes returns the size in bytes, of one side.
func (m *Managed) Bytes() int64 { return int64(m.n) * int64(m.typ.Size()) }

// Mode returns who copies between the sides.
func (m *Managed) Mode() Mode { return m.handle.st.opt.Mode }

// Dirty reports which side has what the other lacks. It is never both.
func (m *Managed) Dirty() (host, device bool) {
	st := m.handle.st
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.dirty == hostDirty, st.dirty == deviceDirty
}

// SetTag names what the buffer is for in lists of holders of memory.
func (m *Managed) SetTag(tag string) {
	st, err := m.begin("set tag")
	if err != nil {
		return
	}
	defer st.end()
	st.tag = tag
	for _, a := range []*allocation{st.dev, st.pinned} {
		if a != nil {
			st.core.memory.pool.SetTag(a.id, tag)
		}
	}
}

// String reads "f32[1000] on cuda:0".
func (m *Managed) String() string {
	if m.none() {
		return "nil buffer"
	}
	return fmt.Sprintf("%v[%d] on %s", m.typ, m.n, m.handle.st.core.info.ID)
}

// Close gives the buffer back, as soon as the work that uses it is done; it does not
// wait. It ends a Map that is open. Closing twice, or after the device, does nothing.
func (m *Managed) Close() error {
	if m.none() || m.closed.Swap(true) {
		return nil
	}
	m.cleanup.Stop()
	m.handle.unref()
	return nil
}

// Overwritten is an argument of a launch: a Managed that the kernel replaces. See Overwrite.
type Overwritten struct{ m *Managed }

// Overwrite returns an argument for a launch that replaces all of m: what m holds is not
// uploaded. The caller promises that the kernel writes every element. If m is a view, its
// contents are uploaded all the same, as the rest of the buffer is needed.
func Overwrite(m *Managed) Overwritten { return Overwritten{m} }
