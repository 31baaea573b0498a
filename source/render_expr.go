package source

// Expressions in C++. Operands stand as the user grouped them; what is rewritten
// becomes a call or stands in parentheses of its own.

import (
	"math"
	"strconv"
	"strings"
)

// expr writes a value or object.
func (r *renderer) expr(e *expr) {
	switch e.op {
	case opLit, opSizeof:
		r.literal(e)
	case opString:
		r.w("((const cc_char *)", e.text, ")") // plain char is another type
	case opNull, opNamed:
		r.w(e.text)
	case opSym:
		r.symbol(e.sym)
	case opParen:
		r.w("(")
		r.expr(e.a)
		r.w(")")
	case opDecay:
		r.expr(e.a)
	case opLoad:
		r.call("cc_load", e.a)
	case opUnary:
		r.unary(e)
	case opPreInc, opPostInc:
		r.increment(e)
	case opBinary:
		r.sides(e)
	case opShift:
		r.shift(e)
	case opCompare, opLogic:
		r.w("cc_int(")
		r.cond(e)
		r.w(")")
	case opCond:
		r.cond(e.a)
		r.w(" ? ")
		r.expr(e.b)
		r.w(" : ")
		r.expr(e.c)
	case opElvis:
		r.w("(", r.plain(e.typ), ")(")
		r.expr(e.a)
		r.w(" ?: ")
		r.expr(e.c)
		r.w(")")
	case opStmts:
		r.w("({ ")
		for _, s := range e.body.list {
			r.stmt(s)
		}
		r.w(" })")
	case opVecCond:
		r.call("cc_select_vec", e.a, e.b, e.c)
	case opAssign:
		r.assign(e)
	case opComma:
		r.expr(e.a)
		r.w(", ")
		r.expr(e.b)
	case opCompound:
		r.compound(e)
	case opCast, opConv:
		r.cast(e)
	case opVecLit:
		r.call("cc_make<"+r.plain(e.typ)+">", e.args...)
	case opCall:
		r.userCall(e)
	case opBuiltin:
		r.builtin(e)
	default:
		r.access(e)
	}
}

// access writes members, indices and components.
func (r *renderer) access(e *expr) {
	switch e.op {
	case opIndex:
		r.base(e.a)
		r.w("[")
		r.expr(e.b)
		r.w("]")
	case opComponent:
		r.base(e.a)
		r.w(".v[")
		r.expr(e.b)
		r.w("]")
	case opMember:
		r.base(e.a)
		for _, f := range e.path {
			r.w(".", f.cname)
		}
	case opSwizzle:
		if len(e.lanes) == 1 {
			r.base(e.a)
			r.w(".v[", itoa(e.lanes[0]), "]")
			return
		}
		f := "cc_swz<" + laneList(e.lanes) + ">"
		if e.a.typ.q&qVolatile != 0 {
			r.w(f, "(")
			r.call("cc_load", e.a)
			r.w(")")
			return
		}
		r.call(f, e.a)
	}
}

func laneList(lanes []int) string {
	s := make([]string, len(lanes))
	for i, l := range lanes {
		s[i] = itoa(l)
	}
	return strings.Join(s, ",")
}

// base writes the operand of a postfix operator.
func (r *renderer) base(e *expr) {
	in := e
	for in.op == opDecay {
		in = in.a
	}
	switch in.op {
	case opUnary, opPreInc, opBinary, opAssign, opCond, opComma, opShift, opLit:
		r.w("(")
		r.expr(in)
		r.w(")")
	default:
		r.expr(in)
	}
}

func (r *renderer) symbol(s *symbol) {
	if s.inst && s.typ.space == Local {
		r.w("cc_l.")
	}
	r.w(s.cname)
}

// cond writes e where C++ asks for a truth value, which needs no int.
func (r *renderer) cond(e *expr) {
	switch {
	case e.op == opParen:
		r.w("(")
		r.cond(e.a)
		r.w(")")
	case e.op == opCompare:
		r.sides(e)
	case e.op == opLogic:
		r.cond(e.a)
		r.w(" ", e.text, " ")
		r.cond(e.b)
	case e.op == opUnary && e.text == "!" && e.typ.isScalar():
		r.w("!")
		r.cond(e.a)
	default:
		r.expr(e)
	}
}

func (r *renderer) unary(e *expr) {
	if e.text == "!" && e.typ.isScalar() {
		r.w("cc_int(!")
		r.cond(e.a)
		r.w(")")
		return
	}
	r.w(e.text)
	switch e.a.op {
	case opUnary, opPreInc, opLit: // - -x is not --x
		r.w("(")
		r.expr(e.a)
		r.w(")")
	default:
		r.expr(e.a)
	}
}

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
	if e.typ.isScalar() && e.typ.base == Half {
		r.w("[&]{ auto &cc_o = ")
		r.expr(e.a)
		result := "cc_o"
		if e.op == opPostInc {
			result = "cc_was"
		}
		r.w("; cc_half cc_was = cc_o; (void)cc_was; cc_o = (cc_half)((cc_float)cc_o ", e.text[:1], " 1.0f); return ", result, "; }()")
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
		r.w("(*(cc_char **)&(")
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
	r.w("[&]{ char *cc_p = (char *)&(")
	r.expr(whole)
	r.w("); ", r.typeText(whole.typ.bare(), "cc_t"), "; __builtin_memcpy(&cc_t, cc_p, sizeof cc_t); auto cc_r = ", before, name)
	after()
	r.w("; __builtin_memcpy(cc_p, &cc_t, sizeof cc_t); return cc_r; }()")
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
	r.w("[&]() -> auto & { auto &cc_o = ")
	r.expr(e.a)
	r.w("; return cc_o = (", r.typeText(e.a.typ.bare(), ""), ")((", r.typeText(e.b.typ.bare(), ""), ")cc_o ", strings.TrimSuffix(e.text, "="), " ")
	r.expr(e.b)
	r.w("); }()")
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
		r.call("cc_ref<"+laneList(s.lanes)+">", s.a)
		return
	}
	r.expr(e)
}

// shift writes a scalar shift; a constant count in range needs no mask.
func (r *renderer) shift(e *expr) {
	if n := fold(e.b); n.ok && n.i >= 0 && n.i < int64(8*kindSize(e.typ.base)) {
		r.expr(e.a)
		r.w(" ", e.text, " ", strconv.FormatInt(n.i, 10))
		return
	}
	f := "cc_shl"
	if e.text == ">>" {
		f = "cc_shr"
	}
	r.call(f, e.a, e.b)
}

func (r *renderer) assign(e *expr) {
	shift := (e.text == "<<=" || e.text == ">>=") && e.a.typ.isScalar()
	swizzle := unparen(e.a).op == opSwizzle && e.a.typ.isVector()
	if (shift || swizzle || e.text != "=" && e.a.typ.isVector()) && inPacked(e.a) {
		value := func() {
			r.w(" ", e.text, " ")
			r.expr(e.b)
		}
		before := ""
		if shift {
			before = shiftAssign[e.text] + "("
			value = func() {
				r.w(", ")
				r.expr(e.b)
				r.w(")")
			}
		}
		r.throughCopy(e.a, before, value)
		return
	}
	if mixedHalf(e) {
		r.assignMixed(e)
		return
	}
	if shift {
		r.w(shiftAssign[e.text], "(")
		r.object(e.a)
		r.w(", ")
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

var shiftAssign = map[string]string{"<<=": "cc_shl_assign", ">>=": "cc_shr_assign"}

// storesWhole tells whether an object of type t takes a call to be assigned: C++
// has no assignment to volatile classes.
func storesWhole(t *ctype) bool {
	return t.q&qVolatile != 0 && (t.kind == tVector || t.kind == tRecord)
}

// cast writes explicit and implicit conversions.
func (r *renderer) cast(e *expr) {
	t, from := e.typ, e.a.typ
	switch {
	case t.isVector() && sameType(t, from), t.kind == tRecord:
		r.w("(")
		r.expr(e.a)
		r.w(")")
	case t.isVector() && from.isVector():
		r.call("cc_convert<"+r.plain(t)+", 0, CC_RT_DEFAULT>", e.a)
	case t.isVector():
		r.call("cc_cast<"+r.plain(t)+">", e.a)
	case t.kind == tEvent:
		r.w("cc_event()")
	case t.isInteger() && from.isPointer() && !t.is(Bool):
		r.w("((", r.plain(t), ")(cc_ulong)(")
		r.expr(e.a)
		r.w("))")
	case t.isPointer() && from.isInteger() && !isNullConstant(e.a):
		r.w("((", r.plain(t), ")(cc_ulong)(")
		r.expr(e.a)
		r.w("))")
	case e.op == opConv && t.isScalar() && unparen(e.a).op == opLit && t.base != Half:
		in := unparen(e.a)
		if v := in.val.convert(in.typ).convert(t); v.ok && !math.IsInf(v.f, 0) {
			r.literal(&expr{op: opLit, typ: t, val: v})
			return
		}
		fallthrough
	default:
		r.w("((", r.plain(t), ")(")
		r.expr(e.a)
		r.w("))")
	}
}

// literal writes a constant of a scalar type.
func (r *renderer) literal(e *expr) {
	v := e.val.i
	switch e.typ.base {
	case Float:
		r.w(floatText(e.val.f, 32))
	case Double:
		r.w(floatText(e.val.f, 64))
	case Half:
		r.w("cc_half(", floatText(e.val.f, 32), ")")
	case UInt:
		r.w(strconv.FormatInt(v, 10), "u")
	case Long:
		if v == math.MinInt64 {
			r.w("cc_long(-9223372036854775807LL - 1)")
			return
		}
		r.w("cc_long(", strconv.FormatInt(v, 10), "LL)")
	case ULong:
		r.w("cc_ulong(", strconv.FormatUint(uint64(v), 10), "ULL)")
	default:
		switch {
		case v == math.MinInt32:
			r.w("(-2147483647 - 1)")
		case v < 0:
			r.w("(", strconv.FormatInt(v, 10), ")")
		default:
			r.w(strconv.FormatInt(v, 10))
		}
	}
}

// floatText spells a floating constant so that it reads back as the same value.
func floatText(f float64, bits int) string {
	suffix := ""
	if bits == 32 {
		suffix = "f"
	}
	if math.IsInf(f, 0) {
		return "CC_INFINITY"
	}
	s := strconv.FormatFloat(f, 'g', -1, bits)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	if f < 0 {
		return "(" + s + suffix + ")"
	}
	return s + suffix
}

// compound writes a compound literal: its object is a variable of the function.
func (r *renderer) compound(e *expr) {
	if e.sym == nil {
		r.expr(e.init.value)
		return
	}
	r.w("(")
	r.assignInit(e.sym.cname, e.init, ", ")
	r.w(e.sym.cname, ")")
}

// userCall writes a call of a user function. A kernel with local memory gets
// the block that its caller holds for it.
func (r *renderer) userCall(e *expr) {
	fn := e.sym.fn
	if fn.kernel && r.hasLocals(fn) {
		open := "kc_" + fn.name + "(cc_l.cc_sub_" + fn.name
		if len(e.args) > 0 {
			open += ", "
		}
		r.invoke(open, e.args, ")")
		return
	}
	r.call(e.sym.cname, e.args...)
}

// builtin writes a call of a built-in function.
func (r *renderer) builtin(e *expr) {
	if c, ok := conversionOf(e.text); ok {
		f := "cc_as<" + r.plain(c.to) + ">"
		if !c.as {
			sat, mode := "0", "CC_RT_DEFAULT"
			if c.sat {
				sat = "CC_SAT"
			}
			if c.mode != "" {
				mode = "CC_" + strings.ToUpper(c.mode[1:])
			}
			f = "cc_convert<" + r.plain(c.to) + ", " + sat + ", " + mode + ">"
		}
		r.call(f, e.args...)
		return
	}
	end := ")"
	if e.site > 0 {
		end = ", " + itoa(e.site) + ")"
	}
	r.invoke(e.text+"(", e.args, end)
}
