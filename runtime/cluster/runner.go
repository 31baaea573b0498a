package cluster

// Runner, which does work on the first device that can.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// Failover are the settings of a [Runner]. The zero value is the default.
type Failover struct {
	// Session has the devices, and the policy: Config.Fallback. nil is the default session.
	Session *runtime.Session
	// Failures of units within Window make a device rest for CoolDown, during which it gets no work; a lost device
	// rests at once. 0 means 3 failures, 30 s and 60 s.
	Failures         int
	Window, CoolDown time.Duration
	// Timeout is how long one attempt may take. A device on which one takes longer is given up: see
	// runtime.Device.Abandon. A call that waits in the driver at that time is waited for, as another attempt beside it
	// could do the unit twice. 0 means no limit.
	Timeout time.Duration
	// Tell is called for every event, in their order, one call at a time, in a goroutine of its own: it may block, and
	// the first of its panics is logged. Of more than 100 events that wait for it the oldest are left out. It may be
	// called after Close. nil: none.
	Tell func(Event)
}

func (o Failover) filled() Failover {
	o.Failures = cmp.Or(o.Failures, 3)
	o.Window = cmp.Or(o.Window, 30*time.Second)
	o.CoolDown = cmp.Or(o.CoolDown, time.Minute)
	return o
}

// The retries on one device: how many, after a pause that doubles.
const (
	retries    = 3
	firstPause = 100 * time.Millisecond
)

// Runner does units of work on the first of several devices that can do them. Where a device fails it repeats the unit,
// on the same device or on the next one, as the policy of the session allows (runtime.Config.Fallback):
//
//   - A failed launch and a timeout are tried again, 3 times at most, after 100, 200 and 400 ms.
//   - Without enough memory, what the device's pool keeps is freed, and the unit is tried once again.
//   - Then, and at once after all other errors for which runtime.Session.MayFallBack holds, such as a lost device,
//     the next device gets the unit. With the policy "require" there is no next device.
//   - All other errors, such as arguments that make no sense, are returned: another device would answer the same.
//
// A device on which several units have failed, or that was lost, rests: it gets no work for a while. After that one
// unit at a time tries it first with a small kernel, whose result is checked; if that fails it rests again.
//
// A Runner is safe for concurrent use; its devices do the units of several goroutines at once.
type Runner struct {
	o       Failover
	session *runtime.Session
	devices []*standby
	chosen  int // of the devices: those before the CPU that was not named
	now     func() time.Time
	pause   func(ctx context.Context, d time.Duration) error

	units sync.WaitGroup // under way

	mu     sync.Mutex
	closed bool
	stats  RunnerStats
	events []Event // the last ones
	untold []Event // that Tell has not been called for
	tells  bool    // a goroutine calls it
}

// RunnerStats counts what a Runner has done.
type RunnerStats struct {
	Units     int64 // that succeeded
	Fallbacks int64 // of these, those that another device did than the first
	Retries   int64 // on the same device
	Exhausted int64 // units that no device could do
}

// NewRunner returns a Runner for the named devices of the default session, in the order of preference, with names as
// runtime.Info.ID has them. "cuda:*" stands for all devices of a backend. The CPU, cpu:0, comes last, if it is not
// among them. With the policy "require" the first device does all units of Run. A device is opened when it first gets
// work, and closed by Close. A name that means no device of this machine is [runtime.ErrNoDevice], and says why there
// is none.
func NewRunner(ctx context.Context, names ...string) (*Runner, error) {
	return Failover{}.NewRunner(ctx, names...)
}

// NewRunner is the function NewRunner with settings. Negative ones are [runtime.ErrInvalidArgument].
func (o Failover) NewRunner(ctx context.Context, names ...string) (*Runner, error) {
	if o.Failures < 0 || o.Window < 0 || o.CoolDown < 0 || o.Timeout < 0 {
		return nil, fmt.Errorf("cluster: settings of failover are negative: %w", runtime.ErrInvalidArgument)
	}
	session, err := o.Session, error(nil)
	if session == nil {
		if session, err = runtime.Default(); err != nil {
			return nil, err
		}
	}
	infos, err := session.Devices(ctx)
	if err != nil {
		return nil, err
	}
	last := host(infos)
	known := func(name string) bool {
		return slices.ContainsFunc(infos, func(i runtime.Info) bool { return i.ID == name })
	}
	list, err := Names(ctx, session, names...)
	if err != nil {
		return nil, err
	}
	named, strict := len(list), session.Config().Fallback == runtime.Require
	if last != "" && !slices.Contains(list, last) && (!strict || named == 0) {
		list = append(list, last)
	}
	r := &Runner{o: o.filled(), session: session, chosen: named, now: time.Now, pause: pause}
	for i, name := range list {
		if slices.Contains(list[:i], name) {
			return nil, fmt.Errorf("cluster: %s is named twice: %w", name, runtime.ErrInvalidArgument)
		}
		if !known(name) && !strings.HasPrefix(name, "sim-") { // which are in no list, and known once they are opened
			if err := missing(ctx, session, name); err != nil {
				return nil, fmt.Errorf("cluster: %s: %w", name, err)
			}
		}
		r.devices = append(r.devices, &standby{name: name, opening: make(chan struct{}, 1)})
	}
	if len(r.devices) == 0 {
		return nil, fmt.Errorf("cluster: a runner without a device: %w", runtime.ErrNoDevice)
	}
	return r, nil
}

// host returns the processor that the program runs on among devices: the first that a backend of the host has.
func host(infos []runtime.Info) string {
	for _, b := range driver.Backends() {
		for i := range infos {
			if driver.Describe(b).Host && infos[i].Backend == b.Name() {
				return infos[i].ID
			}
		}
	}
	return ""
}

// Run does a unit of work: it calls work with a device until one call succeeds, as [Runner] says, and returns all
// errors otherwise. If all devices have failed it matches driver.ErrAllBackendsExhausted as well.
//
// Every call of work begins anew, from data of the host, with buffers, streams and programs of its own on the device
// that it gets, which stays the Runner's: a unit that closes it, and others that compute there meanwhile, return
// [runtime.ErrInvalidArgument], and the next one gets it opened anew. work returns when all is done, and leaves nothing
// outside that a call that fails later would have to take back. It heeds its context. op names the work in events and
// in logs.
func (r *Runner) Run(ctx context.Context, op string, work func(ctx context.Context, dev *runtime.Device) error) error {
	if err := r.begin(ctx, op, work == nil); err != nil {
		return err
	}
	defer r.units.Done()
	return r.run(ctx, &unit{op: op}, work)
}

// begin begins a unit, which units.Done ends.
func (r *Runner) begin(ctx context.Context, op string, nothing bool) error {
	if r == nil || ctx == nil || nothing {
		return fmt.Errorf("cluster: %s: runner, context or work is nil: %w", op, runtime.ErrInvalidArgument)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return fmt.Errorf("cluster: runner: %w", runtime.ErrClosed)
	}
	r.units.Add(1)
	return nil
}

// unit is a unit of work under way.
type unit struct {
	op     string
	causes []error    // why devices have not done it
	out    []*standby // that have failed
	left   Event      // of the last one; without From if there is none
}

// move tells that the unit goes on with another device, if one has failed.
func (u *unit) move(r *Runner, to string) {
	if u.left.Op, u.left.To = u.op, to; u.left.From != "" {
		r.tell(u.left.as(Started))
	}
}

// moved tells how that ended.
func (u *unit) moved(r *Runner, err error) {
	if u.left.From == "" {
		return
	}
	end, kind := u.left, Completed
	if end.Took, end.Err = r.now().Sub(end.Time), err; err != nil {
		kind = Failed
	}
	r.tell(end.as(kind))
}

// leave notes that a device has failed.
func (u *unit) leave(r *Runner, d *standby, err error) {
	u.causes, u.out = append(u.causes, d.named(err)), append(u.out, d)
	u.left = Event{Time: r.now(), From: d.name, Reason: reasonOf(err), Err: err}
}

// done counts a unit that succeeded.
func (r *Runner) done(u *unit, on string) {
	r.count(func(s *RunnerStats) {
		s.Units++
		s.Fallbacks += int64(min(len(u.causes), 1))
	})
	if len(u.causes) > 0 {
		r.session.FellBack(on, u.op, errors.Join(u.causes...))
	}
}

// run does a unit on the first device that can, but for those that have failed.
func (r *Runner) run(ctx context.Context, u *unit, work func(context.Context, *runtime.Device) error) error {
	devices := r.devices
	if r.session.Config().Fallback == runtime.Require {
		devices = devices[:1]
	}
	for _, d := range devices {
		if slices.Contains(u.out, d) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return errors.Join(append(u.causes, err)...)
		}
		try, resting := r.admit(d)
		if resting != nil {
			u.causes = append(u.causes, resting)
			continue
		}
		u.move(r, d.name)
		err := r.on(ctx, d, try, work)
		u.moved(r, err)
		if err == nil {
			r.done(u, d.name)
			return nil
		}
		if ctx.Err() != nil || !r.session.MayFallBack(err) {
			return errors.Join(append(u.causes, d.named(err))...)
		}
		u.leave(r, d, err)
	}
	r.count(func(s *RunnerStats) { s.Exhausted++ })
	err := fmt.Errorf("cluster: %s: %w: %w", u.op, driver.ErrAllBackendsExhausted, errors.Join(u.causes...))
	r.tell(Event{Kind: Exhausted, Op: u.op, Err: err})
	return err
}

func (r *Runner) count(f func(s *RunnerStats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.stats)
}

// tries are the attempts of a unit on one device.
type tries struct {
	trimmed bool // what its pool kept was freed before the last one
	paused  int
	wait    time.Duration // the next pause
}

func newTries() *tries { return &tries{wait: firstPause} }

// again reports whether the device may try once more after an error of its own, and waits before that. A context that
// is done meanwhile is the error ended.
func (t *tries) again(ctx context.Context, r *Runner, err error) (yes bool, ended error) {
	lost := errors.Is(err, runtime.ErrDeviceLost)
	memory := errors.Is(err, runtime.ErrOutOfMemory) && !errors.Is(err, driver.ErrTooLarge)
	again := errors.Is(err, runtime.ErrLaunch) || errors.Is(err, driver.ErrTimeout)
	switch {
	case !lost && memory && !t.trimmed:
		t.trimmed = true
	case !lost && again && t.paused < retries:
		if ended := r.pause(ctx, t.wait); ended != nil {
			return false, ended
		}
		t.wait, t.paused = 2*t.wait, t.paused+1
	default:
		return false, nil
	}
	r.count(func(s *RunnerStats) { s.Retries++ })
	return true, nil
}

// on does a unit on one device, with retries, after it has tried the device if that is to be done.
func (r *Runner) on(ctx context.Context, d *standby, try *rest,
	work func(context.Context, *runtime.Device) error) error {
	if try != nil {
		if err := r.restore(ctx, d, try); err != nil {
			return err
		}
	}
	for t := newTries(); ; {
		h, err := r.attempt(ctx, d, t.trimmed, r.o.Timeout, work)
		if err == nil {
			d.health.did(nil, r.now(), false)
			return nil
		}
		if ctx.Err() != nil || !driver.OfDevice(err) {
			return err
		}
		again, ended := t.again(ctx, r, err)
		if ended != nil {
			return errors.Join(err, ended)
		}
		if !again {
			r.failed(d, h, err)
			return err
		}
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
