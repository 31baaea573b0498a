package cpu

// Points in a stream.

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// epoch is what event times count from.
var epoch = time.Now()

// event is a number of operations of its stream: it is reached when so many are
// done, so that recording one queues nothing. One with timing is an operation of
// its own, which notes the time.
type event struct {
	stream *stream
	seq    uint64
	timing bool
	at     time.Duration // since epoch; written before the stream's done passes seq
	closed atomic.Bool
}

var _ driver.Event = (*event)(nil)

// Done implements driver.Event. The point of a failed stream that lies behind the
// failure is never reached, and the stream's error says why.
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
