package managed

// The storage that the views of a Buffer share: two sides, and which of them is newer.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// dirty names the newer side. Both cannot be newer.
type dirty uint8

const (
	neither     dirty = 0
	hostDirty   dirty = 1
	deviceDirty dirty = 2
)

// sides is the storage of a Buffer and its views. A call holds mu from its beginning to its
// end.
type sides struct {
	device  *runtime.Device
	id      uint64
	typ     runtime.Type
	n       int
	opt     Options
	refs    atomic.Int64 // open handles, and calls under way
	windows atomic.Int64 // open Maps

	mu     sync.Mutex
	tag    string
	dev    *runtime.Buffer // the device's side, or both if unified; nil before its first use
	pinned *runtime.Buffer // the host's side if the device can access it, else nil
	host   []byte          // the host's side as the host sees it; nil before its first use
	dirty  dirty

	changed *runtime.Stream // the stream of the last change of the device's side, or nil
	lent    bool            // DeviceSide returned a Buffer for writing: any stream may change the device's side
	mover   *runtime.Stream // the stream of the copy that uses pinned and may still be under way, or nil
	moved   runtime.Event   // the end of that copy
	movedUp bool            // it copies to the device
}

var sidesMade atomic.Uint64

func newSides(d *runtime.Device, t runtime.Type, n int, opt Options) (*sides, error) {
	st := &sides{device: d, id: sidesMade.Add(1), typ: t, n: n, opt: opt}
	st.refs.Store(1)
	err := st.makeFirst()
	if opt.Mode == UnifiedMode && opt.AllowDowngrade && errors.Is(err, runtime.ErrUnsupported) {
		st.opt.Mode = AutomaticMode
		err = st.makeFirst()
	}
	if err != nil {
		return nil, err
	}
	return st, nil
}

// size returns the bytes of one side.
func (st *sides) size() int64 { return int64(st.n) * int64(st.typ.Size()) }

// makeFirst allocates the side that is preferred.
func (st *sides) makeFirst() error {
	switch {
	case st.opt.Mode == UnifiedMode:
		return st.makeBoth()
	case st.opt.Location == HostPreferred, st.opt.Location == HostOnly:
		return st.makeHost()
	}
	return st.makeDevice()
}

// makeBoth allocates one memory for both sides.
func (st *sides) makeBoth() error {
	b, err := st.device.AllocKind(runtime.Unified, st.typ, st.n)
	if err != nil {
		return err
	}
	view, err := runtime.HostBytes(b)
	if err != nil {
		b.Close()
		return fmt.Errorf("the host does not see unified memory: %w", runtime.ErrUnsupported)
	}
	st.dev, st.host = b, view
	return nil
}

func (st *sides) makeDevice() (err error) {
	switch {
	case st.dev != nil:
		return nil
	case st.opt.Location == HostOnly:
		return driver.ErrNoDeviceMemory
	}
	if st.dev, err = st.device.Alloc(st.typ, st.n); err != nil {
		return err
	}
	st.dev.BelongsTo(st.pinned)
	if st.tag != "" {
		st.dev.SetTag(st.tag)
	}
	return nil
}

// makeHost allocates pinned memory, from and to which the device copies without a wait of the host,
// and plain memory where there is none.
func (st *sides) makeHost() error {
	switch {
	case st.host != nil:
		return nil
	case st.opt.Location == DeviceOnly:
		return driver.ErrNoHostMemory
	}
	if _, sees := st.device.Driver().(driver.HostVisible); sees && st.opt.Location != HostOnly {
		b, err := st.device.AllocKind(runtime.Pinned, st.typ, st.n)
		if err == nil {
			if view, err := runtime.HostBytes(b); err == nil {
				st.pinned, st.host = b, view
				b.BelongsTo(st.dev)
				if st.tag != "" {
					b.SetTag(st.tag)
				}
				return nil
			}
			b.Close()
		} else if !scarce(err) {
			return err
		}
	}
	if _, total, known := mempool.SystemMemory(); known && st.size() > total {
		return fmt.Errorf("the machine has %s: %w", driver.FormatBytes(total), runtime.ErrTooLarge)
	}
	words := make([]uint64, max((st.size()+7)/8, 1)) // aligned for every type
	st.host = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), st.size())
	return nil
}

// scarce reports whether plain memory can replace pinned memory after the error.
func scarce(err error) bool {
	return errors.Is(err, runtime.ErrOutOfMemory) || errors.Is(err, runtime.ErrUnsupported) ||
		errors.Is(err, runtime.ErrBudget)
}

// ref keeps the sides for the length of a call. It fails once the last handle is
// closed.
func (st *sides) ref() bool {
	for {
		n := st.refs.Load()
		if n <= 0 {
			return false
		}
		if st.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// unref gives up both sides with the last reference; no call holds the lock then.
func (st *sides) unref() {
	if st.refs.Add(-1) != 0 {
		return
	}
	_ = st.moved.Close()
	st.dev.Close()
	st.pinned.Close()
}

// begin locks the buffer for a call on an open device.
func (m *Buffer) begin(op string) (*sides, error) {
	if m.none() {
		return nil, fmt.Errorf("%s: buffer is nil: %w", op, runtime.ErrInvalidArgument)
	}
	st := m.handle.st
	if err := st.device.Enter(op); err != nil { // so that the memory is not freed while the host copies
		return nil, err
	}
	if m.closed.Load() || !st.ref() {
		st.device.Leave()
		return nil, opError(st.device, op, runtime.ErrClosed)
	}
	st.mu.Lock()
	return st, nil
}

// end releases what begin has locked.
func (st *sides) end() {
	st.mu.Unlock()
	st.device.Leave()
	st.unref()
}

// access prepares the host's side: it is allocated, no copy uses it, and unless it is to be
// replaced completely it has the newest contents.
func (st *sides) access(ctx context.Context, how runtime.Access, whole bool) error {
	if st.opt.Mode == UnifiedMode {
		return st.dev.Sync(ctx)
	}
	if err := st.makeHost(); err != nil {
		return err
	}
	if err := st.waitMoved(ctx); err != nil {
		return err
	}
	switch {
	case st.dirty != deviceDirty, how == runtime.ForOverwriting && whole:
		return nil
	case st.opt.Mode == AutomaticMode:
		return st.fetch(ctx)
	case how == runtime.ForReading && !st.opt.Strict:
		return nil
	}
	return fmt.Errorf("the device's side is newer, and copies are explicit: %w", runtime.ErrInvalidArgument)
}

// calm waits for the work that an access to the host's side would wait for, before that access
// locks the buffer: meanwhile other calls can queue more work with it. An Explicit buffer is used
// as it is, unless the caller copies.
func (m *Buffer) calm(ctx context.Context, op string, copies bool) error {
	st, err := m.begin(op)
	if err != nil {
		return err
	}
	dev := st.dev
	wait := st.opt.Mode == UnifiedMode || st.dirty == deviceDirty && (copies || st.opt.Mode == AutomaticMode)
	st.end()
	if !wait {
		return nil
	}
	return dev.Sync(ctx)
}
