package runtime

// Device memory and its users: open handles, calls under way and queued work. Memory is freed
// when the last of them is gone, by a call on its device, never by the garbage collector's thread.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// memory is the device memory for buffers: of open ones, of ones that were closed while queued
// work uses them, and memory that is kept for later ones.
type memory struct {
	core     *core
	pool     *mempool.Pool
	watched  atomic.Bool // Watch of Device.Memory has set a function
	staging  staging
	settling sync.Mutex // held while deferred memory is freed, so that no two calls do it at once

	mu        sync.Mutex
	live      map[*allocation]struct{}
	deferred  []deferredFree
	forgotten []*allocation // of buffers that were never closed; found by the garbage collector
	stats     Stats
	failed    []error // errors of the driver from frees since close began
	upkeep    *time.Timer
	endTrace  func() // of Config.MemoryTrace, or nil
}

// accounts returns the part of Stats that concerns memory.
func (m *memory) accounts() Stats {
	m.drain()
	pool, staging := m.pool.Stats(), m.staging.stats()
	m.mu.Lock()
	defer m.mu.Unlock()
	stats := m.stats
	stats.Memory, stats.Staging = pool, staging
	stats.Deferred += pool.Waiting
	if m.core.isAbandoned() {
		stats.Leaked = pool.Reserved + staging.Bytes
	}
	return stats
}

// close gives everything back to the driver, once nothing uses it, and returns the driver's
// errors from that and from frees since the device's close began.
func (m *memory) close() (errs []error) {
	m.mu.Lock()
	live := m.live
	m.live = nil
	m.mu.Unlock()
	for a := range live {
		a.dead.Store(true)
		a.leaveOthers()
		errs = append(errs, m.putBack(a))
	}
	errs = append(errs, m.staging.close(m.core.drv))
	m.pool.Trim(0)
	m.mu.Lock()
	errs = append(errs, m.failed...)
	m.mu.Unlock()
	if m.endTrace != nil {
		m.endTrace()
	}
	_ = m.pool.Close() // only calls under way still hold live memory, and give it back
	return errs
}

// allocation is one piece of memory from the driver, shared by a buffer and its
// views.
type allocation struct {
	core *core
	mem  driver.Memory
	id   mempool.ID   // in the device's pool
	refs atomic.Int64 // open buffers and views, graphs, and calls that use it
	dead atomic.Bool  // freed by the device's Close
	// belongs: to an object that another buffer stands for when forgotten ones are counted
	belongs atomic.Bool
	last    atomic.Pointer[Stream]

	home    *Stream      // the stream in whose order the memory is allocated, or nil
	ready   driver.Event // an event of home after which the memory can be used
	ordered bool         // the driver frees it in that order as well
	foreign *foreign     // memory that the program owns; else nil

	mu   sync.Mutex
	used []*Stream // streams that were given work with it, also of other devices
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
		a.core.memory.free(a)
	}
}

// usedBy notes that work on a stream uses the memory. If the memory is allocated in the order of
// another stream, s first waits for it. The caller holds a ref and the stream.
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

// address returns the memory that a launch passes for a part of the allocation: the part, or, if that is empty, which
// drivers do not know, some bytes beside it.
func (a *allocation) address(m driver.Memory) driver.Memory {
	if m.Size == 0 {
		m.Size = min(leastBytes, a.mem.Size)
		m.Offset = min(m.Offset, a.mem.Offset+a.mem.Size-m.Size) &^ (leastBytes - 1)
		m.Offset = max(m.Offset, a.mem.Offset)
	}
	return m
}

// deferredFree is memory that queued work may still use.
type deferredFree struct {
	mem  driver.Memory
	id   mempool.ID
	uses []usage
	home *Stream // the stream in whose order the driver frees it, or nil

	foreign *foreign
}

// usage is the last work on one stream that may use some memory.
type usage struct {
	stream *Stream
	seq    uint64       // the stream's count of that work
	event  driver.Event // nil: none was recorded
}

// done reports whether the work is over: a Sync or Close of the stream has seen it end, the event
// was reached, or the device is lost. An error of the event decides nothing: the driver may have
// refused to answer while the work runs on.
func (u usage) done() bool {
	if u.stream.finished.Load() >= u.seq || u.stream.core.lost() != nil {
		return true
	}
	if u.event == nil {
		return false
	}
	done, err := u.event.Done()
	return done && err == nil
}

// wait waits for the work, and reports whether it is over.
func (u usage) wait() bool {
	if u.event == nil {
		return u.done()
	}
	return u.event.Wait(context.Background()) == nil || u.done() // an error belongs to the stream, which reports it
}

// alloc gets memory from the pool, in the order of a stream if there is one.
func (m *memory) alloc(n int64, kind driver.MemoryKind, home *Stream) (*allocation, error) {
	if n == 0 {
		n = leastBytes
	}
	op := func() string { return "alloc " + driver.FormatBytes(n) }
	if err := m.checkSize(n, kind); err != nil {
		return nil, m.core.error(op(), err)
	}
	if !m.core.enter() {
		return nil, m.core.closedError(op())
	}
	defer m.core.leave()
	m.drain()
	if m.core.lost() != nil { // the pool may hold memory of a device that is gone
		return nil, m.core.closedError(op())
	}
	a, err := m.get(n, kind, home)
	if err != nil {
		_ = m.core.noticed(err)
		if errors.Is(err, ErrOutOfMemory) {
			err = fmt.Errorf("%w\nfree on the device: %s", err, m.freeText())
		}
		return nil, m.core.named(op(), err)
	}
	if err := m.fillNew(a, home); err != nil {
		return nil, errors.Join(m.core.named(op(), err), m.unget(a, home))
	}
	if m.core.isClosed() { // close waits for this call
		return nil, errors.Join(m.core.closedError(op()), m.putBack(a))
	}
	a.refs.Store(1)
	m.mu.Lock()
	m.live[a] = struct{}{}
	m.stats.Live += n
	m.stats.LiveBuffers++
	m.stats.Allocations++
	m.stats.Peak = max(m.stats.Peak, m.stats.Live)
	m.mu.Unlock()
	if m.core.session.cfg.Debug >= 2 { // checked here, so that the message's arguments cost nothing when it is not logged
		m.core.session.debug(2, "allocated", "device", m.core.info.ID, "bytes", n)
	}
	return a, nil
}

// checkSize refuses sizes that can never fit.
func (m *memory) checkSize(n int64, kind driver.MemoryKind) error {
	if kind == driver.Pinned {
		return checkHost(n)
	}
	if most := m.core.info.MaxAllocation; most > 0 && n > most {
		return fmt.Errorf("largest allocation is %s: %w", driver.FormatBytes(most), ErrTooLarge)
	}
	if most := m.core.info.TotalMemory; most > 0 && n > most {
		return fmt.Errorf("the device has %s: %w", driver.FormatBytes(most), ErrTooLarge)
	}
	return nil
}

func (m *memory) freeText() string {
	info := m.core.drv.Info()
	if !info.FreeMemoryKnown {
		return "unknown"
	}
	return driver.FormatBytes(info.FreeMemory)
}

// free gives back memory whose last handle is closed. If at most one stream may still use it, the
// pool reuses it in that stream's order; otherwise it is kept here until the work is done.
func (m *memory) free(a *allocation) {
	if a.dead.Load() || !m.core.enter() { // close gives it back
		return
	}
	defer m.core.leave()
	m.mu.Lock()
	delete(m.live, a)
	if a.foreign != nil {
		m.stats.Wrapped -= a.mem.Size
	} else {
		m.stats.Live -= a.mem.Size
		m.stats.LiveBuffers--
	}
	m.mu.Unlock()
	if a.ready != nil {
		_ = a.ready.Close() // the streams that need it have queued their wait
		a.ready = nil       // so that close does not close it again
	}
	var busy []*Stream
	for _, s := range a.users() {
		if !(a.ordered && s == a.home) && s.busy() {
			busy = append(busy, s)
		}
	}
	busy = m.spoil(a, busy)
	switch {
	case a.ordered || len(busy) > 1 || len(busy) == 1 && (a.foreign != nil || busy[0].core != m.core):
		m.postpone(a, busy)
	case a.foreign != nil:
		m.logFree(a.foreign.end(m.core, a.mem))
	case len(busy) == 1:
		m.freed(m.pool.Put(a.id, busy[0].lane, busy[0].queued.Load()))
		if m.core.session.cfg.NoMemoryPool {
			m.pool.Settle() // without a pool no later call checks soon whether the driver can have it
		}
	default:
		m.freed(m.pool.Put(a.id, nil, 0))
	}
	m.drain()
}

func (m *memory) logFree(err error) {
	if err != nil {
		m.core.session.debug(1, "free failed", "device", m.core.info.ID, "error", err)
	}
}

// freed counts memory that was given back.
func (m *memory) freed(err error) {
	m.logFree(err)
	m.mu.Lock()
	m.stats.Frees++
	m.mu.Unlock()
}

// postpone keeps memory to be given back when all its uses are done.
func (m *memory) postpone(a *allocation, busy []*Stream) {
	d := deferredFree{mem: a.mem, id: a.id, foreign: a.foreign}
	if a.ordered {
		d.home = a.home
	}
	for _, s := range busy {
		if u, still := s.lastUse(); still {
			d.uses = append(d.uses, u)
		}
	}
	if m.core.isClosed() {
		closeEvents(d.uses)
		m.mu.Lock()
		m.live[a] = struct{}{} // close, which waits for this call, gives it back
		m.mu.Unlock()
		return
	}
	m.mu.Lock()
	m.stats.Deferred += a.mem.Size
	m.deferred = append(m.deferred, d)
	m.mu.Unlock()
}

// drain frees memory that is no longer in use and whose handles were forgotten or closed. It
// never waits.
func (m *memory) drain() {
	m.mu.Lock()
	forgotten := m.forgotten
	m.forgotten = nil
	for _, a := range forgotten {
		if !a.belongs.Load() {
			m.stats.Forgotten++
		}
	}
	m.mu.Unlock()
	for _, held := range forgotten {
		held.unref()
	}
	if m.core.streams.capturing.Load() > 0 || m.core.isAbandoned() {
		return // not every driver can free while it records
	}
	if m.settling.TryLock() { // otherwise another call is settling
		m.settle(false)
		m.settling.Unlock()
	}
}

// drainWaiting frees everything that is closed, waiting for the work that uses it,
// unless a driver records meanwhile.
func (m *memory) drainWaiting() {
	m.drain()
	if m.core.streams.capturing.Load() > 0 && !m.core.isClosed() || m.core.isAbandoned() {
		return // as drain does
	}
	m.settling.Lock() // waits for a call that is settling, so that what it frees is counted
	defer m.settling.Unlock()
	m.settle(true)
}

// unused reports whether nothing uses the memory any more; with wait, it waits for that first. Work
// that was given to a stream that failed counts as a use until the stream is closed.
func (d *deferredFree) unused(wait bool) bool {
	for _, u := range d.uses {
		if !u.done() && !(wait && u.wait()) { // done is also true where another device's stream has been closed
			return false
		}
	}
	return true
}

// settle frees the deferred memory whose uses are all done, or all of it after
// waiting. The caller holds settling.
func (m *memory) settle(wait bool) {
	m.mu.Lock()
	waiting := m.deferred
	m.deferred = nil
	m.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	var keep []deferredFree
	var freed, bytes int64
	for _, d := range waiting {
		if !d.unused(wait) && !(wait && m.core.isClosed()) { // closing the device frees everything
			keep = append(keep, d)
			continue
		}
		given, err := m.give(&d, wait)
		m.logFree(err)
		if !given {
			keep = append(keep, d)
			continue
		}
		closeEvents(d.uses)
		if d.foreign == nil {
			freed++
		}
		bytes += d.mem.Size
	}
	m.mu.Lock()
	m.deferred = append(m.deferred, keep...)
	m.stats.Frees += freed
	m.stats.Deferred -= bytes
	m.mu.Unlock()
}

func closeEvents(uses []usage) {
	for _, u := range uses {
		if u.event != nil && !u.stream.core.isAbandoned() {
			_ = u.event.Close() // an event that is only waited for has nothing to report
		}
	}
}
