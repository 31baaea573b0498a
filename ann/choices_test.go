package ann

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/choice"
)

// TestChoices builds and searches indexes with other values of the choices, which find the same.
func TestChoices(t *testing.T) {
	dev := open(t, "cpu:0")
	choices := choice.Of("ann")
	require.Len(t, choices, 10)
	const n, dim, k = 9000, 12, 10
	r := rand.New(rand.NewPCG(36, 1))
	vectors, queries := random(r, n, dim), random(r, 5, dim)
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(i)
	}
	most := map[string]*Filter{"all": nil, "half": Predicate(func(id int64) bool { return id%2 == 0 }),
		"nearly all": Predicate(func(id int64) bool { return id%300 != 7 })}
	first := func(a, b []float32) float64 { return math.Abs(float64(a[0] - b[0])) }
	require.NoError(t, Register("first of choices", first))
	custom, err := ParseMetric("custom:first of choices")
	require.NoError(t, err)
	search := func(values map[string]int) (all [][]Result) {
		set, err := choice.NewSet(values)
		require.NoError(t, err)
		dev.Choices().Try(set)
		defer dev.Choices().Try(nil)
		for _, ix := range []Index{
			flat(t, dev, dim, L2Squared, FlatOptions{}), flat(t, dev, dim, Manhattan, FlatOptions{}),
			flat(t, dev, dim, custom, FlatOptions{}),
			ivf(t, dev, dim, L2Squared, IVFOptions{}), ivf(t, dev, dim, Cosine, IVFOptions{Lists: 8, Codes: 4, Refine: 30}),
			hnsw(t, dev, dim, L2Squared, HNSWOptions{M: 4, EfConstruction: 20, Threads: 1}),
		} {
			require.NoError(t, ix.Add(t.Context(), ids, vectors))
			for _, name := range []string{"all", "half", "nearly all"} {
				lists, err := ix.SearchBatch(t.Context(), queries, k, most[name])
				require.NoError(t, err)
				all = append(all, lists...)
				one, err := ix.Search(t.Context(), nil, queries[:dim], k, most[name])
				require.NoError(t, err)
				all = append(all, one)
			}
		}
		return all
	}
	usual := search(nil)
	for i := range 6 {
		values, rounds := map[string]int{}, i%2 == 1
		for _, c := range choices {
			if rounds || !c.Rounds {
				values[c.Name] = c.Values[r.IntN(len(c.Values))]
			}
		}
		got := search(values)
		if !rounds {
			assert.Equal(t, usual, got, values)
			continue
		}
		require.Len(t, got, len(usual))
		for j, list := range got {
			require.Len(t, list, len(usual[j]))
			for m, one := range list {
				require.Equal(t, usual[j][m].ID, one.ID, values)
				require.InEpsilon(t, 1+usual[j][m].Distance, 1+one.Distance, 1e-5, values)
			}
		}
	}
}
