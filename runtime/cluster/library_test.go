//go:build cgo && linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
	"github.com/concord-compute/concord/tests/sim"
	"github.com/concord-compute/concord/tests/sim/control"
)

// vendors have simulated libraries of collectives.
var vendors = []struct{ backend, driver, library string }{
	{"sim-cuda", "libcuda.so.1", "libnccl.so.2"},
	{"sim-rocm", "libamdhip64.so.5", "librccl.so.1"},
}

// machine has n simulated devices of a vendor, and the controls of its driver and its library.
type machine struct {
	devs            []*runtime.Device
	driver, library *control.Library
}

func simulate(t *testing.T, vendor, n int) *machine {
	t.Helper()
	v := vendors[vendor]
	dir := sim.Dir(t, filepath.Join("..", ".."), v.backend, v.driver)
	m := new(machine)
	for _, l := range []struct {
		name string
		to   **control.Library
	}{{v.driver, &m.driver}, {v.library, &m.library}} {
		library, err := control.Open(filepath.Join(dir, l.name))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, library.Control("")) })
		*l.to = library
	}
	require.NoError(t, m.driver.Control(fmt.Sprintf("devices:%d", n)))
	session, err := runtime.New(runtime.Config{SimDir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, session.Close()) })
	for i := range n {
		dev, err := session.Open(t.Context(), fmt.Sprintf("%s:%d", v.backend, i))
		if err != nil {
			t.Skip(err)
		}
		m.devs = append(m.devs, dev)
	}
	t.Cleanup(func() { assert.Zero(t, m.library.Count("communicators"), "left behind") })
	return m
}

// TestLibrary checks all collectives by the simulated NCCL and RCCL: parts at wrong places, halves that are rounded at
// each step, means that are divided at one member only, and a NaN that a maximum loses. Nothing may pass the host.
func TestLibrary(t *testing.T) {
	for vendor := range vendors {
		for size := 1; size <= 8; size++ {
			if testing.Short() && size > 3 && (size < 7 || vendor > 0) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", vendors[vendor].backend, size), func(t *testing.T) {
				m := simulate(t, vendor, size)
				by := BySize
				if size == 1 {
					by = Library
				}
				g, err := Options{Algorithm: by}.Of(m.devs...)
				group(t, g, err)
				require.ErrorIs(t, g.Library(), runtime.ErrUnsupported, "it is not open yet")
				for _, inPlace := range []bool{false, true} {
					for _, n := range []int{0, 1, 13, 1009} {
						libraryTypes(t, deadline(t), g, inPlace, n)
					}
				}
				require.NoError(t, g.Library())
				stats := g.Stats()
				assert.Positive(t, stats.Library)
				assert.Zero(t, stats.Host)
				assert.Zero(t, stats.Fallbacks)
				assert.Contains(t, stats.String(), "by the library")
				if size > 1 {
					assert.Positive(t, m.library.Count("calls:collective"))
				}
			})
		}
	}
}

func libraryTypes(t *testing.T, ctx context.Context, g *Group, inPlace bool, n int) {
	t.Helper()
	groups, size := []*Group{g}, g.Size()
	(&trial[float32]{ctx, groups, inPlace, size, n}).all(t, Sum, Mean, Product)
	(&trial[int32]{ctx, groups, inPlace, size, n}).all(t, everyOp...)
	(&trial[runtime.BFloat16]{ctx, groups, inPlace, size, n}).all(t, Sum, Mean)
	if n != 13 { // every kernel is compiled once
		return
	}
	(&trial[float64]{ctx, groups, inPlace, size, n}).all(t, Sum, Mean)
	(&trial[runtime.Float16]{ctx, groups, inPlace, size, n}).all(t, Sum, Mean)
	(&trial[int64]{ctx, groups, inPlace, size, n}).all(t, Sum, Min)
	(&trial[uint64]{ctx, groups, inPlace, size, n}).all(t, Max)
	(&trial[int8]{ctx, groups, inPlace, size, n}).all(t, Sum)
	(&trial[uint8]{ctx, groups, inPlace, size, n}).all(t, Sum)
	(&trial[uint16]{ctx, groups, inPlace, size, n}).all(t, Sum)
}

// TestLibraryNaN: what the library loses, other algorithms do.
func TestLibraryNaN(t *testing.T) {
	m := simulate(t, 0, 2)
	g, err := Options{Algorithm: Library}.Of(m.devs...)
	group(t, g, err)
	for _, op := range []Op{Sum, Max, Min} {
		errs := do([]*Group{g}, func(m *Member) error {
			x := []float32{1}
			if m.Rank() == 1 {
				x[0] = of[float32](nan)
			}
			b, err := runtime.Upload(t.Context(), m.Device(), x)
			if err != nil {
				return err
			}
			defer b.Close()
			if err = m.AllReduce(deadline(t), nil, op, b, b); err == nil {
				err = runtime.Read(t.Context(), b, x)
			}
			if err == nil && x[0] == x[0] {
				err = fmt.Errorf("%v: %v", op, x)
			}
			return err
		})
		assert.Equal(t, make([]error, 2), errs)
	}
	assert.Positive(t, g.Stats().Direct)
}

// TestLibraryMissing has devices whose vendor's library is not installed: others do the work, which is counted.
func TestLibraryMissing(t *testing.T) {
	dir := sim.Dir(t, filepath.Join("..", ".."), "sim-cuda", "libcuda.so.1")
	session, err := runtime.New(runtime.Config{SimDir: filepath.Join(dir, "new")}) // which has no libnccl
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, session.Close()) })
	var devs []*runtime.Device
	for _, name := range []string{"sim-cuda:0", "sim-cuda:1"} {
		dev, err := session.Open(t.Context(), name)
		if err != nil {
			t.Skip(err)
		}
		devs = append(devs, dev)
	}
	for _, by := range []Algorithm{BySize, Library} {
		g, err := Options{Algorithm: by}.Of(devs...)
		group(t, g, err)
		for range 3 {
			assert.Equal(t, make([]error, 2), do([]*Group{g}, func(m *Member) error { return queued(deadline(t), m, 100) }))
		}
		require.ErrorIs(t, g.Library(), runtime.ErrUnsupported)
		assert.ErrorContains(t, g.Library(), "libnccl")
		stats := g.Stats()
		assert.EqualValues(t, 6, stats.Fallbacks)
		assert.Zero(t, stats.Library)
		assert.Positive(t, stats.Direct)
		assert.Contains(t, stats.String(), "6 fallbacks")
	}
}

// TestNoLibrary: groups that the library is not for do not look for one.
func TestNoLibrary(t *testing.T) {
	m := simulate(t, 0, 2)
	for _, make := range []func() (*Group, error){
		func() (*Group, error) { return Options{Algorithm: Ring}.Of(m.devs...) },
		func() (*Group, error) { return Virtual(m.devs[0], 2) },
		func() (*Group, error) { return Of(m.devs[0]) },
		func() (*Group, error) { return Of(m.devs[0], open(t, "cpu:0")) },
	} {
		g, err := make()
		group(t, g, err)
		for _, err := range do([]*Group{g}, func(m *Member) error { return queued(deadline(t), m, 100) }) {
			require.NoError(t, err)
		}
		require.ErrorIs(t, g.Library(), runtime.ErrUnsupported)
		assert.Zero(t, g.Stats().Fallbacks)
		assert.Zero(t, g.Stats().Library)
	}
	assert.Zero(t, m.library.Count("calls:join"))
}

// TestLibraryFaults has the library fail in every way: all members return one error in time, which names a member, no
// stream waits on, and nothing is left. A library that does not start is a fallback unless it is named.
func TestLibraryFaults(t *testing.T) {
	const limit = 500 * time.Millisecond
	for _, c := range []struct {
		fault    string
		is       error
		by       Algorithm
		fallback bool
	}{
		{"join:1", driver.ErrLaunch, Library, false},
		{"join:2", driver.ErrLaunch, Library, false},
		{"join:2", nil, BySize, true},
		{"other:1", driver.ErrLaunch, Library, false},
		{"join-hang:1", driver.ErrTimeout, Library, false},
		{"join-hang:2", nil, BySize, true},
		{"collective:1", driver.ErrLaunch, BySize, false},
		{"collective:2", driver.ErrLaunch, BySize, false},
		{"collective:4=3", driver.ErrLaunch, Library, false},
		{"collective-late:1", driver.ErrLaunch, BySize, false},
		{"collective-late:3=1", driver.ErrLaunch, BySize, false},
		{"collective-hang:1", driver.ErrTimeout, BySize, false},
		{"collective-hang:4", driver.ErrTimeout, Library, false},
	} {
		t.Run(fmt.Sprintf("%s/%v", c.fault, c.by), func(t *testing.T) {
			m := simulate(t, 0, 3)
			g, err := Options{Algorithm: c.by, Timeout: limit}.Of(m.devs...)
			require.NoError(t, err)
			require.NoError(t, m.library.Control(c.fault))
			began := time.Now()
			var last atomic.Int64
			errs := do([]*Group{g}, func(m *Member) error {
				for i := range 3 {
					if err := queued(deadline(t), m, 100); err != nil {
						return err
					}
					last.Store(int64(i))
				}
				return nil
			})
			assert.Less(t, time.Since(began), 10*limit)
			if c.fallback {
				assert.Equal(t, make([]error, 3), errs)
				assert.EqualValues(t, 9, g.Stats().Fallbacks)
				require.Error(t, g.Library())
			} else {
				for _, err := range errs {
					require.ErrorIs(t, err, ErrSync)
					require.ErrorIs(t, err, c.is)
					assert.Equal(t, errs[0], err)
				}
				if strings.HasPrefix(c.fault, "collective") {
					assert.Equal(t, errs[0], g.Err())
				} else { // nothing has moved, and the next collective says the same
					require.NoError(t, g.Err())
					for _, err := range do([]*Group{g}, func(m *Member) error { return queued(deadline(t), m, 100) }) {
						require.ErrorIs(t, err, c.is)
					}
				}
			}
			for _, member := range g.Members() { // before the group is closed
				short, cancel := context.WithTimeout(t.Context(), 10*limit)
				require.NoError(t, member.Stream().Sync(short), "what waits for other members has ended")
				cancel()
			}
			require.NoError(t, g.Close())
			assert.Zero(t, m.library.Count("communicators"))
			for _, dev := range m.devs { // which work on
				assert.Zero(t, dev.Stats().LiveBuffers)
				require.NoError(t, dev.Sync(deadline(t)))
			}
		})
	}
}

// TestLibraryCancelled ends a member's context while the library waits, or closes the group: nothing hangs.
func TestLibraryCancelled(t *testing.T) {
	m := simulate(t, 0, 2)
	g, err := Options{}.Of(m.devs...)
	require.NoError(t, err)
	require.NoError(t, m.library.Control("collective-hang:1"))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	for _, err := range do([]*Group{g}, func(m *Member) error { return queued(ctx, m, 100) }) {
		require.ErrorIs(t, err, context.Canceled)
		var named *MemberError
		require.True(t, errors.As(err, &named))
	}
	require.NoError(t, g.Close())
}

// TestLibraryIsSeen: an observer is told of a collective as a copy with its size, so that summaries have its rate.
func TestLibraryIsSeen(t *testing.T) {
	m := simulate(t, 0, 2)
	g, err := Of(m.devs...)
	group(t, g, err)
	recording := new(profile.Recording)
	stop := m.devs[0].Session().Observe(recording)
	assert.Equal(t, make([]error, 2), do([]*Group{g}, func(m *Member) error { return queued(deadline(t), m, 1000) }))
	for _, member := range g.Members() {
		require.NoError(t, member.Stream().Sync(t.Context()))
	}
	stop()
	events, _ := recording.Events()
	var on []string
	for _, e := range events {
		if e.Kind == profile.Copy && e.Name == "all-reduce" {
			on = append(on, e.Device)
			assert.InDelta(t, 4000, e.Bytes, 0)
		}
	}
	slices.Sort(on)
	assert.Equal(t, []string{"sim-cuda:0", "sim-cuda:1"}, on)
	rated := 0
	for _, l := range profile.Summarize(profile.Trace{Events: events}).Lines {
		if l.Name == "all-reduce" && l.GBs > 0 {
			rated++
		}
	}
	assert.Equal(t, 2, rated, "one of each device")
}

// watched is a link that says by itself that it is broken.
type watched struct{ breaks }

func (w watched) Err() error {
	select {
	case <-w.gone:
		return w.broken
	default:
		return nil
	}
}

// job joins devices as members of several processes, over links that are watched or not.
func job(t *testing.T, o Options, watches bool, devs ...*runtime.Device) []*Group {
	t.Helper()
	w := newWires(len(devs))
	groups, errs := make([]*Group, len(devs)), make([]error, len(devs))
	var wg sync.WaitGroup
	for i, dev := range devs {
		var link Link = breaks{&wire{wires: w, rank: i}}
		if watches {
			link = watched{breaks{&wire{wires: w, rank: i}}}
		}
		wg.Go(func() { groups[i], errs[i] = o.Join(deadline(t), dev, i, len(devs), link) })
	}
	wg.Wait()
	for i, g := range groups {
		group(t, g, errs[i])
	}
	return groups
}

// TestLibraryJoin: the members of a job use the library by an identity that the first one tells the others. Nothing
// but agreements goes over the link.
func TestLibraryJoin(t *testing.T) {
	m := simulate(t, 0, 3)
	groups := job(t, Options{}, true, m.devs...)
	ctx := deadline(t)
	for _, inPlace := range []bool{false, true} {
		(&trial[float32]{ctx, groups, inPlace, 3, 1009}).all(t, Sum, Mean)
		(&trial[int32]{ctx, groups, inPlace, 3, 13}).all(t, Sum, Max)
	}
	for _, g := range groups {
		require.NoError(t, g.Library())
		assert.Positive(t, g.Stats().Library)
		assert.Zero(t, g.Stats().Fallbacks)
	}
}

// TestLibraryJoinFails: jobs in which the library is missing, does not start at a member, or is not for the devices or
// the link, compute by messages, all members alike.
func TestLibraryJoinFails(t *testing.T) {
	m := simulate(t, 0, 2)
	cpu := open(t, "cpu:0")
	for _, c := range []struct {
		fault     string
		o         Options
		watches   bool
		devs      []*runtime.Device
		fallbacks int64
	}{
		{"other:1", Options{}, true, m.devs, 1}, // no identity
		{"join:2", Options{Timeout: time.Second}, true, m.devs, 1},
		{"join-hang:1", Options{Timeout: time.Second}, true, m.devs, 1},
		{"", Options{Algorithm: Ring}, true, m.devs, 0},
		{"", Options{}, false, m.devs, 0},
		{"", Options{}, true, []*runtime.Device{m.devs[0], cpu}, 0},
		{"", Options{}, true, []*runtime.Device{cpu, m.devs[0]}, 0},
	} {
		require.NoError(t, m.library.Control(c.fault))
		groups := job(t, c.o, c.watches, c.devs...)
		assert.Equal(t, make([]error, 2), do(groups, func(m *Member) error { return queued(deadline(t), m, 100) }), c.fault)
		for _, g := range groups {
			require.Error(t, g.Library())
			assert.Equal(t, c.fallbacks, g.Stats().Fallbacks, c.fault)
			assert.Positive(t, g.Stats().Link)
			assert.Zero(t, g.Stats().Library)
		}
	}
}

// TestLibraryJobBreaks has a member of a job fail, or be found dead by the link, while the others wait in the library:
// they end with its error, and long before their time is over.
func TestLibraryJobBreaks(t *testing.T) {
	for name, breaks := range map[string]func(groups []*Group){
		"fails": func(groups []*Group) { _ = groups[2].Members()[0].Fail(errors.New("no data")) },
		"dies": func(groups []*Group) {
			link := groups[0].members[0].port.(*linkPort).link.(Breaker)
			link.Break(&MemberError{Rank: 2, Err: runtime.ErrDeviceLost})
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := simulate(t, 0, 3)
			groups := job(t, Options{}, true, m.devs...)
			require.NoError(t, m.library.Control("collective-hang:1+"))
			began := time.Now()
			time.AfterFunc(100*time.Millisecond, func() { breaks(groups) })
			errs := do(groups, func(m *Member) error { return queued(deadline(t), m, 100) })
			assert.Less(t, time.Since(began), 5*time.Second)
			for _, err := range errs {
				var named *MemberError
				require.ErrorAs(t, err, &named)
				assert.Equal(t, 2, named.Rank, err)
			}
		})
	}
}
