package runtime

// The state of a device: open, being closed, closed or lost.

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime/driver"
)

// life is the state of one device. A call that creates or destroys something on the device enters
// before that and leaves after it: close waits for the calls that have entered before it destroys
// anything, and no call can enter from then on.
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

// end admits no further calls and waits for those that have entered. It reports false if another
// call has already ended the device.
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

// noticed returns an error of the driver unchanged, and remembers the first one that says that the
// device is lost.
func (l *life) noticed(err error) error {
	if err != nil && errors.Is(err, ErrDeviceLost) {
		first := err // &err would put every call's error on the heap
		l.loss.CompareAndSwap(nil, &first)
	}
	return err
}

// lost returns why the device is lost, if a call has noticed that, or nil.
func (l *life) lost() error {
	if err := l.loss.Load(); err != nil {
		return *err
	}
	return nil
}

// isLost is lost after a check of every stream. It never waits.
func (c *core) isLost() error {
	for _, s := range c.streams.list() {
		_ = c.noticed(s.drv.Err())
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
