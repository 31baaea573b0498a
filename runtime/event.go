package runtime

// Events: points in a stream that can be waited for and timed.

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// Event is a point in a stream. The zero Event is not recorded. It is safe for
// concurrent use.
type Event struct {
	mu     sync.Mutex
	core   *core
	drv    driver.Event
	timed  bool
	closed bool
}

// get returns the recorded event behind e.
func (e *Event) get(op string) (driver.Event, error) {
	if e == nil {
		return nil, fmt.Errorf("%s: event is nil: %w", op, ErrInvalidArgument)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return nil, fmt.Errorf("%s: event: %w", op, ErrClosed)
	case e.drv == nil:
		return nil, fmt.Errorf("%s: %w", op, ErrEventNotRecorded)
	}
	return e.drv, nil
}

// Done reports whether the point was reached. It never waits. The error is that of the stream's
// work before the point.
func (e *Event) Done() (bool, error) {
	drv, err := e.get("event done")
	if err != nil {
		return false, err
	}
	return drv.Done()
}

// Wait waits until the point is reached, or ctx is done.
func (e *Event) Wait(ctx context.Context) error {
	if err := checkContext(ctx, "event wait"); err != nil {
		return err
	}
	drv, err := e.get("event wait")
	if err != nil {
		return err
	}
	return e.core.noticed(drv.Wait(ctx))
}

// Elapsed returns the time between an earlier event and this one, on the device's clock. Both must
// have been reached, and recorded with timing on the same device.
func (e *Event) Elapsed(since *Event) (time.Duration, error) {
	end, err := e.get("elapsed")
	if err != nil {
		return 0, err
	}
	start, err := since.get("elapsed")
	if err != nil {
		return 0, err
	}
	if e.core != since.core {
		return 0, fmt.Errorf("elapsed: events of %s and %s: %w", since.core.info.ID, e.core.info.ID, ErrInvalidArgument)
	}
	if !e.timed || !since.timed {
		return 0, e.core.error("elapsed", ErrTimingDisabled)
	}
	return end.Elapsed(start)
}

// Close releases the event. Closing twice does nothing.
func (e *Event) Close() error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	if e.drv == nil {
		return nil
	}
	return e.drv.Close()
}
