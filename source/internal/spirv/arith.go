package spirv

// Arithmetic on scalars as they are held, and conversions between kinds.

import (
	"math"
	"math/bits"

	"github.com/concord-compute/concord/source/internal/spirv/module"
	"github.com/concord-compute/concord/source/internal/tree"
)

// op writes an instruction with two operands of a kind, with a result of that kind.
func (f *function) op(op module.Op, k tree.Kind, a, b id) id {
	return f.f.Emit(op, f.kindType(k), a, b)
}

// add adds addresses or indices. Constants are added here.
func (f *function) add(k tree.Kind, a, b id) id {
	x, okA := f.b.Value(a)
	y, okB := f.b.Value(b)
	switch {
	case okA && okB:
		return f.constant(k, x+y)
	case okA && x == 0:
		return b
	case okB && y == 0:
		return a
	}
	return f.op(module.OpIAdd, k, a, b)
}

// mul multiplies an index by a constant.
func (f *function) mul(k tree.Kind, a id, by int) id {
	x, ok := f.b.Value(a)
	switch {
	case ok:
		return f.constant(k, x*uint64(by))
	case by == 1:
		return a
	case by > 0 && by&(by-1) == 0:
		return f.shift(module.OpShiftLeftLogical, k, a, bits.TrailingZeros(uint(by)))
	}
	return f.op(module.OpIMul, k, a, f.constant(k, uint64(by)))
}

// shift shifts by a constant.
func (f *function) shift(op module.Op, k tree.Kind, a id, by int) id {
	if by == 0 {
		return a
	}
	if x, ok := f.b.Value(a); ok && op != module.OpShiftRightArithmetic {
		if op == module.OpShiftLeftLogical {
			return f.constant(k, x<<by)
		}
		return f.constant(k, x>>by)
	}
	return f.op(op, k, a, f.uint(by))
}

// choose writes c ? a : b.
func (f *function) choose(k tree.Kind, c, a, b id) id {
	switch {
	case f.b.IsTruth(c, true):
		return a
	case f.b.IsTruth(c, false):
		return b
	}
	return f.f.Emit(module.OpSelect, f.kindType(k), c, a, b)
}

// test writes a comparison of two values.
func (f *function) test(op module.Op, a, b id) id { return f.f.Emit(op, f.b.Bool(), a, b) }

// exactTest compares floating numbers. Drivers take a < b ? b : a for a maximum, which confuses zeros, unless told.
func (f *function) exactTest(op module.Op, a, b id) id {
	r := f.test(op, a, b)
	f.b.Decorate(r, module.NoContraction)
	return r
}

// exact writes an operation on floating numbers that must not be contracted with another.
func (f *function) exact(op module.Op, k tree.Kind, a, b id) id {
	r := f.op(op, k, a, b)
	f.b.Decorate(r, module.NoContraction)
	return r
}

// narrow extends the low bits of a word to the value of kind k, which has at most 32 bits.
func (f *function) narrow(v id, k tree.Kind) id {
	if c, ok := f.b.Value(v); ok {
		return f.constantOf(tree.BitsValue(k, c))
	}
	switch k {
	case tree.Char, tree.Short:
		return f.f.Emit(module.OpBitFieldSExtract, f.b.Int(32), v, f.uint(0), f.uint(8*tree.KindSize(k)))
	case tree.UChar, tree.Half:
		return f.op(module.OpBitwiseAnd, tree.UInt, v, f.uint(1<<(8*tree.KindSize(k))-1))
	case tree.UShort:
		return f.op(module.OpBitwiseAnd, tree.UInt, v, f.uint(1<<16-1))
	}
	return v
}

// isTrue returns the condition that a scalar of kind k is not zero.
func (f *function) isTrue(v id, k tree.Kind) id {
	switch {
	case isFloating(k):
		return f.test(module.OpFUnordNotEqual, v, f.constant(k, 0))
	case k == tree.Half:
		v = f.op(module.OpBitwiseAnd, tree.UInt, v, f.uint(1<<15-1))
	}
	return f.test(module.OpINotEqual, v, f.constant(k, 0))
}

// fromCondition returns a condition as an integer of kind k: yes or 0.
func (f *function) fromCondition(c id, k tree.Kind, yes int64) id {
	v := tree.IntValue(k, yes)
	return f.choose(k, c, f.constantOf(v), f.constant(k, 0))
}

// convert converts a scalar as C does: to nearest for floating results, towards zero for integers.
func (f *function) convert(v id, from, to tree.Kind) id {
	if from == to {
		return v
	}
	if c, ok := f.b.Value(v); ok && tree.IsIntKind(from) && tree.IsIntKind(to) {
		if r := tree.BitsValue(from, c).Convert(tree.Scalar(to)); r.OK {
			return f.constantOf(r)
		}
	}
	switch {
	case to == tree.Bool:
		return f.fromCondition(f.isTrue(v, from), to, 1)
	case from == tree.Half:
		return f.convert(f.fromHalf(v), tree.Float, to)
	case to == tree.Half && from == tree.Double:
		return f.callLibrary("cc_double_to_half", tree.Half, v)
	case to == tree.Half:
		return f.toHalf(f.convert(v, from, tree.Float))
	case isFloating(from) && isFloating(to):
		return f.f.Emit(module.OpFConvert, f.kindType(to), v)
	case isFloating(from):
		return f.floatToInt(v, to)
	case isFloating(to):
		op := module.OpConvertUToF
		if isSigned(from) {
			op = module.OpConvertSToF
		}
		return f.f.Emit(op, f.kindType(to), v)
	case isWide(to) && isWide(from):
		return v
	case isWide(to) && isSigned(from): // Mesa 22.3 compares an OpSConvert with a constant wrongly
		return f.joined(to, v, f.op(module.OpShiftRightArithmetic, tree.UInt, v, f.uint(31)))
	case isWide(to):
		return f.f.Emit(module.OpUConvert, f.kindType(to), v)
	case isWide(from):
		return f.narrow(f.f.Emit(module.OpUConvert, f.b.Int(32), v), to)
	case fits(from, to):
		return v
	}
	return f.narrow(v, to)
}

// fits reports whether every value of a kind of at most 32 bits is held in the same way as another kind.
func fits(from, to tree.Kind) bool {
	a, b := tree.KindSize(from), tree.KindSize(to)
	return b == 4 || from == tree.Bool || a < b && (!isSigned(from) || isSigned(to))
}

// floatToInt converts a float or double towards zero. Small integers wrap, as on the host.
func (f *function) floatToInt(v id, to tree.Kind) id {
	if tree.KindSize(to) < 4 {
		return f.narrow(f.f.Emit(module.OpConvertFToS, f.b.Int(32), v), to)
	}
	op := module.OpConvertFToU
	if isSigned(to) {
		op = module.OpConvertFToS
	}
	return f.f.Emit(op, f.kindType(to), v)
}

// fromHalf returns the float with the value of a half.
func (f *function) fromHalf(v id) id {
	if c, ok := f.b.Value(v); ok {
		return f.constantOf(tree.BitsValue(tree.Half, c).Convert(tree.FloatType))
	}
	pair := f.f.Ext(module.UnpackHalf2x16, f.b.Vector(f.b.Float(32), 2), v)
	return f.f.Emit(module.OpCompositeExtract, f.b.Float(32), pair, 0)
}

// toHalf rounds a float to half.
func (f *function) toHalf(v id) id { return f.callLibrary("cc_float_to_half", tree.Half, v) }

// unary evaluates + - ~ on a scalar of kind k.
func (f *function) unary(op string, k tree.Kind, v id) id {
	switch {
	case op == "+":
		return v
	case op == "~":
		return f.narrow(f.f.Emit(module.OpNot, f.kindType(k), v), k)
	case isFloating(k):
		if c, ok := f.b.Value(v); ok {
			return f.constant(k, c^1<<(8*tree.KindSize(k)-1))
		}
		return f.f.Emit(module.OpFNegate, f.kindType(k), v)
	case k == tree.Half:
		return f.op(module.OpBitwiseXor, tree.UInt, v, f.uint(1<<15))
	}
	if c, ok := f.b.Value(v); ok {
		return f.constantOf(tree.BitsValue(k, -c))
	}
	return f.narrow(f.f.Emit(module.OpSNegate, f.kindType(k), v), k)
}

var floatOps = map[string]module.Op{"+": module.OpFAdd, "-": module.OpFSub, "*": module.OpFMul}

var intOps = map[string]module.Op{"+": module.OpIAdd, "-": module.OpISub, "*": module.OpIMul, "&": module.OpBitwiseAnd,
	"|": module.OpBitwiseOr, "^": module.OpBitwiseXor}

// binary evaluates + - * / % & | ^ << >> on scalars of kind k.
func (f *function) binary(op string, k tree.Kind, a, b id) id {
	switch {
	case k == tree.Half:
		return f.toHalf(f.binary(op, tree.Float, f.fromHalf(a), f.fromHalf(b)))
	case isFloating(k) && op == "/":
		return f.divide(k, a, b)
	case isFloating(k) && op == "*" && f.isZero(k, b):
		return f.timesZero(k, a, b)
	case isFloating(k) && op == "*" && f.isZero(k, a):
		return f.timesZero(k, b, a)
	case isFloating(k):
		return f.exact(floatOps[op], k, a, b)
	case op == "/" || op == "%":
		return f.quotient(op, k, a, b)
	case op == "<<" || op == ">>":
		return f.shifted(op, k, a, b)
	case op == "+" && tree.KindSize(k) >= 4:
		return f.add(k, a, b)
	}
	return f.narrow(f.op(intOps[op], k, a, b), k)
}

// isZero reports whether a floating number is a constant zero.
func (f *function) isZero(k tree.Kind, v id) bool {
	c, ok := f.b.Value(v)
	return ok && tree.BitsValue(k, c).IsZero()
}

// timesZero writes a * zero. Drivers (Mesa 22.3) make it 0 if a is an integer that was converted, whatever its sign.
func (f *function) timesZero(k tree.Kind, a, zero id) id { // infinities and NaNs become NaN
	bits, infinity := tree.UInt, uint64(0x7f800000)
	if k == tree.Double {
		bits, infinity = tree.ULong, 0x7ff0000000000000
	}
	sign := uint64(1) << (8*tree.KindSize(k) - 1)
	held := f.bitcast(a, k, bits)
	c, _ := f.b.Value(zero)
	signed := f.op(module.OpBitwiseXor, bits, held, f.constant(bits, c))
	signed = f.op(module.OpBitwiseAnd, bits, signed, f.constant(bits, sign))
	size := f.op(module.OpBitwiseAnd, bits, held, f.constant(bits, sign-1))
	finite := f.test(module.OpULessThan, size, f.constant(bits, infinity))
	return f.choose(k, finite, f.bitcast(signed, bits, k), f.constant(k, infinity|infinity>>1))
}

// reciprocal returns 1/b if b is a constant power of two whose reciprocal is one, too, so that a product with it is
// the quotient.
func (f *function) reciprocal(k tree.Kind, b id) (id, bool) {
	c, ok := f.b.Value(b)
	if !ok {
		return 0, false
	}
	v := tree.BitsValue(k, c).Float()
	frac, exp := math.Frexp(math.Abs(v))
	return f.constantOf(tree.FloatValue(k, 1/v)), frac == 0.5 && exp > -100 && exp < 100
}

// divide writes a quotient of floating numbers. In the library's own functions it is what the device has.
func (f *function) divide(k tree.Kind, a, b id) id {
	if by, ok := f.reciprocal(k, b); ok {
		return f.exact(module.OpFMul, k, a, by)
	}
	name, fact := "cc_div_f", factDivide
	if k == tree.Double {
		name, fact = "cc_div_d", factDivide64
	}
	if f.isLibrary || !hasLibrary(name) {
		return f.exact(module.OpFDiv, k, a, b)
	}
	return f.either(k, f.fact(fact), func() id { return f.exact(module.OpFDiv, k, a, b) },
		func() id { return f.callLibrary(name, k, a, b) })
}

// fact returns the condition that the device has a property.
func (f *function) fact(n int) id {
	return f.test(module.OpINotEqual, f.op(module.OpBitwiseAnd, tree.UInt, f.facts, f.uint(1<<n)), f.uint(0))
}

// either evaluates yes or no.
func (f *function) either(k tree.Kind, cond id, yes, no func() id) id {
	to := f.f.Variable(f.kindType(k))
	f.branch(cond, func() { f.f.Store(to, yes()) }, func() { f.f.Store(to, no()) })
	return f.f.Load(f.kindType(k), to)
}

// branch executes yes or no, which may be nil.
func (f *function) branch(cond id, yes, no func()) {
	a, b, end := f.b.NewID(), f.b.NewID(), f.b.NewID()
	if no == nil {
		b = end
	}
	f.f.BranchTo(end, cond, a, b)
	f.f.Label(a)
	yes()
	f.f.Branch(end)
	if no != nil {
		f.f.Label(b)
		no()
		f.f.Branch(end)
	}
	f.f.Merge(end)
}

// quotient writes / and % of integers. The least integer by -1 wraps, which instructions do not.
func (f *function) quotient(op string, k tree.Kind, a, b id) id {
	if !isSigned(k) {
		if op == "%" {
			return f.op(module.OpUMod, k, a, b)
		}
		return f.op(module.OpUDiv, k, a, b)
	}
	var q id
	if c, ok := f.b.Value(b); ok && tree.BitsValue(k, c).Int() != -1 {
		q = f.op(module.OpSDiv, k, a, b)
	} else {
		minus := f.test(module.OpIEqual, b, f.constantOf(tree.IntValue(k, -1)))
		q = f.op(module.OpSDiv, k, a, f.choose(k, minus, f.constant(k, 1), b))
		q = f.choose(k, minus, f.f.Emit(module.OpSNegate, f.kindType(k), a), q)
	}
	if op == "%" { // the remainder of a negative number is poison in SPIR-V
		q = f.op(module.OpISub, k, a, f.op(module.OpIMul, k, q, b))
	}
	return f.narrow(q, k)
}

// shifted shifts a by a count of kind k, of which only the bits count that the width of a needs.
func (f *function) shifted(op string, k tree.Kind, a, count id) id {
	mask := uint64(8*tree.KindSize(k) - 1)
	if c, ok := f.b.Value(count); ok {
		count = f.constant(k, c&mask)
	} else {
		count = f.op(module.OpBitwiseAnd, k, count, f.constant(k, mask))
	}
	switch {
	case op == "<<":
		return f.narrow(f.op(module.OpShiftLeftLogical, k, a, count), k)
	case isSigned(k):
		return f.op(module.OpShiftRightArithmetic, k, a, count)
	}
	return f.op(module.OpShiftRightLogical, k, a, count)
}

// number returns the value of a floating constant. What is known is compared here: lavapipe's compiler takes
// max(-1.0f, 0.0f) for -0.
func (f *function) number(k tree.Kind, v id) (x float64, ok bool) {
	bits, ok := f.b.Value(v)
	switch {
	case k == tree.Float:
		return float64(math.Float32frombits(uint32(bits))), ok
	case k == tree.Double:
		return math.Float64frombits(bits), ok
	}
	return 0, false
}

// holds evaluates a comparison.
func holds(op string, x, y float64) bool {
	switch op {
	case "==":
		return x == y
	case "!=":
		return x != y
	case "<":
		return x < y
	case ">":
		return x > y
	case "<=":
		return x <= y
	}
	return x >= y
}

type compareOps struct{ signed, unsigned, float module.Op }

var comparisons = map[string]compareOps{
	"==": {module.OpIEqual, module.OpIEqual, module.OpFOrdEqual},
	"!=": {module.OpINotEqual, module.OpINotEqual, module.OpFUnordNotEqual},
	"<":  {module.OpSLessThan, module.OpULessThan, module.OpFOrdLessThan},
	">":  {module.OpSGreaterThan, module.OpUGreaterThan, module.OpFOrdGreaterThan},
	"<=": {module.OpSLessThanEqual, module.OpULessThanEqual, module.OpFOrdLessThanEqual},
	">=": {module.OpSGreaterThanEqual, module.OpUGreaterThanEqual, module.OpFOrdGreaterThanEqual},
}

// compare returns the condition of a comparison of scalars of kind k.
func (f *function) compare(op string, k tree.Kind, a, b id) id {
	ops := comparisons[op]
	if x, ok := f.number(k, a); ok {
		if y, ok := f.number(k, b); ok {
			return f.b.Truth(holds(op, x, y))
		}
	}
	switch {
	case k == tree.Half:
		return f.exactTest(ops.float, f.fromHalf(a), f.fromHalf(b))
	case isFloating(k):
		return f.exactTest(ops.float, a, b)
	case isSigned(k):
		return f.test(ops.signed, a, b)
	}
	return f.test(ops.unsigned, a, b)
}
