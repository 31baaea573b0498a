package source

// Operators: their types, and the conversions of their operands.

import "github.com/concord-compute/concord/source/internal/token"

// operate types a op b for the binary operators.
func (p *parser) operate(a *expr, op string, b *expr, tok int, pos token.Pos) *expr {
	a, b = p.value(a), p.value(b)
	e := &expr{a: a, b: b, text: op, tok: tok}
	if a.typ.isUnknown() || b.typ.isUnknown() {
		e.op = opBad
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
		p.errorf(pos, "operator "+op, "'%s' cannot be applied to '%s' and '%s'", op, a.typ.bare(), b.typ.bare())
		return p.bad(tok)
	}
	return p.node(e)
}

// sameVectors brings two operands, at least one of them a vector, to one type:
// a scalar takes the type of the lanes. It is false when that is not possible.
func (p *parser) sameVectors(e *expr) (t *ctype, ok bool) {
	switch {
	case e.a.typ.isVector() && e.b.typ.isVector():
		return e.a.typ.bare(), sameType(e.a.typ, e.b.typ)
	case e.a.typ.isVector() && e.b.typ.isScalar():
		p.checkRank(e.b, e.a.typ)
		e.b = p.conv(e.b, scalar(e.a.typ.base))
		return e.a.typ.bare(), true
	case e.a.typ.isScalar() && e.b.typ.isVector():
		p.checkRank(e.a, e.b.typ)
		e.a = p.conv(e.a, scalar(e.b.typ.base))
		return e.b.typ.bare(), true
	}
	return nil, false
}

// checkRank refuses a scalar that the lanes of vector type v could not hold in
// general, as the specification (6.2.6) and clang do: a cast says what is meant.
// A constant that the lanes do hold is taken, as older compilers had it: v * 0.5
// with float lanes means one thing only.
func (p *parser) checkRank(s *expr, v *ctype) {
	k, lane := s.typ.base, v.base
	if c := fold(s); c.ok && (!c.float && c.convert(scalar(lane)) == c || c.float && !isIntKind(lane)) {
		return
	}
	ok := k <= lane // the order of Kind is the order of rank, floating types last
	if !isIntKind(k) && k != lane {
		ok = map[Kind]int{Half: 1, Float: 2, Double: 3}[k] <= map[Kind]int{Half: 1, Float: 2, Double: 3}[lane]
	}
	if !ok {
		p.errorf(p.posOf(s), "vector operand", "the scalar '%s' does not convert to the lanes of '%s': cast it", s.typ.bare(), v.bare())
	}
}

func needsInt(op string) bool {
	return op == "%" || op == "&" || op == "|" || op == "^" || op == "<<" || op == ">>"
}

// arithmetic types + - * / % & | ^.
func (p *parser) arithmetic(e *expr) bool {
	a, b := e.a.typ, e.b.typ
	e.op = opBinary
	if a.isVector() || b.isVector() {
		t, ok := p.sameVectors(e)
		if !ok || needsInt(e.text) && !isIntKind(t.base) {
			return false
		}
		e.typ = t
		return true
	}
	if a.isScalar() && b.isScalar() {
		e.typ = usual(a, b)
		if needsInt(e.text) && !isIntKind(e.typ.base) {
			return false
		}
		p.halfOperands(e)
		return true
	}
	return p.pointerArithmetic(e)
}

// halfOperands converts both operands when one is half: the class that stands
// for half elsewhere takes only its own kind.
func (p *parser) halfOperands(e *expr) {
	if e.a.typ.base == Half || e.b.typ.base == Half {
		t := usual(e.a.typ, e.b.typ)
		e.a, e.b = p.conv(e.a, t), p.conv(e.b, t)
	}
}

// pointerArithmetic types p + i, i + p, p - i and p - q.
func (p *parser) pointerArithmetic(e *expr) bool {
	e.a, e.b = p.voidAsBytes(e.a), p.voidAsBytes(e.b)
	a, b := e.a.typ, e.b.typ
	switch {
	case e.text == "-" && a.isPointer() && b.isPointer():
		if !sameType(a.elem, b.elem) || !p.complete(a, e.a) {
			return false
		}
		if !sameObject(a.elem, b.elem) {
			e.b = p.conv(e.b, a)
		}
		e.typ = &ctype{kind: tScalar, base: Long, alias: "ptrdiff_t"}
		return true
	case (e.text == "+" || e.text == "-") && a.isPointer() && b.isInteger():
		e.typ = a.bare()
	case e.text == "+" && a.isInteger() && b.isPointer():
		e.typ = b.bare()
		a = b
	default:
		return false
	}
	return p.complete(a, e.a)
}

// voidAsBytes makes a void pointer one to bytes, which is how OpenCL compilers
// take arithmetic on it, from GNU C.
func (p *parser) voidAsBytes(e *expr) *expr {
	if !e.typ.isPointer() || !e.typ.elem.isVoid() {
		return e
	}
	byteType := *e.typ.elem
	byteType.base = Char
	return p.conv(e, pointerTo(&byteType))
}

// complete checks that a pointer's elements have a size.
func (p *parser) complete(t *ctype, at *expr) bool {
	if _, ok := t.elem.size(); !ok && !t.elem.isUnknown() {
		p.errorf(p.posOf(at), "pointer", "'%s' points to an incomplete type", t.bare())
	}
	return true
}

// compare types the relational and equality operators: int for scalars, lanes
// of 0 and -1 for vectors.
func (p *parser) compare(e *expr) bool {
	a, b := e.a.typ, e.b.typ
	if a.isVector() || b.isVector() {
		t, ok := p.sameVectors(e)
		if !ok {
			return false
		}
		e.op, e.typ = opBinary, vector(signedOf(t.base), t.n)
		return true
	}
	e.op, e.typ = opCompare, intType
	switch {
	case a.isScalar() && b.isScalar():
		p.halfOperands(e)
		return true
	case a.isPointer() && b.isPointer():
		if !a.elem.isVoid() && !b.elem.isVoid() || isNullConstant(e.a) == isNullConstant(e.b) {
			p.checkSpaces(e.b, a, "comparison")
		}
		if isNullConstant(e.a) {
			e.a = p.conv(e.a, b)
		} else {
			e.b = p.conv(e.b, a)
		}
		return true
	case a.isPointer() && b.isInteger(): // clang warns unless it is 0
		e.b = p.conv(e.b, a)
		return true
	case a.isInteger() && b.isPointer():
		e.a = p.conv(e.a, b)
		return true
	}
	return false
}

// logic types && and ||.
func (p *parser) logic(e *expr) bool {
	a, b := e.a.typ, e.b.typ
	if a.isVector() || b.isVector() {
		t, ok := p.sameVectors(e)
		if !ok {
			return false
		}
		e.op, e.typ = opBinary, vector(signedOf(t.base), t.n)
		return true
	}
	e.op, e.typ = opLogic, intType
	return (a.isScalar() || a.isPointer()) && (b.isScalar() || b.isPointer())
}

// shift types << and >>: the result has the type of the left operand.
func (p *parser) shift(e *expr) bool {
	a, b := e.a.typ, e.b.typ
	if !a.intElem() || !b.intElem() {
		return false
	}
	if a.isScalar() && b.isScalar() {
		e.op, e.typ = opShift, promoted(a)
		e.a, e.b = p.promote(e.a), p.promote(e.b)
		return true
	}
	if a.isScalar() || b.isVector() && a.n != b.n {
		return false
	}
	e.op, e.typ = opBinary, a.bare()
	if b.isScalar() {
		e.b = p.conv(e.b, scalar(a.base))
	} else {
		e.b = p.conv(e.b, a.bare()) // only the low bits of a count matter
	}
	return true
}

// prefix types the prefix operators.
func (p *parser) prefix(op string, a *expr, tok int) *expr {
	if op == "&" {
		return p.addressOf(a, tok)
	}
	a = p.value(a)
	e := &expr{op: opUnary, text: op, a: a, tok: tok}
	t := a.typ
	ok := false
	switch {
	case t.isUnknown():
		return p.node(e)
	case op == "*":
		if ok = t.isPointer() && !t.elem.isVoid(); ok {
			e.typ, e.lval = t.elem, true
			p.complete(t, a)
		}
	case op == "!" && t.isVector():
		e.typ, ok = vector(signedOf(t.base), t.n), true
	case op == "!":
		e.typ, ok = intType, t.isScalar() || t.isPointer()
	case t.isVector():
		e.typ, ok = t.bare(), op != "~" || isIntKind(t.base)
	case t.isScalar():
		e.typ, ok = promoted(t), op != "~" || isIntKind(t.base)
	}
	if !ok {
		p.errorf(p.toks[tok].Pos, "operator "+op, "'%s' cannot be applied to '%s'", op, t.bare())
		return p.bad(tok)
	}
	return p.node(e)
}

// addressOf types &a.
func (p *parser) addressOf(a *expr, tok int) *expr {
	if a.typ.isUnknown() {
		return p.node(&expr{op: opUnary, text: "&", a: a, tok: tok})
	}
	if a.typ.kind == tFunc {
		return p.rvalue(a)
	}
	if s := unparen(a); s.op == opSwizzle && len(s.lanes) > 1 {
		p.errorf(p.toks[tok].Pos, "operator &", "several components of a vector have no address")
		return p.bad(tok)
	}
	if !a.lval {
		p.errorf(p.toks[tok].Pos, "operator &", "only an object has an address")
		return p.bad(tok)
	}
	return p.node(&expr{op: opUnary, text: "&", a: a, typ: pointerTo(a.typ), tok: tok})
}

// increment types ++ and --.
func (p *parser) increment(op exprOp, text string, a *expr, tok int) *expr {
	e := &expr{op: op, text: text, a: a, typ: a.typ.bare(), tok: tok}
	if a.typ.isUnknown() || !p.assignable(a, "operator "+text) {
		e.typ = unknownType
		return p.node(e)
	}
	p.checkHalf(a)
	if !a.typ.isArith() && !a.typ.isPointer() && !a.typ.isUnknown() {
		p.errorf(p.posOf(e), "operator "+text, "'%s' cannot be applied to '%s'", text, a.typ.bare())
		return p.bad(tok)
	}
	if a.typ.isPointer() {
		p.complete(a.typ, a)
	}
	return p.node(e)
}

// assignable checks that a can be written.
func (p *parser) assignable(a *expr, construct string) bool {
	if !a.lval || a.typ.kind == tArray {
		p.errorf(p.posOf(a), construct, "this cannot be assigned to")
		return false
	}
	if a.typ.isConst() {
		p.errorf(p.posOf(a), construct, "this is '%s' and cannot be assigned to", a.typ)
		return false
	}
	if s := unparen(a); s.op == opSwizzle {
		seen := 0
		for _, l := range s.lanes {
			if seen&(1<<l) != 0 {
				p.errorf(p.posOf(a), construct, "a component is named twice in what is assigned to")
				return false
			}
			seen |= 1 << l
		}
	}
	return true
}

// assign types = and the compound assignments.
func (p *parser) assign(a *expr, op string, b *expr, pos token.Pos) *expr {
	e := &expr{op: opAssign, text: op, a: a, b: b, typ: a.typ.bare(), tok: a.tok}
	if a.typ.isUnknown() {
		e.b = p.value(b)
		return p.node(e)
	}
	if !p.assignable(a, "assignment") {
		return p.bad(a.tok)
	}
	if op == "=" {
		e.b = p.assignConv(b, a.typ, "assignment")
		return p.node(e)
	}
	r := p.operate(a, op[:len(op)-1], b, a.tok, pos)
	if r.typ.isUnknown() {
		return p.bad(a.tok)
	}
	e.b = r.b
	t := a.typ
	if t.isVector() && !sameType(r.typ, t) || !t.isVector() && r.typ.isVector() ||
		t.isPointer() != r.typ.isPointer() {
		p.errorf(pos, "operator "+op, "'%s' cannot be applied to '%s' and '%s'", op, t.bare(), b.typ.bare())
		return p.bad(a.tok)
	}
	return p.node(e)
}
