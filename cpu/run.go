package cpu

import (
	"fmt"
	"sync"
	"time"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/runtime/driver"
)

// Prepare is for measuring a kernel without the queue of a stream. It returns run, which does one launch
// on the calling goroutine and blocks until the work is done, and release, which must be called once
// after the last run. d is an opened device of this package, and the kernel is a native one
// of d. The launch is checked, and fails, as it would in a stream. run must not be called
// from several goroutines at once, and d must not be closed before release.
func Prepare(d driver.Device, l *driver.Launch) (run func() error, release func(), err error) {
	dev, ok := d.(*device)
	if !ok {
		return nil, nil, fmt.Errorf("cpu: Prepare on a device of type %T: %w", d, driver.ErrInvalidArgument)
	}
	k, ok := l.Kernel.(*kernel)
	if !ok || k.device != dev || k.module != nil {
		return nil, nil, dev.opError("prepare", fmt.Errorf("not a native kernel of this device: %w",
			driver.ErrInvalidArgument))
	}
	if dev.closed.Load() {
		return nil, nil, dev.opError("prepare", driver.ErrClosed)
	}
	p, err := newLaunch(dev, k, l)
	if err != nil {
		return nil, nil, dev.opError("prepare", err)
	}
	run = func() error {
		dev.workers.enter()
		defer dev.workers.leave()
		return p.execute()
	}
	return run, p.done, nil
}

// MultiplyAdds implements driver.MultiplyAdder, in vector registers on all threads of the device. ok is false
// if the device has no vector kernels.
func (d *device) MultiplyAdds() (rate float64, ok bool) {
	if d.simd == nil || d.closed.Load() {
		return 0, false
	}
	const turns, registers = 1e6, 10
	results, err := d.scratch.take(int64(d.threads) * baseAlign)
	if err != nil {
		return 0, false
	}
	defer d.scratch.give(results)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range d.threads {
		wg.Go(func() { d.simd.run(simd.FMAPeak, turns/100, address(results.data)+uint64(i*baseAlign)) })
	}
	wg.Wait()
	operations := 2 * turns * registers * float64(d.simd.bytes/4) * float64(d.threads)
	return operations / float64(time.Since(start).Nanoseconds()), true
}
