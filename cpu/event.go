package cpu

// Events: points in a stream.

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// epoch is the time from which the times of events are counted.
var epoch = time.Now()

// point is a place in a stream: it is reached when that number of operations are done, so that an event
// without timing queues nothing.
type point struct {
	stream *stream
	seq    uint64
}

// event is a point. With timing it is an operation of its own, which stores the time.
type event struct {
	timing bool
	closed atomic.Bool

	mu sync.Mutex // an event can be recorded again
	point
	at time.Duration // since epoch; written before the stream's done passes seq
}

var _ driver.Event = (*event)(nil)

// where returns the point at which the event was recorded last.
func (e *event) where() point {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.point
}

// stamp stores the time at which p was reached, unless the event has been recorded elsewhere since.
func (e *event) stamp(p point) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.point == p {
		e.at = time.Since(epoch)
	}
}

// Done implements driver.Event. An event after the failed operation of a failed stream is never
// reached; then Done returns the stream's error.
func (e *event) Done() (bool, error) {
	if e.closed.Load() {
		return false, driver.ErrClosed
	}
	return e.where().reached()
}

// Wait implements driver.Event.
func (e *event) Wait(ctx context.Context) error {
	if e.closed.Load() {
		return driver.ErrClosed
	}
	return e.where().reach(ctx)
}

func (p point) reached() (bool, error) {
	if p.stream.done.Load() < p.seq {
		return false, nil
	}
	err := p.stream.errorAt(p.seq)
	return err == nil, err
}

func (p point) reach(ctx context.Context) error {
	if err := p.stream.await(ctx, p.seq); err != nil {
		return err
	}
	return p.stream.errorAt(p.seq)
}

// Elapsed implements driver.Event.
func (e *event) Elapsed(since driver.Event) (time.Duration, error) {
	from, ok := since.(*event)
	if !ok {
		return 0, fmt.Errorf("event of another backend: %w", driver.ErrInvalidArgument)
	}
	if !e.timing || !from.timing {
		return 0, driver.ErrTimingDisabled
	}
	start, err := from.time()
	if err != nil {
		return 0, err
	}
	end, err := e.time()
	return end - start, err
}

// time returns the time at which the event was reached, since epoch.
func (e *event) time() (time.Duration, error) {
	if e.closed.Load() {
		return 0, driver.ErrClosed
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	reached, err := e.reached()
	if err == nil && !reached {
		err = fmt.Errorf("event was not reached yet: %w", driver.ErrInvalidArgument)
	}
	return e.at, err
}

// Close implements driver.Event.
func (e *event) Close() error {
	e.closed.Store(true)
	return nil
}
