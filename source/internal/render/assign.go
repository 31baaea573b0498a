package render

// Operators with side effects in C++: ++, --, assignments, and the special forms that swizzles,
// volatile classes, packed records and halves need.

import (
	"strings"

	"github.com/concord-compute/concord/source/internal/tree"
)

// increment writes ++ and --. C++17 has no ++ for bool.
func (r *renderer) increment(e *tree.Expr) {
	if e.Type.Is(tree.Bool) {
		r.w("(", e.A)
		if e.Text == "++" {
			r.w(" = true)")
		} else {
			r.w(" ^= true)")
		}
		return
	}
	if e.Type.IsScalar() && e.Type.Base == tree.Half && !r.d.msl {
		r.w("[&]{ auto &cc_o = ", e.A)
		result := "cc_r"
		if e.Op == tree.OpPostInc {
			result = "cc_was"
		}
		load, store := loadStore(e.A.Type)
		r.w("; cc_half cc_was = ", load, ", cc_r = (cc_half)((cc_float)cc_was ", e.Text[:1], " 1.0f); ", store, "; return ",
			result, "; }()")
		return
	}
	before, after := e.Text, ""
	if e.Op == tree.OpPostInc {
		before, after = "", e.Text
	}
	if e.Type.IsVector() && inPacked(e.A) {
		r.throughCopy(e.A, before, func() { r.w(after) })
		return
	}
	r.w(before)
	r.stepped(e.A)
	r.w(after)
}

// stepped writes the operand of ++, --, += and -=. Pointers to void step by bytes.
func (r *renderer) stepped(e *tree.Expr) {
	if e.Type.IsPointer() && e.Type.Elem.IsVoid() {
		r.w("(*(", r.plain(tree.PointerTo(tree.PointerTo(tree.CharType.In(e.Type.Elem.Space)).In(e.Type.Space))),
			")&(", e, "))")
		return
	}
	r.object(e)
}

// throughCopy writes a change of a member of a packed record, to which no reference can be bound: a
// copy is changed and written back. The text of the change is before and after the copy's name.
func (r *renderer) throughCopy(e *tree.Expr, before string, after func()) {
	whole, name := tree.Unparen(e), "cc_t"
	if whole.Op == tree.OpSwizzle && len(whole.Lanes) > 1 {
		name = "cc_ref<" + laneList(whole.Lanes) + ">(cc_t)"
		whole = whole.A
	}
	// The address is computed once, since its expression may have side effects.
	if r.d.msl {
		r.w("({ auto cc_p = ")
		r.metalBytes(whole)
		typ := r.plain(whole.Type)
		r.w("; ", typ, " cc_t = cc_unpack<", typ, ">(cc_p); auto cc_r = ", before, name)
		after()
		r.w("; cc_pack<", typ, ">(cc_p, cc_t); cc_r; })")
		return
	}
	r.w("[&]{ char *cc_p = (char *)&(", whole, "); ", r.typeText(whole.Type.Bare(), "cc_t"),
		"; CC_COPY(&cc_t, cc_p, sizeof cc_t); auto cc_r = ", before, name)
	after()
	r.w("; CC_COPY(cc_p, &cc_t, sizeof cc_t); return cc_r; }()")
}

// mixedHalf reports whether a compound assignment with a half on one side computes in another type
// than that of its left side. C++ would use the operator of the class for half and round the right
// side to half first.
func mixedHalf(e *tree.Expr) bool {
	a, b := e.A.Type, e.B.Type
	return e.Text != "=" && a.IsScalar() && b.IsScalar() && a.Base != b.Base &&
		(a.Base == tree.Half || b.Base == tree.Half)
}

// assignMixed writes such an assignment: the left side is converted, and the result is converted
// back once.
func (r *renderer) assignMixed(e *tree.Expr) {
	typ := r.typeText(e.A.Type.Bare(), "")
	load, store := loadStore(e.A.Type)
	r.w("[&]{ auto &cc_o = ", e.A)
	op := strings.TrimSuffix(e.Text, "=")
	open, between := "((", " "+op+" "
	if f := fusedNames[op]; f != "" && r.fused(e.B.Type) {
		open, between = f+"((", ", "
	}
	r.w("; ", typ, " cc_r = (", typ, ")", open, r.typeText(e.B.Type.Bare(), ""), ")", load, between, e.B, "); ",
		store, "; return cc_r; }()")
}

// inPacked reports whether e designates a part of a packed record, which may be unaligned.
func inPacked(e *tree.Expr) bool {
	for {
		switch e.Op {
		case tree.OpMember:
			if e.A.Type.Rec.Packed {
				return true
			}
			for _, f := range e.Path {
				if f.Packed || f.Type.Kind == tree.TRecord && f.Type.Rec.Packed && f != e.Path[len(e.Path)-1] {
					return true
				}
			}
		case tree.OpParen, tree.OpSwizzle, tree.OpComponent, tree.OpDecay:
		case tree.OpIndex:
			if e.A.Op != tree.OpDecay {
				return false
			}
		default:
			return false
		}
		e = e.A
	}
}

// object writes the target of an assignment; a swizzle becomes a proxy object.
func (r *renderer) object(e *tree.Expr) {
	if s := tree.Unparen(e); s.Op == tree.OpSwizzle && len(s.Lanes) > 1 {
		r.w("cc_ref<", laneList(s.Lanes), ">(")
		r.place(s.A)
		r.w(")")
		return
	}
	r.place(e)
}

func (r *renderer) assign(e *tree.Expr) {
	if e.Text == "+=" && r.addsDot(e) {
		return
	}
	f := r.assignCall(e)
	swizzle := tree.Unparen(e.A).Op == tree.OpSwizzle && e.A.Type.IsVector()
	if (f != "" || swizzle || e.Text != "=" && e.A.Type.IsVector()) && inPacked(e.A) {
		value := func() {
			r.w(" ", e.Text, " ", e.B)
		}
		before := ""
		if f != "" {
			before = f + "("
			value = func() {
				r.w(", ", e.B, ")")
			}
		}
		r.throughCopy(e.A, before, value)
		return
	}
	if mixedHalf(e) && !r.d.msl {
		r.assignMixed(e)
		return
	}
	if f != "" {
		r.w(f, "(")
		r.object(e.A)
		r.w(", ", e.B, ")")
		return
	}
	if r.d.msl && e.Text == "=" && !swizzle && (tree.StoresWhole(e.A.Type) || metalLoads(e.A)) {
		r.metalStoreTo(e.A)
		r.w(e.B, ")")
		return
	}
	if e.Text == "=" && tree.StoresWhole(e.A.Type) && !swizzle {
		r.w("cc_store(", e.A, ", ", e.B, ")")
		return
	}
	if e.Text == "=" {
		r.object(e.A)
	} else {
		r.stepped(e.A)
	}
	r.w(" ", e.Text, " ", e.B)
}

// assignCall returns the name of the function that replaces a compound assignment to a scalar, or
// "".
func (r *renderer) assignCall(e *tree.Expr) string {
	if !e.A.Type.IsScalar() {
		return ""
	}
	if op := strings.TrimSuffix(e.Text, "="); op != "" && e.B.Type.IsScalar() && !mixedHalf(e) {
		t := tree.Usual(e.A.Type, e.B.Type)
		if f := r.operatorName(op, t, tree.Value{}, tree.Fold(e.B)); f != "" {
			return f + "_assign<" + r.plain(t) + ">"
		}
	}
	return shiftAssign[e.Text]
}

var shiftAssign = map[string]string{"<<=": "cc_shl_assign", ">>=": "cc_shr_assign"}

// loadStore returns the expressions that read the object cc_o of type t and write cc_r to it.
func loadStore(t *tree.Type) (load, store string) {
	if tree.StoresWhole(t) {
		return "cc_load(cc_o)", "cc_store(cc_o, cc_r)"
	}
	return "cc_o", "cc_o = cc_r"
}
