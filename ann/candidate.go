package ann

// Candidates of a search, and heaps of them.

import (
	"math"
	"slices"
)

// candidate is a row and its distance as one number, so that candidates are in the order of results: by
// distance, NaN last, then by row.
type candidate uint64

func candidateOf(distance float32, row uint32) candidate {
	b := math.Float32bits(distance + 0) // -0 becomes 0
	switch {
	case distance != distance:
		b = math.MaxUint32
	case b>>31 != 0:
		b = ^b
	default:
		b |= 1 << 31
	}
	return candidate(b)<<32 | candidate(row)
}

func (c candidate) row() uint32 { return uint32(c) }

func (c candidate) distance() float32 {
	b := uint32(c >> 32)
	if b>>31 != 0 {
		return math.Float32frombits(b ^ 1<<31) // of the largest, a NaN
	}
	return math.Float32frombits(^b)
}

// offer puts c into a heap of the k first candidates, whose first element is the last of them.
func offer(heap []candidate, c candidate, k int) []candidate {
	if len(heap) < k {
		return push(heap, c)
	}
	if c < heap[0] {
		down(heap, c)
	}
	return heap
}

// push adds a candidate to a heap with the last one in front.
func push(heap []candidate, c candidate) []candidate {
	heap = append(heap, c)
	i := len(heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if heap[up] >= c {
			break
		}
		heap[i] = heap[up]
		i = up
	}
	heap[i] = c
	return heap
}

// down replaces the first candidate of a heap with the last one in front.
func down(heap []candidate, c candidate) {
	i := 0
	for {
		child := 2*i + 1
		if child+1 < len(heap) && heap[child+1] > heap[child] {
			child++
		}
		if child >= len(heap) || heap[child] <= c {
			break
		}
		heap[i] = heap[child]
		i = child
	}
	heap[i] = c
}

// pop removes the first candidate of a heap, the last one of all.
func pop(heap []candidate) (candidate, []candidate) {
	first, last := heap[0], heap[len(heap)-1]
	if heap = heap[:len(heap)-1]; len(heap) > 0 {
		down(heap, last)
	}
	return first, heap
}

// lastOf returns the n-th of candidates, from 1 on, and changes their order.
func lastOf(c []candidate, n int) candidate {
	for round := 0; len(c) > 8 && round < 64; round++ {
		a, b, middle := c[0], c[len(c)-1], c[len(c)/2]
		pivot := max(min(a, b), min(max(a, b), middle))
		i, j := 0, len(c)-1
		for i <= j {
			for c[i] < pivot {
				i++
			}
			for c[j] > pivot {
				j--
			}
			if i <= j {
				c[i], c[j] = c[j], c[i]
				i++
				j--
			}
		}
		switch { // those up to j are at most the pivot, those from i on at least it, and what is between is the pivot
		case n <= j+1:
			c = c[:j+1]
		case n > i:
			c, n = c[i:], n-i
		default:
			return pivot
		}
	}
	slices.Sort(c) // also if the choice of pivots was bad so often
	return c[n-1]
}
