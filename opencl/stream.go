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
// A failure of queued work is found when a later call looks at the queue's ring
// of open commands. It is then kept in err, and nothing but Close works any more.
type stream struct {
	d       *device
	timed   bool // the queue records times
	wrapped bool // the queue is the program's

	err atomic.Pointer[error]

	mu       sync.Mutex // held while a command is queued or the ring is looked at
	q        queue
	closed   bool
	failedAt uint64           // number of the command that failed, with err
	ops      [ringSize]string // what the open commands are, for messages
	args     []driver.Arg     // scratch for launches with views
	stamped  *event           // the last event that the host's clock stamps
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
	// Looking costs little and waits for no work but, on some drivers, the end of the
	// command that runs; whoever has the lock looks as well.
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

// begin takes the stream for queueing, with room for a few commands.
func (s *stream) begin(op string) error {
	s.mu.Lock()
	err := s.usable(op)
	if err == nil {
		s.q.room()
	} else {
		s.mu.Unlock()
	}
	return err
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

// look turns a failure that the ring has seen into the stream's error. The
// caller holds s.mu.
func (s *stream) look() {
	at, code := s.q.failure()
	if code == cl.SUCCESS || s.err.Load() != nil {
		return
	}
	s.fail(at, s.ops[at%ringSize], code)
}

// fail makes the stream fail. The caller holds s.mu.
//
// The codes mean less here than from a call: whatever became of the command, it
// failed while it ran.
func (s *stream) fail(at uint64, op string, code cl.ErrorCode) {
	is := driver.ErrLaunch
	if codes[code].is == driver.ErrOutOfMemory {
		is = driver.ErrOutOfMemory
	}
	var err error = &driver.OpError{Backend: name, Device: s.d.info.ID, Op: op, Code: int(code), Detail: codeName(code), Err: is}
	if gone(code) {
		s.d.lose(err)
		err = s.d.lost()
	}
	s.failedAt = at
	s.err.Store(&err)
}

// gone reports codes that mean the end of the whole context when they come back
// from a queue that was in order.
func gone(code cl.ErrorCode) bool {
	return code == codeNVIDIAFault || code == cl.INVALID_COMMAND_QUEUE
}

// end gives the stream back. n is the number of the first command that op
// queued; code what the driver said.
func (s *stream) end(op string, n uint64, code cl.ErrorCode) error {
	defer s.mu.Unlock()
	for ; n < s.q.next(); n++ {
		s.ops[n%ringSize] = op
	}
	if code != cl.SUCCESS {
		s.q.settle() // perhaps the driver refuses because something failed before
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

// reach waits until the queue is done with everything queued so far. Of an
// in-order queue, that is its newest command.
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
	// Not clFinish: nobody could leave that, and rusticl's forgets what was flushed.
	e, ok := s.q.last()
	code := cl.SUCCESS
	if !ok || s.wrapped { // the program queues as well, beside the ring
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

// reached settles after a wait that ended with code.
func (s *stream) reached(op string, code cl.ErrorCode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.d.errorf(op, driver.ErrClosed, "stream")
	}
	first := s.q.next()
	s.q.settle()
	s.look()
	if code != cl.SUCCESS && s.err.Load() == nil { // the driver knows that, but not what
		s.fail(first, "work queued before "+op, code)
	}
	return s.usable(op)
}

func (s *stream) Sync(ctx context.Context) error { return s.reach(ctx, "sync") }

// Upload copies small data aside. For more it waits for the queue: with a plain
// wait if ctx cannot be done, else for an event, so that only the copy itself
// cannot be left.
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
		n := s.q.next()
		return s.end(op, n, s.q.write(dst, src, true))
	}
	s.mu.Unlock()
	if ctx.Done() != nil {
		if err := s.reach(ctx, op); err != nil {
			return err
		}
	}
	return s.copied(op, s.q.write(dst, src, false))
}

func (s *stream) Download(ctx context.Context, dst []byte, src driver.Memory) error {
	const op = "download"
	if len(dst) == 0 {
		return nil
	}
	if err := s.begin(op); err != nil {
		return err
	}
	s.mu.Unlock()
	if ctx.Done() != nil {
		if err := s.reach(ctx, op); err != nil {
			return err
		}
	}
	return s.copied(op, s.q.read(src, dst))
}

// copied ends a blocking copy.
func (s *stream) copied(op string, code cl.ErrorCode) error {
	s.mu.Lock()
	return s.end(op, s.q.next(), code)
}

func (s *stream) Copy(dst, src driver.Memory) error {
	const op = "copy"
	if err := s.begin(op); err != nil {
		return err
	}
	n := s.q.next()
	return s.end(op, n, s.q.copy(dst, src))
}

func (s *stream) Fill(dst driver.Memory, pattern []byte) error {
	const op = "fill"
	if k := len(pattern); k != 1 && k != 2 && k != 4 && k != 8 || dst.Size%int64(k) != 0 {
		return s.d.errorf(op, driver.ErrInvalidArgument, "%d bytes with a pattern of %d", dst.Size, k)
	}
	if err := s.begin(op); err != nil {
		return err
	}
	n := s.q.next()
	return s.end(op, n, s.q.fill(dst, pattern))
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
	n := s.q.next()
	return s.end(op, n, s.q.after(ev.e))
}

func (s *stream) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	// Whoever still waits holds an event, not the queue. A blocking copy would use
	// the queue, but runtime closes no stream in the middle of one.
	s.q.free() // a failure was told by the stream's other calls, or nobody asked
	return nil
}
