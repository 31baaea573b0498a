package check

// Operators: their types, and the conversions of their operands.

import (
	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// operate types a op b for the binary operators.
func (p *parser) operate(a *tree.Expr, op string, b *tree.Expr, tok int, pos token.Pos) *tree.Expr {
	a, b = p.value(a), p.value(b)
	e := &tree.Expr{A: a, B: b, Text: op, Tok: tok}
	if a.Type.IsUnknown() || b.Type.IsUnknown() {
		e.Op = tree.OpBad
		return p.node(e)
	}
	var ok bool
	switch op {
	case "&&", "||":
		ok = p.logic(e)
	case "==", "!=", "<", ">", "<=", ">=":
		ok = p.compare(e)
	case "<<", ">>":
		ok = p.shift(e)
	default:
		ok = p.arithmetic(e)
	}
	if !ok {
		return p.refuse(tok, pos, "operator "+op, "'%s' cannot be applied to '%s' and '%s'", op, a.Type.Bare(),
			b.Type.Bare())
	}
	return p.node(e)
}

// sameVectors converts two operands, at least one of them a vector, to one type: a scalar is
// converted to the type of the lanes. It returns false if that is not possible.
func (p *parser) sameVectors(e *tree.Expr) (t *tree.Type, ok bool) {
	switch {
	case e.A.Type.IsVector() && e.B.Type.IsVector():
		return e.A.Type.Bare(), tree.SameType(e.A.Type, e.B.Type)
	case e.A.Type.IsVector() && e.B.Type.IsScalar():
		p.checkRank(e.B, e.A.Type)
		e.B = p.conv(e.B, tree.Scalar(e.A.Type.Base))
		return e.A.Type.Bare(), true
	case e.A.Type.IsScalar() && e.B.Type.IsVector():
		p.checkRank(e.A, e.B.Type)
		e.A = p.conv(e.A, tree.Scalar(e.B.Type.Base))
		return e.B.Type.Bare(), true
	}
	return nil, false
}

// checkRank refuses a scalar whose type has a higher rank than the lanes of vector type v, as the
// specification (6.2.6) and clang do: the program has to cast it. A constant whose value the lanes
// can hold is accepted, as by older compilers: v * 0.5 with float lanes is unambiguous.
func (p *parser) checkRank(s *tree.Expr, v *tree.Type) {
	k, lane := s.Type.Base, v.Base
	if c := tree.Fold(s); c.OK && (c.IsFloat() && !tree.IsIntKind(lane) || !c.IsFloat() && c.Fits(lane)) {
		return
	}
	if k > lane { // the order of Kind is the order of rank, floating types last
		p.errorf(p.PosOf(s), "vector operand", "the scalar '%s' does not convert to the lanes of '%s': cast it",
			s.Type.Bare(), v.Bare())
	}
}

func needsInt(op string) bool {
	return op == "%" || op == "&" || op == "|" || op == "^" || op == "<<" || op == ">>"
}

// arithmetic types + - * / % & | ^.
func (p *parser) arithmetic(e *tree.Expr) bool {
	a, b := e.A.Type, e.B.Type
	e.Op = tree.OpBinary
	if a.IsVector() || b.IsVector() {
		t, ok := p.sameVectors(e)
		if !ok || needsInt(e.Text) && !tree.IsIntKind(t.Base) {
			return false
		}
		e.Type = t
		return true
	}
	if a.IsScalar() && b.IsScalar() {
		e.Type = tree.Usual(a, b)
		if needsInt(e.Text) && !tree.IsIntKind(e.Type.Base) {
			return false
		}
		p.halfOperands(e)
		return true
	}
	return p.pointerArithmetic(e)
}

// halfOperands converts both operands to half if one is half, because in renderings half may be a
// class whose operators take only that class.
func (p *parser) halfOperands(e *tree.Expr) {
	if e.A.Type.Base == tree.Half || e.B.Type.Base == tree.Half {
		t := tree.Usual(e.A.Type, e.B.Type)
		e.A, e.B = p.conv(e.A, t), p.conv(e.B, t)
	}
}

// pointerArithmetic types p + i, i + p, p - i and p - q.
func (p *parser) pointerArithmetic(e *tree.Expr) bool {
	e.A, e.B = p.voidAsBytes(e.A), p.voidAsBytes(e.B)
	a, b := e.A.Type, e.B.Type
	switch {
	case e.Text == "-" && a.IsPointer() && b.IsPointer():
		if !tree.SameType(a.Elem, b.Elem) {
			return false
		}
		p.complete(a, e.A)
		if !tree.SameObject(a.Elem, b.Elem) {
			e.B = p.conv(e.B, a)
		}
		e.Type = &tree.Type{Kind: tree.TScalar, Base: tree.Long, Alias: "ptrdiff_t"}
		return true
	case (e.Text == "+" || e.Text == "-") && a.IsPointer() && b.IsInteger():
		e.Type = a.Bare()
	case e.Text == "+" && a.IsInteger() && b.IsPointer():
		e.Type = b.Bare()
		a = b
	default:
		return false
	}
	p.complete(a, e.A)
	return true
}

// voidAsBytes converts a void pointer to a pointer to bytes, for arithmetic on void pointers, an
// extension of GNU C that OpenCL compilers have.
func (p *parser) voidAsBytes(e *tree.Expr) *tree.Expr {
	if !e.Type.IsPointer() || !e.Type.Elem.IsVoid() {
		return e
	}
	byteType := *e.Type.Elem
	byteType.Base = tree.Char
	return p.conv(e, tree.PointerTo(&byteType))
}

// complete checks that a pointer's target type is complete.
func (p *parser) complete(t *tree.Type, at *tree.Expr) {
	if _, ok := t.Elem.Size(); !ok && !t.Elem.IsUnknown() {
		p.errorf(p.PosOf(at), "pointer", "'%s' points to an incomplete type", t.Bare())
	}
}

// compareLanes types a comparison of vectors, whose result is integer lanes of 0 or -1.
func (p *parser) compareLanes(e *tree.Expr) bool {
	t, ok := p.sameVectors(e)
	if ok {
		e.Op, e.Type = tree.OpBinary, tree.Vector(tree.SignedOf(t.Base), t.N)
	}
	return ok
}

// compare types the relational and equality operators. The result is int for scalars.
func (p *parser) compare(e *tree.Expr) bool {
	a, b := e.A.Type, e.B.Type
	if a.IsVector() || b.IsVector() {
		return p.compareLanes(e)
	}
	e.Op, e.Type = tree.OpCompare, tree.IntType
	switch {
	case a.IsScalar() && b.IsScalar():
		p.halfOperands(e)
		return true
	case a.IsPointer() && b.IsPointer():
		if !a.Elem.IsVoid() && !b.Elem.IsVoid() || tree.IsNullConstant(e.A) == tree.IsNullConstant(e.B) {
			p.checkSpaces(e.B, a, "comparison")
		}
		if tree.IsNullConstant(e.A) {
			e.A = p.conv(e.A, b)
		} else {
			e.B = p.conv(e.B, a)
		}
		return true
	case a.IsPointer() && b.IsInteger(): // clang warns unless it is 0
		e.B = p.conv(e.B, a)
		return true
	case a.IsInteger() && b.IsPointer():
		e.A = p.conv(e.A, b)
		return true
	}
	return false
}

// logic types && and ||.
func (p *parser) logic(e *tree.Expr) bool {
	a, b := e.A.Type, e.B.Type
	if a.IsVector() || b.IsVector() {
		return p.compareLanes(e)
	}
	e.Op, e.Type = tree.OpLogic, tree.IntType
	return (a.IsScalar() || a.IsPointer()) && (b.IsScalar() || b.IsPointer())
}

// shift types << and >>: the result has the type of the left operand.
func (p *parser) shift(e *tree.Expr) bool {
	a, b := e.A.Type, e.B.Type
	if !a.IntElem() || !b.IntElem() {
		return false
	}
	if a.IsScalar() && b.IsScalar() {
		e.Op, e.Type = tree.OpShift, tree.Promoted(a)
		e.A, e.B = p.promote(e.A), p.promote(e.B)
		return true
	}
	if a.IsScalar() || b.IsVector() && a.N != b.N {
		return false
	}
	e.Op, e.Type = tree.OpBinary, a.Bare()
	if b.IsScalar() {
		e.B = p.conv(e.B, tree.Scalar(a.Base))
	} else {
		e.B = p.conv(e.B, a.Bare()) // only the low bits of a count matter
	}
	return true
}

// prefix types the prefix operators.
func (p *parser) prefix(op string, a *tree.Expr, tok int) *tree.Expr {
	if op == "&" {
		return p.addressOf(a, tok)
	}
	a = p.value(a)
	e := &tree.Expr{Op: tree.OpUnary, Text: op, A: a, Tok: tok}
	t := a.Type
	ok := false
	switch {
	case t.IsUnknown():
		return p.node(e)
	case op == "*":
		if ok = t.IsPointer() && !t.Elem.IsVoid(); ok {
			e.Type, e.LValue = t.Elem, true
			p.complete(t, a)
		}
	case op == "!" && t.IsVector():
		e.Type, ok = tree.Vector(tree.SignedOf(t.Base), t.N), true
	case op == "!":
		e.Type, ok = tree.IntType, t.IsScalar() || t.IsPointer()
	case t.IsVector():
		e.Type, ok = t.Bare(), op != "~" || tree.IsIntKind(t.Base)
	case t.IsScalar():
		e.Type, ok = tree.Promoted(t), op != "~" || tree.IsIntKind(t.Base)
	}
	if !ok {
		return p.refuse(tok, p.Toks[tok].Pos, "operator "+op, "'%s' cannot be applied to '%s'", op, t.Bare())
	}
	return p.node(e)
}

// addressOf types &a.
func (p *parser) addressOf(a *tree.Expr, tok int) *tree.Expr {
	if a.Type.IsUnknown() {
		return p.node(&tree.Expr{Op: tree.OpUnary, Text: "&", A: a, Tok: tok})
	}
	if a.Type.Kind == tree.TFunc {
		return p.rvalue(a)
	}
	if s := tree.Unparen(a); s.Op == tree.OpSwizzle && len(s.Lanes) > 1 {
		return p.refuse(tok, p.Toks[tok].Pos, "operator &", "several components of a vector have no address")
	}
	if !a.LValue {
		return p.refuse(tok, p.Toks[tok].Pos, "operator &", "only an object has an address")
	}
	return p.node(&tree.Expr{Op: tree.OpUnary, Text: "&", A: a, Type: tree.PointerTo(a.Type), Tok: tok})
}

// increment types ++ and --.
func (p *parser) increment(op tree.Op, text string, a *tree.Expr, tok int) *tree.Expr {
	e := &tree.Expr{Op: op, Text: text, A: a, Type: a.Type.Bare(), Tok: tok}
	if a.Type.IsUnknown() || !p.assignable(a, "operator "+text) {
		e.Type = tree.UnknownType
		return p.node(e)
	}
	p.checkHalf(a)
	if !a.Type.IsArith() && !a.Type.IsPointer() && !a.Type.IsUnknown() {
		return p.refuse(tok, p.PosOf(e), "operator "+text, "'%s' cannot be applied to '%s'", text, a.Type.Bare())
	}
	if a.Type.IsPointer() {
		p.complete(a.Type, a)
	}
	return p.node(e)
}

// assignable checks that a can be written.
func (p *parser) assignable(a *tree.Expr, construct string) bool {
	if !a.LValue || a.Type.Kind == tree.TArray {
		p.errorf(p.PosOf(a), construct, "this cannot be assigned to")
		return false
	}
	if a.Type.IsConst() {
		p.errorf(p.PosOf(a), construct, "this is '%s' and cannot be assigned to", a.Type)
		return false
	}
	if s := tree.Unparen(a); s.Op == tree.OpSwizzle {
		seen := 0
		for _, l := range s.Lanes {
			if seen&(1<<l) != 0 {
				p.errorf(p.PosOf(a), construct, "a component is named twice in the target of the assignment")
				return false
			}
			seen |= 1 << l
		}
	}
	return true
}

// assign types = and the compound assignments.
func (p *parser) assign(a *tree.Expr, op string, b *tree.Expr, pos token.Pos) *tree.Expr {
	e := &tree.Expr{Op: tree.OpAssign, Text: op, A: a, B: b, Type: a.Type.Bare(), Tok: a.Tok}
	if a.Type.IsUnknown() {
		e.B = p.value(b)
		return p.node(e)
	}
	if !p.assignable(a, "assignment") {
		return p.bad(a.Tok)
	}
	if op == "=" {
		e.B = p.assignConv(b, a.Type, "assignment")
		return p.node(e)
	}
	r := p.operate(a, op[:len(op)-1], b, a.Tok, pos)
	if r.Type.IsUnknown() {
		return p.bad(a.Tok)
	}
	e.B = r.B
	t := a.Type
	if t.IsVector() && !tree.SameType(r.Type, t) || !t.IsVector() && r.Type.IsVector() ||
		t.IsPointer() != r.Type.IsPointer() {
		return p.refuse(a.Tok, pos, "operator "+op, "'%s' cannot be applied to '%s' and '%s'", op, t.Bare(),
			b.Type.Bare())
	}
	return p.node(e)
}
