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
	launches atomic.Int64
	finished atomic.Uint64 // work up to here is known to be done
	gone     atomic.Bool   // closed
	fallback error         // why its device stands in for another

	mu     sync.Mutex // held while something is queued, which is what makes order
	queued uint64     // work queued so far
	closed bool
	spec   driver.Launch // reused by every launch, so that none allocates
	held   []*allocation // memory in use by the call under way
}

func (c *core) newStream() (*Stream, error) {
	if c.isClosed() {
		return nil, c.error("new stream", ErrClosed)
	}
	drv, err := c.drv.NewStream()
	if err != nil {
		return nil, err
	}
	s := &Stream{core: c, drv: drv}
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.streams[s] = struct{}{}
	}
	c.mu.Unlock()
	if closed {
		return nil, errors.Join(c.error("new stream", ErrClosed), drv.Close())
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
	if s.closed {
		s.mu.Unlock()
		return s.core.error(op, ErrClosed)
	}
	if err := s.drv.Err(); err != nil {
		s.mu.Unlock()
		return err
	}
	return nil
}

// use checks a buffer and keeps its memory for the call under way, until unlock.
func (s *Stream) use(b *Buffer) error {
	switch {
	case b.none():
		return fmt.Errorf("buffer is nil: %w", ErrInvalidArgument)
	case b.a.core != s.core:
		return fmt.Errorf("buffer belongs to %s: %w", b.a.core.info.ID, ErrInvalidArgument)
	case b.closed.Load() || !b.a.ref():
		return fmt.Errorf("buffer: %w", ErrClosed)
	}
	b.a.usedBy(s)
	s.held = append(s.held, b.a)
	return nil
}

// unlock ends the call under way. Dropping the last reference to memory can queue
// an event on this very stream, so it happens after the lock is given back.
func (s *Stream) unlock(queued bool) {
	if queued {
		s.queued++
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
	return s.named(op, call())
}

// stagedBytes is the size of a write that every backend copies aside at once. For
// more it waits for the work before, which Write does where ctx can end it.
const stagedBytes = 256 << 10

// Write copies bytes to a buffer from byte offset off on, after the work queued
// so far, and waits until data may be changed.
func (s *Stream) Write(ctx context.Context, b *Buffer, off int64, data []byte) error {
	const op = "write"
	if len(data) > stagedBytes {
		if err := s.Sync(ctx); err != nil {
			return err
		}
	}
	return s.queue(op, func() error {
		if err := s.use(b); err != nil {
			return err
		}
		if err := checkRange(b, off, int64(len(data))); err != nil || len(data) == 0 {
			return err
		}
		return s.drv.Upload(ctx, part(b.mem, off, int64(len(data))), data)
	})
}

// Read copies bytes from byte offset off of a buffer on, after the work queued so
// far, and waits for them. It does not keep others from queueing while it waits
// for that work.
func (s *Stream) Read(ctx context.Context, b *Buffer, off int64, data []byte) error {
	if err := s.Sync(ctx); err != nil {
		return err
	}
	return s.queue("read", func() error {
		if err := s.use(b); err != nil {
			return err
		}
		if err := checkRange(b, off, int64(len(data))); err != nil || len(data) == 0 {
			return err
		}
		return s.drv.Download(ctx, data, part(b.mem, off, int64(len(data))))
	})
}

// Copy queues a copy of the whole of src to the beginning of dst. The element
// types must agree. Parts are copied through views; ranges of one allocation that
// overlap are refused.
func (s *Stream) Copy(dst, src *Buffer) error {
	return s.queue("copy", func() error {
		if err := s.use(dst); err != nil {
			return err
		}
		if err := s.use(src); err != nil {
			return err
		}
		if err := checkCopy(dst, src); err != nil {
			return err
		}
		return s.drv.Copy(part(dst.mem, 0, src.mem.Size), src.mem)
	})
}

func checkCopy(dst, src *Buffer) error {
	if dst.typ != src.typ {
		return fmt.Errorf("%v to %v: %w", src.typ, dst.typ, ErrInvalidArgument)
	}
	if err := checkRange(dst, 0, src.mem.Size); err != nil {
		return err
	}
	d, f := dst.mem.Offset, src.mem.Offset
	if dst.a == src.a && d < f+src.mem.Size && f < d+src.mem.Size {
		return fmt.Errorf("ranges overlap: %w", ErrInvalidArgument)
	}
	return nil
}

// Fill queues setting every element of b to a value given as the bytes of one
// element. runtime.Fill takes a number instead.
func (s *Stream) Fill(b *Buffer, element []byte) error {
	return s.queue("fill", func() error {
		if err := s.use(b); err != nil {
			return err
		}
		if len(element) != b.typ.Size() {
			return fmt.Errorf("pattern of %d bytes for elements of %v: %w", len(element), b.typ, ErrInvalidArgument)
		}
		return s.drv.Fill(b.mem, element)
	})
}

// Fill queues setting every element of b to value.
func Fill[T Element](s *Stream, b *Buffer, value T) error {
	if err := sameType[T](b, "fill"); err != nil {
		return err
	}
	one := [1]T{value}
	return s.Fill(b, bytesOf(one[:]))
}

// Record returns an event at this point of the stream, with timing. The caller
// closes it.
func (s *Stream) Record() (*Event, error) {
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
	if s.none() {
		return fmt.Errorf("sync: stream is nil: %w", ErrInvalidArgument)
	}
	err := s.sync(ctx)
	s.core.drain()
	return err
}

func (s *Stream) sync(ctx context.Context) error {
	s.mu.Lock()
	n, closed := s.queued, s.closed
	s.mu.Unlock()
	if closed {
		return s.core.error("sync", ErrClosed)
	}
	if err := s.drv.Sync(ctx); err != nil {
		return err
	}
	s.finish(n)
	return nil
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

// lastUse returns a use that covers everything queued so far, and whether anything
// is under way at all.
func (s *Stream) lastUse() (use, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.finished.Load() >= s.queued {
		return use{}, false
	}
	e, err := s.drv.Record(false)
	if err != nil { // the stream failed: none of its work runs any more
		return use{}, false
	}
	return use{s, s.queued, e}, true
}

// Err returns the error that made the stream fail, or nil. It never waits.
func (s *Stream) Err() error {
	if s.none() {
		return nil
	}
	return s.drv.Err()
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
	n := s.queued
	s.mu.Unlock()
	s.gone.Store(true)
	err := s.drv.Close()
	s.finish(n) // the driver has waited for it
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
	start, err := s.Record()
	if err != nil {
		return Record{}, err
	}
	defer start.Close()
	if err := s.Launch(k, g, args...); err != nil {
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
	return s.record(k, took).after(s.fallback), nil
}

func (s *Stream) record(k *Kernel, took time.Duration) Record {
	info := &s.core.info
	return Record{
		Backend: info.Backend, DeviceIndex: info.Index, DeviceName: info.Name,
		GPUExecuted: info.IsGPU(), KernelID: k.id(), DeviceTimeNs: took.Nanoseconds(),
		Implementation: k.info.Implementation,
	}
}

func checkRange(b *Buffer, off, n int64) error {
	if off < 0 || off > b.mem.Size || n > b.mem.Size-off {
		return fmt.Errorf("bytes %d to %d of %d: %w", off, off+n, b.mem.Size, ErrBufferOverflow)
	}
	return nil
}

// part is n bytes of m from byte off on.
func part(m driver.Memory, off, n int64) driver.Memory {
	m.Offset += off
	m.Size = n
	return m
}
