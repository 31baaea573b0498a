package ann

// The search of a Flat index: what a filter admits, and results.

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"

	"github.com/concord-compute/concord/runtime"
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
	lists := make([][]Result, len(queries)/f.e.dim)
	for q := range lists {
		lists[q] = all[q*each : (q+1)*each : (q+1)*each]
	}
	return lists, nil
}

// find appends what it finds for one query or several to dst, and returns how many results each has. If a
// device has no room for the search, its rows make room: as often as that happens, since a call of Compact may
// bring them back before the search begins again.
func (f *Flat) find(ctx context.Context, dst []Result, queries []float32, k int, filter *Filter,
	one bool) (all []Result, each int, err error) {
	for {
		var in *store
		all, each, in, err = f.try(ctx, dst, queries, k, filter, one)
		if !short(err) || errors.Is(err, runtime.ErrTooLarge) || in == nil || ctx.Err() != nil || f.makeRoom(ctx, in) != nil {
			return all, each, err
		}
	}
}

func (f *Flat) makeRoom(ctx context.Context, in *store) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(ctx); err != nil {
		return err
	}
	f.own() // the file's checksums are for changes of what the index has, and not for where it has it
	return in.spill(ctx, f.place[slices.Index(f.stores, in)].Count)
}

// try is find, with the store in which the search failed if its rows could make room for it.
func (f *Flat) try(ctx context.Context, dst []Result, queries []float32, k int, filter *Filter,
	one bool) (all []Result, each int, in *store, err error) {
	s, err := f.begin(ctx, len(queries), k, filter)
	if err != nil {
		return dst, 0, nil, err
	}
	defer f.mu.RUnlock()
	n := len(queries) / f.e.dim
	switch {
	case one && n != 1:
		return dst, 0, nil, fmt.Errorf("ann: a query of %d components for vectors of %d: %w", len(queries), f.e.dim,
			runtime.ErrDimension)
	case s.k == 0 || n == 0:
		return dst, 0, nil, nil
	case f.e.metric.kind == custom:
		all, err = f.scan(ctx, dst, queries, s)
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

// results appends what was found to dst.
func (f *Flat) results(dst []Result, found []candidate) []Result {
	dst = slices.Grow(dst, len(found))
	for _, c := range found {
		dst = append(dst, Result{f.ids[c.row()], f.e.metric.finish(c.distance(), f.e.code.unit())})
	}
	return dst
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
func (f *Flat) begin(ctx context.Context, components, k int, filter *Filter) (s sought, err error) {
	begun := false
	for {
		f.mu.RLock()
		if err = f.check(ctx); err != nil || f.settled() {
			break
		}
		f.mu.RUnlock()
		if err = f.settleNow(ctx); err != nil {
			return s, err
		}
	}
	defer func() { // also where a function of the program ends the goroutine
		if !begun {
			f.mu.RUnlock()
		}
	}()
	switch {
	case err != nil:
	case k < 1:
		err = fmt.Errorf("ann: k is %d, and at least 1 is needed: %w", k, runtime.ErrInvalidArgument)
	case components%f.e.dim != 0:
		err = fmt.Errorf("ann: queries of %d components in all for vectors of %d: %w", components, f.e.dim,
			runtime.ErrDimension)
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
	begun = err == nil
	return s, err
}

// settleNow is settle for a search, which does not hold the lock.
func (f *Flat) settleNow(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(ctx); err != nil {
		return err
	}
	return f.settle(ctx)
}

func (f *Flat) rows() *rows {
	return &rows{ids: f.ids, sorted: true, place: f.row, rank: func() []uint32 { return f.order }, count: len(f.ids)}
}

// scan searches by a function of the program, on the host.
func (f *Flat) scan(ctx context.Context, dst []Result, queries []float32, so sought) ([]Result, error) {
	dim, row, n := f.e.dim, f.e.dim*f.e.code.size(), so.count(len(f.ids))
	all, first := make([]Result, n), len(dst)
	code := make([]byte, row)
	for ; len(queries) > 0; queries = queries[dim:] {
		query := make([]float32, dim) // as it is stored
		f.e.code.encode(code, queries[:dim])
		f.e.code.decode(query, code)
		threads := goruntime.GOMAXPROCS(0)
		if err := sideBySide(threads, func(t int) error {
			vector := make([]float32, dim)
			for i := t * n / threads; i < (t+1)*n/threads && ctx.Err() == nil; i++ {
				r := so.row(i)
				s, at := f.at(r)
				f.e.code.decode(vector, s.memory()[at*row:][:row])
				all[i] = Result{f.ids[r], f.e.metric.distance(query, vector)}
			}
			return ctx.Err()
		}); err != nil {
			return dst[:first], err
		}
		slices.SortFunc(all, Result.compare)
		dst = append(dst, all[:so.k]...)
	}
	return dst, nil
}
