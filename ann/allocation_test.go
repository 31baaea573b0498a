//go:build !race

package ann

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
)

// TestAllocations finds that repeated searches allocate nothing.
func TestAllocations(t *testing.T) {
	dev := open(t, "cpu:0")
	r := rand.New(rand.NewPCG(5, 5))
	for _, c := range []struct {
		m Metric
		p Precision
	}{{Euclidean, FP32}, {Euclidean, FP16}, {Angular, INT8}} {
		f := flat(t, dev, 64, c.m, FlatOptions{Precision: c.p})
		ids := make([]int64, 2000)
		for i := range ids {
			ids[i] = int64(i)
		}
		require.NoError(t, f.Add(t.Context(), ids, random(r, 2000, 64)))
		query, dst := random(r, 1, 64), make([]Result, 0, 10)
		for what, filter := range map[string]*Filter{"all": nil, "some": Predicate(func(id int64) bool { return id%7 == 0 }),
			"a range": IDRange(300, 900),
			"most":    Not(IDSet([]int64{1, 2, 500}))} {
			search := func() {
				if _, err := f.Search(t.Context(), dst, query, 10, filter); err != nil {
					t.Error(err)
				}
			}
			search()
			if find, _, err := f.e.nearest(t.Context(), 10); assert.NoError(t, err) && find.Info().Implementation == "go" {
				t.Skip("the kernels in Go allocate; this device has no others")
			}
			assert.Zero(t, testing.AllocsPerRun(100, search), "%v %v %s", c.m, c.p, what)
		}
	}
}

// TestGraphAllocations finds the same for a graph.
func TestGraphAllocations(t *testing.T) {
	dev := open(t, "cpu:0")
	r := rand.New(rand.NewPCG(6, 6))
	for _, o := range []HNSWOptions{{}, {Codes: true}} {
		h := hnsw(t, dev, 64, Euclidean, o)
		require.NoError(t, h.Add(t.Context(), counted(2000), random(r, 2000, 64)))
		query, dst := random(r, 1, 64), make([]Result, 0, 10)
		for what, filter := range map[string]*Filter{"all": nil, "half": Predicate(func(id int64) bool { return id%2 == 0 }),
			"few": IDRange(300, 330)} {
			search := func() {
				if _, err := h.Search(t.Context(), dst, query, 10, filter); err != nil {
					t.Error(err)
				}
			}
			search()
			if r, ok := dev.Driver().(kernels.Ranker); !ok || !r.Rank(&kernels.Ranking{}) {
				t.Skip("no vector functions")
			}
			assert.Zero(t, testing.AllocsPerRun(100, search), "%+v %s", o, what)
		}
	}
}

// TestListAllocations finds the same for lists.
func TestListAllocations(t *testing.T) {
	dev := open(t, "cpu:0")
	r := rand.New(rand.NewPCG(7, 7))
	for _, o := range []IVFOptions{{Lists: 20, Probes: 4}, {Lists: 20, Probes: 4, Precision: FP16},
		{Lists: 20, Probes: 20}, {Lists: 20, Probes: 4, Codes: 8, Refine: 3}} {
		x := ivf(t, dev, 64, Euclidean, o)
		require.NoError(t, x.Add(t.Context(), counted(2000), random(r, 2000, 64)))
		query, dst := random(r, 1, 64), make([]Result, 0, 10)
		for what, filter := range map[string]*Filter{"all": nil, "half": Predicate(func(id int64) bool { return id%2 == 0 }),
			"few": IDRange(300, 330)} {
			search := func() {
				if _, err := x.Search(t.Context(), dst, query, 10, filter); err != nil {
					t.Error(err)
				}
			}
			search()
			if find, _, err := x.coarse.nearest(t.Context(), 10); assert.NoError(t, err) && find.Info().Implementation == "go" {
				t.Skip("the kernels in Go allocate; this device has no others")
			}
			assert.Zero(t, testing.AllocsPerRun(100, search), "%+v %s", o, what)
		}
	}
}
