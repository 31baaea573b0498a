package ann

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// sameCodes finds that the codes in blocks are those of the vectors in lists, and that each block is in one
// list, or free.
func sameCodes(t *testing.T, x *IVF) {
	t.Helper()
	k := x.centres.codes
	if k == nil {
		require.Equal(t, x.o.Codes > 0, x.coder != nil)
		return
	}
	require.Len(t, k.lists, len(x.lists))
	got, blocks := make([]byte, k.bytes), slices.Clone(k.free)
	want := make([]byte, 0, len(x.ids)*k.bytes)
	require.NoError(t, x.stored(t.Context(), func(first int, vectors []float32) error {
		codes, err := x.encode(t.Context(), x.centres, vectors, x.inList[first:][:len(vectors)/x.e.dim])
		want = append(want, codes...)
		return err
	}))
	for l, list := range x.lists {
		require.Len(t, k.lists[l], (len(list)+perBlock-1)/perBlock)
		blocks = append(blocks, k.lists[l]...)
		for i, row := range list {
			k.get(uint32(l), i, got)
			require.Equal(t, want[int(row)*k.bytes:][:k.bytes], got, "row %d of list %d", i, l)
		}
	}
	slices.Sort(blocks)
	require.Len(t, slices.Compact(blocks), k.used)
}

// TestCodes finds what Flat finds among the vectors of the nearest codes, after every kind of change.
func TestCodes(t *testing.T) {
	r := rand.New(rand.NewPCG(81, 82))
	const n, dim, k, lists = 3000, 12, 9, 11
	vectors, ids := clustered(r, n, dim), numbers(r, n)
	for _, m := range []Metric{L2Squared, Cosine, Manhattan} {
		for _, name := range []string{"cpu:0", "opencl:0"} {
			if name != "cpu:0" && m.kind == manhattan {
				continue
			}
			x := ivf(t, open(t, name), dim, m, IVFOptions{Lists: lists, Probes: 4, Codes: 6, Refine: 3})
			even := Predicate(func(id int64) bool { return id%2 == 0 })
			same := func(what string) {
				t.Helper()
				sameCodes(t, x)
				for q := range 5 {
					query := vectors[q*dim : (q+1)*dim]
					for _, filter := range []*Filter{nil, even} {
						var a *admitted
						if filter != nil {
							var err error
							_, err = x.Search(t.Context(), nil, query, k, filter)
							require.NoError(t, err)
							a = filter.last.Load()
						}
						probed, err := x.nearest(t.Context(), nil, x.centres, query, x.probes(a, k))
						require.NoError(t, err)
						rows, ok, err := x.shortlist(t.Context(), nil, query, probed, 3*k, a)
						require.NoError(t, err)
						require.True(t, ok)
						require.ElementsMatch(t, nearestCodes(t, x, query, probed, 3*k, a), rows, "%v %s %s", m, name, what)
						some := make([]int64, len(rows))
						for i, row := range rows {
							some[i] = x.ids[row]
						}
						want, err := x.Exact(t.Context(), nil, query, k, IDSet(some))
						require.NoError(t, err)
						got, err := x.Search(t.Context(), nil, query, k, filter)
						require.NoError(t, err)
						require.Equal(t, want, got, "%v %s %s", m, name, what)
					}
				}
			}
			require.NoError(t, x.Add(t.Context(), ids[:150], vectors[:150*dim]))
			require.Nil(t, x.centres.codes, "there are no lists yet")
			require.NoError(t, x.Add(t.Context(), ids[150:2000], vectors[150*dim:2000*dim]))
			require.Equal(t, "pq", x.Info().Kind)
			same("with lists")
			require.NoError(t, x.Add(t.Context(), ids[2000:], vectors[2000*dim:]))
			same("after another Add")
			require.NoError(t, x.Remove(t.Context(), ids[500:1200]))
			for i := range 20 {
				require.NoError(t, x.Update(t.Context(), ids[i], vectors[(600+i)*dim:][:dim]))
				require.NoError(t, x.Update(t.Context(), ids[20+i], vectors[(20+i)*dim:][:dim]))
			}
			same("after changes")
			require.NoError(t, x.Add(t.Context(), ids[500:510], vectors[500*dim:510*dim]))
			same("after adding removed ones")
			require.NoError(t, x.Compact(t.Context()))
			same("after compact")
			require.NoError(t, x.Train(t.Context()))
			same("after train")
			require.NoError(t, x.Remove(t.Context(), ids[1200:]))
			require.NoError(t, x.Compact(t.Context()))
			require.Less(t, len(x.centres.codes.blocks), 2*(510/perBlock+lists)*x.centres.codes.blockSize(),
				"memory of removed codes is freed")
			same("after most were removed")
		}
	}
}

// nearestCodes returns the rows in lists whose codes are nearest to a query, by what these stand for.
func nearestCodes(t *testing.T, x *IVF, query []float32, lists []uint32, most int, a *admitted) (rows []uint32) {
	k := x.centres.codes
	s, err := k.take(x.e.dim)
	require.NoError(t, err)
	defer k.scans.give(s)
	var all []near
	code := make([]byte, k.bytes)
	for _, l := range lists {
		x.centres.rest(s.points, x.compared(s.asked, query), l)
		base, step := k.ranker.CodeTable(&k.book, s.points[:x.e.dim], s.table)
		for i, row := range x.lists[l] {
			if a != nil && !a.bits.has(int(row)) {
				continue
			}
			k.get(l, i, code)
			sum := 0
			for j, c := range code {
				sum += int(s.table[32*j+int(c&15)]) + int(s.table[32*j+16+int(c>>4)])
			}
			all = append(all, near{candidateOf(base+float32(float32(sum)*step), row), x.ids[row]})
		}
	}
	slices.SortFunc(all, near.compare)
	for _, c := range all[:min(most, len(all))] {
		rows = append(rows, c.row())
	}
	return rows
}

// TestCodesOfAnything searches with vectors and queries that are not finite or far away, with equal vectors,
// and for more than there are.
func TestCodesOfAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(83, 84))
	const n, dim = 1000, 4
	vectors, nan, inf := make([]float32, n*dim), float32(math.NaN()), float32(math.Inf(1))
	for i := range vectors {
		vectors[i] = float32(r.IntN(3))
	}
	vectors[5*dim], vectors[6*dim+1], vectors[7*dim] = nan, inf, 1e30
	for _, m := range []Metric{Euclidean, Angular} {
		for _, p := range []Precision{FP32, INT8} {
			with := ivf(t, open(t, "cpu:0"), dim, m, IVFOptions{Lists: 20, Probes: 5, Codes: 2, Precision: p, Refine: 2})
			without := ivf(t, open(t, "cpu:0"), dim, m, IVFOptions{Lists: 20, Probes: 5, Precision: p})
			for _, x := range []*IVF{with, without} {
				require.NoError(t, x.Add(t.Context(), counted(n), vectors))
			}
			for _, query := range [][]float32{{nan, 0, 0, 0}, {0, inf, 0, 0}, {1e25, 0, 1, 1}} {
				for _, k := range []int{3, 400} {
					want, err := without.Search(t.Context(), nil, query, k, nil)
					require.NoError(t, err)
					got, err := with.Search(t.Context(), nil, query, k, nil)
					require.NoError(t, err)
					if k > 3 || m.kind == euclidean { // of directions, those that are not finite alone are not compared
						require.Len(t, got, len(want))
					}
					if math.IsNaN(float64(query[0])) || m.kind == euclidean {
						require.Equal(t, len(want), len(got))
						for i := range want {
							require.Equal(t, math.Float64bits(want[i].Distance), math.Float64bits(got[i].Distance), "%v %v %v %d", m, p,
								query, k)
						}
					}
				}
			}
			all, err := with.Search(t.Context(), nil, vectors[:dim], 2*n, nil)
			require.NoError(t, err)
			want, err := without.Exact(t.Context(), nil, vectors[:dim], 2*n, nil)
			require.NoError(t, err)
			require.Len(t, all, n)
			for i := range all[:n-2] {
				require.Equal(t, want[i], all[i])
			}
			found, err := with.Search(t.Context(), nil, vectors[:dim], 5, nil)
			require.NoError(t, err)
			for i, f := range found {
				assert.InDelta(t, 0, f.Distance, 1e-3)
				assert.True(t, i == 0 || f.ID > found[i-1].ID, "equal distances are in the order of ids")
			}
		}
	}
}

// TestCodeTies has far more equal vectors than are compared after codes: those of the smallest ids are found,
// in whatever order they were added.
func TestCodeTies(t *testing.T) {
	r := rand.New(rand.NewPCG(85, 86))
	const n, dim, k = 2000, 8, 10
	x := ivf(t, open(t, "cpu:0"), dim, L2Squared, IVFOptions{Lists: 8, Probes: 8, Codes: 4, Refine: 2})
	vectors, ids := random(r, n, dim), numbers(r, n)
	for i := range n / 2 {
		copy(vectors[2*i*dim:][:dim], vectors[:dim])
	}
	require.NoError(t, x.Add(t.Context(), ids, vectors))
	want, err := x.Exact(t.Context(), nil, vectors[:dim], k, nil)
	require.NoError(t, err)
	got, err := x.Search(t.Context(), nil, vectors[:dim], k, nil)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	few := IDSet(slices.Concat(ids[:n/4], ids[n/2:]))
	want, err = x.Exact(t.Context(), nil, vectors[:dim], k, few)
	require.NoError(t, err)
	got, err = x.Search(t.Context(), nil, vectors[:dim], k, few)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// TestCodesOfHuge has differences that are too large for a float: the values of codes are finite, and the file
// is read again.
func TestCodesOfHuge(t *testing.T) {
	const n, dim = 64, 4
	x := ivf(t, open(t, "cpu:0"), dim, L2Squared, IVFOptions{Lists: 2, Probes: 2, Codes: 2, Refine: 2})
	vectors := make([]float32, n*dim)
	for i := range vectors {
		vectors[i] = float32(1-i/dim%2*2) * 3e38
	}
	require.NoError(t, x.Add(t.Context(), counted(n), vectors))
	var b bytes.Buffer
	_, err := x.WriteTo(&b)
	require.NoError(t, err)
	again, err := Read(t.Context(), &b, Options{})
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

// TestCodesByName makes the kind pq, with as many bits as components, and what it cannot make.
func TestCodesByName(t *testing.T) {
	for dim, bytes := range map[int]int{2: 1, 100: 12, 2000: 128} {
		ix, err := New(t.Context(), " PQ", dim, "cosine", Options{})
		require.NoError(t, err)
		info := ix.Info()
		assert.Equal(t, "pq", info.Kind)
		assert.Equal(t, IVFOptions{Lists: 1, Probes: 16, Codes: bytes, Refine: 20}, *info.IVF)
		require.NoError(t, ix.(*IVF).SetRefine(3))
		assert.Equal(t, 3, ix.Info().IVF.Refine)
		require.NoError(t, ix.Close())
	}
	_, err := New(t.Context(), "pq", 1, "cosine", Options{})
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
}
