package managed

// Buffers with a host side and a device side that know which of the two is newer.

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime"
)

// Buffer is a buffer that the host and one device use in turn. It has a side for each, notes which
// side is newer, and copies before the other side is used: Write, Read and Map work on the host's
// side, launches on the device's. A kernel's parameter that is a pointer to const is an input and
// never makes the device's side newer; any other is read and written, unless the argument is
// Overwrite(m).
//
// A Buffer is a whole one or, made by Slice, a view of a part. Views share both sides and the
// note of the newer one, so that a change through any of them counts for the whole buffer. It is
// safe for concurrent use: calls on one buffer and its views take turns, and streams that use its
// device side wait for each other as its contents require. If the host and a kernel access it at
// the same time, the program has to order them.
//
// A program that computes on the host what a device cannot maps its outputs with ForOverwriting:
// the host's side is then newer, and the next launch uploads it.
//
// When a stream fails, the contents of the buffers that it was to write are undefined, as with any
// buffer.
type Buffer struct {
	handle  *handle
	off     int // elements
	n       int
	closed  atomic.Bool
	cleanup goruntime.Cleanup
}

// Options say how a Buffer behaves. The zero value is Automatic and
// DevicePreferred.
type Options struct {
	Mode     Mode     // 0 is AutomaticMode
	Location Location // 0 is DevicePreferred

	// AllowDowngrade makes a buffer Automatic where the device has no unified memory.
	AllowDowngrade bool
	// Strict makes reading the host's side of an Explicit buffer an error while the
	// device's is newer.
	Strict bool
}

// Mode says when a Buffer copies between its sides.
type Mode uint8

// The modes.
const (
	AutomaticMode Mode = iota // any use of a side for which the other one is newer
	ExplicitMode              // only ToDevice and ToHost; a launch with inputs newer on the host is an error
	UnifiedMode               // never: both sides are one memory, of the kind Unified
)

// Location says which sides a Buffer has. The side that is not preferred is
// allocated when it is first needed.
type Location uint8

// The locations.
const (
	DevicePreferred Location = iota
	HostPreferred
	HostOnly   // a launch is ErrNoDeviceMemory
	DeviceOnly // Read, Write and Map are ErrNoHostMemory
)

// New returns a buffer of n elements of type t with two sides, contents undefined, on a device, which has to stay
// open as long as the buffer is used. UnifiedMode is ErrUnsupported where the device has no such memory, unless the
// options allow another mode; the method Mode returns the resulting one.
func New(d *runtime.Device, t runtime.Type, n int, opt Options) (*Buffer, error) {
	const op = "alloc managed"
	if err := d.Enter(op); err != nil {
		return nil, err
	}
	defer d.Leave()
	_, err := t.Bytes(n)
	if err == nil {
		err = opt.check()
	}
	if err != nil {
		return nil, opError(d, op, err)
	}
	st, err := newSides(d, t, n, opt)
	if err != nil {
		return nil, named(d, op, err)
	}
	return newBuffer(st, 0, n), nil
}

// opError names the device and the operation of an error.
func opError(d *runtime.Device, op string, err error) error {
	backend, _, _ := strings.Cut(d.String(), ":")
	return &runtime.OpError{Backend: backend, Device: d.String(), Op: op, Err: err}
}

// named is opError for an error that may name them already.
func named(d *runtime.Device, op string, err error) error {
	if err == nil {
		return nil
	}
	if _, told := errors.AsType[*runtime.OpError](err); told {
		return err
	}
	return opError(d, op, err)
}

func (o *Options) check() error {
	switch {
	case o.Mode > UnifiedMode:
		return fmt.Errorf("%d is no mode: %w", o.Mode, runtime.ErrInvalidArgument)
	case o.Location > DeviceOnly:
		return fmt.Errorf("%d is no location: %w", o.Location, runtime.ErrInvalidArgument)
	case o.Mode == UnifiedMode && o.Location >= HostOnly:
		return fmt.Errorf("unified memory has both sides: %w", runtime.ErrInvalidArgument)
	}
	return nil
}

// handle is one Buffer's reference to its sides. It is a separate object so that the collector can
// notice that the Buffer is garbage.
type handle struct {
	st     *sides
	window atomic.Bool     // Map is open
	view   *runtime.Buffer // a window on the device's side, once a launch needed it; guarded by st.mu
}

// newBuffer makes a handle that owns one ref of st. A handle that becomes garbage gives up its Map; the sides are
// then garbage with the last one, and package runtime frees the buffers of them.
func newBuffer(st *sides, off, n int) *Buffer {
	m := &Buffer{handle: &handle{st: st}, off: off, n: n}
	m.cleanup = goruntime.AddCleanup(m, func(h *handle) { h.shut(); h.st.refs.Add(-1) }, m.handle)
	return m
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
func (m *Buffer) Slice(off, n int) (*Buffer, error) {
	const op = "slice"
	if m.none() {
		return nil, fmt.Errorf("%s: buffer is nil: %w", op, runtime.ErrInvalidArgument)
	}
	d := m.handle.st.device
	if off < 0 || n < 0 || off > m.n || n > m.n-off {
		return nil, opError(d, op, fmt.Errorf("elements %d to %d of %d: %w", off, off+n, m.n, runtime.ErrBufferOverflow))
	}
	if m.closed.Load() || !m.handle.st.ref() {
		return nil, opError(d, op, runtime.ErrClosed)
	}
	return newBuffer(m.handle.st, m.off+off, n), nil
}

// none reports whether the Buffer is nil or its zero value.
func (m *Buffer) none() bool { return m == nil || m.handle == nil }

// whole reports whether m covers its sides completely.
func (m *Buffer) whole() bool { return m.n == m.handle.st.n }

// Len returns the number of elements.
func (m *Buffer) Len() int { return m.n }

// Type returns the element type.
func (m *Buffer) Type() runtime.Type { return m.handle.st.typ }

// Bytes returns the size in bytes, of one side.
func (m *Buffer) Bytes() int64 { return int64(m.n) * int64(m.Type().Size()) }

// Mode returns the mode in force.
func (m *Buffer) Mode() Mode { return m.handle.st.opt.Mode }

// Dirty reports which side is newer than the other. At most one is.
func (m *Buffer) Dirty() (host, device bool) {
	st := m.handle.st
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.dirty == hostDirty, st.dirty == deviceDirty
}

// SetTag names the purpose of the buffer's memory in lists of holders.
func (m *Buffer) SetTag(tag string) {
	st, err := m.begin("set tag")
	if err != nil {
		return
	}
	defer st.end()
	st.tag = tag
	st.dev.SetTag(tag)
	st.pinned.SetTag(tag)
}

// String returns type, length and device: "f32[1000] on cuda:0".
func (m *Buffer) String() string {
	if m.none() {
		return "nil buffer"
	}
	return fmt.Sprintf("%v[%d] on %s", m.Type(), m.n, m.handle.st.device)
}

// Close releases the buffer. Its memory is freed as soon as the work that uses it is done; Close
// does not wait. It ends an open Map. Closing twice, or after the device, does nothing.
func (m *Buffer) Close() error {
	if m.none() || m.closed.Swap(true) {
		return nil
	}
	m.cleanup.Stop()
	m.handle.shut()
	m.handle.st.unref()
	return nil
}

// Overwritten is a launch argument: a Buffer that the kernel replaces completely. See Overwrite.
type Overwritten struct{ m *Buffer }

// Overwrite returns an argument for a launch that replaces all of m, whose contents are then not
// uploaded. The caller promises that the kernel writes every element. If m is a view, its contents
// are uploaded all the same, because the rest of the buffer is needed.
func Overwrite(m *Buffer) Overwritten { return Overwritten{m} }
