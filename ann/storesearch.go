package ann

// The search of a store's rows: queries in rounds, rows that a filter admits, and rows that go through the
// device in chunks.

import (
	"cmp"
	"context"
	"slices"

	"github.com/concord-compute/concord/runtime"
)

// sought is what a search is for.
type sought struct {
	k      int       // results for each query
	a      *admitted // nil without a filter
	listed bool      // the rows are not in the order of their ids, but those of the filter's list are
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

// enter returns the work of a search, after waiting for its turn if the rows go through the device.
func (s *store) enter(ctx context.Context) (*work, error) {
	if s.streams {
		select {
		case s.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	w, err := s.works.take(ctx, s.e)
	if err != nil && s.streams {
		<-s.turn
	}
	return w, err
}

// leave ends a search.
func (s *store) leave(w *work) {
	s.works.give(w)
	if s.streams {
		<-s.turn
	}
}

// search finds the nearest of the sought rows, which have these ids, so.k for each query in order, a number of
// queries at a time. The candidates are valid until leave.
func (s *store) search(ctx context.Context, w *work, ids []int64, queries []float32, so sought) ([]candidate, error) {
	w.late = true // until all of its launches are known to be done
	w.out = w.out[:0]
	dim, before := s.e.dim, 0
	for len(queries) > 0 {
		rows, most := len(ids), len(queries)/dim
		if s.streams {
			rows, most = min(s.chunk, so.count(len(ids))), min(s.most, most)
		}
		nq := min(w.together(rows, so.k), most)
		err := w.ask(ctx, queries[:nq*dim])
		if err == nil {
			err = s.find(ctx, w, ids, nq, so)
		}
		switch {
		case err == nil:
			queries, before = queries[nq*dim:], len(w.out)
		case s.streams && short(err) && (rows > 1 || nq > 1) && w.stream.Sync(ctx) == nil:
			if lists := nq * (s.size(1) + 8*w.candidates(rows, so.k)); rows == 1 || nq > 1 && lists > 2*s.size(rows) {
				s.most = nq / 2
			} else {
				s.chunk = rows / 2
			}
			w.shrink()
			w.out = w.out[:before]
		default:
			return nil, err
		}
	}
	w.late = false
	return w.out, nil
}

// find appends what it finds for the queries that were brought to the device to w.out.
func (s *store) find(ctx context.Context, w *work, ids []int64, nq int, so sought) error {
	n, a, k := len(ids), so.a, so.k
	switch {
	case s.streams:
		return s.stream(ctx, w, so.count(n), nq, so)
	case so.listed:
		return s.findListed(ctx, w, n, nq, so)
	case a == nil || a.count == n:
		return w.add(ctx, s.base, n, nq, k, 0)
	case n-a.count <= s.e.dev.Choices().Of(rowsSkipped) && k+n-a.count <= mostK:
		more := k + n - a.count
		distances, places, err := w.search(ctx, s.base, n, nq, more)
		if err != nil {
			return err
		}
		for q := range nq {
			for i, end := q*more, len(w.out)+k; len(w.out) < end; i++ {
				if a.bits.has(int(places[i])) {
					w.out = append(w.out, candidateOf(distances[i], places[i]))
				}
			}
		}
		return nil
	case a.list == nil:
		view, err := w.slice(s.base, a.first, a.count)
		if err != nil {
			return err
		}
		return w.add(ctx, view, a.count, nq, k, a.first)
	case nq == 1 && w.e.ranker != nil:
		best, err := w.ranked(ctx, s.visible, ids, a.list, k, w.e.threads())
		for _, c := range best {
			w.out = append(w.out, c.candidate)
		}
		return err
	}
	return s.findListed(ctx, w, n, nq, so)
}

// add appends the k nearest of n rows of base, of which the first is that row, for each query.
func (w *work) add(ctx context.Context, base *runtime.Buffer, n, nq, k, first int) error {
	distances, places, err := w.search(ctx, base, n, nq, k)
	if err != nil {
		return err
	}
	for i, d := range distances {
		w.out = append(w.out, candidateOf(d, places[i]+uint32(first)))
	}
	return nil
}

// findListed searches copies of the rows that a filter admits, some at a time.
func (s *store) findListed(ctx context.Context, w *work, n, nq int, so sought) error {
	found, err := w.listed(ctx, s.base, n, so.a.list, nq, so.k)
	w.out = first(found, w.out, so.k)
	return err
}

// first appends the first k of each query's hits to a list.
func first(hits []hit, to []candidate, k int) []candidate {
	query, taken := -1, 0
	for _, h := range hits {
		if h.query != query {
			query, taken = h.query, 0
		}
		if taken++; taken <= k {
			to = append(to, h.candidate)
		}
	}
	return to
}

// listed finds the k nearest, or more of them, of listed rows of base, which has so many rows, for each of nq
// queries that ask brought: all of a query's side by side and in order, where of rows at equal distances the
// first in the list come first. They are valid until the next call.
func (w *work) listed(ctx context.Context, base *runtime.Buffer, rows int, list []uint32, nq, most int) ([]hit, error) {
	dim, code := w.e.dim, w.e.code
	each := min(len(list), max(most, w.e.dev.Choices().Of(rowsGathered)<<20/(dim*code.size()), 1))
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
	return cmp.Or(a.query-b.query, cmp.Compare(a.candidate, b.candidate))
}

// stream copies n sought rows through the device, a chunk while it searches the one before.
func (s *store) stream(ctx context.Context, w *work, n, nq int, so sought) error {
	each := min(n, s.chunk)
	for i := range min(2, (n+each-1)/each) {
		if err := w.grow(&w.chunks[i], s.e.code.typ(), each*s.e.dim); err != nil {
			return err
		}
	}
	if w.copier == nil {
		var err error
		if w.copier, err = s.e.dev.NewStream(); err != nil {
			return err
		}
	}
	copied := make(chan error, 1)
	fill := func(lo int) { copied <- s.fill(ctx, w, &w.chunks[lo/each%2], lo, min(lo+each, n), so) }
	fill(0)
	w.begin(nq)
	for lo := 0; lo < n; lo += each {
		if err := <-copied; err != nil {
			return err
		}
		if lo+each < n {
			go fill(lo + each)
		}
		if err := w.offer(ctx, w.chunks[lo/each%2].buf, lo, min(each, n-lo), nq, so); err != nil {
			if lo+each < n {
				<-copied
			}
			return err
		}
	}
	w.end(so)
	return nil
}

// fill copies the sought rows from lo to hi-1 to the device, and waits for it.
func (s *store) fill(ctx context.Context, w *work, to *array, lo, hi int, so sought) error {
	row := s.size(1)
	data := s.held[so.row(lo)*row:]
	if so.a == nil || so.a.list == nil {
		data = data[:(hi-lo)*row]
	} else {
		w.staged = w.staged[:0]
		for _, r := range so.a.list[lo:hi] {
			w.staged = append(w.staged, s.held[int(r)*row:][:row]...)
		}
		data = w.staged
	}
	if to.seen {
		copy(to.host, data)
		return ctx.Err()
	}
	return upload(ctx, w.copier, to.buf, 0, data)
}

// begin clears the heaps of a number of queries.
func (w *work) begin(nq int) {
	for len(w.heaps) < nq {
		w.heaps = append(w.heaps, nil)
	}
	w.heaps = w.heaps[:nq]
	for q := range w.heaps {
		w.heaps[q] = w.heaps[q][:0]
	}
}

// offer searches n rows of base, which are the sought ones from lo on, and puts the nearest into the heaps.
func (w *work) offer(ctx context.Context, base *runtime.Buffer, lo, n, nq int, so sought) error {
	k := min(so.k, n)
	distances, places, err := w.search(ctx, base, n, nq, k)
	if err != nil {
		return err
	}
	for i, d := range distances {
		w.heaps[i/k] = offer(w.heaps[i/k], candidateOf(d, uint32(lo)+places[i]), so.k)
	}
	return nil
}

// end appends what is in the heaps, in order, with rows for the places among the sought ones.
func (w *work) end(so sought) {
	for _, heap := range w.heaps {
		slices.Sort(heap)
		for _, c := range heap {
			w.out = append(w.out, candidateOf(c.distance(), uint32(so.row(int(c.row())))))
		}
	}
}
