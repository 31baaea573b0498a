package source

// The conditional operator, on scalars and on lanes.

import "github.com/concord-compute/concord/source/internal/token"

// choose types a ? b : c.
func (p *parser) choose(a, b, c *expr, tok int, pos token.Pos) *expr {
	e := &expr{op: opCond, a: a, tok: tok}
	if a.typ.isVector() {
		return p.chooseLanes(e, b, c, pos)
	}
	e.a = p.condition(a)
	if b.typ.isVoid() || c.typ.isVoid() {
		e.b, e.c, e.typ = p.cast(voidType, b, b.tok), p.cast(voidType, c, c.tok), voidType
		return p.node(e)
	}
	e.b, e.c = p.value(b), p.value(c)
	x, y := e.b.typ, e.c.typ
	ok := true
	switch {
	case x.isUnknown() || y.isUnknown():
	case x.isScalar() && y.isScalar():
		e.typ = usual(x, y)
		if !sameType(x, y) || promoted(x).base != x.base {
			e.b, e.c = p.conv(e.b, e.typ), p.conv(e.c, e.typ)
		}
	case sameType(x, y):
		e.typ = x.bare()
	case x.isVector() && y.isScalar():
		e.typ = x.bare()
		e.c = p.conv(e.c, e.typ)
	case x.isScalar() && y.isVector():
		e.typ = y.bare()
		e.b = p.conv(e.b, e.typ)
	case x.isPointer() && isNullConstant(e.c):
		e.typ = x.bare()
		e.c = p.conv(e.c, e.typ)
	case y.isPointer() && isNullConstant(e.b):
		e.typ = y.bare()
		e.b = p.conv(e.b, e.typ)
	case x.isPointer() && y.isPointer():
		p.checkSpaces(e.c, x, "?:")
		e.typ = mergePointers(x, y)
		e.b, e.c = p.conv(e.b, e.typ), p.conv(e.c, e.typ)
	default:
		ok = false
	}
	if !ok {
		p.errorf(pos, "?:", "the two values have different types: '%s' and '%s'", x.bare(), y.bare())
		return p.bad(tok)
	}
	return p.node(e)
}

// elvis types a ?: c, which OpenCL compilers take from GNU C: a if it is not
// zero, else c.
func (p *parser) elvis(a, c *expr, tok int, pos token.Pos) *expr {
	a, c = p.condition(a), p.value(c)
	e := &expr{op: opElvis, a: a, c: c, tok: tok}
	x, y := a.typ, c.typ
	switch {
	case x.isUnknown() || y.isUnknown():
	case x.isScalar() && y.isScalar():
		e.typ = usual(x, y)
		e.a, e.c = p.conv(a, e.typ), p.conv(c, e.typ)
	case x.isPointer() && (sameType(x, y) || isNullConstant(c)):
		e.typ = x.bare()
		e.c = p.conv(c, e.typ)
	default:
		p.errorf(pos, "?:", "the two values have different types: '%s' and '%s'", x.bare(), y.bare())
		return p.bad(tok)
	}
	return p.node(e)
}

// mergePointers is the common type of two pointers: the qualifiers of both.
func mergePointers(x, y *ctype) *ctype {
	elem := x.elem
	if y.elem.isVoid() {
		elem = y.elem
	}
	return pointerTo(elem.with((x.elem.q | y.elem.q) & (qConst | qVolatile)))
}

// chooseLanes types ?: with a vector condition.
func (p *parser) chooseLanes(e, b, c *expr, pos token.Pos) *expr {
	e.op, e.b, e.c = opVecCond, p.value(b), p.value(c)
	x, y, n := e.b.typ, e.c.typ, e.a.typ.n
	if x.isUnknown() || y.isUnknown() {
		return p.node(e)
	}
	if x.isScalar() && y.isScalar() {
		t := vector(usual(x, y).base, n)
		e.b, e.c = p.conv(e.b, t), p.conv(e.c, t)
		e.typ = t
	} else {
		t, ok := p.sameValues(e)
		if !ok {
			p.errorf(pos, "?:", "the two values have different types: '%s' and '%s'", x.bare(), y.bare())
			return p.bad(e.tok)
		}
		e.typ = t
	}
	if e.typ.n != n || kindSize(e.typ.base) != kindSize(e.a.typ.base) || !isIntKind(e.a.typ.base) {
		p.errorf(pos, "?:", "the condition '%s' does not fit values of type '%s': it needs as many integer lanes of the same size", e.a.typ.bare(), e.typ)
		return p.bad(e.tok)
	}
	return p.node(e)
}

// sameValues brings the two values of a vector ?: to one vector type.
func (p *parser) sameValues(e *expr) (*ctype, bool) {
	x, y := e.b.typ, e.c.typ
	switch {
	case x.isVector() && y.isScalar():
		e.c = p.conv(e.c, x.bare())
		return x.bare(), true
	case x.isScalar() && y.isVector():
		e.b = p.conv(e.b, y.bare())
		return y.bare(), true
	}
	return x.bare(), x.isVector() && sameType(x, y)
}
