package runtime

// Streams: in-order queues of copies, launches and events.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// Stream is an in-order queue of work on one device. Methods that queue return at
// once; those that wait take a context, and return its error when it is done
// first, while the queued work goes on. It is safe for concurrent use: each call
// is queued as a whole.
//
// When work that was queued fails, the stream has failed: every later call
// returns the same error, which names the work, until Close.
type Stream struct {
	core     *core
	drv      driver.Stream
	known    driver.KnownFailure // drv, if its Err asks the driver; else nil
	launches atomic.Int64
	queued   atomic.Uint64 // work queued so far; changed with mu held
	finished atomic.Uint64 // work up to here is known to be done
	gone     atomic.Bool   // closed, or being closed: its work may still run
	over     chan struct{} // closed when it is closed and its work is done
	fallback error         // why its device stands in for another
	priority driver.Priority
	capture  *capture      // what is recorded, of a stream that Capture made; else nil
	lane     *mempool.Lane // the stream as the device's pool knows it
	work     progress      // what it knows it by

	mu     sync.Mutex // held while something is queued, which is what makes order
	closed bool
	spec   driver.Launch // reused by every launch, so that none allocates
	held   []*allocation // memory in use by the call under way
}

func (c *core) newStream(p driver.Priority) (*Stream, error) {
	if !c.enter() {
		return nil, c.ended("new stream")
	}
	defer c.guests.Done()
	drv, err := c.driverStream(p)
	if err != nil {
		return nil, c.noticed(err)
	}
	return c.register(&Stream{core: c, drv: drv, priority: p})
}

// driverStream gets a stream of the driver's, with a priority where it has any.
func (c *core) driverStream(p driver.Priority) (driver.Stream, error) {
	if has, ok := c.drv.(driver.PriorityStreams); ok && p != driver.Normal {
		return has.NewPriorityStream(p)
	}
	return c.drv.NewStream()
}

// register makes s one of the streams that the device closes.
func (c *core) register(s *Stream) (*Stream, error) {
	s.work.s, s.over = s, make(chan struct{})
	s.known, _ = s.drv.(driver.KnownFailure)
	s.lane = c.pool.NewLane(&s.work)
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.streams[s] = struct{}{}
	}
	c.mu.Unlock()
	if closed {
		s.lane.Close()
		return nil, errors.Join(c.ended("new stream"), s.drv.Close())
	}
	return s, nil
}

// none reports a Stream that is nil or of no device.
func (s *Stream) none() bool { return s == nil || s.core == nil }

// lock takes the stream for queueing, or says why it cannot be used.
func (s *Stream) lock(op string) error {
	if s.none() {
		return fmt.Errorf("%s: stream is nil: %w", op, ErrInvalidArgument)
	}
	s.mu.Lock()
	var err error
	switch {
	case s.closed:
		err = s.core.ended(op)
	case s.core.lostError() != nil:
		err = s.core.lostError()
	default:
		err = s.core.noticed(s.failed())
	}
	if err != nil {
		s.mu.Unlock()
	}
	return err
}

// failed returns the error that made the stream fail, as far as the driver need not be
// asked for it: a call costs no more than itself, and is told if it comes too late.
func (s *Stream) failed() error {
	if s.known != nil {
		return s.known.KnownErr()
	}
	return s.drv.Err()
}

// use checks a buffer and keeps its memory for the call under way, until unlock.
func (s *Stream) use(b *Buffer) error {
	switch {
	case b.none():
		return fmt.Errorf("buffer is nil: %w", ErrInvalidArgument)
	case b.a.core != s.core:
		return fmt.Errorf("buffer belongs to %s: %w", b.a.core.info.ID, ErrInvalidArgument)
	case b.closed.Load():
		return fmt.Errorf("buffer: %w", ErrClosed)
	}
	return s.hold(b.a)
}

// hold keeps memory for the call under way, until unlock.
func (s *Stream) hold(a *allocation) error {
	if !a.ref() {
		return fmt.Errorf("buffer: %w", ErrClosed)
	}
	if s.capture == nil { // else nothing runs yet
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

// named puts device and operation before an error of ours; a driver's has them.
func (s *Stream) named(op string, err error) error {
	if _, told := err.(*OpError); told || err == nil {
		return err
	}
	return s.core.error(op, err)
}

// queue runs one call that queues something, with the stream locked. The lock is
// given back even if a driver panics.
func (s *Stream) queue(op string, call func() error) (err error) {
	if err := s.lock(op); err != nil {
		return err
	}
	queued := true // what a driver refused half way may have queued something
	defer func() { s.unlock(queued) }()
	return s.core.noticed(s.named(op, call()))
}

// live refuses what a stream that records cannot do: what waits, or what is told
// to the host.
func (s *Stream) live(op string) error {
	if s.none() || s.capture == nil {
		return nil
	}
	return s.core.error(op, fmt.Errorf("the stream is recording a graph: %w", ErrInvalidArgument))
}

// Record returns an event at this point of the stream, with timing. The caller
// closes it.
func (s *Stream) Record() (*Event, error) {
	if err := s.live("record"); err != nil {
		return nil, err
	}
	var drv driver.Event
	err := s.queue("record", func() (err error) {
		drv, err = s.drv.Record(true)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Event{core: s.core, drv: drv, timed: true}, nil
}

// Wait makes later work of this stream wait for an event of the same device. It
// does not wait itself.
func (s *Stream) Wait(e *Event) error {
	if err := s.live("wait"); err != nil {
		return err
	}
	drv, err := e.get("wait")
	if err != nil {
		return err
	}
	return s.queue("wait", func() error {
		if e.core != s.core {
			return fmt.Errorf("event of %s: %w", e.core.info.ID, ErrInvalidArgument)
		}
		return s.drv.Wait(drv)
	})
}

// Sync waits until everything queued so far is done, and returns the error of
// what failed.
func (s *Stream) Sync(ctx context.Context) error {
	if err := checkContext(ctx, "sync"); err != nil {
		return err
	}
	if s.none() {
		return fmt.Errorf("sync: stream is nil: %w", ErrInvalidArgument)
	}
	if err := s.live("sync"); err != nil {
		return err
	}
	err := s.sync(ctx)
	s.core.drain()
	s.core.pool.Settle()
	return err
}

func (s *Stream) sync(ctx context.Context) error {
	if s.capture != nil {
		return nil // nothing of it runs
	}
	s.mu.Lock()
	n, closed := s.queued.Load(), s.closed
	s.mu.Unlock()
	if closed {
		return s.core.ended("sync")
	}
	if err := s.drv.Sync(ctx); err != nil {
		return s.core.noticed(err)
	}
	s.finish(n)
	return nil
}

// passed is sync for who has no part in the stream: one that is being closed is waited
// for as well.
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

// busy reports whether work is under way, as far as is known without asking.
func (s *Stream) busy() bool { return s.finished.Load() < s.queued.Load() }

// lastUse returns a use that covers everything queued so far, and whether anything
// is under way at all.
func (s *Stream) lastUse() (use, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.busy() { // being closed, it is busy until the driver has waited
		return use{s, s.queued.Load(), nil}, s.busy()
	}
	e, err := s.drv.Record(false)
	if err != nil { // what it was given before may run on: until the stream is closed
		e = nil
	}
	return use{s, s.queued.Load(), e}, true
}

// Err returns the error that made the stream fail, or nil. It never waits.
func (s *Stream) Err() error {
	if s.none() {
		return nil
	}
	if err := s.core.lostError(); err != nil {
		return err
	}
	return s.core.noticed(s.drv.Err())
}

// Device returns the name of the stream's device.
func (s *Stream) Device() string { return s.core.info.ID }

// Driver returns the backend's own stream, for driver.NativeHandles.
func (s *Stream) Driver() driver.Stream { return s.drv }

// Close waits for the work in flight and releases the stream. Closing twice does
// nothing. The device's own stream is closed with the device.
func (s *Stream) Close() error {
	if s.none() || s == s.core.stream {
		return nil
	}
	return s.close()
}

func (s *Stream) close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.gone.Store(true) // who is told that it is closed looks here whether that is why
	n := s.queued.Load()
	s.mu.Unlock()
	var err error
	if s.capture != nil {
		err = s.stopRecording()
	}
	err = errors.Join(err, s.drv.Close())
	s.finish(n) // the driver has waited for it
	close(s.over)
	s.lane.Close()
	s.work.close()
	c := s.core
	c.mu.Lock()
	delete(c.streams, s)
	c.stats.Launches += s.launches.Load()
	c.mu.Unlock()
	c.drain()
	return err
}

// Run launches a kernel, waits for it, and returns the record of where and how
// long it ran. It is Launch between two events.
func (s *Stream) Run(ctx context.Context, k *Kernel, g Grid, args ...any) (Record, error) {
	if err := checkContext(ctx, "run"); err != nil {
		return Record{}, err
	}
	start, err := s.Record()
	if err != nil {
		return Record{}, err
	}
	defer start.Close()
	ran, err := s.launch(k, g, args)
	if err != nil {
		return Record{}, err
	}
	end, err := s.Record()
	if err != nil {
		return Record{}, err
	}
	defer end.Close()
	if err := end.Wait(ctx); err != nil {
		return Record{}, err
	}
	took, err := end.Elapsed(start)
	if err != nil {
		return Record{}, err
	}
	return s.record(k, ran, took).after(s.fallback), nil
}

// record is that of a launch of k, which ran as ran.
func (s *Stream) record(k *Kernel, ran driver.Kernel, took time.Duration) Record {
	info := &s.core.info
	return Record{
		Backend: info.Backend, DeviceIndex: s.core.index(), DeviceName: info.Name,
		GPUExecuted: info.IsGPU(), KernelID: k.id(), DeviceTimeNs: took.Nanoseconds(),
		Implementation: ran.Info().Implementation,
	}
}
