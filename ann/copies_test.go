package ann

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// crowd makes vectors that are hard for a graph, and the same kind of data without what makes it hard, which is
// searched for comparison.
type crowd struct {
	name string
	make func(r *rand.Rand, dim int) (hard, plain []float32)
}

// crowds has copies, islands of vectors that are close to each other and far from all others, and vectors in
// the order of their places.
var crowds = []crowd{
	{"one vector first", func(r *rand.Rand, dim int) (hard, plain []float32) {
		plain = random(r, 200, dim)
		return append(slices.Repeat(random(r, 1, dim), 33), plain...), plain
	}},
	{"zeros", func(r *rand.Rand, dim int) (hard, plain []float32) {
		plain = random(r, 1500, dim)
		hard = slices.Clone(plain)
		for i := 0; i < 1500; i += 40 {
			clear(hard[i*dim : (i+1)*dim])
		}
		return hard, plain
	}},
	{"many zeros", func(r *rand.Rand, dim int) (hard, plain []float32) {
		plain = random(r, 300, dim)
		for i := range 300 {
			hard = append(append(hard, plain[i*dim:(i+1)*dim]...), make([]float32, 6*dim)...)
		}
		return hard, plain
	}},
	{"all twelve times", func(r *rand.Rand, dim int) (hard, plain []float32) {
		plain = random(r, 150, dim)
		return slices.Repeat(plain, 12), plain
	}},
	{"islands in order", func(r *rand.Rand, dim int) (hard, plain []float32) { return islands(r, dim, 1e-3) }},
	{"tighter islands in order", func(r *rand.Rand, dim int) (hard, plain []float32) { return islands(r, dim, 1e-6) }},
	{"sorted", func(r *rand.Rand, dim int) (hard, plain []float32) {
		plain = random(r, 1200, dim)
		return inPlaces(plain, dim, func(a, b []float32) int { return slices.Compare(a, b) }), plain
	}},
	{"on a line", func(r *rand.Rand, dim int) (hard, plain []float32) {
		step := random(r, 1, dim)
		for i := range 1200 {
			for _, x := range step {
				hard = append(hard, 1+x*float32(i))
			}
		}
		plain = slices.Clone(hard)
		r.Shuffle(1200, func(i, j int) {
			for d := range dim {
				plain[i*dim+d], plain[j*dim+d] = plain[j*dim+d], plain[i*dim+d]
			}
		})
		return hard, plain
	}},
}

// islands returns 24 groups of 50 vectors, one group after the other, and the same in random order.
func islands(r *rand.Rand, dim int, width float32) (hard, plain []float32) {
	for range 24 {
		centre := random(r, 1, dim)
		for range 50 {
			for _, x := range centre {
				hard = append(hard, x+width*float32(r.NormFloat64()))
			}
		}
	}
	plain = slices.Clone(hard)
	r.Shuffle(len(plain)/dim, func(i, j int) {
		for d := range dim {
			plain[i*dim+d], plain[j*dim+d] = plain[j*dim+d], plain[i*dim+d]
		}
	})
	return hard, plain
}

func inPlaces(x []float32, dim int, order func(a, b []float32) int) (sorted []float32) {
	rows := slices.SortedFunc(slices.Values(slices.Collect(slices.Chunk(x, dim))), order)
	return slices.Concat(rows...)
}

// beside returns vectors beside some of those given.
func beside(r *rand.Rand, x []float32, dim, n int) (queries []float32) {
	for range n {
		i := r.IntN(len(x) / dim)
		for _, v := range x[i*dim : (i+1)*dim] {
			queries = append(queries, v+0.02*float32(r.NormFloat64()))
		}
	}
	return queries
}

// recallByDistance is the share of results that are no farther than the last of the k nearest.
func recallByDistance(t testing.TB, h *HNSW, queries []float32, k int) float64 {
	t.Helper()
	right, all := 0, 0
	for q := range slices.Chunk(queries, h.e.dim) {
		exact, err := h.Exact(t.Context(), nil, q, k, nil)
		require.NoError(t, err)
		found, err := h.Search(t.Context(), nil, q, k, nil)
		require.NoError(t, err)
		require.Len(t, found, len(exact))
		for i, f := range found {
			require.True(t, i == 0 || found[i-1].compare(f) < 0, "in order, and once")
			if f.Distance <= exact[k-1].Distance*(1+1e-6)+1e-7 {
				right++
			}
		}
		all += k
	}
	return float64(right) / float64(all)
}

// requireReached checks that links lead from the beginning of searches to every vector.
func requireReached(t testing.TB, h *HNSW, what string) {
	t.Helper()
	found := h.graph.reached()
	for i := range h.ids {
		require.True(t, found.has(i) || !h.live.has(i), "%s: no search comes to vector %d of %d", what, i, len(h.ids))
	}
	require.NoError(t, h.checkCopies())
}

// TestCrowds finds as many of the nearest among copies, in islands and in order as without these, comes to
// every vector, and still does so after changes and in a file.
func TestCrowds(t *testing.T) {
	dev := open(t, "cpu:0")
	type setting struct {
		m    Metric
		o    HNSWOptions
		less float64 // how much less than without copies may be found, since few links make graphs of chance
	}
	settings := []setting{{L2Squared, HNSWOptions{}, .01}, {Euclidean, HNSWOptions{M: 2, Threads: 1, Seed: 1}, .2}}
	dims := []int{8}
	if !testing.Short() {
		settings = append(settings, setting{L2Squared, HNSWOptions{M: 4}, .05},
			setting{L2Squared, HNSWOptions{EfSearch: 20}, .01}, setting{Cosine, HNSWOptions{}, .01},
			setting{L2Squared, HNSWOptions{Threads: 1}, .01}, setting{Manhattan, HNSWOptions{}, .01},
			setting{L2Squared, HNSWOptions{Codes: true}, .01}, setting{Angular, HNSWOptions{M: 4}, .05},
			setting{Euclidean, HNSWOptions{M: 2, EfConstruction: 20, Threads: 1, Seed: 1}, .2})
		dims = append(dims, 24)
	}
	for _, s := range settings {
		for seed, c := range crowds {
			for _, dim := range dims {
				r := rand.New(rand.NewPCG(uint64(seed), uint64(dim)))
				hard, plain := c.make(r, dim)
				what := fmt.Sprintf("%s, %d components, %v, M %d, ef %d, codes %t", c.name, dim, s.m, s.o.M, s.o.EfSearch,
					s.o.Codes)
				without := hnsw(t, dev, dim, s.m, s.o)
				require.NoError(t, without.Add(t.Context(), counted(len(plain)/dim), plain))
				h := hnsw(t, dev, dim, s.m, s.o)
				ids, half := counted(len(hard)/dim), len(hard)/dim/2
				require.NoError(t, h.Add(t.Context(), ids[:half], hard[:half*dim]))
				require.NoError(t, h.Add(t.Context(), ids[half:], hard[half*dim:]))
				queries := beside(r, plain, dim, 60)
				requireReached(t, h, what)
				requireReached(t, without, what)
				want := recallByDistance(t, without, queries, 10)
				if s.o.M == 0 && s.o.EfSearch == 0 {
					assert.GreaterOrEqual(t, want, .9, what)
				}
				assert.GreaterOrEqual(t, recallByDistance(t, h, queries, 10), want-s.less, what)

				r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
				require.NoError(t, h.Remove(t.Context(), ids[:len(ids)/3]))
				for _, id := range ids[len(ids)/3:][:20] {
					require.NoError(t, h.Update(t.Context(), id, hard[:dim]))
				}
				requireReached(t, h, what)
				assert.GreaterOrEqual(t, recallByDistance(t, h, queries, 10), want-s.less-.01, what)
				var file bytes.Buffer
				_, err := h.WriteTo(&file)
				require.NoError(t, err)
				ix, err := Read(t.Context(), &file, Options{})
				require.NoError(t, err)
				read := ix.(*HNSW)
				for q := range slices.Chunk(queries[:10*dim], dim) {
					assert.Equal(t, find(t, h, q, nil), find(t, read, q, nil), what)
				}
				require.NoError(t, read.Add(t.Context(), []int64{1 << 20}, hard[:dim]))
				requireReached(t, read, what)
				require.NoError(t, read.Close())
			}
		}
	}
}

// TestCopies finds copies by filters and after removals, whether the vector that was first is there or not, and
// also those in the same direction of other lengths.
func TestCopies(t *testing.T) {
	const copies, others, dim = 300, 700, 8
	for _, m := range []Metric{L2Squared, Cosine, Jaccard} {
		r := rand.New(rand.NewPCG(83, 84))
		h, first := hnsw(t, open(t, "cpu:0"), dim, m, HNSWOptions{Threads: 1}), random(r, 1, dim)
		var vectors []float32
		for i := range copies {
			for _, x := range first {
				if m.kind == cosine {
					x *= 1 + float32(i)
				}
				vectors = append(vectors, x)
			}
		}
		vectors = append(vectors, random(r, others, dim)...)
		require.NoError(t, h.Add(t.Context(), counted(copies+others), vectors))
		assert.Equal(t, uint32(0), h.links(copies/2, 0)[0], "a copy needs no links")
		for _, filter := range []*Filter{nil, IDRange(100, 250), Predicate(func(id int64) bool { return id%2 == 1 }),
			Not(IDSet([]int64{0}))} {
			for _, k := range []int{1, 20, 120} {
				all, err := h.Exact(t.Context(), nil, first, copies+others, filter)
				require.NoError(t, err)
				got, err := h.Search(t.Context(), nil, first, k, filter)
				require.NoError(t, err)
				if m.kind == cosine { // rounding orders those in one direction
					judge(t, m, dim, k, all, got, "cosine")
					continue
				}
				assert.Equal(t, all[:k], got, "%v k=%d", m, k)
			}
		}
		require.NoError(t, h.Remove(t.Context(), counted(copies-20)))
		got, err := h.Search(t.Context(), nil, first, 20, nil)
		require.NoError(t, err)
		all, err := h.Exact(t.Context(), nil, first, copies+others, nil)
		require.NoError(t, err)
		judge(t, m, dim, 20, all, got, m.String())
	}
}

// TestAtOnce links nodes that were inserted at once, of which none came to the other: the one that is linked last
// links both, in a graph where nothing else would.
func TestAtOnce(t *testing.T) {
	line := func(n int) (vectors []float32) {
		for i := range n {
			vectors = append(vectors, float32(i))
		}
		return vectors
	}
	h := hnsw(t, open(t, "cpu:0"), 1, L2Squared, HNSWOptions{Threads: 1})
	require.NoError(t, h.Add(t.Context(), counted(100), line(100)))
	const last, first, second = 99, 100, 101
	require.NoError(t, h.extend(t.Context(), []int64{first, second}, line(102)[first:]))
	v := h.view(len(h.ids))
	s, err := h.searches.take(v)
	require.NoError(t, err)
	defer h.searches.give(s)
	before := v.arrivals()
	for _, node := range []uint32{first, second} {
		s.best = []candidate{s.one(v.point(node), last)}
		v.connect(s, node, 0, s.best)
	}
	require.Equal(t, []uint32{1, last}, h.links(second, 0)[:2])
	for layer := range s.reach {
		s.reach[layer] = noCandidate
	}
	v.meet(s, first, v.arrive(first, before))
	v.meet(s, second, v.arrive(second, before))
	assert.Equal(t, []uint32{2, last, first}, h.links(second, 0)[:3])
	assert.Equal(t, []uint32{2, last, second}, h.links(first, 0)[:3])
	s.reach[0] = s.one(v.point(second), second)
	third := h.links(second, 0)[0]
	v.meet(s, second, []uint32{50})
	assert.Equal(t, third, h.links(second, 0)[0], "others are nearer, and there is no room for more")
}

// TestLostVectors checks a graph of which no link leads to one vector, as files of before had: Verify tells,
// and Compact links all anew.
func TestLostVectors(t *testing.T) {
	r := rand.New(rand.NewPCG(85, 86))
	h := hnsw(t, open(t, "cpu:0"), 4, L2Squared, HNSWOptions{M: 4})
	require.NoError(t, h.Add(t.Context(), counted(300), random(r, 300, 4)))
	begin, _, _ := h.graph.begin()
	lost := (begin + 7) % 300
	for node := range uint32(300) {
		for i, to := range h.links(node, 0)[1:] {
			if to == lost {
				h.links(node, 0)[1+i] = node
			}
		}
	}
	path := filepath.Join(t.TempDir(), "graph")
	require.NoError(t, Save(t.Context(), path, h))
	_, err := Verify(t.Context(), path)
	require.ErrorIs(t, err, runtime.ErrCorrupt)
	assert.ErrorContains(t, err, "1 of 300 vectors")
	ix, err := Open(t.Context(), path, Options{})
	require.NoError(t, err, "searches of others are right")
	defer ix.Close()
	require.NoError(t, ix.(*HNSW).Compact(t.Context()))
	requireReached(t, ix.(*HNSW), "after Compact")
	require.NoError(t, Save(t.Context(), path, ix))
	_, err = Verify(t.Context(), path)
	assert.NoError(t, err)
}

// TestDamagedCopies changes the lists of copies in a file whose checksums are right: they are refused, or searches end.
func TestDamagedCopies(t *testing.T) {
	h := hnsw(t, open(t, "cpu:0"), 1, L2Squared, HNSWOptions{M: 2})
	require.NoError(t, h.Add(t.Context(), counted(40), append(make([]float32, 20), slices.Repeat([]float32{1, 2}, 10)...)))
	var b bytes.Buffer
	_, err := h.WriteTo(&b)
	require.NoError(t, err)
	list, err := readSections(b.Bytes())
	require.NoError(t, err)
	refused := 0
	for _, s := range list {
		first := bytes.Index(b.Bytes(), s.data)
		for i := 0; s.name == "copies" && i < len(s.data); i++ {
			for _, bit := range []byte{1, 2, 4, 0x80} {
				bad := bytes.Clone(b.Bytes())
				bad[first+i] ^= bit
				ix, err := Read(t.Context(), bytes.NewReader(sealed(bad)), Options{})
				if err != nil {
					assert.ErrorIs(t, err, runtime.ErrCorrupt)
					refused++
					continue
				}
				_, err = ix.Search(t.Context(), nil, []float32{0}, 9, nil)
				assert.NoError(t, err)
				require.NoError(t, ix.Close())
			}
		}
	}
	assert.Greater(t, refused, 300)
}

// TestCodesFarFromZero follows a graph by codes of vectors that are near to each other and far from zero, or of
// lengths that are far apart, added one by one or at once.
func TestCodesFarFromZero(t *testing.T) {
	const n, dim = 1200, 16
	for _, c := range []struct {
		m      Metric
		offset float32
		most   float64 // exponent of the longest
		each   int
	}{{L2Squared, 1e5, 0, n}, {Euclidean, -3e4, 0, 1}, {L2Squared, 1e5, 0, 7}, {Cosine, 0, 6, n}, {Angular, 0, 6, 5}} {
		r := rand.New(rand.NewPCG(93, 94))
		h, vectors := hnsw(t, open(t, "cpu:0"), dim, c.m, HNSWOptions{Codes: true, EfConstruction: 100}),
			make([]float32, (n+50)*dim)
		length := float32(1)
		for i := range vectors {
			if i%dim == 0 {
				length = float32(math.Pow(10, c.most*r.Float64()))
			}
			vectors[i] = c.offset + length*float32(r.NormFloat64())
		}
		for i := 0; i < n; i += c.each {
			last := min(i+c.each, n)
			require.NoError(t, h.Add(t.Context(), counted(last)[i:], vectors[i*dim:last*dim]))
		}
		assert.Greater(t, recallByDistance(t, h, vectors[n*dim:], 10), 0.95, "%v + %v, %d at a time", c.m, c.offset, c.each)
		path := filepath.Join(t.TempDir(), "graph")
		require.NoError(t, Save(t.Context(), path, h))
		ix, err := Open(t.Context(), path, Options{})
		require.NoError(t, err)
		assert.Equal(t, find(t, h, vectors[n*dim:][:dim], nil), find(t, ix, vectors[n*dim:][:dim], nil))
		require.NoError(t, ix.Close())
	}
}
