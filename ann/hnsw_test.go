package ann

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/mnist"
	"github.com/concord-compute/concord/runtime"
)

func hnsw(t testing.TB, dev *runtime.Device, dim int, m Metric, o HNSWOptions) *HNSW {
	t.Helper()
	h, err := NewHNSW(dev, dim, m, o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, h.Close()) })
	return h
}

// digits returns images as vectors: n of them, and others as queries.
func digits(t testing.TB, n, queries int) (vectors, asked []float32, dim int) {
	images, err := mnist.Images()
	require.NoError(t, err)
	dim = images.Rows * images.Cols
	x := make([]float32, len(images.Pixels))
	for i, p := range images.Pixels {
		x[i] = float32(p)
	}
	return x[:n*dim], x[len(x)-queries*dim:], dim
}

func counted(n int) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(i)
	}
	return ids
}

// recall returns the share of the k nearest that an index finds.
func recall(t testing.TB, ix Index, queries []float32, dim, k int, filter *Filter) float64 {
	t.Helper()
	right, all := 0, 0
	for q := 0; q < len(queries); q += dim {
		exact, err := Exact(t.Context(), ix, queries[q:q+dim], k, filter)
		require.NoError(t, err)
		found, err := ix.Search(t.Context(), nil, queries[q:q+dim], k, filter)
		require.NoError(t, err)
		require.Len(t, found, len(exact))
		for _, r := range found {
			if slices.Contains(exact, r) {
				right++
			}
		}
		all += len(exact)
	}
	return float64(right) / float64(all)
}

// TestRecall finds handwritten digits, with and without codes, a filter, and removed vectors.
func TestRecall(t *testing.T) {
	n, asked := 9000, 300
	if testing.Short() {
		n, asked = 2000, 100
	}
	vectors, queries, dim := digits(t, n, asked)
	for _, c := range []struct {
		m     Metric
		codes bool
	}{{Euclidean, false}, {Cosine, false}, {L2Squared, true}} {
		h := hnsw(t, open(t, "cpu:0"), dim, c.m, HNSWOptions{EfSearch: 100, Codes: c.codes})
		require.NoError(t, h.Add(t.Context(), counted(n), vectors))
		assert.Greater(t, recall(t, h, queries, dim, 10, nil), 0.99, c.m)
		odd := Predicate(func(id int64) bool { return id%2 == 1 })
		assert.Greater(t, recall(t, h, queries[:50*dim], dim, 10, odd), 0.98, c.m)
		require.NoError(t, h.Remove(t.Context(), counted(n)[:n/3]))
		assert.Greater(t, recall(t, h, queries[:50*dim], dim, 10, nil), 0.98, c.m)
	}
}

// clustered returns n vectors around 20 centres.
func clustered(r *rand.Rand, n, dim int) []float32 {
	centres, x := random(r, 20, dim), make([]float32, n*dim)
	for i := range x {
		x[i] = centres[i/dim*7%20*dim+i%dim] + float32(r.NormFloat64())/8
	}
	return x
}

// TestGraph searches by every metric: ids are the program's, distances those of the metric, and most of the
// nearest are found.
func TestGraph(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	const n, dim, k = 600, 16, 10
	vectors, queries, ids := clustered(r, n, dim), clustered(r, 20, dim), numbers(r, n)
	for _, name := range []string{"cpu:0", "cpu:reference"} {
		for _, m := range metrics(t) {
			h := hnsw(t, open(t, name), dim, m, HNSWOptions{EfSearch: 200})
			require.NoError(t, h.Add(t.Context(), ids[:n/2], vectors[:n/2*dim]))
			require.NoError(t, h.Add(t.Context(), ids[n/2:], vectors[n/2*dim:]))
			lists, err := h.SearchBatch(t.Context(), queries, k, nil)
			require.NoError(t, err)
			right := 0
			for q, got := range lists {
				query := queries[q*dim : (q+1)*dim]
				want := scan(m, dim, query, ids, vectors, nil)
				exact, err := Exact(t.Context(), h, query, k, nil)
				require.NoError(t, err)
				judge(t, m, dim, k, want, exact, fmt.Sprint(name, m, " exact"))
				one, err := h.Search(t.Context(), nil, query, k, nil)
				require.NoError(t, err)
				require.Equal(t, got, one)
				require.Len(t, got, k)
				distances := map[int64]float64{}
				for _, w := range want {
					distances[w.ID] = w.Distance
				}
				for i, g := range got {
					require.InDelta(t, distances[g.ID], g.Distance, tolerance(m, dim, distances[g.ID]), "%s %v", name, m)
					require.True(t, i == 0 || got[i-1].compare(g) < 0)
					if g.Distance <= want[k-1].Distance+tolerance(m, dim, want[k-1].Distance) {
						right++
					}
				}
			}
			assert.Greater(t, float64(right), 0.95*float64(k*len(lists)), "%s %v", name, m)
		}
	}
}

// TestGraphTies has more vectors at one distance than are searched for: an exact search finds those with the first ids.
func TestGraphTies(t *testing.T) {
	h := hnsw(t, open(t, "cpu:0"), 1, L2Squared, HNSWOptions{})
	ids := counted(100)
	slices.Reverse(ids)
	require.NoError(t, h.Add(t.Context(), ids, make([]float32, 100)))
	want := []Result{{10, 1}, {11, 1}, {12, 1}}
	got, err := h.Search(t.Context(), nil, []float32{1}, 3, IDRange(10, 30)) // so few that no graph is used
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// TestGraphTiesInGraph has many vectors at each distance, in no order of their ids: of those at the distance of
// the last result, the first ids are found.
func TestGraphTiesInGraph(t *testing.T) {
	const n, dim = 120, 4
	for _, codes := range []bool{false, true} {
		h := hnsw(t, open(t, "cpu:0"), dim, L2Squared, HNSWOptions{EfSearch: n, Threads: 1, Codes: codes})
		r := rand.New(rand.NewPCG(47, 48))
		vectors, query := make([]float32, n*dim), make([]float32, dim)
		for i := range vectors {
			vectors[i] = float32(r.IntN(2))
		}
		require.NoError(t, h.Add(t.Context(), numbers(r, n), vectors))
		for k := 1; k <= n; k++ {
			want, err := h.Exact(t.Context(), nil, query, k, nil)
			require.NoError(t, err)
			got, err := h.Search(t.Context(), nil, query, k, nil)
			require.NoError(t, err)
			require.Equal(t, want, got, "k=%d codes=%t", k, codes)
		}
	}
}

// TestGraphStrays begins with vectors that are far from everything, NaN or infinite, and gets more of them
// later: the others are found as without them, and where all are asked for, the strays too, as an exact search
// has them.
func TestGraphStrays(t *testing.T) {
	r := rand.New(rand.NewPCG(49, 50))
	const strays, n, dim = 400, 40, 8
	for _, m := range []Metric{Euclidean, Cosine, Manhattan} {
		for _, threads := range []int{1, 4} {
			h := hnsw(t, open(t, "cpu:0"), dim, m, HNSWOptions{M: 64, Threads: threads})
			far := make([]float32, strays*dim)
			for i := range far {
				far[i] = float32(math.NaN())
				if m.kind == euclidean && i/dim%2 == 0 {
					far[i] = float32(math.Inf(1))
				}
			}
			vectors, queries := clustered(r, n, dim), clustered(r, 30, dim)
			all := counted(2*strays + n)
			slices.Reverse(all)
			require.NoError(t, h.Add(t.Context(), all[:strays], far))
			for _, k := range []int{1, 7} {
				want, err := Exact(t.Context(), h, queries[:dim], k, nil)
				require.NoError(t, err)
				got, err := h.Search(t.Context(), nil, queries[:dim], k, nil)
				require.NoError(t, err)
				judge(t, m, dim, k, want, got, "strays alone")
			}
			require.NoError(t, h.Add(t.Context(), all[strays:strays+n], vectors))
			require.NoError(t, h.Add(t.Context(), all[strays+n:], far))
			for _, k := range []int{1, 2, 10} {
				assert.Greater(t, recall(t, h, queries, dim, k, nil), 0.95, "%v, %d threads, k=%d", m, threads, k)
			}
			got, err := h.Search(t.Context(), nil, queries[:dim], 2*strays+n, nil)
			require.NoError(t, err)
			assert.Len(t, got, 2*strays+n)
		}
	}
}

// TestChurn removes and adds half of the vectors again and again: as many are found as in a new index, no
// removed one, and the memory does not grow.
func TestChurn(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 44))
	n, dim := 6000, 32
	if testing.Short() {
		n = 1500
	}
	for _, codes := range []bool{false, true} {
		h := hnsw(t, open(t, "cpu:0"), dim, L2Squared, HNSWOptions{Codes: codes, InitialCapacity: n})
		vectors, queries, next := clustered(r, n, dim), clustered(r, 200, dim), int64(n)
		ids := counted(n)
		require.NoError(t, h.Add(t.Context(), ids, vectors))
		for range 3 {
			r.Shuffle(n, func(i, j int) {
				ids[i], ids[j] = ids[j], ids[i]
				for d := range dim {
					vectors[i*dim+d], vectors[j*dim+d] = vectors[j*dim+d], vectors[i*dim+d]
				}
			})
			require.NoError(t, h.Remove(t.Context(), ids[:n/2]))
			for i := range n / 2 {
				ids[i] = next
				next++
			}
			copy(vectors, clustered(r, n/2, dim))
			require.NoError(t, h.Add(t.Context(), ids[:n/2], vectors[:n/2*dim]))
			require.Equal(t, n, h.Len())
			require.LessOrEqual(t, len(h.ids), 2*n, "removed vectors that keep their places")
			require.LessOrEqual(t, len(h.stores[0].visible), 3*n*dim*4)
		}
		fresh := hnsw(t, open(t, "cpu:0"), dim, L2Squared, HNSWOptions{Codes: codes})
		require.NoError(t, fresh.Add(t.Context(), ids, vectors))
		old, new := recall(t, h, queries, dim, 10, nil), recall(t, fresh, queries, dim, 10, nil)
		assert.GreaterOrEqual(t, old, new-0.01)
		require.NoError(t, h.Compact(t.Context()))
		assert.GreaterOrEqual(t, recall(t, h, queries, dim, 10, nil), new-0.01)
	}
}

// TestGraphChanges makes random changes: what is found is there, once, and with its distance.
func TestGraphChanges(t *testing.T) {
	dev := open(t, "cpu:0")
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(45, seed))
		const dim = 5
		h := hnsw(t, dev, dim, L2Squared, HNSWOptions{M: 2 + r.IntN(10), EfConstruction: 20, InitialCapacity: 1})
		vectors, next := map[int64][]float32{}, int64(0)
		found, all := 0, 0
		for range 60 {
			var ids []int64
			for id := range vectors {
				ids = append(ids, id)
			}
			slices.Sort(ids)
			switch what := r.IntN(8); {
			case what < 3:
				n := 1 + r.IntN(20)
				rows := random(r, n, dim)
				some := make([]int64, n)
				for i := range some {
					some[i] = next*7919%100003 + 1
					next++
					vectors[some[i]] = rows[i*dim : (i+1)*dim]
				}
				require.NoError(t, h.Add(t.Context(), some, rows))
			case what < 5 && len(ids) > 0:
				r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
				some := ids[:1+r.IntN(len(ids))]
				require.NoError(t, h.Remove(t.Context(), some))
				for _, id := range some {
					delete(vectors, id)
				}
			case what < 7 && len(ids) > 0:
				id := ids[r.IntN(len(ids))]
				vectors[id] = random(r, 1, dim)
				require.NoError(t, Update(t.Context(), h, id, vectors[id]))
			case what == 7:
				require.NoError(t, h.Compact(t.Context()))
			}
			require.Equal(t, len(vectors), h.Len())
			query, odd := random(r, 1, dim), Predicate(func(id int64) bool { return id%2 == 1 })
			for _, filter := range []*Filter{nil, odd} {
				got, err := h.Search(t.Context(), nil, query, 9, filter)
				require.NoError(t, err)
				exact, err := Exact(t.Context(), h, query, 9, filter)
				require.NoError(t, err)
				require.Len(t, got, len(exact))
				for i, g := range got {
					v, ok := vectors[g.ID]
					require.True(t, ok, "%d is not there", g.ID)
					require.True(t, filter == nil || g.ID%2 == 1)
					d := L2Squared.distance(query, v)
					require.InDelta(t, d, g.Distance, tolerance(L2Squared, dim, d))
					require.True(t, i == 0 || got[i-1].compare(g) < 0, "in order, and once")
					if slices.Contains(exact, g) {
						found++
					}
				}
				all += len(exact)
			}
		}
		assert.Greater(t, float64(found), 0.95*float64(all))
	}
}

// TestSeeds makes the same graph of the same seed with one thread, and another one of another seed.
func TestSeeds(t *testing.T) {
	r := rand.New(rand.NewPCG(47, 48))
	vectors := clustered(r, 500, 8)
	build := func(seed uint64) []byte {
		h := hnsw(t, open(t, "cpu:0"), 8, Cosine, HNSWOptions{Seed: seed, Threads: 1})
		require.NoError(t, h.Add(t.Context(), counted(300), vectors[:300*8]))
		require.NoError(t, h.Add(t.Context(), counted(500)[300:], vectors[300*8:]))
		var b bytes.Buffer
		_, err := h.WriteTo(&b)
		require.NoError(t, err)
		return b.Bytes()
	}
	first := build(3)
	assert.True(t, bytes.Equal(first, build(3)))
	assert.False(t, bytes.Equal(first, build(4)))
}

// TestGraphFile reads indexes back: their options and answers are the same, and changes leave the file as it is.
func TestGraphFile(t *testing.T) {
	r := rand.New(rand.NewPCG(49, 50))
	const n, dim = 500, 12
	for _, o := range []HNSWOptions{{M: 5, EfConstruction: 40, EfSearch: 33, Seed: 9, Threads: 1, MaxRows: 2000},
		{Codes: true}} {
		h := hnsw(t, open(t, "cpu:0"), dim, Euclidean, o)
		vectors := clustered(r, n, dim)
		require.NoError(t, h.Add(t.Context(), numbers(r, n)[:100], vectors[:100*dim]))
		for i := range vectors { // so that codes do not have the scale of all vectors
			vectors[i] *= 1.5
		}
		require.NoError(t, h.Add(t.Context(), counted(15), vectors[100*dim:115*dim]))
		require.NoError(t, h.Remove(t.Context(), []int64{3, 4}))
		path := filepath.Join(t.TempDir(), "graph")
		require.NoError(t, Save(t.Context(), path, h))
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		info, err := Verify(t.Context(), path)
		require.NoError(t, err)
		assert.Equal(t, 113, info.Len)
		ix, err := Open(t.Context(), path, Options{})
		require.NoError(t, err)
		loaded, err := Read(t.Context(), bytes.NewReader(before), Options{})
		require.NoError(t, err)
		for _, other := range []Index{ix, loaded} {
			assert.Equal(t, h.Info(), other.Info())
			for range 20 {
				query := clustered(r, 1, dim)
				assert.Equal(t, find(t, h, query, nil), find(t, other, query, nil))
				assert.Equal(t, find(t, h, query, IDRange(0, 9)), find(t, other, query, IDRange(0, 9)))
			}
			var again bytes.Buffer
			_, err := other.WriteTo(&again)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(before, again.Bytes()), "the same index is the same file")
			query := clustered(r, 1, dim)
			require.NoError(t, other.Add(t.Context(), []int64{5000}, query))
			require.NoError(t, Update(t.Context(), other, 1, query))
			require.NoError(t, other.Remove(t.Context(), []int64{0}))
			assert.Equal(t, []Result{{1, 0}, {5000, 0}}, find(t, other, query, nil)[:2])
			require.NoError(t, other.Close())
		}
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(before, after))
	}
}

// TestGraphDamage changes numbers of a graph in a file whose checksums are right.
func TestGraphDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 52))
	h := hnsw(t, open(t, "cpu:0"), 2, Euclidean, HNSWOptions{M: 2})
	require.NoError(t, h.Add(t.Context(), counted(40), random(r, 40, 2)))
	require.NoError(t, h.Remove(t.Context(), []int64{7}))
	var b bytes.Buffer
	_, err := h.WriteTo(&b)
	require.NoError(t, err)
	list, err := readSections(b.Bytes())
	require.NoError(t, err)
	refused := map[string]int{}
	for _, s := range list {
		first := bytes.Index(b.Bytes(), s.data)
		for i := range s.data {
			bad := bytes.Clone(b.Bytes())
			bad[first+i] ^= 0x80
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
	for _, name := range []string{"config", "ids", "byid", "level", "hides", "first", "upper"} {
		assert.Positive(t, refused[name], name)
	}

	// Open reads no more than the configuration and sizes, and a search not all links, so that it may meet damaged ones.
	path, found := filepath.Join(t.TempDir(), "graph"), 0
	for _, s := range list {
		first := bytes.Index(b.Bytes(), s.data)
		if s.name != "first" && s.name != "vectors" && s.name != "config" {
			for i := range s.data {
				bad := bytes.Clone(b.Bytes())
				bad[first+i] ^= 0x80
				require.NoError(t, os.WriteFile(path, bad, 0o600))
				ix, err := Open(t.Context(), path, Options{})
				require.NoError(t, err, s.name)
				assert.Equal(t, 39, ix.Info().Len)
				for range 2 {
					_, err = ix.Search(t.Context(), nil, []float32{0, 0}, 9, nil)
					assert.ErrorIs(t, err, runtime.ErrCorrupt, s.name)
				}
				_, err = ix.(*HNSW).Get(t.Context(), 3)
				assert.ErrorIs(t, err, runtime.ErrCorrupt, s.name)
				assert.ErrorIs(t, ix.Add(t.Context(), []int64{99}, []float32{1, 2}), runtime.ErrCorrupt, s.name)
				assert.ErrorIs(t, ix.Remove(t.Context(), []int64{3}), runtime.ErrCorrupt, s.name)
				assert.ErrorIs(t, Save(t.Context(), path+"2", ix), runtime.ErrCorrupt, s.name)
				require.NoError(t, ix.Close())
				_, err = LoadInfo(path)
				assert.ErrorIs(t, err, runtime.ErrCorrupt, s.name)
			}
		}
		if s.name != "first" {
			continue
		}
		for i := range s.data {
			bad := bytes.Clone(b.Bytes())
			bad[first+i] ^= 0x80
			require.NoError(t, os.WriteFile(path, bad, 0o600))
			_, err := Verify(t.Context(), path)
			assert.ErrorIs(t, err, runtime.ErrCorrupt)
			ix, err := Open(t.Context(), path, Options{})
			require.NoError(t, err)
			_, err = ix.Search(t.Context(), nil, []float32{0, 0}, 9, nil)
			assert.NoError(t, err)
			if err = ix.Add(t.Context(), []int64{99}, []float32{1, 2}); err != nil {
				assert.ErrorIs(t, err, runtime.ErrCorrupt)
				assert.Equal(t, 39, ix.Info().Len)
				found++
			}
			require.NoError(t, ix.Close())
		}
	}
	assert.Positive(t, found)
}

// BenchmarkOpenGraph opens a graph of 512 MB in the page cache.
func BenchmarkOpenGraph(b *testing.B) {
	const n, dim = 1_000_000, 128
	r, x := rand.New(rand.NewPCG(53, 54)), make([]float32, n*dim)
	for i := range x {
		x[i] = r.Float32()
	}
	for _, codes := range []bool{false, true} {
		b.Run(fmt.Sprint("codes ", codes), func(b *testing.B) {
			h := hnsw(b, open(b, "cpu:0"), dim, L2Squared, HNSWOptions{M: 4, EfConstruction: 4, Codes: codes})
			require.NoError(b, h.Add(b.Context(), counted(n), x))
			path := filepath.Join(b.TempDir(), "graph")
			require.NoError(b, Save(b.Context(), path, h))
			for b.Loop() {
				ix, err := Open(b.Context(), path, Options{})
				require.NoError(b, err)
				require.NoError(b, ix.Close())
			}
		})
	}
}

// TestGraphCodesFile reads codes back from where they are in the file, makes those that a file of before does
// not have, and refuses those that do not belong to the vectors.
func TestGraphCodesFile(t *testing.T) {
	const n, dim = 200, 6
	ctx, r := t.Context(), rand.New(rand.NewPCG(57, 58))
	vectors := random(r, n, dim)
	build := func(codes bool) ([]byte, []byte) {
		h := hnsw(t, open(t, "cpu:0"), dim, Euclidean, HNSWOptions{M: 4, EfConstruction: 20, Threads: 1, Codes: codes})
		require.NoError(t, h.Add(ctx, counted(n), vectors))
		require.NoError(t, h.Remove(ctx, []int64{9, 10}))
		var b bytes.Buffer
		_, err := h.WriteTo(&b)
		require.NoError(t, err)
		return b.Bytes(), bytes.Clone(h.codes.visible)
	}
	file, codes := build(true)
	codes = codes[:n*dim]
	plain, _ := build(false)
	// with returns a file that has other codes, or none if these are nil.
	with := func(file, codes []byte) []byte {
		list, err := readSections(file)
		require.NoError(t, err)
		var b bytes.Buffer
		w, err := newWriter(&b, version)
		require.NoError(t, err)
		for _, s := range list {
			if s.name != "codes" {
				require.NoError(t, w.add(section{name: s.name, data: s.data}))
			}
		}
		if codes != nil {
			require.NoError(t, w.add(data("codes", codes)))
		}
		require.NoError(t, w.end())
		return b.Bytes()
	}
	opened := func(file []byte) (*HNSW, error) {
		path := filepath.Join(t.TempDir(), "graph")
		require.NoError(t, os.WriteFile(path, file, 0o600))
		ix, err := Open(ctx, path, Options{})
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { assert.NoError(t, ix.Close()) })
		return ix.(*HNSW), nil
	}
	there, err := opened(file)
	require.NoError(t, err)
	assert.True(t, there.codes.mapped, "they are the memory of the file")
	made, err := opened(with(file, nil))
	require.NoError(t, err)
	loaded, err := Read(ctx, bytes.NewReader(file), Options{})
	require.NoError(t, err)
	defer loaded.Close()
	for i, h := range []*HNSW{there, made, loaded.(*HNSW)} {
		assert.True(t, bytes.Equal(codes, h.codes.visible[:n*dim]), i)
		var again bytes.Buffer
		_, err = h.WriteTo(&again)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(file, again.Bytes()), "%d: the same index is the same file", i)
		require.NoError(t, h.Update(ctx, 5, vectors[:dim]))
		assert.True(t, bytes.Equal(codes, h.codes.visible[:n*dim]), i)
		assert.Equal(t, codes[:dim], h.codes.visible[n*dim:][:dim], "%d: of the vector that was added", i)
		assert.Equal(t, []Result{{0, 0}, {5, 0}}, find(t, h, vectors[:dim], nil)[:2], i)
		require.NoError(t, h.Compact(ctx))
		assert.Equal(t, []Result{{0, 0}, {5, 0}}, find(t, h, vectors[:dim], nil)[:2], i)
	}
	for i, bad := range [][]byte{with(file, codes[1:]), with(file, []byte{}), with(plain, codes)} {
		_, err := opened(bad)
		assert.ErrorIs(t, err, runtime.ErrCorrupt, i)
	}
	other := bytes.Clone(codes) // of other vectors: what is found may be farther away, and has its true distance
	for i := range other {
		other[i] ^= 0xff
	}
	h, err := opened(with(file, other))
	require.NoError(t, err)
	for _, found := range find(t, h, vectors[:dim], nil) {
		exact, err := h.Exact(ctx, nil, vectors[:dim], 1, IDSet([]int64{found.ID}))
		require.NoError(t, err)
		assert.Equal(t, []Result{found}, exact)
	}
}

// TestGraphGivenUp writes an index whose only Add was given up, and adds to what is read back.
func TestGraphGivenUp(t *testing.T) {
	h := hnsw(t, open(t, "cpu:0"), 2, Euclidean, HNSWOptions{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, h.Add(gone, []int64{3, 4}, []float32{0, 0, 1, 1}), context.Canceled)
	var b bytes.Buffer
	_, err := h.WriteTo(&b)
	require.NoError(t, err)
	ix, err := Read(t.Context(), &b, Options{})
	require.NoError(t, err)
	defer ix.Close()
	assert.Empty(t, find(t, ix, []float32{0, 0}, nil))
	require.NoError(t, ix.Add(t.Context(), []int64{4}, []float32{1, 0}))
	assert.Equal(t, []Result{{4, 1}}, find(t, ix, []float32{0, 0}, nil))
}

// TestGraphExactAgain makes exact searches without a filter: the vectors are put in order once.
func TestGraphExactAgain(t *testing.T) {
	h := hnsw(t, open(t, "cpu:0"), 1, L2Squared, HNSWOptions{})
	const n = 3000
	vectors := make([]float32, n)
	for i := range vectors {
		vectors[i] = float32(i)
	}
	require.NoError(t, h.Add(t.Context(), counted(n), vectors))
	ctx, query, dst := t.Context(), []float32{7}, make([]Result, 0, 3)
	allocations := testing.AllocsPerRun(10, func() { dst, _ = h.Exact(ctx, dst[:0], query, 3, nil) })
	assert.Less(t, allocations, 1.0)
	require.NoError(t, h.Remove(ctx, []int64{7}))
	dst, err := h.Exact(ctx, dst[:0], query, 2, nil)
	require.NoError(t, err)
	assert.Equal(t, []Result{{6, 1}, {8, 1}}, dst)
}

// TestEfSearchWaits changes EfSearch while vectors are added: searches can begin as before.
func TestEfSearchWaits(t *testing.T) {
	begun, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	require.NoError(t, Register("held up", func(a, b []float32) float64 {
		once.Do(func() { close(begun); <-proceed })
		return math.Abs(float64(a[0] - b[0]))
	}))
	m, err := ParseMetric("custom:held up")
	require.NoError(t, err)
	h := hnsw(t, open(t, "cpu:0"), 1, m, HNSWOptions{})
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, h.Add(t.Context(), counted(2), []float32{1, 2})) })
	<-begun
	wg.Go(func() { assert.NoError(t, h.SetEfSearch(9)) })
	for range 50 {
		if !assert.True(t, h.mu.TryRLock()) {
			break
		}
		h.mu.RUnlock()
		time.Sleep(time.Millisecond)
	}
	close(proceed)
	wg.Wait()
	assert.Equal(t, 9, h.Info().HNSW.EfSearch)
	require.NoError(t, h.Close())
	assert.ErrorIs(t, h.SetEfSearch(9), runtime.ErrClosed)
}

// TestGraphErrors makes the mistakes of calls, and finds the index unchanged.
func TestGraphErrors(t *testing.T) {
	ctx, dev := t.Context(), open(t, "cpu:0")
	for _, o := range []HNSWOptions{{M: -1}, {M: 1}, {M: 2000}, {EfConstruction: 3}, {EfSearch: -1}, {InitialCapacity: -1},
		{Threads: -1}, {Threads: 5000}, {MaxRows: -1}} {
		_, err := NewHNSW(dev, 2, Euclidean, o)
		assert.ErrorIs(t, err, runtime.ErrInvalidArgument, "%+v", o)
	}
	_, err := NewHNSW(dev, 2, Manhattan, HNSWOptions{Codes: true})
	assert.ErrorIs(t, err, runtime.ErrUnsupported)
	if gpu, err := runtime.Open(ctx, "sim-cuda:0"); err == nil {
		_, err := NewHNSW(gpu, 2, Euclidean, HNSWOptions{})
		assert.ErrorIs(t, err, runtime.ErrUnsupported)
		require.NoError(t, gpu.Close())
	}
	h := hnsw(t, dev, 2, Euclidean, HNSWOptions{MaxRows: 4})
	got, err := h.Search(ctx, nil, []float32{0, 0}, 9, nil)
	require.NoError(t, err)
	assert.Empty(t, got)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	assert.Equal(t, context.Canceled, h.Add(gone, []int64{3, 4}, []float32{0, 0, 1, 1}), "once, however many threads")
	assert.Zero(t, h.Len())
	require.NoError(t, h.Add(ctx, []int64{1, 2, 9}, []float32{0, 0, 1, 1, 2, 2}))
	for _, c := range []struct {
		want error
		err  error
	}{
		{runtime.ErrInvalidArgument, h.Add(ctx, []int64{-1}, []float32{0, 0})},
		{runtime.ErrInvalidArgument, h.Add(ctx, []int64{9}, []float32{0, 0})},
		{runtime.ErrInvalidArgument, h.Add(ctx, []int64{5, 5}, []float32{0, 0, 1, 1})},
		{runtime.ErrDimension, h.Add(ctx, []int64{5}, []float32{0, 0, 1})},
		{runtime.ErrBudget, h.Add(ctx, []int64{5, 6}, []float32{0, 0, 1, 1})},
		{context.Canceled, h.Add(gone, []int64{5}, []float32{0, 0})},
		{context.Canceled, h.Update(gone, 1, []float32{5, 5})},
		{context.Canceled, h.Remove(gone, []int64{1})},
		{runtime.ErrInvalidArgument, h.Remove(ctx, []int64{1, 4})},
		{runtime.ErrInvalidArgument, h.Remove(ctx, []int64{1, 1})},
		{runtime.ErrInvalidArgument, h.Update(ctx, 4, []float32{0, 0})},
		{runtime.ErrDimension, h.Update(ctx, 1, []float32{0})},
	} {
		assert.ErrorIs(t, c.err, c.want)
	}
	_, err = h.Search(ctx, nil, []float32{0, 0}, 0, nil)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	_, err = h.Search(ctx, nil, []float32{0, 0, 0, 0}, 1, nil)
	assert.ErrorIs(t, err, runtime.ErrDimension)
	_, err = h.Search(ctx, nil, []float32{0, 0}, 1, Mask(make([]bool, 2)))
	assert.ErrorIs(t, err, runtime.ErrDimension)
	_, err = h.SearchBatch(gone, []float32{0, 0}, 1, nil)
	assert.ErrorIs(t, err, context.Canceled)
	got, err = h.Search(ctx, nil, []float32{0, 0}, 9, nil)
	require.NoError(t, err)
	assert.Equal(t, []Result{{1, 0}, {2, math.Sqrt2}, {9, math.Sqrt(8)}}, got)
	got, err = h.Search(ctx, nil, []float32{0, 0}, 9, Mask([]bool{false, true, true}))
	require.NoError(t, err)
	assert.Equal(t, []Result{{2, math.Sqrt2}, {9, math.Sqrt(8)}}, got)
	ix, err := New(ctx, "HNSW", 2, "cosine", Options{HNSW: HNSWOptions{M: 7}, MaxRows: 3})
	require.NoError(t, err)
	assert.Equal(t, 7, ix.Info().HNSW.M)
	require.NoError(t, ix.Close())
	assert.ErrorIs(t, ix.Add(ctx, []int64{5}, []float32{0, 0}), runtime.ErrClosed)
	_, err = ix.SearchBatch(ctx, []float32{0, 0}, 1, nil)
	assert.ErrorIs(t, err, runtime.ErrClosed)
	_, err = ix.WriteTo(&bytes.Buffer{})
	assert.ErrorIs(t, err, runtime.ErrClosed)
}

// TestGraphConcurrent changes an index from some goroutines while others search.
func TestGraphConcurrent(t *testing.T) {
	dev := open(t, "cpu:0")
	h := hnsw(t, dev, 4, L2Squared, HNSWOptions{M: 4, EfConstruction: 30, InitialCapacity: 16})
	ctx := t.Context()
	require.NoError(t, h.Add(ctx, []int64{0}, make([]float32, 4)))
	even := Predicate(func(id int64) bool { return id%2 == 0 })
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(53, uint64(g)))
			for i := range 150 {
				ids := []int64{int64(1 + 2*(g+4*i)), int64(2 + 2*(g+4*i))}
				far := make([]float32, 8)
				for j := range far {
					far[j] = 50 + r.Float32()
				}
				ok := assert.NoError(t, h.Add(ctx, ids, far)) && assert.NoError(t, h.Update(ctx, ids[0], far[4:]))
				if ok && r.IntN(3) > 0 {
					assert.NoError(t, h.Remove(ctx, ids))
				}
				for _, filter := range []*Filter{nil, even} {
					got, err := h.Search(ctx, nil, []float32{1, 0, 0, 0}, 5, filter)
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
}

func BenchmarkHNSW(b *testing.B) {
	vectors, queries, dim := digits(b, 9000, 1000)
	dev := open(b, "cpu:0")
	ids := counted(9000)
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			h := hnsw(b, dev, dim, L2Squared, HNSWOptions{Codes: true})
			require.NoError(b, h.Add(b.Context(), ids, vectors))
		}
	})
	h := hnsw(b, dev, dim, L2Squared, HNSWOptions{Codes: true})
	require.NoError(b, h.Add(b.Context(), ids, vectors))
	for _, ef := range []int{30, 50, 100} {
		require.NoError(b, h.SetEfSearch(ef))
		b.Run(fmt.Sprint("ef ", ef), func(b *testing.B) {
			defer func() { b.ReportMetric(recall(b, h, queries[:200*dim], dim, 10, nil), "recall") }()
			dst := make([]Result, 0, 10)
			q := 0
			for b.Loop() {
				_, _ = h.Search(context.Background(), dst, queries[q*dim:(q+1)*dim], 10, nil)
				q = (q + 1) % 1000
			}
		})
	}
}

// TestGraphDamagedLinks checks that damaged links of a file that is open do not get into another file, and that
// an index that was read needs no memory of the file.
func TestGraphDamagedLinks(t *testing.T) {
	h := hnsw(t, open(t, "cpu:0"), 2, L2Squared, HNSWOptions{M: 4, EfConstruction: 10})
	require.NoError(t, h.Add(t.Context(), counted(50), random(rand.New(rand.NewPCG(71, 72)), 50, 2)))
	var b bytes.Buffer
	_, err := h.WriteTo(&b)
	require.NoError(t, err)
	read, err := Read(t.Context(), bytes.NewReader(b.Bytes()), Options{})
	require.NoError(t, err)
	assert.Nil(t, read.(*HNSW).mapped)
	list, err := readSections(b.Bytes())
	require.NoError(t, err)
	i := slices.IndexFunc(list, func(s section) bool { return s.name == "first" })
	for place, bit := range map[int]byte{4: 1, 7: 0x80} { // another vector, and one that is not there
		bad := bytes.Clone(b.Bytes())
		bad[bytes.Index(bad, list[i].data)+place] ^= bit
		path := filepath.Join(t.TempDir(), "bad")
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		ix, err := Open(t.Context(), path, Options{})
		require.NoError(t, err)
		require.NoError(t, ix.Remove(t.Context(), []int64{3}))
		assert.ErrorIs(t, Save(t.Context(), path+"2", ix), runtime.ErrCorrupt)
		assert.NoFileExists(t, path+"2")
		assert.ErrorIs(t, ix.Add(t.Context(), []int64{99}, []float32{1, 2}), runtime.ErrCorrupt)
		require.NoError(t, ix.Close())
	}
}

// TestGraphUnmapped copies an index out of the memory of its file, as it does if its vectors are copied: searches see
// the copies alone, and links that nobody has checked do not get into another file.
func TestGraphUnmapped(t *testing.T) {
	h := hnsw(t, open(t, "cpu:0"), 2, L2Squared, HNSWOptions{M: 4, EfConstruction: 10})
	require.NoError(t, h.Add(t.Context(), counted(50), random(rand.New(rand.NewPCG(71, 72)), 50, 2)))
	var b bytes.Buffer
	_, err := h.WriteTo(&b)
	require.NoError(t, err)
	list, err := readSections(b.Bytes())
	require.NoError(t, err)
	i := slices.IndexFunc(list, func(s section) bool { return s.name == "first" })
	bad := bytes.Clone(b.Bytes())
	bad[bytes.Index(bad, list[i].data)+7] ^= 0x80 // a vector that is not there
	for _, data := range [][]byte{b.Bytes(), sealed(bad)} {
		path := filepath.Join(t.TempDir(), "graph")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		ix, err := Open(t.Context(), path, Options{})
		require.NoError(t, err)
		opened := ix.(*HNSW)
		require.NoError(t, opened.check(t.Context()))
		ids := &opened.ids[0]
		opened.unmap()
		v := opened.now.Load()
		assert.NotSame(t, ids, &v.ids[0])
		assert.Same(t, &opened.ids[0], &v.ids[0])
		assert.Same(t, &opened.level[0], &v.level[0])
		assert.Same(t, &opened.first[0], &v.first[0])
		err = Save(t.Context(), path+"2", ix)
		if bytes.Equal(data, b.Bytes()) {
			require.NoError(t, err)
		} else {
			assert.ErrorIs(t, err, runtime.ErrCorrupt)
		}
		require.NoError(t, ix.Close())
	}
}
