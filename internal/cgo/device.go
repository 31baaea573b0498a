//go:build cgo && unix

package cgo

// A device: the objects that are open on it, and how it is lost and closed.

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime/driver"
)

type device struct {
	b    *backend
	lib  library
	t    table
	info driver.Info

	constantAlign uint64 // Vendor.ConstantAlign, at least 1

	cause atomic.Pointer[error] // why the context is gone
	blas  blas
	clock clock

	alive  sync.RWMutex // held for reading while c is used
	closed bool
	c      cDevice

	mu      sync.Mutex          // guards what is open on the device
	objects map[object]struct{} // streams, events, graphs, modules
	memory  map[uint64]*allocation
	reach   map[*device]bool // whether this device accesses another one's memory directly; filled at the first query

	events sync.WaitGroup // events that are not released yet
}

// object is anything but memory that is open on a device.
type object interface {
	// order is the position in the order in which a device closes its objects.
	order() int
	Close() error
}

var (
	_ driver.Device          = (*device)(nil)
	_ driver.Compiler        = (*device)(nil)
	_ driver.NativeHandles   = (*device)(nil)
	_ driver.PriorityStreams = (*device)(nil)
	_ driver.HostVisible     = (*device)(nil)
	_ driver.PeerCopier      = (*device)(nil)
	_ driver.Occupier        = (*device)(nil)
	_ driver.LibraryLister   = (*device)(nil)
	_ driver.Communicators   = (*device)(nil)
)

func newDevice(b *backend, l library, c cDevice, info driver.Info) *device {
	align := 1
	if b.v.ConstantAlign != nil {
		align = b.v.ConstantAlign(info.Arch)
	}
	return &device{b: b, lib: l, t: l.t, info: info, c: c, constantAlign: uint64(align),
		objects: map[object]struct{}{}, memory: map[uint64]*allocation{}, reach: map[*device]bool{}}
}

// Info implements driver.Device.
func (d *device) Info() driver.Info {
	info := d.info
	if d.enter("info") == nil {
		free, f := d.t.freeMemory(d.c)
		info.FreeMemory, info.FreeMemoryKnown = free, f == nil
		d.leave()
	}
	return info
}

// Libraries implements driver.LibraryLister.
func (d *device) Libraries() []driver.Library {
	if d.enter("libraries") != nil {
		return d.t.libraries(d.lib.c, nil)
	}
	defer d.leave()
	return d.t.libraries(d.lib.c, d.c)
}

// enter begins a call that uses the device. If it succeeds, the call has to end with leave.
func (d *device) enter(op string) error {
	d.alive.RLock()
	err := d.lost()
	if d.closed {
		err = d.errorf(op, driver.ErrClosed, "device")
	}
	if err != nil {
		d.alive.RUnlock()
	}
	return err
}

func (d *device) leave() { d.alive.RUnlock() }

// lost returns why the context is gone, or nil.
func (d *device) lost() error {
	if err := d.cause.Load(); err != nil {
		return *err
	}
	return nil
}

// lose marks the context as gone: every later call fails with the same cause. op is the call that
// the driver reported the loss to. If streams have open operations, the error names those instead,
// since one of them probably caused the loss.
func (d *device) lose(op string, f *failure) error {
	var open opList
	for _, o := range d.open(orderStreams) {
		s := o.(*stream)
		s.ops.open(&open, s.ops.now())
	}
	is := errIdle
	if what := open.String(); what != "" {
		op, is = what, f.ran()
	}
	err := fmt.Errorf("%w: %w", driver.ErrDeviceLost, f.as(d.b.v.Name, d.info.ID, op, is))
	d.cause.CompareAndSwap(nil, &err)
	return d.lost()
}

// failed returns the device's error for op, or nil for success.
func (d *device) failed(op string, f *failure) error {
	switch {
	case f == nil:
		return nil
	case f.status == statusLost:
		return d.lose(op, f)
	case d.cause.Load() != nil:
		return d.lost()
	}
	return f.error(d.b.v.Name, d.info.ID, op)
}

// errorf returns an error of the device that has no code.
func (d *device) errorf(op string, is error, format string, args ...any) error {
	return &driver.OpError{Backend: d.b.v.Name, Device: d.info.ID, Op: op, Detail: fmt.Sprintf(format, args...), Err: is}
}

// NewStream implements driver.Device.
func (d *device) NewStream() (driver.Stream, error) { return d.NewPriorityStream(driver.Normal) }

// NewPriorityStream implements driver.PriorityStreams.
func (d *device) NewPriorityStream(p driver.Priority) (driver.Stream, error) {
	return d.newStream("new stream", func() (cStream, *failure) { return d.t.streamNew(d.c, p) })
}

func (d *device) newStream(op string, create func() (cStream, *failure)) (driver.Stream, error) {
	if err := d.enter(op); err != nil {
		return nil, err
	}
	defer d.leave()
	c, f := create()
	if f != nil {
		return nil, d.failed(op, f)
	}
	s := &stream{d: d, t: d.t, c: c}
	d.hold(s)
	return s, nil
}

// hold records an object that Close of the device has to close.
func (d *device) hold(o object) {
	d.mu.Lock()
	d.objects[o] = struct{}{}
	d.mu.Unlock()
}

func (d *device) forget(o object) {
	d.mu.Lock()
	delete(d.objects, o)
	d.mu.Unlock()
}

// Close releases the device and all objects and memory that are still open on it.
func (d *device) Close() error {
	d.alive.Lock() // waits for calls in progress
	if d.closed {
		d.alive.Unlock()
		return nil
	}
	d.closed = true
	d.alive.Unlock()

	for order := range orders {
		for _, o := range d.open(order) {
			_ = o.Close()
		}
		if order == orderEvents {
			d.events.Wait() // calls may still be waiting for an event
		}
	}
	d.mu.Lock()
	for address, a := range d.memory {
		delete(d.memory, address)
		if !a.wrapped {
			_ = d.t.free(d.c, a.kind, address)
		}
	}
	d.mu.Unlock()
	f := d.t.deviceClose(d.c)
	if f == nil || d.cause.Load() != nil || f.status == statusLost {
		return nil // the loss was already reported
	}
	return d.failed("close", f)
}

// The order in which objects are closed: graphs hold kernels of modules.
const (
	orderCommunicators = iota // which end the work that streams would wait for
	orderStreams
	orderEvents
	orderGraphs
	orderModules
	orders
)

func (d *device) open(order int) (list []object) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for o := range d.objects {
		if o.order() == order {
			list = append(list, o)
		}
	}
	return list
}

// Handles implements driver.NativeHandles: the vendor's context and device.
func (d *device) Handles() map[string]uintptr {
	if d.enter("handles") != nil {
		return nil
	}
	defer d.leave()
	dev, context := d.t.deviceHandles(d.c)
	return map[string]uintptr{"device": dev, "context": context}
}

// StreamHandle implements driver.NativeHandles. It is 0 for a stream that is not
// one of this device, or closed.
func (d *device) StreamHandle(s driver.Stream) uintptr {
	own, ok := s.(*stream)
	if !ok || own.d != d {
		return 0
	}
	own.alive.RLock()
	defer own.alive.RUnlock()
	if own.closed {
		return 0
	}
	return d.t.streamHandle(own.c)
}

// WrapStream implements driver.NativeHandles. Close waits for the program's queue
// and leaves it alone.
func (d *device) WrapStream(handle uintptr) (driver.Stream, error) {
	return d.newStream("wrap stream", func() (cStream, *failure) { return d.t.streamWrap(d.c, handle) })
}

// Occupancy implements driver.Occupier.
func (d *device) Occupancy(k driver.Kernel, group int, local int64) (int, error) {
	var n int
	err := d.withKernel("occupancy", k, func(c cKernel) (f *failure) {
		n, f = d.t.occupancy(c, group, local)
		return f
	})
	return n, err
}

// SuggestGroup implements driver.Occupier.
func (d *device) SuggestGroup(k driver.Kernel, local int64) (int, error) {
	var n int
	err := d.withKernel("suggest group", k, func(c cKernel) (f *failure) {
		n, f = d.t.suggest(c, local)
		return f
	})
	return n, err
}

func (d *device) withKernel(op string, k driver.Kernel, f func(cKernel) *failure) error {
	own, ok := k.(*kernel)
	if !ok || own.m.d != d {
		return d.notOurs(op, k)
	}
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	if err := own.m.enter(op); err != nil {
		return err
	}
	defer own.m.leave()
	return d.failed(op, f(own.c))
}
