package cpu

import (
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

// Prepare is for measuring a kernel without the queue. It returns a function that
// does one launch in the caller, which it keeps until the work is done, and one that
// releases what the launch holds. The kernel is a native one of d, an opened device
// of this package; the launch is checked no further than a stream's. One goroutine
// at a time may call run.
func Prepare(d driver.Device, l *driver.Launch) (run func() error, release func(), err error) {
	dev, ok := d.(*device)
	if !ok {
		return nil, nil, fmt.Errorf("cpu: Prepare on a device of type %T: %w", d, driver.ErrInvalidArgument)
	}
	k, ok := l.Kernel.(*kernel)
	if !ok || k.device != dev || k.module != nil {
		return nil, nil, dev.opError("prepare", fmt.Errorf("not a native kernel of this device: %w", driver.ErrInvalidArgument))
	}
	if dev.closed.Load() {
		return nil, nil, dev.opError("prepare", driver.ErrClosed)
	}
	p, err := newLaunch(dev, k, l)
	if err != nil {
		return nil, nil, dev.opError("prepare", err)
	}
	return func() error { return k.run(&p.call) }, p.done, nil
}
