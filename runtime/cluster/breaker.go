package cluster

// The circuit breakers of a Runner: which devices get work, and when one that failed gets some again.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// standby is a device of a Runner.
type standby struct {
	name    string
	health  health
	opening chan struct{} // has a value while it is opened; a channel, since a wait for it ends with a context

	// These are guarded by the runner's lock.
	use      *handle     // nil before it is opened, and after it was lost
	failures []time.Time // of the last Window
	rest     *rest       // nil while it gets work
}

// named returns an error that names the device, once.
func (d *standby) named(err error) error {
	if op, ok := errors.AsType[*driver.OpError](err); ok && op.Device == d.name {
		return err
	}
	return fmt.Errorf("%s: %w", d.name, err)
}

// rest is a time in which a device gets no work.
type rest struct {
	until time.Time
	why   error
	tried bool // a unit finds out whether the device works again
}

// handle is an open device and the number of units that use it. The last one of a lost device closes it.
type handle struct {
	dev   *runtime.Device
	units int
	lost  bool
	left  chan struct{} // closed when no unit uses it any more; nil if nobody waits for that
}

// admit reports whether a device gets a unit. With try the unit finds out before whether the device works again;
// resting says why it gets none.
func (r *Runner) admit(d *standby) (try *rest, resting error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case d.rest == nil:
		return nil, nil
	case d.rest.tried || r.now().Before(d.rest.until):
		return nil, d.named(fmt.Errorf("at rest: %w", d.rest.why)) // without the time, so that it is logged once
	}
	d.rest.tried = true
	return d.rest, nil
}

// failed notes that a unit has failed on a device, by a handle; nil if it did not open. What a handle says that was
// replaced is old news.
func (r *Runner) failed(d *standby, h *handle, err error) {
	now, lost := r.now(), errors.Is(err, runtime.ErrDeviceLost)
	r.mu.Lock()
	defer r.mu.Unlock()
	if h != nil && d.use != nil && d.use != h {
		return
	}
	d.health.did(err, now, lost)
	kept := d.failures[:0]
	for _, at := range append(d.failures, now) {
		if !at.Before(now.Add(-r.o.Window)) {
			kept = append(kept, at)
		}
	}
	d.failures = kept
	if d.rest == nil && (lost || len(kept) >= r.o.Failures) {
		r.take(d, err)
	}
}

// take takes a device out of use for a while. The runner is locked.
func (r *Runner) take(d *standby, why error) {
	d.rest, d.failures = &rest{until: r.now().Add(r.o.CoolDown), why: why}, nil
}

// restore finds out whether a device that rests works again, and gives it work from now on if it does. A rest that has
// begun meanwhile goes on.
func (r *Runner) restore(ctx context.Context, d *standby, try *rest) (err error) {
	over := false // also if something panics
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		switch {
		case d.rest != try:
		case over && err == nil:
			d.rest, d.failures = nil, nil
		case over && ctx.Err() == nil:
			r.take(d, err)
		default:
			try.tried = false
		}
	}()
	limit := cmp.Or(r.o.Timeout, probeTime)
	_, err = r.attempt(ctx, d, false, limit, works)
	over = true
	if err == nil {
		d.health.restore()
		r.tell(Event{Kind: Restored, To: d.name})
	} else if ctx.Err() == nil {
		d.health.did(err, r.now(), errors.Is(err, runtime.ErrDeviceLost))
	}
	return err
}

// probeTime is how long a device may take to show that it works, if attempts have no limit.
const probeTime = 30 * time.Second

// Suspend makes a device rest as if it had failed, for maintenance for example: it gets no new units until its
// cool-down is over. A name that is not one of the Runner's is [runtime.ErrInvalidArgument].
func (r *Runner) Suspend(name string) error {
	return r.named(name, func(d *standby) { r.take(d, errSuspended) })
}

// Resume ends a device's rest at the next unit, which first tries whether it works. A name that is not one of the
// Runner's is [runtime.ErrInvalidArgument].
func (r *Runner) Resume(name string) error {
	return r.named(name, func(d *standby) {
		if d.rest != nil {
			d.rest.until = time.Time{}
		}
	})
}

var errSuspended = errors.New("suspended")

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

// attempt calls work once, with a limit unless it is 0. The handle is that on which it was; nil if none was opened.
func (r *Runner) attempt(ctx context.Context, d *standby, trim bool, limit time.Duration,
	work func(context.Context, *runtime.Device) error) (h *handle, err error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		limited, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	h, err = r.open(limited, d)
	if err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: it did not open within %v: %w", driver.ErrTimeout, limit, err)
		}
		return h, err
	}
	if trim {
		_, _ = h.dev.Memory().Trim(0) // the work finds out whether that was enough
	}
	var gone atomic.Bool // the device was given up
	given := make(chan struct{})
	stop := func() bool { return true }
	giveUp := func() {
		if ctx.Err() == nil {
			_ = h.dev.Abandon(fmt.Errorf("no end within %v: %w", limit, driver.ErrTimeout)) // or it was lost before
			gone.Store(true)
		}
	}
	if limit > 0 {
		// While work still runs: what it waits for, also in its deferred calls, may end only with the device.
		stop = context.AfterFunc(limited, func() {
			defer close(given)
			giveUp()
		})
	}
	defer func() {
		if !stop() {
			<-given
		} else if err != nil && limit > 0 && limited.Err() != nil { // work has ended before the function began
			giveUp()
		}
		if gone.Load() && err != nil {
			err = fmt.Errorf("no end within %v: %w: %w: %w", limit, driver.ErrTimeout, runtime.ErrDeviceLost, err)
		}
		gone := gone.Load() || errors.Is(err, runtime.ErrDeviceLost)
		if closed := h.closed(); closed != nil { // so that the next unit gets it open
			if err != nil { // in words, as it is no failure of the device
				closed = fmt.Errorf("%w; the unit has returned: %v", closed, err)
			}
			err, gone = closed, true
		}
		r.release(d, h, gone)
	}()
	return h, work(limited, h.dev)
}

// state returns the error of calls on the device, if it is lost or was closed.
func (h *handle) state() error {
	err := h.dev.Enter("unit")
	if err == nil {
		h.dev.Leave()
	}
	return err
}

// closed returns an error if a unit has closed the device, which is not the unit's.
func (h *handle) closed() error {
	if !errors.Is(h.state(), runtime.ErrClosed) {
		return nil
	}
	return fmt.Errorf("cluster: a unit has closed %s, which is the Runner's: %w", h.dev, runtime.ErrInvalidArgument)
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

// open returns a device for a unit, which calls release. What has failed on the device's own stream is forgotten first,
// once no unit uses the device any more: under a unit that has work there, that would be lost unseen.
func (r *Runner) open(ctx context.Context, d *standby) (*handle, error) {
	select {
	case d.opening <- struct{}{}:
		defer func() { <-d.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for {
		r.mu.Lock()
		h := d.use
		if h == nil {
			r.mu.Unlock()
			break
		}
		failed := h.dev.Stream().Err()
		if failed == nil || errors.Is(failed, runtime.ErrDeviceLost) {
			h.units++
			r.mu.Unlock()
			return h, nil
		}
		if h.units == 0 {
			h.units++
			r.mu.Unlock()
			if err := h.dev.Stream().Reset(); err != nil {
				r.release(d, h, errors.Is(err, runtime.ErrDeviceLost))
				return nil, err
			}
			return h, nil
		}
		if h.left == nil {
			h.left = make(chan struct{})
		}
		left := h.left
		r.mu.Unlock()
		select {
		case <-left:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
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

// release ends a unit's use of a device. One that is lost will be opened anew.
func (r *Runner) release(d *standby, h *handle, lost bool) {
	r.mu.Lock()
	h.units--
	if h.lost = h.lost || lost; h.lost && d.use == h {
		d.use = nil
	}
	if h.units == 0 && h.left != nil {
		close(h.left)
		h.left = nil
	}
	last := h.units == 0 && h.lost
	r.mu.Unlock()
	if last {
		_ = h.dev.Close() // what it says is why it was lost
	}
}
