package runtime

// Streams: in-order queues of copies, launches and events.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// Stream is an in-order queue of work on one device. Methods that queue work return at once.
// Methods that wait take a context; if it is done first they return its error, and the queued work
// goes on. A Stream is safe for concurrent use: each call is queued as a whole.
//
// When queued work fails, the stream has failed: every later call until Reset or Close returns the same
// error, which names the work.
type Stream struct {
	core     *core
	drv      driver.Stream // changed by Reset, with mu held; present returns it to callers that do not hold mu
	shown    atomic.Pointer[driver.Stream]
	undone   atomic.Uint64 // work up to here may have failed before a Reset
	launches atomic.Int64
	queued   atomic.Uint64 // work queued so far; changed with mu held
	finished atomic.Uint64 // work up to here is known to be done
	gone     atomic.Bool   // closed, or being closed: its work may still run
	over     chan struct{} // closed when it is closed and its work is done
	fallback error         // why its device stands in for another
	priority driver.Priority
	capture  *recording    // the recording, if Capture made the stream; else nil
	lane     *mempool.Lane // the stream in the device's pool
	number   int64         // among the device's, from 1 on
	notes    notes         // for observers
	work     progress      // the stream's progress, for lane

	mu     sync.Mutex // held while work is queued, which gives the work its order
	closed bool
	spec   driver.Launch // reused by every launch, so that none allocates
	types  []Type        // of the elements of spec's arguments; NoType for those without
	values [][]byte      // likewise, of workOf
	held   []*allocation // memory in use by the call under way
	filler [8]byte       // of the fill under way
}

// streams are the queues and the recorded work of one device.
type streams struct {
	core      *core
	own       *Stream      // Device.Stream
	capturing atomic.Int32 // captures by the driver under way
	numbered  atomic.Int64 // streams made so far

	making sync.Mutex // taken before all locks of core's list but Session.mu
	reader *Stream    // for copies to other devices; nil before the first one; guarded by making

	mu       sync.Mutex
	open     map[*Stream]struct{}
	graphs   map[*Graph]struct{}
	launches int64 // of closed streams
}

func (set *streams) list() []*Stream {
	set.mu.Lock()
	defer set.mu.Unlock()
	return slices.Collect(maps.Keys(set.open))
}

// launched returns how many launches there were on all streams.
func (set *streams) launched() int64 {
	set.mu.Lock()
	defer set.mu.Unlock()
	n := set.launches
	for s := range set.open {
		n += s.launches.Load()
	}
	return n
}

// dropGraphs closes the graphs when their device is closed.
func (set *streams) dropGraphs() (errs []error) {
	set.mu.Lock()
	graphs := set.graphs
	set.graphs = nil
	set.mu.Unlock()
	for g := range graphs {
		errs = append(errs, g.drop())
	}
	return errs
}

// new opens a stream.
func (set *streams) new(p driver.Priority) (*Stream, error) {
	if !set.core.enter() {
		return nil, set.core.closedError("new stream")
	}
	defer set.core.leave()
	drv, err := set.driverStream(p)
	if err != nil {
		return nil, set.core.noticed(err)
	}
	if set.core.isClosed() { // close waits for this call
		return nil, errors.Join(set.core.closedError("new stream"), drv.Close())
	}
	return set.register(&Stream{core: set.core, drv: drv, priority: p, number: set.numbered.Add(1)}), nil
}

// driverStream returns a stream of the driver, with the priority if the device has priorities.
func (set *streams) driverStream(p driver.Priority) (s driver.Stream, err error) {
	if has, ok := set.core.drv.(driver.PriorityStreams); ok && p != driver.Normal {
		s, err = has.NewPriorityStream(p)
	} else {
		s, err = set.core.drv.NewStream()
	}
	if err == nil && s == nil {
		err = fmt.Errorf("the backend returned neither a stream nor an error: %w", ErrUnsupported)
	}
	return s, set.core.named("new stream", err)
}

// register adds s to the streams that the device closes. The caller has entered the device.
func (set *streams) register(s *Stream) *Stream {
	s.work.s, s.over = s, make(chan struct{})
	drv := s.drv
	s.shown.Store(&drv)
	s.lane = set.core.memory.pool.NewLane(&s.work)
	set.mu.Lock()
	set.open[s] = struct{}{}
	set.mu.Unlock()
	return s
}

// none reports whether the Stream is nil or its zero value.
func (s *Stream) none() bool { return s == nil || s.core == nil }

// lock takes the stream for queueing, or returns the reason why it cannot be used.
func (s *Stream) lock(op string) error {
	if s.none() {
		return fmt.Errorf("%s: stream is nil: %w", op, ErrInvalidArgument)
	}
	if s.core.isAbandoned() { // a call that does not return may hold the stream
		return s.core.lost()
	}
	s.mu.Lock()
	var err error
	switch {
	case s.closed:
		err = s.core.closedError(op)
	case s.core.lost() != nil:
		err = s.core.lost()
	default:
		err = s.core.noticed(s.failed())
	}
	if err != nil {
		s.mu.Unlock()
	}
	return err
}

// failed returns the error that made the stream fail, if it can be had without a call to the
// driver: a queueing call should cost nothing extra, and gets a later error from the driver.
func (s *Stream) failed() error {
	drv := s.present()
	if known, ok := drv.(driver.KnownFailure); ok {
		return known.KnownErr()
	}
	return drv.Err()
}

// present returns the driver's stream.
func (s *Stream) present() driver.Stream { return *s.shown.Load() }

// hold checks a buffer and keeps its memory for the call under way, until unlock.
func (s *Stream) hold(b *Buffer) error {
	switch {
	case b.none():
		return fmt.Errorf("buffer is nil: %w", ErrInvalidArgument)
	case b.a.core != s.core:
		return fmt.Errorf("buffer belongs to %s: %w", b.a.core.info.ID, ErrInvalidArgument)
	case b.isClosed():
		return fmt.Errorf("buffer: %w", ErrClosed)
	}
	return s.holdMemory(b.a)
}

// holdMemory keeps memory for the call under way, until unlock.
func (s *Stream) holdMemory(a *allocation) error {
	if !a.ref() {
		return fmt.Errorf("buffer: %w", ErrClosed)
	}
	if s.capture == nil { // nothing of a recording runs yet
		if err := a.usedBy(s); err != nil {
			a.unref()
			return err
		}
	}
	s.held = append(s.held, a)
	return nil
}

// unlock ends the call under way. Dropping the last reference to memory can queue
// an event on this very stream, so it happens after the lock is given back.
func (s *Stream) unlock(queued bool) {
	switch {
	case s.capture != nil && queued:
		s.capture.keep(s.held) // until the graph is closed
	case queued:
		s.queued.Add(1)
	}
	var few [8]*allocation
	drop := append(few[:0], s.held...)
	clear(s.held)
	s.held = s.held[:0]
	s.mu.Unlock()
	for _, a := range drop {
		a.unref()
	}
}

// queue runs one call that queues something, with the stream locked. The lock is
// given back even if a driver panics.
func (s *Stream) queue(op string, call func() error) (err error) {
	if err := s.lock(op); err != nil {
		return err
	}
	queued := true // a driver that returns an error may have queued a part
	defer func() { s.unlock(queued) }()
	return s.core.noticed(s.core.named(op, call()))
}

// live refuses a nil stream, and operations that a recording stream cannot do: those that wait or return results
// to the host.
func (s *Stream) live(op string) error {
	switch {
	case s.none():
		return fmt.Errorf("%s: stream is nil: %w", op, ErrInvalidArgument)
	case s.capture != nil:
		return s.core.error(op, fmt.Errorf("the stream is recording a graph: %w", ErrInvalidArgument))
	}
	return nil
}

// ready is live for an operation that takes a context.
func (s *Stream) ready(ctx context.Context, op string) error {
	if err := checkContext(ctx, op); err != nil {
		return err
	}
	return s.live(op)
}

// Record returns an event at this point of the stream, with timing. The caller
// closes it.
func (s *Stream) Record() (*Event, error) {
	e := new(Event)
	if err := s.RecordIn(e); err != nil {
		return nil, err
	}
	return e, nil
}

// RecordIn is Record with an Event of the caller: a zero one, or one that was recorded before, on any
// stream, which then stands for this point. Streams that were told to wait for the earlier point still
// wait for that one; a call of Wait under way may return for either. If RecordIn fails, e is
// unchanged. Events that are used again and again cost no allocation on the CPU.
func (s *Stream) RecordIn(e *Event) error {
	const op = "record"
	if err := s.live(op); err != nil {
		return err
	}
	if e == nil {
		return fmt.Errorf("%s: event is nil: %w", op, ErrInvalidArgument)
	}
	return s.queue(op, func() error { return e.record(s) })
}

// Wait makes later work of this stream wait for an event of the same device. It
// does not wait itself.
func (s *Stream) Wait(e *Event) error {
	if err := s.live("wait"); err != nil {
		return err
	}
	if _, _, err := e.get("wait"); err != nil {
		return err
	}
	return s.queue("wait", func() error {
		e.mu.Lock() // RecordIn may close what the driver waits for; streams are locked before events there, too
		defer e.mu.Unlock()
		drv, c, err := e.present("wait")
		if err != nil {
			return err
		}
		if c != s.core {
			return fmt.Errorf("event of %s: %w", c.info.ID, ErrInvalidArgument)
		}
		return s.drv.Wait(drv)
	})
}

// Sync waits until everything queued so far is done, and returns the error of work that failed.
func (s *Stream) Sync(ctx context.Context) error {
	if err := s.ready(ctx, "sync"); err != nil {
		return err
	}
	err := s.sync(ctx)
	s.core.memory.drain()
	s.core.memory.pool.Settle()
	return err
}

func (s *Stream) sync(ctx context.Context) error {
	if s.capture != nil {
		return nil // a recording has nothing to wait for
	}
	if s.core.isAbandoned() {
		return s.core.lost()
	}
	s.mu.Lock()
	n, closed, drv := s.queued.Load(), s.closed, s.drv
	s.mu.Unlock()
	if closed {
		return s.core.closedError("sync")
	}
	if !s.core.session.observed() {
		err := drv.Sync(ctx)
		if err == nil {
			s.finish(n)
		}
		return s.core.noticed(err)
	}
	busy, start := s.finished.Load() < n, driver.Now()
	err := drv.Sync(ctx)
	if err == nil {
		s.finish(n)
	}
	if busy {
		s.waited("sync", start, err)
	}
	s.notes.fetch(s, ended(ctx, err), true)
	return s.core.noticed(err)
}

// passed is sync for callers that do not own the stream: if it is being closed, passed waits for
// that instead of returning an error.
func (s *Stream) passed(ctx context.Context) error {
	err := s.sync(ctx)
	if err == nil || !s.gone.Load() {
		return err
	}
	select {
	case <-s.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finish notes that work up to n is done.
func (s *Stream) finish(n uint64) {
	for {
		have := s.finished.Load()
		if have >= n || s.finished.CompareAndSwap(have, n) {
			return
		}
	}
}

// busy reports whether work may be under way, without asking the driver.
func (s *Stream) busy() bool { return s.finished.Load() < s.queued.Load() }

// lastUse returns a usage that covers everything queued so far, and whether any work is under way.
func (s *Stream) lastUse() (usage, bool) {
	if s.core.isAbandoned() {
		return usage{s, s.queued.Load(), nil}, s.busy()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.busy() { // while Close runs it is busy until the driver has waited
		return usage{s, s.queued.Load(), nil}, s.busy()
	}
	e, err := s.drv.Record(false)
	if err != nil { // earlier work may run on until the stream is closed
		e = nil
	}
	return usage{s, s.queued.Load(), e}, true
}

// Err returns the error that made the stream fail, or nil. It never waits.
func (s *Stream) Err() error {
	if s.none() {
		return nil
	}
	if err := s.core.lost(); err != nil {
		return err
	}
	return s.core.noticed(s.present().Err())
}

// Reset makes a stream usable again whose queued work failed, if the device is not lost: a kernel that divided by
// zero, one that accessed a bad address on a CPU. It waits for the work in flight, as Close does. Work that was queued
// behind the failed work is dropped, the contents of the buffers that it was to write are undefined, and events
// recorded behind it keep its error. On a stream that has not failed Reset does nothing; on one of a lost device it
// is ErrDeviceLost. The vendor's handle of the stream may change.
func (s *Stream) Reset() error {
	const op = "reset"
	if err := s.live(op); err != nil {
		return err
	}
	if !s.core.enter() {
		return s.core.closedError(op)
	}
	defer s.core.leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.core.closedError(op)
	}
	failed := s.core.noticed(s.drv.Err())
	if lost := s.core.lost(); lost != nil || failed == nil {
		return lost
	}
	drv, err := s.core.streams.driverStream(s.priority)
	if err != nil {
		return s.core.noticed(err)
	}
	_ = s.drv.Close() // it may say again why the stream failed; its times can still be fetched
	n := s.queued.Load()
	s.undone.Store(n)
	s.drv = drv
	s.shown.Store(&drv)
	s.finish(n)
	s.notes.fetch(s, failed, true)
	return nil
}

// RunsOn reports whether s is a stream of the device, whichever Device of it made s.
func (s *Stream) RunsOn(d *Device) bool { return s.core == d.core }

// Number is the stream's number among those of its device, by which profile.Event.Stream names it.
func (s *Stream) Number() int64 { return s.number }

// Driver returns the backend's own stream, for driver.NativeHandles.
func (s *Stream) Driver() driver.Stream { return s.present() }

// Close waits for the work in flight and releases the stream. Closing twice does
// nothing. The device's own stream is closed with the device.
func (s *Stream) Close() error {
	if s.none() || s == s.core.streams.own {
		return nil
	}
	return s.close()
}

func (s *Stream) close() error {
	if s.core.isAbandoned() {
		return nil
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.gone.Store(true) // for callers that are told that it is closed: see passed
	n := s.queued.Load()
	s.mu.Unlock()
	err := s.drv.Close()
	s.finish(n) // the driver has waited for it
	s.notes.fetch(s, cmp.Or(err, s.drv.Err()), true)
	close(s.over)
	s.lane.Close()
	s.work.close()
	set := &s.core.streams
	set.mu.Lock()
	delete(set.open, s)
	set.launches += s.launches.Load()
	set.mu.Unlock()
	s.core.memory.drain()
	return err
}

// Run launches a kernel between two events, waits for it, and returns where and how long it ran.
func (s *Stream) Run(ctx context.Context, k *Kernel, g Grid, args ...any) (Execution, error) {
	if err := checkContext(ctx, "run"); err != nil {
		return Execution{}, err
	}
	start, err := s.Record()
	if err != nil {
		return Execution{}, err
	}
	defer start.Close()
	ran, err := s.launch(k, g, args)
	if err != nil {
		return Execution{}, err
	}
	end, err := s.Record()
	if err != nil {
		return Execution{}, err
	}
	defer end.Close()
	if err := end.Wait(ctx); err != nil {
		return Execution{}, err
	}
	took, err := end.Elapsed(start)
	if err != nil {
		return Execution{}, err
	}
	return s.execution(k, ran, took).after(s.fallback), nil
}

// execution describes a launch of k that ran as the driver's kernel ran.
func (s *Stream) execution(k *Kernel, ran driver.Kernel, took time.Duration) Execution {
	info := &s.core.info
	return Execution{
		Backend: info.Backend, DeviceIndex: s.core.index(), DeviceName: info.Name,
		GPUExecuted: info.IsGPU(), KernelID: k.id, DeviceTimeNs: took.Nanoseconds(),
		Implementation: ran.Info().Implementation,
	}
}
