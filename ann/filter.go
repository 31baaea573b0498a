package ann

// Filters: which vectors may be found. A filter is computed once for a state of an index, as a set of bits.

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
)

// Filter says which vectors of an index a search may find. A nil Filter admits all. What it admits is computed by
// the first search with it, and again after the index has changed. So use one Filter for many searches, and a new
// one when the data changes that a [Predicate] looks at. A Filter may be used from any goroutine and with several
// indexes.
type Filter struct {
	set  func(s *rows, to bitset) error // sets the bits of the places that are admitted
	last atomic.Pointer[admitted]
	// the filters of the shards of the index that was searched last
	shards atomic.Pointer[shardFilters]
}

// shardFilters are what a filter is for each shard of this process.
type shardFilters struct {
	of    *Sharded
	state uint64
	list  []*Filter
}

// rows are the vectors of an index as a filter sees them.
type rows struct {
	*table
	place func(id int64) (row int, ok bool)
	whole []int64 // of a shard: the ids of all shards in the order in which they were added
}

// IDRange admits the ids from lo to hi, both included: none if lo is above hi.
func IDRange(lo, hi int64) *Filter {
	return &Filter{set: func(s *rows, to bitset) error {
		if s.ascending() {
			first := sort.Search(len(s.ids), func(i int) bool { return s.ids[i] >= lo })
			to.setRange(first, max(first, sort.Search(len(s.ids), func(i int) bool { return s.ids[i] > hi })))
			return nil
		}
		for i, id := range s.ids {
			to.put(i, id >= lo && id <= hi)
		}
		return nil
	}}
}

// IDSet admits the given ids, of which the index need not have all.
func IDSet(ids []int64) *Filter {
	ids = slices.Clone(ids)
	return &Filter{set: func(s *rows, to bitset) error {
		for _, id := range ids {
			if i, ok := s.place(id); ok {
				to.put(i, true)
			}
		}
		return nil
	}}
}

// Mask admits the vectors whose element is true, where element i belongs to the i-th vector of the index in the
// order in which they were added. A search returns [runtime.ErrDimension] if there are more or fewer elements
// than vectors.
func Mask(mask []bool) *Filter {
	mask = slices.Clone(mask)
	return &Filter{set: func(s *rows, to bitset) error {
		n := s.len()
		if s.whole != nil {
			n = len(s.whole)
		}
		if len(mask) != n {
			return fmt.Errorf("ann: a mask of %d elements for %d vectors: %w", len(mask), n, runtime.ErrDimension)
		}
		for i, id := range s.whole {
			if mask[i] {
				if row, ok := s.place(id); ok {
					to.put(row, true)
				}
			}
		}
		if s.whole != nil {
			return nil
		}
		rank := s.ranks()
		for i := range s.ids {
			switch {
			case rank == nil:
				to.put(i, mask[i])
			case s.live.has(i):
				to.put(i, mask[rank[i]])
			}
		}
		return nil
	}}
}

// Predicate admits the ids for which f returns true. f is called once for each id, and must not use the index.
// If it is nil, a search is [runtime.ErrInvalidArgument], and if it panics a [*PanicError].
func Predicate(f func(id int64) bool) *Filter {
	return &Filter{set: func(s *rows, to bitset) (err error) {
		if f == nil {
			return fmt.Errorf("ann: a predicate without a function: %w", runtime.ErrInvalidArgument)
		}
		defer catch(&err)
		defer guarded("a predicate")
		for i, id := range s.ids {
			if s.live.has(i) {
				to.put(i, f(id))
			}
		}
		return nil
	}}
}

// And admits what all filters admit: everything if there are none. A nil filter admits everything here, too.
func And(filters ...*Filter) *Filter {
	return combine(filters, true, func(x, y uint64) uint64 { return x & y })
}

// Or admits what one of the filters admits: nothing if there are none.
func Or(filters ...*Filter) *Filter {
	return combine(filters, false, func(x, y uint64) uint64 { return x | y })
}

func combine(filters []*Filter, first bool, op func(x, y uint64) uint64) *Filter {
	filters = slices.Clone(filters)
	return &Filter{set: func(s *rows, to bitset) error {
		if first {
			to.setRange(0, len(s.ids))
		}
		part := newBitset(len(s.ids))
		for _, f := range filters {
			clear(part)
			if err := f.bits(s, part); err != nil {
				return err
			}
			for i, x := range part {
				to[i] = op(to[i], x)
			}
		}
		return nil
	}}
}

// Not admits what a filter does not.
func Not(f *Filter) *Filter {
	return combine([]*Filter{f}, true, func(x, y uint64) uint64 { return x &^ y })
}

func (f *Filter) bits(s *rows, to bitset) error {
	if f == nil {
		to.setRange(0, len(s.ids))
		return nil
	}
	if f.set == nil {
		return fmt.Errorf("ann: the zero Filter admits nothing that is known: %w", runtime.ErrInvalidArgument)
	}
	return f.set(s, to)
}

// admitted is what a filter admits of one state of an index.
type admitted struct {
	of    any // the index
	state uint64
	count int
	bits  bitset
	list  []uint32 // the places in the order of their ids; nil if they are the count ones from first on, in that order
	first int

	once  sync.Once
	parts []*admitted // for each of several stores, by its own rows
}

// among returns what is admitted of each part of the places, which is the same in every call.
func (a *admitted) among(place cluster.Placement) []*admitted {
	a.once.Do(func() {
		for _, p := range place {
			part := &admitted{bits: newBitset(p.Count)}
			for i := range p.Count {
				if a.bits.has(p.First + i) {
					part.bits.put(i, true)
				}
			}
			part.fill(true)
			a.parts = append(a.parts, part)
		}
	})
	return a.parts
}

// fill sets what follows from the bits: count, first, and the list. sorted says that places in a row need none.
func (a *admitted) fill(sorted bool) {
	last := -1
	for i, x := range a.bits {
		if x != 0 {
			if a.count == 0 {
				a.first = 64*i + bits.TrailingZeros64(x)
			}
			last = 64*i + 63 - bits.LeadingZeros64(x)
			a.count += bits.OnesCount64(x)
		}
	}
	if a.count > 0 && (last-a.first+1 != a.count || !sorted) {
		a.list = make([]uint32, 0, a.count)
		for i, x := range a.bits {
			for ; x != 0; x &= x - 1 {
				a.list = append(a.list, uint32(64*i+bits.TrailingZeros64(x)))
			}
		}
	}
}

// of returns what f admits of a state of an index with n vectors, and how many of k results there are. It
// computes that unless it did so last; rows returns the vectors.
func (f *Filter) of(index any, state uint64, k, n int, rows func() *rows) (a *admitted, results int, err error) {
	if f == nil {
		return nil, min(k, n), nil
	}
	if a = f.last.Load(); a == nil || a.of != index || a.state != state {
		if a, err = f.admitted(index, state, rows()); err != nil {
			return nil, 0, err
		}
	}
	return a, min(k, a.count), nil
}

// admitted computes what f admits of a state of an index, whose vectors rows has.
func (f *Filter) admitted(of any, state uint64, s *rows) (*admitted, error) {
	a := &admitted{of: of, state: state, bits: newBitset(len(s.ids))}
	if err := f.bits(s, a.bits); err != nil {
		return nil, err
	}
	if s.live != nil {
		for i := range a.bits {
			a.bits[i] &= s.live[i]
		}
	}
	a.fill(s.ascending())
	if !s.ascending() {
		slices.SortFunc(a.list, func(x, y uint32) int { return cmp.Compare(s.ids[x], s.ids[y]) })
	}
	f.last.Store(a)
	return a, nil
}

// bitset is a set of small numbers. A nil bitset has all of them.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) has(i int) bool { return b == nil || b[i/64]>>(i%64)&1 != 0 }

func (b bitset) put(i int, in bool) {
	if in {
		b[i/64] |= 1 << (i % 64)
	} else {
		b[i/64] &^= 1 << (i % 64)
	}
}

// setRange adds the numbers from lo to hi-1.
func (b bitset) setRange(lo, hi int) {
	for ; lo < hi && lo%64 != 0; lo++ {
		b.put(lo, true)
	}
	for ; lo+64 <= hi; lo += 64 {
		b[lo/64] = ^uint64(0)
	}
	for ; lo < hi; lo++ {
		b.put(lo, true)
	}
}

// inverse returns those of n numbers that b, of as many, does not have.
func (b bitset) inverse(n int) bitset {
	c := newBitset(n)
	for i, x := range b {
		c[i] = ^x
	}
	return c
}
