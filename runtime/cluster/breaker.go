package cluster

// The circuit breakers of a Runner: which devices get work, and when one that failed gets some again.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// admit reports whether a device gets a unit, which then first tries whether it works again if try is set. Otherwise
// resting says why it does not.
func (r *Runner) admit(d *standby) (try bool, resting error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !d.rests {
		return false, nil
	}
	if d.tried || r.now().Before(d.until) {
		return false, fmt.Errorf("%s rests since: %w", d.name, d.last)
	}
	d.tried = true
	return true, nil
}

// failed notes a failure of a device, and reports whether it rests now.
func (r *Runner) failed(d *standby, err error) (rests bool) {
	now := r.now()
	d.health.did(err, now)
	r.mu.Lock()
	defer r.mu.Unlock()
	first := now.Add(-r.o.Window)
	kept := d.failures[:0]
	for _, at := range append(d.failures, now) {
		if !at.Before(first) {
			kept = append(kept, at)
		}
	}
	d.failures, d.last = kept, err
	if errors.Is(err, runtime.ErrDeviceLost) || len(kept) >= r.o.Failures {
		r.rest(d, err)
	}
	return d.rests
}

// rest takes a device out of use for a while. The runner is locked.
func (r *Runner) rest(d *standby, why error) {
	d.rests, d.tried, d.until, d.last, d.failures = true, false, r.now().Add(r.o.CoolDown), why, nil
}

// Suspend makes a device rest as if it had failed, for maintenance for example: it gets no new units until its
// cool-down is over. A name that is not one of the Runner's is [runtime.ErrInvalidArgument].
func (r *Runner) Suspend(name string) error {
	return r.named(name, func(d *standby) { r.rest(d, errSuspended) })
}

// named calls f for a device, under the lock.
func (r *Runner) named(name string, f func(d *standby)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.devices {
		if d.name == name {
			f(d)
			return nil
		}
	}
	return fmt.Errorf("cluster: %s is no device of the runner: %w", name, runtime.ErrInvalidArgument)
}

// Resume ends a device's rest at the next unit, which first tries whether it works. A name that is not one of the
// Runner's is [runtime.ErrInvalidArgument].
func (r *Runner) Resume(name string) error {
	return r.named(name, func(d *standby) { d.until = time.Time{} })
}

var errSuspended = errors.New("suspended")

// attempt calls work once, after it has tried the device if that is to be done.
func (r *Runner) attempt(ctx context.Context, d *standby, try bool,
	work func(context.Context, *runtime.Device) error) (err error) {
	if try {
		worked := false
		defer func() { // also if work panics
			if !worked {
				r.mu.Lock()
				d.tried = false
				r.mu.Unlock()
			}
		}()
		worked, err = r.restored(ctx, d)
		if err != nil {
			return err
		}
	}
	h, err := r.open(ctx, d)
	if err != nil {
		return err
	}
	defer func() { r.release(d, h, err) }()
	limited, cancel := ctx, context.CancelFunc(func() {})
	if r.o.Timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, r.o.Timeout)
	}
	defer cancel()
	err = work(limited, h.dev)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no end after %v: %w: %w", r.o.Timeout, driver.ErrTimeout, err)
		if gone := h.dev.Abandon(err); gone == nil {
			err = fmt.Errorf("%w: %w", runtime.ErrDeviceLost, err)
		}
	}
	return err
}

// restored finds out whether a device that rests works again, and gives it work from now on if it does.
func (r *Runner) restored(ctx context.Context, d *standby) (bool, error) {
	h, err := r.open(ctx, d)
	if err == nil {
		err = works(ctx, h.dev)
		r.release(d, h, err)
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	now := r.now()
	r.mu.Lock()
	if err == nil {
		d.rests, d.tried, d.failures = false, false, nil
	} else {
		r.rest(d, err)
	}
	r.mu.Unlock()
	if err != nil {
		d.health.did(err, now)
		return true, err
	}
	d.health.restore()
	r.tell(Event{Kind: Restored, To: d.name})
	return true, nil
}

// works computes something small on a device, and checks it.
func works(ctx context.Context, dev *runtime.Device) error {
	const n = 1009 // a prime, which no group divides
	m, err := expr.New(expr.Input(0, runtime.U32).Mul(expr.Input(1, runtime.U32)).Output(runtime.U32))
	if err != nil {
		return err
	}
	unit, err := m.Unit(dev.Features(), 0)
	if err != nil {
		return err
	}
	program, err := dev.Program(ctx, unit)
	if err != nil {
		return err
	}
	defer program.Close()
	kernel, err := program.Kernel(expr.Kernel)
	if err != nil {
		return err
	}
	x, got := make([]uint32, n), make([]uint32, n)
	for i := range x {
		x[i] = uint32(i) * 2654435761
	}
	in, err := runtime.Upload(ctx, dev, x)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := runtime.Alloc[uint32](dev, n)
	if err != nil {
		return err
	}
	defer out.Close()
	s, err := dev.NewStream()
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Launch(kernel, runtime.Items(n), in, in, out, uint64(n)); err != nil {
		return err
	}
	if err := s.Sync(ctx); err != nil {
		return err
	}
	if err := runtime.Read(ctx, out, got); err != nil {
		return err
	}
	for i := range got {
		if got[i] != x[i]*x[i] {
			return fmt.Errorf("%s: product %d is %d, not %d: %w", dev, i, got[i], x[i]*x[i], runtime.ErrLaunch)
		}
	}
	return nil
}

// open returns a device for a unit, which calls release.
func (r *Runner) open(ctx context.Context, d *standby) (*handle, error) {
	d.opening.Lock()
	defer d.opening.Unlock()
	r.mu.Lock()
	if h := d.use; h != nil {
		h.units++
		r.mu.Unlock()
		return h, nil
	}
	r.mu.Unlock()
	dev, err := r.session.Open(ctx, d.name)
	if err != nil {
		return nil, err
	}
	if why := dev.Fallback(); why != nil { // another device, whose turn comes
		return nil, errors.Join(why, dev.Close())
	}
	h := &handle{dev: dev, units: 1}
	r.mu.Lock()
	d.use = h
	r.mu.Unlock()
	return h, nil
}

// release ends a unit's use of a device, which failed with err. One that is lost will be opened anew.
func (r *Runner) release(d *standby, h *handle, err error) {
	r.mu.Lock()
	h.units--
	if errors.Is(err, runtime.ErrDeviceLost) {
		h.lost = true
		if d.use == h {
			d.use = nil
		}
	}
	last := h.units == 0 && h.lost
	r.mu.Unlock()
	if last {
		_ = h.dev.Close() // what it says is why it was lost
	}
}

// ready prepares a device for another attempt: it frees memory that the pool keeps, and makes the device's own stream
// take work again.
func (r *Runner) ready(d *standby, memory bool) {
	r.mu.Lock()
	h := d.use
	if h != nil {
		h.units++
	}
	r.mu.Unlock()
	if h == nil {
		return
	}
	defer r.release(d, h, nil)
	if memory {
		_, _ = h.dev.Memory().Trim(0) // the attempt finds out whether it was enough
	}
	if s := h.dev.Stream(); s.Err() != nil {
		_ = s.Reset()
	}
}

// Close waits for the units under way, and closes the devices. Closing twice does nothing.
func (r *Runner) Close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.units.Wait()
	var errs []error
	for _, d := range r.devices {
		r.mu.Lock()
		h := d.use
		d.use = nil
		r.mu.Unlock()
		if h != nil {
			errs = append(errs, h.dev.Close())
		}
	}
	return errors.Join(errs...)
}

// pause waits, unless the context is done before.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
