package kernels

// The family arith (add, sub, mul, div) and its cases: arrays, scalars and broadcasts, integers
// that wrap, special values.

import (
	"fmt"
	"math"
	"math/big"
	"strings"

	"gonum.org/v1/gonum/floats"
)

func init() {
	outline(Family{
		ID: "arith", Doc: "add, sub, mul, div of arrays, of an array and a scalar, and broadcast to four dimensions",
		Kernels: []string{"add", "sub", "mul", "div", "add_scalar", "sub_scalar", "mul_scalar", "div_scalar",
			"scalar_sub", "scalar_div", "add_broadcast", "sub_broadcast", "mul_broadcast", "div_broadcast"},
		Types: allTypes, Defines: []string{"T"},
		Arguments: arithArguments, Reference: refArith, Bound: knows(arithLaunch), Rows: arithRows,
		Cases: arithCases,
	})
}

func arithCases(f *Family) []Case {
	var list []Case
	for _, t := range f.Types {
		for _, k := range f.Kernels {
			op := strings.TrimPrefix(strings.Split(k, "_")[0], "scalar")
			if strings.Contains(k, "div") && !IsFloat(t) {
				continue
			}
			switch {
			case strings.HasSuffix(k, "_broadcast"):
				list = append(list, broadcastCases(f, k, t)...)
			case k == op:
				list = append(list, arrayCases(f, k, t)...)
			default:
				list = append(list, scalarCases(f, k, t)...)
			}
		}
	}
	return list
}

// operands returns data for both operands. Divisors are not near 0; a case of its own has special values.
func operands(k, t string, na, nb int) (a, b func() []float64) {
	a, b = Uniform(t, na, 1, -100, 100), Uniform(t, nb, 2, -100, 100)
	if strings.Contains(k, "div") {
		b = Uniform(t, nb, 2, 0.5, 100)
	}
	return a, b
}

func arrayCases(f *Family, k, t string) []Case {
	var list []Case
	make := func(shape string, n int, a, b func() []float64) {
		list = append(list, arithBound(f.Case(k, t, shape, n), k, t, 0, 1).
			with(in(t, n, a), in(t, n, b), out(t, n), ulongArg(n)))
	}
	for _, n := range sizesFor(t) {
		a, b := operands(k, t, n, n)
		make(fmt.Sprintf("n=%d", n), n, a, b)
	}
	if IsFloat(t) {
		a, b := pairs(t)
		make("special values", len(a), numbers(a), numbers(b))
	}
	return list
}

func scalarCases(f *Family, k, t string) []Case {
	var list []Case
	left := strings.HasPrefix(k, "scalar_")
	for _, n := range shortSizes {
		for _, s := range []float64{3, 40} {
			a, _ := operands(k, t, n, n)
			args := []Arg{in(t, n, a), value(scalarOf(t), s), out(t, n), ulongArg(n)}
			x, y := 0, 1
			if left {
				_, b := operands(k, t, n, n)
				args[0], args[1] = args[1], in(t, n, b)
			}
			list = append(list, arithBound(f.Case(k, t, fmt.Sprintf("n=%d s=%g", n, s), n), k, t, x, y).
				with(args...))
		}
	}
	return list
}

// broadcastCases returns cases in which each operand is repeated along each dimension.
func broadcastCases(f *Family, k, t string) []Case {
	var list []Case
	for _, s := range []struct {
		shape      string
		d, sa, sb  [4]int
		lenA, lenB int
	}{
		{"[1 1 1 7] rows of both", [4]int{1, 1, 1, 7}, [4]int{0, 0, 0, 1}, [4]int{0, 0, 0, 1}, 7, 7},
		{"[1 1 31 33] + row", [4]int{1, 1, 31, 33}, [4]int{0, 0, 33, 1}, [4]int{0, 0, 0, 1}, 31 * 33, 33},
		{"[1 1 31 33] + column", [4]int{1, 1, 31, 33}, [4]int{0, 0, 33, 1}, [4]int{0, 0, 1, 0}, 31 * 33, 31},
		{"[2 3 5 7] outer product", [4]int{2, 3, 5, 7}, [4]int{3, 1, 0, 0}, [4]int{0, 0, 7, 1}, 6, 35},
		{"[2 3 5 7] + element", [4]int{2, 3, 5, 7}, [4]int{105, 35, 7, 1}, [4]int{}, 210, 1},
		{"[2 0 5 7] empty", [4]int{2, 0, 5, 7}, [4]int{}, [4]int{}, 1, 1},
	} {
		a, b := operands(k, t, s.lenA, s.lenB)
		n := s.d[0] * s.d[1] * s.d[2] * s.d[3]
		args := []Arg{in(t, s.lenA, a), in(t, s.lenB, b), out(t, n)}
		for _, v := range [][4]int{s.d, s.sa, s.sb} {
			args = append(args, uintArg(v[0]), uintArg(v[1]), uintArg(v[2]), uintArg(v[3]))
		}
		list = append(list, arithBound(f.Case(k, t, s.shape, n), k, t, -1, -1).with(args...))
	}
	return list
}

// arithBound adds the bound of a op b to a case. x and y are the positions of a and b among the
// arguments, or negative if the data has no denormals.
func arithBound(c Case, k, t string, x, y int) Case {
	switch {
	case !IsFloat(t):
		return c.exact("integers wrap modulo 2^bits")
	case strings.Contains(k, "div") && t != "f64":
		return c.within("6ε·|a/b|", "OpenCL divides to 2.5 ulp = 5ε; the reference rounds once",
			arithFlush(k, t, x, y, 6))
	}
	return c.within("0, or the effect of flushing a denormal to 0", "one correctly rounded operation; half and bfloat16 "+
		"operands "+
		"are exact in float, which has more than twice their digits, so that rounding twice gives the same result as "+
		"rounding once",
		arithFlush(k, t, x, y, 0))
}

// arithFlush returns the bound c·ε·|result|, plus the error if an operand or the result may be flushed to 0.
func arithFlush(k, t string, x, y int, c float64) func(int, [][]float64, []float64) []float64 {
	at := func(v []float64, i int) float64 { return v[min(i, len(v)-1)] }
	return eachOf(math.MaxInt, func(in [][]float64, i int, r float64) float64 {
		e := c * Roundoff(t) * math.Abs(r)
		if denormal(t, r) {
			e += Smallest(t)
		}
		lost := 0.0
		if x >= 0 {
			lost = flushed(k, t, at(in[x], i), at(in[y], i))
		}
		return max(Stored(t, r, e+lost), lost)
	})
}

// flushed returns how much a op b may change if a denormal operand is flushed to 0.
func flushed(k, t string, a, b float64) float64 {
	switch {
	case a != a || b != b || !denormal(t, a) && !denormal(t, b): // with a NaN the result is NaN
		return 0
	case strings.Contains(k, "div"):
		return math.Inf(1) // the quotient may become 0, infinite or NaN
	case strings.Contains(k, "mul"):
		return Smallest(t) * max(math.Abs(a), math.Abs(b), 1)
	}
	return 2 * Smallest(t)
}

// arithForm returns the operation of a kernel, whether its operands are broadcast, and the position of
// the argument that is a scalar, or -1 if none is.
func arithForm(kernel string) (op string, broadcast bool, scalar int) {
	if op, left := strings.CutPrefix(kernel, "scalar_"); left {
		return op, false, 0
	}
	op, form, _ := strings.Cut(kernel, "_")
	if form == "scalar" {
		return op, false, 1
	}
	return op, form == "broadcast", -1
}

func arithArguments(c *Call) bool {
	_, broadcast, scalar := arithForm(c.Kernel)
	if broadcast {
		return broadcastArguments(c)
	}
	t, n := c.Type("T"), int(c.Int(3))
	for i := range 3 {
		if i != scalar {
			needAll(c, t, n, i)
		}
	}
	return n > 0
}

// broadcastArguments checks a launch with broadcast operands, whose four sizes are followed by the four
// strides of each operand.
func broadcastArguments(c *Call) bool {
	t, size := c.Type("T"), [4]int{int(c.Int(3)), int(c.Int(4)), int(c.Int(5)), int(c.Int(6))}
	n := c.Product(size[:]...)
	if n == 0 {
		return false
	}
	for i := range 2 {
		last := 0
		for j, s := range size {
			last += c.Product(s-1, int(c.Int(7+4*i+j)))
		}
		needAll(c, t, last+1, i)
	}
	needAll(c, t, n, 2)
	return true
}

// refArith computes out = a op b. The kernel's name says which operand is a scalar and
// whether both are broadcast.
func refArith(c *Call) error {
	t := c.Type("T")
	op, broadcast, scalar := arithForm(c.Kernel)
	n, at := int(c.Int(3)), func(_, i int) int { return i }
	if broadcast {
		n, at = refBroadcast(c)
	}
	if IsFloat(t) {
		refArithFloat(c, t, op, n, scalar, at)
	} else {
		refArithInt(c, t, op, n, scalar, at)
	}
	return nil
}

// refBroadcast returns the number of elements n of the result, and a function that gives the index in
// operand 0 or 1 for element i of the result.
func refBroadcast(c *Call) (n int, at func(operand, i int) int) {
	v := make([]int, 12)
	for j := range v {
		v[j] = int(c.Int(3 + j))
	}
	d, strides := v[:4], [2][]int{v[4:8], v[8:]}
	return d[0] * d[1] * d[2] * d[3], func(operand, i int) (place int) {
		for j := 3; j >= 0; j-- {
			place += i % d[j] * strides[operand][j]
			i /= d[j]
		}
		return place
	}
}

func refArithFloat(c *Call, t, op string, n, scalar int, at func(operand, i int) int) {
	var ab [2][]float64
	for k := range ab {
		ab[k] = make([]float64, n)
		if k == scalar {
			floats.AddConst(c.Float(k), ab[k])
			continue
		}
		get := c.Get(k, t)
		for i := range n {
			ab[k][i] = get(at(k, i))
		}
	}
	a, b := ab[0], ab[1]
	switch op {
	case "add":
		floats.Add(a, b)
	case "sub":
		floats.Sub(a, b)
	case "mul":
		floats.Mul(a, b)
	case "div":
		floats.Div(a, b)
	}
	refWrite(c.Set(2, t), a)
}

func refArithInt(c *Call, t, op string, n, scalar int, at func(operand, i int) int) {
	var get [2]func(i int) *big.Int
	for k := range get {
		if k == scalar {
			get[k] = func(int) *big.Int { return refScalarInt(c, k) }
			continue
		}
		read := refGetInt(c, k, t)
		get[k] = func(i int) *big.Int { return read(at(k, i)) }
	}
	results := make([]*big.Int, n)
	for i := range results {
		a, b, z := get[0](i), get[1](i), new(big.Int)
		switch op {
		case "add":
			z.Add(a, b)
		case "sub":
			z.Sub(a, b)
		case "mul":
			z.Mul(a, b)
		}
		results[i] = z
	}
	set := refSetInt(c, 2, t)
	for i, z := range results {
		set(i, z)
	}
}
