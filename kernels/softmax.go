package kernels

// The family softmax and its cases.

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

func init() {
	outline(Family{
		ID: "softmax", Doc: "e^(x - max) over its sum, for each row",
		Kernels: []string{"softmax"}, Types: floatTypes, Defines: []string{"T"},
		Arguments: softmaxArguments, Reference: refSoftmax, Bound: knows(softmaxLaunch), Rows: softmaxRows,
		Cases: func(f *Family) (list []Case) {
			for _, t := range f.Types {
				for i, s := range [][2]int{{1, 1}, {0, 5}, {3, 0}, {4, 2}, {31, 33}, {3, 127}, {2, 129}, {7, 1000}, {1, 65537}} {
					if t != "f32" && i != 0 && i != 4 && i != 7 {
						continue
					}
					list = append(list, softmaxCase(f, t, "", s[0], s[1], Uniform(t, s[0]*s[1], 20, -20, 20)))
				}
				n := 200
				odd := mixed(mixed(mixed(Uniform(t, 4*n, 21, -1, 1), math.NaN(), 7), math.Inf(1), n+150), math.Inf(-1), 2*n,
					2*n+199)
				far := mixed(Uniform(t, n, 22, -1, 1), 2000, 130)
				list = append(list,
					softmaxCase(f, t, " NaN and Inf", 4, n, odd),
					softmaxCase(f, t, " far apart", 1, n, far),
					softmaxCase(f, t, " all -Inf", 1, 3, constant(3, math.Inf(-1))))
			}
			return list
		},
	})
}

func softmaxCase(f *Family, t, note string, rows, n int, data func() []float64) Case {
	return f.Case("softmax", t, fmt.Sprintf("%d×%d%s", rows, n, note), rows).
		with(in(t, rows*n, data), out(t, rows*n), uintArg(rows), uintArg(n)).
		within("ε·y·(|z| + Σy|z| + d + 19), z = x - max, "+additionsFormula,
			"the rounding of z changes e^z by a factor of up to 1 + |z|ε; exp errs by 3 ulp = 6ε, in the numerator and in the "+
				"sum; the sum adds dε; "+
				"the reciprocal of the sum errs by 2.5 ulp = 5ε; the product with it and the reference round once each",
			func(_ int, in [][]float64, ref []float64) []float64 {
				return softmaxBound(t, rows, n, in[0], ref)
			})
}

func softmaxBound(t string, rows, n int, x, ref []float64) []float64 {
	u, tiny := Roundoff(t), Smallest(t)
	b := make([]float64, len(ref))
	for r := range rows {
		row, y, bound := x[r*n:r*n+n], ref[r*n:r*n+n], b[r*n:r*n+n]
		largest, weighted := math.Inf(-1), 0.0
		for _, v := range row {
			largest = max(largest, v)
		}
		for j, v := range row {
			if y[j] > 0 {
				weighted += y[j] * (largest - v)
			}
		}
		for j, v := range row {
			z := 0.0
			if y[j] > 0 {
				z = largest - v
			}
			c := z + weighted + float64(additions(n, 0)) + errExp*2 + errDiv + 2
			bound[j] = Stored(t, y[j], u*c*y[j]+2*tiny)
		}
	}
	return b
}

func softmaxArguments(c *Call) bool {
	all := c.Product(int(c.Int(2)), int(c.Int(3)))
	needAll(c, c.Type("T"), all, 0, 1)
	return all > 0
}

// refSoftmax computes e^(x - max) / Σ e^(x - max).
func refSoftmax(c *Call) error {
	t, rows, n := c.Type("T"), int(c.Int(2)), int(c.Int(3))
	get, set := c.Get(0, t), c.Set(1, t)
	for r := range rows {
		y := refRead(get, r*n, n, 1)
		floats.AddConst(-refMax(y), y)
		for j, z := range y {
			y[j] = math.Exp(z)
		}
		sum := refSum(y)
		for j, e := range y {
			set(r*n+j, e/sum)
		}
	}
	return nil
}
