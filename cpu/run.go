package cpu

import (
	"fmt"
	"sync"
	"time"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/runtime/driver"
)

// Prepare is for measuring a kernel without the queue. It returns a function that
// does one launch in the caller, which it keeps until the work is done, and one that
// releases what the launch holds. The kernel is a native one of d, an opened device
// of this package; the launch is checked no further than a stream's, and fails as one
// does. One goroutine at a time may call run, and nobody closes d meanwhile.
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
	run = func() error {
		dev.workers.enter()
		defer dev.workers.leave()
		return p.execute()
	}
	return run, p.done, nil
}

// MultiplyAdds measures what the vector registers of d, an opened device of this package,
// can do at most: floating-point operations of single precision per nanosecond, with all
// of its threads and no memory. It takes some milliseconds; ok is false where d computes
// without vector kernels.
func MultiplyAdds(d driver.Device) (rate float64, ok bool) {
	dev, isOurs := d.(*device)
	if !isOurs || dev.simd == nil || dev.closed.Load() {
		return 0, false
	}
	const turns, registers = 1e6, 10
	results, err := dev.scratch.take(int64(dev.threads) * baseAlign)
	if err != nil {
		return 0, false
	}
	defer dev.scratch.give(results)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range dev.threads {
		wg.Go(func() { dev.simd.run(simd.FMAPeak, turns/100, address(results.data)+uint64(i*baseAlign)) })
	}
	wg.Wait()
	operations := 2 * turns * registers * float64(dev.simd.bytes/4) * float64(dev.threads)
	return operations / float64(time.Since(start).Nanoseconds()), true
}
