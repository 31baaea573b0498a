package cpu

// One opened device: cpu:0 or cpu:reference.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// device is an opened device: the processor and memory of the machine. Two opened devices share no state.
type device struct {
	id        string
	reference bool
	threads   int
	simd      *simdSet // nil if there are no vector kernels
	info      driver.Info
	memory    memory
	scratch   scratch
	workers   workers

	ctx       context.Context // done when the device is being closed
	stop      context.CancelFunc
	cancelled int32 // 1 when the device is being closed, for running C code; set atomically

	mu      sync.Mutex
	streams map[*stream]struct{}
	closed  atomic.Bool
}

var (
	_ driver.Device        = (*device)(nil)
	_ driver.Compiler      = (*device)(nil)
	_ driver.Natives       = (*device)(nil)
	_ driver.HostVisible   = (*device)(nil)
	_ driver.HostWrapper   = (*device)(nil)
	_ driver.PeerCopier    = (*device)(nil)
	_ driver.MultiplyAdder = (*device)(nil)
	_ kernels.Ranker       = (*device)(nil)
	_ kernels.CodeRanker   = (*device)(nil)
)

func newDevice(info driver.Info, threads int, reference bool) *device {
	d := &device{id: info.ID, reference: reference, threads: threads, info: info, streams: map[*stream]struct{}{}}
	d.memory.total = info.TotalMemory
	d.workers.limit = max(threads, 1)
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d
}

func (d *device) opError(op string, err error) error {
	return &driver.OpError{Backend: "cpu", Device: d.id, Op: op, Err: err}
}

// Info implements driver.Device.
func (d *device) Info() driver.Info {
	info := d.info
	info.FreeMemory, info.FreeMemoryKnown = freeMemory()
	return info
}

// Alloc implements driver.Device. All kinds of memory are the same here.
func (d *device) Alloc(n int64, kind driver.MemoryKind) (driver.Memory, error) {
	if d.closed.Load() {
		return driver.Memory{}, d.opError("alloc", driver.ErrClosed)
	}
	m, err := d.memory.alloc(n)
	if err != nil {
		return m, d.opError("alloc "+driver.FormatBytes(n), err)
	}
	m.Kind = kind
	return m, nil
}

// Free implements driver.Device.
func (d *device) Free(m driver.Memory) error {
	if d.closed.Load() {
		return nil // Close has freed it
	}
	if err := d.memory.free(m); err != nil {
		return d.opError("free", err)
	}
	return nil
}

// HostBytes implements driver.HostVisible: all memory here is the host's.
func (d *device) HostBytes(m driver.Memory) ([]byte, bool) {
	b, err := d.memory.bytes(m)
	return b, err == nil && len(b) > 0
}

// WrapHost implements driver.HostWrapper.
func (d *device) WrapHost(memory []byte, writable bool) (driver.Memory, error) {
	const op = "wrap memory"
	if d.closed.Load() {
		return driver.Memory{}, d.opError(op, driver.ErrClosed)
	}
	m, err := d.memory.wrap(memory, writable)
	if err != nil {
		return m, d.opError(op, err)
	}
	return m, nil
}

// CanCopyFrom implements driver.PeerCopier: from what the host sees of another device's memory.
func (d *device) CanCopyFrom(peer driver.Device) (can, direct bool) {
	_, can = peer.(driver.HostVisible)
	return can, can
}

// CopyFrom implements driver.PeerCopier.
func (d *device) CopyFrom(on driver.Stream, dst driver.Memory, peer driver.Device, src driver.Memory) error {
	const op = "copy from a peer"
	s, ok := on.(*stream)
	if !ok || s.device != d {
		return d.opError(op, fmt.Errorf("stream of another device: %w", driver.ErrInvalidArgument))
	}
	var from []byte
	if seen, ok := peer.(driver.HostVisible); ok {
		from, _ = seen.HostBytes(src)
	}
	if int64(len(from)) != src.Size {
		return d.opError(op, fmt.Errorf("the host does not see the memory: %w", driver.ErrUnsupported))
	}
	return s.copy(dst, from)
}

// NewStream implements driver.Device.
func (d *device) NewStream() (driver.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return nil, d.opError("stream", driver.ErrClosed)
	}
	s := newStream(d)
	d.streams[s] = struct{}{}
	return s, nil
}

func (d *device) forget(s *stream) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.streams, s)
}

// Native implements driver.Natives with the vector kernels, the families' natives and the registered
// Go functions; on cpu:reference with the float64 references alone.
func (d *device) Native(u *source.Unit, name string) (driver.Kernel, bool) {
	f, ok := d.find(u, name)
	if !ok {
		return nil, false
	}
	return &kernel{
		info: driver.KernelInfo{Name: name, Implementation: f.implementation, Native: true, MaxGroup: maxGroup,
			GroupMultiple: 1},
		device: d,
		unit:   u,
		params: unitParams(u, name),
		run:    f.run,
	}, true
}

// Abandon implements driver.Abandoner: running launches end between two groups or ranges, and the others never run.
func (d *device) Abandon() {
	d.closed.Store(true)
	atomic.StoreInt32(&d.cancelled, 1)
	d.stop()
}

// Close implements driver.Device. Streams that are still open are stopped: their
// running launches end between two groups or ranges, the others never run.
func (d *device) Close() error {
	d.mu.Lock()
	if d.closed.Swap(true) {
		d.mu.Unlock()
		return nil
	}
	open := make([]*stream, 0, len(d.streams))
	for s := range d.streams {
		open = append(open, s)
	}
	d.mu.Unlock()
	atomic.StoreInt32(&d.cancelled, 1)
	d.stop()
	for _, s := range open {
		_ = s.Close() // its error says that the work was stopped, which the caller requested
	}
	if err := errors.Join(d.memory.freeAll(), d.scratch.free()); err != nil {
		return d.opError("close", fmt.Errorf("memory: %w", err))
	}
	return nil
}
