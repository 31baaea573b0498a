package gomlx

// Operations on each element by itself.

import (
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/tensor"
)

// unary adds an operation on one operand.
func (f *function) unary(op compute.OpType, x compute.Value, emit func(x array) array) (
	compute.Value, error) {
	return f.inferred(op, []compute.Value{x},
		func(in []shapes.Shape) (shapes.Shape, error) { return shapeinference.UnaryOp(op, in[0]) },
		func(_ *trace, in []array) array { return emit(in[0]) })
}

// Abs returns |x|.
func (f *function) Abs(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeAbs, x, func(x array) array {
		if isUnsigned(x.Type()) {
			return x
		}
		return x.Abs()
	})
}

// BitCount returns the number of bits that are set.
func (f *function) BitCount(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeBitCount, x, func(x array) array { return onWords(x, popcount) })
}

// Clz returns the number of bits above the highest one that is set.
func (f *function) Clz(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeClz, x, func(x array) array {
		n := bitsOf(x.Type())
		return onWords(x, func(w *expr.Expr) *expr.Expr {
			for s := 1; s < n; s *= 2 {
				w = expr.Apply(expr.Or, w, expr.Apply(expr.Shr, w, w.Number(float64(s))))
			}
			return w.Number(float64(n)).Sub(popcount(w))
		})
	})
}

// onWords applies a function to the bits of integers, in 32 or 64 of them.
func onWords(x array, f func(w *expr.Expr) *expr.Expr) array {
	t, word := x.Type(), tensor.U32
	if t.Size() == 8 {
		word = tensor.U64
	}
	u := unsigned(t)
	return tensor.Apply("bits", bits(f(bits(expr.Input(0, t), u).Cast(word)).Cast(u), t), x)
}

func popcount(w *expr.Expr) *expr.Expr {
	and := func(x *expr.Expr, mask uint64) *expr.Expr {
		return expr.Apply(expr.And, x, expr.Int(w.Type(), int64(mask)))
	}
	shr := func(x *expr.Expr, n int64) *expr.Expr { return expr.Apply(expr.Shr, x, expr.Int(w.Type(), n)) }
	w = w.Sub(and(shr(w, 1), 0x5555555555555555))
	w = and(w, 0x3333333333333333).Add(and(shr(w, 2), 0x3333333333333333))
	w = and(w.Add(shr(w, 4)), 0x0f0f0f0f0f0f0f0f)
	return shr(w.Mul(expr.Int(w.Type(), 0x0101010101010101)), int64(bitsOf(w.Type())-8))
}

// BitwiseNot returns the bits that are not set.
func (f *function) BitwiseNot(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeBitwiseNot, x, array.Not)
}

// LogicalNot returns the opposite.
func (f *function) LogicalNot(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeLogicalNot, x, array.Not)
}

// Ceil returns the smallest whole number that is not below x.
func (f *function) Ceil(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeCeil, x, array.Ceil)
}

// Floor returns the largest whole number that is not above x.
func (f *function) Floor(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeFloor, x, array.Floor)
}

// Round returns the nearest whole number, of two the even one.
func (f *function) Round(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeRound, x, array.Round)
}

// Cos returns the cosine.
func (f *function) Cos(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeCos, x, array.Cos)
}

// Sin returns the sine.
func (f *function) Sin(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeSin, x, array.Sin)
}

// Tanh returns the hyperbolic tangent.
func (f *function) Tanh(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeTanh, x, array.Tanh)
}

// Erf returns the error function.
func (f *function) Erf(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeErf, x, array.Erf)
}

// Exp returns e^x.
func (f *function) Exp(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeExp, x, array.Exp)
}

// Expm1 returns e^x - 1.
func (f *function) Expm1(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeExpm1, x, array.Expm1)
}

// Log returns the natural logarithm.
func (f *function) Log(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeLog, x, array.Log)
}

// Log1p returns the natural logarithm of 1 + x.
func (f *function) Log1p(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeLog1p, x, array.Log1p)
}

// Logistic returns 1 / (1 + e^-x).
func (f *function) Logistic(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeLogistic, x, array.Sigmoid)
}

// Neg returns -x.
func (f *function) Neg(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeNeg, x, array.Neg)
}

// Rsqrt returns 1 / √x.
func (f *function) Rsqrt(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeRsqrt, x, array.Rsqrt)
}

// Sqrt returns the square root.
func (f *function) Sqrt(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeSqrt, x, array.Sqrt)
}

// Sign returns 1, 0 or -1 with the sign of x.
func (f *function) Sign(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeSign, x, array.Sign)
}

// Real returns x, which is no complex number.
func (f *function) Real(x compute.Value) (compute.Value, error) { return f.Identity(x) }

// Conj returns x, which is no complex number.
func (f *function) Conj(x compute.Value) (compute.Value, error) { return f.Identity(x) }

// Imag returns 0, since x is no complex number.
func (f *function) Imag(x compute.Value) (compute.Value, error) {
	return f.inferred(compute.OpTypeImag, []compute.Value{x}, same, func(_ *trace, in []array) array {
		return tensor.Zeros(in[0].Scope(), in[0].Type(), in[0].Shape()...)
	})
}

// truth adds an operation on one operand that returns a Bool.
func (f *function) truth(op compute.OpType, x compute.Value, emit func(x array) array) (
	compute.Value, error) {
	infer := func(in []shapes.Shape) (shapes.Shape, error) { return of(in[0], dtypes.Bool), floating(op, in[0]) }
	return f.inferred(op, []compute.Value{x}, infer, func(_ *trace, in []array) array { return emit(in[0]) })
}

// IsFinite returns whether x is neither infinite nor a NaN.
func (f *function) IsFinite(x compute.Value) (compute.Value, error) {
	return f.truth(compute.OpTypeIsFinite, x, func(x array) array { return x.Abs().Lt(math.Inf(1)) })
}

// IsNaN returns whether x is a NaN.
func (f *function) IsNaN(x compute.Value) (compute.Value, error) {
	return f.truth(compute.OpTypeIsNaN, x, array.IsNaN)
}

// binary adds an operation on two operands of one type, which stretch to one shape.
func (f *function) binary(op compute.OpType, lhs, rhs compute.Value, emit func(x array, y any) array) (
	compute.Value, error) {
	infer := shapeinference.BinaryOp
	if shapeinference.ComparisonOperations.Has(op) {
		infer = shapeinference.ComparisonOp
	}
	return f.inferred(op, []compute.Value{lhs, rhs},
		func(in []shapes.Shape) (shapes.Shape, error) { return infer(op, in[0], in[1]) },
		func(_ *trace, in []array) array { return emit(in[0], in[1]) })
}

// Add returns lhs + rhs.
func (f *function) Add(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeAdd, lhs, rhs, array.Add)
}

// Sub returns lhs - rhs.
func (f *function) Sub(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeSub, lhs, rhs, array.Sub)
}

// Mul returns lhs · rhs.
func (f *function) Mul(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeMul, lhs, rhs, array.Mul)
}

// Div returns lhs / rhs, of integers without the fraction.
func (f *function) Div(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeDiv, lhs, rhs, func(x array, y any) array {
		if tensor.IsFloat(x.Type()) {
			return x.Div(y)
		}
		return x.Quo(y)
	})
}

// Rem returns the remainder of Div, with the sign of lhs.
func (f *function) Rem(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeRem, lhs, rhs, array.Rem)
}

// Pow returns lhs to the power of rhs.
func (f *function) Pow(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypePow, lhs, rhs, func(x array, y any) array {
		if tensor.IsFloat(x.Type()) {
			return x.Pow(y)
		}
		return power(x, y.(array))
	})
}

// power returns integers to the power of others, modulo 2^bits; to a negative power it is 1 or -1 of these, and else 0.
func power(x, y array) array {
	t := x.Type()
	b, n := expr.Input(0, t), expr.Input(1, t)
	zero, one := b.Number(0), b.Number(1)
	result, square := one, b
	for i := range bitsOf(t) - 1 {
		bit := expr.Apply(expr.And, expr.Apply(expr.Shr, n, expr.Int(t, int64(i))), one)
		result = bit.Eq(one).Select(result.Mul(square), result)
		square = square.Mul(square)
	}
	if isUnsigned(t) {
		high := expr.Apply(expr.Shr, n, expr.Int(t, int64(bitsOf(t)-1)))
		result = high.Eq(one).Select(result.Mul(square), result)
	} else {
		minus := b.Number(-1)
		odd := expr.Apply(expr.And, n, one).Eq(one)
		unit := b.Eq(one).Select(one, b.Eq(minus).Select(odd.Select(minus, one), zero))
		result = n.Lt(zero).Select(unit, result)
	}
	return tensor.Apply("power", result, x, y)
}

// Atan2 returns the angle of the point (rhs, lhs).
func (f *function) Atan2(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeAtan2, lhs, rhs, array.Atan2)
}

// Max returns the larger one, NaN if one is.
func (f *function) Max(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeMax, lhs, rhs, func(x array, y any) array {
		if x.Type() == tensor.Bool {
			return x.Or(y)
		}
		return x.Maximum(y)
	})
}

// Min returns the smaller one, NaN if one is.
func (f *function) Min(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeMin, lhs, rhs, func(x array, y any) array {
		if x.Type() == tensor.Bool {
			return x.And(y)
		}
		return x.Minimum(y)
	})
}

// BitwiseAnd returns the bits that are set in both.
func (f *function) BitwiseAnd(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeBitwiseAnd, lhs, rhs, array.And)
}

// BitwiseOr returns the bits that are set in one.
func (f *function) BitwiseOr(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeBitwiseOr, lhs, rhs, array.Or)
}

// BitwiseXor returns the bits that differ.
func (f *function) BitwiseXor(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeBitwiseXor, lhs, rhs, array.Xor)
}

// LogicalAnd returns whether both are true.
func (f *function) LogicalAnd(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLogicalAnd, lhs, rhs, array.And)
}

// LogicalOr returns whether one is true.
func (f *function) LogicalOr(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLogicalOr, lhs, rhs, array.Or)
}

// LogicalXor returns whether they differ.
func (f *function) LogicalXor(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLogicalXor, lhs, rhs, array.Xor)
}

// shift adds a shift: of the bits of x as type t, where all bits leave a number that is shifted by as many or
// more, but for copies of the sign.
func (f *function) shift(op compute.OpType, lhs, rhs compute.Value, by expr.Op,
	as func(t tensor.Type) tensor.Type) (compute.Value, error) {
	return f.binary(op, lhs, rhs, func(x array, y any) array {
		t := x.Type()
		a, n := bits(expr.Input(0, t), as(t)), bits(expr.Input(1, t), unsigned(t))
		last := n.Number(float64(bitsOf(t) - 1))
		result := expr.Apply(by, a, bits(n.Min(last), a.Type()))
		if by == expr.Shl || isUnsigned(a.Type()) {
			result = last.Lt(n).Select(a.Number(0), result)
		}
		return tensor.Apply("shift", bits(result, t), x, y.(array))
	})
}

// ShiftLeft returns lhs · 2^rhs.
func (f *function) ShiftLeft(lhs, rhs compute.Value) (compute.Value, error) {
	return f.shift(compute.OpTypeShiftLeft, lhs, rhs, expr.Shl, unsigned)
}

// ShiftRightArithmetic returns lhs shifted right, with its sign.
func (f *function) ShiftRightArithmetic(lhs, rhs compute.Value) (compute.Value, error) {
	return f.shift(compute.OpTypeShiftRightArithmetic, lhs, rhs, expr.Shr, func(t tensor.Type) tensor.Type { return t })
}

// ShiftRightLogical returns lhs shifted right, with zeros above.
func (f *function) ShiftRightLogical(lhs, rhs compute.Value) (compute.Value, error) {
	return f.shift(compute.OpTypeShiftRightLogical, lhs, rhs, expr.Shr, unsigned)
}

// Equal returns whether lhs = rhs.
func (f *function) Equal(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeEqual, lhs, rhs, array.Eq)
}

// NotEqual returns whether lhs ≠ rhs.
func (f *function) NotEqual(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeNotEqual, lhs, rhs, array.Ne)
}

// GreaterOrEqual returns whether lhs ≥ rhs.
func (f *function) GreaterOrEqual(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeGreaterOrEqual, lhs, rhs, array.Ge)
}

// GreaterThan returns whether lhs > rhs.
func (f *function) GreaterThan(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeGreaterThan, lhs, rhs, array.Gt)
}

// LessOrEqual returns whether lhs ≤ rhs.
func (f *function) LessOrEqual(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLessOrEqual, lhs, rhs, array.Le)
}

// LessThan returns whether lhs < rhs.
func (f *function) LessThan(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLessThan, lhs, rhs, array.Lt)
}

// total compares in the order -NaN < -∞ < numbers < ∞ < NaN, where -0 < 0: that of the bits, as integers in
// which those of negative numbers are inverted.
func total(emit func(x array, y any) array) func(x array, y any) array {
	order := func(x array) array {
		t := x.Type()
		if !tensor.IsFloat(t) {
			return x
		}
		e := expr.Input(0, t)
		s := signed(e.Type())
		b := e.Bits(s)
		inverted := expr.Apply(expr.Xor, b, expr.Int(s, math.MaxInt64>>(64-bitsOf(s))))
		return tensor.Apply("order", b.Lt(b.Number(0)).Select(inverted, b), x)
	}
	return func(x array, y any) array { return emit(order(x), order(y.(array))) }
}

// EqualTotalOrder returns whether lhs = rhs in the total order.
func (f *function) EqualTotalOrder(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeEqualTotalOrder, lhs, rhs, total(array.Eq))
}

// NotEqualTotalOrder returns whether lhs ≠ rhs in the total order.
func (f *function) NotEqualTotalOrder(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeNotEqualTotalOrder, lhs, rhs, total(array.Ne))
}

// GreaterOrEqualTotalOrder returns whether lhs ≥ rhs in the total order.
func (f *function) GreaterOrEqualTotalOrder(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeGreaterOrEqualTotalOrder, lhs, rhs, total(array.Ge))
}

// GreaterThanTotalOrder returns whether lhs > rhs in the total order.
func (f *function) GreaterThanTotalOrder(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeGreaterThanTotalOrder, lhs, rhs, total(array.Gt))
}

// LessOrEqualTotalOrder returns whether lhs ≤ rhs in the total order.
func (f *function) LessOrEqualTotalOrder(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLessOrEqualTotalOrder, lhs, rhs, total(array.Le))
}

// LessThanTotalOrder returns whether lhs < rhs in the total order.
func (f *function) LessThanTotalOrder(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLessThanTotalOrder, lhs, rhs, total(array.Lt))
}

// Where returns onTrue where condition is true, and onFalse elsewhere.
func (f *function) Where(condition, onTrue, onFalse compute.Value) (compute.Value, error) {
	return f.inferred(compute.OpTypeWhere, []compute.Value{condition, onTrue, onFalse},
		func(in []shapes.Shape) (shapes.Shape, error) { return shapeinference.Where(in[0], in[1], in[2]) },
		func(_ *trace, in []array) array { return tensor.Where(in[0], in[1], in[2]) })
}

// Clamp returns x, or lo or hi where it lies beyond them.
func (f *function) Clamp(lo, x, hi compute.Value) (compute.Value, error) {
	infer := func(in []shapes.Shape) (shapes.Shape, error) {
		for _, end := range []shapes.Shape{in[0], in[2]} {
			if end.DType != in[1].DType || !end.IsScalar() && !end.EqualDimensions(in[1]) {
				return shapes.Invalid(), errors.Errorf("Clamp of %s to %s and %s", in[1], in[0], in[2])
			}
		}
		return in[1], nil
	}
	return f.inferred(compute.OpTypeClamp, []compute.Value{lo, x, hi}, infer,
		func(_ *trace, in []array) array { return in[1].Clamp(in[0], in[2]) })
}

// ConvertDType returns x as elements of another type. Integers become other integers modulo 2^bits,
// floating-point numbers become the nearest integer toward zero that the type has.
func (f *function) ConvertDType(x compute.Value, dtype dtypes.DType) (compute.Value, error) {
	return f.inferred(compute.OpTypeConvertDType, []compute.Value{x},
		func(in []shapes.Shape) (shapes.Shape, error) { return of(in[0], dtype), nil },
		func(_ *trace, in []array) array { return convert(in[0], types[dtype]) })
}
