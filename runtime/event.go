package runtime

// Events: points in a stream that can be waited for and timed.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
)

// Event is a point in a stream. The zero Event is not recorded: Stream.RecordIn records it. It is
// safe for concurrent use.
type Event struct {
	mu     sync.Mutex
	core   *core // of drv
	drv    driver.Event
	stream *Stream // that it was recorded on
	after  uint64  // the stream's work before the point, as Stream.queued counts it
	closed bool
}

// get returns the recorded event behind e, and its device.
func (e *Event) get(op string) (driver.Event, *core, error) {
	if e == nil {
		return nil, nil, fmt.Errorf("%s: event is nil: %w", op, ErrInvalidArgument)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.present(op)
}

// present is get for callers that hold e.
func (e *Event) present(op string) (driver.Event, *core, error) {
	switch {
	case e.closed:
		return nil, nil, fmt.Errorf("%s: event: %w", op, ErrClosed)
	case e.drv == nil:
		return nil, nil, fmt.Errorf("%s: %w", op, driver.ErrEventNotRecorded)
	case e.core.isAbandoned():
		return nil, nil, e.core.lost()
	}
	return e.drv, e.core, nil
}

// moved reports whether e was recorded again since get returned drv, which may be closed then.
func (e *Event) moved(drv driver.Event) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.closed && e.drv != drv
}

// record records e on a stream, which the caller holds. If it fails e is unchanged.
func (e *Event) record(s *Stream) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return fmt.Errorf("event: %w", ErrClosed)
	}
	if again, can := s.drv.(driver.Rerecorder); can && e.drv != nil && e.core == s.core {
		err := again.Rerecord(e.drv)
		if err == nil {
			e.stream, e.after = s, s.queued.Load()
		}
		return err
	}
	drv, err := s.drv.Record(true)
	if err != nil {
		return err
	}
	if e.drv != nil && !e.core.isAbandoned() {
		_ = e.drv.Close() // what waits for the earlier point has queued its wait
	}
	e.core, e.drv, e.stream, e.after = s.core, drv, s, s.queued.Load()
	return nil
}

// Done reports whether the point was reached. It never waits. The error is that of the stream's
// work before the point.
func (e *Event) Done() (bool, error) {
	for {
		drv, _, err := e.get("event done")
		if err != nil {
			return false, err
		}
		done, err := drv.Done()
		if !errors.Is(err, ErrClosed) || !e.moved(drv) {
			return done, err
		}
	}
}

// Wait waits until the point is reached, or ctx is done.
func (e *Event) Wait(ctx context.Context) error {
	if err := checkContext(ctx, "event wait"); err != nil {
		return err
	}
	for {
		drv, c, err := e.get("event wait")
		if err != nil {
			return err
		}
		var start int64
		watched := c.session.observed()
		var s *Stream
		var after uint64
		if watched {
			e.mu.Lock()
			if e.drv == drv {
				s, after = e.stream, e.after
			}
			e.mu.Unlock()
			start = driver.Now()
		}
		err = drv.Wait(ctx)
		if watched {
			if err == nil && s != nil {
				s.finish(after)
				s.notes.fetch(s, nil, true)
			}
			c.session.told(profile.Event{Kind: profile.Wait, Name: "event", Device: c.info.ID, Err: err}, start)
		}
		if !errors.Is(err, ErrClosed) || !e.moved(drv) {
			return c.noticed(err)
		}
	}
}

// Elapsed returns the time between an earlier event and this one, on the device's clock. Both must
// have been reached, and recorded with timing on the same device.
func (e *Event) Elapsed(since *Event) (time.Duration, error) {
	for {
		end, c, err := e.get("elapsed")
		if err != nil {
			return 0, err
		}
		start, from, err := since.get("elapsed")
		if err != nil {
			return 0, err
		}
		if c != from {
			return 0, fmt.Errorf("elapsed: events of %s and %s: %w", from.info.ID, c.info.ID, ErrInvalidArgument)
		}
		d, err := end.Elapsed(start)
		if !errors.Is(err, ErrClosed) || !e.moved(end) && !since.moved(start) {
			return d, err
		}
	}
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
	if e.drv == nil || e.core.isAbandoned() {
		return nil
	}
	return e.drv.Close()
}
