package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// TestRunnerClosedByUnit has a unit that closes the Runner's device: it returns an error that says so, and the next
// units have the device, also while the program keeps it open itself.
func TestRunnerClosedByUnit(t *testing.T) {
	session, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, session.Close()) })
	for _, kept := range []bool{false, true} {
		if kept {
			dev, err := session.Open(t.Context(), "cpu:0")
			require.NoError(t, err)
			defer dev.Close()
		}
		r, _ := runner(t, Failover{Session: session}, "cpu:0")
		for _, wrong := range []error{nil, runtime.ErrLaunch} {
			units := 0
			err := r.Run(t.Context(), "test", func(_ context.Context, dev *runtime.Device) error {
				units++
				return errors.Join(dev.Close(), wrong)
			})
			assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
			assert.ErrorContains(t, err, "closed cpu:0")
			assert.Equal(t, 1, units, "no retry")
			require.NoError(t, r.Run(t.Context(), "test", works))
		}
		assert.Equal(t, RunnerStats{Units: 2}, r.Stats())
		assert.Equal(t, Healthy, r.Devices()[0].State)
	}
}

// TestRunnerNames names a device once in an error, whoever has named it first.
func TestRunnerNames(t *testing.T) {
	r, _ := runner(t, Failover{}, "cpu:0")
	for _, cause := range []error{runtime.ErrDeviceLost, &runtime.OpError{Backend: "cpu", Device: "cpu:0", Op: "launch",
		Err: runtime.ErrDeviceLost}} {
		require.NoError(t, r.Resume("cpu:0"))
		for range 2 { // the second finds it at rest
			err := r.Run(t.Context(), "test", func(context.Context, *runtime.Device) error { return cause })
			require.ErrorIs(t, err, runtime.ErrDeviceLost)
			assert.Equal(t, 1, strings.Count(err.Error(), "cpu:0"), err.Error())
		}
	}
}

// TestRunnerLimit has work that ends at once with its context: however the two meet, the device is given up.
func TestRunnerLimit(t *testing.T) {
	session, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, session.Close()) })
	for range 100 {
		r, _ := runner(t, Failover{Session: session, Timeout: time.Millisecond}, "cpu:0")
		err := r.Run(t.Context(), "test", func(ctx context.Context, _ *runtime.Device) error {
			for ctx.Err() == nil { // sooner than by Done
			}
			return ctx.Err()
		})
		require.ErrorIs(t, err, driver.ErrTimeout)
		require.ErrorIs(t, err, runtime.ErrDeviceLost)
		require.NoError(t, r.Close())
	}
}

// teams returns work on a group that notes its members, and fails at member 1 with the errors, one after the other.
func teams(errs ...error) (work func(context.Context, *Group) error, ran *[]string) {
	ran = new([]string)
	return func(ctx context.Context, g *Group) error {
		var names []string
		for _, m := range g.Members() {
			names = append(names, m.Device().String())
		}
		*ran = append(*ran, strings.Join(names, ","))
		var now error
		if len(errs) > 0 && g.Size() > 1 {
			now, errs = errs[0], errs[1:]
		}
		return g.Do(ctx, func(ctx context.Context, m *Member) error {
			if now != nil && m.Rank() == 1 {
				return now
			}
			return m.Barrier(ctx, nil)
		})
	}, ran
}

// TestRunGroup has a member fail in every way: what may be tried again is, and fewer members do the rest.
func TestRunGroup(t *testing.T) {
	open(t, "opencl:0") // or skip
	const both, first = "opencl:0,cpu:0", "opencl:0"
	wrong := runtime.ErrInvalidArgument
	for _, test := range []struct {
		errs []error
		ran  []string
		err  error
	}{
		{ran: []string{both}},
		{errs: []error{runtime.ErrLaunch}, ran: []string{both, both}},
		{errs: []error{runtime.ErrOutOfMemory, runtime.ErrOutOfMemory}, ran: []string{both, both, first}},
		{errs: []error{runtime.ErrLaunch, runtime.ErrLaunch, runtime.ErrLaunch, runtime.ErrLaunch},
			ran: []string{both, both, both, both, first}},
		{errs: []error{runtime.ErrDeviceLost}, ran: []string{both, first}},
		{errs: []error{wrong}, ran: []string{both}, err: wrong},
	} {
		r, _ := runner(t, Failover{}, "opencl:0", "cpu:0")
		work, ran := teams(test.errs...)
		err := r.RunGroup(deadline(t), "test", Options{}, work)
		assert.Equal(t, test.ran, *ran, "%v", test.errs)
		if test.err != nil {
			assert.ErrorIs(t, err, test.err)
			assert.Zero(t, r.Stats().Units)
			continue
		}
		require.NoError(t, err)
		want := RunnerStats{Units: 1}
		if last := test.ran[len(test.ran)-1]; last != both {
			want.Fallbacks = 1
			assert.Equal(t, []EventKind{Started, Completed}, kinds(r.Events()))
			assert.Equal(t, []string{"cpu:0", last}, []string{r.Events()[0].From, r.Events()[0].To})
		} else {
			assert.Empty(t, r.Events())
		}
		want.Retries = int64(len(test.ran)) - 1 - want.Fallbacks
		assert.Equal(t, want, r.Stats(), "%v", test.errs)
		for _, d := range r.devices {
			assert.Zero(t, d.use.units, "%s is still in use", d.name)
		}
	}
}

// TestRunGroupAtRest leaves out a device that rests from the beginning, and takes the CPU where no named one is left.
func TestRunGroupAtRest(t *testing.T) {
	open(t, "opencl:0")
	r, c := runner(t, Failover{}, "opencl:0", "cpu:0")
	require.NoError(t, r.Suspend("cpu:0"))
	work, ran := teams()
	require.NoError(t, r.RunGroup(deadline(t), "test", Options{}, work))
	c.pass(2 * time.Minute)
	require.NoError(t, r.RunGroup(deadline(t), "test", Options{}, work))
	r, _ = runner(t, Failover{}, "opencl:0")
	require.NoError(t, r.Suspend("opencl:0"))
	require.NoError(t, r.RunGroup(deadline(t), "test", Options{}, work))
	assert.Equal(t, []string{"opencl:0", "opencl:0,cpu:0", "cpu:0"}, *ran)
}

// TestRunGroupRequire has all members or none with the policy that wants them.
func TestRunGroupRequire(t *testing.T) {
	open(t, "opencl:0")
	session, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, session.Close()) })
	r, _ := runner(t, Failover{Session: session}, "opencl:0", "cpu:0")
	work, ran := teams(runtime.ErrDeviceLost)
	for range 2 {
		assert.ErrorIs(t, r.RunGroup(deadline(t), "test", Options{}, work), runtime.ErrDeviceLost)
	}
	assert.Equal(t, []string{"opencl:0,cpu:0"}, *ran)
	assert.Zero(t, r.Stats().Fallbacks)
	require.NoError(t, r.Close())
}

// TestRunGroupHangs has a member that never comes: it is given up, and the other one does the work.
func TestRunGroupHangs(t *testing.T) {
	open(t, "opencl:0")
	session, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, session.Close()) })
	r, _ := runner(t, Failover{Session: session}, "cpu:0", "opencl:0")
	start := time.Now()
	err = r.RunGroup(deadline(t), "test", Options{Timeout: 200 * time.Millisecond}, func(ctx context.Context,
		g *Group) error {
		return g.Do(ctx, func(ctx context.Context, m *Member) error {
			if m.Rank() == 1 {
				for m.Device().Enter("test") == nil { // until it is given up
					m.Device().Leave()
					time.Sleep(time.Millisecond)
				}
				return errors.New("it was given up")
			}
			return m.Barrier(ctx, nil)
		})
	})
	require.NoError(t, err)
	assert.Less(t, time.Since(start), 20*time.Second)
	assert.ErrorIs(t, r.Events()[0].Err, driver.ErrTimeout)
	assert.Equal(t, "timeout", r.Events()[0].Reason)
	assert.Equal(t, Lost, r.Devices()[1].State)
}

// TestRunGroupOfAnother has work that returns the error of a larger group than the Runner's: no device gets the blame.
func TestRunGroupOfAnother(t *testing.T) {
	open(t, "opencl:0")
	r, _ := runner(t, Failover{}, "opencl:0", "cpu:0")
	for _, rank := range []int{-1, 2} {
		other := &MemberError{Rank: rank, Err: runtime.ErrLaunch}
		err := r.RunGroup(deadline(t), "test", Options{}, func(context.Context, *Group) error { return other })
		require.ErrorIs(t, err, other)
		var named *MemberError
		require.ErrorAs(t, virtual(t, 2, Options{}).Members()[1].Fail(other), &named)
		assert.Equal(t, 1, named.Rank)
	}
	for _, d := range r.Devices() {
		assert.Zero(t, d.Failures)
	}
}
