package kernels

// The family saxpy and its cases.

import (
	"fmt"
	"math"
)

var saxpyFamily = &Family{
	ID: "saxpy", Doc: "y = a·x + y",
	Kernels: []string{"saxpy"}, Types: floatTypes, Defines: []string{"T"},
	cases: saxpyCases,
}

func saxpyCases(f *Family) []Case {
	var list []Case
	for _, t := range f.Types {
		for _, n := range sizesFor(t) {
			list = append(list, saxpyCase(f, t, fmt.Sprintf("n=%d", n), n, 1.7,
				uniform(t, n, 1, -10, 10), uniform(t, n, 2, -10, 10)))
		}
		x, y := pairs(t)
		// a·x does not overflow: where it does, a fused device has another answer.
		list = append(list, saxpyCase(f, t, "special values", len(x), -0.5, numbers(x), numbers(y)))
	}
	return list
}

func saxpyCase(f *Family, t, shape string, n int, a float64, x, y func() []float64) Case {
	global, local := ElementsGrid(n)
	return f.newCase("saxpy", t, shape).
		with(global, local, value(scalarOf(t), a), in(t, n, x), inout(t, n, y), ulongArg(n)).
		within("ε·(|a·x| + 2|y'|)", "the product and the sum round once each, or once if they are fused; the reference rounds once",
			func(_ int, in [][]float64, ref []float64) []float64 {
				u, tiny := roundoff(t), flush(t)
				b := make([]float64, len(ref))
				for i, r := range ref {
					if n == 0 {
						break
					}
					ax := math.Abs(in[0][0] * in[1][i])
					b[i] = stored(t, r, u*(ax+2*math.Abs(r))+(math.Abs(in[0][0])+2)*tiny)
				}
				return b
			})
}
