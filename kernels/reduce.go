package kernels

// The family reduce and its cases. The bound of a sum follows from the largest number of
// additions in which one element takes part.

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
)

func init() {
	Register(Family{
		ID: "reduce", Doc: "sum, mean, max, min, argmax, argmin over the middle axis of outer × axis × inner",
		Kernels: []string{"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_argmax", "reduce_argmin",
			"reduce_sum_columns", "reduce_mean_columns", "reduce_max_columns", "reduce_min_columns",
			"reduce_argmax_columns", "reduce_argmin_columns"},
		Types: floatTypes, Defines: []string{"T", "GROUP"},
		Source: sources, Arguments: reduceArguments, Reference: refReduce,
		Cases: reduceCases,
	})
}

func reduceCases(f *Family) (list []Case) {
	shapes := [][3]int{{1, 1, 1}, {1, 0, 1}, {0, 5, 1}, {3, 2, 1}, {2, 31, 3}, {5, 33, 7}, {3, 127, 1}, {3, 128, 1}, {2, 129, 2},
		{2, 1000, 1}, {2, 257, 31}, {1, 3, 257}, {1, 65537, 1}}
	for _, t := range f.Types {
		for _, k := range f.Kernels {
			for i, s := range shapes {
				if t != "f32" && i%4 != 1 {
					continue
				}
				outer, axis, inner := s[0], s[1], s[2]
				n := outer * axis * inner
				list = append(list, reduceCase(f, k, t, fmt.Sprintf("%d×%d×%d", outer, axis, inner), s, Uniform(t, n, 5, -1, 1)))
			}
			list = append(list, reduceSpecial(f, k, t)...)
		}
	}
	return list
}

// reduceSpecial returns cases with equal values, and with NaN and infinities at the start, in
// the middle and at the end of rows.
func reduceSpecial(f *Family, k, t string) (list []Case) {
	n := 300
	ties := mixed(constant(2*n, 1), 2, 5, 7, 200, n+255, n+256)
	list = append(list, reduceCase(f, k, t, "2×300×1 ties", [3]int{2, n, 1}, ties))
	nan := mixed(mixed(Uniform(t, 4*n, 6, -1, 1), math.NaN(), 0, n+150, n+290, 2*n+299), math.Inf(-1), 3*n)
	list = append(list, reduceCase(f, k, t, "4×300×1 NaN", [3]int{4, n, 1}, nan))
	inf := mixed(mixed(Uniform(t, 3*n, 7, -1, 1), math.Inf(1), 3, n+9), math.Inf(-1), n+10, 2*n)
	return append(list, reduceCase(f, k, t, "3×300×1 Inf", [3]int{3, n, 1}, inf))
}

func reduceCase(f *Family, k, t, shape string, s [3]int, data func() []float64) Case {
	outer, axis, inner := s[0], s[1], s[2]
	global, local := RowsGrid(outer * inner)
	if strings.HasSuffix(k, "_columns") {
		global, local = ElementsGrid(outer * inner)
	}
	result := t
	if strings.Contains(k, "arg") {
		result = "u32"
	}
	c := f.Case(k, t, shape).with(global, local, in(t, outer*axis*inner, data), out(result, outer*inner),
		uintArg(outer), uintArg(axis), uintArg(inner))
	if !strings.Contains(k, "sum") && !strings.Contains(k, "mean") {
		return c.exact("comparisons do not round")
	}
	mean := strings.Contains(k, "mean")
	return c.within("ε·(d·Σ|x| + c·|result|), d = min(axis, 24 + axis/128), columns min(axis, 128 + axis/128), c = 1, mean 6",
		"d bounds the number of additions in which an element takes part: each item sums every GROUP-th element, and a tree adds the items' sums; "+
			"columns are summed in blocks of 128; mean divides (2.5 ulp = 5ε); the reference rounds once",
		func(_ int, in [][]float64, ref []float64) []float64 {
			return sumBound(t, k, s, mean, in[0], ref)
		})
}

func sumBound(t, k string, s [3]int, mean bool, x, ref []float64) []float64 {
	u, axis, inner := Roundoff(t), s[1], s[2]
	depth := min(axis, 24+axis/128)
	if strings.HasSuffix(k, "_columns") {
		depth = min(axis, 128+axis/128)
	}
	b := make([]float64, len(ref))
	if s[0]*inner == 0 {
		return b
	}
	for o, r := range ref {
		sum := 0.0
		for j := range axis {
			sum += math.Abs(x[(o/inner*axis+j)*inner+o%inner])
		}
		scale, c := 1.0, 1.0
		if mean {
			scale, c = float64(axis), 6
		}
		b[o] = Stored(t, r, u*(float64(depth)*sum/scale+c*math.Abs(r)))
	}
	return b
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

// refArgMax returns the index of the first NaN, or if there is none, of the first maximum.
func refArgMax(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	if i := slices.IndexFunc(x, math.IsNaN); i >= 0 {
		return float64(i)
	}
	return float64(floats.MaxIdx(x))
}

func reduceArguments(c *Call) bool {
	t, outer, axis, inner := c.Type("T"), int(c.Int(2)), int(c.Int(3)), int(c.Int(4))
	results := c.Product(outer, inner)
	if results == 0 {
		return false
	}
	needAll(c, t, c.Product(outer, axis, inner), 0)
	if strings.Contains(c.Kernel, "arg") {
		t = "u32"
	}
	needAll(c, t, results, 1)
	return true
}

func refReduce(c *Call) error {
	t, f := c.Type("T"), refReductions[strings.Split(c.Kernel, "_")[1]]
	outer, axis, inner := int(c.Int(2)), int(c.Int(3)), int(c.Int(4))
	get := c.Get(0, t)
	set := func(at int, x float64) { c.U32(1)[at] = uint32(x) }
	if !strings.Contains(c.Kernel, "arg") {
		set = c.Set(1, t)
	}
	for o := range outer {
		for i := range inner {
			set(o*inner+i, f(refRead(get, o*axis*inner+i, axis, inner)))
		}
	}
	return nil
}
