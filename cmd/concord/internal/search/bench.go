package search

// concord search bench: how fast an index answers, and how much it finds.

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/runtime/driver"
)

// searchSpeed is the document of search bench.
type searchSpeed struct {
	Index         ann.Info   `json:"index"`
	Queries       int        `json:"queries"`
	K             int        `json:"k"`
	Recall        app.Number `json:"recall"`
	MedianMs      app.Number `json:"median_ms"` // of one query alone
	P99Ms         app.Number `json:"p99_ms"`
	PerSecond     app.Number `json:"queries_per_second"`       // one after the other
	BatchedSecond app.Number `json:"batch_queries_per_second"` // in one call
}

func searchBench(ctx context.Context, a *app.App, path string, s searchFlags) error {
	if err := s.check(); err != nil {
		return err
	}
	return withIndex(ctx, a, path, s, func(ix ann.Index) error {
		queries, err := s.readQueries(ctx, ix)
		if err != nil {
			return err
		}
		if ix.Info().Len == 0 {
			return fmt.Errorf("%s: an index without vectors, which finds nothing: %w", path, driver.ErrInvalidArgument)
		}
		if len(queries) == 0 {
			return fmt.Errorf("%s: there are no queries in it: %w", s.queries, driver.ErrInvalidArgument)
		}
		m, lists, err := timed(ctx, a, ix, queries, s.k)
		if err != nil {
			return err
		}
		if m.Recall, err = s.recall(ctx, ix, queries, lists); err != nil {
			return err
		}
		return a.Show(m, func() {
			a.Printf("%d queries for %d of %d vectors of %d components, %s, %s on %s\n", m.Queries, s.k, m.Index.Len,
				m.Index.Dim, m.Index.Metric, m.Index.Precision, m.Index.Device)
			a.Printf("recall@%d        %.4f\n", s.k, float64(m.Recall))
			a.Printf("one query       %.3f ms, 99 %% within %.3f ms, %.0f queries/s\n", float64(m.MedianMs),
				float64(m.P99Ms), float64(m.PerSecond))
			a.Printf("all in one call %.0f queries/s\n", float64(m.BatchedSecond))
		})
	})
}

// timed searches for queries, of which there are some, one by one and together.
func timed(ctx context.Context, a *app.App, ix ann.Index, queries []float32,
	k int) (m searchSpeed, lists [][]ann.Result, err error) {
	dim := ix.Info().Dim
	n := len(queries) / dim
	m = searchSpeed{Index: ix.Info(), Queries: n, K: k}
	bar := a.Progress(n)
	defer bar.End()
	var dst []ann.Result
	if dst, err = ix.Search(ctx, dst, queries[:dim], k, nil); err != nil { // builds the kernels
		return m, nil, err
	}
	times, whole := make([]float64, n), time.Now()
	for q := range n {
		start := time.Now()
		if dst, err = ix.Search(ctx, dst[:0], queries[q*dim:(q+1)*dim], k, nil); err != nil {
			return m, nil, err
		}
		times[q] = time.Since(start).Seconds()
		bar.Step()
	}
	m.PerSecond = app.Number(float64(n) / time.Since(whole).Seconds())
	slices.Sort(times)
	m.MedianMs, m.P99Ms = app.Number(1e3*times[n/2]), app.Number(1e3*times[(n-1)*99/100])
	whole = time.Now()
	lists, err = ix.SearchBatch(ctx, queries, k, nil)
	m.BatchedSecond = app.Number(float64(n) / time.Since(whole).Seconds())
	return m, lists, err
}

// recall returns the share of true neighbours in the lists. A vector that is as far from the query as the last
// of these counts as one.
func (s searchFlags) recall(ctx context.Context, ix ann.Index, queries []float32, lists [][]ann.Result) (app.Number,
	error) {
	var ids []int64
	var columns int
	var err error
	if s.truth != "" {
		if ids, columns, err = rowsOfIDs(ctx, s.truth); err != nil {
			return 0, err
		}
		if columns < s.k || len(ids)/columns < len(lists) {
			return 0, fmt.Errorf("%s: %d neighbours of %d queries, and %d of %d are needed", s.truth, columns, len(ids)/columns,
				s.k, len(lists))
		}
	}
	right, all, info := 0, 0, ix.Info()
	for q, list := range lists {
		var filter *ann.Filter
		truth := map[int64]bool{}
		if s.truth != "" {
			some := ids[q*columns : q*columns+s.k]
			filter = ann.IDSet(some)
			for _, id := range some {
				truth[id] = true
			}
		}
		exact, err := ann.Exact(ctx, ix, queries[q*info.Dim:(q+1)*info.Dim], s.k, filter)
		if err != nil {
			return 0, err
		}
		last := math.Inf(-1)
		for _, r := range exact {
			truth[r.ID] = true
			if filter == nil || info.Precision == ann.FP32.String() { // in others, vectors at different distances may be equal
				last = r.Distance
			}
		}
		all += len(truth)
		found := 0
		for _, r := range list {
			if truth[r.ID] || cmp.Compare(r.Distance, last) == 0 {
				found++
			}
		}
		right += min(found, len(truth))
	}
	return app.Number(float64(right) / float64(max(all, 1))), nil
}
