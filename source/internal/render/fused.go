package render

// Operators on the host that are written as calls. In a program that calls fma, GCC folds a negation of an fma
// into the fma, which changes the sign of a zero. So operations that may become a negation are not written as
// operators; see host_math.h. Quotients of integers are not where the divisor may be zero or -1: the first fails,
// and the least integer by -1 would, too.

import (
	"math"

	"github.com/concord-compute/concord/source/internal/tree"
)

// fusedDefine tells the prelude that the program calls fma.
const fusedDefine = "#define CC_FUSED\n"

// fusedNames are the functions for binary operators that may become negations.
var fusedNames = map[string]string{"-": "cc_sub", "*": "cc_mul", "/": "cc_div"}

// quotientNames are the functions for quotients of integers.
var quotientNames = map[string]string{"/": "cc_quo", "%": "cc_rem"}

// operatorName returns the name of the function that replaces operator op in type t, or "". The values of its
// operands are a and b, if they are known.
func (r *renderer) operatorName(op string, t *tree.Type, a, b tree.Value) string {
	switch {
	case r.fused(t) && mayNegate(op, a, b):
		return fusedNames[op]
	case r.d.target != Host || r.fn == nil || !t.IsInteger():
		return ""
	}
	if by := b.Convert(t); by.OK && by.Bits != 0 && by.Bits != ^uint64(0) {
		return ""
	}
	return quotientNames[op]
}

// fused reports whether operators on scalars of type t are written as calls.
func (r *renderer) fused(t *tree.Type) bool {
	return r.p.Fused && r.d.target == Host && r.fn != nil && t.IsScalar() &&
		(t.Base == tree.Float || t.Base == tree.Double)
}

// operatorCall writes e as a call, if it is an operator that needs to be.
func (r *renderer) operatorCall(e *tree.Expr) bool {
	if !e.Type.IsInteger() && tree.Fold(e).OK {
		return false
	}
	if e.Op == tree.OpUnary {
		if e.Text != "-" || !r.fused(e.Type) {
			return false
		}
		r.w("cc_neg(", e.A, ")")
		return true
	}
	f := r.operatorName(e.Text, e.Type, tree.Fold(e.A), tree.Fold(e.B))
	if f == "" {
		return false
	}
	args, names, done := []*tree.Expr{e.A, e.B}, []string{"", ""}, func() {}
	if e.B.Acts {
		names, done = r.inOrder(args)
	}
	open := f + "(("
	for i, a := range args {
		r.w(open, r.plain(e.Type), ")(")
		r.named(a, names[i])
		r.w(")")
		open = ", ("
	}
	r.w(")")
	done()
	return true
}

// mayNegate reports whether a op b may be a negation of one of them, given their values if they are
// known: x * -1, x / -1 and -0.0 - x are negations.
func mayNegate(op string, a, b tree.Value) bool {
	is := func(c tree.Value, v float64) bool {
		f := c.Float()
		return !c.OK || f == v && math.Signbit(f) == math.Signbit(v)
	}
	switch op {
	case "*":
		return is(a, -1) && is(b, -1)
	case "/":
		return !a.OK && is(b, -1)
	case "-":
		return is(a, math.Copysign(0, -1)) && !b.OK
	}
	return false
}
