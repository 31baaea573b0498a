package mempool

// Free blocks by size: sixteen bins for each power of two, and a bit for each bin
// that is not empty, so that the next one is found without a search.

import "math/bits"

const (
	binBits = 4 // 1<<binBits bins per power of two
	binLen  = 48 << binBits
	scan    = 64 // blocks looked at in one bin
)

// bins is a set of free blocks.
type bins struct {
	first [binLen]*node
	used  [binLen / 64]uint64
}

func binOf(size int64) int {
	e := bits.Len64(uint64(size)) - 1
	if e < binBits {
		return int(size)
	}
	return e<<binBits | int(size>>(e-binBits))&(1<<binBits-1)
}

func (s *bins) add(b *node) {
	i := binOf(b.size)
	b.bin, b.a, b.z = int32(i), nil, s.first[i]
	if b.z != nil {
		b.z.a = b
	}
	s.first[i] = b
	s.used[i/64] |= 1 << (i % 64)
}

func (s *bins) remove(b *node) {
	if b.a == nil {
		s.first[b.bin] = b.z
		if b.z == nil {
			s.used[b.bin/64] &^= 1 << (b.bin % 64)
		}
	} else {
		b.a.z = b.z
	}
	if b.z != nil {
		b.z.a = b.a
	}
	b.a, b.z = nil, nil
}

// best returns the smallest block from least to most bytes among the first few of each bin, or nil.
func (s *bins) best(least, most int64) *node {
	for i, end := binOf(least), binOf(most); ; i++ {
		if i = s.next(i); i < 0 || i > end {
			return nil
		}
		var best *node
		left := scan
		for b := s.first[i]; b != nil && left > 0; b = b.z {
			left--
			if b.size < least || b.size > most || best != nil && b.size >= best.size {
				continue
			}
			if best = b; b.size == least {
				break
			}
		}
		if best != nil {
			return best
		}
	}
}

// next returns the first bin from i on that is not empty, or -1.
func (s *bins) next(i int) int {
	if i >= binLen {
		return -1
	}
	word := s.used[i/64] >> (i % 64) << (i % 64)
	for w := i / 64; ; {
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
		if w++; w == len(s.used) {
			return -1
		}
		word = s.used[w]
	}
}
