package runtime

// The storage that the views of a Managed share: two sides, and which of them is newer.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/concord-compute/concord/runtime/driver"
)

// dirty names the newer side. Both cannot be newer.
type dirty uint8

const (
	neither     dirty = 0
	hostDirty   dirty = 1
	deviceDirty dirty = 2
)

// sides is the storage of a Managed and its views. A call holds mu from its beginning to its
// end. The order of locks is in the comment of core.
type sides struct {
	core    *core
	id      uint64
	size    int64
	opt     ManagedOptions
	refs    atomic.Int64 // open handles, and calls under way
	windows atomic.Int64 // open Maps

	mu     sync.Mutex
	tag    string
	dev    *allocation // the device's side, or both if unified; nil before its first use
	pinned *allocation // the host's side if the device can access it, else nil
	host   []byte      // the host's side as the host sees it; nil before its first use
	dirty  dirty

	changed usage // the last change of the device's side; it has no event
	lent    bool  // DeviceSide returned a Buffer for writing: any stream may change the device's side
	moved   usage // the copy that uses pinned and may still be under way
	movedUp bool  // moved copies to the device
}

var sidesMade atomic.Uint64

func (c *core) newSides(size int64, opt ManagedOptions) (*sides, error) {
	st := &sides{core: c, id: sidesMade.Add(1), size: size, opt: opt}
	st.refs.Store(1)
	err := st.makeFirst()
	if opt.Mode == UnifiedMode && opt.AllowDowngrade && errors.Is(err, ErrUnsupported) {
		st.opt.Mode = AutomaticMode
		err = st.makeFirst()
	}
	if err != nil {
		return nil, err
	}
	return st, nil
}

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
	a, err := st.core.memory.alloc(st.size, driver.Unified, nil)
	if err != nil {
		return err
	}
	view, ok := st.core.hostBytes(a.mem)
	if !ok {
		a.unref()
		return fmt.Errorf("the host does not see unified memory: %w", ErrUnsupported)
	}
	st.dev, st.host = a, view[:st.size]
	return nil
}

func (st *sides) makeDevice() error {
	switch {
	case st.dev != nil:
		return nil
	case st.opt.Location == HostOnly:
		return ErrNoDeviceMemory
	}
	a, err := st.core.memory.alloc(st.size, driver.OnDevice, nil)
	if err != nil {
		return err
	}
	st.dev = a
	if st.tag != "" {
		st.core.memory.pool.SetTag(a.id, st.tag)
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
		return ErrNoHostMemory
	}
	if _, sees := st.core.drv.(driver.HostVisible); sees && st.opt.Location != HostOnly {
		a, err := st.core.memory.alloc(st.size, driver.Pinned, nil)
		if err == nil {
			if view, ok := st.core.hostBytes(a.mem); ok {
				st.pinned, st.host = a, view[:st.size]
				if st.tag != "" {
					st.core.memory.pool.SetTag(a.id, st.tag)
				}
				return nil
			}
			a.unref()
		} else if !scarce(err) {
			return err
		}
	}
	if err := checkHost(st.size); err != nil {
		return err
	}
	words := make([]uint64, max((st.size+7)/8, 1)) // aligned for every type
	st.host = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), st.size)
	return nil
}

// scarce reports whether plain memory can replace pinned memory after the error.
func scarce(err error) bool {
	return errors.Is(err, ErrOutOfMemory) || errors.Is(err, ErrUnsupported) || errors.Is(err, ErrBudget)
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
	st.forgetCopy()
	for _, a := range []*allocation{st.dev, st.pinned} {
		if a != nil {
			a.unref()
		}
	}
}

// begin locks the buffer for a call on an open device.
func (m *Managed) begin(op string) (*sides, error) {
	if m.none() {
		return nil, fmt.Errorf("%s: buffer is nil: %w", op, ErrInvalidArgument)
	}
	st := m.handle.st
	c := st.core
	if err := c.lost(); err != nil {
		return nil, err
	}
	if m.closed.Load() || !st.ref() {
		return nil, c.closedError(op)
	}
	if !c.enter() { // so that the memory is not freed while the host copies
		st.unref()
		return nil, c.closedError(op)
	}
	st.mu.Lock()
	return st, nil
}

// end releases what begin has locked.
func (st *sides) end() {
	st.mu.Unlock()
	st.core.leave()
	st.unref()
}

// access prepares the host's side: it is allocated, no copy uses it, and unless it is to be
// replaced completely it has the newest contents.
func (st *sides) access(ctx context.Context, how Access, whole bool) error {
	if st.opt.Mode == UnifiedMode {
		return st.dev.idle(ctx)
	}
	if err := st.makeHost(); err != nil {
		return err
	}
	if err := st.waitMoved(ctx); err != nil {
		return err
	}
	switch {
	case st.dirty != deviceDirty, how == ForOverwriting && whole:
		return nil
	case st.opt.Mode == AutomaticMode:
		return st.fetch(ctx)
	case how == ForReading && !st.opt.Strict:
		return nil
	}
	return fmt.Errorf("the device's side is newer, and copies are explicit: %w", ErrInvalidArgument)
}

// calm waits for the work that an access to the host's side would wait for, before that access
// locks the buffer: meanwhile other calls can queue more work with it. An Explicit buffer is used
// as it is, unless the caller copies.
func (m *Managed) calm(ctx context.Context, op string, copies bool) error {
	st, err := m.begin(op)
	if err != nil {
		return err
	}
	if st.opt.Mode == UnifiedMode {
		a := st.dev
		st.end()
		return a.idle(ctx)
	}
	var wait *Stream
	if st.dirty == deviceDirty && (copies || st.opt.Mode == AutomaticMode) {
		wait = st.writer()
	}
	st.end()
	if wait == nil {
		return nil
	}
	return wait.passed(ctx)
}
