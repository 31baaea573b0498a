//go:build cgo && opencl && (linux || darwin)

package opencl

// Events: markers in a queue.

import (
	"context"
	"sync"
	"time"

	"github.com/go-gl/cl/v1.2/cl"

	"github.com/concord-compute/concord/internal/blocking"
	"github.com/concord-compute/concord/runtime/driver"
)

type event struct {
	s     *stream
	timed bool
	at    uint64 // the event comes after the commands of the stream with smaller numbers

	mu     sync.RWMutex // guards e against Close
	e      clEvent
	closed bool

	stamp chan struct{} // closed when the field when is set; nil if the device measures the time
	when  time.Time     // the host's time at which the event was found to be done
}

var _ driver.Event = (*event)(nil)

func (s *stream) Record(timing bool) (driver.Event, error) {
	const op = "record"
	hostStamp := false
	if timing {
		useless, err := s.d.noTimes()
		if err != nil {
			return nil, err
		}
		hostStamp = useless || !s.timed
	}
	if err := s.begin(op); err != nil {
		return nil, err
	}
	ev := &event{s: s, timed: timing, at: s.q.next()}
	var code cl.ErrorCode
	ev.e, code = s.q.mark()
	if err := s.end(op, code); err != nil {
		if code == cl.SUCCESS {
			ev.e.release()
		}
		return nil, err
	}
	if hostStamp && ev.e.retain() == cl.SUCCESS {
		ev.stamp = make(chan struct{})
		s.mu.Lock()
		earlier := s.stamped
		s.stamped = ev
		s.mu.Unlock()
		go ev.stampWhenDone(ev.e, earlier)
	}
	return ev, nil
}

// stampWhenDone waits for an event, whose reference it takes over, and sets its time. Since
// goroutines wake in any order, the time is never before that of the stream's earlier event.
func (e *event) stampWhenDone(held clEvent, earlier *event) {
	held.wait()
	held.release()
	e.when = time.Now()
	if earlier != nil {
		<-earlier.stamp
		if e.when.Before(earlier.when) {
			e.when = earlier.when
		}
	}
	close(e.stamp)
}

// wait waits for an event, whose reference it takes over, until ctx is done. In that case a
// goroutine stays until the event is done.
func wait(ctx context.Context, e clEvent) (cl.ErrorCode, error) {
	if status, code := e.status(); code == cl.SUCCESS && status == 0 {
		e.release()
		return cl.SUCCESS, nil
	}
	if ctx.Done() == nil {
		defer e.release()
		return e.wait(), nil
	}
	return blocking.Wait(ctx, func() cl.ErrorCode {
		defer e.release()
		return e.wait()
	})
}

func (e *event) Done() (bool, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.closed {
		return false, e.s.d.errorf("event", driver.ErrClosed, "event")
	}
	status, code := e.e.status()
	if code != cl.SUCCESS {
		return false, e.s.d.failed("event", code, driver.ErrLaunch)
	}
	if status > 0 {
		return false, nil
	}
	if status == 0 && !e.s.mu.TryLock() { // another call holds the stream, and checks it itself
		return true, nil
	} else if status < 0 {
		e.s.mu.Lock()
	}
	defer e.s.mu.Unlock()
	return true, e.outcome(cl.ErrorCode(status))
}

func (e *event) Wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.RLock()
	if e.closed {
		e.mu.RUnlock()
		return e.s.d.errorf("event", driver.ErrClosed, "event")
	}
	code := e.e.retain()
	held := e.e
	e.mu.RUnlock()
	if code != cl.SUCCESS {
		return e.s.d.failed("event", code, driver.ErrLaunch)
	}
	code, err := wait(ctx, held)
	if err != nil {
		return err
	}
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	return e.outcome(code)
}

// outcome returns the failure of the event, or of its stream's work before it. The caller holds the
// stream's lock.
func (e *event) outcome(code cl.ErrorCode) error {
	s := e.s
	if !s.closed {
		s.q.settle()
		s.look()
		if code != cl.SUCCESS && s.err.Load() == nil {
			s.fail(e.at, "work queued before an event", code)
		}
	}
	if err := s.err.Load(); err != nil && (s.failedAt < e.at || code != cl.SUCCESS) {
		return *err
	}
	return s.d.failed("event", code, driver.ErrLaunch)
}

func (e *event) Elapsed(since driver.Event) (time.Duration, error) {
	const op = "elapsed"
	from, ok := since.(*event)
	if !ok {
		return 0, e.s.d.errorf(op, driver.ErrInvalidArgument, "event is a %T", since)
	}
	if !e.timed || !from.timed {
		return 0, e.s.d.errorf(op, driver.ErrTimingDisabled, "")
	}
	for _, ev := range []*event{from, e} {
		switch done, err := ev.Done(); {
		case err != nil:
			return 0, err
		case !done:
			return 0, e.s.d.errorf(op, driver.ErrInvalidArgument, "an event is not reached yet")
		}
	}
	if e.stamp != nil && from.stamp != nil {
		<-from.stamp // both events are done, so this is a short wait
		<-e.stamp
		return e.when.Sub(from.when), nil
	}
	start, err := from.end(op)
	if err != nil {
		return 0, err
	}
	end, err := e.end(op)
	if err != nil {
		return 0, err
	}
	return time.Duration(int64(end - start)), nil
}

// end returns the device's time of the event in nanoseconds.
func (e *event) end(op string) (uint64, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.closed {
		return 0, e.s.d.errorf(op, driver.ErrClosed, "event")
	}
	t, code := e.e.times()
	return t[3], e.s.d.failed(op, code, driver.ErrTimingDisabled)
}

func (e *event) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.closed = true
		e.e.release()
	}
	return nil
}
