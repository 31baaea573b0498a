package ann

// The search of an HNSW index, and the exact one that it falls back to.

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
)

const usualEf = 50

// Search implements [Index]. All vectors that the filter admits are compared with the query if they are fewer
// than 10·k or 2 % of all, or if the graph does not lead to k of them. Of equally far vectors that the search
// came to, those of the smallest ids are found. With [Euclidean], [L2Squared], [Cosine] and [Angular] it
// allocates nothing from its second call on if dst has room, unless the filter is new.
func (h *HNSW) Search(ctx context.Context, dst []Result, query []float32, k int, filter *Filter) ([]Result, error) {
	if err := reading(ctx, &h.mu); err != nil {
		return dst, err
	}
	defer h.mu.RUnlock()
	v, a, k, err := h.begin(ctx, len(query), k, filter, true)
	if err != nil {
		return dst, err
	}
	return h.search(ctx, v, dst, query, k, a, h.e.threads())
}

// SearchBatch implements [Index]. Several threads divide the queries among them.
func (h *HNSW) SearchBatch(ctx context.Context, queries []float32, k int, filter *Filter) ([][]Result, error) {
	if err := reading(ctx, &h.mu); err != nil {
		return nil, err
	}
	defer h.mu.RUnlock()
	v, a, k, err := h.begin(ctx, len(queries), k, filter, false)
	if err != nil {
		return nil, err
	}
	dim := h.e.dim
	lists := make([][]Result, len(queries)/dim)
	threads := max(1, min(h.threads(), len(lists)))
	each := max(1, h.e.threads()/threads) // of an exact search
	if err := divided(ctx, threads, len(lists), func(next iter.Seq[int]) (err error) {
		for q := range next {
			if lists[q], err = h.search(ctx, v, make([]Result, 0, k), queries[q*dim:(q+1)*dim], k, a, each); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return lists, nil
}

// Exact appends what Search would find that compares the query with every vector that the filter admits.
func (h *HNSW) Exact(ctx context.Context, dst []Result, query []float32, k int, filter *Filter) ([]Result, error) {
	if err := reading(ctx, &h.mu); err != nil {
		return dst, err
	}
	defer h.mu.RUnlock()
	if filter == nil {
		filter = h.all
	}
	v, a, k, err := h.begin(ctx, len(query), k, filter, true)
	if err != nil || k == 0 {
		return dst, err
	}
	return h.exact(ctx, v, dst, query, k, a, h.e.threads())
}

// begin checks the arguments of a search. It returns the view to search, what the filter admits of it, and how
// many results there are.
func (h *HNSW) begin(ctx context.Context, components, k int, filter *Filter,
	one bool) (v *view, a *admitted, results int, err error) {
	if err = h.asked(ctx, components, k, one); err != nil {
		return nil, nil, 0, err
	}
	v = h.now.Load()
	a, k, err = filter.of(h, v.state, k, v.count, func() *rows { return h.seen(v) })
	return v, a, k, err
}

// seen returns the vectors of a view as a filter sees them.
func (h *HNSW) seen(v *view) *rows {
	then := &table{ids: v.ids, live: v.live, gone: v.gone}
	// if some have gone since the view
	before := sync.OnceValue(func() *table { return &table{ids: v.ids, live: v.live, order: then.byID()} })
	return &rows{table: then, place: func(id int64) (int, bool) {
		h.tableLock.Lock()
		node, ok := h.row(id)
		same := h.gone == v.gone
		h.tableLock.Unlock()
		if ok = ok && node < len(v.ids) && v.live.has(node); !ok && !same {
			return before().row(id)
		}
		return node, ok
	}}
}

// search searches a view. If it comes to an exact search, this uses at most so many threads.
func (h *HNSW) search(ctx context.Context, v *view, dst []Result, query []float32, k int, a *admitted,
	threads int) (all []Result, err error) {
	all = dst // if a metric of the program panics
	defer catch(&err)
	begin, top, ok := entered(v.start)
	if k == 0 || !ok {
		return dst, nil
	}
	if a != nil && a.count < max(10*k, v.count/50) {
		return h.exact(ctx, v, dst, query, k, a, threads)
	}
	s, err := h.searches.take(v)
	if err != nil {
		return dst, err
	}
	defer h.searches.give(s)
	point := s.ask(query)
	var admits bitset
	if a != nil {
		admits = a.bits
	}
	ef := max(cmp.Or(v.o.EfSearch, usualEf), k)
	s.best, s.copied = s.best[:0], false
	// it is not alone, nor a stray
	if links := v.links(begin, 0); atomic.LoadUint32(&links[0]) > 0 || v.copies != nil &&
		atomic.LoadUint32(&v.copies[begin]) > 0 {
		f := found{all: a == nil && v.count == len(v.level), seen: v.count < len(v.ids), admits: admits}
		v.descend(s, point, s.one(point, begin), top, 0)
		v.explore(s, point, 0, ef, f)
		v.withCopies(s, ef, f)
	}
	if len(s.best) < k {
		if a == nil {
			if a, _, err = h.all.of(h, v.state, k, v.count, func() *rows { return h.seen(v) }); err != nil {
				return dst, err
			}
		}
		return h.exact(ctx, v, dst, query, min(k, a.count), a, threads)
	}
	s.again()
	slices.Sort(s.best)
	v.settle(s.best, k)
	return v.results(dst, query, s.best[:k]), nil
}

// settle orders those of sorted candidates by their ids that are as far as the k-th, so that the first k are
// those of the smallest ids.
func (v *view) settle(best []candidate, k int) {
	if k == len(best) || best[k]>>32 != best[k-1]>>32 {
		return
	}
	lo, hi := k-1, k+1
	for lo > 0 && best[lo-1]>>32 == best[k]>>32 {
		lo--
	}
	for hi < len(best) && best[hi]>>32 == best[k]>>32 {
		hi++
	}
	slices.SortFunc(best[lo:hi], func(x, y candidate) int { return cmp.Compare(v.ids[x.row()], v.ids[y.row()]) })
}

// results appends candidates in the order of results.
func (v *view) results(dst []Result, query []float32, best []candidate) []Result {
	first := len(dst)
	for _, c := range best {
		r := Result{v.ids[c.row()], 0}
		if v.e.ranker != nil {
			r.Distance = v.e.metric.finish(c.distance(), 1)
		} else {
			r.Distance = v.e.metric.distance(query, elements[float32](v.row(c.row())))
		}
		dst = append(dst, r)
	}
	slices.SortFunc(dst[first:], Result.compare)
	return dst
}

// exact compares the query with every vector of a view that is admitted, on at most so many threads.
func (h *HNSW) exact(ctx context.Context, v *view, dst []Result, query []float32, k int, a *admitted,
	threads int) ([]Result, error) {
	if h.e.ranker == nil {
		return h.e.byFunction(ctx, dst, query, len(a.list), k, threads, func(i int) (int64, []byte) {
			return v.ids[a.list[i]], v.row(a.list[i])
		})
	}
	w, err := h.stores[0].works.take(ctx, h.e)
	if err != nil {
		return dst, err
	}
	defer h.stores[0].works.give(w)
	return w.byRank(ctx, dst, query, v.rows, v.ids, a.list, k, threads)
}
