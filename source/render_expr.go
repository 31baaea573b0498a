package source

// Expressions in C++. Operands stand as the user grouped them; what is rewritten
// becomes a call or stands in parentheses of its own.

import (
	"math"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
)

// expr writes a value or object.
func (r *renderer) expr(e *expr) {
	place := r.inPlace
	r.inPlace = false
	if r.d.msl && !place && metalLoads(e) {
		r.metalLoad(e)
		return
	}
	if r.straight[e] != "" {
		r.w(r.straight[e])
		return
	}
	switch e.op {
	case opLit, opSizeof:
		r.literal(e)
	case opString:
		r.w("((", r.typeText(pointerTo(charType.with(qConst).in(Constant)), ""), ")", e.text, ")") // plain char is another type
	case opNull:
		r.w(e.text)
	case opNamed:
		r.w(e.text)
		if r.fn == nil && e.typ.isScalar() && !e.typ.isInteger() && e.text != "CC_MAXFLOAT" {
			r.w("_INIT")
		}
	case opSym:
		r.symbol(e.sym)
	case opParen:
		r.w("(")
		r.inPlace = place
		r.expr(e.a)
		r.w(")")
	case opDecay:
		r.place(e.a)
	case opLoad:
		r.call("cc_load", e.a)
	case opUnary:
		if !r.fusedCall(e) {
			r.unary(e)
		}
	case opPreInc, opPostInc:
		r.increment(e)
	case opBinary:
		if !r.fusedCall(e) {
			r.sides(e)
		}
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
		r.elvis(e)
	case opStmts:
		r.statements(e)
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
			r.w(".v[", strconv.Itoa(e.lanes[0]), "]")
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
		s[i] = strconv.Itoa(l)
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
		r.place(in)
		r.w(")")
	default:
		r.place(in)
	}
}

func (r *renderer) symbol(s *symbol) {
	if s.inst && s.typ.space == Local {
		r.w("cc_l.")
	}
	if r.d.gpu && r.fn == nil && writtenOut(s) {
		r.w("((", r.plain(s.typ), ")(")
		r.expr(s.init.value)
		r.w("))")
		return
	}
	r.w(r.nameOf(s))
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
	if e.text == "&" && e.a.op == opSym && r.fn == nil {
		r.w(e.a.sym.cname)
		return
	}
	switch e.a.op {
	case opUnary, opPreInc, opLit: // - -x is not --x
		r.w("(")
		r.expr(e.a)
		r.w(")")
	default:
		r.inPlace = r.d.msl && e.text == "&"
		r.expr(e.a)
	}
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
	case r.fn == nil && t.is(Half) && fold(e.a).ok:
		r.literal(&expr{op: opLit, typ: t, val: constant{ok: true, float: true, f: fold(e.a).convert(doubleType).f}})
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
		r.w(r.floatText(e.val.f, 32))
	case Double:
		if r.d.msl {
			r.metalDouble(token.Pos{})
		}
		r.w(r.floatText(e.val.f, 64))
	case Half:
		if r.d.msl {
			r.w(r.metalHalf(e.val.f))
			return
		}
		r.w("cc_half(cc_half_bits{", strconv.Itoa(int(halfBits(e.val.f))), "})")
	case UInt:
		r.w(strconv.FormatInt(v, 10), "u")
	case Long:
		if v == math.MinInt64 {
			r.w("cc_long(-9223372036854775807", r.longSuffix(), " - 1)")
			return
		}
		r.w("cc_long(", strconv.FormatInt(v, 10), r.longSuffix(), ")")
	case ULong:
		r.w("cc_ulong(", strconv.FormatUint(uint64(v), 10), "U", r.longSuffix(), ")")
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
func (r *renderer) floatText(f float64, bits int) string {
	suffix := ""
	if bits == 32 {
		suffix = "f"
	}
	if math.IsInf(f, 0) && r.fn == nil {
		return "CC_INFINITY_INIT"
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
		end = ", " + strconv.Itoa(e.site) + ")"
	}
	name := e.text
	switch {
	case !r.d.gpu:
	case r.d.msl && r.metalRefuses(e):
		return
	case name == "cc_printf":
		r.printf(e)
		return
	case name == "cc_async_work_group_strided_copy" && e.args[0].typ.elem.space == Local:
		name = "cc_strided_to_local"
	case name == "cc_async_work_group_strided_copy":
		name = "cc_strided_to_global"
	}
	r.invoke(name+"(", e.args, end)
}
