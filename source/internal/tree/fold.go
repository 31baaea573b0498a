package tree

// Evaluation at compile time, and C's implicit conversions.

import "math"

// Unparen returns e without the parentheses around it.
func Unparen(e *Expr) *Expr {
	for e.Op == OpParen {
		e = e.A
	}
	return e
}

// Fold evaluates e. OK of the result is false if e is not constant.
func Fold(e *Expr) Value {
	if e.Folded {
		return e.Val
	}
	no := Value{}
	switch e.Op {
	case OpLit, OpSizeof:
		return e.Val
	case OpParen:
		return Fold(e.A)
	case OpSym:
		if e.Type.IsConst() && e.Sym.Val.OK {
			return e.Sym.Val
		}
		return no
	case OpCast, OpConv:
		if e.A == nil {
			return no
		}
		if e.Type.Is(Bool) {
			if c := Fold(e.A); c.OK {
				return FoldTruth(!c.isZero())
			}
			return no
		}
		return Fold(e.A).Convert(e.Type)
	case OpUnary:
		return foldUnary(e)
	case OpBinary, OpShift, OpCompare, OpLogic:
		if !e.A.Type.IsScalar() || !e.B.Type.IsScalar() {
			return no
		}
		return foldBinary(e)
	case OpCond:
		if c := Fold(e.A); c.OK {
			if c.isZero() {
				return Fold(e.C).Convert(e.Type)
			}
			return Fold(e.B).Convert(e.Type)
		}
	}
	return no
}

// FoldTruth returns the int that is the result of a comparison.
func FoldTruth(b bool) Value {
	if b {
		return Value{OK: true, Int: 1}
	}
	return Value{OK: true}
}

func (c Value) isZero() bool { return c.OK && (c.IsFloat && c.Float == 0 || !c.IsFloat && c.Int == 0) }

func foldUnary(e *Expr) Value {
	if !e.Type.IsScalar() || !e.A.Type.IsScalar() {
		return Value{}
	}
	a := Fold(e.A)
	if !a.OK {
		return a
	}
	if e.Text == "!" {
		return FoldTruth(a.isZero())
	}
	a = a.Convert(e.Type)
	switch e.Text {
	case "+":
		return a
	case "-":
		a.Float, a.Int = -a.Float, -a.Int
	case "~":
		if a.IsFloat {
			return Value{}
		}
		a.Int = ^a.Int
	default:
		return Value{}
	}
	return a.Convert(e.Type)
}

func foldBinary(e *Expr) Value {
	a := Fold(e.A)
	if !a.OK {
		return a
	}
	if e.Op == OpLogic && a.isZero() == (e.Text == "&&") {
		return FoldTruth(e.Text == "||")
	}
	b := Fold(e.B)
	if !b.OK {
		return b
	}
	switch e.Op {
	case OpLogic:
		return FoldTruth(!b.isZero())
	case OpShift:
		return foldShift(a.Convert(e.Type), b.Int, e)
	}
	t := e.Type
	if e.Op == OpCompare {
		t = Usual(e.A.Type, e.B.Type)
	}
	a, b = a.Convert(t), b.Convert(t)
	if !a.OK || !b.OK {
		return Value{}
	}
	if a.IsFloat {
		return foldFloat(a.Float, b.Float, e)
	}
	return foldInt(a.Int, b.Int, t, e)
}

func foldShift(a Value, n int64, e *Expr) Value {
	bits := int64(8 * KindSize(e.Type.Base))
	n &= bits - 1
	switch {
	case e.Text == "<<":
		a.Int <<= n
	case e.Type.Base == ULong:
		a.Int = int64(uint64(a.Int) >> n)
	default:
		a.Int >>= n
	}
	return a.Convert(e.Type)
}

func foldFloat(a, b float64, e *Expr) Value {
	c := Value{OK: true, IsFloat: true}
	switch e.Text {
	case "+":
		c.Float = a + b
	case "-":
		c.Float = a - b
	case "*":
		c.Float = a * b
	case "/":
		c.Float = a / b
	case "<":
		return FoldTruth(a < b)
	case ">":
		return FoldTruth(a > b)
	case "<=":
		return FoldTruth(a <= b)
	case ">=":
		return FoldTruth(a >= b)
	case "==":
		return FoldTruth(a == b)
	case "!=":
		return FoldTruth(a != b)
	default:
		return Value{}
	}
	return c.Convert(e.Type)
}

func foldInt(a, b int64, t *Type, e *Expr) Value {
	less := a < b
	if t.Base == ULong {
		less = uint64(a) < uint64(b)
	}
	c := Value{OK: true}
	switch e.Text {
	case "+":
		c.Int = a + b
	case "-":
		c.Int = a - b
	case "*":
		c.Int = a * b
	case "/", "%":
		return foldDivide(a, b, t, e.Text)
	case "&":
		c.Int = a & b
	case "|":
		c.Int = a | b
	case "^":
		c.Int = a ^ b
	case "<":
		return FoldTruth(less)
	case ">":
		return FoldTruth(!less && a != b)
	case "<=":
		return FoldTruth(less || a == b)
	case ">=":
		return FoldTruth(!less)
	case "==":
		return FoldTruth(a == b)
	case "!=":
		return FoldTruth(a != b)
	default:
		return Value{}
	}
	return c.Convert(t)
}

func foldDivide(a, b int64, t *Type, op string) Value {
	if b == 0 || b == -1 && a == math.MinInt64 {
		return Value{}
	}
	c := Value{OK: true}
	switch {
	case t.Base == ULong && op == "/":
		c.Int = int64(uint64(a) / uint64(b))
	case t.Base == ULong:
		c.Int = int64(uint64(a) % uint64(b))
	case op == "/":
		c.Int = a / b
	default:
		c.Int = a % b
	}
	return c.Convert(t)
}

// Convert converts c to scalar type t.
func (c Value) Convert(t *Type) Value {
	if !c.OK || !t.IsScalar() {
		return Value{}
	}
	if t.Base == Bool {
		return FoldTruth(!c.isZero())
	}
	if !IsIntKind(t.Base) {
		if !c.IsFloat {
			c.Float = float64(c.Int)
		}
		if t.Base == Float || t.Base == Half {
			c.Float = float64(float32(c.Float))
		}
		return Value{OK: true, IsFloat: true, Float: c.Float}
	}
	if c.IsFloat {
		if math.IsNaN(c.Float) || c.Float >= 1<<63 || c.Float < -(1<<63) {
			return Value{}
		}
		c = Value{OK: true, Int: int64(c.Float)}
	}
	c.Int = Wrap(c.Int, t.Base)
	return c
}

// Wrap truncates v to the width of integer kind k.
func Wrap(v int64, k Kind) int64 {
	switch k {
	case Bool:
		if v != 0 {
			return 1
		}
		return 0
	case Char:
		return int64(int8(v))
	case UChar:
		return int64(uint8(v))
	case Short:
		return int64(int16(v))
	case UShort:
		return int64(uint16(v))
	case Int:
		return int64(int32(v))
	case UInt:
		return int64(uint32(v))
	}
	return v
}

// Promoted returns the type of a value of type t after the integer promotions.
func Promoted(t *Type) *Type {
	if t.IsInteger() && t.Base < Int {
		return IntType
	}
	return t.Bare()
}

// Usual returns the common type of two scalars by the usual arithmetic conversions.
func Usual(a, b *Type) *Type {
	for _, k := range []Kind{Double, Float, Half} {
		if a.Base == k || b.Base == k {
			return Scalar(k)
		}
	}
	a, b = Promoted(a), Promoted(b)
	return Scalar(max(a.Base, b.Base)) // Int < UInt < Long < ULong is the order of rank
}

// IsNullConstant reports whether e is NULL or the integer constant 0.
func IsNullConstant(e *Expr) bool {
	switch e.Op {
	case OpNull:
		return true
	case OpParen:
		return IsNullConstant(e.A)
	case OpCast:
		if e.Type.IsPointer() {
			return e.Type.Elem.IsVoid() && e.Type.Elem.Q == 0 && IsNullConstant(e.A)
		}
	}
	return e.Type.IsInteger() && Fold(e).isZero()
}
