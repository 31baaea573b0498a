package cpu

// Norms, softmax and top-k in Go.

import (
	"cmp"
	"math"
	"slices"
)

func init() {
	native("norm", "layer_norm", typed(goNorm[float32], goNorm[float64]))
	native("norm", "rms_norm", typed(goNorm[float32], goNorm[float64]))
	native("softmax", "softmax", typed(goSoftmax[float32], goSoftmax[float64]))
	native("topk", "topk", typed(goTopK[float32], goTopK[float64]))
}

// goNorm computes (x - mean) / √(variance + epsilon) · gamma + beta; rms_norm has no mean and no
// beta.
func goNorm[F number](c *call, t string) error {
	centered, o := c.Kernel == "layer_norm", 2
	if centered {
		o = 3
	}
	in, scale, out := viewOf[F](c, 0, t), viewOf[F](c, 1, t), viewOf[F](c, o, t)
	rows, n, epsilon := int(c.Int(o+1)), int(c.Int(o+2)), c.Float(o+3)
	gamma, beta := scale.read(0, n, make([]F, n)), make([]F, n)
	if centered {
		shift := viewOf[F](c, 2, t)
		beta = shift.read(0, n, beta)
	}
	return c.Parallel(rows, max(1, grain/n), func(lo, hi int) {
		sx, y, squares := make([]F, n), make([]F, n), make([]F, n)
		for r := lo; r < hi; r++ {
			x, mean := in.read(r*n, r*n+n, sx), F(0)
			if centered {
				mean = sumOf(x) / F(n)
			}
			for j, v := range x {
				squares[j] = (v - mean) * (v - mean)
			}
			width := F(math.Sqrt(float64(sumOf(squares)/F(n)) + epsilon))
			to := out.target(r*n, r*n+n, y)
			for j, v := range x {
				to[j] = (v-mean)/width*gamma[j] + beta[j]
			}
			out.write(r*n, to)
		}
	})
}

// goSoftmax computes e^(x - max) / Σ e^(x - max).
func goSoftmax[F number](c *call, t string) error {
	in, out := viewOf[F](c, 0, t), viewOf[F](c, 1, t)
	rows, n := int(c.Int(2)), int(c.Int(3))
	return c.Parallel(rows, max(1, grain/n), func(lo, hi int) {
		sx, y := make([]F, n), make([]F, n)
		for r := lo; r < hi; r++ {
			softmaxRow(in.read(r*n, r*n+n, sx), y)
			to := out.target(r*n, r*n+n, y)
			copy(to, y)
			out.write(r*n, to)
		}
	})
}

// softmaxRow computes the softmax of the row x into y.
func softmaxRow[F number](x, y []F) {
	m := largest(x)
	for j, v := range x {
		y[j] = F(math.Exp(float64(v - m)))
	}
	sum := sumOf(y)
	for j := range y {
		y[j] /= sum
	}
}

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
