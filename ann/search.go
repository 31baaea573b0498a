package ann

// The search of a Flat index: what a filter admits, and results.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Search implements [Index]. With [Euclidean], [L2Squared], [Cosine] and [Angular] it allocates nothing from
// its second call on if dst has room, unless the filter is new, k is above 1024, or the index streams.
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
	if err := reading(ctx, &f.mu); err != nil { // SetPrecision replaces f.e
		return nil, err
	}
	lists := make([][]Result, len(queries)/f.e.dim)
	f.mu.RUnlock()
	for q := range lists {
		lists[q] = all[q*each : (q+1)*each : (q+1)*each]
	}
	return lists, nil
}

// find appends what it finds for one query or several to dst, and returns how many results each has.
func (f *Flat) find(ctx context.Context, dst []Result, queries []float32, k int, filter *Filter,
	one bool) (all []Result, each int, err error) {
	err = f.withRoom(ctx, func() (in *store, err error) {
		all, each, in, err = f.try(ctx, dst, queries, k, filter, one)
		return in, err
	})
	return all, each, err
}

// try is find, with the store in which the search failed if its rows could make room for it.
func (f *Flat) try(ctx context.Context, dst []Result, queries []float32, k int, filter *Filter,
	one bool) (all []Result, each int, in *store, err error) {
	s, err := f.begin(ctx, len(queries), k, filter, one)
	if err != nil {
		return dst, 0, nil, err
	}
	defer f.mu.RUnlock()
	n := len(queries) / f.e.dim
	switch {
	case s.k == 0 || n == 0:
		return dst, 0, nil, nil
	case f.e.metric.kind == custom:
		all = dst
		for ; len(queries) > 0 && err == nil; queries = queries[f.e.dim:] {
			all, err = f.e.byFunction(ctx, all, queries[:f.e.dim], s.count(len(f.ids)), s.k, f.e.threads(),
				func(i int) (int64, []byte) {
					row := s.row(i)
					st, at := f.at(row)
					return f.ids[row], st.memory()[at*st.size(1):][:st.size(1)]
				})
		}
		if err != nil {
			all = dst
		}
		return all, s.k, nil, err
	case len(f.stores) > 1:
		found, in, err := f.everywhere(ctx, queries, n, s)
		if err != nil {
			return dst, 0, in.ifOnDevice(), err
		}
		return f.results(dst, found), s.k, nil, nil
	}
	w, err := f.stores[0].enter(ctx)
	if err != nil {
		return dst, 0, f.stores[0].ifOnDevice(), err
	}
	defer f.stores[0].leave(w)
	found, err := f.stores[0].search(ctx, w, f.ids, queries, s)
	if err != nil {
		return dst, 0, f.stores[0].ifOnDevice(), err
	}
	return f.results(dst, found), s.k, nil, nil
}

// ErrSync is that one of several devices failed in a search, which therefore found nothing. The error names the
// device, and wraps its own.
var ErrSync = errors.New("ann: a device failed in a search of several")

// everywhere searches all stores at once, and returns the nearest of what they found, s.k for each query. If
// that fails it returns the first store that did, or one whose rows may have taken its room.
func (f *Flat) everywhere(ctx context.Context, queries []float32, nq int,
	so sought) (found []candidate, in *store, err error) {
	found, in, err = f.side(ctx, queries, nq, so, false)
	if short(err) && in.streams && ctx.Err() == nil { // stores on one device take room from each other
		found, in, err = f.side(ctx, queries, nq, so, true)
	}
	return found, in, err
}

// side searches all stores side by side, or one after the other, each of which then leaves no memory on its device.
func (f *Flat) side(ctx context.Context, queries []float32, nq int, so sought,
	inTurn bool) (found []candidate, in *store, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var parts []*admitted
	if so.a != nil {
		parts = so.a.among(f.place)
	}
	var hits []hit
	var mu, turn sync.Mutex
	var wg sync.WaitGroup
	if inTurn {
		for _, s := range f.stores {
			s.works.close()
		}
	}
	for i, s := range f.stores {
		p := f.place[i]
		here := sought{k: min(so.k, p.Count)}
		if parts != nil {
			here = sought{k: min(so.k, parts[i].count), a: parts[i]}
		}
		if here.k == 0 {
			continue
		}
		wg.Go(func() {
			if inTurn {
				turn.Lock()
				defer turn.Unlock()
				defer s.works.close()
			}
			w, failed := s.enter(ctx)
			if failed == nil {
				defer s.leave(w)
				var list []candidate
				if list, failed = s.search(ctx, w, f.ids[p.First:p.End()], queries, here); failed == nil {
					mu.Lock()
					defer mu.Unlock()
					for n, c := range list {
						hits = append(hits, hit{n / here.k, candidateOf(c.distance(), c.row()+uint32(p.First))})
					}
					return
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if in == nil {
				in, err = s, failed
				if ctx.Err() == nil { // and not because the caller has ended the search
					err = fmt.Errorf("%w: %v: %w", ErrSync, s.e.dev, failed)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if err != nil {
		for _, s := range f.stores { // the rows of another may be in the same device's memory
			if in.streams && s.ifOnDevice() != nil && s.e.dev.Session() == in.e.dev.Session() &&
				s.e.dev.String() == in.e.dev.String() {
				in = s
			}
		}
		return nil, in, err
	}
	slices.SortFunc(hits, hit.compare)
	return first(hits, make([]candidate, 0, nq*so.k), so.k), nil, nil
}

// begin checks the arguments of a search, and keeps the index from changing until the caller calls
// f.mu.RUnlock, unless it fails.
func (f *Flat) begin(ctx context.Context, components, k int, filter *Filter, one bool) (s sought, err error) {
	begun := false
	for {
		if err = reading(ctx, &f.mu); err != nil {
			return s, err
		}
		if err = f.check(ctx); err != nil || f.settled() {
			break
		}
		f.mu.RUnlock()
		if err = f.write(ctx, func() error {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.settle(ctx)
		}); err != nil {
			return s, err
		}
	}
	defer func() { // also where a function of the program ends the goroutine
		if !begun {
			f.mu.RUnlock()
		}
	}()
	if err = f.asked(ctx, components, k, one); err == nil {
		s.a, s.k, err = filter.of(f, f.state, k, len(f.ids), f.seen)
	}
	begun = err == nil
	return s, err
}
