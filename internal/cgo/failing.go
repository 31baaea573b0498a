//go:build cgo && unix

package cgo

// Streams: waiting for them, their failure, and closing them.

import (
	"cmp"
	"context"

	"github.com/concord-compute/concord/internal/blocking"
	"github.com/concord-compute/concord/runtime/driver"
)

// enter begins a call that uses the stream. If it succeeds, the call has to end with leave.
func (s *stream) enter(op string) error {
	s.alive.RLock()
	if err := s.usable(op); err != nil {
		s.alive.RUnlock()
		return err
	}
	return nil
}

func (s *stream) leave() { s.alive.RUnlock() }

// enterRunning is enter for operations that a graph cannot record.
func (s *stream) enterRunning(op string) error {
	if err := s.enter(op); err != nil {
		return err
	}
	if s.capturing.Load() {
		s.leave()
		return s.d.errorf(op, driver.ErrInvalidArgument, "the stream records a graph")
	}
	return nil
}

// usable returns why the stream refuses work.
func (s *stream) usable(op string) error {
	if s.closed {
		return s.d.errorf(op, driver.ErrClosed, "stream")
	}
	return s.failure()
}

// failure returns why the stream failed, or nil.
func (s *stream) failure() error {
	if first := s.err.Load(); first != nil {
		return first.err
	}
	return s.d.lost()
}

// queued ends a call that queues work. f is the result of the table's entry.
func (s *stream) queued(op string, f *failure) error {
	if f != nil {
		defer s.leave()
		return s.refuse(op, f)
	}
	if !s.capturing.Load() {
		s.ops.push(op)
	}
	s.leave()
	return nil
}

// refuse returns the error of a call that failed. If earlier queued work is the cause, the driver
// reports the same failure again when the stream is queried, and the stream fails; otherwise only
// the call itself was refused.
func (s *stream) refuse(op string, f *failure) error {
	switch f.status {
	case statusLost:
		return s.fail(op, s.ops.now(), f)
	case statusFailed, statusLaunch, statusTimeout, statusInvalid, statusRefused:
		if s.capturing.Load() {
			break
		}
		if _, earlier := s.t.streamQuery(s.c); earlier != nil {
			return s.fail(op, s.ops.now(), earlier)
		}
	}
	return s.d.failed(op, f)
}

// fail makes the stream fail because one of its first upTo operations failed, and returns the error
// that all later calls return.
func (s *stream) fail(op string, upTo uint64, f *failure) error {
	after := s.ops.settled()
	var err error
	if f.status == statusLost {
		err = s.d.lose(op, f)
	} else {
		var open opList
		s.ops.open(&open, upTo)
		what := open.String()
		if what == "" {
			what = "work queued before " + op
		}
		err = f.as(s.d.b.v.Name, s.d.info.ID, what, f.ran())
	}
	s.err.CompareAndSwap(nil, &firstFailure{err: err, after: after})
	return s.failure()
}

// KnownErr implements driver.KnownFailure.
func (s *stream) KnownErr() error { return s.failure() }

// Err implements driver.Stream.
func (s *stream) Err() error {
	if err := s.failure(); err != nil {
		return err
	}
	s.alive.RLock()
	defer s.alive.RUnlock()
	if s.closed || s.capturing.Load() {
		return nil
	}
	_, err := s.look("looking at the stream")
	return err
}

// look asks the driver, without waiting, whether everything is done.
func (s *stream) look(op string) (done bool, err error) {
	at := s.ops.now()
	done, f := s.t.streamQuery(s.c)
	if f != nil {
		return true, s.fail(op, at, f)
	}
	if done {
		s.ops.settle(at)
	}
	return done, nil
}

// Sync implements driver.Stream.
func (s *stream) Sync(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.finish(ctx, "sync")
}

// finish waits until everything queued so far is done. If ctx is done first it returns, and a
// goroutine waits on; Close waits for that goroutine.
func (s *stream) finish(ctx context.Context, op string) error {
	if err := s.enterRunning(op); err != nil {
		return err
	}
	if ctx.Done() == nil {
		return s.finished(op)
	}
	if done, err := s.look(op); done || err != nil {
		s.leave()
		return err
	}
	err, late := blocking.Wait(ctx, func() error { return s.finished(op) })
	return cmp.Or(err, late)
}

// finished waits for the stream and leaves it.
func (s *stream) finished(op string) error {
	defer s.leave()
	at := s.ops.now()
	if f := s.t.streamSync(s.c); f != nil {
		return s.fail(op, at, f)
	}
	s.ops.settle(at)
	return s.failure()
}

// Close implements driver.Stream. It returns a failure that no earlier call has returned; the
// stream is released in any case.
func (s *stream) Close() error {
	s.alive.Lock()
	defer s.alive.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.capturing.Load() {
		_ = s.t.captureDrop(s.c)
		s.captured()
	}
	told := s.failure() != nil
	at := s.ops.now()
	f := s.t.streamClose(s.c)
	var err error
	if f != nil && !told {
		err = s.fail("close stream", at, f)
	}
	s.d.forget(s)
	return err
}

func (s *stream) order() int { return orderStreams }
