package memory

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/managed"
	"github.com/concord-compute/concord/source"
)

const managedText = `
kernel void add(global const uint *x, global uint *y, uint k, uint n) {
	size_t i = get_global_id(0);
	if (i < n) y[i] += x[i] + k;
}
kernel void set(global uint *y, uint k, uint n) {
	size_t i = get_global_id(0);
	if (i < n) y[i] = k + (uint)i;
}`

// kernels builds a program and returns its kernels by name.
func kernels(t testing.TB, d *runtime.Device, text string, names ...string) []*runtime.Kernel {
	t.Helper()
	unit, err := source.Parse(text, source.Options{Name: "managed.cl"})
	require.NoError(t, err)
	p, err := d.Program(t.Context(), unit)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	var list []*runtime.Kernel
	for _, name := range names {
		k, err := p.Kernel(name)
		require.NoError(t, err)
		list = append(list, k)
	}
	return list
}

// on runs a test on every device and checks that all memory was freed.
func on(t *testing.T, test func(t *testing.T, d *runtime.Device)) {
	devices(t, func(tb testing.TB, d *runtime.Device) {
		t := tb.(*testing.T)
		t.Run("", func(t *testing.T) { test(t, d) })
		require.NoError(t, d.Sync(t.Context()))
		st := d.Stats()
		assert.Zero(t, st.Live+st.Deferred, "bytes left")
		assert.Equal(t, st.Allocations, st.Frees)
	})
}

// model is a buffer and the expected contents of each of its sides.
type model struct {
	whole  *managed.Buffer
	views  []view
	host   []uint32
	device []uint32
	newer  string // "", "host", "device"
}

type view struct {
	m      *managed.Buffer
	off, n int
	mapped []uint32
}

func newModel(t *rapid.T, d *runtime.Device, opt managed.Options) *model {
	n := rapid.IntRange(1, 3000).Draw(t, "elements")
	m, err := managed.New(d, runtime.U32, n, opt)
	require.NoError(t, err)
	model := &model{whole: m, host: make([]uint32, n), device: make([]uint32, n), newer: "host"}
	require.NoError(t, managed.Write(t.Context(), m, model.host))
	model.views = []view{{m: m, n: n}}
	return model
}

func (m *model) mapped() bool {
	for _, v := range m.views {
		if v.mapped != nil {
			return true
		}
	}
	return false
}

// uploaded and downloaded apply copies between the sides to the model.
func (m *model) uploaded() {
	if m.newer == "host" {
		copy(m.device, m.host)
		m.newer = ""
	}
}

func (m *model) downloaded() {
	if m.newer == "device" {
		copy(m.host, m.device)
		m.newer = ""
	}
}

func (m *model) check(t *rapid.T) {
	host, device := m.whole.Dirty()
	require.Equal(t, m.newer, map[[2]bool]string{{}: "", {true, false}: "host", {false, true}: "device",
		{true, true}: "both"}[[2]bool{host, device}])
}

// Random operations on a buffer and views of it, against two plain slices.
func TestManagedModel(t *testing.T) {
	on(t, func(t *testing.T, d *runtime.Device) {
		k := kernels(t, d, managedText, "add", "set")
		second, err := d.NewStream()
		require.NoError(t, err)
		defer second.Close()
		rapid.Check(t, func(t *rapid.T) {
			explicit := rapid.Bool().Draw(t, "explicit")
			opt := managed.Options{Location: managed.Location(rapid.IntRange(0, 1).Draw(t, "location"))}
			if explicit {
				opt.Mode = managed.ExplicitMode
			}
			a, b := newModel(t, d, opt), newModel(t, d, opt)
			r := &run{d: d, add: k[0], set: k[1], streams: []*runtime.Stream{d.Stream(), second}, explicit: explicit,
				models: []*model{a, b}}
			t.Repeat(map[string]func(*rapid.T){
				"write": r.write, "read": r.read, "slice": r.slice, "close": r.close, "add": r.launch, "set": r.replace,
				"map": r.open, "unmap": r.shut, "copy": r.copy, "": func(t *rapid.T) { a.check(t); b.check(t) },
			})
			for _, m := range r.models {
				for i := range m.views {
					require.NoError(t, m.views[i].m.Close())
				}
			}
		})
	})
}

type run struct {
	d        *runtime.Device
	add, set *runtime.Kernel
	streams  []*runtime.Stream
	models   []*model
	explicit bool
}

// any draws a buffer, a view of it and a number to write.
func (r *run) any(t *rapid.T) (*model, *view, uint32) {
	m := r.models[rapid.IntRange(0, 1).Draw(t, "buffer")]
	v := &m.views[rapid.IntRange(0, len(m.views)-1).Draw(t, "view")]
	return m, v, rapid.Uint32Range(1, 9999).Draw(t, "number")
}

func (r *run) stream(t *rapid.T) *runtime.Stream {
	return r.streams[rapid.IntRange(0, 1).Draw(t, "stream")]
}

func (r *run) write(t *rapid.T) {
	m, v, k := r.any(t)
	data := make([]uint32, rapid.IntRange(1, v.n).Draw(t, "n"))
	for i := range data {
		data[i] = k + uint32(i)
	}
	err := managed.Write(t.Context(), v.m, data)
	if all := len(data) == len(m.host); m.newer == "device" && !all {
		if r.explicit {
			require.ErrorIs(t, err, runtime.ErrInvalidArgument)
			return
		}
		m.downloaded()
	}
	require.NoError(t, err)
	copy(m.host[v.off:], data)
	m.newer = "host"
}

func (r *run) read(t *rapid.T) {
	m, v, _ := r.any(t)
	data := make([]uint32, v.n)
	require.NoError(t, managed.Read(t.Context(), v.m, data))
	if !r.explicit {
		m.downloaded()
	}
	require.Equal(t, m.host[v.off:v.off+v.n], data)
}

func (r *run) slice(t *rapid.T) {
	m, v, _ := r.any(t)
	if len(m.views) > 5 {
		t.Skip("views enough")
	}
	off := rapid.IntRange(0, v.n-1).Draw(t, "off")
	n := rapid.IntRange(1, v.n-off).Draw(t, "n")
	s, err := v.m.Slice(off, n)
	require.NoError(t, err)
	m.views = append(m.views, view{m: s, off: v.off + off, n: n})
}

func (r *run) close(t *rapid.T) {
	m := r.models[rapid.IntRange(0, 1).Draw(t, "buffer")]
	i := rapid.IntRange(0, len(m.views)-1).Draw(t, "view")
	if i == 0 {
		t.Skip("the whole stays")
	}
	require.NoError(t, m.views[i].m.Close())
	require.ErrorIs(t, managed.Read(t.Context(), m.views[i].m, make([]uint32, 1)), runtime.ErrClosed)
	m.views = append(m.views[:i], m.views[i+1:]...)
}

// refused reports whether a launch with a buffer has to be an error.
func (r *run) refused(reads bool, models ...*model) bool {
	for _, m := range models {
		if m.mapped() || r.explicit && reads && m.newer == "host" {
			return true
		}
	}
	return false
}

// launch adds one view to another, of the same buffer perhaps.
func (r *run) launch(t *rapid.T) {
	from, x, k := r.any(t)
	to, y, _ := r.any(t)
	n := min(x.n, y.n)
	if from == to && x.off < y.off+n && y.off < x.off+n && x.off != y.off {
		t.Skip("ranges overlap")
	}
	err := managed.Launch(r.stream(t), r.add, runtime.Items((n+63)/64*64).InGroups(64), x.m, y.m, k, uint32(n))
	if r.refused(true, from, to) {
		require.ErrorIs(t, err, runtime.ErrInvalidArgument)
		return
	}
	require.NoError(t, err)
	from.uploaded()
	to.uploaded()
	for i := range n {
		to.device[y.off+i] += from.device[x.off+i] + k
	}
	to.newer = "device"
}

// replace overwrites a whole view.
func (r *run) replace(t *rapid.T) {
	m, v, k := r.any(t)
	whole := v.n == len(m.host)
	err := managed.Launch(r.stream(t), r.set, runtime.Items((v.n+63)/64*64).InGroups(64), managed.Overwrite(v.m), k,
		uint32(v.n))
	if r.refused(!whole, m) {
		require.ErrorIs(t, err, runtime.ErrInvalidArgument)
		return
	}
	require.NoError(t, err)
	if !whole {
		m.uploaded()
	}
	for i := range v.n {
		m.device[v.off+i] = k + uint32(i)
	}
	m.newer = "device"
}

func (r *run) open(t *rapid.T) {
	m, v, k := r.any(t)
	if v.mapped != nil {
		t.Skip("mapped")
	}
	how := runtime.Access(rapid.IntRange(0, 2).Draw(t, "access"))
	data, err := managed.Map[uint32](t.Context(), v.m, how)
	all := how == runtime.ForOverwriting && v.n == len(m.host)
	switch {
	case m.newer != "device" || all:
	case r.explicit && how != runtime.ForReading:
		require.ErrorIs(t, err, runtime.ErrInvalidArgument)
		return
	case !r.explicit:
		m.downloaded()
	}
	require.NoError(t, err)
	require.Len(t, data, v.n)
	if !all {
		require.Equal(t, m.host[v.off:v.off+v.n], data)
	}
	if how != runtime.ForReading {
		for i := range data {
			data[i] = k ^ uint32(i)
			m.host[v.off+i] = data[i]
		}
		m.newer = "host"
	}
	v.mapped = data
}

func (r *run) shut(t *rapid.T) {
	_, v, _ := r.any(t)
	if v.mapped == nil {
		require.ErrorIs(t, v.m.Unmap(), runtime.ErrInvalidArgument)
		return
	}
	require.NoError(t, v.m.Unmap())
	v.mapped = nil
}

func (r *run) copy(t *rapid.T) {
	m, v, _ := r.any(t)
	up, s := rapid.Bool().Draw(t, "up"), r.stream(t)
	call := map[[2]bool]func() error{
		{true, true}:   func() error { return v.m.QueueToDevice(s) },
		{true, false}:  func() error { return v.m.ToDevice(t.Context()) },
		{false, true}:  func() error { return v.m.QueueToHost(s) },
		{false, false}: func() error { return v.m.ToHost(t.Context()) },
	}[[2]bool{up, rapid.Bool().Draw(t, "queued")}]
	err := call()
	if m.mapped() {
		require.ErrorIs(t, err, runtime.ErrInvalidArgument)
		return
	}
	require.NoError(t, err)
	if up {
		m.uploaded()
	} else {
		m.downloaded()
	}
}

// TestManagedMany writes, computes on and reads back 10,000 buffers, and checks that none has
// another one's contents.
func TestManagedMany(t *testing.T) {
	on(t, func(t *testing.T, d *runtime.Device) {
		n := 10_000
		if d.Info().Simulated { // simulated devices search an address among all
			n = 1000
		}
		add := kernels(t, d, managedText, "add")[0]
		ctx, s := t.Context(), d.Stream()
		list := make([]*managed.Buffer, n)
		for i := range list {
			m, err := managed.New(d, runtime.U32, 2, managed.Options{})
			require.NoError(t, err)
			require.NoError(t, managed.Write(ctx, m, []uint32{uint32(i), ^uint32(i)}))
			list[i] = m
		}
		for i := 0; i < n; i += 3 {
			require.NoError(t, managed.Launch(s, add, runtime.Items(2), list[i], list[(i+1)%n], uint32(1), uint32(2)))
		}
		got := make([]uint32, 2)
		for i, m := range list {
			require.NoError(t, managed.Read(ctx, m, got))
			want := []uint32{uint32(i), ^uint32(i)}
			if i%3 == 1 {
				want[0] += uint32(i-1) + 1
				want[1] += ^uint32(i-1) + 1
			}
			if i == 0 && (n-1)%3 == 0 {
				want[0] += uint32(n)
				want[1] += ^uint32(n-1) + 1
			}
			require.Equal(t, want, got, "buffer %d", i)
			require.NoError(t, m.Close())
		}
	})
}

// Several goroutines with separate streams add ones to shared buffers, by a kernel or on the host,
// where a lock protects reading, changing and writing. No addition may be lost.
func TestManagedTogether(t *testing.T) {
	on(t, func(t *testing.T, d *runtime.Device) {
		const workers, times, n = 4, 60, 500
		add := kernels(t, d, managedText, "add")[0]
		ctx := t.Context()
		zero, err := managed.New(d, runtime.U32, n, managed.Options{})
		require.NoError(t, err)
		defer zero.Close()
		require.NoError(t, managed.Write(ctx, zero, make([]uint32, n)))
		sum, err := managed.New(d, runtime.U32, n, managed.Options{})
		require.NoError(t, err)
		defer sum.Close()
		require.NoError(t, managed.Write(ctx, sum, make([]uint32, n)))
		var turn sync.RWMutex // on the host, reading, changing and writing are several calls
		var wg sync.WaitGroup
		for g := range workers {
			wg.Go(func() {
				assert.NoError(t, func() error {
					s, err := d.NewStream()
					if err != nil {
						return err
					}
					defer s.Close()
					r := rand.New(rand.NewPCG(1, uint64(g)))
					for range times {
						if r.IntN(3) > 0 {
							turn.RLock()
							err = managed.Launch(s, add, runtime.Items(512).InGroups(64), zero, sum, uint32(1), uint32(n))
							turn.RUnlock()
						} else {
							turn.Lock()
							var window []uint32
							if window, err = managed.Map[uint32](ctx, sum, runtime.ForWriting); err == nil {
								for i := range window {
									window[i]++
								}
								err = sum.Unmap()
							}
							turn.Unlock()
						}
						if err != nil {
							return err
						}
					}
					return nil
				}())
			})
		}
		wg.Wait()
		got := make([]uint32, n)
		require.NoError(t, managed.Read(ctx, sum, got))
		for i, v := range got {
			require.EqualValues(t, workers*times, v, fmt.Sprint("element ", i))
		}
		require.NoError(t, managed.Read(ctx, zero, got))
		assert.Equal(t, make([]uint32, n), got, "an input")
	})
}
