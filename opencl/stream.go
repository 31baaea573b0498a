//go:build cgo && opencl && (linux || darwin)

package opencl

// Streams: in-order command queues.

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/go-gl/cl/v1.2/cl"

	"github.com/concord-compute/concord/runtime/driver"
)

// stream is a queue with the names of its open commands.
//
// A failure of queued work is found when a later call checks the ring of commands in progress. It
// is then kept in err, and every call but Close returns it.
type stream struct {
	d       *device
	timed   bool // the queue records times
	wrapped bool // the queue belongs to the program

	err atomic.Pointer[error]

	mu       sync.Mutex // held while a command is queued or the ring is checked
	q        queue
	closed   bool
	first    uint64           // number of the first command of the call that holds mu
	failedAt uint64           // number of the command that failed, with err
	ops      [ringSize]string // names of the commands in the ring, for messages
	args     []driver.Arg     // scratch for launches with views
	stamped  *event           // the last event that gets its time from the host's clock
	timing   *timed           // the operation that is queued now, if its times are wanted
	times    []*timed         // operations whose times nobody has fetched, oldest first
	reading  reading          // of both clocks, at the newest of them that is over
}

var _ driver.Stream = (*stream)(nil)

func (d *device) NewStream() (driver.Stream, error) {
	const op = "new stream"
	if err := d.open(op); err != nil {
		return nil, err
	}
	var code cl.ErrorCode
	q := cl.CreateCommandQueue(d.context, d.id, cl.QUEUE_PROFILING_ENABLE, &code)
	if code != cl.SUCCESS {
		return nil, d.failed(op, code, driver.ErrOutOfMemory)
	}
	return d.streamOf(q, &stream{d: d, timed: true})
}

// streamOf takes over a reference to a command queue.
func (d *device) streamOf(q cl.CommandQueue, s *stream) (driver.Stream, error) {
	held, ok := newQueue(q)
	if !ok {
		cl.ReleaseCommandQueue(q)
		return nil, opError(d.info.ID, "new stream", codeHostMemory, nil)
	}
	s.q = held
	return s, nil
}

func (s *stream) Err() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	// Checking the ring is cheap; on some drivers it waits for the end of the command that runs,
	// but for no other work. If another call holds the lock, it checks the ring itself.
	if s.mu.TryLock() {
		if !s.closed {
			s.q.settle()
			s.look()
		}
		s.mu.Unlock()
		if err := s.err.Load(); err != nil {
			return *err
		}
	}
	return s.d.lost()
}

// begin locks the stream for queueing and makes room for a few commands.
func (s *stream) begin(op string) error {
	s.mu.Lock()
	err := s.usable(op)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	s.q.room()
	s.first = s.q.next()
	return nil
}

// usable returns why the stream refuses work. The caller holds s.mu.
func (s *stream) usable(op string) error {
	if s.closed {
		return s.d.errorf(op, driver.ErrClosed, "stream")
	}
	if err := s.err.Load(); err != nil {
		return *err
	}
	return s.d.lost()
}

// look sets the stream's error if the ring has found a failure. The caller holds s.mu.
func (s *stream) look() {
	at, code := s.q.failure()
	if code == cl.SUCCESS || s.err.Load() != nil {
		return
	}
	s.fail(at, s.ops[at%ringSize], code)
}

// fail makes the stream fail. The caller holds s.mu.
//
// Unlike the codes of calls, the codes of queued commands are not mapped to sentinels, except a
// lack of memory: the command failed while it ran, which is ErrLaunch.
func (s *stream) fail(at uint64, op string, code cl.ErrorCode) {
	is := driver.ErrLaunch
	if codes[code].is == driver.ErrOutOfMemory {
		is = driver.ErrOutOfMemory
	}
	var err error = &driver.OpError{Backend: name, Device: s.d.info.ID, Op: op, Code: int(code), Detail: codeName(code),
		Err: is}
	if gone(code) {
		s.d.lose(err)
		err = s.d.lost()
	}
	s.failedAt = at
	s.err.Store(&err)
}

// gone reports whether a code from a valid queue means that the whole context is gone.
func gone(code cl.ErrorCode) bool {
	return code == codeNVIDIAFault || code == cl.INVALID_COMMAND_QUEUE
}

// end unlocks the stream after op. code is the driver's result.
func (s *stream) end(op string, code cl.ErrorCode) error {
	defer s.mu.Unlock()
	n := s.first
	if s.timing != nil && n < s.q.next() {
		s.timing.queued(s.q, n)
	}
	for ; n < s.q.next(); n++ {
		s.ops[n%ringSize] = op
	}
	if code != cl.SUCCESS {
		s.q.settle() // the refusal may be the result of an earlier failure
	}
	s.look()
	if gone(code) && s.err.Load() == nil {
		s.fail(n, op, code)
	}
	if err := s.err.Load(); err != nil {
		return *err
	}
	return s.d.failed(op, code, driver.ErrLaunch)
}

// reach waits until everything queued so far is done. In an in-order queue it suffices to wait for
// the newest command.
func (s *stream) reach(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if err := s.usable(op); err != nil {
		s.mu.Unlock()
		return err
	}
	idle := s.q.settle()
	s.look()
	if err := s.usable(op); err != nil || idle && !s.wrapped {
		s.mu.Unlock()
		return err
	}
	// clFinish is not used: ctx could not end it, and rusticl's does not wait for commands that
	// were already flushed.
	e, ok := s.q.at(s.q.next() - 1)
	code := cl.SUCCESS
	if !ok || s.wrapped { // the program may have queued commands that are not in the ring
		if ok {
			e.release()
		}
		e, code = s.q.mark()
	}
	s.mu.Unlock()
	if code != cl.SUCCESS {
		return s.reached(op, code)
	}
	code, err := wait(ctx, e)
	if err != nil {
		return err
	}
	return s.reached(op, code)
}

// reached updates the ring after a wait that ended with code.
func (s *stream) reached(op string, code cl.ErrorCode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.d.errorf(op, driver.ErrClosed, "stream")
	}
	first := s.q.next()
	s.q.settle()
	s.look()
	if code != cl.SUCCESS && s.err.Load() == nil { // the driver reports that a command failed, but not which one
		s.fail(first, "work queued before "+op, code)
	}
	return s.usable(op)
}

func (s *stream) Sync(ctx context.Context) error { return s.reach(ctx, "sync") }

// Upload copies small data to staging memory and returns. For more data it waits for the queue. If
// ctx can be done it waits for an event first, so that ctx can end everything but the copy itself.
func (s *stream) Upload(ctx context.Context, dst driver.Memory, src []byte) error {
	const op = "upload"
	if len(src) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.begin(op); err != nil {
		return err
	}
	if s.q.stageable(len(src)) {
		return s.end(op, s.q.write(dst, src, true, nil))
	}
	t := s.timing
	s.mu.Unlock()
	if ctx.Done() != nil {
		if err := s.reach(ctx, op); err != nil {
			return err
		}
	}
	return s.copied(op, t, s.q.write(dst, src, false, t.waited()))
}

func (s *stream) Download(ctx context.Context, dst []byte, src driver.Memory) error {
	const op = "download"
	if len(dst) == 0 {
		return nil
	}
	if err := s.begin(op); err != nil {
		return err
	}
	t := s.timing
	s.mu.Unlock()
	if ctx.Done() != nil {
		if err := s.reach(ctx, op); err != nil {
			return err
		}
	}
	return s.copied(op, t, s.q.read(src, dst, t.waited()))
}

// copied ends a blocking copy that returned code, and that is part of t, if that is not nil.
func (s *stream) copied(op string, t *timed, code cl.ErrorCode) error {
	s.mu.Lock()
	if t != nil && code == cl.SUCCESS {
		t.copied()
	}
	s.first = s.q.next()
	return s.end(op, code)
}

func (s *stream) Copy(dst, src driver.Memory) error {
	const op = "copy"
	if err := s.begin(op); err != nil {
		return err
	}
	return s.end(op, s.q.copy(dst, src))
}

func (s *stream) Fill(dst driver.Memory, pattern []byte) error {
	const op = "fill"
	if k := len(pattern); k != 1 && k != 2 && k != 4 && k != 8 || dst.Size%int64(k) != 0 {
		return s.d.errorf(op, driver.ErrInvalidArgument, "%d bytes with a pattern of %d", dst.Size, k)
	}
	if err := s.begin(op); err != nil {
		return err
	}
	return s.end(op, s.q.fill(dst, pattern))
}

func (s *stream) Wait(e driver.Event) error {
	const op = "wait for an event"
	ev, ok := e.(*event)
	if !ok {
		return s.d.errorf(op, driver.ErrInvalidArgument, "event is a %T", e)
	}
	ev.mu.RLock()
	defer ev.mu.RUnlock()
	if ev.closed {
		return s.d.errorf(op, driver.ErrClosed, "event")
	}
	if err := s.begin(op); err != nil {
		return err
	}
	return s.end(op, s.q.after(ev.e))
}

func (s *stream) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	// Calls that still wait hold a reference to an event and do not use the queue. A blocking copy
	// uses it, but package runtime never closes a stream during one.
	s.q.free() // other calls on the stream have reported its failure, if there was one
	return nil
}
