package ann

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

func ivf(t testing.TB, dev *runtime.Device, dim int, m Metric, o IVFOptions) *IVF {
	t.Helper()
	x, err := NewIVF(dev, dim, m, o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, x.Close()) })
	return x
}

// TestLists finds exactly what Flat finds if all lists are read, by every metric and precision, with filters,
// and after every kind of change.
func TestLists(t *testing.T) {
	r := rand.New(rand.NewPCG(61, 62))
	const n, dim, k, lists = 400, 12, 9, 11
	vectors, queries, ids := random(r, n, dim), random(r, 8, dim), numbers(r, n)
	vectors[0] = 9 // the scale of all
	for _, name := range devices {
		dev := open(t, name)
		for _, m := range metrics(t) {
			for _, p := range []Precision{FP32, FP16, INT8, INT8Scaled} {
				if name != "cpu:0" && (p != FP32 || m.kind != euclidean && m.kind != cosine && m.kind != manhattan) || p > FP16 &&
					m.kind > manhattan {
					continue
				}
				f := flat(t, dev, dim, m, FlatOptions{Precision: p})
				x := ivf(t, dev, dim, m, IVFOptions{Precision: p, Lists: lists, Probes: lists})
				same := func(what string) {
					t.Helper()
					mask := make([]bool, f.Len())
					for i := range mask {
						mask[i] = i%3 > 0
					}
					require.Equal(t, f.Len(), x.Len())
					for _, filter := range []*Filter{nil, Mask(mask), IDSet(ids[100:160]), IDRange(0, 1<<28)} {
						want, err := f.SearchBatch(t.Context(), queries, k, filter)
						require.NoError(t, err)
						got, err := x.SearchBatch(t.Context(), queries, k, filter)
						require.NoError(t, err)
						require.Equal(t, want, got, "%s %v %v %s", name, m, p, what)
						one, err := x.Search(t.Context(), nil, queries[:dim], k, filter)
						require.NoError(t, err)
						require.Equal(t, want[0], one, "%s %v %v %s", name, m, p, what)
					}
				}
				both := func(change func(ix Index) error) {
					t.Helper()
					require.NoError(t, change(f))
					require.NoError(t, change(x))
				}
				both(func(ix Index) error { return ix.Add(t.Context(), ids[:100], vectors[:100*dim]) })
				require.Equal(t, 1, x.Info().IVF.Lists)
				same("before there are lists")
				both(func(ix Index) error { return ix.Add(t.Context(), ids[100:], vectors[100*dim:]) })
				require.Equal(t, lists, x.Info().IVF.Lists)
				same("with lists")
				both(func(ix Index) error { return ix.Remove(t.Context(), ids[50:150]) })
				both(func(ix Index) error { return Update(t.Context(), ix, ids[7], vectors[200*dim:201*dim]) })
				both(func(ix Index) error { return ix.Add(t.Context(), ids[60:70], vectors[60*dim:70*dim]) })
				same("after changes")
				want, err := f.Get(t.Context(), ids[7])
				require.NoError(t, err)
				got, err := x.Get(t.Context(), ids[7])
				require.NoError(t, err)
				require.Equal(t, want, got)
				require.NoError(t, x.Compact(t.Context()))
				same("after compact")
				require.NoError(t, x.Train(t.Context()))
				same("after train")
				both(func(ix Index) error { return ix.Remove(t.Context(), ids[160:]) })
				both(func(ix Index) error { return ix.Add(t.Context(), ids[200:230], vectors[:30*dim]) })
				require.Less(t, len(x.ids), 200, "the memory of removed vectors is used again")
				same("after most were removed")
			}
		}
	}
}

// TestListTies has many equal distances, on both sides of the last result, in different lists.
func TestListTies(t *testing.T) {
	r := rand.New(rand.NewPCG(63, 64))
	ids, vectors := numbers(r, 2000), make([]float32, 4*2000)
	for i := range vectors {
		vectors[i] = float32(r.IntN(3))
	}
	for _, name := range devices {
		for _, m := range []Metric{Euclidean, Hamming} {
			x := ivf(t, open(t, name), 4, m, IVFOptions{Lists: 40, Probes: 40})
			require.NoError(t, x.Add(t.Context(), ids, vectors))
			for _, k := range []int{1, 10, 500, 1025, 4000} {
				got, err := x.Search(t.Context(), nil, vectors[:4], k, nil)
				require.NoError(t, err)
				require.Equal(t, scan(m, 4, vectors[:4], ids, vectors, nil)[:min(k, 2000)], got, "%s %v %d", name, m, k)
			}
		}
	}
}

// TestListRecall finds most of the nearest with few lists, and k vectors wherever there are k.
func TestListRecall(t *testing.T) {
	const dim, k = 24, 10
	for _, o := range []IVFOptions{{Probes: 40}, {Probes: 40, Codes: 6}, {Lists: 40, Probes: 8},
		{Lists: 40, Probes: 8, Codes: 6}} {
		r := rand.New(rand.NewPCG(65, 66))
		queries := clustered(r, 40, dim)
		name, n := "cpu:0", 5000
		if o.Lists > 0 {
			name, n = "opencl:0", 1000
		}
		vectors, ids := clustered(r, n, dim), numbers(r, n)
		for _, m := range []Metric{Euclidean, Cosine, Manhattan} {
			if (name != "cpu:0" || o.Codes > 0) && m.kind == manhattan {
				continue
			}
			x := ivf(t, open(t, name), dim, m, o)
			require.NoError(t, x.Add(t.Context(), ids, vectors))
			require.Equal(t, cmp.Or(o.Lists, usualLists(n)), x.Info().IVF.Lists)
			half := Predicate(func(id int64) bool { return id%2 == 0 })
			for _, filter := range []*Filter{nil, half} {
				assert.Greater(t, recall(t, x, queries, dim, k, filter), 0.9, "%s %v", name, m)
			}
			all, few := recall(t, x, queries, dim, k, nil), 0
			for _, list := range x.lists {
				if len(list) > n/10 {
					few++
				}
			}
			assert.Zero(t, few, "lists with a tenth of all vectors")
			require.NoError(t, x.SetProbes(1))
			assert.Less(t, recall(t, x, queries, dim, k, nil), all, "%s %v: one list is not all", name, m)
			got, err := x.Search(t.Context(), nil, queries[:dim], n, half)
			require.NoError(t, err)
			assert.Len(t, got, half.last.Load().count)
			lists, err := x.SearchBatch(t.Context(), queries, k, half)
			require.NoError(t, err)
			for q, list := range lists {
				one, err := x.Search(t.Context(), nil, queries[q*dim:(q+1)*dim], k, half)
				require.NoError(t, err)
				require.Equal(t, one, list)
			}
		}
	}
}

// TestListSeeds makes the same lists of the same seed, and no centre that is not a number.
func TestListSeeds(t *testing.T) {
	r := rand.New(rand.NewPCG(67, 68))
	vectors := random(r, 1000, 5)
	vectors[5], vectors[12] = float32(math.NaN()), float32(math.Inf(1))
	file := func(seed uint64, m Metric) []byte {
		x := ivf(t, open(t, "cpu:0"), 5, m, IVFOptions{Lists: 30, Seed: seed, Probes: 30})
		require.NoError(t, x.Add(t.Context(), counted(1000), vectors))
		var b bytes.Buffer
		_, err := x.WriteTo(&b)
		require.NoError(t, err)
		list, err := readSections(b.Bytes())
		require.NoError(t, err)
		for _, s := range list {
			if s.name == "centres" {
				for _, v := range elements[float32](s.data) {
					require.False(t, math.IsNaN(float64(v)) || math.IsInf(float64(v), 0))
				}
			}
		}
		found := find(t, x, vectors[:5], nil)
		require.Len(t, found, 10)
		return b.Bytes()
	}
	for _, m := range []Metric{Euclidean, Angular} {
		assert.Equal(t, file(1, m), file(1, m))
		assert.NotEqual(t, file(1, m), file(2, m))
	}
	same := ivf(t, open(t, "cpu:0"), 2, Euclidean, IVFOptions{Lists: 8})
	require.NoError(t, same.Add(t.Context(), counted(200), make([]float32, 400)))
	assert.Equal(t, []Result{{0, 0}, {1, 0}}, find(t, same, []float32{0, 0}, nil)[:2],
		"equal vectors in fewer lists than there are")
}

// TestMove compares means with sums in order, and splits the largest list for one that is empty.
func TestMove(t *testing.T) {
	sample, middle := []float32{1, 2, 3, 4, 8, 16}, make([]float32, 6)
	move(middle, sample, []uint32{2, 2, 0}, 2, 2)
	assert.Equal(t, []float32{8, 16}, middle[:2])
	e := float32(1. / 1024)
	assert.Equal(t, []float32{2 * (1 + e), 3 * (1 - e), 2 * (1 - e), 3 * (1 + e)}, middle[2:])
}

// TestListFile reads indexes back: they answer as before, and after changes, which leave the file as it is.
func TestListFile(t *testing.T) {
	r := rand.New(rand.NewPCG(69, 70))
	const n, dim = 500, 12
	for _, name := range []string{"", "opencl:0"} {
		if name != "" {
			open(t, name)
		}
		for _, o := range []IVFOptions{{Lists: 20, Probes: 3, Seed: 9, MaxRows: 2000}, {Precision: INT8Scaled, Lists: 7}, {},
			{Lists: 20, Probes: 9, Codes: 3, Refine: 5}, {Codes: 2}} {
			x := ivf(t, open(t, "cpu:0"), dim, Euclidean, o)
			vectors, ids := clustered(r, n, dim), numbers(r, n)
			require.NoError(t, x.Add(t.Context(), ids, vectors))
			require.NoError(t, x.Remove(t.Context(), ids[3:30]))
			require.NoError(t, x.Add(t.Context(), ids[3:5], vectors[3*dim:5*dim]))
			path := filepath.Join(t.TempDir(), "lists")
			require.NoError(t, Save(t.Context(), path, x))
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			info, err := Verify(t.Context(), path)
			require.NoError(t, err)
			assert.Equal(t, x.Len(), info.Len)
			in := x.Info().IVF
			assert.Equal(t, IVFOptions{Lists: in.Lists, Probes: in.Probes, Seed: in.Seed, Codes: in.Codes, Refine: in.Refine},
				*info.IVF)
			assert.Equal(t, x.Info().Kind, info.Kind)
			ix, err := Open(t.Context(), path, Options{Device: name})
			require.NoError(t, err)
			loaded, err := Read(t.Context(), bytes.NewReader(before), Options{Device: name})
			require.NoError(t, err)
			mask := make([]bool, x.Len())
			for i := range mask {
				mask[i] = i > 400
			}
			for _, other := range []Index{ix, loaded} {
				want := x.Info()
				want.Device, want.DeviceMemory = other.Info().Device, other.Info().DeviceMemory
				assert.Equal(t, want, other.Info())
				for range 10 {
					query := clustered(r, 1, dim)
					for _, filter := range []*Filter{nil, IDRange(0, 1<<28), Mask(mask)} {
						want, got := find(t, x, query, filter), find(t, other, query, filter)
						if name == "" {
							assert.Equal(t, want, got)
							continue
						}
						for i := range got {
							assert.InDelta(t, want[i].Distance, got[i].Distance, 1e-4)
						}
					}
				}
				var again bytes.Buffer
				_, err := other.WriteTo(&again)
				require.NoError(t, err)
				assert.True(t, bytes.Equal(before, again.Bytes()), "the same index is the same file")
				zeros := make([]float32, dim)
				require.NoError(t, other.Add(t.Context(), []int64{1}, zeros))
				require.NoError(t, Update(t.Context(), other, ids[40], zeros))
				require.NoError(t, other.Remove(t.Context(), ids[50:]))
				sameCodes(t, other.(*IVF))
				got, err := Exact(t.Context(), other, zeros, 2, nil)
				require.NoError(t, err)
				assert.Equal(t, []Result{{1, 0}, {ids[40], 0}}, got)
				require.NoError(t, other.Close())
			}
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(before, after))
		}
	}
}

// TestListDamage changes bytes of a file whose checksums are right.
func TestListDamage(t *testing.T) {
	x := ivf(t, open(t, "cpu:0"), 2, Euclidean, IVFOptions{Lists: 3, Probes: 2, Codes: 1, Refine: 1})
	require.NoError(t, x.Add(t.Context(), []int64{2, 1, 0}, []float32{0, 1, 2, 3, 4, 5}))
	require.NoError(t, x.Add(t.Context(), counted(50)[3:], random(rand.New(rand.NewPCG(71, 72)), 47, 2)))
	var b bytes.Buffer
	_, err := x.WriteTo(&b)
	require.NoError(t, err)
	list, err := readSections(b.Bytes())
	require.NoError(t, err)
	refused, path := map[string]int{}, filepath.Join(t.TempDir(), "lists")
	for _, s := range list {
		first := bytes.Index(b.Bytes(), s.data)
		for i := range s.data {
			bad := bytes.Clone(b.Bytes())
			bad[first+i] ^= 0x80
			_, err := Read(t.Context(), bytes.NewReader(bad), Options{})
			require.ErrorIs(t, err, runtime.ErrCorrupt)
			if s.name != "config" && s.name != "vectors" && s.name != "codes" {
				require.NoError(t, os.WriteFile(path, bad, 0o600))
				ix, err := Open(t.Context(), path, Options{}) // which reads sizes only
				require.NoError(t, err)
				assert.Equal(t, x.Info(), ix.Info())
				for range 2 {
					_, err = ix.Search(t.Context(), nil, []float32{0, 0}, 9, nil)
					assert.ErrorIs(t, err, runtime.ErrCorrupt, s.name)
				}
				assert.ErrorIs(t, ix.Add(t.Context(), []int64{99}, []float32{1, 2}), runtime.ErrCorrupt, s.name)
				assert.ErrorIs(t, ix.Remove(t.Context(), []int64{1}), runtime.ErrCorrupt, s.name)
				assert.ErrorIs(t, Save(t.Context(), path+"2", ix), runtime.ErrCorrupt, s.name)
				require.NoError(t, ix.Close())
			}
			ix, err := Read(t.Context(), bytes.NewReader(sealed(bad)), Options{})
			if err != nil {
				refused[s.name]++
				continue
			}
			_, err = ix.Search(t.Context(), nil, []float32{0, 0}, 9, nil)
			assert.NoError(t, err)
			require.NoError(t, ix.Close())
		}
	}
	for _, name := range []string{"config", "ids", "byid", "order", "lists"} {
		assert.Positive(t, refused[name], name)
	}
	assert.Equal(t, 4*3, refused["lists"], "each number of vectors in a list")
	assert.Zero(t, refused["vectors"])
	assert.Zero(t, refused["codes"])
}

// TestListNaN has NaN in the values of codes and in a centre of a file whose checksums are right.
func TestListNaN(t *testing.T) {
	x := ivf(t, open(t, "cpu:0"), 2, Euclidean, IVFOptions{Lists: 3, Probes: 2, Codes: 1, Refine: 1})
	require.NoError(t, x.Add(t.Context(), counted(50), random(rand.New(rand.NewPCG(71, 72)), 50, 2)))
	var b bytes.Buffer
	_, err := x.WriteTo(&b)
	require.NoError(t, err)
	list, err := readSections(b.Bytes())
	require.NoError(t, err)
	for _, s := range list {
		if s.name != "book" && s.name != "centres" {
			continue
		}
		bad := bytes.Clone(b.Bytes())
		copy(bad[bytes.Index(bad, s.data)+4:], bytesOf([]float32{float32(math.NaN())}))
		_, err := Read(t.Context(), bytes.NewReader(sealed(bad)), Options{})
		assert.ErrorIs(t, err, runtime.ErrCorrupt)
		assert.ErrorContains(t, err, "NaN")
	}
}

// TestListErrors makes every mistake of a call, and finds the index unchanged.
func TestListErrors(t *testing.T) {
	dev, ctx := open(t, "cpu:0"), t.Context()
	for _, o := range []IVFOptions{{Lists: -1}, {Probes: -1}, {MaxRows: -1}, {Lists: mostLists + 1}, {MaxDim: 1},
		{Codes: -1}, {Codes: 2}, {Refine: -1}, {Refine: mostRefine + 1}} {
		_, err := NewIVF(dev, 2, Euclidean, o)
		assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	}
	x := ivf(t, dev, 2, Euclidean, IVFOptions{Lists: 1, MaxRows: 40})
	require.NoError(t, x.Add(ctx, []int64{1, 2, 9}, []float32{0, 0, 1, 1, 2, 2}))
	gone, cancel := context.WithCancel(ctx)
	cancel()
	for i, c := range []struct{ err, want error }{
		{x.Add(ctx, []int64{-1}, []float32{0, 0}), runtime.ErrInvalidArgument},
		{x.Add(ctx, []int64{9}, []float32{0, 0}), runtime.ErrInvalidArgument},
		{x.Add(ctx, []int64{5, 5}, []float32{0, 0, 1, 1}), runtime.ErrInvalidArgument},
		{x.Add(ctx, []int64{5}, []float32{0, 0, 1}), runtime.ErrDimension},
		{x.Add(ctx, counted(50)[10:48], make([]float32, 76)), runtime.ErrBudget},
		{x.Add(gone, counted(50)[10:40], make([]float32, 60)), context.Canceled},
		{x.Add(gone, []int64{10}, []float32{0, 0}), context.Canceled},
		{x.Remove(ctx, []int64{1, 4}), runtime.ErrInvalidArgument},
		{x.Remove(ctx, []int64{1, 1}), runtime.ErrInvalidArgument},
		{x.Remove(gone, []int64{1}), context.Canceled},
		{x.Update(ctx, 4, []float32{0, 0}), runtime.ErrInvalidArgument},
		{x.Update(ctx, 1, []float32{0}), runtime.ErrDimension},
		{x.Update(gone, 1, []float32{0, 0}), context.Canceled},
		{x.Train(gone), context.Canceled},
		{x.SetProbes(0), runtime.ErrInvalidArgument},
		{x.SetRefine(0), runtime.ErrInvalidArgument},
		{x.SetRefine(2), runtime.ErrUnsupported},
	} {
		assert.ErrorIs(t, c.err, c.want, i)
	}
	for i, c := range []struct {
		query  []float32
		k      int
		filter *Filter
		want   error
	}{{[]float32{0, 0}, 0, nil, runtime.ErrInvalidArgument}, {make([]float32, 4), 1, nil, runtime.ErrDimension},
		{nil, 1, nil, runtime.ErrDimension},
		{[]float32{0, 0}, 1, Mask(make([]bool, 2)), runtime.ErrDimension}} {
		dst := []Result{{3, 3}}
		got, err := x.Search(ctx, dst, c.query, c.k, c.filter)
		assert.ErrorIs(t, err, c.want, i)
		assert.Equal(t, dst, got)
	}
	_, err := x.SearchBatch(gone, []float32{0, 0}, 1, nil)
	assert.ErrorIs(t, err, context.Canceled)
	_, err = x.Get(ctx, 3)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	got, err := x.Search(ctx, nil, []float32{0, 0}, 9, nil)
	require.NoError(t, err)
	assert.Equal(t, []Result{{1, 0}, {2, math.Sqrt2}, {9, math.Sqrt(8)}}, got)
	require.NoError(t, x.Remove(ctx, []int64{1, 2, 9}))
	got, err = x.Search(ctx, nil, []float32{0, 0}, 9, nil)
	require.NoError(t, err)
	assert.Empty(t, got)
	require.NoError(t, x.Compact(ctx))
	require.NoError(t, x.Train(ctx))
	_, err = x.WriteTo(&bytes.Buffer{})
	require.NoError(t, err)
	ix, err := New(ctx, "IVF", 2, "cosine", Options{IVF: IVFOptions{Probes: 7}, Precision: FP16, Device: "cpu:0"})
	require.NoError(t, err)
	assert.Equal(t, 7, ix.Info().IVF.Probes)
	assert.Equal(t, "ivf of 0 vectors of 2 components, cosine, fp16 on cpu:0, 7 of 1 lists", fmt.Sprint(ix.Info()))
	require.NoError(t, ix.Close())
	require.NoError(t, ix.Close())
	assert.ErrorIs(t, ix.Add(ctx, []int64{5}, []float32{0, 0}), runtime.ErrClosed)
	_, err = ix.SearchBatch(ctx, []float32{0, 0}, 1, nil)
	assert.ErrorIs(t, err, runtime.ErrClosed)
	_, err = ix.WriteTo(&bytes.Buffer{})
	assert.ErrorIs(t, err, runtime.ErrClosed)
}

// TestListConcurrent changes an index from some goroutines while others search.
func TestListConcurrent(t *testing.T) {
	for _, codes := range []int{0, 2} {
		concurrently(t, ivf(t, open(t, "cpu:0"), 4, L2Squared, IVFOptions{Lists: 12, Probes: 3, Codes: codes}))
	}
}

func concurrently(t *testing.T, x *IVF) {
	ctx := t.Context()
	require.NoError(t, x.Add(ctx, []int64{0}, make([]float32, 4)))
	even := Predicate(func(id int64) bool { return id%2 == 0 })
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(73, uint64(g)))
			for i := range 100 {
				ids := []int64{int64(1 + 2*(g+4*i)), int64(2 + 2*(g+4*i))}
				far := make([]float32, 8)
				for j := range far {
					far[j] = 50 + r.Float32()
				}
				ok := assert.NoError(t, x.Add(ctx, ids, far)) && assert.NoError(t, x.Update(ctx, ids[0], far[4:]))
				switch {
				case !ok:
					return
				case r.IntN(3) == 0:
					assert.NoError(t, x.Remove(ctx, ids))
				case r.IntN(20) == 0:
					assert.NoError(t, x.Train(ctx))
				}
				for _, filter := range []*Filter{nil, even} {
					got, err := x.Search(ctx, nil, []float32{1, 0, 0, 0}, 5, filter)
					if !assert.NoError(t, err) || !assert.Equal(t, Result{0, 1}, got[0]) {
						return
					}
					slices.SortFunc(got, func(a, b Result) int { return int(a.ID - b.ID) })
					assert.Len(t, slices.CompactFunc(got, func(a, b Result) bool { return a.ID == b.ID }), len(got),
						"an id is found once")
				}
			}
		})
	}
	wg.Wait()
	assert.Equal(t, 12, x.Info().IVF.Lists)
}

// TestListFilterRecall finds as much with a filter as without: the nearest that a filter admits lie in more
// lists than the nearest of all.
func TestListFilterRecall(t *testing.T) {
	r := rand.New(rand.NewPCG(77, 78))
	const n, dim, k = 5000, 24, 10
	vectors, queries, ids := random(r, n, dim), random(r, 40, dim), make([]int64, n)
	for i := range ids {
		ids[i] = int64(i)
	}
	x := ivf(t, open(t, "cpu:0"), dim, Euclidean, IVFOptions{Probes: 30})
	require.NoError(t, x.Add(t.Context(), ids, vectors))
	all := recall(t, x, queries, dim, k, nil)
	for _, one := range []int64{2, 5, 10, 25} {
		assert.Greater(t, recall(t, x, queries, dim, k, Predicate(func(id int64) bool { return id%one == 0 })), all-0.02,
			"one of %d", one)
	}
	assert.Less(t, all, 0.9, "the search without a filter leaves some out")
}

// TestListsOutOfRoom searches an index for which the device has no room.
func TestListsOutOfRoom(t *testing.T) {
	r := rand.New(rand.NewPCG(75, 76))
	const n, dim = 3000, 16
	s, err := runtime.New(runtime.Config{MemoryLimit: 200 << 10})
	require.NoError(t, err)
	defer s.Close()
	dev, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	vectors, ids := random(r, n, dim), numbers(r, n)
	for _, o := range []IVFOptions{{Lists: 9, Probes: 9}, {Lists: 9, Probes: 9, Codes: 8, Refine: 60}} {
		small, err := NewIVF(dev, dim, Euclidean, o)
		require.NoError(t, err)
		require.NoError(t, small.Add(t.Context(), ids, vectors))
		assert.True(t, small.Info().Streams)
		for q := range 5 {
			query := vectors[q*dim : (q+1)*dim]
			got, err := small.Search(t.Context(), nil, query, 30, nil)
			require.NoError(t, err, fmt.Sprint(q))
			judge(t, Euclidean, dim, 30, scan(Euclidean, dim, query, ids, vectors, nil), got, fmt.Sprint(q))
		}
		require.NoError(t, small.Close())
	}
}

// TestIVFOfNaN adds vectors that no centre can be made of: it is tried again only when there are far more.
func TestIVFOfNaN(t *testing.T) {
	for _, o := range []IVFOptions{{}, {Lists: 2}, {Codes: 1}} {
		lists := o.Lists
		x, err := NewIVF(open(t, "cpu:0"), 2, L2Squared, o)
		require.NoError(t, err)
		ids, vectors, tried := make([]int64, 1000), slices.Repeat([]float32{float32(math.NaN())}, 2000), []int{}
		for call := range 20 {
			for i := range ids {
				ids[i] = int64(1000*call + i)
			}
			if x.due(1000*call+1000) > 0 {
				tried = append(tried, call+1)
			}
			require.NoError(t, x.Add(t.Context(), ids, vectors))
		}
		assert.Equal(t, map[int][]int{0: {5}, 2: {1, 2, 4, 8, 16}}[lists], tried)
		for i := range ids {
			ids[i], vectors[2*i], vectors[2*i+1] = int64(20000+i), float32(i), 0
		}
		require.NoError(t, x.Add(t.Context(), ids, vectors))
		require.NoError(t, x.Train(t.Context()))
		assert.Greater(t, x.Info().IVF.Lists, 1)
		found, err := x.Search(t.Context(), nil, []float32{7, 0}, 1, nil)
		require.NoError(t, err)
		assert.Equal(t, []Result{{20007, 0}}, found)
		require.NoError(t, x.Close())
	}
}

// TestIVFProbesOfClosed finds that a call that fails changes no option.
func TestIVFProbesOfClosed(t *testing.T) {
	x := ivf(t, open(t, "cpu:0"), 2, L2Squared, IVFOptions{Probes: 5, Lists: 1})
	require.NoError(t, x.Close())
	assert.ErrorIs(t, x.SetProbes(99), runtime.ErrClosed)
	assert.Equal(t, 5, x.Info().IVF.Probes)
}

// TestIVFProbesOfAnyNumber reads all lists where there are fewer than probes, also if a filter makes it more
// probes than an int counts.
func TestIVFProbesOfAnyNumber(t *testing.T) {
	r := rand.New(rand.NewPCG(85, 86))
	const n, dim = 600, 4
	vectors, even := clustered(r, n, dim), Predicate(func(id int64) bool { return id%2 == 0 })
	for _, codes := range []int{0, 2} {
		x := ivf(t, open(t, "cpu:0"), dim, L2Squared, IVFOptions{Lists: 30, Probes: math.MaxInt, Codes: codes, Refine: n})
		require.NoError(t, x.Add(t.Context(), counted(n), vectors))
		for _, filter := range []*Filter{nil, even} {
			want, err := x.Exact(t.Context(), nil, vectors[:dim], 9, filter)
			require.NoError(t, err)
			got, err := x.Search(t.Context(), nil, vectors[:dim], 9, filter)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
}
