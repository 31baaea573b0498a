package cpu

// Running sums in Go.

import "github.com/concord-compute/concord/kernels"

func init() {
	native("scan", "scan_sum", typedAll(goScan[float32], goScan[float64], goScan[int8], goScan[int16], goScan[int32],
		goScan[int64], goScan[uint8], goScan[uint16], goScan[uint32], goScan[uint64]))
}

// goScan adds up the elements of each part of a row, from the sum of the totals of the parts before on.
func goScan[F element](c *call) error {
	t, rows, n, parts := c.Type("T"), int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	in, out, totals, span := viewOf[F](c, 0, t), viewOf[F](c, 2, t), kernels.Elements[F](&c.Call, 1), (n+parts-1)/parts
	return c.Parallel(rows*parts, max(1, c.Choose(goGrain)/span), func(lo, hi int) {
		sx, sy := make([]F, span), make([]F, span)
		for g := lo; g < hi; g++ {
			r, p := g/parts, g%parts
			first, last := r*n+min(p*span, n), r*n+min((p+1)*span, n)
			x, y := in.read(first, last, sx), out.target(first, last, sy)
			sum := F(0)
			if p > 0 {
				sum = sumOf(totals[r*(parts-1):][:p])
			}
			for i, v := range x {
				sum += v
				y[i] = sum
			}
			out.write(first, y)
		}
	})
}
