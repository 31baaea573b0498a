package cpu

// References of the kernels that work on rows: reductions, softmax, top-k.

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
)

func init() {
	for name, f := range refReductions {
		run := func(c *Call) error { return refReduce(c, f) }
		reference("reduce", "reduce_"+name, run)
		reference("reduce", "reduce_"+name+"_columns", run)
	}
	reference("softmax", "softmax", refSoftmax)
	reference("topk", "topk", refTopK)
	reference("norm", "layer_norm", refNorm)
	reference("norm", "rms_norm", refNorm)
}

// refReductions reduce one row.
var refReductions = map[string]func(x []float64) float64{
	"sum":    refSum,
	"mean":   func(x []float64) float64 { return refSum(x) / float64(len(x)) },
	"max":    refMax,
	"min":    func(x []float64) float64 { floats.Scale(-1, x); return -refMax(x) },
	"argmax": refArgMax,
	"argmin": func(x []float64) float64 { floats.Scale(-1, x); return refArgMax(x) },
}

// refSum is compensated, so that it is right to the last place whatever the length.
func refSum(x []float64) float64 {
	if !finite(x) {
		return floats.Sum(x) // a compensation would make NaN of infinities
	}
	return floats.SumCompensated(x)
}

func refMax(x []float64) float64 {
	switch {
	case len(x) == 0:
		return math.Inf(-1)
	case floats.HasNaN(x):
		return math.NaN()
	}
	return floats.Max(x)
}

// refArgMax is the place of the first NaN, else of the first maximum.
func refArgMax(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	if i := slices.IndexFunc(x, math.IsNaN); i >= 0 {
		return float64(i)
	}
	return float64(floats.MaxIdx(x))
}

func refReduce(c *Call, f func([]float64) float64) error {
	t := refType(c, "T")
	outer, axis, inner := int(c.Int(2)), int(c.Int(3)), int(c.Int(4))
	get := refGet(c, 0, t)
	set := func(at int, x float64) { c.U32(1)[at] = uint32(x) }
	if !strings.Contains(c.Kernel, "arg") {
		set = refSet(c, 1, t)
	}
	for o := range outer {
		for i := range inner {
			set(o*inner+i, f(refRead(get, o*axis*inner+i, axis, inner)))
		}
	}
	return nil
}

// refSoftmax: e^(x - max) / Σ e^(x - max).
func refSoftmax(c *Call) error {
	t, rows, n := refType(c, "T"), int(c.Int(2)), int(c.Int(3))
	get, set := refGet(c, 0, t), refSet(c, 1, t)
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

// refTopK sorts the places of a row by value, NaN last, equal values by place. Like the
// distances it is spread over threads.
func refTopK(c *Call) error {
	t, rows, n, k := refType(c, "T"), int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	get, size := refGet(c, 0, t), refSize(t)
	bits, set := refGetBits(c, 0, size), refSetBits(c, 1, size)
	places := c.U32(2)
	return c.Parallel(rows, 1, func(lo, hi int) {
		order := make([]int, n)
		for r := lo; r < hi; r++ {
			x := refRead(get, r*n, n, 1)
			for i := range order {
				order[i] = i
			}
			slices.SortFunc(order, func(i, j int) int {
				a, b := x[i], x[j]
				if a < b || math.IsNaN(b) && !math.IsNaN(a) {
					return -1
				}
				if b < a || math.IsNaN(a) && !math.IsNaN(b) {
					return 1
				}
				return i - j
			})
			for i := range min(k, n) {
				set(r*k+i, bits(r*n+order[i]))
				places[r*k+i] = uint32(order[i])
			}
		}
	})
}

// refNorm: (x - mean) / √(variance + epsilon) · gamma + beta, or without mean and beta.
func refNorm(c *Call) error {
	t, out := refType(c, "T"), 2
	centered := c.Kernel == "layer_norm"
	if centered {
		out = 3
	}
	rows, n := int(c.Int(out+1)), int(c.Int(out+2))
	get, gamma, set := refGet(c, 0, t), refGet(c, 1, t), refSet(c, out, t)
	for r := range rows {
		x := refRead(get, r*n, n, 1)
		if centered {
			floats.AddConst(-refSum(slices.Clone(x))/float64(n), x)
		}
		squares := slices.Clone(x)
		floats.Mul(squares, x)
		width := math.Sqrt(refSum(squares)/float64(n) + c.Float(out+3))
		for j, z := range x {
			y := z / width * gamma(j)
			if centered {
				y += refGet(c, 2, t)(j)
			}
			set(r*n+j, y)
		}
	}
	return nil
}
