package ann

// The search of a Flat index: queries in rounds, what a filter admits, and results.

import (
	"cmp"
	"context"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"

	"github.com/concord-compute/concord/runtime"
)

// skipped is the number of rows up to which a filter is applied by finding so many more, instead of copying the rows that it admits.
const skipped = 64

// gathered is the size in bytes of the rows that are copied and searched at a time.
const gathered = 16 << 20

// Search implements [Index]. With [Euclidean], [L2Squared], [Cosine] and [Angular] it allocates nothing from its second call on
// if dst has room, unless the filter is new or k is above 1024.
func (f *Flat) Search(ctx context.Context, dst []Result, query []float32, k int, filter *Filter) ([]Result, error) {
	s, err := f.begin(ctx, len(query), k, filter)
	if err != nil {
		return dst, err
	}
	defer f.mu.RUnlock()
	if len(query) != f.e.dim {
		return dst, fmt.Errorf("ann: a query of %d components for vectors of %d: %w", len(query), f.e.dim, runtime.ErrDimension)
	}
	if s.k == 0 {
		return dst, nil
	}
	return f.rounds(ctx, dst, query, 1, s)
}

// SearchBatch implements [Index].
func (f *Flat) SearchBatch(ctx context.Context, queries []float32, k int, filter *Filter) ([][]Result, error) {
	s, err := f.begin(ctx, len(queries), k, filter)
	if err != nil {
		return nil, err
	}
	defer f.mu.RUnlock()
	dim := f.e.dim
	n := len(queries) / dim
	lists := make([][]Result, n)
	if s.k == 0 || n == 0 {
		return lists, nil
	}
	all, err := f.rounds(ctx, make([]Result, 0, n*s.k), queries, n, s)
	if err != nil {
		return nil, err
	}
	for q := range lists {
		lists[q] = all[q*s.k : (q+1)*s.k : (q+1)*s.k]
	}
	return lists, nil
}

// sought is what a search is for.
type sought struct {
	k int       // results for each query
	a *admitted // nil without a filter
}

// begin checks the arguments of a search, and keeps the index from changing until the caller calls f.mu.RUnlock, unless it fails.
func (f *Flat) begin(ctx context.Context, components, k int, filter *Filter) (s sought, err error) {
	for {
		f.mu.RLock()
		if err = f.check(); err == nil && !f.settled() {
			f.mu.RUnlock()
			f.mu.Lock()
			if err = f.check(); err == nil {
				err = f.settle(ctx)
			}
			f.mu.Unlock()
			if err != nil {
				return s, err
			}
			continue
		}
		break
	}
	switch {
	case err != nil:
	case k < 1:
		err = fmt.Errorf("ann: k is %d, and at least 1 is needed: %w", k, runtime.ErrInvalidArgument)
	case components%f.e.dim != 0:
		err = fmt.Errorf("ann: queries of %d components in all for vectors of %d: %w", components, f.e.dim, runtime.ErrDimension)
	default:
		n := len(f.ids)
		if filter != nil {
			if s.a = filter.known(f, f.state); s.a == nil {
				s.a, err = filter.admitted(f, f.state, f.rows())
			}
			if err == nil {
				n = s.a.count
			}
		}
		s.k = min(k, n)
	}
	if err != nil {
		f.mu.RUnlock()
	}
	return s, err
}

func (f *Flat) rows() *rows {
	return &rows{ids: f.ids, sorted: true, place: f.row, rank: func() []uint32 { return f.order }, count: len(f.ids)}
}

// rounds appends the results of nq queries to dst, s.k for each, a number of queries at a time.
func (f *Flat) rounds(ctx context.Context, dst []Result, queries []float32, nq int, s sought) ([]Result, error) {
	if f.e.metric.kind == custom {
		return f.scan(ctx, dst, queries, s)
	}
	w, err := f.works.take(ctx, f.e)
	if err != nil {
		return dst, err
	}
	defer f.works.give(w)
	w.late = true // until all of its launches are known to be done
	before := len(dst)
	n := w.together(len(f.ids), s.k)
	for lo := 0; lo < nq; lo += n {
		hi := min(lo+n, nq)
		if err = w.ask(ctx, queries[lo*f.e.dim:hi*f.e.dim]); err == nil {
			dst, err = f.find(ctx, w, dst, hi-lo, s)
		}
		if err != nil {
			return dst[:before], err
		}
	}
	w.late = false
	return dst, nil
}

// find searches for the queries that were brought to the device.
func (f *Flat) find(ctx context.Context, w *work, dst []Result, nq int, s sought) ([]Result, error) {
	n, a, k := len(f.ids), s.a, s.k
	switch {
	case a == nil || a.count == n:
		distances, places, err := w.search(ctx, f.base, n, nq, k)
		if err != nil {
			return dst, err
		}
		for i, d := range distances {
			dst = append(dst, f.result(d, places[i]))
		}
		return dst, nil
	case n-a.count <= skipped && k+n-a.count <= mostK:
		more := k + n - a.count
		distances, places, err := w.search(ctx, f.base, n, nq, more)
		if err != nil {
			return dst, err
		}
		for q := range nq {
			for i, end := q*more, len(dst)+k; len(dst) < end; i++ {
				if a.bits.has(int(places[i])) {
					dst = append(dst, f.result(distances[i], places[i]))
				}
			}
		}
		return dst, nil
	case a.list == nil:
		return f.findRun(ctx, w, dst, nq, s)
	case nq == 1 && w.e.ranker != nil:
		best, err := w.ranked(ctx, f.visible, f.ids, a.list, k, w.e.units)
		if err != nil {
			return dst, err
		}
		for _, c := range best {
			dst = append(dst, f.result(c.distance(), c.row()))
		}
		return dst, nil
	}
	return f.findListed(ctx, w, dst, nq, s)
}

func (f *Flat) result(d float32, place uint32) Result {
	return Result{f.ids[place], f.e.metric.finish(d, f.e.code.unit())}
}

// findRun searches rows that lie side by side.
func (f *Flat) findRun(ctx context.Context, w *work, dst []Result, nq int, s sought) ([]Result, error) {
	view, err := w.slice(f.base, s.a.first, s.a.count)
	if err != nil {
		return dst, err
	}
	distances, places, err := w.search(ctx, view, s.a.count, nq, s.k)
	if err != nil {
		return dst, err
	}
	for i, d := range distances {
		dst = append(dst, f.result(d, places[i]+uint32(s.a.first)))
	}
	return dst, nil
}

// findListed searches copies of the rows that a filter admits, some at a time.
func (f *Flat) findListed(ctx context.Context, w *work, dst []Result, nq int, s sought) ([]Result, error) {
	found, err := w.listed(ctx, f.base, len(f.ids), s.a.list, nq, s.k)
	if err != nil {
		return dst, err
	}
	query, taken := -1, 0
	for _, h := range found {
		if h.query != query {
			query, taken = h.query, 0
		}
		if taken++; taken <= s.k {
			dst = append(dst, f.result(h.distance(), h.row()))
		}
	}
	return dst, nil
}

// listed finds the k nearest, or more of them, of listed rows of base, which has so many rows, for each of nq queries that ask brought: all of a query's side by
// side and in order, where of rows at equal distances the first in the list come first. They are valid until the next call.
func (w *work) listed(ctx context.Context, base *runtime.Buffer, rows int, list []uint32, nq, most int) ([]hit, error) {
	dim, code := w.e.dim, w.e.code
	each := min(len(list), max(most, gathered/(dim*code.size()), 1))
	if err := w.grow(&w.rows, code.typ(), each*dim); err != nil {
		return nil, err
	}
	if err := w.grow(&w.places, runtime.U32, each); err != nil {
		return nil, err
	}
	found, rounds := w.found[:0], 0
	for lo := 0; lo < len(list); lo += each {
		part := list[lo:min(lo+each, len(list))]
		if err := w.put(ctx, &w.places, bytesOf(part)); err != nil {
			return nil, err
		}
		if err := w.e.gather(ctx, w.stream, base, rows, w.places.buf, w.rows.buf, len(part)); err != nil {
			return nil, err
		}
		k := min(most, len(part))
		distances, places, err := w.search(ctx, w.rows.buf, len(part), nq, k)
		if err != nil {
			return nil, err
		}
		for i, d := range distances {
			found = append(found, hit{i / k, candidateOf(d, uint32(lo)+places[i])})
		}
		rounds++
	}
	w.found = found
	if rounds > 1 {
		slices.SortFunc(found, hit.compare)
	}
	for i, h := range found {
		found[i].candidate = candidateOf(h.distance(), list[h.row()])
	}
	return found, nil
}

// hit is a candidate for one of several queries.
type hit struct {
	query int
	candidate
}

func (a hit) compare(b hit) int {
	if a.query != b.query {
		return a.query - b.query
	}
	return cmp.Compare(a.candidate, b.candidate)
}

// scan searches by a function of the program, on the host.
func (f *Flat) scan(ctx context.Context, dst []Result, queries []float32, s sought) ([]Result, error) {
	dim, row, n := f.e.dim, f.e.dim*f.e.code.size(), s.count(len(f.ids))
	all := make([]Result, n)
	code := make([]byte, row)
	for ; len(queries) > 0; queries = queries[dim:] {
		query := make([]float32, dim) // as it is stored
		f.e.code.encode(code, queries[:dim])
		f.e.code.decode(query, code)
		var wg sync.WaitGroup
		threads := goruntime.GOMAXPROCS(0)
		for t := range threads {
			wg.Go(func() {
				vector := make([]float32, dim)
				for i := t * n / threads; i < (t+1)*n/threads && ctx.Err() == nil; i++ {
					r := s.row(i)
					f.e.code.decode(vector, f.visible[r*row:][:row])
					all[i] = Result{f.ids[r], f.e.metric.distance(query, vector)}
				}
			})
		}
		wg.Wait()
		if err := ctx.Err(); err != nil {
			return dst, err
		}
		slices.SortFunc(all, Result.compare)
		dst = append(dst, all[:s.k]...)
	}
	return dst, nil
}

// count returns the number of rows that are compared, of n, and row which they are.
func (s sought) count(n int) int {
	if s.a != nil {
		return s.a.count
	}
	return n
}

func (s sought) row(i int) int {
	switch {
	case s.a == nil:
		return i
	case s.a.list == nil:
		return s.a.first + i
	}
	return int(s.a.list[i])
}
