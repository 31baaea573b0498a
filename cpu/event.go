package cpu

// Events: points in a stream.

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// epoch is the time from which the times of events are counted.
var epoch = time.Now()

// event is reached when a number of operations of its stream are done, so that recording an
// event without timing queues nothing. With timing it is an operation of
// its own, which stores the time.
type event struct {
	stream *stream
	seq    uint64
	timing bool
	at     time.Duration // since epoch; written before the stream's done passes seq
	closed atomic.Bool
}

var _ driver.Event = (*event)(nil)

// Done implements driver.Event. An event after the failed operation of a failed stream is never
// reached; then Done returns the stream's error.
func (e *event) Done() (bool, error) {
	if e.closed.Load() {
		return false, driver.ErrClosed
	}
	if e.stream.done.Load() < e.seq {
		return false, nil
	}
	if err := e.stream.errorAt(e.seq); err != nil {
		return false, err
	}
	return true, nil
}

// Wait implements driver.Event.
func (e *event) Wait(ctx context.Context) error {
	if e.closed.Load() {
		return driver.ErrClosed
	}
	return e.reach(ctx)
}

func (e *event) reach(ctx context.Context) error {
	if err := e.stream.await(ctx, e.seq); err != nil {
		return err
	}
	return e.stream.errorAt(e.seq)
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
	for _, end := range []*event{from, e} {
		switch reached, err := end.Done(); {
		case err != nil:
			return 0, err
		case !reached:
			return 0, fmt.Errorf("event was not reached yet: %w", driver.ErrInvalidArgument)
		}
	}
	return e.at - from.at, nil
}

// Close implements driver.Event.
func (e *event) Close() error {
	e.closed.Store(true)
	return nil
}
