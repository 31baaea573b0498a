package runtime

// Devices that are lost: who notices, and what becomes of what is open on them.

import (
	"errors"

	"github.com/concord-compute/concord/runtime/driver"
)

// noticed passes an error of the driver on, and remembers the first one that says
// that the device is lost.
func (c *core) noticed(err error) error {
	if err != nil && errors.Is(err, ErrDeviceLost) {
		first := err // &err would put every call's error on the heap
		c.loss.CompareAndSwap(nil, &first)
	}
	return err
}

// lostError returns why the device is lost, as far as a call has met it, or nil.
func (c *core) lostError() error {
	if err := c.loss.Load(); err != nil {
		return *err
	}
	return nil
}

// isLost is lostError after a look at every stream. It never waits.
func (c *core) isLost() error {
	for _, s := range c.streamList() {
		_ = c.noticed(s.drv.Err())
	}
	return c.lostError()
}

// ended is what calls answer on a device that is closed: a lost one that was
// closed to be opened anew stays lost for those who had it.
func (c *core) ended(op string) error {
	if err := c.lostError(); err != nil {
		return err
	}
	return c.error(op, ErrClosed)
}

// unlessLost drops what a lost device says when it is closed: it has said so
// before, and what it held is gone with it.
func unlessLost(lost bool, err error) error {
	if lost && errors.Is(err, driver.ErrDeviceLost) {
		return nil
	}
	return err
}
