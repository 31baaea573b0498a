package cpu

// Top-k in Go.

import (
	"cmp"
	"math"
	"slices"
)

func init() { native("topk", "topk", typed(goTopK[float32], goTopK[float64])) }

// candidate is an element of a row: a key with the order of the values, and its index.
type candidate struct {
	key uint64
	at  uint32
}

func (a candidate) before(b candidate) bool { return a.key < b.key || a.key == b.key && a.at < b.at }

// orderKey returns a key that has the order of the values, with both zeros equal and NaN last.
func orderKey(x float64) uint64 {
	u := math.Float64bits(x)
	switch {
	case x != x:
		return math.MaxUint64
	case x == 0:
		return 1 << 63
	case u>>63 == 1:
		return ^u
	}
	return u | 1<<63
}

// goTopK keeps the smallest k elements of a row so far in a heap with the largest of them at its
// top. Most elements are larger than that one, and a single comparison discards them.
func goTopK[F number](c *call, t string) error {
	in, out, places := viewOf[F](c, 0, t), viewOf[F](c, 1, t), c.U32(2)
	rows, n, k := int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	want := min(n, k)
	return c.Parallel(rows, max(1, grain/n), func(lo, hi int) {
		scratch, heap := make([]F, n), make([]candidate, 0, want)
		for r := lo; r < hi; r++ {
			row := in.read(r*n, r*n+n, scratch)
			heap = selectSmallest(row, want, heap[:0])
			for i, best := range heap {
				places[r*k+i] = best.at
				out.set(r*k+i, row[best.at])
			}
		}
	})
}

func selectSmallest[F number](row []F, k int, heap []candidate) []candidate {
	for i, x := range row[:k] {
		heap = append(heap, candidate{orderKey(float64(x)), uint32(i)})
	}
	for i := k/2 - 1; i >= 0; i-- {
		siftDown(heap, i)
	}
	worst := row[heap[0].at]
	for i := k; i < len(row); i++ {
		// An equal element has a larger index and is not taken, so x has to be smaller; any number
		// replaces a NaN at the top.
		if x := row[i]; x < worst || worst != worst && x == x {
			heap[0] = candidate{orderKey(float64(x)), uint32(i)}
			siftDown(heap, 0)
			worst = row[heap[0].at]
		}
	}
	slices.SortFunc(heap, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.at, b.at))
	})
	return heap
}

func siftDown(heap []candidate, i int) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && heap[child].before(heap[child+1]) {
			child++
		}
		if !heap[i].before(heap[child]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
