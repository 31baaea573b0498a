package tensor

// Operations on each element by itself.

import (
	"fmt"
	"math"
	"slices"

	"github.com/concord-compute/concord/kernels/expr"
)

// unary returns the map of one operand.
func (t *Tensor) unary(name string, f func(x *expr.Expr) *expr.Expr) *Tensor {
	if bad := check(name, t); bad != nil {
		return bad
	}
	e := f(expr.Input(0, t.typ))
	if err := e.Err(); err != nil {
		return fail(t.scope, name, fmt.Errorf("%w: %v: %w", ErrType, t.typ, err))
	}
	typ := t.typ
	if e.Type() != typ.Computed() {
		typ = e.Type()
	}
	return made(&mapOp{name: name, e: e}, typ, t.shape, t)
}

// float is unary of floating-point numbers: integers and truths become F64 first.
func (t *Tensor) float(name string, f func(x *expr.Expr) *expr.Expr) *Tensor {
	if t != nil && t.err == nil && !IsFloat(t.typ) {
		t = t.Cast(F64)
	}
	return t.unary(name, f)
}

func operation1(op expr.Op) func(x *expr.Expr) *expr.Expr {
	return func(x *expr.Expr) *expr.Expr { return expr.Apply(op, x) }
}

// both returns two operands as tensors of one shape and of the type that Promote gives. x is a *Tensor or a
// number of Go, which takes the type of t where that can hold its kind of number.
func (t *Tensor) both(name string, x any) (a, b, bad *Tensor) {
	if bad := check(name, t); bad != nil {
		return nil, nil, bad
	}
	u, ok := x.(*Tensor)
	if !ok {
		typ := weak(t.typ, x)
		e, err := constant(typ, x)
		if err != nil {
			return nil, nil, fail(t.scope, name, err)
		}
		return t.Cast(typ), &Tensor{scope: t.scope, typ: typ, shape: t.shape,
			op: &mapOp{name: "number", what: kindLiteral, e: e}}, nil
	}
	if bad := check(name, t, u); bad != nil {
		return nil, nil, bad
	}
	shape, err := broadcast(t.shape, u.shape)
	if err != nil {
		return nil, nil, fail(inner(t, u), name, err)
	}
	typ := Promote(t.typ, u.typ)
	return t.Cast(typ).Expand(shape...), u.Cast(typ).Expand(shape...), nil
}

// broadcast returns the shape to which shapes stretch, as NumPy does.
func broadcast(shapes ...[]int) ([]int, error) {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	out := slices.Repeat([]int{1}, rank)
	for _, s := range shapes {
		for j, d := range s {
			switch k := rank - len(s) + j; {
			case out[k] == 1:
				out[k] = d
			case d != 1 && d != out[k]:
				return nil, fmt.Errorf("%w: %v do not stretch to one shape", ErrShape, shapes)
			}
		}
	}
	return out, checkShape(out)
}

// binary returns the map of two operands.
func (t *Tensor) binary(name string, x any, f func(x, y *expr.Expr) *expr.Expr) *Tensor {
	a, b, bad := t.both(name, x)
	if bad != nil {
		return bad
	}
	e := f(expr.Input(0, a.typ), expr.Input(1, b.typ))
	if err := e.Err(); err != nil {
		return fail(a.scope, name, fmt.Errorf("%w: %v: %w", ErrType, a.typ, err))
	}
	typ := a.typ
	if e.Type() != typ.Computed() {
		typ = e.Type()
	}
	return apply(name, e, typ, a.shape, a, b)
}

func operation2(op expr.Op) func(x, y *expr.Expr) *expr.Expr {
	return func(x, y *expr.Expr) *expr.Expr { return expr.Apply(op, x, y) }
}

// The operands named x below are tensors or numbers of Go. Shapes stretch as NumPy's, and types are those of
// Promote; a number takes the type of the tensor, but a floating-point number with integers makes F64.

// Add returns t + x; of Bools, whether one is true.
func (t *Tensor) Add(x any) *Tensor { return t.binary("add", x, orOfTruths(expr.Add, expr.Or)) }

// Sub returns t - x.
func (t *Tensor) Sub(x any) *Tensor { return t.binary("sub", x, operation2(expr.Sub)) }

// Mul returns t · x; of Bools, whether both are true.
func (t *Tensor) Mul(x any) *Tensor { return t.binary("mul", x, orOfTruths(expr.Mul, expr.And)) }

// orOfTruths applies one operation to numbers and another to truths.
func orOfTruths(numbers, truths expr.Op) func(x, y *expr.Expr) *expr.Expr {
	return func(x, y *expr.Expr) *expr.Expr {
		if x.Type() == Bool {
			return expr.Apply(truths, x, y)
		}
		return expr.Apply(numbers, x, y)
	}
}

// Div returns t / x. Integers are divided as F64, as NumPy's true division does; see Quo.
func (t *Tensor) Div(x any) *Tensor {
	a, b, bad := t.both("div", x)
	if bad != nil {
		return bad
	}
	if !IsFloat(a.typ) {
		a, b = a.Cast(F64), b.Cast(F64)
	}
	return a.binary("div", b, operation2(expr.Div))
}

// Quo returns the quotient t / x without its fraction. Of integers by 0 it is what the device makes of it.
func (t *Tensor) Quo(x any) *Tensor {
	return t.binary("quo", x, func(x, y *expr.Expr) *expr.Expr {
		if IsFloat(x.Type()) {
			return expr.Apply(expr.Trunc, x.Div(y))
		}
		return x.Div(y)
	})
}

// Rem returns what Quo leaves of t, with the sign of t, as C does.
func (t *Tensor) Rem(x any) *Tensor { return t.binary("rem", x, operation2(expr.Rem)) }

// Pow returns t to the power of x. Integers are computed as F64. Where t is not positive, x has no gradient.
func (t *Tensor) Pow(x any) *Tensor {
	a, b, bad := t.both("pow", x)
	if bad != nil {
		return bad
	}
	if n, ok := number(x); ok { // a constant, whose derivatives are exact at 0
		return t.float("pow", func(x *expr.Expr) *expr.Expr { return x.Pow(x.Number(n.float)) })
	}
	if !IsFloat(a.typ) {
		a, b = a.Cast(F64), b.Cast(F64)
	}
	return a.binary("pow", b, operation2(expr.Pow))
}

// Maximum returns the larger of t and x, NaN if one is. Where both are equal, each has half of the gradient; see Relu
// and Clamp.
func (t *Tensor) Maximum(x any) *Tensor { return t.binary("maximum", x, operation2(expr.Max)) }

// Minimum returns the smaller of t and x, NaN if one is. Where both are equal, each has half of the gradient.
func (t *Tensor) Minimum(x any) *Tensor { return t.binary("minimum", x, operation2(expr.Min)) }

// Atan2 returns the angle of the point (x, t).
func (t *Tensor) Atan2(x any) *Tensor { return t.binary("atan2", x, operation2(expr.Atan2)) }

// CopySign returns |t| with the sign of x. Its derivative at 0 is 0.
func (t *Tensor) CopySign(x any) *Tensor { return t.binary("copysign", x, operation2(expr.CopySign)) }

// And returns the bits that are set in t and in x; of Bools, whether both are true.
func (t *Tensor) And(x any) *Tensor { return t.binary("and", x, operation2(expr.And)) }

// Or returns the bits that are set in t or in x; of Bools, whether one is true.
func (t *Tensor) Or(x any) *Tensor { return t.binary("or", x, operation2(expr.Or)) }

// Xor returns the bits that are set in one of t and x.
func (t *Tensor) Xor(x any) *Tensor { return t.binary("xor", x, operation2(expr.Xor)) }

// Not returns the bits that are not set in t; of a Bool the opposite.
func (t *Tensor) Not() *Tensor { return t.unary("not", operation1(expr.Not)) }

// Shl returns t·2^x of integers; x counts modulo the bits of the type.
func (t *Tensor) Shl(x any) *Tensor { return t.binary("shl", x, operation2(expr.Shl)) }

// Shr returns t shifted right by x bits, with the sign; x counts modulo the bits of the type.
func (t *Tensor) Shr(x any) *Tensor { return t.binary("shr", x, operation2(expr.Shr)) }

// Eq returns the Bool t = x.
func (t *Tensor) Eq(x any) *Tensor { return t.binary("eq", x, operation2(expr.Eq)) }

// Ne returns the Bool t ≠ x.
func (t *Tensor) Ne(x any) *Tensor { return t.binary("ne", x, operation2(expr.Ne)) }

// Lt returns the Bool t < x.
func (t *Tensor) Lt(x any) *Tensor { return t.binary("lt", x, ordering(expr.Lt, false)) }

// Le returns the Bool t ≤ x.
func (t *Tensor) Le(x any) *Tensor { return t.binary("le", x, ordering(expr.Le, false)) }

// Gt returns the Bool t > x.
func (t *Tensor) Gt(x any) *Tensor { return t.binary("gt", x, ordering(expr.Lt, true)) }

// Ge returns the Bool t ≥ x.
func (t *Tensor) Ge(x any) *Tensor { return t.binary("ge", x, ordering(expr.Le, true)) }

// ordering compares numbers; of truths, false is less than true.
func ordering(op expr.Op, swap bool) func(x, y *expr.Expr) *expr.Expr {
	return func(x, y *expr.Expr) *expr.Expr {
		if x.Type() == Bool {
			x, y = x.Cast(U8), y.Cast(U8)
		}
		if swap {
			x, y = y, x
		}
		return expr.Apply(op, x, y)
	}
}

// Where returns x where cond, a Bool, is true, and y elsewhere; one of x and y may be a number of Go. All three
// stretch to one shape.
func Where(cond *Tensor, x, y any) *Tensor {
	const name = "where"
	if bad := check(name, cond); bad != nil {
		return bad
	}
	if cond.typ != Bool {
		return failf(cond.scope, name, ErrType, "a condition of type %v", cond.typ)
	}
	a, ok := x.(*Tensor)
	if !ok {
		b, is := y.(*Tensor)
		if !is {
			return failf(cond.scope, name, ErrType, "a choice between two numbers, one of which has to be a tensor")
		}
		return Where(cond.Not(), b, x)
	}
	a, b, bad := a.both(name, y)
	if bad != nil {
		return bad
	}
	if bad := check(name, cond, a, b); bad != nil {
		return bad
	}
	shape, err := broadcast(cond.shape, a.shape)
	if err != nil {
		return fail(cond.scope, name, err)
	}
	return apply(name, expr.Input(0, Bool).Select(expr.Input(1, a.typ), expr.Input(2, b.typ)), a.typ, shape,
		cond.Expand(shape...), a.Expand(shape...), b.Expand(shape...))
}

// Cast returns t with elements of another type, rounded once: to a floating type to nearest even, to an integer
// type toward zero and to its limits, with 0 for a NaN. A Bool becomes 0 or 1; a number becomes a Bool that is
// true if it is not 0. What becomes F16 or BF16 is rounded where it is stored, once if nothing else is computed before;
// in a kernel that computes on, it is an F32.
func (t *Tensor) Cast(to Type) *Tensor {
	if bad := check("cast", t); bad != nil {
		return bad
	}
	if t.typ == to {
		return t
	}
	if to < F32 || to > Bool {
		return failf(t.scope, "cast", ErrType, "%v", to)
	}
	return made(&mapOp{name: "cast", e: expr.Input(0, t.typ).Cast(to)}, to, t.shape, t)
}

// Bits returns the numbers of another type, of the same size, that have the bits of t's elements. It passes no gradient
// on. Half types, Bools and other sizes are refused with [ErrType].
func (t *Tensor) Bits(to Type) *Tensor {
	return t.unary("bits", func(x *expr.Expr) *expr.Expr { return x.Bits(to) })
}

// StopGradient returns t as a tensor that passes no gradient on.
func (t *Tensor) StopGradient() *Tensor {
	if t.err != nil {
		return t
	}
	return made(&mapOp{name: "stop", what: kindBarrier, e: expr.Input(0, t.typ)}, t.typ, t.shape, t)
}

// Neg returns -t.
func (t *Tensor) Neg() *Tensor { return t.unary("neg", operation1(expr.Neg)) }

// Abs returns |t|. Its derivative at 0 is 0.
func (t *Tensor) Abs() *Tensor { return t.unary("abs", operation1(expr.Abs)) }

// Sign returns 1, 0 or -1 with the sign of t, or NaN.
func (t *Tensor) Sign() *Tensor {
	return t.unary("sign", func(x *expr.Expr) *expr.Expr {
		zero, one := x.Number(0), x.Number(1)
		sign := zero.Lt(x).Select(one, zero)
		if t.typ != U8 && t.typ != U16 && t.typ != U32 && t.typ != U64 {
			sign = x.Lt(zero).Select(x.Number(-1), sign)
		}
		if IsFloat(x.Type()) {
			sign = x.Eq(x).Select(sign, x)
		}
		return sign
	})
}

// Square returns t².
func (t *Tensor) Square() *Tensor {
	return t.unary("square", func(x *expr.Expr) *expr.Expr { return x.Mul(x) })
}

// Reciprocal returns 1 / t.
func (t *Tensor) Reciprocal() *Tensor {
	return t.float("reciprocal", func(x *expr.Expr) *expr.Expr { return x.Number(1).Div(x) })
}

// The functions below are of floating-point numbers. Integers become F64, where NumPy chooses a smaller type
// for small integers.

// Sqrt returns the square root.
func (t *Tensor) Sqrt() *Tensor { return t.float("sqrt", operation1(expr.Sqrt)) }

// Rsqrt returns 1 / √t.
func (t *Tensor) Rsqrt() *Tensor { return t.float("rsqrt", operation1(expr.Rsqrt)) }

// Exp returns e^t.
func (t *Tensor) Exp() *Tensor { return t.float("exp", operation1(expr.Exp)) }

// Exp2 returns 2^t.
func (t *Tensor) Exp2() *Tensor { return t.float("exp2", operation1(expr.Exp2)) }

// Expm1 returns e^t - 1.
func (t *Tensor) Expm1() *Tensor { return t.float("expm1", operation1(expr.Expm1)) }

// Log returns the natural logarithm.
func (t *Tensor) Log() *Tensor { return t.float("log", operation1(expr.Log)) }

// Log2 returns the logarithm to base 2.
func (t *Tensor) Log2() *Tensor { return t.float("log2", operation1(expr.Log2)) }

// Log1p returns the natural logarithm of 1 + t.
func (t *Tensor) Log1p() *Tensor { return t.float("log1p", operation1(expr.Log1p)) }

// Sin returns the sine.
func (t *Tensor) Sin() *Tensor { return t.float("sin", operation1(expr.Sin)) }

// Cos returns the cosine.
func (t *Tensor) Cos() *Tensor { return t.float("cos", operation1(expr.Cos)) }

// Tan returns the tangent.
func (t *Tensor) Tan() *Tensor { return t.float("tan", operation1(expr.Tan)) }

// Sinh returns the hyperbolic sine.
func (t *Tensor) Sinh() *Tensor { return t.float("sinh", operation1(expr.Sinh)) }

// Cosh returns the hyperbolic cosine.
func (t *Tensor) Cosh() *Tensor { return t.float("cosh", operation1(expr.Cosh)) }

// Tanh returns the hyperbolic tangent.
func (t *Tensor) Tanh() *Tensor { return t.float("tanh", operation1(expr.Tanh)) }

// Asin returns the arc sine, NaN beyond -1 and 1, where its derivative is infinite.
func (t *Tensor) Asin() *Tensor { return t.float("asin", operation1(expr.Asin)) }

// Acos returns the arc cosine, NaN beyond -1 and 1, where its derivative is infinite.
func (t *Tensor) Acos() *Tensor { return t.float("acos", operation1(expr.Acos)) }

// Atan returns the arc tangent.
func (t *Tensor) Atan() *Tensor { return t.float("atan", operation1(expr.Atan)) }

// Asinh returns the inverse hyperbolic sine.
func (t *Tensor) Asinh() *Tensor { return t.float("asinh", operation1(expr.Asinh)) }

// Acosh returns the inverse hyperbolic cosine, NaN below 1.
func (t *Tensor) Acosh() *Tensor { return t.float("acosh", operation1(expr.Acosh)) }

// Atanh returns the inverse hyperbolic tangent, NaN beyond -1 and 1.
func (t *Tensor) Atanh() *Tensor { return t.float("atanh", operation1(expr.Atanh)) }

// Erf returns the error function.
func (t *Tensor) Erf() *Tensor { return t.float("erf", operation1(expr.Erf)) }

// Erfc returns 1 - Erf.
func (t *Tensor) Erfc() *Tensor { return t.float("erfc", operation1(expr.Erfc)) }

// Floor returns the largest whole number that is not above t.
func (t *Tensor) Floor() *Tensor { return t.float("floor", operation1(expr.Floor)) }

// Ceil returns the smallest whole number that is not below t.
func (t *Tensor) Ceil() *Tensor { return t.float("ceil", operation1(expr.Ceil)) }

// Trunc returns t without its fraction.
func (t *Tensor) Trunc() *Tensor { return t.float("trunc", operation1(expr.Trunc)) }

// Round returns the nearest whole number, of two the even one.
func (t *Tensor) Round() *Tensor { return t.float("round", operation1(expr.Round)) }

// IsNaN returns the Bool that is true where t is a NaN.
func (t *Tensor) IsNaN() *Tensor { return t.float("isnan", operation1(expr.IsNaN)) }

// Clamp returns t, or lo or hi where it lies beyond them; both may be tensors or numbers. Where t is equal to
// one of them, t has the gradient.
func (t *Tensor) Clamp(lo, hi any) *Tensor {
	return t.binary("clamp", lo, func(x, lo *expr.Expr) *expr.Expr { return x.AtLeast(lo) }).
		binary("clamp", hi, func(x, hi *expr.Expr) *expr.Expr { return x.AtMost(hi) })
}

// Relu returns max(t, 0), with the derivative 0 at 0.
func (t *Tensor) Relu() *Tensor { return t.unary("relu", (*expr.Expr).Relu) }

// LeakyRelu returns t where it is positive, else slope·t.
func (t *Tensor) LeakyRelu(slope float64) *Tensor {
	return t.float("leaky relu", func(x *expr.Expr) *expr.Expr {
		return x.Number(0).Lt(x).Select(x, x.Mul(x.Number(slope)))
	})
}

// ELU returns t where it is positive, else alpha·(e^t - 1). Its derivative at 0 is alpha.
func (t *Tensor) ELU(alpha float64) *Tensor {
	return t.float("elu", func(x *expr.Expr) *expr.Expr {
		positive, low := pieces(x, x.Number(0)) // so that the other branch is finite
		return positive.Select(x, expr.Apply(expr.Expm1, low).Mul(x.Number(alpha)))
	})
}

// pieces returns whether x is positive, and x where it is not, else another value. A function that is composed of
// pieces by that one condition has at 0 the derivatives of one piece, of any order; with |x| and max(x, 0) those of
// several would have to add up.
func pieces(x, otherwise *expr.Expr) (positive, low *expr.Expr) {
	positive = x.Number(0).Lt(x)
	return positive, positive.Select(otherwise, x)
}

// Sigmoid returns 1 / (1 + e^-t).
func (t *Tensor) Sigmoid() *Tensor { return t.float("sigmoid", operation1(expr.Sigmoid)) }

// SiLU returns t·Sigmoid(t), also known as swish.
func (t *Tensor) SiLU() *Tensor { return t.float("silu", silu) }

func silu(x *expr.Expr) *expr.Expr { return x.Mul(x.Sigmoid()) }

// GELU returns t·Φ(t), with the distribution function Φ of the normal distribution.
func (t *Tensor) GELU() *Tensor { return t.float("gelu", operation1(expr.GELU)) }

// GELUTanh returns ½t·(1 + tanh(√(2/π)·(t + 0.044715·t³))), an approximation of GELU.
func (t *Tensor) GELUTanh() *Tensor { return t.float("gelu tanh", geluTanh) }

func geluTanh(x *expr.Expr) *expr.Expr { // ½(1 + tanh u) is the sigmoid of 2u
	u := x.Mul(x).Mul(x.Number(0.044715)).Add(x.Number(1)).Mul(x).Mul(x.Number(2 * math.Sqrt(2/math.Pi)))
	return x.Mul(u.Sigmoid())
}

// Softplus returns ln(1 + e^t), computed as max(t, 0) + ln(1 + e^-|t|).
func (t *Tensor) Softplus() *Tensor { return t.float("softplus", softplus) }

func softplus(x *expr.Expr) *expr.Expr {
	positive, low := pieces(x, x.Neg())
	return positive.Select(x, x.Number(0)).Add(expr.Apply(expr.Log1p, low.Exp()))
}

// Mish returns t·tanh(Softplus(t)).
func (t *Tensor) Mish() *Tensor {
	return t.float("mish", func(x *expr.Expr) *expr.Expr { return x.Mul(softplus(x).Tanh()) })
}

// HardSigmoid returns (t + 1) / 2, limited to 0 and 1. Its derivative is ½ from -1 to 1, with these.
func (t *Tensor) HardSigmoid() *Tensor {
	return t.float("hard sigmoid", func(x *expr.Expr) *expr.Expr {
		return x.Mul(x.Number(0.5)).Add(x.Number(0.5)).AtLeast(x.Number(0)).AtMost(x.Number(1))
	})
}

// HardTanh returns t limited to -1 and 1. Its derivative is 1 from -1 to 1, with these.
func (t *Tensor) HardTanh() *Tensor {
	return t.float("hard tanh", func(x *expr.Expr) *expr.Expr { return x.AtLeast(x.Number(-1)).AtMost(x.Number(1)) })
}

// mostApplied is the largest number of tensors of Apply. Gradients read one more.
const mostApplied = mostInputs - 1

// Apply returns an expression of up to 13 tensors, element by element: input i of e is args[i], with its type
// and stretched to a common shape. The result has the type of the expression. It is fused with other operations
// and has gradients as they have.
func Apply(name string, e *expr.Expr, args ...*Tensor) *Tensor {
	if len(args) == 0 {
		return failf(nil, name, ErrShape, "no tensor")
	}
	if bad := check(name, args...); bad != nil {
		return bad
	}
	if len(args) > mostApplied {
		return failf(args[0].scope, name, ErrShape, "%d tensors, there can be %d", len(args), mostApplied)
	}
	var shapes [][]int
	for _, a := range args {
		shapes = append(shapes, a.shape)
	}
	shape, err := broadcast(shapes...)
	if err != nil {
		return fail(inner(args...), name, err)
	}
	list := make([]*Tensor, len(args))
	for i, a := range args {
		list[i] = a.Expand(shape...)
	}
	if e == nil || e.Err() != nil || e.Type() == 0 {
		return failf(inner(args...), name, ErrType, "the expression is not well formed: %v", e.Err())
	}
	return apply(name, e, e.Type(), shape, list...)
}
