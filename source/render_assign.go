package source

// What changes objects, in C++: ++, --, assignments, and the detours that swizzles,
// volatile classes, packed records and halves take.

import "strings"

// increment writes ++ and --. C++17 has no ++ for bool.
func (r *renderer) increment(e *expr) {
	if e.typ.is(Bool) {
		r.w("(")
		r.expr(e.a)
		if e.text == "++" {
			r.w(" = true)")
		} else {
			r.w(" ^= true)")
		}
		return
	}
	if e.typ.isScalar() && e.typ.base == Half && !r.d.msl {
		r.w("[&]{ auto &cc_o = ")
		r.expr(e.a)
		result := "cc_r"
		if e.op == opPostInc {
			result = "cc_was"
		}
		load, store := loadStore(e.a.typ)
		r.w("; cc_half cc_was = ", load, ", cc_r = (cc_half)((cc_float)cc_was ", e.text[:1], " 1.0f); ", store, "; return ", result, "; }()")
		return
	}
	before, after := e.text, ""
	if e.op == opPostInc {
		before, after = "", e.text
	}
	if e.typ.isVector() && inPacked(e.a) {
		r.throughCopy(e.a, before, func() { r.w(after) })
		return
	}
	r.w(before)
	r.stepped(e.a)
	r.w(after)
}

// stepped writes what ++, --, += and -= change. Pointers to void step by bytes.
func (r *renderer) stepped(e *expr) {
	if e.typ.isPointer() && e.typ.elem.isVoid() {
		r.w("(*(", r.plain(pointerTo(pointerTo(charType.in(e.typ.elem.space)).in(e.typ.space))), ")&(")
		r.expr(e)
		r.w("))")
		return
	}
	r.object(e)
}

// throughCopy changes an object that no reference can be bound to, a member of a
// packed record: in a copy that is written back. The change stands around the
// copy's name.
func (r *renderer) throughCopy(e *expr, before string, after func()) {
	whole, name := unparen(e), "cc_t"
	if whole.op == opSwizzle && len(whole.lanes) > 1 {
		name = "cc_ref<" + laneList(whole.lanes) + ">(cc_t)"
		whole = whole.a
	}
	// Its address is taken once: what designates it may have side effects.
	if r.d.msl {
		r.w("({ auto cc_p = ")
		r.metalBytes(whole)
		typ := r.plain(whole.typ)
		r.w("; ", typ, " cc_t = cc_unpack<", typ, ">(cc_p); auto cc_r = ", before, name)
		after()
		r.w("; cc_pack<", typ, ">(cc_p, cc_t); cc_r; })")
		return
	}
	r.w("[&]{ char *cc_p = (char *)&(")
	r.expr(whole)
	r.w("); ", r.typeText(whole.typ.bare(), "cc_t"), "; CC_COPY(&cc_t, cc_p, sizeof cc_t); auto cc_r = ", before, name)
	after()
	r.w("; CC_COPY(cc_p, &cc_t, sizeof cc_t); return cc_r; }()")
}

// mixedHalf tells whether a compound assignment computes in another type than that
// of its left side because half is one of them. C++ would take the class's operator
// and round the right side to half first.
func mixedHalf(e *expr) bool {
	a, b := e.a.typ, e.b.typ
	return e.text != "=" && a.isScalar() && b.isScalar() && a.base != b.base && (a.base == Half || b.base == Half)
}

// assignMixed converts the left side, computes, and converts back once.
func (r *renderer) assignMixed(e *expr) {
	typ := r.typeText(e.a.typ.bare(), "")
	load, store := loadStore(e.a.typ)
	r.w("[&]{ auto &cc_o = ")
	r.expr(e.a)
	op := strings.TrimSuffix(e.text, "=")
	open, between := "((", " "+op+" "
	if f := fusedNames[op]; f != "" && r.fused(e.b.typ) {
		open, between = f+"((", ", "
	}
	r.w("; ", typ, " cc_r = (", typ, ")", open, r.typeText(e.b.typ.bare(), ""), ")", load, between)
	r.expr(e.b)
	r.w("); ", store, "; return cc_r; }()")
}

// inPacked tells whether e designates a part of a packed record, which may lie
// anywhere.
func inPacked(e *expr) bool {
	for {
		switch e.op {
		case opMember:
			if e.a.typ.rec.packed {
				return true
			}
			for _, f := range e.path {
				if f.packed || f.typ.kind == tRecord && f.typ.rec.packed && f != e.path[len(e.path)-1] {
					return true
				}
			}
		case opParen, opSwizzle, opComponent, opDecay:
		case opIndex:
			if e.a.op != opDecay {
				return false
			}
		default:
			return false
		}
		e = e.a
	}
}

// object writes what is assigned to: a swizzle becomes a proxy.
func (r *renderer) object(e *expr) {
	if s := unparen(e); s.op == opSwizzle && len(s.lanes) > 1 {
		r.w("cc_ref<", laneList(s.lanes), ">(")
		r.place(s.a)
		r.w(")")
		return
	}
	r.place(e)
}

func (r *renderer) assign(e *expr) {
	f := r.assignCall(e)
	swizzle := unparen(e.a).op == opSwizzle && e.a.typ.isVector()
	if (f != "" || swizzle || e.text != "=" && e.a.typ.isVector()) && inPacked(e.a) {
		value := func() {
			r.w(" ", e.text, " ")
			r.expr(e.b)
		}
		before := ""
		if f != "" {
			before = f + "("
			value = func() {
				r.w(", ")
				r.expr(e.b)
				r.w(")")
			}
		}
		r.throughCopy(e.a, before, value)
		return
	}
	if mixedHalf(e) && !r.d.msl {
		r.assignMixed(e)
		return
	}
	if f != "" {
		r.w(f, "(")
		r.object(e.a)
		r.w(", ")
		r.expr(e.b)
		r.w(")")
		return
	}
	if r.d.msl && e.text == "=" && !swizzle && (storesWhole(e.a.typ) || metalLoads(e.a)) {
		r.metalStoreTo(e.a)
		r.expr(e.b)
		r.w(")")
		return
	}
	if e.text == "=" && storesWhole(e.a.typ) && !swizzle {
		r.w("cc_store(")
		r.expr(e.a)
		r.w(", ")
		r.expr(e.b)
		r.w(")")
		return
	}
	if e.text == "=" {
		r.object(e.a)
	} else {
		r.stepped(e.a)
	}
	r.w(" ", e.text, " ")
	r.expr(e.b)
}

// assignCall names the function that stands for a compound assignment to a scalar, if
// one does.
func (r *renderer) assignCall(e *expr) string {
	if !e.a.typ.isScalar() {
		return ""
	}
	if f := fusedNames[strings.TrimSuffix(e.text, "=")]; f != "" && e.b.typ.isScalar() && !mixedHalf(e) {
		if t := usual(e.a.typ, e.b.typ); r.fused(t) && mayNegate(e.text[:1], constant{}, fold(e.b)) {
			return f + "_assign<" + r.plain(t) + ">"
		}
	}
	return shiftAssign[e.text]
}

var shiftAssign = map[string]string{"<<=": "cc_shl_assign", ">>=": "cc_shr_assign"}

// loadStore says how the object cc_o of type t is read, and how cc_r is written to it.
func loadStore(t *ctype) (load, store string) {
	if storesWhole(t) {
		return "cc_load(cc_o)", "cc_store(cc_o, cc_r)"
	}
	return "cc_o", "cc_o = cc_r"
}
