package runtime

// The state of a device: open, being closed, closed or lost.

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime/driver"
)

// life is the state of one device. A call that creates or destroys something on the device enters
// before that and leaves after it: close waits for the calls that have entered before it destroys
// anything, and no call can enter from then on.
type life struct {
	calls atomic.Int64  // that have entered and not left; closing is added when close begins
	idle  chan struct{} // closed by the last call that leaves after that

	ending sync.Mutex // held while it begins to be closed, or is abandoned

	loss atomic.Pointer[loss] // once the device is lost
}

// loss is why a device is lost. It is one value, so that nobody sees a device that was abandoned as one that is lost
// only, and calls its driver.
type loss struct {
	why       error
	abandoned bool // nothing of the device is closed, and its driver is not called any more
}

// closing makes the count of calls negative.
const closing = math.MinInt64

// enter keeps the device from being closed until leave. It fails once close has begun.
func (l *life) enter() bool {
	for {
		n := l.calls.Load()
		if n < 0 {
			return false
		}
		if l.calls.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (l *life) leave() {
	if l.calls.Add(-1) == closing {
		close(l.idle)
	}
}

// end admits no further calls and waits for those that have entered. It reports false if another
// call has already ended the device.
func (l *life) end() bool {
	l.ending.Lock()
	n, ended := l.calls.Load(), l.isClosed()
	if !ended {
		n = l.calls.Add(closing) - closing
	}
	l.ending.Unlock()
	if ended {
		return false
	}
	if n > 0 {
		<-l.idle
	}
	return true
}

// abandon admits no further calls, and waits for none. It reports false if the device has been ended already.
func (l *life) abandon(why error) bool {
	l.ending.Lock()
	defer l.ending.Unlock()
	if l.isClosed() {
		return false
	}
	for {
		before, now := l.loss.Load(), &loss{why, true}
		if before != nil {
			now.why = before.why
		}
		if l.loss.CompareAndSwap(before, now) {
			break
		}
	}
	l.calls.Add(closing)
	return true
}

func (l *life) isClosed() bool { return l.calls.Load() < 0 }

func (l *life) isAbandoned() bool {
	now := l.loss.Load()
	return now != nil && now.abandoned
}

// noticed returns an error of the driver unchanged, and remembers the first one that says that the
// device is lost.
func (l *life) noticed(err error) error {
	if err != nil && errors.Is(err, ErrDeviceLost) {
		l.loss.CompareAndSwap(nil, &loss{why: err})
	}
	return err
}

// lost returns why the device is lost, if a call has noticed that, or nil.
func (l *life) lost() error {
	if now := l.loss.Load(); now != nil {
		return now.why
	}
	return nil
}

// checkLost is lost after a check of every stream. It never waits.
func (c *core) checkLost() error {
	if err := c.lost(); err != nil {
		return err
	}
	for _, s := range c.streams.list() {
		_ = c.noticed(s.present().Err())
	}
	return c.lost()
}

// closedError is the error of calls on a device that is closed. Handles of a lost device that was
// closed to be opened again still get the error of the loss.
func (c *core) closedError(op string) error {
	if err := c.lost(); err != nil {
		return err
	}
	return c.error(op, ErrClosed)
}

// unlessLost drops the error of a lost device that is being closed: the loss was reported before,
// and everything on the device is gone with it.
func unlessLost(lost bool, err error) error {
	if lost && errors.Is(err, driver.ErrDeviceLost) {
		return nil
	}
	return err
}
