package expr

// The evaluation in float64, with which the results of all others are compared, and the bound of the error that a
// device may make.

import (
	"math"
	"math/bits"

	"github.com/concord-compute/concord/internal/precise"
)

// Value is a number of any type: Float if the type is a floating one, and otherwise Int. Int is extended to 64
// bits, with its sign if the type is signed; a Bool is 0 or 1. The number of a device may differ from this one
// by at most Bound.
type Value struct {
	Float float64
	Int   uint64
	Bound float64
}

// Eval computes the outputs of one element in float64, each operation rounded to its type, with bounds of what a
// device may compute. inputs and params have a value for each slot, index is the element's position. An output of 16
// bits is not rounded to them yet.
//
// A map with reductions is computed for a row of one element.
//
// The bound is composed of those of the operations. A monotonic function is computed at both ends of an inexact
// operand. A comparison that the bounds of its operands leave open is taken to be either.
func (m *Map) Eval(inputs, params []Value, index int64) []Value {
	e := evaluation{m: m, values: make([]Value, len(m.nodes))}
	e.row(1, func(int) []Value { return inputs }, params, index)
	out := make([]Value, len(m.outputs))
	for i, o := range m.outputs {
		out[i] = e.values[o.node]
	}
	return out
}

// evaluation keeps the memory of Eval from one element to the next.
type evaluation struct {
	m      *Map
	values []Value
	length int // of a row
}

// row computes the reductions of a row of n elements, the nodes with one value for it, and the last of its
// elements. load returns the inputs of an element, first is the position of the first one.
func (e *evaluation) row(n int, load func(j int) []Value, params []Value, first int64) {
	e.length = n
	for level := range e.m.levels {
		_, reductions := e.m.operandsOf(level + 1)
		sums := make([]total, len(reductions))
		for j := range n {
			e.run(load(j), params, first+int64(j), level)
			for k, i := range reductions {
				r := &e.m.nodes[i]
				sums[k].add(r, e.m.nodes[r.args[0]].typ, e.values[r.args[0]])
			}
		}
		for k, i := range reductions {
			e.values[i] = sums[k].value(&e.m.nodes[i])
		}
	}
	last := make([]Value, len(e.m.inputs))
	if n > 0 {
		last = load(n - 1)
	}
	e.run(last, params, first+int64(n)-1, e.m.levels)
}

// run computes the nodes up to a level for one element. The results of reductions are among the values.
func (e *evaluation) run(inputs, params []Value, index int64, level int) {
	for i := range e.m.nodes {
		n := &e.m.nodes[i]
		if e.m.level[i] > level || n.op.reduces() {
			continue
		}
		switch n.op {
		case opInput:
			e.values[i] = flushable(n.typ, inputs[n.slot])
		case opParam:
			e.values[i] = flushable(n.typ, params[n.slot])
		case opConst:
			e.values[i] = constant(n)
		case opIndex:
			e.values[i] = Value{Int: uint64(index)}
		case opLength:
			e.values[i] = Value{Int: uint64(e.length)}
		case opRandom:
			words := philox(e.values[n.args[0]].Int, uint64(index), uint32(n.bits>>2))
			e.values[i] = Value{Int: uint64(words[n.bits&3])}
		default:
			var args [3]Value
			for j, a := range n.args[:ops[n.op].arity] {
				args[j] = e.values[a]
			}
			from := e.m.nodes[n.args[max(ops[n.op].arity-1, 0)]].typ
			e.values[i] = compute(n, from, &args)
		}
	}
}

// constant is the value of a number.
func constant(n *node) Value { return flushable(n.typ, valueOf(n.typ, n.bits)) }

// smallest and largest are the ends of the normal numbers of a floating type, and unit is half a unit in the last
// place of 1; of double twice that, since there Eval errs as much as a device.
func smallest(t Type) float64 {
	if t == F64 {
		return 0x1p-1022
	}
	return 0x1p-126
}

func largest(t Type) float64 {
	if t == F64 {
		return math.MaxFloat64
	}
	return math.MaxFloat32
}

func unit(t Type) float64 {
	if t == F64 {
		return 0x1p-52
	}
	return 0x1p-24
}

// flushable returns v with a bound that includes 0 if v is denormal, since a device may flush it to zero.
func flushable(t Type, v Value) Value {
	if t.IsFloat() && v.Float != 0 && math.Abs(v.Float) < smallest(t) {
		v.Bound = max(v.Bound, math.Abs(v.Float))
	}
	return v
}

// rounded returns x rounded to a floating type. Its bound is made of e, the bound before the rounding, and of ulp, the
// error of the function in units in the last place; 0 means that the function is correctly rounded.
func rounded(t Type, x, e, ulp float64) Value {
	y := x
	if t == F32 {
		y = float64(float32(x))
	}
	if e != e { // a difference of infinities
		e = math.Inf(1)
	}
	if y != y {
		if e > 0 {
			return Value{Float: y, Bound: math.Inf(1)}
		}
		return Value{Float: y}
	}
	if ulp > 0 {
		e += 2 * ulp * unit(t) * math.Abs(x)
	}
	if e > 0 { // this result is rounded, and so is the device's, which may differ from it already
		e += 2 * unit(t) * (math.Abs(x) + e)
		if e != e || math.IsInf(y, 0) && !math.IsInf(x, 0) || math.Abs(y)+e > largest(t) {
			e = math.Inf(1)
		}
	}
	if tiny := smallest(t); math.Abs(x)-e < tiny && (x != 0 || e > 0) {
		e += tiny // the result may be flushed to zero
	}
	return Value{Float: y, Bound: e}
}

// monotonic returns f(x) for a function f that is monotonic within the bound of x.
func monotonic(t Type, f func(float64) float64, x Value, ulp float64) Value {
	y := f(x.Float)
	if x.Bound == 0 {
		return rounded(t, y, 0, ulp)
	}
	lo, hi := f(x.Float-x.Bound), f(x.Float+x.Bound)
	return rounded(t, y, farther(y, lo, hi), ulp)
}

// gelu returns GELU of x, whose error is that of erfc and of its operand z, a small error of which is
// multiplied by 2z² at most.
func gelu(t Type, x Value, ulp float64) Value {
	const least, at = -0.16997120747990369, -0.75179 // of the function, and where that is
	f := precise.GELU
	y, z, e := f(x.Float), max(-x.Float*(math.Sqrt2/2), 0), 0.0
	if x.Bound > 0 {
		lo, hi := x.Float-x.Bound, x.Float+x.Bound
		e = farther(y, f(lo), f(hi))
		if lo <= at && at <= hi {
			e = max(e, y-least)
		}
	}
	if half := math.Abs(x.Float) / 2; half > 1 && math.Abs(y) <= 2*half*smallest(t) { // erfc may be flushed to zero
		e += half * smallest(t)
	}
	return rounded(t, y, e, ulp+2*z*z)
}

// farther returns the distance of y from the farther of two ends.
func farther(y, lo, hi float64) float64 {
	if lo == y && hi == y {
		return 0
	}
	if e := max(math.Abs(lo-y), math.Abs(hi-y)); e == e {
		return e
	}
	return math.Inf(1)
}

// compute returns the result of one operation on numbers. from is the type of its last operand.
func compute(n *node, from Type, args *[3]Value) Value {
	v := bounded(n, from, args)
	if n.typ.IsFloat() && n.op != Select {
		for _, a := range args { // a value without a bound may be a NaN
			if math.IsInf(a.Bound, 1) {
				v.Bound = a.Bound
			}
		}
	}
	return v
}

// bounded is compute for operands whose bounds are finite.
func bounded(n *node, from Type, args *[3]Value) Value {
	a, b, c := args[0], args[1], args[2]
	switch n.op {
	case Select:
		chosen, other := c, b
		if a.Int != 0 {
			chosen, other = b, c
		}
		if a.Bound > 0 {
			chosen.Bound = max(chosen.Bound, distance(n.typ, chosen, other)+other.Bound)
		}
		return chosen
	case Cast:
		return cast(n.typ, from, a)
	case Bits:
		return reinterpret(n.typ, from, a)
	case opOdd:
		return odd(from, a)
	}
	if from.IsFloat() {
		return computeFloat(n, from, a, b, c)
	}
	return computeInt(n, from, a, b)
}

// distance returns how far apart two values may be; it is infinite if only one of them is a NaN.
func distance(t Type, a, b Value) float64 {
	d := 0.0
	if t.IsFloat() {
		if a.Float == b.Float || a.Float != a.Float && b.Float != b.Float {
			return 0
		}
		d = math.Abs(a.Float - b.Float)
	} else if a.Int != b.Int {
		d = math.Abs(asFloat(t, a.Int) - asFloat(t, b.Int))
		d = max(d, 1)
	}
	if d != d {
		return math.Inf(1)
	}
	return d
}

// asFloat returns an integer as a float64, rounded to nearest even.
func asFloat(t Type, x uint64) float64 {
	if t.IsSigned() {
		return float64(int64(x))
	}
	return float64(x)
}

func computeFloat(n *node, t Type, a, b, c Value) Value {
	x, y := a.Float, b.Float
	e := a.Bound + b.Bound
	ulp, f := ops[n.op].ulp, ops[n.op].f
	switch n.op {
	case Neg:
		return Value{Float: -x, Bound: a.Bound}
	case Abs:
		return Value{Float: math.Abs(x), Bound: a.Bound}
	case CopySign:
		v := Value{Float: math.Copysign(x, y), Bound: a.Bound}
		if x == x && (b.Bound >= math.Abs(y) && b.Bound > 0 || y != y) { // devices differ in the sign of a NaN
			v.Bound += 2 * math.Abs(x)
		}
		return v
	case IsNaN:
		return truthValue(x != x, math.IsInf(a.Bound, 1))
	case Floor, Ceil, Trunc, Round:
		if a.Bound == 0 {
			return Value{Float: f(x)}
		}
		return Value{Float: f(x), Bound: farther(f(x), f(x-a.Bound), f(x+a.Bound))}
	case Sin, Cos:
		return rounded(t, f(x), min(a.Bound, 2), ulp)
	case Tan:
		if a.Bound > 0 && math.Floor((x-a.Bound)/math.Pi+0.5) != math.Floor((x+a.Bound)/math.Pi+0.5) {
			return Value{Float: f(x), Bound: math.Inf(1)}
		}
		return monotonic(t, f, a, ulp)
	case Cosh:
		v := monotonic(t, f, a, ulp)
		if a.Bound > math.Abs(x) {
			v.Bound += v.Float - 1
		}
		return v
	case GELU:
		return gelu(t, a, ulp)
	case Add, Sub:
		if n.op == Sub {
			y = -y
		}
		return rounded(t, x+y, uncertain(e, a, b), 0)
	case Mul:
		return rounded(t, x*y, uncertain(product(a, b), a, b), 0)
	case FMA:
		z := math.FMA(x, y, c.Float)
		if t == F32 { // rounded once
			z = float64(fused(float32(x), float32(y), float32(c.Float)))
		}
		return rounded(t, z, uncertain(product(a, b)+c.Bound, a, b, c), 0)
	case Div:
		if t == F64 {
			ulp = 0
		}
		if e == 0 {
			return rounded(t, x/y, 0, ulp)
		}
		if x != x || y != y {
			return rounded(t, x/y, uncertain(e, a, b), ulp)
		}
		if math.Abs(y) <= b.Bound {
			return Value{Float: x / y, Bound: math.Inf(1)}
		}
		return rounded(t, x/y, (a.Bound+math.Abs(x/y)*b.Bound)/(math.Abs(y)-b.Bound), ulp)
	case Rem:
		v := Value{Float: math.Mod(x, y)}
		if e > 0 && x == x && y == y {
			v.Bound = 2*math.Abs(y) + e
			if math.IsInf(y, 0) || v.Float != v.Float || math.Abs(y) <= b.Bound {
				v.Bound = math.Inf(1)
			}
		}
		return flushable(t, v)
	case Min, Max:
		first := x < y
		if n.op == Max {
			first = x > y
		}
		if first || x != x {
			a.Bound = max(a.Bound, b.Bound)
			return a
		}
		b.Bound = max(a.Bound, b.Bound)
		return b
	case Pow:
		return power(t, a, b, ulp)
	case Atan2:
		if e == 0 {
			return rounded(t, precise.Atan2(x, y), 0, ulp)
		}
		r := math.Hypot(x, y)
		if e >= r || y < b.Bound && math.Abs(x) <= a.Bound {
			return Value{Float: precise.Atan2(x, y), Bound: 2 * math.Pi}
		}
		return rounded(t, precise.Atan2(x, y), e/(r-e), ulp)
	case Eq, Ne, Lt, Le:
		return compare(n.op, x == y, x < y, x != x || y != y, math.Abs(x-y) <= e && e > 0 || math.IsInf(e, 1))
	}
	return monotonic(t, f, a, ulp)
}

// uncertain returns e, the bound of a result of those operands, or 0 if an operand is surely a NaN, as the result then
// is.
func uncertain(e float64, operands ...Value) float64 {
	for _, v := range operands {
		if v.Float != v.Float && v.Bound == 0 {
			return 0
		}
	}
	return e
}

// product returns the largest error of a·b that the bounds of a and b allow.
func product(a, b Value) float64 {
	e := 0.0
	if b.Bound > 0 {
		e += math.Abs(a.Float) * b.Bound
	}
	if a.Bound > 0 {
		e += math.Abs(b.Float)*a.Bound + a.Bound*b.Bound
	}
	if e != e {
		return math.Inf(1)
	}
	return e
}

// power tries the corners, between which a power of a positive number is monotonic.
func power(t Type, a, b Value, ulp float64) Value {
	y := precise.Pow(a.Float, b.Float)
	if a.Bound == 0 && b.Bound == 0 {
		return rounded(t, y, 0, ulp)
	}
	if a.Float-a.Bound <= 0 {
		return Value{Float: y, Bound: math.Inf(1)}
	}
	e := 0.0
	for _, x := range []float64{a.Float - a.Bound, a.Float + a.Bound} {
		e = max(e, farther(y, precise.Pow(x, b.Float-b.Bound), precise.Pow(x, b.Float+b.Bound)))
	}
	return rounded(t, y, e, ulp)
}

func truthValue(b, either bool) Value {
	v := Value{Int: truthBits(b)}
	if either {
		v.Bound = 1
	}
	return v
}

// compare returns the result of a comparison whose operands are equal, in ascending order, not comparable, or so close
// that their bounds leave the result open.
func compare(op Op, equal, less, unordered, close bool) Value {
	switch op {
	case Eq:
		return truthValue(equal, close)
	case Ne:
		return truthValue(!equal, close)
	case Lt:
		return truthValue(less, close)
	}
	return truthValue(!unordered && (less || equal), close)
}

func computeInt(n *node, t Type, a, b Value) Value {
	x, y := a.Int, b.Int
	if t == Bool && n.op == Not {
		return Value{Int: x ^ 1, Bound: a.Bound}
	}
	less := x < y
	if t.IsSigned() {
		less = int64(x) < int64(y)
	}
	e := a.Bound + b.Bound
	var z uint64
	switch n.op {
	case Neg:
		z = -x
	case Abs:
		if z = x; t.IsSigned() && int64(x) < 0 {
			z = -x
		}
	case Not:
		z = ^x
	case Add:
		z = x + y
	case Sub:
		z = x - y
	case Mul:
		z = x * y
	case Div, Rem:
		z = divide(n.op, t, x, y)
	case Min, Max:
		if z = y; less == (n.op == Min) {
			z = x
		}
		return Value{Int: z, Bound: max(a.Bound, b.Bound)}
	case And:
		z = x & y
	case Or:
		z = x | y
	case Xor:
		z = x ^ y
	case Shl:
		z = x << (y & uint64(8*t.Size()-1))
	case Shr:
		if count := y & uint64(8*t.Size()-1); t.IsSigned() {
			z = uint64(int64(x) >> count)
		} else {
			z = x >> count
		}
	case Eq, Ne, Lt, Le:
		return compare(n.op, x == y, less, false, e > 0 && distance(t, a, b) <= e)
	}
	v := Value{Int: wrap(t, z)}
	switch {
	case e == 0:
	case t == Bool:
		v.Bound = 1
	default:
		v.Bound = math.Inf(1) // the device's number may have wrapped, or may differ in any bit
	}
	return v
}

// divide returns the quotient of x and y, or the remainder if op is Rem.
func divide(op Op, t Type, x, y uint64) uint64 {
	switch {
	case y == 0:
		return 0
	case !t.IsSigned() && op == Div:
		return x / y
	case !t.IsSigned():
		return x % y
	case int64(y) == -1 && op == Div: // the negative of the smallest number is out of range
		return -x
	case int64(y) == -1:
		return 0
	case op == Div:
		return uint64(int64(x) / int64(y))
	}
	return uint64(int64(x) % int64(y))
}

// cast converts a value to another type.
func cast(to, from Type, a Value) Value {
	switch {
	case from.IsFloat() && to.IsFloat():
		return rounded(to, a.Float, a.Bound, 0)
	case from.IsFloat():
		x := truncate(to, a.Float)
		v := Value{Int: x}
		if a.Bound > 0 {
			v.Bound = farther(asFloat(to, x), asFloat(to, truncate(to, a.Float-a.Bound)),
				asFloat(to, truncate(to, a.Float+a.Bound)))
		}
		return v
	case to.IsFloat():
		x := asFloat(from, a.Int)
		if to == F32 { // rounded once
			x = float64(float32(a.Int))
			if from.IsSigned() {
				x = float64(float32(int64(a.Int)))
			}
		}
		v := Value{Float: x, Bound: a.Bound}
		if a.Bound > 0 {
			v.Bound += 2 * unit(to) * (math.Abs(x) + a.Bound)
		}
		return v
	}
	v := Value{Int: saturate(to, from, a.Int), Bound: a.Bound}
	return v
}

// odd rounds a value to a float to odd.
func odd(from Type, a Value) Value {
	x := a.Float
	if !from.IsFloat() {
		x = oddFloat(from, a.Int)
	}
	v := rounded(F32, x, a.Bound, 0)
	if v.Float = float64(oddFloat32(x)); a.Bound > 0 { // each of both numbers is rounded in either direction
		v.Bound += 4 * unit(F32) * math.Abs(x)
	}
	return v
}

// oddFloat returns an integer as a float64, rounded to odd.
func oddFloat(t Type, x uint64) float64 {
	if t.IsSigned() && int64(x) < 0 {
		return -oddFloat(U64, -x)
	}
	drop := max(bits.Len64(x)-53, 0)
	if lost := x & (1<<drop - 1); lost != 0 {
		x = x&^lost | 1<<drop
	}
	return float64(x)
}

// oddFloat32 returns x as a float32, rounded to odd.
func oddFloat32(x float64) float32 {
	f := float32(x)
	back, b := float64(f), math.Float32bits(f)
	switch {
	case back == x || x != x || math.IsInf(back, 0) || b&1 == 1:
		return f
	case math.Abs(back) > math.Abs(x):
		return math.Float32frombits(b - 1)
	}
	return math.Float32frombits(b + 1)
}

// ends returns the smallest and the largest number of an integer type.
func ends(t Type) (lo int64, hi uint64) {
	n := uint(8 * t.Size())
	if t.IsSigned() {
		return -1 << (n - 1), 1<<(n-1) - 1
	}
	return 0, math.MaxUint64 >> (64 - n)
}

// truncate returns the integer of a type that is nearest to the whole part of x.
func truncate(t Type, x float64) uint64 {
	lo, hi := ends(t)
	switch {
	case x != x:
		return 0
	case x <= float64(lo):
		return uint64(lo)
	case x >= float64(hi): // float64(hi) is 2^63 or 2^64, one more than hi
		return hi
	case x < 0:
		return uint64(int64(x))
	}
	return uint64(x)
}

// saturate returns the integer of type to that is nearest to x, an integer of type from.
func saturate(to, from Type, x uint64) uint64 {
	lo, hi := ends(to)
	if from.IsSigned() && int64(x) < 0 {
		if int64(x) < lo {
			return uint64(lo)
		}
		return x
	}
	return min(x, hi)
}

// reinterpret returns the value that has the same bits in another type.
func reinterpret(to, from Type, a Value) Value {
	v := valueOf(to, elementBits(from, a))
	if a.Bound > 0 || a.Float != a.Float { // devices differ in the bits of a NaN
		v.Bound = math.Inf(1)
	}
	return flushable(to, v)
}

// philox computes Philox4x32-10: four words of 32 random bits.
func philox(seed, counter uint64, stream uint32) [4]uint32 {
	c := [4]uint32{uint32(counter), uint32(counter >> 32), stream, 0}
	k0, k1 := uint32(seed), uint32(seed>>32)
	for range 10 {
		hi0, lo0 := bits.Mul32(0xD2511F53, c[0])
		hi1, lo1 := bits.Mul32(0xCD9E8D57, c[2])
		c = [4]uint32{hi1 ^ c[1] ^ k0, lo1, hi0 ^ c[3] ^ k1, lo0}
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	return c
}
