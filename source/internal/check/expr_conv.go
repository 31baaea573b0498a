package check

// Conversions: C's implicit conversions become nodes of the tree where C++ would not make the same
// ones.

import "github.com/concord-compute/concord/source/internal/tree"

// rvalue converts e to a value: arrays become pointers, and values of half need the feature.
func (p *parser) rvalue(e *tree.Expr) *tree.Expr {
	switch e.Type.Kind {
	case tree.TArray:
		return p.node(&tree.Expr{Op: tree.OpDecay, A: e, Type: tree.PointerTo(e.Type.Elem), Tok: e.Tok})
	case tree.TFunc:
		return p.refuse(e.Tok, p.PosOf(e), "function pointer", "a function can only be called: function pointers are not "+
			"part of OpenCL C")
	}
	p.checkHalf(e)
	if e.LValue && tree.StoresWhole(e.Type) && tree.Unparen(e).Op != tree.OpSwizzle {
		return p.node(&tree.Expr{Op: tree.OpLoad, A: e, Type: e.Type.Bare(), Tok: e.Tok})
	}
	return e
}

// checkHalf refuses values of type half on devices without half arithmetic.
func (p *parser) checkHalf(e *tree.Expr) {
	if !p.feats.FP16 && e.Type.IsArith() && e.Type.Base == tree.Half {
		p.errorf(p.PosOf(e), "half", "a value of type '%s' needs the feature cl_khr_fp16, which the device does not have; "+
			"use vload_half and vstore_half", e.Type.Bare())
		e.Type = tree.UnknownType
	}
}

// value reports an error if e has no value.
func (p *parser) value(e *tree.Expr) *tree.Expr {
	e = p.rvalue(e)
	if e.Type.IsVoid() {
		return p.refuse(e.Tok, p.PosOf(e), "expression", "this has no value")
	}
	return e
}

// condition checks the operand of if, while, ?: and !.
func (p *parser) condition(e *tree.Expr) *tree.Expr {
	e = p.value(e)
	if !e.Type.IsScalar() && !e.Type.IsPointer() && !e.Type.IsUnknown() {
		p.errorf(p.PosOf(e), "condition", "a condition must be a scalar or a pointer, not '%s'", e.Type.Bare())
	}
	return e
}

// conv wraps e into an implicit conversion, unless it has the type already.
func (p *parser) conv(e *tree.Expr, t *tree.Type) *tree.Expr {
	if e.Type.IsUnknown() || t.IsUnknown() || tree.SameType(e.Type, t) {
		return e
	}
	return p.node(&tree.Expr{Op: tree.OpConv, A: e, Type: t.Bare(), Tok: e.Tok})
}

// promote applies the integer promotions.
func (p *parser) promote(e *tree.Expr) *tree.Expr { return p.conv(e, tree.Promoted(e.Type)) }

// assignConv converts e for an object, parameter or result of type t, or reports that it cannot be
// converted.
func (p *parser) assignConv(e *tree.Expr, t *tree.Type, construct string) *tree.Expr {
	e = p.value(e)
	from := e.Type
	switch {
	case from.IsUnknown() || t.IsUnknown():
		return e
	case tree.SameType(from, t):
		return e
	case t.IsScalar() && from.IsScalar():
		if t.Base == tree.Half && !p.feats.FP16 {
			p.checkHalf(&tree.Expr{Type: t, Tok: e.Tok})
			return p.bad(e.Tok)
		}
		return p.conv(e, t)
	case t.IsVector() && from.IsScalar():
		return p.conv(e, t)
	case t.Is(tree.Bool) && from.IsPointer():
		return p.conv(e, t)
	case t.IsPointer() && tree.IsNullConstant(e):
		return p.conv(e, t)
	case t.IsPointer() && from.IsPointer():
		p.checkSpaces(e, t, construct)
		return p.conv(e, t)
	case t.Kind == tree.TEvent && from.IsInteger() && tree.IsNullConstant(e):
		return p.conv(e, t)
	}
	return p.refuse(e.Tok, p.PosOf(e), construct, "'%s' cannot become '%s'", from.Bare(), t.Bare())
}

// checkSpaces refuses a conversion of pointers that changes the address space.
func (p *parser) checkSpaces(e *tree.Expr, t *tree.Type, construct string) {
	a, b := e.Type.Elem, t.Elem
	for {
		if tree.ArrayBase(a).Space != tree.ArrayBase(b).Space {
			p.errorf(p.PosOf(e), "address space", "%s: '%s' cannot become '%s': the address spaces differ", construct,
				e.Type.Bare(), t.Bare())
			return
		}
		if !a.IsPointer() || !b.IsPointer() {
			return
		}
		a, b = a.Elem, b.Elem
	}
}

// cast types (typ)e.
func (p *parser) cast(typ *tree.Type, e *tree.Expr, tok int) *tree.Expr {
	out := &tree.Expr{Op: tree.OpCast, A: e, Type: typ.Bare(), Tok: tok}
	if typ.IsVoid() {
		if e.Type.Kind == tree.TFunc {
			out.A = p.rvalue(e)
		}
		return p.node(out)
	}
	e = p.value(e)
	out.A = e
	from, pos := e.Type, p.Toks[tok].Pos
	ok := false
	switch {
	case from.IsUnknown() || typ.IsUnknown():
		return p.node(&tree.Expr{Op: tree.OpCast, A: e, Type: tree.UnknownType, Tok: tok})
	case typ.IsArith() && from.IsScalar(), tree.SameType(typ, from) && !typ.IsAggregate():
		ok = true
		if typ.Base == tree.Half && typ.IsScalar() && !p.feats.FP16 {
			p.checkHalf(&tree.Expr{Type: typ, Tok: tok})
			return p.bad(tok)
		}
	case typ.IsPointer() && from.IsPointer():
		p.checkSpaces(e, typ, "cast")
		ok = true
	case typ.IsPointer() && from.IsInteger(), typ.IsInteger() && from.IsPointer():
		ok = true
	case typ.Kind == tree.TEvent:
		ok = from.IsInteger() && tree.IsNullConstant(e)
	case tree.SameType(typ, from):
		ok = typ.Kind == tree.TRecord // clang refuses this, but it is harmless
	case typ.IsVector() && from.IsVector():
		return p.refuse(tok, pos, "cast",
			"a vector cannot be cast to another vector type ('%s' to '%s'): use convert_%s or as_%s", from.Bare(), typ.Bare(),
			typ.Bare(), typ.Bare())
	}
	if !ok {
		return p.refuse(tok, pos, "cast", "'%s' cannot be cast to '%s'", from.Bare(), typ.Bare())
	}
	return p.node(out)
}
