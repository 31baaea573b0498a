package ann

// The search of an index in shards.

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/concord-compute/concord/runtime"
)

// Search implements [Index]: it searches all shards at once.
func (s *Sharded) Search(ctx context.Context, dst []Result, query []float32, k int, filter *Filter) ([]Result, error) {
	return s.single(ctx, dst, query, k, filter, func(ctx context.Context, p *part, k int, f *Filter) ([]Result, error) {
		return p.Search(ctx, nil, query, k, f)
	})
}

// Exact appends what Search would find that compares the query with every vector that the filter admits.
func (s *Sharded) Exact(ctx context.Context, dst []Result, query []float32, k int, filter *Filter) ([]Result, error) {
	return s.single(ctx, dst, query, k, filter, func(ctx context.Context, p *part, k int, f *Filter) ([]Result, error) {
		return Exact(ctx, p.contents, query, k, f)
	})
}

func (s *Sharded) single(ctx context.Context, dst []Result, query []float32, k int, filter *Filter,
	find func(ctx context.Context, p *part, k int, f *Filter) ([]Result, error)) ([]Result, error) {
	lists, err := s.search(ctx, query, k, filter, true, func(ctx context.Context, p *part, k int,
		f *Filter) ([][]Result, error) {
		found, err := find(ctx, p, k, f)
		return [][]Result{found}, err
	})
	if err != nil {
		return dst, err
	}
	return append(dst, lists[0]...), nil
}

// SearchBatch implements [Index].
func (s *Sharded) SearchBatch(ctx context.Context, queries []float32, k int, filter *Filter) ([][]Result, error) {
	return s.search(ctx, queries, k, filter, false, func(ctx context.Context, p *part, k int,
		f *Filter) ([][]Result, error) {
		return p.SearchBatch(ctx, queries, k, f)
	})
}

// search has each shard find its nearest, and merges them.
func (s *Sharded) search(ctx context.Context, queries []float32, k int, filter *Filter, one bool,
	find func(ctx context.Context, p *part, k int, f *Filter) ([][]Result, error)) (lists [][]Result, err error) {
	unlock, err := s.reading(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	call := s.fingerprint(fmt.Sprint("search", k, one, filter == nil), bytesOf(queries))
	err = s.agree(ctx, call, func(ctx context.Context) error {
		if err := checkSearch(s.dim, len(queries), k, one); err != nil {
			return err
		}
		filters := filter.among(s)
		k = max(1, min(k, len(s.order)))
		found := make([][][]Result, len(s.parts))
		err := s.each(ctx, func(ctx context.Context, i int, p *part) (err error) {
			found[i], err = find(ctx, p, k, filters[i])
			return err
		})
		if err != nil {
			return err
		}
		lists = make([][]Result, len(queries)/s.dim)
		for _, part := range found {
			merge(lists, part, k)
		}
		return nil
	})
	if err == nil && s.job {
		lists, err = s.exchange(ctx, lists, k)
	}
	return lists, err
}

// merge puts the results of other lists into lists, of which each keeps the k first.
func merge(lists, others [][]Result, k int) {
	for q, a := range lists {
		b := others[q]
		if len(a) == 0 {
			lists[q] = b
			continue
		}
		n := min(k, len(a)+len(b))
		both := make([]Result, 0, n)
		for len(both) < n {
			if len(b) == 0 || len(a) > 0 && a[0].compare(b[0]) < 0 {
				both, a = append(both, a[0]), a[1:]
			} else {
				both, b = append(both, b[0]), b[1:]
			}
		}
		lists[q] = both
	}
}

// resultBytes is the size of a result between processes, and mostGathered that of the results of one process at a time.
const resultBytes, mostGathered = 16, 4 << 20

// exchange merges the lists of all processes.
func (s *Sharded) exchange(ctx context.Context, lists [][]Result, k int) ([][]Result, error) {
	each := max(1, mostGathered/resultBytes/k)
	for part := range slices.Chunk(lists, each) {
		own := make([]byte, 0, resultBytes*k*len(part))
		for _, list := range part {
			for i := range k {
				r := Result{ID: -1} // no result
				if i < len(list) {
					r = list[i]
				}
				own = binary.LittleEndian.AppendUint64(own, uint64(r.ID))
				own = binary.LittleEndian.AppendUint64(own, math.Float64bits(r.Distance))
			}
		}
		all, err := s.gather(ctx, own)
		if err != nil {
			return nil, err
		}
		clear(part)
		for bytes := range slices.Chunk(all, len(own)) {
			others := make([][]Result, len(part))
			for q := range others {
				for i := range k {
					b := bytes[resultBytes*(q*k+i):]
					if id := int64(binary.LittleEndian.Uint64(b)); id >= 0 {
						others[q] = append(others[q], Result{id, math.Float64frombits(binary.LittleEndian.Uint64(b[8:]))})
					}
				}
			}
			merge(part, others, k)
		}
	}
	return lists, nil
}

// checkSearch checks the arguments of a search for one query or several.
func checkSearch(dim, components, k int, one bool) error {
	switch {
	case k < 1:
		return fmt.Errorf("ann: k is %d, and at least 1 is needed: %w", k, runtime.ErrInvalidArgument)
	case components%dim != 0:
		return fmt.Errorf("ann: queries of %d components in all for vectors of %d: %w", components, dim, runtime.ErrDimension)
	case one && components != dim:
		return fmt.Errorf("ann: a query of %d components for vectors of %d: %w", components, dim, runtime.ErrDimension)
	}
	return nil
}

// among returns a filter for each shard of this process, which admits what f does of its vectors. They compute that at
// the same time, but call a function of the program one after the other.
func (f *Filter) among(s *Sharded) []*Filter {
	if f == nil {
		return make([]*Filter, len(s.parts))
	}
	if known := f.shards.Load(); known != nil && known.of == s && known.state == s.state {
		return known.list
	}
	known, turn := &shardFilters{of: s, state: s.state}, &sync.Mutex{}
	whole := s.order
	if whole == nil {
		whole = []int64{}
	}
	for range s.parts {
		known.list = append(known.list, &Filter{set: func(r *rows, to bitset) error {
			turn.Lock()
			defer turn.Unlock()
			return f.bits(&rows{r.table, r.place, whole}, to)
		}})
	}
	f.shards.Store(known)
	return known.list
}
