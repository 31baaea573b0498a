package render

import (
	"strconv"

	"github.com/concord-compute/concord/source/internal/tree"
)

// The order of evaluation. C does not specify it in f(next(&s), next(&s)), but every OpenCL
// compiler evaluates from left to right, and programs rely on it; C++ compilers differ. Where the
// order is observable, operands become variables.

// call writes f(args...).
func (r *renderer) call(f string, args ...*tree.Expr) { r.invoke(f+"(", args, ")") }

// invoke writes a call between open and end.
func (r *renderer) invoke(open string, args []*tree.Expr, end string) {
	names, done := r.inOrder(args)
	r.w(open)
	for i, a := range args {
		r.comma(i)
		r.named(a, names[i])
	}
	r.w(end)
	done()
}

// sides writes a binary operator. On vectors it is a call in C++. On scalars the order matters only
// if the right side changes the left one.
func (r *renderer) sides(e *tree.Expr) {
	names, done := []string{"", ""}, func() {}
	if e.A.Type.IsVector() || e.B.Type.IsVector() || e.B.Acts {
		names, done = r.inOrder([]*tree.Expr{e.A, e.B})
	}
	r.named(e.A, names[0])
	r.w(" ", e.Text, " ")
	r.named(e.B, names[1])
	done()
}

// named writes e, or the variable that holds it.
func (r *renderer) named(e *tree.Expr, name string) {
	if name != "" {
		r.w(name)
		return
	}
	r.expr(e)
}

// inOrder begins an expression whose operands are evaluated from left to right. If the order
// matters, they become variables of a statement expression, which done ends; names are the names of
// the variables, or nil if the order does not matter.
func (r *renderer) inOrder(args []*tree.Expr) (names []string, done func()) {
	names = make([]string, len(args))
	if !orderMatters(args) {
		return names, func() {}
	}
	r.w(r.d.opening)
	for i, a := range args {
		if settled(a) {
			continue
		}
		names[i] = "cc_a" + strconv.Itoa(i)
		r.w("auto ", names[i], " = ", a, "; ")
	}
	r.w(r.d.result)
	return names, func() { r.w("; ", r.d.closing) }
}

// elvis writes a ?: c, whose first operand is evaluated once.
func (r *renderer) elvis(e *tree.Expr) {
	typ := r.plain(e.Type)
	if r.d.gnu {
		r.w("(", typ, ")(", e.A, " ?: ", e.C, ")")
		return
	}
	r.w("[&] { auto cc_e = ", e.A, "; return cc_e ? (", typ, ")(cc_e) : (", typ, ")(", e.C, "); }()")
}

// statements writes ({ ... }).
func (r *renderer) statements(e *tree.Expr) {
	if !r.d.gnu {
		if s := tree.JumpOut(e.Body.List, false, false); s != nil {
			r.refuse(s.Pos, "statement expression", "a jump out of a statement expression cannot be rendered for this target")
			return
		}
	}
	r.w(r.d.opening)
	for i, s := range e.Body.List {
		if i == len(e.Body.List)-1 && s.Kind == tree.StExpr && !r.d.gnu {
			r.at(s.Pos)
			r.w("return ", s.E, ";")
			continue
		}
		r.stmt(s)
	}
	r.w(" ", r.d.closing)
}

// orderMatters reports whether evaluating one operand may change the value of another.
func orderMatters(args []*tree.Expr) bool {
	open, effects := 0, false
	for _, a := range args {
		if !settled(a) {
			open++
			effects = effects || a.Acts
		}
	}
	return open > 1 && effects
}

// settled reports whether e has the same value whenever it is evaluated.
func settled(e *tree.Expr) bool {
	switch e.Op {
	case tree.OpLit, tree.OpString, tree.OpNull, tree.OpNamed, tree.OpSizeof:
		return true
	case tree.OpParen, tree.OpCast, tree.OpConv:
		return settled(e.A)
	case tree.OpDecay:
		return e.A.Op == tree.OpSym || e.A.Op == tree.OpString
	case tree.OpUnary:
		return e.Text == "&" && e.A.Op == tree.OpSym
	}
	return false
}
