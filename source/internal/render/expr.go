package render

// Expressions in C++. Operands keep the grouping of the program; an expression that is rewritten
// becomes a call or is in parentheses.

import (
	"math"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/builtins"
	"github.com/concord-compute/concord/source/internal/tree"
)

// expr writes an expression.
func (r *renderer) expr(e *tree.Expr) {
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
	switch e.Op {
	case tree.OpLit, tree.OpSizeof:
		r.literal(e.Val)
	case tree.OpString:
		// the C++ type char is not cc_char
		r.w("((", r.typeText(tree.PointerTo(tree.CharType.With(tree.QConst).In(tree.Constant)), ""), ")", e.Text, ")")
	case tree.OpNull:
		r.w(e.Text)
	case tree.OpNamed:
		r.w(e.Text)
		if r.fn == nil && e.Type.IsScalar() && !e.Type.IsInteger() && e.Text != "CC_MAXFLOAT" {
			r.w("_INIT")
		}
	case tree.OpSym:
		r.symbol(e.Sym)
	case tree.OpParen:
		r.w("(")
		r.inPlace = place
		r.w(e.A, ")")
	case tree.OpDecay:
		r.place(e.A)
	case tree.OpLoad:
		r.call("cc_load", e.A)
	case tree.OpUnary:
		if !r.operatorCall(e) {
			r.unary(e)
		}
	case tree.OpPreInc, tree.OpPostInc:
		r.increment(e)
	case tree.OpBinary:
		if !r.operatorCall(e) && (e.Text != "+" || !r.addsDot(e)) {
			r.sides(e)
		}
	case tree.OpShift:
		r.shift(e)
	case tree.OpCompare, tree.OpLogic:
		r.w("cc_int(", truth{e}, ")")
	case tree.OpCond:
		r.w(truth{e.A}, " ? ", e.B, " : ", e.C)
	case tree.OpElvis:
		r.elvis(e)
	case tree.OpStmts:
		r.statements(e)
	case tree.OpVecCond:
		r.call("cc_select_vec", e.A, e.B, e.C)
	case tree.OpAssign:
		r.assign(e)
	case tree.OpComma:
		r.w(e.A, ", ", e.B)
	case tree.OpCompound:
		r.compound(e)
	case tree.OpCast, tree.OpConv:
		r.cast(e)
	case tree.OpVecLit:
		r.call("cc_make<"+r.plain(e.Type)+">", e.Args...)
	case tree.OpCall:
		r.userCall(e)
	case tree.OpBuiltin:
		r.builtin(e)
	default:
		r.access(e)
	}
}

// access writes members, indices and components.
func (r *renderer) access(e *tree.Expr) {
	switch e.Op {
	case tree.OpIndex:
		r.base(e.A)
		r.w("[", e.B, "]")
	case tree.OpComponent:
		r.base(e.A)
		r.w(".v[", e.B, "]")
	case tree.OpMember:
		r.base(e.A)
		for _, f := range e.Path {
			r.w(".", f.CName)
		}
	case tree.OpSwizzle:
		if len(e.Lanes) == 1 {
			r.base(e.A)
			r.w(".v[", e.Lanes[0], "]")
			return
		}
		f := "cc_swz<" + laneList(e.Lanes) + ">"
		if e.A.Type.Q&tree.QVolatile != 0 {
			r.w(f, "(")
			r.call("cc_load", e.A)
			r.w(")")
			return
		}
		r.call(f, e.A)
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
func (r *renderer) base(e *tree.Expr) {
	in := e
	for in.Op == tree.OpDecay {
		in = in.A
	}
	switch in.Op {
	case tree.OpUnary, tree.OpPreInc, tree.OpBinary, tree.OpAssign, tree.OpCond, tree.OpComma, tree.OpShift, tree.OpLit:
		r.w("(")
		r.place(in)
		r.w(")")
	default:
		r.place(in)
	}
}

func (r *renderer) symbol(s *tree.Symbol) {
	if s.Inst && s.Type.Space == tree.Local {
		r.w("cc_l.")
	}
	if r.asWords[s] {
		r.w("(*(", r.typeText(tree.PointerTo(s.Type.In(tree.Constant)), ""), ")", s.CName, ")")
		return
	}
	if r.d.gpu && r.fn == nil && writtenOut(s) {
		r.w("((", r.plain(s.Type), ")(", s.Init.Value, "))")
		return
	}
	r.w(r.nameOf(s))
}

// cond writes e where C++ needs a truth value, so that comparisons need no conversion to int.
func (r *renderer) cond(e *tree.Expr) {
	switch {
	case e.Op == tree.OpParen:
		r.w("(", truth{e.A}, ")")
	case e.Op == tree.OpCompare:
		r.sides(e)
	case e.Op == tree.OpLogic:
		r.w(truth{e.A}, " ", e.Text, " ", truth{e.B})
	case e.Op == tree.OpUnary && e.Text == "!" && e.Type.IsScalar():
		r.w("!", truth{e.A})
	default:
		r.expr(e)
	}
}

func (r *renderer) unary(e *tree.Expr) {
	if e.Text == "!" && e.Type.IsScalar() {
		r.w("cc_int(!", truth{e.A}, ")")
		return
	}
	r.w(e.Text)
	if e.Text == "&" && e.A.Op == tree.OpSym && r.fn == nil && !r.asWords[e.A.Sym] { // symbol may write the value
		r.w(e.A.Sym.CName)
		return
	}
	switch e.A.Op {
	case tree.OpUnary, tree.OpPreInc, tree.OpLit: // - -x is not --x
		r.w("(", e.A, ")")
	default:
		r.inPlace = r.d.msl && e.Text == "&"
		r.expr(e.A)
	}
}

// shift writes a scalar shift; a constant count in range needs no mask.
func (r *renderer) shift(e *tree.Expr) {
	if n := tree.Fold(e.B); n.OK && n.Bits < uint64(8*tree.KindSize(e.Type.Base)) {
		r.w(e.A, " ", e.Text, " ", n.String())
		return
	}
	f := "cc_shl"
	if e.Text == ">>" {
		f = "cc_shr"
	}
	r.call(f, e.A, e.B)
}

// cast writes explicit and implicit conversions.
func (r *renderer) cast(e *tree.Expr) {
	t, from := e.Type, e.A.Type
	switch {
	case t.IsVector() && tree.SameType(t, from), t.Kind == tree.TRecord:
		r.w("(", e.A, ")")
	case t.IsVector() && from.IsVector():
		r.call("cc_convert<"+r.plain(t)+", 0, CC_RT_DEFAULT>", e.A)
	case t.IsVector():
		r.call("cc_cast<"+r.plain(t)+">", e.A)
	case t.Kind == tree.TEvent:
		r.w("cc_event()")
	case t.IsInteger() && from.IsPointer() && !t.Is(tree.Bool):
		r.w("((", r.plain(t), ")(cc_ulong)(", e.A, "))")
	case t.IsPointer() && from.IsInteger() && !tree.IsNullConstant(e.A):
		r.w("((", r.plain(t), ")(cc_ulong)(", e.A, "))")
	case e.Op == tree.OpConv && t.IsScalar() && tree.Unparen(e.A).Op == tree.OpLit && r.convertedLiteral(tree.Fold(e)):
	default:
		r.w("((", r.plain(t), ")(", e.A, "))")
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

// convertedLiteral writes the value of a converted literal, unless it is an infinity, and reports whether it did.
func (r *renderer) convertedLiteral(c tree.Value) bool {
	if !c.OK || c.IsFloat() && math.IsInf(c.Float(), 0) {
		return false
	}
	r.literal(c)
	return true
}

// compound writes a compound literal: its object is a variable of the function.
func (r *renderer) compound(e *tree.Expr) {
	if e.Sym == nil {
		r.expr(e.Init.Value)
		return
	}
	r.w("(")
	r.assignInit(e.Sym.CName, e.Init, ", ")
	r.w(e.Sym.CName, ")")
}

// userCall writes a call of a user function. A kernel with local memory gets
// the block that its caller holds for it.
func (r *renderer) userCall(e *tree.Expr) {
	fn := e.Sym.Fn
	if fn.Kernel && r.hasLocals(fn) {
		open := "kc_" + fn.Name + "(cc_l.cc_sub_" + fn.Name
		if len(e.Args) > 0 {
			open += ", "
		}
		r.invoke(open, e.Args, ")")
		return
	}
	r.call(e.Sym.CName, e.Args...)
}

// builtin writes a call of a built-in function.
func (r *renderer) builtin(e *tree.Expr) {
	if c, ok := builtins.ConversionOf(e.Text); ok {
		f := "cc_as<" + r.plain(c.To) + ">"
		if !c.As {
			sat, mode := "0", "CC_RT_DEFAULT"
			if c.Sat {
				sat = "CC_SAT"
			}
			if c.Mode != "" {
				mode = "CC_" + strings.ToUpper(c.Mode[1:])
			}
			f = "cc_convert<" + r.plain(c.To) + ", " + sat + ", " + mode + ">"
		}
		r.call(f, e.Args...)
		return
	}
	end := ")"
	if e.Site > 0 {
		end = ", " + strconv.Itoa(e.Site) + ")"
	}
	name := e.Text
	switch {
	case !r.d.gpu:
	case r.d.msl && r.metalRefuses(e):
		return
	case name == "cc_printf":
		r.printf(e)
		return
	case name == "cc_async_work_group_strided_copy" && e.Args[0].Type.Elem.Space == tree.Local:
		name = "cc_strided_to_local"
	case name == "cc_async_work_group_strided_copy":
		name = "cc_strided_to_global"
	}
	r.invoke(name+"(", e.Args, end)
}
