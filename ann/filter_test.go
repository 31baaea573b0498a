package ann

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// TestFilters compares searches with filters of every kind, that admit all, most, few or none, with a scan.
func TestFilters(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	const n, dim, k = 3000, 8, 20
	ids, vectors, queries := numbers(r, n), random(r, n, dim), random(r, 3, dim)
	sorted := slices.Sorted(slices.Values(ids))
	lo, hi := sorted[700], sorted[1500]
	set := slices.Concat(ids[40:90], []int64{5, -3}) // two that are not there
	mask := make([]bool, n)
	masked := map[int64]bool{}
	for i, id := range ids {
		mask[i] = r.IntN(3) > 0
		masked[id] = mask[i]
	}
	inRange := func(id int64) bool { return id >= lo && id <= hi }
	inSet := func(id int64) bool { return slices.Contains(set, id) }
	odd := func(id int64) bool { return id%2 == 1 }
	filters := []struct {
		name   string
		filter *Filter
		admits func(id int64) bool
	}{
		{"range", IDRange(lo, hi), inRange},
		{"one id", IDRange(lo, lo), func(id int64) bool { return id == lo }},
		{"empty range", IDRange(hi, lo), func(int64) bool { return false }},
		{"set", IDSet(set), inSet},
		{"all but the set", Not(IDSet(set)), func(id int64) bool { return !inSet(id) }},
		{"mask", Mask(mask), func(id int64) bool { return masked[id] }},
		{"predicate", Predicate(odd), odd},
		{"and", And(IDRange(lo, hi), Predicate(odd), Mask(mask)), func(id int64) bool {
			return inRange(id) && odd(id) && masked[id]
		}},
		{"or", Or(IDSet(set), IDRange(lo, hi)), func(id int64) bool { return inSet(id) || inRange(id) }},
		{"not", Not(Or(Not(Predicate(odd)), Not(IDRange(lo, hi)))), func(id int64) bool { return odd(id) && inRange(id) }},
		{"and of nothing", And(), func(int64) bool { return true }},
		{"or of nothing", Or(), func(int64) bool { return false }},
		{"not of nothing", Not(nil), func(int64) bool { return false }},
		{"and of nil", And(nil, IDSet(set)), inSet},
	}
	for _, name := range devices {
		dev := open(t, name)
		for _, m := range []Metric{Euclidean, Manhattan, {kind: custom, name: "scan", f: Euclidean.distance}} {
			if m.kind == custom && name != "cpu:0" {
				continue
			}
			f := flat(t, dev, dim, m, FlatOptions{})
			require.NoError(t, f.Add(t.Context(), ids, vectors))
			for _, c := range filters {
				for range 2 { // computed, and known
					lists, err := f.SearchBatch(t.Context(), queries, k, c.filter)
					require.NoError(t, err, c.name)
					for q, got := range lists {
						query := queries[q*dim : (q+1)*dim]
						what := fmt.Sprint(name, " ", m, " ", c.name)
						judge(t, m, dim, k, scan(m, dim, query, ids, vectors, c.admits), got, what)
						one, err := f.Search(t.Context(), nil, query, k, c.filter)
						require.NoError(t, err)
						require.Equal(t, len(got), len(one))
						if len(got) > 0 {
							require.Equal(t, got, one, what)
						}
					}
				}
			}
		}
	}
}

// TestFilterOnce counts the calls of a predicate: one for each id and state of the index.
func TestFilterOnce(t *testing.T) {
	f := flat(t, open(t, "cpu:0"), 1, Euclidean, FlatOptions{})
	require.NoError(t, f.Add(t.Context(), []int64{1, 2, 3, 4}, []float32{1, 2, 3, 4}))
	calls := 0
	filter := Predicate(func(id int64) bool { calls++; return id != 2 })
	for range 5 {
		got, err := f.Search(t.Context(), nil, []float32{0}, 2, filter)
		require.NoError(t, err)
		assert.Equal(t, []Result{{1, 1}, {3, 3}}, got)
	}
	assert.Equal(t, 4, calls)
	require.NoError(t, f.Remove(t.Context(), []int64{1}))
	got, err := f.Search(t.Context(), nil, []float32{0}, 2, filter)
	require.NoError(t, err)
	assert.Equal(t, []Result{{3, 3}, {4, 4}}, got)
	assert.Equal(t, 7, calls)
}

// TestFilterParts has more admitted rows than are copied at a time.
func TestFilterParts(t *testing.T) {
	dev := open(t, "cpu:0")
	const dim = 1 << 12
	n := 3 * rowsGathered.Default << 20 / (4 * dim)
	r := rand.New(rand.NewPCG(13, 14))
	f := flat(t, dev, dim, L2Squared, FlatOptions{})
	ids, vectors := make([]int64, n), random(r, n, dim)
	for i := range ids {
		ids[i] = int64(i)
	}
	require.NoError(t, f.Add(t.Context(), ids, vectors))
	admits := func(id int64) bool { return id%5 != 2 }
	queries := vectors[:2*dim]
	lists, err := f.SearchBatch(t.Context(), queries, 5, Predicate(admits))
	require.NoError(t, err)
	for q, got := range lists {
		judge(t, L2Squared, dim, 5, scan(L2Squared, dim, queries[q*dim:(q+1)*dim], ids, vectors, admits), got, "parts")
	}
	_, err = f.Search(t.Context(), nil, queries[:dim], 5, Mask(make([]bool, n-1)))
	assert.ErrorIs(t, err, runtime.ErrDimension)
}
