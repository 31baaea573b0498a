package verify

// The step that searches for nearest neighbours, beside all distances in float64.

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/runtime"
)

// Of the search: sizes that are small for a device, and no multiple of a group.
const (
	searchVectors = 2003
	searchDim     = 40
	searchQueries = 9
	searchK       = 10
)

// cloud returns vectors around some centres, as real ones lie. The seed determines them.
func cloud(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 33))
	centers := make([]float32, 20*searchDim)
	for i := range centers {
		centers[i] = float32(r.NormFloat64())
	}
	x := make([]float32, n*searchDim)
	for i := range x {
		x[i] = centers[i/searchDim%20*searchDim+i%searchDim] + 0.3*float32(r.NormFloat64())
	}
	return x
}

// stepSearch makes an index of each kind, and exact ones for several metrics and precisions.
func stepSearch(ctx context.Context, e *Env, dev *runtime.Device) error {
	ids := make([]int64, searchVectors)
	for i := range ids {
		ids[i] = int64(i)
	}
	x, q := cloud(searchVectors, 1), cloud(searchQueries, 2)
	// search fills an index and returns the part of the nearest by metric that it finds.
	search := func(ctx context.Context, ix ann.Index, m ann.Metric, odd bool, off float64) (recall float64, err error) {
		defer ix.Close()
		if err := ix.Add(ctx, ids, x); err != nil {
			return 0, err
		}
		var filter *ann.Filter
		if odd {
			filter = ann.Predicate(func(id int64) bool { return id%2 == 1 })
		}
		found, err := ix.SearchBatch(ctx, q, searchK, filter)
		if err != nil {
			return 0, err
		}
		return judged(found, x, q, m, odd, off)
	}
	type trial struct {
		name   string
		make   func() (ann.Index, error)
		metric ann.Metric
		odd    bool
		recall float64 // at least
		off    float64 // by which a distance may differ, as a part of it
	}
	var trials []trial
	for _, m := range []ann.Metric{ann.Euclidean, ann.Cosine, ann.Manhattan} {
		trials = append(trials, trial{"flat " + m.String(), func() (ann.Index, error) {
			return ann.NewFlat(dev, searchDim, m, ann.FlatOptions{})
		}, m, false, 1, 1e-4})
	}
	for _, p := range []ann.Precision{ann.FP16, ann.INT8Scaled} {
		trials = append(trials, trial{"flat in " + p.String(), func() (ann.Index, error) {
			return ann.NewFlat(dev, searchDim, ann.Euclidean, ann.FlatOptions{Precision: p})
		}, ann.Euclidean, false, 0.85, 0.05})
	}
	trials = append(trials,
		trial{"flat with a filter", func() (ann.Index, error) {
			return ann.NewFlat(dev, searchDim, ann.Euclidean, ann.FlatOptions{})
		}, ann.Euclidean, true, 1, 1e-4},
		trial{"lists, all of them", func() (ann.Index, error) {
			return ann.NewIVF(dev, searchDim, ann.Euclidean, ann.IVFOptions{Lists: 32, Probes: 32, Seed: 1})
		}, ann.Euclidean, false, 1, 1e-4},
		trial{"lists with codes", func() (ann.Index, error) {
			return ann.NewIVF(dev, searchDim, ann.Euclidean, ann.IVFOptions{Lists: 16, Probes: 16, Seed: 1, Codes: 10})
		}, ann.Euclidean, false, 0.8, 1e-4})
	for _, t := range trials {
		e.check(ctx, t.name, func(ctx context.Context) error {
			ix, err := t.make()
			if err != nil {
				return err
			}
			recall, err := search(ctx, ix, t.metric, t.odd, t.off)
			if err == nil && recall < t.recall {
				err = fmt.Errorf("%.3f of the nearest were found, and not %.3f", recall, t.recall)
			}
			return err
		})
	}
	return nil
}

// judged returns the part of the nearest vectors that were found, by distances in float64. A result that is further
// away than rounding explains is not one of the nearest; one that the filter does not admit is an error, as are a
// wrong distance, a wrong order, and the same vector twice.
func judged(found [][]ann.Result, x, q []float32, m ann.Metric, odd bool, off float64) (recall float64, err error) {
	if len(found) != searchQueries {
		return 0, fmt.Errorf("results for %d queries, and not %d", len(found), searchQueries)
	}
	hits := 0
	for i, results := range found {
		if len(results) != searchK {
			return 0, fmt.Errorf("%d results, and not %d", len(results), searchK)
		}
		all := make([]float64, searchVectors)
		for j := range all {
			if all[j], err = m.Distance(q[i*searchDim:(i+1)*searchDim], x[j*searchDim:(j+1)*searchDim]); err != nil {
				return 0, err
			}
		}
		var admitted []float64
		for j, d := range all {
			if !odd || j%2 == 1 {
				admitted = append(admitted, d)
			}
		}
		slices.Sort(admitted)
		last := admitted[searchK-1] * (1 + 1e-5)
		if !slices.IsSortedFunc(results, func(a, b ann.Result) int { return cmp.Compare(a.Distance, b.Distance) }) {
			return 0, fmt.Errorf("the results of query %d are not in order: %v", i, results)
		}
		seen := map[int64]bool{}
		for _, r := range results {
			if r.ID < 0 || r.ID >= searchVectors || odd && r.ID%2 == 0 {
				return 0, fmt.Errorf("query %d found %d, which is not admitted", i, r.ID)
			}
			if seen[r.ID] {
				return 0, fmt.Errorf("query %d found %d twice", i, r.ID)
			}
			seen[r.ID] = true
			if d := all[r.ID]; !(math.Abs(r.Distance-d) <= off*d+1e-6) { // NaN is wrong, too
				return 0, fmt.Errorf("query %d: the distance of %d is %v, not %v", i, r.ID, r.Distance, d)
			}
			if all[r.ID] <= last {
				hits++
			}
		}
	}
	return float64(hits) / (searchQueries * searchK), nil
}
