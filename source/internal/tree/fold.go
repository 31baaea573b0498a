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

// Fold evaluates a scalar. OK of the result is false if e is not constant. Folder.Lanes evaluates more.
func Fold(e *Expr) Value {
	if e.Folded {
		return e.Val
	}
	switch e.Op {
	case OpLit, OpSizeof:
		return e.Val
	case OpNamed:
		return namedValue(e)
	case OpParen:
		return Fold(e.A)
	case OpSym:
		if e.Type.IsConst() {
			return e.Sym.Val
		}
	case OpCast, OpConv:
		if e.A != nil {
			return Fold(e.A).Convert(e.Type)
		}
	case OpUnary:
		if e.Type.IsScalar() && e.A.Type.IsScalar() {
			return unary(e, Fold(e.A))
		}
	case OpBinary, OpShift, OpCompare, OpLogic:
		if e.A.Type.IsScalar() && e.B.Type.IsScalar() {
			return foldBinary(e)
		}
	case OpCond:
		if c := Fold(e.A); c.OK {
			return Fold(choice(c, e.B, e.C)).Convert(e.Type)
		}
	case OpElvis:
		if c := Fold(e.A); c.OK {
			return Fold(choice(c, e.A, e.C)).Convert(e.Type)
		}
	}
	return Value{}
}

// choice returns yes if c is not zero, else no.
func choice(c Value, yes, no *Expr) *Expr {
	if c.IsZero() {
		return no
	}
	return yes
}

func namedValue(e *Expr) Value {
	f, ok := map[string]float64{"CC_INFINITY": math.Inf(1), "CC_HUGE_VAL": math.Inf(1),
		"CC_NAN": math.Float64frombits(0x7ff8 << 48), "CC_MAXFLOAT": math.MaxFloat32}[e.Text]
	if !ok || !e.Type.IsScalar() {
		return Value{}
	}
	return FloatValue(e.Type.Base, f)
}

func foldBinary(e *Expr) Value {
	a := Fold(e.A)
	if a.OK && e.Op == OpLogic && a.IsZero() == (e.Text == "&&") { // the right side is not evaluated
		return truth(e.Text == "||")
	}
	b := Fold(e.B)
	if !a.OK || !b.OK {
		return Value{}
	}
	return binary(e, a, b)
}

// unary evaluates operator e on the value of a scalar or of one lane.
func unary(e *Expr, a Value) Value {
	switch {
	case !a.OK:
		return a
	case e.Text == "!":
		return answer(e.Type, a.IsZero())
	}
	return unaryOf(e.Text, a.Convert(Scalar(e.Type.Base)))
}

// binary evaluates operator e on the values of two scalars or of two lanes.
func binary(e *Expr, a, b Value) Value {
	switch e.Text {
	case "&&":
		return answer(e.Type, !a.IsZero() && !b.IsZero())
	case "||":
		return answer(e.Type, !a.IsZero() || !b.IsZero())
	case "<<", ">>":
		return shift(e.Text, a.Convert(Scalar(e.Type.Base)), b.Int())
	case "<", ">", "<=", ">=", "==", "!=":
		t := Usual(Scalar(a.Kind), Scalar(b.Kind))
		return answer(e.Type, Relation(e.Text, a.Convert(t), b.Convert(t)))
	}
	t := Scalar(e.Type.Base)
	if a, b = a.Convert(t), b.Convert(t); !a.OK || !b.OK {
		return Value{}
	}
	return Arithmetic(e.Text, a, b)
}

// answer returns the result of a comparison as a scalar or lane of t: true is 1, and -1 in a lane.
func answer(t *Type, yes bool) Value {
	if yes && t.IsVector() {
		return IntValue(t.Base, -1)
	}
	return truth(yes).Convert(Scalar(t.Base))
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
	return e.Type.IsInteger() && Fold(e).IsZero()
}
