package runtime

// Device memory and who still needs it: handles that are open, calls under way,
// work that is queued. Memory is freed when the last of them is gone, by a call
// on its device, never by the garbage collector's thread.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// allocation is one piece of memory from the driver, shared by a buffer and its
// views.
type allocation struct {
	core *core
	mem  driver.Memory
	id   mempool.ID   // in the device's pool
	refs atomic.Int64 // open buffers and views, graphs, and calls that are using it
	dead atomic.Bool  // freed by the device's Close
	last atomic.Pointer[Stream]

	home    *Stream      // in whose order the memory comes, or nil
	ready   driver.Event // in home: the memory is there
	ordered bool         // it goes in that order as well, by the driver

	mu   sync.Mutex
	used []*Stream // streams that were given work with it, of other devices as well
}

// ref keeps the memory for the length of a call. It fails once the last handle
// is closed.
func (a *allocation) ref() bool {
	for {
		n := a.refs.Load()
		if n <= 0 || a.dead.Load() {
			return false
		}
		if a.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (a *allocation) unref() {
	if a.refs.Add(-1) == 0 && !a.dead.Load() {
		a.core.free(a)
	}
}

// usedBy notes that work on a stream uses the memory, and lets the stream wait for
// memory that comes in the order of another. The caller holds a ref and the stream.
func (a *allocation) usedBy(s *Stream) error {
	if a.last.Load() == s {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	known := slices.Contains(a.used, s)
	if a.ready != nil && !known && s != a.home && s.core == a.core { // other devices' streams come after a Sync
		if err := s.drv.Wait(a.ready); err != nil {
			return err
		}
	}
	a.last.Store(s)
	if !known {
		a.used = slices.DeleteFunc(a.used, func(have *Stream) bool { return have.gone.Load() && !have.busy() })
		a.used = append(a.used, s)
	}
	return nil
}

// deferredFree is memory that queued work may still use.
type deferredFree struct {
	mem  driver.Memory
	id   mempool.ID
	uses []use
	home *Stream // whose driver frees it in its order, or nil
}

// use is the last work on one stream that may use some memory.
type use struct {
	stream *Stream
	seq    uint64       // the stream's count of that work
	event  driver.Event // nil: the stream took none
}

// done reports whether the work is over: a Sync or Close of the stream has seen it, the
// event tells, or the device is lost. An error of the event tells nothing: the driver
// may have refused to answer while the work runs on.
func (u use) done() bool {
	if u.stream.finished.Load() >= u.seq || u.stream.core.lostError() != nil {
		return true
	}
	if u.event == nil {
		return false
	}
	done, err := u.event.Done()
	return done && err == nil
}

// wait waits for the work, and reports whether it is over.
func (u use) wait() bool {
	if u.event == nil {
		return u.done()
	}
	return u.event.Wait(context.Background()) == nil || u.done() // an error belongs to the stream, which reports it
}

// alloc gets memory from the pool, in the order of a stream if there is one.
func (c *core) alloc(n int64, kind driver.MemoryKind, home *Stream) (*allocation, error) {
	op := func() string { return "alloc " + driver.FormatBytes(n) }
	if err := c.checkSize(n, kind); err != nil {
		return nil, c.error(op(), err)
	}
	if !c.enter() {
		return nil, c.ended(op())
	}
	defer c.guests.Done()
	c.drain()
	if c.lostError() != nil { // the pool may have memory of a device that is gone
		return nil, c.ended(op())
	}
	a, err := c.get(n, kind, home)
	if err != nil {
		_ = c.noticed(err)
		if errors.Is(err, ErrOutOfMemory) {
			err = fmt.Errorf("%w\nfree on the device: %s", err, c.freeText())
		}
		return nil, c.named(op(), err)
	}
	if err := c.prepare(a, home); err != nil {
		return nil, errors.Join(c.named(op(), err), c.unget(a, home))
	}
	a.refs.Store(1)
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.live[a] = struct{}{}
		c.stats.Live += n
		c.stats.LiveBuffers++
		c.stats.Allocations++
		c.stats.Peak = max(c.stats.Peak, c.stats.Live)
	}
	c.mu.Unlock()
	if closed {
		return nil, errors.Join(c.ended(op()), c.putBack(a))
	}
	if c.session.cfg.Debug >= 2 { // asked here, so that the arguments of the message cost nothing
		c.session.debug(2, "allocated", "device", c.info.ID, "bytes", n)
	}
	return a, nil
}

// named puts device and operation before an error that has none.
func (c *core) named(op string, err error) error {
	var told *OpError
	if err == nil || errors.As(err, &told) {
		return err
	}
	return c.error(op, err)
}

// checkSize refuses what can never fit.
func (c *core) checkSize(n int64, kind driver.MemoryKind) error {
	if kind == driver.Pinned {
		return checkHost(n)
	}
	if m := c.info.MaxAllocation; m > 0 && n > m {
		return fmt.Errorf("largest allocation is %s: %w", driver.FormatBytes(m), ErrTooLarge)
	}
	if m := c.info.TotalMemory; m > 0 && n > m {
		return fmt.Errorf("the device has %s: %w", driver.FormatBytes(m), ErrTooLarge)
	}
	return nil
}

func (c *core) freeText() string {
	info := c.drv.Info()
	if !info.FreeMemoryKnown {
		return "unknown"
	}
	return driver.FormatBytes(info.FreeMemory)
}

// free gives back memory whose last handle is closed. Where one stream may still use
// it, the pool knows what that means; else it waits here until the work is done.
func (c *core) free(a *allocation) {
	c.mu.Lock()
	if c.closed || a.dead.Load() { // close gives it back
		c.mu.Unlock()
		return
	}
	c.guests.Add(1) // from here on close would not find it
	defer c.guests.Done()
	delete(c.live, a)
	c.stats.Live -= a.mem.Size
	c.stats.LiveBuffers--
	c.mu.Unlock()
	if a.ready != nil {
		_ = a.ready.Close() // who waits for it has been told
		a.ready = nil       // or close, if it has to, would close it again
	}
	var busy []*Stream
	for _, s := range a.users() {
		if !(a.ordered && s == a.home) && s.busy() {
			busy = append(busy, s)
		}
	}
	busy = c.spoil(a, busy)
	switch {
	case a.ordered || len(busy) > 1 || len(busy) == 1 && busy[0].core != c:
		c.postpone(a, busy)
	case len(busy) == 1:
		c.freed(c.pool.Put(a.id, busy[0].lane, busy[0].queued.Load()))
		if c.session.cfg.NoMemoryPool {
			c.pool.Settle() // nobody else looks soon whether the driver can have it
		}
	default:
		c.freed(c.pool.Put(a.id, nil, 0))
	}
	c.drain()
}

// freed counts memory that was given back.
func (c *core) freed(err error) {
	if err != nil {
		c.session.debug(1, "free failed", "device", c.info.ID, "error", err)
	}
	c.mu.Lock()
	c.stats.Frees++
	c.mu.Unlock()
}

// postpone leaves memory to be given back when all its uses are done.
func (c *core) postpone(a *allocation, busy []*Stream) {
	d := deferredFree{mem: a.mem, id: a.id}
	if a.ordered {
		d.home = a.home
	}
	for _, s := range busy {
		if u, still := s.lastUse(); still {
			d.uses = append(d.uses, u)
		}
	}
	c.mu.Lock()
	if c.closed {
		c.live[a] = struct{}{} // close gives it back
		c.mu.Unlock()
		closeEvents(d.uses)
		return
	}
	c.stats.Deferred += a.mem.Size
	c.deferred = append(c.deferred, d)
	c.mu.Unlock()
}

// drain frees what is forgotten or closed and no longer in use. It never waits.
func (c *core) drain() {
	c.lostMu.Lock()
	lost := c.lost
	c.lost = nil
	c.lostMu.Unlock()
	for _, a := range lost {
		c.mu.Lock()
		c.stats.Forgotten++
		c.mu.Unlock()
		a.unref()
	}
	if c.capturing.Load() > 0 {
		return // not every driver can free while it records
	}
	if c.settling.TryLock() { // else someone is at it
		c.settle(false)
		c.settling.Unlock()
	}
}

// drainWaiting frees everything that is closed, waiting for the work that uses it,
// unless a driver records meanwhile.
func (c *core) drainWaiting() {
	c.drain()
	if c.capturing.Load() > 0 && !c.isClosed() {
		return // as drain does
	}
	c.settling.Lock() // and waits for who is at it: what they free is still counted
	defer c.settling.Unlock()
	c.settle(true)
}

// ready reports whether nothing uses the memory any more, after waiting for that if
// it may. What a stream that failed was given counts as used until that is closed.
func (d *deferredFree) ready(wait bool) bool {
	for _, u := range d.uses {
		if !u.done() && !(wait && u.wait()) { // done also where a stream of another device is closed by now
			return false
		}
	}
	return true
}

// settle frees the deferred memory whose uses are all done, or all of it after
// waiting. The caller holds c.settling.
func (c *core) settle(wait bool) {
	c.mu.Lock()
	waiting := c.deferred
	c.deferred = nil
	c.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	var keep []deferredFree
	var freed, bytes int64
	for _, d := range waiting {
		if !d.ready(wait) && !(wait && c.isClosed()) { // with the device everything goes
			keep = append(keep, d)
			continue
		}
		given, err := c.give(&d, wait)
		if err != nil {
			c.session.debug(1, "free failed", "device", c.info.ID, "error", err)
		}
		if !given {
			keep = append(keep, d)
			continue
		}
		closeEvents(d.uses)
		freed++
		bytes += d.mem.Size
	}
	c.mu.Lock()
	c.deferred = append(c.deferred, keep...)
	c.stats.Frees += freed
	c.stats.Deferred -= bytes
	c.mu.Unlock()
}

func closeEvents(uses []use) {
	for _, u := range uses {
		if u.event != nil {
			_ = u.event.Close() // an event that is only waited for has nothing to report
		}
	}
}
