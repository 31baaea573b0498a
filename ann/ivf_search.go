package ann

// The search of an IVF index.

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
)

// Search implements [Index]. All vectors that the filter admits are compared with the query if they are fewer
// than 10·k or 2 % of all, or if there are fewer than k in the lists that are read. A filter that admits a part
// of all vectors makes it read as many times more lists. With [Euclidean], [L2Squared], [Cosine] and [Angular] it
// allocates nothing from its second call on, on the CPU, if dst has room, unless the filter is new.
func (x *IVF) Search(ctx context.Context, dst []Result, query []float32, k int, filter *Filter) ([]Result, error) {
	return x.single(ctx, dst, query, k, filter, false)
}

// Exact appends what Search would find that compares the query with every vector that the filter admits.
func (x *IVF) Exact(ctx context.Context, dst []Result, query []float32, k int, filter *Filter) ([]Result, error) {
	return x.single(ctx, dst, query, k, filter, true)
}

func (x *IVF) single(ctx context.Context, dst []Result, query []float32, k int, filter *Filter,
	exact bool) (all []Result, err error) {
	err = x.reading(ctx, func() (err error) {
		all, err = x.one(ctx, dst, query, k, filter, exact)
		return err
	})
	return all, err
}

// reading searches without changes meanwhile.
func (x *IVF) reading(ctx context.Context, search func() error) error {
	return x.withRoom(ctx, func() (*store, error) {
		if err := reading(ctx, &x.mu); err != nil {
			return nil, err
		}
		defer x.mu.RUnlock()
		err := search()
		return x.store().ifOnDevice(), err
	})
}

func (x *IVF) one(ctx context.Context, dst []Result, query []float32, k int, filter *Filter,
	exact bool) ([]Result, error) {
	a, k, err := x.begin(ctx, len(query), k, filter, true)
	if err != nil || k == 0 {
		return dst, err
	}
	w, err := x.store().enter(ctx)
	if err != nil {
		return dst, err
	}
	defer x.store().leave(w)
	probes := 0
	if !exact {
		probes = x.probes(a, k)
	}
	if w.probed, err = x.nearest(ctx, w.probed[:0], x.centres, query, probes); err != nil {
		return dst, err
	}
	return x.scan(ctx, w, dst, query, w.probed, k, a, x.e.threads())
}

// SearchBatch implements [Index]. Several threads divide the queries among them, where the host sees the vectors.
func (x *IVF) SearchBatch(ctx context.Context, queries []float32, k int, filter *Filter) (lists [][]Result, err error) {
	err = x.reading(ctx, func() (err error) {
		lists, err = x.many(ctx, queries, k, filter)
		return err
	})
	return lists, err
}

func (x *IVF) many(ctx context.Context, queries []float32, k int, filter *Filter) ([][]Result, error) {
	a, k, err := x.begin(ctx, len(queries), k, filter, false)
	if err != nil {
		return nil, err
	}
	dim := x.e.dim
	lists := make([][]Result, len(queries)/dim)
	if k == 0 {
		return lists, nil
	}
	all, probes, probed := make([]Result, len(lists)*k), x.probes(a, k), []uint32(nil)
	for lo := 0; lo < len(lists); lo += assigned {
		hi := min(lo+assigned, len(lists))
		if probed, err = x.nearest(ctx, probed[:0], x.centres, queries[lo*dim:hi*dim], probes); err != nil {
			return nil, err
		}
		threads := 1
		if x.onHost() {
			threads = min(x.e.threads(), hi-lo)
		}
		if err := divided(ctx, threads, hi-lo, func(next iter.Seq[int]) error {
			w, err := x.store().enter(ctx)
			if err != nil {
				return err
			}
			defer x.store().leave(w)
			for i := range next {
				q := lo + i
				to, query := all[q*k:q*k:(q+1)*k], queries[q*dim:(q+1)*dim]
				if lists[q], err = x.scan(ctx, w, to, query, probed[i*probes:(i+1)*probes], k, a,
					max(1, x.e.threads()/threads)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return lists, nil
}

// begin checks the arguments of a search. It returns what the filter admits and how many results there are.
func (x *IVF) begin(ctx context.Context, components, k int, filter *Filter, one bool) (*admitted, int, error) {
	if err := x.asked(ctx, components, k, one); err != nil {
		return nil, 0, err
	}
	return filter.of(x, x.state, k, x.table.len(), x.seen)
}

// probes returns how many lists a search reads; 0 stands for all that is admitted. With a filter there are more
// of them, so that about as many vectors are compared as without one: the nearest that are admitted lie farther
// from the query than the nearest of all.
func (x *IVF) probes(a *admitted, k int) int {
	probes := x.o.Probes
	if a != nil {
		if a.count < max(10*k, x.table.len()/50) {
			return 0
		}
		// a float, as it may be above every int
		probes = int(min(math.Ceil(float64(probes)*float64(x.table.len())/float64(a.count)), float64(len(x.lists))))
	}
	switch {
	case probes < len(x.lists):
		return probes
	case x.centres.codes != nil:
		return len(x.lists)
	}
	return 0
}

// nearest appends the lists whose centres are nearest to each query.
func (x *IVF) nearest(ctx context.Context, to []uint32, c centres, queries []float32, probes int) ([]uint32, error) {
	if probes == 0 {
		return to, nil
	}
	w, err := x.works.take(ctx, x.coarse)
	if err != nil {
		return to, err
	}
	defer x.works.give(w)
	w.late = true
	if err := w.ask(ctx, queries); err != nil {
		return to, err
	}
	_, places, err := w.search(ctx, c.buf, c.n, len(queries)/x.e.dim, probes)
	if err != nil {
		return to, err
	}
	w.late = false
	return append(to, places...), nil
}

// onHost reports whether searches compare vectors on the calling goroutine.
func (x *IVF) onHost() bool {
	return x.e.metric.kind == custom || x.e.ranker != nil && !x.store().streams
}

// scan appends the k nearest of the vectors in lists that are admitted, or of all that are admitted if there
// are no lists or fewer than k vectors in them.
func (x *IVF) scan(ctx context.Context, w *work, dst []Result, query []float32, lists []uint32, k int, a *admitted,
	threads int) ([]Result, error) {
	rows, inLists, byCodes := w.listedRows[:0], 0, false
	for _, l := range lists {
		inLists += len(x.lists[l])
	}
	if most := k * x.o.Refine; x.centres.codes != nil && inLists > most {
		var err error
		if rows, byCodes, err = x.shortlist(ctx, rows, query, lists, most, a); err != nil {
			return dst, err
		}
		if byCodes = byCodes && len(rows) >= k; !byCodes {
			rows = rows[:0]
		}
	}
	for _, l := range lists {
		if byCodes {
			break
		}
		if a == nil {
			rows = append(rows, x.lists[l]...)
			continue
		}
		for _, row := range x.lists[l] {
			if a.bits.has(int(row)) {
				rows = append(rows, row)
			}
		}
	}
	if len(rows) < k {
		if rows = rows[:0]; a != nil {
			rows = append(rows, a.list...)
		} else {
			for _, list := range x.lists {
				rows = append(rows, list...)
			}
		}
	}
	w.listedRows = rows
	switch {
	case x.e.metric.kind == custom:
		memory, size := x.store().memory(), x.store().size(1)
		return x.e.byFunction(ctx, dst, query, len(rows), k, threads, func(i int) (int64, []byte) {
			return x.ids[rows[i]], memory[int(rows[i])*size:][:size]
		})
	case x.onHost():
		return w.byRank(ctx, dst, query, x.store().memory(), x.ids, rows, k, threads)
	}
	slices.SortFunc(rows, func(a, b uint32) int { return cmp.Compare(x.ids[a], x.ids[b]) })
	best, err := x.store().search(ctx, w, x.ids, query, sought{k: k, a: &admitted{count: len(rows), list: rows},
		listed: true})
	if err != nil {
		return dst, err
	}
	return x.results(dst, best), nil
}
