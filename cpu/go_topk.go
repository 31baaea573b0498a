package cpu

// Top-k in Go.

import (
	"math"
	"slices"
)

func init() { native("topk", "topk", typed(goTopK[float32], goTopK[float64])) }

// goTopK keeps the smallest k elements of a row so far in a heap with the largest of them at its top. A single
// comparison discards most elements, which are larger than that one.
func goTopK[F number](c *call, t string) error {
	in, out, places := viewOf[F](c, 0, t), viewOf[F](c, 1, t), c.U32(2)
	rows, n, k := int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	return c.Parallel(rows, max(1, c.Choose(goGrain)/n), func(lo, hi int) {
		scratch, heap := make([]F, n), make([]neighbor, min(n, k))
		for r := lo; r < hi; r++ {
			fillWith(heap, noNeighbor)
			worst := math.NaN() // of the heap, once it is full
			row := in.read(r*n, r*n+n, scratch)
			for i, x := range row {
				if float64(x) > worst {
					continue
				}
				if key := orderKey(float64(x)); key <= heap[0].key {
					offer(heap, neighbor{key, int64(i)})
					if last := heap[0].place; last < int64(n) {
						worst = float64(row[last])
					}
				}
			}
			slices.SortFunc(heap, neighbor.compare)
			for i, best := range heap {
				places[r*k+i] = uint32(best.place)
				out.set(r*k+i, row[best.place])
			}
		}
	})
}
