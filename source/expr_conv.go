package source

// Conversions: what C does implicitly, written out where C++ would not do the
// same by itself.

// rvalue makes e a value: arrays become pointers, half needs its feature.
func (p *parser) rvalue(e *expr) *expr {
	switch e.typ.kind {
	case tArray:
		return p.node(&expr{op: opDecay, a: e, typ: pointerTo(e.typ.elem), tok: e.tok})
	case tFunc:
		p.errorf(p.posOf(e), "function pointer", "a function can only be called: function pointers are not part of OpenCL C")
		return p.bad(e.tok)
	}
	p.checkHalf(e)
	if e.lval && storesWhole(e.typ) && unparen(e).op != opSwizzle {
		return p.node(&expr{op: opLoad, a: e, typ: e.typ.bare(), tok: e.tok})
	}
	return e
}

// checkHalf refuses values of type half where only storage of half works.
func (p *parser) checkHalf(e *expr) {
	if !p.feats.FP16 && e.typ.isArith() && e.typ.base == Half {
		p.errorf(p.posOf(e), "half", "a value of type '%s' needs the feature cl_khr_fp16, which the device does not have; use vload_half and vstore_half", e.typ.bare())
		e.typ = unknownType
	}
}

// value demands an expression that has a value.
func (p *parser) value(e *expr) *expr {
	e = p.rvalue(e)
	if e.typ.isVoid() {
		p.errorf(p.posOf(e), "expression", "this has no value")
		return p.bad(e.tok)
	}
	return e
}

// condition checks what if, while, ?: and ! ask for.
func (p *parser) condition(e *expr) *expr {
	e = p.value(e)
	if !e.typ.isScalar() && !e.typ.isPointer() && !e.typ.isUnknown() {
		p.errorf(p.posOf(e), "condition", "a condition must be a scalar or a pointer, not '%s'", e.typ.bare())
	}
	return e
}

// conv wraps e into an implicit conversion, unless it has the type already.
func (p *parser) conv(e *expr, t *ctype) *expr {
	if e.typ.isUnknown() || t.isUnknown() || sameType(e.typ, t) {
		return e
	}
	return p.node(&expr{op: opConv, a: e, typ: t.bare(), tok: e.tok})
}

// promote applies the integer promotions.
func (p *parser) promote(e *expr) *expr { return p.conv(e, promoted(e.typ)) }

// assignConv converts e to what an object, parameter or result of type t takes,
// or reports that it does not fit.
func (p *parser) assignConv(e *expr, t *ctype, construct string) *expr {
	e = p.value(e)
	from := e.typ
	switch {
	case from.isUnknown() || t.isUnknown():
		return e
	case sameType(from, t):
		return e
	case t.isScalar() && from.isScalar():
		if t.base == Half && !p.feats.FP16 {
			p.checkHalf(&expr{typ: t, tok: e.tok})
			return p.bad(e.tok)
		}
		return p.conv(e, t)
	case t.isVector() && from.isScalar():
		return p.conv(e, t)
	case t.is(Bool) && from.isPointer():
		return p.conv(e, t)
	case t.isPointer() && isNullConstant(e):
		return p.conv(e, t)
	case t.isPointer() && from.isPointer():
		p.checkSpaces(e, t, construct)
		return p.conv(e, t)
	case t.kind == tEvent && from.isInteger() && isNullConstant(e):
		return p.conv(e, t)
	}
	p.errorf(p.posOf(e), construct, "'%s' cannot become '%s'", from.bare(), t.bare())
	return p.bad(e.tok)
}

// checkSpaces refuses a conversion of pointers that changes the address space.
func (p *parser) checkSpaces(e *expr, t *ctype, construct string) {
	a, b := e.typ.elem, t.elem
	for {
		if arrayBase(a).space != arrayBase(b).space {
			p.errorf(p.posOf(e), "address space", "%s: '%s' cannot become '%s': the address spaces differ", construct, e.typ.bare(), t.bare())
			return
		}
		if !a.isPointer() || !b.isPointer() {
			return
		}
		a, b = a.elem, b.elem
	}
}

// cast types (typ)e.
func (p *parser) cast(typ *ctype, e *expr, tok int) *expr {
	out := &expr{op: opCast, a: e, typ: typ.bare(), tok: tok}
	if typ.isVoid() {
		out.a = p.voidOperand(e)
		return p.node(out)
	}
	e = p.value(e)
	out.a = e
	from, pos := e.typ, p.toks[tok].Pos
	ok := false
	switch {
	case from.isUnknown() || typ.isUnknown():
		return p.node(&expr{op: opCast, a: e, typ: unknownType, tok: tok})
	case typ.isArith() && from.isScalar(), sameType(typ, from) && !typ.isAggregate():
		ok = true
		if typ.base == Half && typ.isScalar() && !p.feats.FP16 {
			p.checkHalf(&expr{typ: typ, tok: tok})
			return p.bad(tok)
		}
	case typ.isPointer() && from.isPointer():
		p.checkSpaces(e, typ, "cast")
		ok = true
	case typ.isPointer() && from.isInteger(), typ.isInteger() && from.isPointer():
		ok = true
	case typ.kind == tEvent:
		ok = from.isInteger() && isNullConstant(e)
	case sameType(typ, from):
		ok = typ.kind == tRecord // clang refuses; harmless
	case typ.isVector() && from.isVector():
		p.errorf(pos, "cast", "a vector cannot be cast to another vector type ('%s' to '%s'): use convert_%s or as_%s", from.bare(), typ.bare(), typ.bare(), typ.bare())
		return p.bad(tok)
	}
	if !ok {
		p.errorf(pos, "cast", "'%s' cannot be cast to '%s'", from.bare(), typ.bare())
		return p.bad(tok)
	}
	return p.node(out)
}

// voidOperand is an operand whose value is dropped.
func (p *parser) voidOperand(e *expr) *expr {
	if e.typ.kind == tFunc {
		return p.rvalue(e)
	}
	return e
}
