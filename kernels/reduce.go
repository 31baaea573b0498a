package kernels

// The family reduce and its cases. The bound of a sum follows from the largest number of
// additions in which one element takes part.

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/concord-compute/concord/source"
)

func init() {
	Register(Family{
		ID: "reduce", Doc: "sum, product, mean, max, min, argmax, argmin over the middle axis of outer × axis × inner, in " +
			"one launch or two",
		Kernels: []string{"reduce_sum", "reduce_prod", "reduce_mean", "reduce_max", "reduce_min", "reduce_argmax",
			"reduce_argmin",
			"reduce_sum_columns", "reduce_prod_columns", "reduce_mean_columns", "reduce_max_columns", "reduce_min_columns",
			"reduce_argmax_columns", "reduce_argmin_columns"},
		Types: allTypes, Defines: []string{"T", "GROUP", "INDEX", "STAGE"},
		Source: sources, Check: reduceCheck, Arguments: reduceArguments, Work: reduceWork, Reference: refReduce,
		Cases: reduceCases,
	})
}

func reduceCheck(d source.Define) error {
	if d.Name == "INDEX" {
		return integerType(d)
	}
	return oneOf(d, "0", "1", "2")
}

// integerType returns an error if a definition does not name an integer type.
func integerType(d source.Define) error { return oneOf(d, intTypes...) }

func oneOf(d source.Define, values ...string) error {
	if !slices.Contains(values, d.Value) {
		return fmt.Errorf("%s=%s is not one of %s", d.Name, d.Value, strings.Join(values, " "))
	}
	return nil
}

// partialType returns the type of partial results of reduce.
func partialType(t string) string {
	if t == "f16" || t == "bf16" {
		return "f32"
	}
	return t
}

// reduction is one launch of a reduce kernel.
type reduction struct {
	kernel, typ, index          string
	stage, group                int // 0: the usual group
	outer, axis, inner, parts   int
	in, places, out, outsPlaces int // positions of the buffers; places are -1 if there are none
}

// arg reports whether the kernel's results are indices.
func (r *reduction) arg() bool { return strings.Contains(r.kernel, "arg") }

// op returns the operation, such as "sum".
func (r *reduction) op() string { return strings.Split(r.kernel, "_")[1] }

// complete sets the positions of the buffers and returns that of the first size.
func (r *reduction) complete() int {
	r.in, r.places, r.out, r.outsPlaces = 0, -1, 1, -1
	switch {
	case r.arg() && r.stage == 1:
		r.outsPlaces = 2
		return 3
	case r.arg() && r.stage == 2:
		r.places, r.out = 1, 2
		return 3
	}
	return 2
}

// types returns the types of the elements that are read and of the results.
func (r *reduction) types() (from, to string) {
	from, to = r.typ, r.typ
	switch r.stage {
	case 1:
		to = partialType(r.typ)
	case 2:
		from = partialType(r.typ)
	}
	if r.arg() && r.stage != 1 {
		to = r.index
	}
	return from, to
}

// longest returns the largest number of elements for one result.
func (r *reduction) longest() int {
	switch r.stage {
	case 1:
		return (r.axis + r.parts - 1) / r.parts
	case 2:
		return r.parts
	}
	return r.axis
}

// results returns the number of results, elements the number of elements that are read.
func (r *reduction) results(c *Call) int {
	if r.stage == 1 {
		return c.Product(r.outer, r.parts, r.inner)
	}
	return c.Product(r.outer, r.inner)
}

func (r *reduction) elements(c *Call) int {
	if r.stage == 2 {
		return c.Product(r.outer, r.parts, r.inner)
	}
	return c.Product(r.outer, r.axis, r.inner)
}

// each calls f for every result o with the index of its first element, the place of that in the axis, and the
// number of its elements, which are inner apart.
func (r *reduction) each(f func(o, at, first, n int)) {
	span := r.longest()
	for i := range r.outer * max(r.parts, 1) {
		if r.stage == 2 && i >= r.outer {
			return
		}
		row, first, n := i, 0, span
		if r.stage == 1 {
			row, first = i/r.parts, min(i%r.parts*span, r.axis)
			n = min(span, r.axis-first)
		}
		length := r.axis
		if r.stage == 2 {
			length = r.parts
		}
		for j := range r.inner {
			f(i*r.inner+j, (row*length+first)*r.inner+j, first, n)
		}
	}
}

func reductionOf(c *Call) reduction {
	r := reduction{kernel: c.Kernel, typ: c.Type("T"), index: c.indexType()}
	if s, ok := c.Define("STAGE"); ok {
		r.stage = int(s[0] - '0')
	}
	at := r.complete()
	r.outer, r.axis, r.inner = int(c.Int(at)), int(c.Int(at+1)), int(c.Int(at+2))
	if r.stage > 0 {
		if r.parts = int(c.Int(at + 3)); r.parts == 0 {
			c.Fail(at+3, "an axis cannot have 0 parts")
		}
	}
	return r
}

// reduceWork counts an operation for each element.
func reduceWork(c *Call, bytes float64) (operations, moved float64) {
	r := reductionOf(c)
	return float64(r.elements(c)), bytes
}

func reduceArguments(c *Call) bool {
	r := reductionOf(c)
	results := r.results(c)
	if results == 0 {
		return false
	}
	from, to := r.types()
	needAll(c, from, r.elements(c), r.in)
	needAll(c, to, results, r.out)
	if r.places >= 0 {
		needAll(c, "u32", r.elements(c), r.places)
	}
	if r.outsPlaces >= 0 {
		needAll(c, "u32", results, r.outsPlaces)
	}
	return true
}

func reduceCases(f *Family) (list []Case) {
	shapes := [][3]int{{1, 1, 1}, {1, 0, 1}, {0, 5, 1}, {3, 2, 1}, {2, 31, 3}, {5, 33, 7}, {3, 127, 1}, {3, 128, 1},
		{2, 129, 2},
		{2, 1000, 1}, {2, 257, 31}, {1, 3, 257}, {1, 65537, 1}}
	staged := [][4]int{{2, 1000, 3, 7}, {1, 0, 2, 3}, {1, 10, 1, 16}, {0, 4, 1, 2}, {1, 65537, 1, 129},
		{1, 1 << 20, 1, 256}}
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
			for i, s := range staged {
				if t != "f32" && i > 2 || i == 5 && k != "reduce_sum" && k != "reduce_argmax" ||
					!slices.Contains([]string{"f32", "f16", "i8", "u64"}, t) {
					continue
				}
				for stage := 1; stage <= 2; stage++ {
					list = append(list, reduceCase(f, reduction{kernel: k, typ: t, stage: stage, outer: s[0], axis: s[1], inner: s[2],
						parts: s[3]}, ""))
				}
			}
			list = append(list, reduceCase(f, reduction{kernel: k, typ: t, outer: 2, axis: 300, inner: 1}, " ties"))
			if IsFloat(t) {
				list = append(list, reduceCase(f, reduction{kernel: k, typ: t, outer: 4, axis: 300, inner: 1}, " NaN"),
					reduceCase(f, reduction{kernel: k, typ: t, outer: 3, axis: 300, inner: 1}, " Inf"))
			}
		}
	}
	for _, k := range f.Kernels[:7] { // those with a group for each result
		for _, s := range [][3]int{{3, 1000, 2}, {1, 20, 5}} {
			list = append(list, reduceCase(f, reduction{kernel: k, typ: "f32", group: 32, outer: s[0], axis: s[1], inner: s[2]},
				""))
		}
	}
	for i, index := range []string{"i8", "u8", "i16", "i64"} {
		for _, k := range []string{"reduce_argmax", "reduce_argmin_columns"} {
			r := reduction{kernel: k, typ: "f32", index: index, outer: 30, axis: 301, inner: 2}
			if i == 2 {
				r.stage, r.parts = 2, 301
			}
			list = append(list, reduceCase(f, r, ""))
		}
	}
	return list
}

// data returns the elements of a case: random numbers, and by note equal ones, or NaN and
// infinities at the start, in the middle and at the end of rows. Factors of a product are so near to 1 that no
// partial product leaves the range of the type.
func (r *reduction) data(from string, n int, note string) func() []float64 {
	data := Uniform(from, n, 5, -1, 1)
	if strings.Contains(r.kernel, "prod") && IsFloat(from) {
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
			place := i / max(r.inner, 1) % max(r.longest(), 1)
			if x[i] = math.Copysign(1, v); place%(1+r.longest()/32) == 0 {
				x[i] = math.Copysign(0.75+math.Abs(v)/2, v)
			}
		}
		return x
	}
}

func reduceCase(f *Family, r reduction, note string) Case {
	at := r.complete()
	shape := fmt.Sprintf("%d×%d×%d", r.outer, r.axis, r.inner)
	if r.stage > 0 {
		shape += fmt.Sprintf(" stage %d of %d parts", r.stage, r.parts)
	}
	c := f.Case(r.kernel, r.typ, "")
	if r.index == "" {
		r.index = "u32"
	} else {
		c.Defines = append(c.Defines, source.Define{Name: "INDEX", Value: r.index})
		shape += " to " + r.index
	}
	if r.stage > 0 {
		c.Defines = append(c.Defines, source.Define{Name: "STAGE", Value: fmt.Sprint(r.stage)})
	}
	c.Shape = shape + note
	read, results := r.outer*r.axis*r.inner, r.outer*r.inner
	switch r.stage {
	case 1:
		results *= r.parts
	case 2:
		read = results * r.parts
	}
	from, to := r.types()
	args := make([]Arg, at, at+4)
	args[r.in], args[r.out] = in(from, read, r.data(from, read, note)), out(to, results)
	if r.places >= 0 {
		args[r.places] = in("u32", read, r.partialPlaces(read))
	}
	if r.outsPlaces >= 0 {
		args[r.outsPlaces] = out("u32", results)
	}
	args = append(args, uintArg(r.outer), uintArg(r.axis), uintArg(r.inner))
	if r.stage > 0 {
		args = append(args, uintArg(r.parts))
	}
	c.Sizes = []int{results}
	return r.bounded(c.with(args...)).grouped(r.group)
}

// partialPlaces returns a place in its own part for each partial result.
func (r *reduction) partialPlaces(n int) func() []float64 {
	return func() []float64 {
		x, span := make([]float64, max(n, 1)), (r.axis+r.parts-1)/r.parts
		for i := range n {
			x[i] = float64(i/r.inner%r.parts*span + i%max(span, 1))
		}
		return x
	}
}

// bounded adds the bound of a reduction to a case.
func (r reduction) bounded(c Case) Case {
	mean := r.op() == "mean" && r.stage != 1
	switch {
	case r.op() == "sum" && IsFloat(r.typ), r.op() == "mean":
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
	_, to := r.types()
	u, b := Roundoff(r.typ), make([]float64, len(ref))
	r.each(func(o, at, _, n int) {
		depth := additions(n, r.group)
		if strings.HasSuffix(r.kernel, "_columns") {
			depth = min(n, 128+n/128)
		}
		sum := 0.0
		for j := range n {
			sum += math.Abs(x[at+j*r.inner])
		}
		scale, c := 1.0, 1.0
		if mean {
			scale, c = float64(r.axis), 6
		}
		b[o] = Stored(to, ref[o], u*(float64(depth)*sum/scale+c*math.Abs(ref[o])))
	})
	return b
}

func (r *reduction) prodBound(x, ref []float64) []float64 {
	_, to := r.types()
	u, most, b := Roundoff(r.typ), -math.Log2(Smallest(r.typ)), make([]float64, len(ref))
	r.each(func(o, at, _, n int) {
		up, down := 0.0, 0.0 // binary logarithms of the largest and of the smallest partial product
		for j := range n {
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
		b[o] = Stored(to, ref[o], 1.01*u*float64(n)*math.Abs(ref[o]))
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
	case "max", "argmax":
		return refClamp(far.Neg(far), t)
	case "min", "argmin":
		return refClamp(far, t)
	}
	return new(big.Int)
}

func refReduce(c *Call) error {
	r := reductionOf(c)
	from, to := r.types()
	switch {
	case r.arg() && IsFloat(r.typ):
		get := c.Get(r.in, from)
		better := refOne[func(x, y float64) bool](r.op() == "argmax", func(x, y float64) bool { return x > y },
			func(x, y float64) bool { return x < y })
		refPlaces(c, &r, get, func(x, y float64) bool { return better(x, y) || x != x && y == y },
			math.Inf(refOne(r.op() == "argmax", -1, 1)), func() func(int, float64) { return c.Set(r.out, to) })
	case r.arg():
		sign := refOne(r.op() == "argmax", 1, -1)
		refPlaces(c, &r, refGetInt(c, r.in, from), func(x, y *big.Int) bool { return x.Cmp(y) == sign },
			refNone(r.op(), r.typ),
			func() func(int, *big.Int) { return refSetInt(c, r.out, to) })
	case IsFloat(r.typ):
		f, get, set := refReductions[r.op()], c.Get(r.in, from), c.Set(r.out, to)
		mean := r.op() == "mean" && r.stage > 0
		r.each(func(o, at, _, n int) {
			x := refRead(get, at, n, r.inner)
			if mean {
				x := refSum(x)
				set(o, refOne(r.stage == 1, x, x/float64(r.axis)))
				return
			}
			set(o, f(x))
		})
	default:
		f, get, set, mask := refIntReductions[r.op()], refGetInt(c, r.in, from), refSetInt(c, r.out, to),
			new(big.Int).Lsh(big.NewInt(1), 64)
		r.each(func(o, at, _, n int) {
			x := refNone(r.op(), r.typ)
			for j := range n {
				if x = f(x, get(at+j*r.inner)); r.op() == "prod" {
					x.Rem(x, mask) // congruent, so that the number stays short
				}
			}
			set(o, x)
		})
	}
	return nil
}

// refPlaces computes argmax or argmin: of the elements than which none is better, the one with the smallest place.
func refPlaces[V any](c *Call, r *reduction, get func(int) V, better func(x, y V) bool, none V,
	values func() func(int, V)) {
	var places, outPlaces []uint32
	var set func(int, V)
	var out func(int, uint64)
	if r.places >= 0 {
		places = c.U32(r.places)
	}
	if r.stage == 1 {
		set, outPlaces = values(), c.U32(r.outsPlaces)
	} else {
		out = refSetBits(c, r.out, SizeOf(r.index))
	}
	r.each(func(o, at, first, n int) {
		x, place := none, uint32(math.MaxUint32)
		for j := range n {
			y, k := get(at+j*r.inner), uint32(first+j)
			if places != nil {
				k = places[at+j*r.inner]
			}
			if better(y, x) || !better(x, y) && k < place {
				x, place = y, k
			}
		}
		switch {
		case r.stage == 1:
			set(o, x)
			outPlaces[o] = place
		case r.axis == 0:
			out(o, 0)
		default:
			out(o, uint64(place))
		}
	})
}
