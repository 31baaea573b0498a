package kernels

// The family reduce and its cases. The bound of a sum follows from the largest number of
// additions in which one element takes part.

import (
	"fmt"
	"math"
	"math/big"
	"strings"

	"gonum.org/v1/gonum/floats"
)

func init() {
	outline(Family{
		ID: "reduce", Doc: "sum, product, mean, max, min, argmax, argmin over the middle axis of outer × axis × inner",
		Kernels: []string{"reduce_sum", "reduce_prod", "reduce_mean", "reduce_max", "reduce_min", "reduce_argmax",
			"reduce_argmin",
			"reduce_sum_columns", "reduce_prod_columns", "reduce_mean_columns", "reduce_max_columns", "reduce_min_columns",
			"reduce_argmax_columns", "reduce_argmin_columns"},
		Types: allTypes, Defines: []string{"T", "INDEX"},
		Check: indexCheck, Arguments: reduceArguments, Reference: refReduce, Bound: knows(reduceLaunch),
		Rows: reduceRows, Cases: reduceCases,
	})
}

// reduction is one launch of a reduce kernel.
type reduction struct {
	kernel, typ, index string
	outer, axis, inner int
}

// arg reports whether the kernel's results are indices.
func (r *reduction) arg() bool { return strings.Contains(r.kernel, "arg") }

// op returns the operation, such as "sum".
func (r *reduction) op() string { return strings.Split(r.kernel, "_")[1] }

// result returns the type of the results.
func (r *reduction) result() string {
	if r.arg() {
		return r.index
	}
	return r.typ
}

// each calls f for every result o with the index of its first element, of axis elements that are inner apart.
func (r *reduction) each(f func(o, at int)) {
	for o := range r.outer * r.inner {
		f(o, o/r.inner*r.axis*r.inner+o%r.inner)
	}
}

func reductionOf(c *Call) reduction {
	return reduction{c.Kernel, c.Type("T"), c.Type("INDEX"), int(c.Int(2)), int(c.Int(3)), int(c.Int(4))}
}

func reduceArguments(c *Call) bool {
	r := reductionOf(c)
	results := c.Product(r.outer, r.inner)
	if results == 0 {
		return false
	}
	needAll(c, r.typ, c.Product(r.outer, r.axis, r.inner), 0)
	needAll(c, r.result(), results, 1)
	return true
}

func reduceCases(f *Family) (list []Case) {
	shapes := [][3]int{{1, 1, 1}, {1, 0, 1}, {0, 5, 1}, {3, 2, 1}, {2, 31, 3}, {5, 33, 7}, {3, 127, 1}, {3, 128, 1},
		{2, 129, 2},
		{2, 1000, 1}, {2, 257, 31}, {1, 3, 257}, {1, 65537, 1}}
	for _, t := range f.Types {
		for _, k := range f.Kernels {
			if !IsFloat(t) && strings.Contains(k, "mean") {
				continue
			}
			for i, s := range shapes {
				if k == "reduce_prod_columns" {
					s[1] = min(s[1], 50021) // Mesa's llvmpipe leaves a loop after 65535 passes, which shows in a product's sign
				}
				if t == "f32" || i%4 == 1 {
					list = append(list, reduceCase(f, reduction{kernel: k, typ: t, outer: s[0], axis: s[1], inner: s[2]}, ""))
				}
			}
			if k == "reduce_sum" || k == "reduce_argmax" { // in parts, by some devices
				list = append(list, reduceCase(f, reduction{kernel: k, typ: t, outer: 1, axis: 1 << 18, inner: 1}, ""))
			}
			if strings.Contains(k, "arg") && (t == "f32" || t == "bf16") { // places in parts
				r := reduction{kernel: k, typ: t, outer: 4, axis: 60001, inner: 1}
				if strings.HasSuffix(k, "columns") {
					r.inner = 3
				}
				list = append(list, reduceCase(f, r, " ties"), reduceCase(f, r, " NaN"))
			}
			list = append(list, reduceCase(f, reduction{kernel: k, typ: t, outer: 2, axis: 300, inner: 1}, " ties"))
			if IsFloat(t) {
				list = append(list, reduceCase(f, reduction{kernel: k, typ: t, outer: 4, axis: 300, inner: 1}, " NaN"),
					reduceCase(f, reduction{kernel: k, typ: t, outer: 3, axis: 300, inner: 1}, " Inf"))
			}
		}
	}
	for _, index := range []string{"i8", "u8", "i16", "i64"} {
		for _, k := range []string{"reduce_argmax", "reduce_argmin_columns"} {
			r := reduction{kernel: k, typ: "f32", index: index, outer: 30, axis: 301, inner: 2}
			list = append(list, reduceCase(f, r, ""))
		}
	}
	return list
}

// data returns the elements of a case: random numbers, and by note equal ones, or NaN and
// infinities at the start, in the middle and at the end of rows. Factors of a product are so near to 1 that no
// partial product leaves the range of the type.
func (r *reduction) data(n int, note string) func() []float64 {
	data := Uniform(r.typ, n, 5, -1, 1)
	if strings.Contains(r.kernel, "prod") && IsFloat(r.typ) {
		data = r.factors(n)
	}
	axis := r.axis
	switch note {
	case " ties":
		return mixed(constant(n, 1), 2, 5, 7, 200, axis-45, axis-44)
	case " NaN":
		return mixed(mixed(data, math.NaN(), 0, axis+150, axis+290, 2*axis-1), math.Inf(-1), 3*axis)
	case " Inf":
		return mixed(mixed(data, math.Inf(1), 3, axis+9), math.Inf(-1), axis+10, 2*axis)
	}
	return data
}

// factors returns numbers of which at most 32 in each row differ from 1 and -1.
func (r *reduction) factors(n int) func() []float64 {
	return func() []float64 {
		x := Uniform("f32", n, 8, -1, 1)()
		for i, v := range x {
			place := i / max(r.inner, 1) % max(r.axis, 1)
			if x[i] = math.Copysign(1, v); place%(1+r.axis/32) == 0 {
				x[i] = math.Copysign(0.75+math.Abs(v)/2, v)
			}
		}
		return x
	}
}

func reduceCase(f *Family, r reduction, note string) Case {
	shape := fmt.Sprintf("%d×%d×%d", r.outer, r.axis, r.inner)
	c := f.Case(r.kernel, r.typ, "", r.outer*r.inner)
	if r.index == "" {
		r.index = "u32"
	} else {
		c = c.define("INDEX", r.index)
		shape += " to " + r.index
	}
	c.Shape = shape + note
	read := r.outer * r.axis * r.inner
	return r.bounded(c.with(in(r.typ, read, r.data(read, note)), out(r.result(), r.outer*r.inner), uintArg(r.outer),
		uintArg(r.axis), uintArg(r.inner)))
}

// bounded adds the bound of a reduction to a case.
func (r reduction) bounded(c Case) Case {
	switch mean := r.op() == "mean"; {
	case r.op() == "sum" && IsFloat(r.typ), mean:
		return c.within("ε·(d·Σ|x| + c·|result|), "+additionsFormula+", columns min(n, 128 + n/128), for n elements, c = "+
			"1, mean 6",
			"d bounds the number of additions in which an element takes part: each item sums every GROUP-th element, and a "+
				"tree adds the items' sums; "+
				"columns are summed in blocks of 128; mean divides (2.5 ulp = 5ε); the reference rounds once",
			func(_ int, in [][]float64, ref []float64) []float64 { return r.sumBound(mean, in[0], ref) })
	case r.op() == "prod" && IsFloat(r.typ):
		return c.within("1.01·n·ε·|result| for n factors; ∞ where the factors are such that a partial product can leave "+
			"the range of the type",
			"n multiplications, in any order, err by at most ε each, and an error is multiplied like a factor",
			func(_ int, in [][]float64, ref []float64) []float64 { return r.prodBound(in[0], ref) })
	}
	return c.exact("comparisons do not round; sums and products of integers wrap, in any order")
}

func (r *reduction) sumBound(mean bool, x, ref []float64) []float64 {
	u, b := Roundoff(r.typ), make([]float64, len(ref))
	depth := additions(r.axis, 0)
	if strings.HasSuffix(r.kernel, "_columns") {
		depth = min(r.axis, 128+r.axis/128)
	}
	r.each(func(o, at int) {
		sum := 0.0
		for j := range r.axis {
			sum += math.Abs(x[at+j*r.inner])
		}
		scale, c := 1.0, 1.0
		if mean {
			scale, c = float64(r.axis), 6
		}
		b[o] = Stored(r.typ, ref[o], u*(float64(depth)*sum/scale+c*math.Abs(ref[o])))
	})
	return b
}

func (r *reduction) prodBound(x, ref []float64) []float64 {
	u, most, b := Roundoff(r.typ), -math.Log2(Smallest(r.typ)), make([]float64, len(ref))
	r.each(func(o, at int) {
		up, down := 0.0, 0.0 // binary logarithms of the largest and of the smallest partial product
		for j := range r.axis {
			if l := math.Log2(math.Abs(x[at+j*r.inner])); l > 0 && !math.IsInf(l, 0) {
				up += l
			} else if l < 0 && !math.IsInf(l, 0) {
				down -= l
			}
		}
		if up >= most || down >= most {
			b[o] = math.Inf(1)
			return
		}
		b[o] = Stored(r.typ, ref[o], 1.01*u*float64(r.axis)*math.Abs(ref[o]))
	})
	return b
}

// refReductions reduce one row of floating-point numbers, refIntReductions one of integers.
var (
	refReductions = map[string]func(x []float64) float64{
		"sum":  refSum,
		"mean": func(x []float64) float64 { return refSum(x) / float64(len(x)) },
		"prod": floats.Prod,
		"max":  refMax,
		"min":  func(x []float64) float64 { floats.Scale(-1, x); return -refMax(x) },
	}
	refIntReductions = map[string]func(x, y *big.Int) *big.Int{
		"sum":  func(x, y *big.Int) *big.Int { return x.Add(x, y) },
		"prod": func(x, y *big.Int) *big.Int { return x.Mul(x, y) },
		"max":  func(x, y *big.Int) *big.Int { return refOne(x.Cmp(y) >= 0, x, y) },
		"min":  func(x, y *big.Int) *big.Int { return refOne(x.Cmp(y) <= 0, x, y) },
	}
)

func refOne[V any](first bool, x, y V) V {
	if first {
		return x
	}
	return y
}

// refNone returns the result of an operation on no integers of a type.
func refNone(op, t string) *big.Int {
	far := new(big.Int).Lsh(big.NewInt(1), 100)
	switch op {
	case "prod":
		return big.NewInt(1)
	case "max":
		return refClamp(far.Neg(far), t)
	case "min":
		return refClamp(far, t)
	}
	return new(big.Int)
}

func refReduce(c *Call) error {
	r := reductionOf(c)
	switch greatest := r.op() == "argmax"; {
	case r.arg() && IsFloat(r.typ):
		refPlaces(c, &r, c.Get(0, r.typ), func(x, y float64) bool {
			return x != x && y == y || greatest && x > y || !greatest && x < y
		})
	case r.arg():
		sign := refOne(greatest, 1, -1)
		refPlaces(c, &r, refGetInt(c, 0, r.typ), func(x, y *big.Int) bool { return x.Cmp(y) == sign })
	case IsFloat(r.typ):
		f, get, set := refReductions[r.op()], c.Get(0, r.typ), c.Set(1, r.typ)
		r.each(func(o, at int) { set(o, f(refRead(get, at, r.axis, r.inner))) })
	default:
		f, get, set, mask := refIntReductions[r.op()], refGetInt(c, 0, r.typ), refSetInt(c, 1, r.typ),
			new(big.Int).Lsh(big.NewInt(1), 64)
		r.each(func(o, at int) {
			x := refNone(r.op(), r.typ)
			for j := range r.axis {
				if x = f(x, get(at+j*r.inner)); r.op() == "prod" {
					x.Rem(x, mask) // congruent, so that the number stays short
				}
			}
			set(o, x)
		})
	}
	return nil
}

// refPlaces computes argmax or argmin: the first of the elements than which none is better.
func refPlaces[V any](c *Call, r *reduction, get func(int) V, better func(x, y V) bool) {
	set := refSetBits(c, 1, SizeOf(r.index))
	r.each(func(o, at int) {
		var best V
		place := 0
		for j := range r.axis {
			if x := get(at + j*r.inner); j == 0 || better(x, best) {
				best, place = x, j
			}
		}
		set(o, uint64(place))
	})
}
