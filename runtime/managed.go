package runtime

// Buffers with a host side and a device side that know which of the two is newer.

import (
	"fmt"
	goruntime "runtime"
	"sync/atomic"
)

// Managed is a buffer that the host and one device use in turn. It has a side for each, notes which
// side is newer, and copies before the other side is used: Write, Read and Map work on the host's
// side, launches on the device's. A kernel's parameter that is a pointer to const is an input and
// never makes the device's side newer; any other is read and written, unless the argument is
// Overwrite(m).
//
// A Managed is a whole buffer or, made by Slice, a view of a part. Views share both sides and the
// note of the newer one, so that a change through any of them counts for the whole buffer. It is
// safe for concurrent use: calls on one buffer and its views take turns, and streams that use its
// device side wait for each other as its contents require. If the host and a kernel access it at
// the same time, the program has to order them.
//
// A program that computes on the host what a device cannot maps its outputs with ForOverwriting:
// the host's side is then newer, and the next launch uploads it.
//
// When a stream fails, the contents of the buffers that it was to write are undefined, as with any
// Buffer.
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
	Mode     Mode     // 0 is AutomaticMode
	Location Location // 0 is DevicePreferred

	// AllowDowngrade makes a buffer Automatic where the device has no unified memory.
	AllowDowngrade bool
	// Strict makes reading the host's side of an Explicit buffer an error while the
	// device's is newer.
	Strict bool
}

// Mode says when a Managed copies between its sides.
type Mode uint8

// The modes.
const (
	AutomaticMode Mode = iota // any use of a side for which the other one is newer
	ExplicitMode              // only ToDevice and ToHost; a launch with inputs newer on the host is an error
	UnifiedMode               // never: both sides are one memory, of the kind Unified
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

// Access says what a program does with contents.
type Access uint8

// The kinds of access.
const (
	ForReading     Access = iota // they are read
	ForWriting                   // they are read and changed, or changed in part
	ForOverwriting               // they are all replaced; the old ones are not needed
)

// NewManaged returns a buffer of n elements with two sides, contents undefined. UnifiedMode is
// ErrUnsupported where the device has no such memory, unless the options allow another mode; the
// method Mode returns the resulting one.
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

// handle is one Managed's reference to its sides. It is a separate object so that the collector can
// notice that the Managed is garbage.
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

// unref gives up the reference and ends an open Map.
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

// Slice returns a view of n elements, from element off on. It shares both sides and the note of the
// newer one, and keeps them alive. The caller closes it separately.
func (m *Managed) Slice(off, n int) (*Managed, error) {
	const op = "slice"
	if m.none() {
		return nil, fmt.Errorf("%s: buffer is nil: %w", op, ErrInvalidArgument)
	}
	c := m.handle.st.core
	if off < 0 || n < 0 || off > m.n || n > m.n-off {
		return nil, c.error(op, fmt.Errorf("elements %d to %d of %d: %w", off, off+n, m.n, ErrBufferOverflow))
	}
	if m.closed.Load() || !m.handle.st.ref() {
		return nil, c.closedError(op)
	}
	return newManaged(m.handle.st, m.typ, m.off+int64(off)*int64(m.typ.Size()), n), nil
}

// none reports whether the Managed is nil or its zero value.
func (m *Managed) none() bool { return m == nil || m.handle == nil }

// whole reports whether m covers its sides completely.
func (m *Managed) whole() bool { return m.Bytes() == m.handle.st.size }

// Len returns the number of elements.
func (m *Managed) Len() int { return m.n }

// Type returns the element type.
func (m *Managed) Type() Type { return m.typ }

// Bytes returns the size in bytes, of one side.
func (m *Managed) Bytes() int64 { return int64(m.n) * int64(m.typ.Size()) }

// Mode returns the mode in force.
func (m *Managed) Mode() Mode { return m.handle.st.opt.Mode }

// Dirty reports which side is newer than the other. At most one is.
func (m *Managed) Dirty() (host, device bool) {
	st := m.handle.st
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.dirty == hostDirty, st.dirty == deviceDirty
}

// SetTag names the purpose of the buffer's memory in lists of holders.
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

// String returns type, length and device: "f32[1000] on cuda:0".
func (m *Managed) String() string {
	if m.none() {
		return "nil buffer"
	}
	return fmt.Sprintf("%v[%d] on %s", m.typ, m.n, m.handle.st.core.info.ID)
}

// Close releases the buffer. Its memory is freed as soon as the work that uses it is done; Close
// does not wait. It ends an open Map. Closing twice, or after the device, does nothing.
func (m *Managed) Close() error {
	if m.none() || m.closed.Swap(true) {
		return nil
	}
	m.cleanup.Stop()
	m.handle.unref()
	return nil
}

// Overwritten is a launch argument: a Managed that the kernel replaces completely. See Overwrite.
type Overwritten struct{ m *Managed }

// Overwrite returns an argument for a launch that replaces all of m, whose contents are then not
// uploaded. The caller promises that the kernel writes every element. If m is a view, its contents
// are uploaded all the same, because the rest of the buffer is needed.
func Overwrite(m *Managed) Overwritten { return Overwritten{m} }
