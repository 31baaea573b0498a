package mempool

// Addresses for the slabs of an Arena.

import (
	"cmp"
	"slices"
)

// gap is a free range below the top of a space.
type gap struct{ size, address int64 }

func (g gap) compare(other gap) int {
	return cmp.Or(cmp.Compare(g.size, other.size), cmp.Compare(g.address, other.address))
}

// space hands out ranges of addresses from 0 on. No two gaps touch, and none touches
// the top.
type space struct {
	top    int64
	gaps   []gap           // smallest first
	starts map[int64]int64 // sizes of gaps by their first address
	ends   map[int64]int64 // and by the address after them
}

func newSpace() space { return space{starts: map[int64]int64{}, ends: map[int64]int64{}} }

// take returns the address of the smallest gap that holds size > 0 bytes, or else the top.
func (s *space) take(size int64) int64 {
	i, _ := slices.BinarySearchFunc(s.gaps, gap{size: size}, gap.compare)
	if i == len(s.gaps) {
		s.top += size
		return s.top - size
	}
	g := s.gaps[i]
	s.remove(g)
	if g.size > size {
		s.add(gap{g.size - size, g.address + size})
	}
	return g.address
}

// give takes a range back, and joins it with adjacent gaps.
func (s *space) give(address, size int64) {
	if n := s.ends[address]; n > 0 {
		address -= n
		size += n
		s.remove(gap{n, address})
	}
	if n := s.starts[address+size]; n > 0 {
		s.remove(gap{n, address + size})
		size += n
	}
	if address+size == s.top {
		s.top = address
		return
	}
	s.add(gap{size, address})
}

func (s *space) add(g gap) {
	i, _ := slices.BinarySearchFunc(s.gaps, g, gap.compare)
	s.gaps = slices.Insert(s.gaps, i, g)
	s.starts[g.address], s.ends[g.address+g.size] = g.size, g.size
}

func (s *space) remove(g gap) {
	i, _ := slices.BinarySearchFunc(s.gaps, g, gap.compare)
	s.gaps = slices.Delete(s.gaps, i, i+1)
	delete(s.starts, g.address)
	delete(s.ends, g.address+g.size)
}
