package cpu

// References of saxpy, fill, copy, cast, transpose, the arithmetic of arrays and the
// activations.

import (
	"math"
	"math/big"
	"strings"

	"gonum.org/v1/gonum/floats"
)

func init() {
	reference("saxpy", "saxpy", refSaxpy)
	reference("fill", "fill", refFill)
	reference("copy", "copy", refCopy)
	reference("cast", "cast", refCast)
	reference("transpose", "transpose", refTranspose)
	for _, op := range []string{"add", "sub", "mul", "div"} {
		reference("arith", op, refArith)
		reference("arith", op+"_scalar", refArith)
		reference("arith", op+"_broadcast", refArith)
	}
	reference("arith", "scalar_sub", refArith)
	reference("arith", "scalar_div", refArith)
	for name, f := range refActivations {
		reference("activation", name, func(c *Call) error { return refActivation(c, f) })
	}
}

// refSaxpy: y = a·x + y.
func refSaxpy(c *Call) error {
	t, n := refType(c, "T"), int(c.Int(3))
	y := refRead(refGet(c, 2, t), 0, n, 1)
	floats.AddScaled(y, c.Float(0), refRead(refGet(c, 1, t), 0, n, 1))
	refWrite(refSet(c, 2, t), y)
	return nil
}

func refWrite(set func(int, float64), x []float64) {
	for i, v := range x {
		set(i, v)
	}
}

// refFill: out[i] = value.
func refFill(c *Call) error {
	t, n := refType(c, "T"), int(c.Int(2))
	if refIsFloat(t) {
		set := refSet(c, 0, t)
		for i := range n {
			set(i, c.Float(1))
		}
		return nil
	}
	set := refSetInt(c, 0, t)
	for i := range n {
		set(i, refScalarInt(c, 1))
	}
	return nil
}

// refCopy: out[i] = in[i], bit for bit.
func refCopy(c *Call) error {
	size := refSize(refType(c, "T"))
	get, set := refGetBits(c, 0, size), refSetBits(c, 1, size)
	for i := range int(c.Int(2)) {
		set(i, get(i))
	}
	return nil
}

// refTranspose: out[c·rows + r] = in[r·cols + c], bit for bit, per matrix.
func refTranspose(c *Call) error {
	size := refSize(refType(c, "T"))
	get, set := refGetBits(c, 0, size), refSetBits(c, 1, size)
	rows, cols := int(c.Int(2)), int(c.Int(3))
	for m := range c.Global[2] {
		for i := range rows {
			for j := range cols {
				set((m*cols+j)*rows+i, get((m*rows+i)*cols+j))
			}
		}
	}
	return nil
}

// refCast rounds each number once: floating types to nearest even, integers toward
// zero, saturating, NaN to 0. Integers are exact numbers on the way.
func refCast(c *Call) error {
	from, to, n := refType(c, "FROM"), refType(c, "TO"), int(c.Int(2))
	switch {
	case refIsFloat(from) && refIsFloat(to):
		get, set := refGet(c, 0, from), refSet(c, 1, to)
		for i := range n {
			set(i, get(i))
		}
	case refIsFloat(from):
		get, set := refGet(c, 0, from), refSetInt(c, 1, to)
		for i := range n {
			set(i, refClamp(refTruncate(get(i)), to))
		}
	case refIsFloat(to):
		get, set := refGetInt(c, 0, from), refSet(c, 1, to)
		for i := range n {
			set(i, refRound(get(i), refDigits(to)))
		}
	default:
		get, set := refGetInt(c, 0, from), refSetInt(c, 1, to)
		for i := range n {
			set(i, refClamp(get(i), to))
		}
	}
	return nil
}

// refTruncate is the integer part of x; beyond all integer types where x is infinite.
func refTruncate(x float64) *big.Int {
	switch {
	case math.IsNaN(x):
		return new(big.Int)
	case math.IsInf(x, 0):
		return new(big.Int).Mul(big.NewInt(int64(math.Copysign(1, x))), new(big.Int).Lsh(big.NewInt(1), 100))
	}
	i, _ := big.NewFloat(x).Int(nil)
	return i
}

// refArith: out = a op b. The kernel's name says which operand is a scalar and
// whether both are broadcast.
func refArith(c *Call) error {
	t := refType(c, "T")
	op := strings.TrimPrefix(c.Kernel, "scalar_")
	op, form, _ := strings.Cut(op, "_")
	left, n, at := strings.HasPrefix(c.Kernel, "scalar_"), 0, func(_, i int) int { return i }
	if form == "broadcast" {
		n, at = refBroadcast(c)
	} else {
		n = int(c.Int(3))
	}
	scalar := -1
	switch {
	case left:
		scalar = 0
	case form == "scalar":
		scalar = 1
	}
	if refIsFloat(t) {
		refArithFloat(c, t, op, n, scalar, at)
	} else {
		refArithInt(c, t, op, n, scalar, at)
	}
	return nil
}

// refBroadcast returns the number of elements of the result, and where operand 0 or
// 1 has the one that belongs to element i.
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
		get := refGet(c, k, t)
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
	refWrite(refSet(c, 2, t), a)
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

// refActivations are the formulas, in the form that does not cancel.
var refActivations = map[string]func(x float64) float64{
	"relu": func(x float64) float64 {
		if x < 0 {
			return 0
		}
		return x
	},
	"sigmoid":  func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	"tanh_act": math.Tanh,
	// x·Φ(x)
	"gelu": func(x float64) float64 { return x * (0.5 * math.Erfc(-x/math.Sqrt2)) },
	// x/2·(1 + tanh u), and 1 + tanh u = 2/(1 + e^-2u)
	"gelu_tanh": func(x float64) float64 {
		u := math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
		return x / (1 + math.Exp(-2*u))
	},
	"swish": func(x float64) float64 { return x / (1 + math.Exp(-x)) },
}

func refActivation(c *Call, f func(float64) float64) error {
	t := refType(c, "T")
	get, set := refGet(c, 0, t), refSet(c, 1, t)
	for i := range int(c.Int(2)) {
		set(i, f(get(i)))
	}
	return nil
}
