package check

// The conditional operator, on scalars and on lanes.

import (
	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// choose types a ? b : c.
func (p *parser) choose(a, b, c *tree.Expr, tok int, pos token.Pos) *tree.Expr {
	e := &tree.Expr{Op: tree.OpCond, A: a, Tok: tok}
	if a.Type.IsVector() {
		return p.chooseLanes(e, b, c, pos)
	}
	e.A = p.condition(a)
	if b.Type.IsVoid() || c.Type.IsVoid() {
		e.B, e.C, e.Type = p.cast(tree.VoidType, b, b.Tok), p.cast(tree.VoidType, c, c.Tok), tree.VoidType
		return p.node(e)
	}
	e.B, e.C = p.value(b), p.value(c)
	x, y := e.B.Type, e.C.Type
	ok := true
	switch {
	case x.IsUnknown() || y.IsUnknown():
	case x.IsScalar() && y.IsScalar():
		e.Type = tree.Usual(x, y)
		if !tree.SameType(x, y) || tree.Promoted(x).Base != x.Base {
			e.B, e.C = p.conv(e.B, e.Type), p.conv(e.C, e.Type)
		}
	case tree.SameType(x, y):
		e.Type = x.Bare()
	case x.IsVector() && y.IsScalar():
		e.Type = x.Bare()
		e.C = p.conv(e.C, e.Type)
	case x.IsScalar() && y.IsVector():
		e.Type = y.Bare()
		e.B = p.conv(e.B, e.Type)
	case x.IsPointer() && tree.IsNullConstant(e.C):
		e.Type = x.Bare()
		e.C = p.conv(e.C, e.Type)
	case y.IsPointer() && tree.IsNullConstant(e.B):
		e.Type = y.Bare()
		e.B = p.conv(e.B, e.Type)
	case x.IsPointer() && y.IsPointer():
		p.checkSpaces(e.C, x, "?:")
		e.Type = mergePointers(x, y)
		e.B, e.C = p.conv(e.B, e.Type), p.conv(e.C, e.Type)
	default:
		ok = false
	}
	if !ok {
		return p.refuse(tok, pos, "?:", "the two values have different types: '%s' and '%s'", x.Bare(), y.Bare())
	}
	return p.node(e)
}

// elvis types a ?: c, an extension of GNU C that OpenCL compilers have: a if it is not zero, else
// c.
func (p *parser) elvis(a, c *tree.Expr, tok int, pos token.Pos) *tree.Expr {
	a, c = p.condition(a), p.value(c)
	e := &tree.Expr{Op: tree.OpElvis, A: a, C: c, Tok: tok}
	x, y := a.Type, c.Type
	switch {
	case x.IsUnknown() || y.IsUnknown():
	case x.IsScalar() && y.IsScalar():
		e.Type = tree.Usual(x, y)
		e.A, e.C = p.conv(a, e.Type), p.conv(c, e.Type)
	case x.IsPointer() && (tree.SameType(x, y) || tree.IsNullConstant(c)):
		e.Type = x.Bare()
		e.C = p.conv(c, e.Type)
	default:
		return p.refuse(tok, pos, "?:", "the two values have different types: '%s' and '%s'", x.Bare(), y.Bare())
	}
	return p.node(e)
}

// mergePointers returns the common type of two pointers, with the qualifiers of both.
func mergePointers(x, y *tree.Type) *tree.Type {
	elem := x.Elem
	if y.Elem.IsVoid() {
		elem = y.Elem
	}
	return tree.PointerTo(elem.With((x.Elem.Q | y.Elem.Q) & (tree.QConst | tree.QVolatile)))
}

// chooseLanes types ?: with a vector condition.
func (p *parser) chooseLanes(e, b, c *tree.Expr, pos token.Pos) *tree.Expr {
	e.Op, e.B, e.C = tree.OpVecCond, p.value(b), p.value(c)
	x, y, n := e.B.Type, e.C.Type, e.A.Type.N
	if x.IsUnknown() || y.IsUnknown() {
		return p.node(e)
	}
	if x.IsScalar() && y.IsScalar() {
		t := tree.Vector(tree.Usual(x, y).Base, n)
		e.B, e.C = p.conv(e.B, t), p.conv(e.C, t)
		e.Type = t
	} else {
		t, ok := p.sameValues(e)
		if !ok {
			return p.refuse(e.Tok, pos, "?:", "the two values have different types: '%s' and '%s'", x.Bare(), y.Bare())
		}
		e.Type = t
	}
	if e.Type.N != n || tree.KindSize(e.Type.Base) != tree.KindSize(e.A.Type.Base) || !tree.IsIntKind(e.A.Type.Base) {
		return p.refuse(e.Tok, pos, "?:", "the condition '%s' does not fit values of type '%s': it needs as many integer "+
			"lanes of the same size", e.A.Type.Bare(), e.Type)
	}
	return p.node(e)
}

// sameValues converts the two values of a vector ?: to one vector type.
func (p *parser) sameValues(e *tree.Expr) (*tree.Type, bool) {
	x, y := e.B.Type, e.C.Type
	switch {
	case x.IsVector() && y.IsScalar():
		e.C = p.conv(e.C, x.Bare())
		return x.Bare(), true
	case x.IsScalar() && y.IsVector():
		e.B = p.conv(e.B, y.Bare())
		return y.Bare(), true
	}
	return x.Bare(), x.IsVector() && tree.SameType(x, y)
}
