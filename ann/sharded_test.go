package ann

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
)

// virtual is a group of members of one device.
func virtual(t testing.TB, n int) *cluster.Group {
	t.Helper()
	g, err := cluster.Virtual(open(t, "cpu:0"), n)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	return g
}

func sharded(t testing.TB, g *cluster.Group, kind string, dim int, m Metric, o Options) *Sharded {
	t.Helper()
	s, err := NewSharded(t.Context(), g, kind, dim, m.String(), o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

// differ searches two indexes in several ways, and returns where they do not find the same: ids, distances, order.
func differ(ctx context.Context, want, got Index, ids []int64, queries []float32, dim int) error {
	r := rand.New(rand.NewPCG(7, uint64(len(ids))))
	mask := make([]bool, len(ids))
	for i := range mask {
		mask[i] = r.IntN(3) == 0
	}
	some := append([]int64{-1, 5}, ids[:len(ids)/3]...)
	filters := map[string]*Filter{"all": nil, "mask": Mask(mask), "range": IDRange(0, 500_000_000), "set": IDSet(some),
		"others": Not(IDSet(some)), "none": Or(),
		"both": And(Mask(mask), Predicate(func(id int64) bool { return id%2 == 0 }))}
	for _, name := range slices.Sorted(maps.Keys(filters)) { // in one order, for processes
		f := filters[name]
		for _, k := range []int{1, 3, len(ids) + 1, 2000} {
			x, err := want.SearchBatch(ctx, queries, k, f)
			if err != nil {
				return err
			}
			y, err := got.SearchBatch(ctx, queries, k, f)
			if err != nil {
				return err
			}
			one, err := got.Search(ctx, []Result{{7, 7}}, queries[:dim], k, f)
			if err != nil {
				return err
			}
			if !slices.EqualFunc(x, y, slices.Equal) || !slices.Equal(append([]Result{{7, 7}}, x[0]...), one) {
				return fmt.Errorf("%s, k = %d: %v, and one query %v, instead of %v", name, k, y, one, x)
			}
		}
	}
	return nil
}

// TestShardedExact compares shards of kind flat with one index, at random: it finds results of a shard that are left
// out, ties in another order, masks by the order within a shard, and scales that differ between shards. Components are
// small integers, so that many distances are equal.
func TestShardedExact(t *testing.T) {
	trials := 200
	if testing.Short() {
		trials = 60
	}
	list := metrics(t)
	for trial := range trials {
		r := rand.New(rand.NewPCG(uint64(trial), 35))
		members, n := 1+trial%5, []int{0, 1, 2, 3, 7, 31, 97, 211}[r.IntN(8)]
		dim, m := []int{1, 2, 3, 5, 17}[r.IntN(5)], list[r.IntN(len(list))]
		p := []Precision{FP32, FP16, INT8Scaled}[r.IntN(3)]
		o := Options{Precision: p}
		if r.IntN(2) == 0 {
			for range members {
				o.Weights = append(o.Weights, r.Float64()+0.01)
			}
		}
		what := fmt.Sprintf("trial %d: %d vectors of %d, %v, %v, weights %v", trial, n, dim, m, p, o.Weights)
		t.Run(fmt.Sprint(trial), func(t *testing.T) {
			g := virtual(t, members)
			one, all := flat(t, open(t, "cpu:0"), dim, m, FlatOptions{Precision: p}), sharded(t, g, "flat", dim, m, o)
			both := func(f func(ix Index) error) {
				t.Helper()
				require.NoError(t, f(one), what)
				require.NoError(t, f(all), what)
			}
			vectors, queries := make([]float32, n*dim), make([]float32, 3*dim)
			for _, x := range [][]float32{vectors, queries} {
				for i := range x {
					x[i] = float32(r.IntN(5) - 2)
				}
			}
			if n > 0 {
				vectors[0] = 127 // so that a shard without it would choose another scale
			}
			ids := numbers(r, n)
			cut := n / 2
			both(func(ix Index) error { return ix.Add(t.Context(), ids[:cut], vectors[:cut*dim]) })
			require.NoError(t, differ(t.Context(), one, all, ids[:cut], queries, dim), what+", a half")
			both(func(ix Index) error { return ix.Add(t.Context(), ids[cut:], vectors[cut*dim:]) })
			require.NoError(t, differ(t.Context(), one, all, ids, queries, dim), what)
			if n > 3 {
				both(func(ix Index) error { return ix.Remove(t.Context(), ids[1:n/2]) })
				both(func(ix Index) error { return Update(t.Context(), ix, ids[0], queries[:dim]) })
				ids = append(ids[:1:1], ids[n/2:]...)
				require.NoError(t, differ(t.Context(), one, all, ids, queries, dim), what+", changed")
				both(func(ix Index) error { return ix.(interface{ Compact(context.Context) error }).Compact(t.Context()) })
				both(func(ix Index) error { return ix.Add(t.Context(), []int64{3}, vectors[:dim]) })
				ids = append(ids, 3)
				require.NoError(t, differ(t.Context(), one, all, ids, queries, dim), what+", compact")
				for _, id := range ids[:3] {
					x, err := one.Get(t.Context(), id)
					require.NoError(t, err)
					y, err := all.Get(t.Context(), id)
					require.NoError(t, err)
					require.Equal(t, x, y)
				}
			}
			require.Equal(t, len(ids), all.Len())
			require.Equal(t, members, all.Info().Shards)
			exact, err := Exact(t.Context(), all, queries[:dim], 5, nil)
			require.NoError(t, err)
			found, err := one.Search(t.Context(), nil, queries[:dim], 5, nil)
			require.NoError(t, err)
			require.True(t, slices.Equal(found, exact))
		})
	}
}

// TestShardedSpread finds ids that all go to one shard, and weights that are not followed.
func TestShardedSpread(t *testing.T) {
	for _, weights := range [][]float64{nil, {1, 2, 5}, {2e307, 4e307, 1e308}} {
		s := sharded(t, virtual(t, 3), "flat", 1, L2Squared, Options{Weights: weights})
		ids := counted(9000)
		for i := range ids {
			ids[i] *= 1 << 20
		}
		require.NoError(t, s.Add(t.Context(), ids, make([]float32, 9000)))
		for i, ix := range s.Shards() {
			share := 1 / 3.
			if weights != nil {
				share = weights[i] / weights[0] / 8
			}
			assert.InDelta(t, share, float64(ix.Info().Len)/9000, 0.02, "%v", weights)
		}
	}
}

// TestShardedWeightedLists finds lists of shards that are not as many as of the whole, whatever the weights.
func TestShardedWeightedLists(t *testing.T) {
	const n = 5000
	vectors := random(rand.New(rand.NewPCG(2, 2)), n, 2)
	for _, weights := range [][]float64{nil, {1, 9}, {9, 1}} {
		s := sharded(t, virtual(t, 2), "ivf", 2, L2Squared, Options{Weights: weights})
		require.NoError(t, s.Add(t.Context(), counted(n), vectors))
		for _, ix := range s.Shards() {
			i := ix.Info()
			assert.InDelta(t, min(usualLists(n), i.Len/leastInList), i.IVF.Lists, 6, "%v", weights)
		}
	}
}

// TestShardedFilter has a filter of an index that changes: it finds what a shard keeps of a filter although vectors of
// others have come and gone, which moves a mask, and scales of bytes that differ between shards.
func TestShardedFilter(t *testing.T) {
	const n, dim = 60, 2
	one := flat(t, open(t, "cpu:0"), dim, L2Squared, FlatOptions{Precision: INT8Scaled})
	all := sharded(t, virtual(t, 4), "flat", dim, L2Squared, Options{Precision: INT8Scaled})
	vectors := make([]float32, n*dim)
	for i := range vectors {
		vectors[i] = float32(i%7) + 0.3
	}
	vectors[1] = 40
	mask := make([]bool, n)
	for i := range mask {
		mask[i] = i%3 == 0
	}
	filter := Mask(mask)
	same := func() {
		t.Helper()
		x, err := one.Search(t.Context(), nil, vectors[4:6], n, filter)
		require.NoError(t, err)
		y, err := all.Search(t.Context(), nil, vectors[4:6], n, filter)
		require.NoError(t, err)
		require.Equal(t, x, y)
	}
	for _, ix := range []Index{one, all} {
		require.NoError(t, ix.Add(t.Context(), counted(n), vectors))
	}
	same()
	for _, ix := range []Index{one, all} {
		require.NoError(t, ix.Remove(t.Context(), []int64{0}))
		require.NoError(t, ix.Add(t.Context(), []int64{1000}, vectors[:2]))
	}
	same()
}

// TestShardedKinds compares kinds that find most of the nearest with one index of the same options: recall is as high,
// and filters and changes hold.
func TestShardedKinds(t *testing.T) {
	const dim, k = 24, 10
	r := rand.New(rand.NewPCG(3, 5))
	whole, queries := random(r, 6000, dim), random(r, 100, dim)
	for i, c := range []struct {
		kind string
		o    Options
	}{{"ivf", Options{}}, {"ivf", Options{Precision: FP16, IVF: IVFOptions{Lists: 64, Probes: 8}}}, {"pq", Options{}},
		{"hnsw", Options{}}, {"hnsw", Options{HNSW: HNSWOptions{M: 8, EfSearch: 20, Codes: true}}}} {
		t.Run(fmt.Sprint(i, c.kind), func(t *testing.T) {
			n := 6000
			if c.kind == "hnsw" && testing.Short() {
				n = 1500
			}
			vectors := whole[:n*dim]
			one, err := New(t.Context(), c.kind, dim, "euclidean", c.o)
			require.NoError(t, err)
			defer one.Close()
			exact := flat(t, open(t, "cpu:0"), dim, Euclidean, FlatOptions{Precision: c.o.Precision})
			require.NoError(t, one.Add(t.Context(), counted(n), vectors))
			require.NoError(t, exact.Add(t.Context(), counted(n), vectors))
			want := recall(t, one, queries, dim, k, nil)
			var file bytes.Buffer
			_, err = one.WriteTo(&file)
			require.NoError(t, err)
			for _, members := range []int{2, 3} {
				s := sharded(t, virtual(t, members), c.kind, dim, Euclidean, c.o)
				require.NoError(t, s.Add(t.Context(), counted(n), vectors))
				assert.GreaterOrEqual(t, recall(t, s, queries, dim, k, nil), want-0.005, "%d members", members)
				assert.Equal(t, one.Info().Kind, s.Info().Kind)
				changed, err := Read(t.Context(), bytes.NewReader(file.Bytes()), Options{})
				require.NoError(t, err)
				for _, ix := range []Index{changed, s} {
					require.NoError(t, ix.Remove(t.Context(), counted(n)[:n/2]))
					require.NoError(t, Update(t.Context(), ix, int64(n-9), queries[:dim]))
				}
				found, err := s.Search(t.Context(), nil, queries[:dim], 1, nil)
				require.NoError(t, err)
				assert.Equal(t, int64(n-9), found[0].ID)
				for _, at := range []int{7, n/2 - 9, n/2 - 1} { // of the order, in which an update may move a vector
					mask := make([]bool, n/2)
					mask[at] = true
					x, err := changed.Search(t.Context(), nil, queries[:dim], k, Mask(mask))
					require.NoError(t, err)
					y, err := s.Search(t.Context(), nil, queries[:dim], k, Mask(mask))
					require.NoError(t, err)
					require.Len(t, y, 1)
					assert.Equal(t, x[0].ID, y[0].ID)
				}
				require.NoError(t, changed.Close())
				// few are admitted, so that all of them are compared
				x, err := exact.Search(t.Context(), nil, queries[dim:2*dim], k, IDRange(int64(n-40), int64(n-10)))
				require.NoError(t, err)
				y, err := s.Search(t.Context(), nil, queries[dim:2*dim], k, IDRange(int64(n-40), int64(n-10)))
				require.NoError(t, err)
				assert.Equal(t, x, y)
				require.NoError(t, s.Compact(t.Context()))
				assert.Equal(t, n/2, s.Len())
			}
		})
	}
}

// TestShardedLists finds shards whose lists are so few that they read more vectors than one index.
func TestShardedLists(t *testing.T) {
	const n, dim = 40_000, 4
	s := sharded(t, virtual(t, 2), "ivf", dim, L2Squared, Options{})
	vectors := random(rand.New(rand.NewPCG(1, 1)), n, dim)
	require.NoError(t, s.Add(t.Context(), counted(n), vectors))
	for _, ix := range s.Shards() {
		assert.InDelta(t, usualLists(n), ix.Info().IVF.Lists, 8)
	}
}

// TestShardedDevices has members of several backends: it finds vectors that did not come to a device, and memory of one
// device that another one reads.
func TestShardedDevices(t *testing.T) {
	const n, dim = 301, 9
	for _, names := range [][]string{{"cpu:0", "opencl:0"}, {"opencl:0", "cpu:reference", "cpu:0"},
		{"sim-cuda:0", "cpu:0"}} {
		t.Run(fmt.Sprint(names), func(t *testing.T) {
			devs := several(t, names...)
			if len(devs) < len(names) {
				t.Skip("not all are here")
			}
			g, err := cluster.Of(devs...)
			require.NoError(t, err)
			defer func() { assert.NoError(t, g.Close()) }()
			r := rand.New(rand.NewPCG(8, 8))
			vectors, queries := make([]float32, n*dim), make([]float32, 5*dim)
			for _, x := range [][]float32{vectors, queries} {
				for i := range x {
					x[i] = float32(r.IntN(5) - 2)
				}
			}
			ids := numbers(r, n)
			one := flat(t, open(t, "cpu:0"), dim, L2Squared, FlatOptions{})
			require.NoError(t, one.Add(t.Context(), ids, vectors))
			for _, kind := range []string{"flat", "ivf"} { // ivf with one list, which is exact
				s := sharded(t, g, kind, dim, L2Squared, Options{})
				require.NoError(t, s.Add(t.Context(), ids, vectors))
				for _, k := range []int{1, 10, 400} {
					x, err := one.SearchBatch(t.Context(), queries, k, nil)
					require.NoError(t, err)
					y, err := s.SearchBatch(t.Context(), queries, k, nil)
					require.NoError(t, err)
					require.Equal(t, x, y, kind)
				}
				require.NoError(t, s.Remove(t.Context(), ids[:100]))
				assert.Equal(t, n-100, s.Len())
				require.NoError(t, s.Close())
			}
			_, err = NewSharded(t.Context(), g, "hnsw", dim, "euclidean", Options{})
			assert.ErrorIs(t, err, runtime.ErrUnsupported)
			named, ok := errors.AsType[*cluster.MemberError](err)
			require.True(t, ok)
			assert.NotContains(t, names[named.Rank], "cpu")
		})
	}
}

// TestShardedMemory has vectors that one device has no room for, and two have.
func TestShardedMemory(t *testing.T) {
	const n, dim, limit = 1000, 32, 100_000
	vectors := random(rand.New(rand.NewPCG(6, 6)), n, dim)
	one := flat(t, narrow(t, "cpu:0", limit), dim, L2Squared, FlatOptions{})
	require.NoError(t, one.Add(t.Context(), counted(n), vectors))
	require.True(t, one.Info().Streams)
	g, err := cluster.Of(narrow(t, "cpu:0", limit), narrow(t, "cpu:0", limit))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	s := sharded(t, g, "flat", dim, L2Squared, Options{})
	require.NoError(t, s.Add(t.Context(), counted(n), vectors))
	assert.False(t, s.Info().Streams)
	assert.Equal(t, int64(4*n*dim), s.Info().DeviceMemory)
	x, err := one.Search(t.Context(), nil, vectors[:dim], 9, nil)
	require.NoError(t, err)
	y, err := s.Search(t.Context(), nil, vectors[:dim], 9, nil)
	require.NoError(t, err)
	assert.Equal(t, x, y)
}

// TestShardedRefused finds changes that fail and leave something behind.
func TestShardedRefused(t *testing.T) {
	ctx := t.Context()
	g := virtual(t, 3)
	for _, kind := range []string{"flat", "ivf", "hnsw"} {
		s := sharded(t, g, kind, 2, L2Squared, Options{MaxRows: 110})
		require.NoError(t, s.Add(ctx, counted(40), make([]float32, 80)))
		for id := range int64(20) { // of which other shards have added the rest, or not yet
			err := s.Add(ctx, append(counted(100)[41:], id), make([]float32, 2*60))
			require.ErrorIs(t, err, runtime.ErrInvalidArgument)
			named, ok := errors.AsType[*cluster.MemberError](err)
			require.True(t, ok)
			require.Equal(t, s.shardOf(id), named.Rank)
			require.Equal(t, 40, s.parts[0].base().count()+s.parts[1].base().count()+s.parts[2].base().count())
		}
		for _, c := range []struct {
			want error
			err  error
		}{
			{runtime.ErrInvalidArgument, s.Add(ctx, []int64{50, 51, 50}, make([]float32, 6))},
			{runtime.ErrInvalidArgument, s.Add(ctx, []int64{-50}, make([]float32, 2))},
			{runtime.ErrDimension, s.Add(ctx, []int64{50, 51}, make([]float32, 3))},
			{runtime.ErrBudget, s.Add(ctx, counted(200)[100:], make([]float32, 200))},
			{runtime.ErrInvalidArgument, s.Remove(ctx, append(counted(20), 77))},
			{runtime.ErrInvalidArgument, s.Remove(ctx, []int64{1, 2, 1})},
			{runtime.ErrInvalidArgument, s.Update(ctx, 77, make([]float32, 2))},
			{runtime.ErrDimension, s.Update(ctx, 7, make([]float32, 3))},
		} {
			assert.ErrorIs(t, c.err, c.want, kind)
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		assert.ErrorIs(t, s.Add(ended, []int64{70}, make([]float32, 2)), context.Canceled)
		assert.ErrorIs(t, s.Remove(ended, []int64{7}), context.Canceled)
		_, err := s.Search(ended, nil, make([]float32, 2), 1, nil)
		assert.ErrorIs(t, err, context.Canceled)
		found, err := s.Search(ctx, nil, make([]float32, 2), 200, nil)
		require.NoError(t, err)
		require.Len(t, found, 40, kind)
		for i, r := range found {
			require.Equal(t, Result{int64(i), 0}, r)
		}
		assert.Equal(t, 40, s.Len())
		for _, err := range []error{func() error { _, err := s.Search(ctx, nil, make([]float32, 2), 0, nil); return err }(),
			func() error { _, err := s.Get(ctx, 77); return err }(),
			func() error {
				_, err := s.Search(ctx, nil, make([]float32, 2), 1, Predicate(nil))
				return err
			}()} {
			assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
		}
		_, err = s.SearchBatch(ctx, make([]float32, 5), 1, nil)
		assert.ErrorIs(t, err, runtime.ErrDimension)
		_, err = s.Search(ctx, nil, make([]float32, 2), 1, Mask(make([]bool, 39)))
		assert.ErrorIs(t, err, runtime.ErrDimension)
		_, err = s.Search(ctx, nil, make([]float32, 2), 1, Predicate(func(int64) bool { panic("planted") }))
		_, panicked := errors.AsType[*PanicError](err)
		assert.True(t, panicked, "%v", err)
		_, err = s.WriteTo(nil)
		assert.ErrorIs(t, err, runtime.ErrUnsupported)
		require.NoError(t, s.Close())
		assert.ErrorIs(t, s.Add(ctx, nil, nil), runtime.ErrClosed)
		_, err = s.Search(ctx, nil, make([]float32, 2), 1, nil)
		assert.ErrorIs(t, err, runtime.ErrClosed)
	}
	for _, c := range []struct {
		want error
		kind string
		dim  int
		o    Options
	}{{runtime.ErrInvalidArgument, "flat", 2, Options{Device: "cpu:0"}},
		{runtime.ErrInvalidArgument, "flat", 2, Options{Weights: []float64{1, 2}}},
		{runtime.ErrInvalidArgument, "flat", 2, Options{Weights: []float64{1, 2, 0}}},
		{runtime.ErrInvalidArgument, "ivf", 2, Options{IVF: IVFOptions{Probes: -1}}},
		{runtime.ErrUnsupported, "hnsw", 2, Options{Precision: FP16}}, {runtime.ErrInvalidArgument, "flat", 0, Options{}}} {
		_, err := NewSharded(ctx, g, c.kind, c.dim, "l2sq", c.o)
		assert.ErrorIs(t, err, c.want, "%+v", c)
	}
	_, err := NewSharded(ctx, nil, "flat", 2, "l2sq", Options{})
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	_, err = New(ctx, "ivf", 2, "l2sq", Options{Weights: []float64{1}})
	assert.ErrorIs(t, err, runtime.ErrUnsupported)
}

// TestShardedRefusedLists has an id that is there already, of one shard, and enough vectors for all to make lists: it
// finds shards that make them although the Add fails.
func TestShardedRefusedLists(t *testing.T) {
	const n = 3000
	vectors := random(rand.New(rand.NewPCG(4, 4)), n, 8)
	s := sharded(t, virtual(t, 3), "ivf", 8, L2Squared, Options{IVF: IVFOptions{Lists: 4}})
	require.NoError(t, s.Add(t.Context(), counted(9), vectors[:9*8]))
	for id := range int64(9) {
		err := s.Add(t.Context(), append(counted(n)[10:], id), vectors[:(n-9)*8])
		require.ErrorIs(t, err, runtime.ErrInvalidArgument)
		for _, ix := range s.Shards() {
			require.Equal(t, 1, ix.Info().IVF.Lists)
		}
	}
}

// TestShardedFails has one member whose device is lost: the error names it, and closing leaks nothing.
func TestShardedFails(t *testing.T) {
	ctx := t.Context()
	lost, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, lost.Close()) }()
	dev, err := lost.Open(ctx, "cpu:0")
	require.NoError(t, err)
	g, err := cluster.Of(open(t, "cpu:0"), dev)
	require.NoError(t, err)
	s, err := NewSharded(ctx, g, "flat", 2, "l2sq", Options{})
	require.NoError(t, err)
	require.NoError(t, s.Add(ctx, counted(10), make([]float32, 20)))
	dev.Abandon(runtime.ErrDeviceLost)
	for _, err := range []error{
		func() error { _, err := s.Search(ctx, nil, make([]float32, 2), 3, nil); return err }(),
		s.Add(ctx, counted(40)[20:], make([]float32, 40))} {
		named, ok := errors.AsType[*cluster.MemberError](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, 1, named.Rank)
		assert.ErrorIs(t, err, runtime.ErrDeviceLost)
	}
	assert.Equal(t, 10, s.Len())
	_ = s.Close()
	_ = g.Close()
	_ = dev.Close()
}
