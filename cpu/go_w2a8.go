package cpu

// Activations of 8 bits and their products with ternary weights in Go.

import (
	"math"

	"github.com/concord-compute/concord/kernels"
)

func init() {
	native("w2a8", "quantize_rows", goQuantizeRows)
	native("w2a8", "w2a8", goW2A8)
}

func goQuantizeRows(c *call) error {
	rows, cols, k := int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
	x, q, scales, sums := c.F32(0), c.I8(1), c.F32(2), c.I32(3)
	return c.Parallel(rows, max(1, c.Choose(goGrain)/max(k, 1)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row, to := x[i*cols:(i+1)*cols], q[i*k:(i+1)*k]
			most := math.Float32bits(1e-5) // the bits of magnitudes have their order, with those of NaN last
			for _, v := range row {
				most = max(most, math.Float32bits(v)&^(1<<31))
			}
			clear(to)
			sum, scale := int32(0), 127/math.Float32frombits(most)
			if most < math.Float32bits(float32(math.Inf(1))) {
				for j, v := range row {
					// at most 127, since the scale errs by at most half a unit in its last place
					to[j] = int8(math.RoundToEven(float64(v * scale)))
					sum += int32(to[j])
				}
			} else {
				scale = float32(math.NaN())
			}
			scales[i], sums[i] = scale, sum
		}
	})
}

// goW2A8 takes a row of weights apart, and multiplies it with all rows of activations.
func goW2A8(c *call) error {
	m, n, k := int(c.Int(6)), int(c.Int(7)), int(c.Int(8))
	q, scales, sums, w, by := c.Bytes(0), c.F32(1), c.I32(2), c.Bytes(3), c.F32(4)
	_, whole := c.Define("OUT")
	return c.Parallel(n, max(1, c.Choose(goGrain)/max(k*m, 1)), func(lo, hi int) {
		codes := make([]int32, k)
		for j := lo; j < hi; j++ {
			from := w[j*k/4 : (j+1)*k/4]
			for p := range codes {
				codes[p] = int32(from[p/kernels.W2A8Group*64+p%64] >> (p % kernels.W2A8Group / 64 * 2) & 3)
			}
			for i := range m {
				sum := -sums[i]
				for p, v := range q[i*k : (i+1)*k] {
					sum += codes[p] * int32(int8(v))
				}
				if whole {
					c.I32(5)[i*n+j] = sum
				} else {
					c.F32(5)[i*n+j] = float32(sum) / scales[i] * by[j]
				}
			}
		}
	})
}
