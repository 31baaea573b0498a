package kernels

// The family saxpy and its cases.

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

func init() {
	outline(Family{
		ID: "saxpy", Doc: "y = a·x + y",
		Kernels: []string{"saxpy"}, Types: floatTypes, Defines: []string{"T"},
		Arguments: elementwise(3, 1, 2), Reference: refSaxpy, Bound: knows(saxpyLaunch), Rows: elementRows(3, 1, 2),
		Cases: saxpyCases,
	})
}

func saxpyCases(f *Family) []Case {
	var list []Case
	for _, t := range f.Types {
		for _, n := range sizesFor(t) {
			list = append(list, saxpyCase(f, t, fmt.Sprintf("n=%d", n), n, 1.7,
				Uniform(t, n, 1, -10, 10), Uniform(t, n, 2, -10, 10)))
		}
		x, y := pairs(t)
		// The data is such that a·x does not overflow: if it did, a device that fuses the
		// operations would have another result.
		list = append(list, saxpyCase(f, t, "special values", len(x), -0.5, numbers(x), numbers(y)))
	}
	return list
}

func saxpyCase(f *Family, t, shape string, n int, a float64, x, y func() []float64) Case {
	return f.Case("saxpy", t, shape, n).
		with(value(scalarOf(t), a), in(t, n, x), inout(t, n, y), ulongArg(n)).
		within("ε·(|a·x| + 2|y'|)", "the product and the sum round once each, or once if they are fused; the reference "+
			"rounds once",
			eachOf(n, func(in [][]float64, i int, r float64) float64 {
				ax := math.Abs(in[0][0] * in[1][i])
				return Stored(t, r, Roundoff(t)*(ax+2*math.Abs(r))+(math.Abs(in[0][0])+2)*Smallest(t))
			}))
}

// refSaxpy computes y = a·x + y.
func refSaxpy(c *Call) error {
	t, n := c.Type("T"), int(c.Int(3))
	y := refRead(c.Get(2, t), 0, n, 1)
	floats.AddScaled(y, c.Float(0), refRead(c.Get(1, t), 0, n, 1))
	refWrite(c.Set(2, t), y)
	return nil
}
