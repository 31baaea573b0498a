package cpu

// The in-order queue: the calls that put work into it. worker.go has the goroutine that does the work.

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// inlineBytes returns the size up to which an idle stream fills and copies at once.
func (w *workers) inlineBytes() int { return w.choose(inlineKiB) << 10 }

// stageBytes returns the size up to which an upload to a busy stream copies the data to other memory and returns; a
// larger upload blocks until its turn.
func (w *workers) stageBytes() int { return w.choose(stageKiB) << 10 }

// stream is a queue of operations and, while it is not empty, one goroutine that
// works on it. An idle stream costs no goroutine.
type stream struct {
	device *device
	drain  func() // s.work as a func value, so that starting it allocates nothing

	done    atomic.Uint64 // number of operations that are done or dropped
	waiting atomic.Int32  // len(waiters)
	failure atomic.Pointer[failure]

	mu       sync.Mutex
	pending  []op // accepted, but not yet taken by the worker
	spare    []op // the worker's last batch, emptied, to reuse its memory
	working  bool
	queued   uint64 // operations accepted
	waiters  []*waiter
	closed   bool
	reported bool     // a call has returned the failure
	tape     *tape    // what a capture has recorded so far; nil if none is under way
	timing   *timed   // the operation that is queued now, if its times are wanted
	fetched  []*timed // operations that were fetched, to be used again
	times    []*timed // operations whose times nobody has fetched, oldest first
}

var (
	_ driver.Stream     = (*stream)(nil)
	_ driver.Rerecorder = (*stream)(nil)
)

// failure is the error of a failed stream, and the number of the operation that failed.
type failure struct {
	err error
	at  uint64
}

// waiter is a goroutine that waits for done to reach seq.
type waiter struct {
	seq uint64
	ch  chan struct{} // holds one
}

var waiterPool = sync.Pool{New: func() any { return &waiter{ch: make(chan struct{}, 1)} }}

func newStream(d *device) *stream {
	s := &stream{device: d}
	s.drain = s.work
	return s
}

// refuse returns the reason why the stream takes no work, or nil. The caller holds mu.
func (s *stream) refuse() error {
	if s.closed {
		return s.opError("stream", driver.ErrClosed)
	}
	if f := s.failure.Load(); f != nil {
		s.reported = true
		return f.err
	}
	return nil
}

func (s *stream) opError(op string, err error) error {
	return &driver.OpError{Backend: "cpu", Device: s.device.id, Op: op, Err: err}
}

// ready reports whether the stream takes work and, if so, whether it is idle.
func (s *stream) ready() (idle bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.working && s.tape == nil, s.refuse()
}

// live is ready for operations that a capture cannot record.
func (s *stream) live(op string) (idle bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.refuse()
	if err == nil && s.tape != nil {
		err = s.opError(op, errRecording)
	}
	return !s.working, err
}

// push queues an operation, and starts a worker if none runs.
func (s *stream) push(o op) error {
	s.mu.Lock()
	if err := s.refuse(); err != nil {
		s.mu.Unlock()
		return err
	}
	if s.tape != nil {
		s.tape.ops = append(s.tape.ops, o)
		s.mu.Unlock()
		return nil
	}
	s.queued++
	if o.timed = s.timing; o.timed != nil {
		o.timed.left++
	}
	s.pending = append(s.pending, o)
	start := !s.working
	s.working = true
	s.mu.Unlock()
	if start {
		go s.drain()
	}
	return nil
}

// pushTape queues a launch of a graph, whose tape the caller keeps for the call.
func (s *stream) pushTape(t *tape) error {
	if _, err := s.live("launch graph"); err != nil {
		return err
	}
	t.uses.Add(1)
	err := s.push(op{kind: opTape, tape: t})
	if err != nil {
		t.release()
	}
	return err
}

// Upload implements driver.Stream.
func (s *stream) Upload(ctx context.Context, dst driver.Memory, src []byte) error {
	idle, err := s.live("upload")
	if err != nil {
		return err
	}
	to, err := s.device.memory.bytes(dst)
	if err != nil {
		return s.opError("upload "+driver.FormatBytes(int64(len(src))), err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !idle && len(src) <= s.device.workers.stageBytes() {
		stage := takeStage(len(src))
		copy(*stage, src)
		return s.push(op{kind: opCopy, dst: to, src: *stage, stage: stage})
	}
	if !idle {
		if err := s.Sync(ctx); err != nil {
			return err
		}
	}
	return s.here(func() error {
		copy(to, src)
		return nil
	})
}

// Download implements driver.Stream. It copies on the caller's goroutine, so that
// nothing writes to dst after a call that ctx ended.
func (s *stream) Download(ctx context.Context, dst []byte, src driver.Memory) error {
	if _, err := s.live("download"); err != nil {
		return err
	}
	from, err := s.device.memory.bytes(src)
	if err != nil {
		return s.opError("download "+driver.FormatBytes(int64(len(dst))), err)
	}
	if err := s.Sync(ctx); err != nil {
		return err
	}
	return s.here(func() error {
		copy(dst, from)
		return nil
	})
}

// Copy implements driver.Stream.
func (s *stream) Copy(dst, src driver.Memory) error {
	from, err := s.device.memory.bytes(src)
	if err != nil {
		return s.opError("copy", err)
	}
	return s.copy(dst, from)
}

// copy queues a copy from memory that stays until it is done.
func (s *stream) copy(dst driver.Memory, from []byte) error {
	idle, err := s.ready()
	if err != nil {
		return err
	}
	to, err := s.device.memory.bytes(dst)
	if err != nil {
		return s.opError("copy", err)
	}
	return s.soon(idle, op{kind: opCopy, dst: to, src: from})
}

// soon runs a short operation at once if the stream is idle, and queues any other.
func (s *stream) soon(idle bool, o op) error {
	if idle && len(o.dst) <= s.device.workers.inlineBytes() {
		return s.here(o.run)
	}
	return s.push(o)
}

// Fill implements driver.Stream.
func (s *stream) Fill(dst driver.Memory, pattern []byte) error {
	idle, err := s.ready()
	if err != nil {
		return err
	}
	to, err := s.device.memory.bytes(dst)
	if err != nil {
		return s.opError("fill", err)
	}
	o := op{kind: opFill, dst: to, size: uint8(len(pattern))}
	if len(pattern) == 0 || len(pattern) > len(o.pattern) {
		return s.opError("fill", fmt.Errorf("pattern of %d bytes: %w", len(pattern), driver.ErrInvalidArgument))
	}
	copy(o.pattern[:], pattern)
	return s.soon(idle, o)
}

// Launch implements driver.Stream.
func (s *stream) Launch(l *driver.Launch) error {
	k, ok := l.Kernel.(*kernel)
	if !ok || k.device != s.device {
		return s.opError("launch", fmt.Errorf("kernel of another device: %w", driver.ErrInvalidArgument))
	}
	p, err := newLaunch(s.device, k, l)
	if err != nil {
		return s.opError("launch "+k.info.Name, err)
	}
	if err := s.push(op{kind: opLaunch, launch: p}); err != nil {
		p.done()
		return err
	}
	return nil
}

// Record implements driver.Stream.
func (s *stream) Record(timing bool) (driver.Event, error) {
	e := &event{timing: timing}
	if err := s.record(e); err != nil {
		return nil, err
	}
	return e, nil
}

// Rerecord implements driver.Rerecorder.
func (s *stream) Rerecord(other driver.Event) error {
	e, ok := other.(*event)
	if !ok || e.where().stream.device != s.device {
		return s.opError("record", fmt.Errorf("event of another device: %w", driver.ErrInvalidArgument))
	}
	if e.closed.Load() {
		return s.opError("record", driver.ErrClosed)
	}
	return s.record(e)
}

func (s *stream) record(e *event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refuse(); err != nil {
		return err
	}
	if s.tape != nil {
		return s.opError("record", errRecording)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.timing && s.working {
		s.queued++
		s.pending = append(s.pending, op{kind: opRecord, event: e, at: point{s, s.queued}})
	} else {
		e.at = time.Since(epoch)
	}
	e.point = point{s, s.queued}
	return nil
}

// Wait implements driver.Stream. If the stream of the event has failed, this stream fails
// too, because the work that was to be done before its own was not done.
func (s *stream) Wait(other driver.Event) error {
	e, ok := other.(*event)
	if !ok || e.where().stream.device != s.device {
		return s.opError("wait", fmt.Errorf("event of another device: %w", driver.ErrInvalidArgument))
	}
	if _, err := s.live("wait"); err != nil {
		return err
	}
	if e.closed.Load() {
		return s.opError("wait", driver.ErrClosed)
	}
	at := e.where()
	if reached, err := at.reached(); at.stream == s || reached && err == nil {
		return nil // later work of s runs after it anyway
	}
	return s.push(op{kind: opWait, at: at})
}

// Sync implements driver.Stream.
func (s *stream) Sync(ctx context.Context) error {
	s.mu.Lock()
	seq, err := s.queued, s.refuse()
	if err == nil && s.tape != nil {
		err = s.opError("sync", errRecording)
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.await(ctx, seq); err != nil {
		return err
	}
	return s.Err()
}

// Err implements driver.Stream.
func (s *stream) Err() error {
	f := s.failure.Load()
	if f == nil {
		return nil
	}
	s.mu.Lock()
	s.reported = true
	s.mu.Unlock()
	return f.err
}

// Close implements driver.Stream. It returns the failure of the stream if no
// call has returned it before, so that no failure stays unreported.
func (s *stream) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	seq, t := s.queued, s.tape
	s.tape = nil
	s.mu.Unlock()
	if t != nil {
		t.release()
	}
	if err := s.await(context.Background(), seq); err != nil {
		return err
	}
	s.device.forget(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.failure.Load(); f != nil && !s.reported {
		return f.err
	}
	return nil
}
