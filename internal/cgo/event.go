//go:build cgo && unix

package cgo

// Events: points in a stream.

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/internal/blocking"
	"github.com/concord-compute/concord/runtime/driver"
)

type event struct {
	s       *stream
	timed   bool
	at      uint64      // the stream's operations before the event
	reached atomic.Bool // true once the event was seen reached without a failure

	mu     sync.Mutex
	users  int // calls that use c, plus 1 for the owner
	closed bool
	c      cEvent
}

var _ driver.Event = (*event)(nil)

// Record implements driver.Stream.
func (s *stream) Record(timing bool) (driver.Event, error) {
	e, err := s.record(timing)
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (s *stream) record(timing bool) (*event, error) {
	const op = "record"
	if err := s.enterRunning(op); err != nil {
		return nil, err
	}
	defer s.leave()
	at := s.ops.now()
	c, f := s.t.record(s.c, timing)
	if f != nil {
		return nil, s.refuse(op, f)
	}
	e := &event{s: s, timed: timing, at: at, users: 1, c: c}
	s.d.events.Add(1)
	s.d.hold(e)
	return e, nil
}

// acquire keeps the event open during a call. If it succeeds, the call has to end with release.
func (e *event) acquire(op string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return e.s.d.errorf(op, driver.ErrClosed, "event")
	}
	e.users++
	return nil
}

func (e *event) release() {
	e.mu.Lock()
	e.users--
	last := e.users == 0
	e.mu.Unlock()
	if last {
		e.s.t.eventClose(e.c)
		e.s.d.events.Done()
	}
}

// Done implements driver.Event.
func (e *event) Done() (bool, error) {
	const op = "event"
	if err := e.acquire(op); err != nil {
		return false, err
	}
	defer e.release()
	if e.reached.Load() {
		return true, nil
	}
	done, f := e.s.t.eventQuery(e.c)
	if f == nil && !done {
		return false, nil
	}
	return true, e.outcome(f)
}

// Wait implements driver.Event. If ctx is done first, Wait returns, and its goroutine waits on
// until the event is reached.
func (e *event) Wait(ctx context.Context) error {
	const op = "event"
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := e.acquire(op); err != nil {
		return err
	}
	if e.reached.Load() {
		e.release()
		return nil
	}
	if ctx.Done() == nil {
		return e.waited()
	}
	if done, f := e.s.t.eventQuery(e.c); done || f != nil {
		defer e.release()
		return e.outcome(f)
	}
	err, late := blocking.Wait(ctx, e.waited)
	return cmp.Or(err, late)
}

// waited waits for the event and releases it.
func (e *event) waited() error {
	defer e.release()
	return e.outcome(e.s.t.eventWait(e.c))
}

// outcome returns the error of the work before an event: that of the stream if the event was
// reached (f is nil), else the one that f means.
func (e *event) outcome(f *failure) error {
	s := e.s
	if f != nil {
		return s.fail("an event", e.at, f)
	}
	if first := s.err.Load(); first != nil && e.at > first.after {
		return first.err
	}
	e.reached.Store(true)
	s.ops.settle(e.at)
	return nil
}

// Elapsed implements driver.Event.
func (e *event) Elapsed(since driver.Event) (time.Duration, error) {
	const op = "elapsed"
	d := e.s.d
	from, ok := since.(*event)
	if !ok || from.s.d != d {
		return 0, d.errorf(op, driver.ErrInvalidArgument, "event is a %T, or one of another device", since)
	}
	if !e.timed || !from.timed {
		return 0, d.errorf(op, driver.ErrTimingDisabled, "")
	}
	for _, ev := range []*event{from, e} {
		if err := ev.acquire(op); err != nil {
			return 0, err
		}
		defer ev.release()
		switch done, err := ev.Done(); {
		case err != nil:
			return 0, err
		case !done:
			return 0, d.errorf(op, driver.ErrInvalidArgument, "an event is not reached yet")
		}
	}
	ns, f := e.s.t.eventElapsed(from.c, e.c)
	return time.Duration(ns), d.failed(op, f)
}

func (e *event) order() int { return orderEvents }

// Close implements driver.Event. Calls that are waiting for the event go on.
func (e *event) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	e.mu.Unlock()
	e.s.d.forget(e)
	e.release()
	return nil
}
