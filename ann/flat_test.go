package ann

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/driver"
)

// open opens a device, or skips the test if it is not here.
func open(t testing.TB, name string) *runtime.Device {
	t.Helper()
	dev, err := runtime.Open(t.Context(), name)
	if err != nil {
		t.Skipf("%s is not here: %v", name, err)
	}
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	return dev
}

func flat(t testing.TB, dev *runtime.Device, dim int, m Metric, o FlatOptions) *Flat {
	t.Helper()
	f, err := NewFlat(dev, dim, m, o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.Close()) })
	return f
}

// metrics are all of them, with a registered one.
func metrics(t testing.TB) (list []Metric) {
	_ = Register("offset", func(a, b []float32) float64 { return 7 + float64(a[0]-b[0])*float64(a[0]-b[0]) })
	for _, name := range append(slices.Clone(kindNames[1:]), "minkowski(3)", "minkowski(0.5)", "custom:Offset") {
		if name == "minkowski" {
			continue
		}
		m, err := ParseMetric(name)
		require.NoError(t, err)
		list = append(list, m)
	}
	return list
}

// random returns rows of components around 0, some of them equal to others, one of zeros, and in some places
// equal to those of the row before.
func random(r *rand.Rand, n, dim int) []float32 {
	x := make([]float32, n*dim)
	for i := range x {
		x[i] = float32(r.NormFloat64()) / 2
		if i >= dim && r.IntN(3) == 0 {
			x[i] = x[i-dim]
		}
	}
	for i := 5; i < n; i += 17 {
		copy(x[i*dim:(i+1)*dim], x[(i-3)*dim:])
	}
	if n > 3 {
		clear(x[3*dim : 4*dim])
	}
	return x
}

// numbers returns n different ids in no order.
func numbers(r *rand.Rand, n int) []int64 {
	ids := make([]int64, n)
	for i, p := range r.Perm(n) {
		ids[i] = int64(p)*1_000_003 + 17
	}
	return ids
}

// stored returns vectors as an index with this precision has them, where corpus fixes the scale.
func stored(p Precision, corpus, x []float32) []float32 {
	c := p.scaleOf(corpus)
	b, out := make([]byte, len(x)*c.size()), make([]float32, len(x))
	c.encode(b, x)
	c.decode(out, b)
	return out
}

// tolerance is how far a distance may be from that in float64.
func tolerance(m Metric, dim int, d float64) float64 {
	e := float64(dim)/(1<<23) + 1e-6
	switch m.kind {
	case cosine:
		return e
	case angular:
		return e / max(math.Sin(d), math.Sqrt(e))
	case hamming, jaccard:
		return 1e-6
	case custom:
		return 0
	case minkowski:
		return 1e-5 * d
	}
	return e * d
}

// scan is what a search has to find, computed in float64.
func scan(m Metric, dim int, query []float32, ids []int64, vectors []float32,
	admits func(id int64) bool) (list []Result) {
	for i, id := range ids {
		if admits == nil || admits(id) {
			list = append(list, Result{id, m.distance(query, vectors[i*dim:(i+1)*dim])})
		}
	}
	slices.SortFunc(list, Result.compare)
	return list
}

// judge compares what was found with all that there is, in order: distances that are nearly equal may have
// changed places.
func judge(t testing.TB, m Metric, dim, k int, want, got []Result, what string) {
	t.Helper()
	require.Len(t, got, min(k, len(want)), what)
	exact := map[int64]float64{}
	for _, r := range want {
		exact[r.ID] = r.Distance
	}
	for i, r := range got {
		d, ok := exact[r.ID]
		require.True(t, ok, "%s: result %d is %v, which is not admitted or there twice", what, i, r)
		delete(exact, r.ID)
		if near := want[i].Distance; math.IsNaN(near) || math.IsNaN(d) || math.IsInf(near, 0) {
			require.Equal(t, fmt.Sprint(near, near), fmt.Sprint(r.Distance, d), "%s: result %d is %v", what, i, r)
		} else {
			require.InDelta(t, d, r.Distance, tolerance(m, dim, d), "%s: result %d is %v", what, i, r)
			require.InDelta(t, near, d, 2*tolerance(m, dim, d), "%s: result %d is %v and should be %v", what, i, r, want[i])
		}
		if i > 0 {
			require.Negative(t, got[i-1].compare(r), "%s: results %v and %v", what, got[i-1], r)
		}
	}
}

var devices = []string{"cpu:0", "opencl:0", "cpu:reference"}

// TestFlat compares every metric, precision and device with a scan in float64, for one query and many.
func TestFlat(t *testing.T) {
	for _, name := range devices {
		t.Run(name, func(t *testing.T) {
			dev := open(t, name)
			for _, m := range metrics(t) {
				for _, p := range []Precision{FP32, FP16, INT8, INT8Scaled} {
					for _, size := range [][3]int{{1, 1, 1}, {300, 19, 7}, {1500, 64, 10}} {
						if name != "cpu:0" && (p != FP32 && (m.kind > cosine || size[0] > 1000) || m.kind > canberra) {
							continue
						}
						// its exact powers take a minute
						if testing.Short() && name == "cpu:reference" && m.kind == minkowski && size[0] > 1000 {
							continue
						}
						t.Run(fmt.Sprint(m, p, size), func(t *testing.T) { compare(t, dev, m, p, size[0], size[1], size[2]) })
					}
				}
			}
		})
	}
}

func compare(t *testing.T, dev *runtime.Device, m Metric, p Precision, n, dim, k int) {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	vectors, ids, queries := random(r, n, dim), numbers(r, n), random(r, 5, dim)
	copy(queries, vectors[n/2*dim:(n/2+1)*dim]) // one that is there
	f := flat(t, dev, dim, m, FlatOptions{Precision: p})
	require.NoError(t, f.Add(t.Context(), ids, vectors))
	held, asked := stored(p, vectors, vectors), stored(p, vectors, queries)
	lists, err := f.SearchBatch(t.Context(), queries, k, nil)
	require.NoError(t, err)
	for q, got := range lists {
		judge(t, m, dim, k, scan(m, dim, asked[q*dim:(q+1)*dim], ids, held, nil), got, fmt.Sprint("query ", q))
		one, err := f.Search(t.Context(), nil, queries[q*dim:(q+1)*dim], k, nil)
		require.NoError(t, err)
		require.Equal(t, got, one, "one query and many")
	}
	// as many as the CPU computes in another way
	many := random(r, 45, dim)[:dim*map[bool]int{true: 45, false: 3}[dev.String() == "cpu:0"]]
	lists, err = f.SearchBatch(t.Context(), many, k, nil)
	require.NoError(t, err)
	for q, got := range lists {
		one, err := f.Search(t.Context(), nil, many[q*dim:(q+1)*dim], k, nil)
		require.NoError(t, err)
		require.Equal(t, one, got, "one query and 45")
	}
	v, err := f.Get(t.Context(), ids[n/3])
	require.NoError(t, err)
	require.Equal(t, held[n/3*dim:(n/3+1)*dim], v)
}

// TestTies has many equal distances, on both sides of the last result, for ids in no order.
func TestTies(t *testing.T) {
	for _, name := range devices {
		dev := open(t, name)
		for _, m := range []Metric{Euclidean, Hamming} {
			f := flat(t, dev, 4, m, FlatOptions{})
			r := rand.New(rand.NewPCG(2, 2))
			ids := numbers(r, 3000)
			vectors := make([]float32, 4*len(ids))
			for i := range vectors {
				vectors[i] = float32(r.IntN(2))
			}
			require.NoError(t, f.Add(t.Context(), ids[:1700], vectors[:4*1700]))
			require.NoError(t, f.Add(t.Context(), ids[1700:], vectors[4*1700:]))
			query := []float32{1, 0, 1, 0}
			for _, k := range []int{1, 10, 128, 500, 1024, 1025, 4000} {
				got, err := f.Search(t.Context(), nil, query, k, nil)
				require.NoError(t, err)
				require.Equal(t, scan(m, 4, query, ids, vectors, nil)[:min(k, 3000)], got, "%s %v k=%d", name, m, k)
			}
		}
	}
}

// TestNaN has vectors whose distance is NaN or infinite.
func TestNaN(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	vectors := []float32{nan, 0, inf, 0, 1, 0, 0, 0, nan, nan, 3, 4}
	ids := []int64{6, 5, 4, 3, 2, 1}
	for _, name := range devices {
		dev := open(t, name)
		for _, m := range metrics(t) {
			if m.kind == custom {
				continue
			}
			f := flat(t, dev, 2, m, FlatOptions{})
			require.NoError(t, f.Add(t.Context(), ids, vectors))
			for _, query := range [][]float32{{0, 0}, {1, 1}} {
				got, err := f.Search(t.Context(), nil, query, 10, nil)
				require.NoError(t, err)
				judge(t, m, 2, 10, scan(m, 2, query, ids, vectors, nil), got, fmt.Sprint(name, m, query))
			}
		}
	}
}

// TestChanges makes random changes and compares each search with a scan of what should be there.
func TestChanges(t *testing.T) {
	for _, name := range []string{"cpu:0", "opencl:0", "three"} {
		var more []*runtime.Device
		if name == "three" {
			name, more = "cpu:0", several(t, "cpu:0", "cpu:reference")
		}
		dev := open(t, name)
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(3, seed))
			const dim = 3
			f := flat(t, dev, dim, L2Squared, FlatOptions{Devices: more})
			var ids []int64 // in the order in which they were added
			vectors := map[int64][]float32{}
			next := int64(0)
			for step := range 60 {
				switch what := r.IntN(8); {
				case what < 3: // in order, or not
					n := 1 + r.IntN(20)
					rows := random(r, n, dim)
					var some []int64
					for len(some) < n {
						id := next
						if next++; what == 0 {
							id = r.Int64N(10_000)
						}
						if _, there := vectors[id]; !there && !slices.Contains(some, id) {
							some = append(some, id)
						}
					}
					if what == 1 {
						r.Shuffle(n, func(i, j int) { some[i], some[j] = some[j], some[i] })
					}
					require.NoError(t, f.Add(t.Context(), some, rows))
					for i, id := range some {
						vectors[id] = rows[i*dim : (i+1)*dim]
						next = max(next, id+1)
					}
					ids = append(ids, some...)
				case what < 5 && len(ids) > 0: // anywhere, or the last ones
					n := 1 + r.IntN(len(ids))/3
					some := slices.Clone(ids[len(ids)-n:])
					if what == 3 {
						some = some[:0]
						for _, i := range r.Perm(len(ids))[:n] {
							some = append(some, ids[i])
						}
					}
					require.NoError(t, f.Remove(t.Context(), some))
					for _, id := range some {
						delete(vectors, id)
					}
					ids = slices.DeleteFunc(ids, func(id int64) bool { return slices.Contains(some, id) })
				case what == 5 && len(ids) > 0:
					id := ids[r.IntN(len(ids))]
					vectors[id] = random(r, 1, dim)
					require.NoError(t, Update(t.Context(), f, id, vectors[id]))
				case what == 6:
					require.NoError(t, f.Compact(t.Context()))
				}
				require.Equal(t, len(ids), f.Len())
				if r.IntN(3) > 0 {
					continue
				}
				var rows []float32
				mask := make([]bool, len(ids))
				admitted := map[int64]bool{}
				for i, id := range ids {
					rows = append(rows, vectors[id]...)
					mask[i] = r.IntN(2) == 0
					admitted[id] = mask[i]
				}
				query := random(r, 1, dim)
				got, err := f.Search(t.Context(), nil, query, 9, nil)
				require.NoError(t, err)
				judge(t, L2Squared, dim, 9, scan(L2Squared, dim, query, ids, rows, nil), got, fmt.Sprint(name, seed, step))
				got, err = f.Search(t.Context(), nil, query, 9, Mask(mask))
				require.NoError(t, err)
				judge(t, L2Squared, dim, 9, scan(L2Squared, dim, query, ids, rows, func(id int64) bool { return admitted[id] }),
					got, fmt.Sprint(name, seed, step, " mask"))
			}
		}
	}
}

// TestErrors makes every mistake of a call, in the order of the specification, and finds the index unchanged.
func TestErrors(t *testing.T) {
	dev := open(t, "cpu:0")
	ctx := t.Context()
	f := flat(t, dev, 2, Euclidean, FlatOptions{MaxRows: 4})
	require.NoError(t, f.Add(ctx, []int64{1, 2, 9}, []float32{0, 0, 1, 1, 2, 2}))
	for _, c := range []struct {
		want error
		err  error
	}{
		{runtime.ErrInvalidArgument, f.Add(ctx, []int64{-1}, []float32{0, 0})},
		{runtime.ErrInvalidArgument, f.Add(ctx, []int64{9}, []float32{0, 0})},
		{runtime.ErrInvalidArgument, f.Add(ctx, []int64{5, 5}, []float32{0, 0, 1, 1})},
		{runtime.ErrDimension, f.Add(ctx, []int64{5}, []float32{0, 0, 1})},
		{runtime.ErrDimension, f.Add(ctx, []int64{5, 6}, []float32{0, 0})},
		{runtime.ErrBudget, f.Add(ctx, []int64{5, 6}, []float32{0, 0, 1, 1})},
		{runtime.ErrInvalidArgument, f.Remove(ctx, []int64{1, 4})},
		{runtime.ErrInvalidArgument, f.Remove(ctx, []int64{1, 1})},
		{runtime.ErrInvalidArgument, f.Update(ctx, 4, []float32{0, 0})},
		{runtime.ErrDimension, f.Update(ctx, 1, []float32{0})},
	} {
		assert.ErrorIs(t, c.err, c.want)
	}
	half, most := flat(t, dev, 2, L2Squared, FlatOptions{Precision: FP16}), math.Nextafter32(65520, 0)
	require.NoError(t, half.Add(ctx, []int64{1, 2}, []float32{1, -most, float32(math.Inf(1)), float32(math.NaN())}))
	assert.ErrorIs(t, half.Add(ctx, []int64{3, 4}, []float32{0, 0, 1, -65520}), runtime.ErrInvalidArgument)
	assert.ErrorIs(t, half.Update(ctx, 1, []float32{1e30, 0}), runtime.ErrInvalidArgument)
	kept, err := half.Get(ctx, 1)
	require.NoError(t, err)
	assert.Equal(t, []float32{1, -65504}, kept)
	assert.Equal(t, 2, half.Len())
	search := func(query []float32, k int, filter *Filter) error {
		dst := []Result{{3, 3}}
		got, err := f.Search(ctx, dst, query, k, filter)
		if err != nil {
			assert.Equal(t, dst, got)
		}
		return err
	}
	assert.ErrorIs(t, search([]float32{0, 0}, 0, nil), runtime.ErrInvalidArgument)
	assert.ErrorIs(t, search([]float32{0}, 1, nil), runtime.ErrDimension)
	assert.ErrorIs(t, search([]float32{0, 0, 0, 0}, 1, nil), runtime.ErrDimension)
	assert.ErrorIs(t, search(nil, 1, nil), runtime.ErrDimension)
	assert.ErrorIs(t, search([]float32{0, 0}, 1, Mask([]bool{true})), runtime.ErrDimension)
	_, err = f.SearchBatch(ctx, []float32{0, 0, 0}, 1, nil)
	assert.ErrorIs(t, err, runtime.ErrDimension)
	_, err = f.Get(ctx, 3)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err = f.Search(gone, nil, []float32{0, 0}, 1, nil)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, f.Add(gone, []int64{5}, []float32{0, 0}), context.Canceled)
	assert.ErrorIs(t, f.Add(gone, []int64{0}, []float32{0, 0}), context.Canceled)
	assert.ErrorIs(t, f.Remove(gone, []int64{1}), context.Canceled)
	assert.ErrorIs(t, f.Update(gone, 1, []float32{5, 5}), context.Canceled)
	got, err := f.Search(ctx, nil, []float32{0, 0}, 9, nil)
	require.NoError(t, err)
	assert.Equal(t, []Result{{1, 0}, {2, math.Sqrt2}, {9, math.Sqrt(8)}}, got)

	empty := flat(t, dev, 2, Euclidean, FlatOptions{})
	got, err = empty.Search(ctx, nil, []float32{0, 0}, 9, nil)
	assert.NoError(t, err)
	assert.Empty(t, got)
	lists, err := empty.SearchBatch(ctx, []float32{0, 0, 1, 1}, 9, nil)
	assert.NoError(t, err)
	assert.Len(t, lists, 2)

	scaled := flat(t, dev, 2, Euclidean, FlatOptions{Precision: INT8Scaled})
	require.NoError(t, scaled.Add(ctx, []int64{1}, []float32{3, -5}))
	assert.ErrorIs(t, scaled.Add(ctx, []int64{2}, []float32{6, 0}), runtime.ErrInvalidArgument)
	require.NoError(t, scaled.Add(ctx, []int64{2}, []float32{5, 0}))

	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	assert.ErrorIs(t, f.Add(ctx, []int64{5}, []float32{0, 0}), runtime.ErrClosed)
	assert.ErrorIs(t, f.Remove(ctx, nil), runtime.ErrClosed)
	assert.ErrorIs(t, search([]float32{0, 0}, 1, nil), runtime.ErrClosed)
	_, err = f.WriteTo(&bytes.Buffer{})
	assert.ErrorIs(t, err, runtime.ErrClosed)
}

// TestDeviceClosed has an index and a corpus answer after the program has closed the device.
func TestDeviceClosed(t *testing.T) {
	for _, name := range []string{"cpu:0", "opencl:0"} {
		s, err := runtime.New(runtime.Config{})
		require.NoError(t, err)
		dev, err := s.Open(t.Context(), name)
		if err == nil {
			f, err := NewFlat(dev, 2, Euclidean, FlatOptions{})
			require.NoError(t, err)
			c, err := UploadCorpus(t.Context(), dev, []float32{3, 4}, 2, FP32)
			require.NoError(t, err)
			require.NoError(t, f.Add(t.Context(), []int64{7}, []float32{3, 4}))
			require.NoError(t, dev.Close())
			got, err := f.Search(t.Context(), nil, []float32{0, 0}, 1, nil)
			require.NoError(t, err)
			assert.Equal(t, []Result{{7, 5}}, got)
			distances, err := c.L2Batch(t.Context(), []float32{0, 0})
			require.NoError(t, err)
			assert.Equal(t, []float32{25}, distances)
			require.NoError(t, f.Close())
			require.NoError(t, c.Close())
			_, err = NewFlat(dev, 2, Euclidean, FlatOptions{})
			assert.ErrorIs(t, err, runtime.ErrClosed)
		}
		require.NoError(t, s.Close())
	}
}

// TestNew makes indexes by name.
func TestNew(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		kind   string
		dim    int
		metric string
		o      Options
		want   error
	}{
		{"Brute", 3, "EUCLIDEAN", Options{}, nil},
		{"bruteforce", 4096, "squared_euclidean", Options{}, nil},
		{"GPU", 3, "cosine", Options{Precision: FP16, Device: "cpu:0"}, nil},
		{"bruteforce", 5000, "l2sq", Options{MaxDim: 5000}, nil},
		{"flat", 3, "cosine", Options{Precision: INT8}, nil},
		{"flat", 3, "cosine", Options{Device: "cpu:0"}, nil},
		{"flat", 3, "l2sq", Options{Device: "cpu:7"}, runtime.ErrDeviceIndex},
		{"brute", 4097, "l2sq", Options{}, runtime.ErrInvalidArgument},
		{"brute", 0, "l2sq", Options{}, runtime.ErrInvalidArgument},
		{"tree", 3, "l2sq", Options{}, driver.ErrUnknownBackend},
		{"brute", 3, "l2", Options{}, runtime.ErrInvalidArgument},
		{"brute", 3, "minkowski(0)", Options{}, runtime.ErrInvalidArgument},
		{"brute", 3, "minkowski(nan)", Options{}, runtime.ErrInvalidArgument},
		{"brute", 3, "custom:nobody", Options{}, runtime.ErrInvalidArgument},
		{"brute", 3, "l2sq", Options{Precision: FP16}, runtime.ErrUnsupported},
		{"brute", 3, "l2sq", Options{Device: "cpu:0"}, runtime.ErrUnsupported},
		{"gpu", 3, "l2sq", Options{Precision: 9}, driver.ErrUnsupportedPrecision},
		{"gpu", 3, "l2sq", Options{Device: "cpu:7"}, runtime.ErrDeviceIndex},
		{"brute", 3, "l2sq", Options{MaxRows: -1}, runtime.ErrInvalidArgument},
		{"pq", 16, "l2sq", Options{Device: "cpu:0, cpu:0"}, runtime.ErrUnsupported},
	} {
		ix, err := New(ctx, c.kind, c.dim, c.metric, c.o)
		if c.want != nil {
			assert.ErrorIs(t, err, c.want, "%+v", c)
			continue
		}
		require.NoError(t, err, "%+v", c)
		assert.Equal(t, c.dim, ix.Info().Dim)
		require.NoError(t, ix.Close())
	}
	_, err := New(ctx, "tree", 3, "l2sq", Options{})
	assert.Equal(t, &KindError{"tree"}, err)
	assert.EqualError(t, err, `ann: there is no kind of index "tree": the kinds are brute, flat, gpu, hnsw, ivf and pq`)
	for policy, want := range map[driver.Fallback]error{driver.Prefer: nil, runtime.Require: runtime.ErrNoDevice} {
		s, err := runtime.New(runtime.Config{Fallback: policy})
		require.NoError(t, err)
		if !s.GPUAvailable(ctx) {
			ix, err := New(ctx, "gpu", 3, "l2sq", Options{Session: s})
			assert.ErrorIs(t, err, want)
			if err == nil {
				assert.NotEmpty(t, ix.Info().Fallback)
				require.NoError(t, ix.Close())
			}
		}
		require.NoError(t, s.Close())
	}
}

// TestConcurrent searches while the index changes: every result is of a state that there was.
func TestConcurrent(t *testing.T) {
	dev := open(t, "cpu:0")
	f := flat(t, dev, 2, L2Squared, FlatOptions{})
	ctx := t.Context()
	require.NoError(t, f.Add(ctx, []int64{0}, []float32{0, 0}))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(4, uint64(g)))
			for i := range 300 {
				id := int64(1 + g + 4*i)
				if r.IntN(2) == 0 { // far away, and gone before long
					if assert.NoError(t, f.Add(ctx, []int64{id}, []float32{100, float32(i)})) && r.IntN(2) == 0 {
						assert.NoError(t, f.Remove(ctx, []int64{id}))
					}
				}
				got, err := f.Search(ctx, nil, []float32{0, 1}, 1, nil)
				if !assert.NoError(t, err) || !assert.Equal(t, []Result{{0, 1}}, got) {
					return
				}
			}
		})
	}
	wg.Wait()
}
