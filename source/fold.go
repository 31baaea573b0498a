package source

// Evaluation at compile time, and the conversions that C makes by itself.

import "math"

func unparen(e *expr) *expr {
	for e.op == opParen {
		e = e.a
	}
	return e
}

// fold evaluates e, or says that it is not constant.
func fold(e *expr) constant {
	if e.folded {
		return e.val
	}
	no := constant{}
	switch e.op {
	case opLit, opSizeof:
		return e.val
	case opParen:
		return fold(e.a)
	case opSym:
		if e.typ.isConst() && e.sym.val.ok {
			return e.sym.val
		}
		return no
	case opCast, opConv:
		if e.a == nil {
			return no
		}
		if e.typ.is(Bool) {
			if c := fold(e.a); c.ok {
				return foldTruth(!c.isZero())
			}
			return no
		}
		return fold(e.a).convert(e.typ)
	case opUnary:
		return foldUnary(e)
	case opBinary, opShift, opCompare, opLogic:
		if !e.a.typ.isScalar() || !e.b.typ.isScalar() {
			return no
		}
		return foldBinary(e)
	case opCond:
		if c := fold(e.a); c.ok {
			if c.isZero() {
				return fold(e.c).convert(e.typ)
			}
			return fold(e.b).convert(e.typ)
		}
	}
	return no
}

func foldTruth(b bool) constant {
	if b {
		return constant{ok: true, i: 1}
	}
	return constant{ok: true}
}

func (c constant) isZero() bool { return c.ok && (c.float && c.f == 0 || !c.float && c.i == 0) }

func foldUnary(e *expr) constant {
	if !e.typ.isScalar() || !e.a.typ.isScalar() {
		return constant{}
	}
	a := fold(e.a)
	if !a.ok {
		return a
	}
	if e.text == "!" {
		return foldTruth(a.isZero())
	}
	a = a.convert(e.typ)
	switch e.text {
	case "+":
		return a
	case "-":
		a.f, a.i = -a.f, -a.i
	case "~":
		if a.float {
			return constant{}
		}
		a.i = ^a.i
	default:
		return constant{}
	}
	return a.convert(e.typ)
}

func foldBinary(e *expr) constant {
	a := fold(e.a)
	if !a.ok {
		return a
	}
	if e.op == opLogic && a.isZero() == (e.text == "&&") {
		return foldTruth(e.text == "||")
	}
	b := fold(e.b)
	if !b.ok {
		return b
	}
	switch e.op {
	case opLogic:
		return foldTruth(!b.isZero())
	case opShift:
		return foldShift(a.convert(e.typ), b.i, e)
	}
	t := e.typ
	if e.op == opCompare {
		t = usual(e.a.typ, e.b.typ)
	}
	a, b = a.convert(t), b.convert(t)
	if !a.ok || !b.ok {
		return constant{}
	}
	if a.float {
		return foldFloat(a.f, b.f, e)
	}
	return foldInt(a.i, b.i, t, e)
}

func foldShift(a constant, n int64, e *expr) constant {
	bits := int64(8 * kindSize(e.typ.base))
	n &= bits - 1
	switch {
	case e.text == "<<":
		a.i <<= n
	case e.typ.base == ULong:
		a.i = int64(uint64(a.i) >> n)
	default:
		a.i >>= n
	}
	return a.convert(e.typ)
}

func foldFloat(a, b float64, e *expr) constant {
	c := constant{ok: true, float: true}
	switch e.text {
	case "+":
		c.f = a + b
	case "-":
		c.f = a - b
	case "*":
		c.f = a * b
	case "/":
		c.f = a / b
	case "<":
		return foldTruth(a < b)
	case ">":
		return foldTruth(a > b)
	case "<=":
		return foldTruth(a <= b)
	case ">=":
		return foldTruth(a >= b)
	case "==":
		return foldTruth(a == b)
	case "!=":
		return foldTruth(a != b)
	default:
		return constant{}
	}
	return c.convert(e.typ)
}

func foldInt(a, b int64, t *ctype, e *expr) constant {
	less := a < b
	if t.base == ULong {
		less = uint64(a) < uint64(b)
	}
	c := constant{ok: true}
	switch e.text {
	case "+":
		c.i = a + b
	case "-":
		c.i = a - b
	case "*":
		c.i = a * b
	case "/", "%":
		return foldDivide(a, b, t, e.text)
	case "&":
		c.i = a & b
	case "|":
		c.i = a | b
	case "^":
		c.i = a ^ b
	case "<":
		return foldTruth(less)
	case ">":
		return foldTruth(!less && a != b)
	case "<=":
		return foldTruth(less || a == b)
	case ">=":
		return foldTruth(!less)
	case "==":
		return foldTruth(a == b)
	case "!=":
		return foldTruth(a != b)
	default:
		return constant{}
	}
	return c.convert(t)
}

func foldDivide(a, b int64, t *ctype, op string) constant {
	if b == 0 || b == -1 && a == math.MinInt64 {
		return constant{}
	}
	c := constant{ok: true}
	switch {
	case t.base == ULong && op == "/":
		c.i = int64(uint64(a) / uint64(b))
	case t.base == ULong:
		c.i = int64(uint64(a) % uint64(b))
	case op == "/":
		c.i = a / b
	default:
		c.i = a % b
	}
	return c.convert(t)
}

// convert makes c a value of scalar type t.
func (c constant) convert(t *ctype) constant {
	if !c.ok || !t.isScalar() {
		return constant{}
	}
	if t.base == Bool {
		return foldTruth(!c.isZero())
	}
	if !isIntKind(t.base) {
		if !c.float {
			c.f = float64(c.i)
		}
		if t.base == Float || t.base == Half {
			c.f = float64(float32(c.f))
		}
		return constant{ok: true, float: true, f: c.f}
	}
	if c.float {
		if math.IsNaN(c.f) || c.f >= 1<<63 || c.f < -(1<<63) {
			return constant{}
		}
		c = constant{ok: true, i: int64(c.f)}
	}
	c.i = wrap(c.i, t.base)
	return c
}

// wrap cuts v to the width of integer kind k.
func wrap(v int64, k Kind) int64 {
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

// promoted is the type of a value after the integer promotions.
func promoted(t *ctype) *ctype {
	if t.isInteger() && t.base < Int {
		return intType
	}
	return t.bare()
}

// usual is the type that the usual arithmetic conversions give two scalars.
func usual(a, b *ctype) *ctype {
	for _, k := range []Kind{Double, Float, Half} {
		if a.base == k || b.base == k {
			return scalar(k)
		}
	}
	a, b = promoted(a), promoted(b)
	return scalar(max(a.base, b.base)) // Int < UInt < Long < ULong is the order of rank
}

// isNullConstant tells whether e is NULL or the integer constant 0.
func isNullConstant(e *expr) bool {
	switch e.op {
	case opNull:
		return true
	case opParen:
		return isNullConstant(e.a)
	case opCast:
		if e.typ.isPointer() {
			return e.typ.elem.isVoid() && e.typ.elem.q == 0 && isNullConstant(e.a)
		}
	}
	return e.typ.isInteger() && fold(e).isZero()
}
