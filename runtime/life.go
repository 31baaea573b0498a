package runtime

// Whether a device can be used: it is open, being closed, or lost.

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime/driver"
)

// life is the state of one device. A call that makes or ends something on the device enters
// before and leaves after it: close waits for the calls that have entered before it ends
// anything, and no call enters from then on.
type life struct {
	mu     sync.Mutex
	ended  bool // from the beginning of close on
	guests sync.WaitGroup

	loss atomic.Pointer[error] // why the device is lost, once a call has met that
}

// enter keeps the device from being closed until leave. It fails once close has begun.
func (l *life) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.guests.Add(1)
	return true
}

func (l *life) leave() { l.guests.Done() }

// end lets no call enter any more and waits for those that have. It reports false if another
// call has ended the device already.
func (l *life) end() bool {
	l.mu.Lock()
	first := !l.ended
	l.ended = true
	l.mu.Unlock()
	if first {
		l.guests.Wait()
	}
	return first
}

func (l *life) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// noticed passes an error of the driver on, and remembers the first one that says
// that the device is lost.
func (l *life) noticed(err error) error {
	if err != nil && errors.Is(err, ErrDeviceLost) {
		first := err // &err would put every call's error on the heap
		l.loss.CompareAndSwap(nil, &first)
	}
	return err
}

// lost returns why the device is lost, as far as a call has met it, or nil.
func (l *life) lost() error {
	if err := l.loss.Load(); err != nil {
		return *err
	}
	return nil
}

// isLost is lost after a look at every stream. It never waits.
func (c *core) isLost() error {
	for _, s := range c.streams.list() {
		_ = c.noticed(s.drv.Err())
	}
	return c.lost()
}

// closedError is the error of calls on a device that is closed. A lost device that was closed
// to be opened anew stays lost for those who had it.
func (c *core) closedError(op string) error {
	if err := c.lost(); err != nil {
		return err
	}
	return c.error(op, ErrClosed)
}

// unlessLost drops the error of a lost device that is being closed: it was told before, and
// what the device held is gone with it.
func unlessLost(lost bool, err error) error {
	if lost && errors.Is(err, driver.ErrDeviceLost) {
		return nil
	}
	return err
}
