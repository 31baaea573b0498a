package cluster

// Runner, which does work on the first device that can, and its circuit breakers.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// Failover are the settings of a [Runner]. The zero value is the default.
type Failover struct {
	// Failures within Window make a device rest for CoolDown, during which it gets no work; a lost device rests at once.
	// 0 means 3 failures, 30 s and 60 s.
	Failures         int
	Window, CoolDown time.Duration
	// Timeout is how long one attempt may take. A device on which one takes longer is given up: see
	// runtime.Device.Abandon. 0 means no limit.
	Timeout time.Duration
	// Tell is called for every event, in their order, one call at a time, in a goroutine of its own: it may block, and
	// what it panics with is logged. Of more than 100 events that wait for it the oldest are left out. nil: none.
	Tell func(Event)
}

func (o Failover) filled() Failover {
	o.Failures = cmp.Or(o.Failures, 3)
	o.Window = cmp.Or(o.Window, 30*time.Second)
	o.CoolDown = cmp.Or(o.CoolDown, time.Minute)
	return o
}

// The retries on one device: as often, after pauses of 100 ms that double.
const (
	retries     = 3
	firstPause  = 100 * time.Millisecond
	longestWait = 5 * time.Second
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
// A device that has failed several times, or was lost, rests: it gets no work for a while. After that one unit at a
// time tries it first with a small kernel, whose result is checked; if that fails it rests again.
//
// A Runner is safe for concurrent use; its devices do the units of several goroutines at once.
type Runner struct {
	o       Failover
	session *runtime.Session
	devices []*standby
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

// standby is a device of a Runner.
type standby struct {
	name   string
	health health

	opening sync.Mutex // held while it is opened or tried

	// These are guarded by the runner's lock.
	use      *handle     // nil before it is opened, and after it was lost
	failures []time.Time // of the last Window
	rests    bool
	until    time.Time
	tried    bool // a unit finds out whether it works again
	last     error
}

// handle is an open device and the number of units that use it. The last one of a lost device closes it.
type handle struct {
	dev   *runtime.Device
	units int
	lost  bool
}

// NewRunner returns a Runner for the named devices of the default session, in the order of preference. "cuda:*" stands
// for all devices of a backend. The CPU, cpu:0, comes last, if it is not among them and the policy is not "require". A
// device is opened when it first gets work, and closed by Close. A name that means no device is an error.
func NewRunner(ctx context.Context, names ...string) (*Runner, error) {
	return Failover{}.NewRunner(ctx, names...)
}

// NewRunner is the function NewRunner with settings. Negative ones are [runtime.ErrInvalidArgument].
func (o Failover) NewRunner(ctx context.Context, names ...string) (*Runner, error) {
	if o.Failures < 0 || o.Window < 0 || o.CoolDown < 0 || o.Timeout < 0 {
		return nil, fmt.Errorf("cluster: settings of failover are negative: %w", runtime.ErrInvalidArgument)
	}
	session, err := runtime.Default()
	if err != nil {
		return nil, err
	}
	infos, err := session.Devices(ctx)
	if err != nil {
		return nil, err
	}
	r := &Runner{o: o.filled(), session: session, now: time.Now, pause: pause}
	for _, pattern := range names {
		list, err := expand(ctx, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range list {
			if err := r.add(name, infos); err != nil {
				return nil, err
			}
		}
	}
	const last = "cpu:0"
	if session.Config().Fallback != runtime.Require || len(r.devices) == 0 {
		if !r.has(last) {
			r.devices = append(r.devices, &standby{name: last})
		}
	}
	return r, nil
}

// add adds a device. Simulated ones, which are in no list, are known once they are opened.
func (r *Runner) add(name string, infos []runtime.Info) error {
	if r.has(name) {
		return fmt.Errorf("cluster: %s is named twice: %w", name, runtime.ErrInvalidArgument)
	}
	known := strings.HasPrefix(name, "sim-")
	for i := range infos {
		known = known || infos[i].ID == name
	}
	if !known {
		return fmt.Errorf("cluster: %s: %w", name, runtime.ErrNoDevice)
	}
	r.devices = append(r.devices, &standby{name: name})
	return nil
}

func (r *Runner) has(name string) bool {
	for _, d := range r.devices {
		if d.name == name {
			return true
		}
	}
	return false
}

// Run does a unit of work: it calls work with a device until one call succeeds, as [Runner] says, and returns its
// error otherwise. If several devices have failed the error matches driver.ErrAllBackendsExhausted and all of theirs.
//
// Every call of work begins anew, from data of the host, with buffers, streams and programs of its own on the device
// that it gets, which stays the Runner's; it returns when its work is done, and leaves nothing outside that a call that
// fails later would have to take back. It heeds its context. op names the work in events and in logs.
func (r *Runner) Run(ctx context.Context, op string, work func(ctx context.Context, dev *runtime.Device) error) error {
	if r == nil || ctx == nil || work == nil {
		return fmt.Errorf("cluster: %s: runner, context or work is nil: %w", op, runtime.ErrInvalidArgument)
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return fmt.Errorf("cluster: runner: %w", runtime.ErrClosed)
	}
	r.units.Add(1)
	r.mu.Unlock()
	defer r.units.Done()
	var causes []error
	var from *standby // that has failed in this call
	var since time.Time
	for i, d := range r.devices {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(causes, err)...)
		}
		try, resting := r.admit(d)
		if resting != nil {
			causes = append(causes, resting)
			continue
		}
		if i > 0 {
			r.session.FellBack(d.name, op, errors.Join(causes...))
		}
		move := Event{Op: op, To: d.name}
		if from != nil {
			move.From, move.Reason, move.Err = from.name, reasonOf(causes[len(causes)-1]), causes[len(causes)-1]
			r.tell(move.as(Started))
		} else {
			since = r.now()
		}
		err := r.on(ctx, d, try, work)
		if err == nil {
			r.count(func(s *RunnerStats) {
				s.Units++
				s.Fallbacks += int64(min(i, 1))
			})
		}
		if from != nil {
			move.Took, move.Err = r.now().Sub(since), err
			if err == nil {
				r.tell(move.as(Completed))
			} else {
				r.tell(move.as(Failed))
			}
		}
		if err == nil || ctx.Err() != nil || !r.session.MayFallBack(err) {
			return err
		}
		causes = append(causes, fmt.Errorf("%s: %w", d.name, err))
		from, since = d, r.now()
	}
	r.count(func(s *RunnerStats) { s.Exhausted++ })
	err := fmt.Errorf("cluster: %s: %w: %w", op, driver.ErrAllBackendsExhausted, errors.Join(causes...))
	r.tell(Event{Kind: Exhausted, Op: op, Err: err})
	return err
}

func (r *Runner) count(f func(s *RunnerStats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.stats)
}

// on does a unit on one device, with retries.
func (r *Runner) on(ctx context.Context, d *standby, try bool,
	work func(context.Context, *runtime.Device) error) error {
	trimmed, wait := false, firstPause
	for attempt := 0; ; attempt++ {
		err := r.attempt(ctx, d, try, work)
		if err == nil {
			d.health.did(nil, r.now())
			return nil
		}
		if try || ctx.Err() != nil || !driver.OfDevice(err) {
			return err
		}
		if r.failed(d, err) {
			return err
		}
		memory := errors.Is(err, runtime.ErrOutOfMemory)
		again := errors.Is(err, runtime.ErrLaunch) || errors.Is(err, driver.ErrTimeout)
		switch {
		case memory && !trimmed && !errors.Is(err, driver.ErrTooLarge):
			trimmed = true // by the attempt that follows
		case again && attempt < retries:
			if r.pause(ctx, wait) != nil {
				return err
			}
			wait = min(2*wait, longestWait)
		default:
			return err
		}
		r.count(func(s *RunnerStats) { s.Retries++ })
		r.ready(d, memory)
	}
}
