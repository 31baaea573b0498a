package source

// Operators on the host in a program that calls fma. GCC folds a negation of an fma into
// it and changes the sign of a zero, so no operation that may become a negation is
// written as an operator: host_math.h says more.

import "math"

// fusedDefine tells the prelude that the program calls fma.
const fusedDefine = "#define CC_FUSED\n"

// fusedNames are the functions for binary operators that may become negations.
var fusedNames = map[string]string{"-": "cc_sub", "*": "cc_mul", "/": "cc_div"}

// fused tells whether operators on scalars of type t are calls.
func (r *renderer) fused(t *ctype) bool {
	return r.p.fused && r.d.target == Host && r.fn != nil && t.isScalar() && (t.base == Float || t.base == Double)
}

// fusedCall writes e as a call, if it is an operator that may become a negation.
func (r *renderer) fusedCall(e *expr) bool {
	if !r.fused(e.typ) || fold(e).ok {
		return false
	}
	if e.op == opUnary {
		if e.text != "-" {
			return false
		}
		r.w("cc_neg(")
		r.expr(e.a)
		r.w(")")
		return true
	}
	f := fusedNames[e.text]
	if f == "" || !mayNegate(e.text, fold(e.a), fold(e.b)) {
		return false
	}
	args, names, done := []*expr{e.a, e.b}, []string{"", ""}, func() {}
	if e.b.acts {
		names, done = r.inOrder(args)
	}
	open := f + "(("
	for i, a := range args {
		r.w(open, r.plain(e.typ), ")(")
		r.named(a, names[i])
		r.w(")")
		open = ", ("
	}
	r.w(")")
	done()
	return true
}

// mayNegate tells whether a op b can become a negation of one of them, given what is
// known of both: x * -1, x / -1 and -0.0 - x are negations.
func mayNegate(op string, a, b constant) bool {
	is := func(c constant, v float64) bool {
		f := c.convert(doubleType).f
		return !c.ok || f == v && math.Signbit(f) == math.Signbit(v)
	}
	switch op {
	case "*":
		return is(a, -1) && is(b, -1)
	case "/":
		return !a.ok && is(b, -1)
	case "-":
		return is(a, math.Copysign(0, -1)) && !b.ok
	}
	return false
}
