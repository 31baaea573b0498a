package source

import "strconv"

// The order of evaluation. C leaves it open in f(next(&s), next(&s)), but every
// OpenCL compiler goes from left to right, and programs have come to count on it;
// C++ compilers differ. Where the order can be seen, operands become variables.

// call writes f(args...).
func (r *renderer) call(f string, args ...*expr) { r.invoke(f+"(", args, ")") }

// invoke writes a call between open and end.
func (r *renderer) invoke(open string, args []*expr, end string) {
	names, done := r.inOrder(args)
	r.w(open)
	for i, a := range args {
		if i > 0 {
			r.w(", ")
		}
		r.named(a, names[i])
	}
	r.w(end)
	done()
}

// sides writes a binary operator. On vectors it is a call to C++; on scalars the
// left side comes first by itself unless the right one changes it.
func (r *renderer) sides(e *expr) {
	names, done := []string{"", ""}, func() {}
	if e.a.typ.isVector() || e.b.typ.isVector() || e.b.acts {
		names, done = r.inOrder([]*expr{e.a, e.b})
	}
	r.named(e.a, names[0])
	r.w(" ", e.text, " ")
	r.named(e.b, names[1])
	done()
}

// named writes e, or the variable that holds it.
func (r *renderer) named(e *expr, name string) {
	if name != "" {
		r.w(name)
		return
	}
	r.expr(e)
}

// inOrder begins an expression whose operands are evaluated from left to right:
// if it matters, they become variables of a statement expression, which done
// ends. The names are those of the variables, or empty.
func (r *renderer) inOrder(args []*expr) (names []string, done func()) {
	names = make([]string, len(args))
	if !orderMatters(args) {
		return names, func() {}
	}
	r.w(r.opening())
	for i, a := range args {
		if settled(a) {
			continue
		}
		names[i] = "cc_a" + strconv.Itoa(i)
		r.w("auto ", names[i], " = ")
		r.expr(a)
		r.w("; ")
	}
	r.w(r.result())
	return names, func() { r.w("; ", r.closing()) }
}

// opening, result and closing stand round a block with a value: a statement
// expression, or a lambda for a compiler that has none.
func (r *renderer) opening() string {
	if r.d.gnu {
		return "({ "
	}
	return "[&] { "
}

func (r *renderer) result() string {
	if r.d.gnu {
		return ""
	}
	return "return "
}

func (r *renderer) closing() string {
	if r.d.gnu {
		return "})"
	}
	return "}()"
}

// elvis writes a ?: c, whose first operand is evaluated once.
func (r *renderer) elvis(e *expr) {
	typ := r.plain(e.typ)
	if r.d.gnu {
		r.w("(", typ, ")(")
		r.expr(e.a)
		r.w(" ?: ")
		r.expr(e.c)
		r.w(")")
		return
	}
	r.w("[&] { auto cc_e = ")
	r.expr(e.a)
	r.w("; return cc_e ? (", typ, ")(cc_e) : (", typ, ")(")
	r.expr(e.c)
	r.w("); }()")
}

// statements writes ({ ... }).
func (r *renderer) statements(e *expr) {
	if !r.d.gnu {
		if s := jumpOut(e.body.list, false, false); s != nil {
			r.refuse(s.pos, "statement expression", "a jump out of a statement expression cannot be rendered for this target")
			return
		}
	}
	r.w(r.opening())
	for i, s := range e.body.list {
		if i == len(e.body.list)-1 && s.kind == stExpr && !r.d.gnu {
			r.at(s.pos)
			r.w("return ")
			r.expr(s.e)
			r.w(";")
			continue
		}
		r.stmt(s)
	}
	r.w(" ", r.closing())
}

// orderMatters tells whether one operand can change what another computes.
func orderMatters(args []*expr) bool {
	open, effects := 0, false
	for _, a := range args {
		if !settled(a) {
			open++
			effects = effects || a.acts
		}
	}
	return open > 1 && effects
}

// settled tells whether e is the same whenever it is evaluated.
func settled(e *expr) bool {
	switch e.op {
	case opLit, opString, opNull, opNamed, opSizeof:
		return true
	case opParen, opCast, opConv:
		return settled(e.a)
	case opDecay:
		return e.a.op == opSym || e.a.op == opString
	case opUnary:
		return e.text == "&" && e.a.op == opSym
	}
	return false
}
