package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// soon is a timeout of members in these tests.
const soon = 300 * time.Millisecond

// misbehaving is a kernel that does what a test wants: it fails, or hangs.
var misbehaving struct {
	sync.Mutex
	do func() error
}

func init() {
	cpu.Register("cluster-test", "misbehave", func(c *cpu.Call) error {
		misbehaving.Lock()
		do := misbehaving.do
		misbehaving.Unlock()
		return do()
	})
}

// misbehave queues the kernel on a stream.
func misbehave(t testing.TB, m *Member, s *runtime.Stream, do func() error) {
	t.Helper()
	misbehaving.Lock()
	misbehaving.do = do
	misbehaving.Unlock()
	unit, err := source.Parse("kernel void misbehave(global float *x) { x[0] = 0; }", source.Options{Name: "test.cl",
		Family: "cluster-test", Features: m.Device().Features()})
	require.NoError(t, err)
	p, err := m.Device().Program(context.Background(), unit)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	k, err := p.Kernel("misbehave")
	require.NoError(t, err)
	b, err := runtime.Alloc[float32](m.Device(), 1)
	require.NoError(t, err)
	require.NoError(t, s.Launch(k, runtime.Items(1), b))
	require.NoError(t, b.Close())
}

// sums is an all-reduce of a member, out of place, which checks that src is what it was.
func sums(ctx context.Context, m *Member, s *runtime.Stream, n int) error {
	x := numbers[float32](1, m.Rank(), n)
	src, err := runtime.Upload(context.Background(), m.Device(), x)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := runtime.Alloc[float32](m.Device(), n)
	if err != nil {
		return err
	}
	defer dst.Close()
	failed := m.AllReduce(ctx, s, Sum, dst, src)
	after := make([]float32, n)
	if err := runtime.Read(context.Background(), src, after); err == nil && !equal(x, after) {
		return errors.New("src has changed")
	}
	return failed
}

// agreed checks that all errors are one, which names a member and matches what is given.
func agreed(t testing.TB, errs []error, rank int, is ...error) {
	t.Helper()
	var named *MemberError
	for i, err := range errs {
		require.ErrorAs(t, err, &named, "member %d", i)
		assert.Equal(t, rank, named.Rank, "member %d: %v", i, err)
		assert.ErrorIs(t, err, ErrSync)
		assert.Equal(t, errs[0].Error(), err.Error())
		for _, target := range is {
			assert.ErrorIs(t, err, target)
		}
	}
}

// TestMissing has one member that does not come: all others say so, in time, and it says the same when it comes later.
func TestMissing(t *testing.T) {
	g := virtual(t, 4, Options{Timeout: soon})
	start := time.Now()
	errs := do([]*Group{g}, func(m *Member) error {
		if m.Rank() == 2 {
			<-g.failed
		}
		return sums(deadline(t), m, nil, 1000)
	})
	agreed(t, errs, 2, driver.ErrTimeout)
	assert.Less(t, time.Since(start), 10*soon)
	assert.Equal(t, errs[0], g.Err())
	assert.Equal(t, Lost, g.Members()[2].Health().State)
	assert.Equal(t, Healthy, g.Members()[1].Health().State)
	agreed(t, do([]*Group{g}, func(m *Member) error { return m.Barrier(t.Context(), nil) }), 2, driver.ErrTimeout)
}

// TestBarrierAlone calls a barrier of several members from one goroutine, one after the other: it does not hang.
func TestBarrierAlone(t *testing.T) {
	g := virtual(t, 3, Options{Timeout: soon})
	for _, m := range g.Members() {
		agreed(t, []error{m.Barrier(deadline(t), nil)}, 1, driver.ErrTimeout)
	}
	g = virtual(t, 3, Options{})
	require.NoError(t, g.Do(deadline(t), func(ctx context.Context, m *Member) error { return m.Barrier(ctx, nil) }))
}

// TestBarrier finds a barrier that returns before another member's work is done.
func TestBarrier(t *testing.T) {
	g := virtual(t, 2, Options{})
	release := make(chan struct{})
	misbehave(t, g.Members()[1], g.Members()[1].Stream(), func() error { <-release; return nil })
	time.AfterFunc(soon/3, func() { close(release) })
	require.NoError(t, g.Do(deadline(t), func(ctx context.Context, m *Member) error {
		if err := m.Barrier(ctx, nil); err != nil {
			return err
		}
		select {
		case <-release:
			return nil
		default:
			return errors.New("the barrier did not wait")
		}
	}))
}

// TestCancelled has the context of one member done, before it calls and while it waits.
func TestCancelled(t *testing.T) {
	for _, late := range []bool{false, true} {
		g := virtual(t, 3, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		if !late {
			cancel()
		}
		errs := do([]*Group{g}, func(m *Member) error {
			switch {
			case m.Rank() == 1:
				time.AfterFunc(soon/3, cancel)
				return sums(ctx, m, nil, 100)
			case late:
				<-g.failed
			}
			return sums(deadline(t), m, nil, 100)
		})
		agreed(t, errs, 1, context.Canceled)
		assert.Equal(t, Healthy, g.Members()[1].Health().State)
		cancel()
	}
}

// refusals are calls that differ at one member, which all refuse.
var refusals = map[string]func(ctx context.Context, m *Member, odd bool, b *runtime.Buffer) error{
	"length": func(ctx context.Context, m *Member, odd bool, b *runtime.Buffer) error {
		n := 10
		if odd {
			n = 11
		}
		part, err := b.Slice(0, n)
		if err != nil {
			return err
		}
		defer part.Close()
		return m.AllReduce(ctx, nil, Sum, part, part)
	},
	"operation": func(ctx context.Context, m *Member, odd bool, b *runtime.Buffer) error {
		op := Sum
		if odd {
			op = Max
		}
		return m.AllReduce(ctx, nil, op, b, b)
	},
	"root": func(ctx context.Context, m *Member, odd bool, b *runtime.Buffer) error {
		root := 0
		if odd {
			root = 1
		}
		return m.Broadcast(ctx, nil, root, b, b)
	},
	"type": func(ctx context.Context, m *Member, odd bool, b *runtime.Buffer) error {
		if odd {
			part, err := b.As(runtime.I32)
			if err != nil {
				return err
			}
			defer part.Close()
			b = part
		}
		return m.AllReduce(ctx, nil, Sum, b, b)
	},
	"collective": func(ctx context.Context, m *Member, odd bool, b *runtime.Buffer) error {
		if odd {
			return m.Barrier(ctx, nil)
		}
		return m.AllReduce(ctx, nil, Sum, b, b)
	},
	"no buffer": func(ctx context.Context, m *Member, odd bool, b *runtime.Buffer) error {
		if odd {
			b = nil
		}
		return m.AllReduce(ctx, nil, Sum, b, b)
	},
	"overlap": func(ctx context.Context, m *Member, odd bool, b *runtime.Buffer) error {
		first := 10
		if odd {
			first = 9
		}
		src, err := b.Slice(0, 10)
		if err != nil {
			return err
		}
		defer src.Close()
		dst, err := b.Slice(first, 10)
		if err != nil {
			return err
		}
		defer dst.Close()
		return m.AllReduce(ctx, nil, Sum, dst, src)
	},
}

// refuses makes calls that differ, and one that does not: the group goes on.
func refuses(t *testing.T, groups []*Group) {
	t.Helper()
	for what, call := range refusals {
		for odd := 1; odd < groups[0].Size(); odd++ {
			errs := do(groups, func(m *Member) error {
				b, err := runtime.Alloc[float32](m.Device(), 24)
				if err != nil {
					return err
				}
				defer b.Close()
				return call(deadline(t), m, m.Rank() == odd, b)
			})
			t.Log(what, errs[0])
			agreed(t, errs, odd, runtime.ErrInvalidArgument)
		}
	}
	for _, err := range do(groups, func(m *Member) error { return sums(deadline(t), m, nil, 100) }) {
		require.NoError(t, err)
	}
	for _, g := range groups {
		require.NoError(t, g.Err())
	}
}

func TestRefused(t *testing.T) { refuses(t, []*Group{virtual(t, 3, Options{})}) }

// TestRefusedTransfer sends what the receiver does not want: both refuse it, and go on.
func TestRefusedTransfer(t *testing.T) {
	g := virtual(t, 2, Options{})
	refusesTransfer(t, []*Group{g})
}

func refusesTransfer(t *testing.T, groups []*Group) {
	t.Helper()
	for _, n := range []int{4, 5, 4} {
		errs := do(groups, func(m *Member) error {
			x := []float32{1, 2, 3, 4, 5}
			length := 4
			if m.Rank() == 1 {
				length = n
			}
			b, err := runtime.Upload(t.Context(), m.Device(), x[:length])
			if err != nil {
				return err
			}
			defer b.Close()
			if m.Rank() == 0 {
				return m.Send(deadline(t), nil, 1, b)
			}
			return m.Recv(deadline(t), nil, 0, b)
		})
		if n == 4 {
			assert.Equal(t, make([]error, 2), errs)
		} else {
			agreed(t, errs, 1, runtime.ErrInvalidArgument)
		}
	}
}

// TestStreamFails has work of one member fail, before it calls a collective and behind it: all are told who it was, and
// can go on once the streams are reset.
func TestStreamFails(t *testing.T) {
	g := virtual(t, 3, Options{})
	wrong := errors.New("planted")
	for range 2 {
		streams := make([]*runtime.Stream, 3)
		for i, m := range g.Members() {
			s, err := m.Device().NewStream()
			require.NoError(t, err)
			defer s.Close()
			streams[i] = s
		}
		// The work fails behind the first collective, which may have returned before, and the others' streams with it.
		release := make(chan struct{})
		misbehave(t, g.Members()[2], streams[2], func() error { <-release; return wrong })
		first := do([]*Group{g}, func(m *Member) error {
			b, err := runtime.Alloc[float32](m.Device(), 1000)
			if err != nil {
				return err
			}
			defer b.Close()
			return m.AllReduce(deadline(t), streams[m.Rank()], Sum, b, b)
		})
		assert.Equal(t, make([]error, 3), first)
		close(release)
		for i, s := range streams {
			assert.ErrorIs(t, s.Sync(t.Context()), runtime.ErrLaunch, "stream %d", i)
		}
		second := do([]*Group{g}, func(m *Member) error { return sums(deadline(t), m, streams[m.Rank()], 1000) })
		agreed(t, second, 2, runtime.ErrLaunch)
		assert.Contains(t, second[0].Error(), "planted")
		for _, s := range streams {
			require.NoError(t, s.Reset())
		}
		third := do([]*Group{g}, func(m *Member) error { return sums(deadline(t), m, streams[m.Rank()], 1000) })
		assert.Equal(t, make([]error, 3), third)
	}
	assert.EqualValues(t, 2, g.Members()[2].Health().Failures)
	assert.Zero(t, g.Members()[0].Health().Failures)
}

// TestDeviceLost gives up a device of three: all members name it, now and later.
func TestDeviceLost(t *testing.T) {
	devs := named(t, "cpu:0", "cpu:0", "cpu:0")
	g, err := Options{Timeout: soon}.Of(devs...)
	group(t, g, err)
	assert.Equal(t, make([]error, 3), do([]*Group{g}, func(m *Member) error { return sums(deadline(t), m, nil, 50) }))
	require.NoError(t, devs[1].Abandon(errors.New("pulled out")))
	buffers := make([]*runtime.Buffer, 3)
	for i, dev := range devs {
		if i != 1 {
			buffers[i], err = runtime.Alloc[float32](dev, 10)
			require.NoError(t, err)
			defer buffers[i].Close()
		}
	}
	for range 2 {
		agreed(t, do([]*Group{g}, func(m *Member) error {
			return m.AllReduce(deadline(t), nil, Sum, buffers[m.Rank()], buffers[m.Rank()])
		}), 1, runtime.ErrDeviceLost)
	}
	assert.Equal(t, Lost, g.Members()[1].Health().State)
}

// TestHangs has the work of one member hang, on a device of its own: the others find that in time.
func TestHangs(t *testing.T) {
	for _, by := range algorithms[1:] {
		devs := named(t, "cpu:0", "cpu:0", "cpu:0", "cpu:0")
		g, err := Options{Timeout: soon, Algorithm: by}.Of(devs...)
		group(t, g, err)
		release := make(chan struct{})
		misbehave(t, g.Members()[3], g.Members()[3].Stream(), func() error { <-release; return nil })
		start := time.Now()
		errs := do([]*Group{g}, func(m *Member) error { return queued(deadline(t), m, 64) })
		agreed(t, errs, 3, driver.ErrTimeout)
		assert.Less(t, time.Since(start), 20*soon)
		close(release)
	}
}

// queued is an all-reduce of a member that waits for nothing.
func queued(ctx context.Context, m *Member, n int) error {
	b, err := runtime.Alloc[float32](m.Device(), n)
	if err != nil {
		return err
	}
	defer b.Close()
	return m.AllReduce(ctx, nil, Sum, b, b)
}

// TestDoFails has the function of one member fail before its collective: the others do not wait for their time to be
// over.
func TestDoFails(t *testing.T) {
	g := virtual(t, 3, Options{})
	wrong := errors.New("no data")
	err := g.Do(deadline(t), func(ctx context.Context, m *Member) error {
		if m.Rank() == 1 {
			return wrong
		}
		return sums(ctx, m, nil, 10)
	})
	agreed(t, []error{err, g.Err()}, 1, wrong)
	assert.Equal(t, "cluster: member 1: no data", err.Error())
}

// TestDoPanics has one member panic while the others wait: they end, and the caller gets the panic.
func TestDoPanics(t *testing.T) {
	g := virtual(t, 3, Options{})
	var others [3]error
	assert.PanicsWithValue(t, "planted", func() {
		_ = g.Do(deadline(t), func(ctx context.Context, m *Member) error {
			if m.Rank() == 1 {
				panic("planted")
			}
			others[m.Rank()] = m.Barrier(ctx, nil)
			return others[m.Rank()]
		})
	})
	agreed(t, []error{others[0], others[2]}, 1)
	require.NoError(t, g.Close())
	assert.ErrorIs(t, g.Do(t.Context(), func(context.Context, *Member) error { return nil }), runtime.ErrClosed)

	g = virtual(t, 2, Options{})
	err := g.Do(deadline(t), func(ctx context.Context, m *Member) error {
		if m.Rank() == 1 {
			goruntime.Goexit() // as t.FailNow does
		}
		return m.Barrier(ctx, nil)
	})
	agreed(t, []error{err}, 1)
	assert.ErrorIs(t, g.Do(t.Context(), nil), runtime.ErrInvalidArgument)
	assert.ErrorIs(t, (*Group)(nil).Do(t.Context(), nil), runtime.ErrInvalidArgument)
}

// TestDeviceLostAnywhere gives a device up at some moment of many collectives: all members return the same error, in
// time.
func TestDeviceLostAnywhere(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 12
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		devs := named(t, "cpu:0", "cpu:0", "cpu:0")
		g, err := Options{Timeout: 3 * time.Second, Algorithm: algorithms[seed%4]}.Of(devs...)
		group(t, g, err)
		lost, n := r.IntN(3), 1+r.IntN(1<<18)
		time.AfterFunc(time.Duration(r.IntN(20_000))*time.Microsecond, func() {
			assert.NoError(t, devs[lost].Abandon(errors.New("pulled out")))
		})
		start := time.Now()
		errs := do([]*Group{g}, func(m *Member) error {
			for {
				b, err := runtime.Alloc[float32](m.Device(), n)
				if err != nil {
					return m.Fail(err)
				}
				err = m.AllReduce(deadline(t), nil, Sum, b, b)
				b.Close()
				if err != nil {
					return err
				}
			}
		})
		agreed(t, errs, lost, runtime.ErrDeviceLost)
		assert.Less(t, time.Since(start), 10*time.Second)
		for i, dev := range devs {
			if i != lost {
				require.NoError(t, dev.Sync(t.Context()))
				assert.Zero(t, dev.Stats().LiveBuffers)
			}
		}
	}
}
