package ann

// The search of a Flat index: what a filter admits, and results.

import (
	"context"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"

	"github.com/concord-compute/concord/runtime"
)

// Search implements [Index]. With [Euclidean], [L2Squared], [Cosine] and [Angular] it allocates nothing from its second call on
// if dst has room, unless the filter is new, k is above 1024, or the index streams.
func (f *Flat) Search(ctx context.Context, dst []Result, query []float32, k int, filter *Filter) ([]Result, error) {
	dst, _, err := f.find(ctx, dst, query, k, filter, true)
	return dst, err
}

// SearchBatch implements [Index].
func (f *Flat) SearchBatch(ctx context.Context, queries []float32, k int, filter *Filter) ([][]Result, error) {
	all, each, err := f.find(ctx, nil, queries, k, filter, false)
	if err != nil {
		return nil, err
	}
	lists := make([][]Result, len(queries)/f.e.dim)
	for q := range lists {
		lists[q] = all[q*each : (q+1)*each : (q+1)*each]
	}
	return lists, nil
}

// find appends what it finds for one query or several to dst, and returns how many results each has. If the device has no room for the search, the
// rows make room.
func (f *Flat) find(ctx context.Context, dst []Result, queries []float32, k int, filter *Filter, one bool) (all []Result, each int, err error) {
	all, each, err = f.try(ctx, dst, queries, k, filter, one)
	if short(err) && f.makeRoom(ctx) == nil {
		all, each, err = f.try(ctx, dst, queries, k, filter, one)
	}
	return all, each, err
}

func (f *Flat) makeRoom(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(); err != nil {
		return err
	}
	return f.store.spill(ctx, len(f.ids))
}

func (f *Flat) try(ctx context.Context, dst []Result, queries []float32, k int, filter *Filter, one bool) (all []Result, each int, err error) {
	s, err := f.begin(ctx, len(queries), k, filter)
	if err != nil {
		return dst, 0, err
	}
	defer f.mu.RUnlock()
	n := len(queries) / f.e.dim
	switch {
	case one && n != 1:
		return dst, 0, fmt.Errorf("ann: a query of %d components for vectors of %d: %w", len(queries), f.e.dim, runtime.ErrDimension)
	case s.k == 0 || n == 0:
		return dst, 0, nil
	case f.e.metric.kind == custom:
		all, err = f.scan(ctx, dst, queries, s)
		return all, s.k, err
	}
	w, err := f.store.enter(ctx)
	if err != nil {
		return dst, 0, err
	}
	defer f.store.leave(w)
	found, err := f.store.search(ctx, w, f.ids, queries, s)
	if err != nil {
		return dst, 0, err
	}
	all = slices.Grow(dst, len(found))
	for _, c := range found {
		all = append(all, Result{f.ids[c.row()], f.e.metric.finish(c.distance(), f.e.code.unit())})
	}
	return all, s.k, nil
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

// scan searches by a function of the program, on the host.
func (f *Flat) scan(ctx context.Context, dst []Result, queries []float32, s sought) ([]Result, error) {
	dim, row, n := f.e.dim, f.e.dim*f.e.code.size(), s.count(len(f.ids))
	all, rows := make([]Result, n), f.store.memory()
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
					f.e.code.decode(vector, rows[r*row:][:row])
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
