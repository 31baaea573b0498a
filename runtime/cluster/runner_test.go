package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// clock is a time that passes only by pauses and by hand.
type clock struct {
	mu     sync.Mutex
	at     time.Time
	pauses []time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func (c *clock) pause(ctx context.Context, d time.Duration) error {
	c.pass(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pauses = append(c.pauses, d)
	return ctx.Err()
}

// runner returns a Runner by a clock.
func runner(t *testing.T, o Failover, names ...string) (*Runner, *clock) {
	t.Helper()
	r, err := o.NewRunner(t.Context(), names...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	c := &clock{at: time.Unix(1e9, 0)}
	r.now, r.pause = c.now, c.pause
	return r, c
}

// failing returns work that returns errors for a device, one after the other, and then succeeds, as on all others; and
// where it ran.
func failing(on string, errs ...error) (work func(context.Context, *runtime.Device) error, ran *[]string) {
	ran = new([]string)
	return func(_ context.Context, dev *runtime.Device) error {
		*ran = append(*ran, dev.String())
		if dev.String() != on || len(errs) == 0 {
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		return err
	}, ran
}

func kinds(events []Event) (list []EventKind) {
	for _, e := range events {
		list = append(list, e.Kind)
	}
	return list
}

// TestRunnerMoves has the first device fail in every way: what may be tried again is, and the next device gets the
// rest.
func TestRunnerMoves(t *testing.T) {
	open(t, "opencl:0") // or skip
	const first, second = "opencl:0", "cpu:0"
	wrong := fmt.Errorf("planted: %w", runtime.ErrInvalidArgument)
	for _, test := range []struct {
		errs   []error
		ran    []string
		pauses []time.Duration
		reason string
		err    error
	}{
		{ran: []string{first}},
		{errs: []error{runtime.ErrLaunch}, ran: []string{first, first}, pauses: []time.Duration{100e6}},
		{errs: []error{runtime.ErrLaunch, driver.ErrTimeout}, ran: []string{first, first, first},
			pauses: []time.Duration{100e6, 200e6}},
		{errs: []error{runtime.ErrLaunch, runtime.ErrLaunch, runtime.ErrLaunch, runtime.ErrLaunch},
			ran:    []string{first, first, first, first, second},
			pauses: []time.Duration{100e6, 200e6, 400e6}, reason: "repeated failures"},
		{errs: []error{runtime.ErrOutOfMemory}, ran: []string{first, first}},
		{errs: []error{runtime.ErrOutOfMemory, runtime.ErrOutOfMemory}, ran: []string{first, first, second},
			reason: "memory exhausted"},
		{errs: []error{driver.ErrTooLarge}, ran: []string{first, second}, reason: "memory exhausted"},
		{errs: []error{runtime.ErrDeviceLost}, ran: []string{first, second}, reason: "device lost"},
		{errs: []error{runtime.ErrCompile}, ran: []string{first, second}, reason: "program did not build"},
		{errs: []error{runtime.ErrUnsupported}, ran: []string{first, second}, reason: "not supported"},
		{errs: []error{wrong}, ran: []string{first}, err: wrong},
		{errs: []error{runtime.ErrClosed}, ran: []string{first}, err: runtime.ErrClosed},
	} {
		r, c := runner(t, Failover{}, first)
		before := r.session.Fallbacks()
		work, ran := failing(first, test.errs...)
		err := r.Run(t.Context(), "test", work)
		assert.Equal(t, test.err == nil, err == nil, "%v", err)
		if test.err != nil {
			assert.ErrorIs(t, err, test.err)
		}
		assert.Equal(t, test.ran, *ran, "%v", test.errs)
		assert.Equal(t, test.pauses, c.pauses, "%v", test.errs)
		want := RunnerStats{Units: 1}
		if test.err != nil {
			want.Units = 0
		}
		if test.reason != "" {
			want.Fallbacks = 1
			assert.Equal(t, []EventKind{Started, Completed}, kinds(r.Events()))
			e := r.Events()[0]
			assert.Equal(t, []string{first, second, test.reason, "test"}, []string{e.From, e.To, e.Reason, e.Op})
			assert.ErrorIs(t, e.Err, test.errs[0])
			assert.Equal(t, "failover started: test leaves opencl:0 for cpu:0: "+test.reason, e.String())
		} else {
			assert.Empty(t, r.Events())
		}
		want.Retries = int64(len(test.ran)) - 1 - want.Fallbacks
		assert.Equal(t, want, r.Stats(), "%v", test.errs)
		assert.Equal(t, before+want.Fallbacks, r.session.Fallbacks())
	}
}

// TestRunnerWindow tells a sliding window of failures from a gap between them, and retries from units.
func TestRunnerWindow(t *testing.T) {
	open(t, "opencl:0")
	r, c := runner(t, Failover{}, "opencl:0")
	fails := func(times int) {
		errs := make([]error, times)
		for i := range errs {
			errs[i] = driver.ErrTooLarge
		}
		work, _ := failing("opencl:0", errs...)
		require.NoError(t, r.Run(t.Context(), "test", work))
	}
	for range 10 { // two in 30 s, for ever
		fails(1)
		assert.True(t, r.Devices()[0].Until.IsZero())
		c.pass(16 * time.Second)
	}
	c.pass(time.Minute)
	fails(1)
	c.pass(14 * time.Second)
	fails(1)
	c.pass(15 * time.Second)
	assert.True(t, r.Devices()[0].Until.IsZero())
	fails(1) // the third in 29 s
	assert.Equal(t, c.now().Add(time.Minute), r.Devices()[0].Until)

	work, ran := failing("opencl:0")
	c.pass(time.Minute - 1)
	require.NoError(t, r.Run(t.Context(), "test", work))
	assert.Equal(t, []string{"cpu:0"}, *ran, "it rests")
	c.pass(1)
	require.NoError(t, r.Run(t.Context(), "test", work))
	assert.Equal(t, []string{"cpu:0", "opencl:0"}, *ran, "it works again")
	assert.Equal(t, Restored, r.Events()[len(r.Events())-1].Kind)
	assert.Equal(t, Healthy, r.Devices()[0].State)
}

// TestRunnerProbe has a device that still fails after each rest: it does not get one unit, and rests again.
func TestRunnerProbe(t *testing.T) {
	if goruntime.GOOS == "darwin" {
		t.Skip("metal:0 may be there")
	}
	r, c := runner(t, Failover{}, "cpu:0")
	r.devices = append([]*standby{{name: "metal:0", opening: make(chan struct{}, 1)}}, r.devices...)
	work, ran := failing("")
	for range 5 {
		require.NoError(t, r.Run(t.Context(), "test", work))
		c.pass(time.Second)
	}
	require.False(t, r.Devices()[0].Until.IsZero())
	c.pass(2 * time.Minute)
	for range 3 {
		require.NoError(t, r.Run(t.Context(), "test", work))
		assert.Equal(t, c.now().Add(time.Minute), r.Devices()[0].Until, "it rests again at once")
		c.pass(time.Minute)
	}
	for _, name := range *ran {
		assert.Equal(t, "cpu:0", name)
	}
	assert.EqualValues(t, 8, r.Stats().Fallbacks)
	assert.NotContains(t, kinds(r.Events()), Restored)
}

// TestRunnerExhausted has all devices fail: the error says so, and why each of them did.
func TestRunnerExhausted(t *testing.T) {
	open(t, "opencl:0")
	r, _ := runner(t, Failover{}, "opencl:0")
	err := r.Run(t.Context(), "test", func(_ context.Context, dev *runtime.Device) error {
		if dev.String() == "cpu:0" {
			return driver.ErrTooLarge
		}
		return runtime.ErrDeviceLost
	})
	assert.ErrorIs(t, err, driver.ErrAllBackendsExhausted)
	assert.ErrorIs(t, err, runtime.ErrDeviceLost)
	assert.ErrorIs(t, err, driver.ErrTooLarge)
	assert.ErrorContains(t, err, "opencl:0: device lost")
	assert.Equal(t, []EventKind{Started, Failed, Exhausted}, kinds(r.Events()))
	assert.Equal(t, RunnerStats{Exhausted: 1}, r.Stats())
}

// TestRunnerLost loses a device in earnest while several units are on it: all of them end on another one, and the
// device works again after its rest.
func TestRunnerLost(t *testing.T) {
	open(t, "opencl:0")
	r, c := runner(t, Failover{}, "opencl:0")
	var wg sync.WaitGroup
	var lost, on atomic.Int32
	for range 4 {
		wg.Go(func() {
			err := r.Run(t.Context(), "test", func(ctx context.Context, dev *runtime.Device) error {
				if dev.String() == "opencl:0" {
					on.Add(1)
					for i := 0; on.Load() < 4 && i < 1000; i++ { // all are on it
						time.Sleep(time.Millisecond)
					}
					if lost.Add(1) == 1 {
						assert.NoError(t, dev.Abandon(errors.New("planted")))
					}
				}
				return works(ctx, dev)
			})
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	assert.EqualValues(t, 4, r.Stats().Units)
	assert.Positive(t, r.Stats().Fallbacks)
	assert.Equal(t, Lost, r.Devices()[0].State)
	c.pass(time.Minute)
	work, ran := failing("")
	require.NoError(t, r.Run(t.Context(), "test", work))
	assert.Equal(t, []string{"opencl:0"}, *ran)
}

// TestRunnerHangs has a kernel that does not end, and work that waits for it even when its context is over, as closing
// a stream does: the device is given up, and the next one does the unit. Two units hang at once.
func TestRunnerHangs(t *testing.T) {
	open(t, "opencl:0")
	r, c := runner(t, Failover{Timeout: 300 * time.Millisecond}, "opencl:0")
	release := make(chan struct{})
	defer close(release)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			assert.NoError(t, r.Run(t.Context(), "test", func(ctx context.Context, dev *runtime.Device) error {
				if dev.String() == "cpu:0" {
					return nil
				}
				s, err := dev.NewStream()
				if err != nil {
					return err
				}
				defer s.Close()
				for dev.Enter("test") == nil { // until the device is gone, whatever the context says
					dev.Leave()
					time.Sleep(time.Millisecond)
				}
				return s.Sync(ctx)
			}))
		})
	}
	wg.Wait()
	assert.EqualValues(t, 2, r.Stats().Units)
	for _, e := range r.Events() {
		if e.Kind == Started {
			assert.Equal(t, "timeout", e.Reason)
			assert.ErrorIs(t, e.Err, runtime.ErrDeviceLost)
		}
	}
	assert.Equal(t, Lost, r.Devices()[0].State)
	c.pass(time.Minute)
	work, ran := failing("")
	require.NoError(t, r.Run(t.Context(), "test", work))
	assert.Equal(t, []string{"opencl:0"}, *ran, "opened anew")

	before := len(r.Events())
	ctx, cancel := context.WithCancel(t.Context())
	err := r.Run(ctx, "test", func(context.Context, *runtime.Device) error {
		cancel()
		return ctx.Err()
	})
	assert.ErrorIs(t, err, context.Canceled)
	assert.Len(t, r.Events(), before, "the caller's end is no failure")
	assert.Equal(t, Healthy, r.Devices()[0].State)
}

// TestRunnerStreams has a write of one unit fail on the device's own stream while another one is there: both are
// repeated on a stream that takes work, and none gets the other's error or reads what was not written.
func TestRunnerStreams(t *testing.T) {
	r, _ := runner(t, Failover{}, "cpu:0")
	r.pause = pause
	var failed atomic.Bool
	var here atomic.Int32
	unit := func(value float32) func(context.Context, *runtime.Device) error {
		return func(ctx context.Context, dev *runtime.Device) error {
			here.Add(1)
			for i := 0; here.Load() < 2 && i < 100; i++ {
				time.Sleep(time.Millisecond)
			}
			if value == 1 && !failed.Swap(true) {
				misbehave(t, &Member{dev: dev}, dev.Stream(), func() error { return errors.New("planted") })
			}
			x, err := runtime.Upload(ctx, dev, []float32{value, value})
			if err != nil {
				return err
			}
			defer x.Close()
			got := make([]float32, 2)
			if err := runtime.Read(ctx, x, got); err != nil {
				return err
			}
			assert.Equal(t, []float32{value, value}, got)
			return nil
		}
	}
	var wg sync.WaitGroup
	for v := range 2 {
		wg.Go(func() { assert.NoError(t, r.Run(t.Context(), "test", unit(float32(v+1)))) })
	}
	wg.Wait()
	assert.EqualValues(t, 2, r.Stats().Units)
	assert.Positive(t, r.Stats().Retries)
}

// TestRunnerAfterProbe has a device pass its probe and fail at the unit: that counts as any failure.
func TestRunnerAfterProbe(t *testing.T) {
	open(t, "opencl:0")
	r, c := runner(t, Failover{}, "opencl:0")
	require.NoError(t, r.Suspend("opencl:0"))
	c.pass(time.Minute)
	work, ran := failing("opencl:0", runtime.ErrLaunch, runtime.ErrDeviceLost)
	require.NoError(t, r.Run(t.Context(), "test", work))
	assert.Equal(t, []string{"opencl:0", "opencl:0", "cpu:0"}, *ran, "with a retry")
	assert.Equal(t, c.now().Add(time.Minute), r.Devices()[0].Until)
	assert.Equal(t, Lost, r.Devices()[0].State)
	require.NoError(t, r.Resume("opencl:0"))
	require.NoError(t, r.Run(t.Context(), "test", work))
	assert.Equal(t, "opencl:0", (*ran)[3])

	// What begins to rest while it is tried goes on to rest.
	require.NoError(t, r.Suspend("opencl:0"))
	require.NoError(t, r.Resume("opencl:0"))
	try, err := r.admit(r.devices[0])
	require.NoError(t, err)
	require.NoError(t, r.Suspend("opencl:0"))
	require.NoError(t, r.restore(t.Context(), r.devices[0], try))
	assert.False(t, r.Devices()[0].Until.IsZero())
}

// TestRunnerTell has a function for events that blocks, and panics: no unit waits for it, and it gets the later ones.
func TestRunnerTell(t *testing.T) {
	release := make(chan struct{})
	var told []Event
	done := make(chan struct{})
	r, c := runner(t, Failover{Tell: func(e Event) {
		<-release
		if told = append(told, e); len(told) == 101 {
			close(done)
		}
		panic("planted")
	}}, "cpu:0")
	for i := range 151 {
		require.NoError(t, r.Suspend("cpu:0"))
		c.pass(time.Hour)
		require.NoError(t, r.Run(t.Context(), fmt.Sprint(i), func(context.Context, *runtime.Device) error { return nil }))
		for i == 0 { // until the first one is being told
			r.mu.Lock()
			begun := len(r.untold) == 0
			r.mu.Unlock()
			if begun {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	assert.Len(t, r.Events(), 100)
	close(release)
	<-done
	assert.Equal(t, r.Events(), told[1:], "the oldest that wait are left out")
	assert.ErrorIs(t, r.Suspend("cuda:77"), runtime.ErrInvalidArgument)
}

// TestRunnerRequire stays on the device with the policy that wants it, also while it rests.
func TestRunnerRequire(t *testing.T) {
	open(t, "opencl:0")
	session, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	defer func() { assert.NoError(t, session.Close()) }()
	r, _ := runner(t, Failover{Session: session}, "opencl:0", "cpu:0")
	work, ran := failing("opencl:0", runtime.ErrDeviceLost)
	for range 2 {
		assert.ErrorIs(t, r.Run(t.Context(), "test", work), runtime.ErrDeviceLost)
	}
	assert.Equal(t, []string{"opencl:0"}, *ran)
	assert.NoError(t, r.Close())
}

// TestRunnerRefuses has arguments that make no sense, and a panic of the caller's.
func TestRunnerRefuses(t *testing.T) {
	for _, names := range [][]string{{"cpu:0", "cpu:0"}, {"abacus:0"}, {"cpu:99"}} {
		_, err := NewRunner(t.Context(), names...)
		assert.Error(t, err, names)
	}
	_, err := Failover{Failures: -1}.NewRunner(t.Context())
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	r, _ := runner(t, Failover{})
	assert.ErrorIs(t, r.Run(t.Context(), "test", nil), runtime.ErrInvalidArgument)
	assert.PanicsWithValue(t, "planted", func() {
		_ = r.Run(t.Context(), "test", func(context.Context, *runtime.Device) error { panic("planted") })
	})
	require.NoError(t, r.Close(), "nothing waits for the unit that panicked")
	assert.ErrorIs(t, r.Run(t.Context(), "test", func(context.Context, *runtime.Device) error { return nil }),
		runtime.ErrClosed)
}

// TestRunnerSeeds has units of several goroutines on devices that fail at random: each is done once, by one device, or
// returns a typed error.
func TestRunnerSeeds(t *testing.T) {
	open(t, "opencl:0")
	seeds := 200
	if testing.Short() {
		seeds = 40
	}
	faults := []error{runtime.ErrLaunch, driver.ErrTimeout, runtime.ErrOutOfMemory, runtime.ErrDeviceLost,
		driver.ErrTooLarge, runtime.ErrCompile}
	for seed := range seeds {
		r, c := runner(t, Failover{}, "opencl:0")
		const workers, units = 3, 12
		var done [workers][units]int32
		var failed atomic.Int64
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(seed), uint64(w)))
				for u := range units {
					c.pass(time.Duration(rnd.IntN(40)) * time.Second)
					err := r.Run(t.Context(), "test", func(ctx context.Context, dev *runtime.Device) error {
						odds := 0.5
						if dev.String() == "cpu:0" {
							odds = 0.1
						}
						if rnd.Float64() < odds {
							return fmt.Errorf("planted: %w", faults[rnd.IntN(len(faults))])
						}
						done[w][u]++
						return nil
					})
					if err != nil {
						assert.ErrorIs(t, err, driver.ErrAllBackendsExhausted, "seed %d", seed)
						done[w][u]++
						failed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		for w := range done {
			for u := range done[w] {
				require.EqualValues(t, 1, done[w][u], "seed %d, unit %d of %d", seed, u, w)
			}
		}
		stats := r.Stats()
		assert.Equal(t, failed.Load(), stats.Exhausted)
		assert.EqualValues(t, workers*units, stats.Units+stats.Exhausted, "seed %d", seed)
		for _, d := range r.devices {
			if d.use != nil {
				assert.Zero(t, d.use.units, "seed %d: %s is still in use", seed, d.name)
			}
		}
		require.NoError(t, r.Close())
	}
}
