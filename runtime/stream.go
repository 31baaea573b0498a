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

	mu     sync.Mutex // held while something is queued, which is what makes order
	queued uint64     // work queued so far
	closed bool
	spec   driver.Launch // reused by every launch, so that none allocates
	held   []*allocation // memory in use by the call under way
}

func (c *core) newStream() (*Stream, error) {
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

// lock takes the stream for queueing, or says why it cannot be used.
func (s *Stream) lock(op string) error {
	if s == nil {
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

// use checks a buffer and keeps its memory for the call under way. The caller
// holds s.mu and calls drop when it has unlocked it.
func (s *Stream) use(b *Buffer, op string) error {
	switch {
	case b == nil:
		return s.core.error(op, fmt.Errorf("buffer is nil: %w", ErrInvalidArgument))
	case b.a.core != s.core:
		return s.core.error(op, fmt.Errorf("buffer belongs to %s: %w", b.a.core.info.ID, ErrInvalidArgument))
	case b.closed.Load() || !b.a.ref():
		return s.core.error(op, fmt.Errorf("buffer: %w", ErrClosed))
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

// Write copies bytes to a buffer from byte offset off on, after the work queued
// so far, and waits until data may be changed.
func (s *Stream) Write(ctx context.Context, b *Buffer, off int64, data []byte) error {
	const op = "write"
	if err := s.lock(op); err != nil {
		return err
	}
	err := s.use(b, op)
	if err == nil {
		err = s.checkRange(op, b, off, int64(len(data)))
	}
	if err == nil && len(data) > 0 {
		err = s.drv.Upload(ctx, part(b.mem, off, int64(len(data))), data)
	}
	s.unlock(true)
	return err
}

// Read copies bytes from byte offset off of a buffer on, after the work queued so
// far, and waits for them. It does not keep others from queueing while it waits
// for that work.
func (s *Stream) Read(ctx context.Context, b *Buffer, off int64, data []byte) error {
	const op = "read"
	if err := s.Sync(ctx); err != nil {
		return err
	}
	if err := s.lock(op); err != nil {
		return err
	}
	err := s.use(b, op)
	if err == nil {
		err = s.checkRange(op, b, off, int64(len(data)))
	}
	if err == nil && len(data) > 0 {
		err = s.drv.Download(ctx, data, part(b.mem, off, int64(len(data))))
	}
	s.unlock(true)
	return err
}

// Copy queues a copy of the whole of src to the beginning of dst. The element
// types must agree. Parts are copied through views; ranges of one allocation that
// overlap are refused.
func (s *Stream) Copy(dst, src *Buffer) error {
	const op = "copy"
	if err := s.lock(op); err != nil {
		return err
	}
	err := s.use(dst, op)
	if err == nil {
		err = s.use(src, op)
	}
	if err == nil {
		err = s.checkCopy(op, dst, src)
	}
	if err == nil {
		err = s.drv.Copy(part(dst.mem, 0, src.mem.Size), src.mem)
	}
	s.unlock(err == nil)
	return err
}

func (s *Stream) checkCopy(op string, dst, src *Buffer) error {
	if dst.typ != src.typ {
		return s.core.error(op, fmt.Errorf("%v to %v: %w", src.typ, dst.typ, ErrInvalidArgument))
	}
	if err := s.checkRange(op, dst, 0, src.mem.Size); err != nil {
		return err
	}
	d, f := dst.mem.Offset, src.mem.Offset
	if dst.a == src.a && d < f+src.mem.Size && f < d+src.mem.Size {
		return s.core.error(op, fmt.Errorf("ranges overlap: %w", ErrInvalidArgument))
	}
	return nil
}

// Fill queues setting every element of b to a value given as the bytes of one
// element. runtime.Fill takes a number instead.
func (s *Stream) Fill(b *Buffer, element []byte) error {
	const op = "fill"
	if err := s.lock(op); err != nil {
		return err
	}
	err := s.use(b, op)
	if err == nil && len(element) != b.typ.Size() {
		err = s.core.error(op, fmt.Errorf("pattern of %d bytes for elements of %v: %w", len(element), b.typ, ErrInvalidArgument))
	}
	if err == nil {
		err = s.drv.Fill(b.mem, element)
	}
	s.unlock(err == nil)
	return err
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
	if err := s.lock("record"); err != nil {
		return nil, err
	}
	drv, err := s.drv.Record(true)
	s.unlock(err == nil)
	if err != nil {
		return nil, err
	}
	return &Event{core: s.core, drv: drv, timed: true}, nil
}

// Wait makes later work of this stream wait for an event of the same device. It
// does not wait itself.
func (s *Stream) Wait(e *Event) error {
	const op = "wait"
	drv, err := e.get(op)
	if err != nil {
		return err
	}
	if err := s.lock(op); err != nil {
		return err
	}
	if e.core != s.core {
		err = s.core.error(op, fmt.Errorf("event of %s: %w", e.core.info.ID, ErrInvalidArgument))
	} else {
		err = s.drv.Wait(drv)
	}
	s.unlock(err == nil)
	return err
}

// Sync waits until everything queued so far is done, and returns the error of
// what failed.
func (s *Stream) Sync(ctx context.Context) error {
	if s == nil {
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
	if err != nil { // the stream failed: wait for what still runs, then nothing does
		_ = s.drv.Sync(context.Background())
		return use{}, false
	}
	return use{s, s.queued, e}, true
}

// Err returns the error that made the stream fail, or nil. It never waits.
func (s *Stream) Err() error {
	if s == nil {
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
	if s == nil {
		return nil
	}
	if s == s.core.stream {
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
	s.mu.Unlock()
	err := s.drv.Close()
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
	return s.record(k, took), nil
}

func (s *Stream) record(k *Kernel, took time.Duration) Record {
	info := &s.core.info
	return Record{
		Backend: info.Backend, DeviceIndex: info.Index, DeviceName: info.Name,
		GPUExecuted: info.IsGPU(), KernelID: k.id(), DeviceTimeNs: took.Nanoseconds(),
		Implementation: k.info.Implementation,
	}
}

func (s *Stream) checkRange(op string, b *Buffer, off, n int64) error {
	if off < 0 || off > b.mem.Size || n > b.mem.Size-off {
		return s.core.error(op, fmt.Errorf("bytes %d to %d of %d: %w", off, off+n, b.mem.Size, ErrBufferOverflow))
	}
	return nil
}

// part is n bytes of m from byte off on.
func part(m driver.Memory, off, n int64) driver.Memory {
	m.Offset += off
	m.Size = n
	return m
}
