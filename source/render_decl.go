package source

import (
	"slices"
	"strconv"
)

// Declarations in C++: records, constants, local memory, functions, variables.

func recordWord(rec *record) string {
	if rec.union {
		return "union"
	}
	return "struct"
}

// record writes a struct or union, and has the C++ compiler check that it takes
// the room that the parser told everybody.
func (r *renderer) record(rec *record) {
	r.at(rec.pos)
	r.w(recordWord(rec), " ")
	if rec.packed {
		r.w("__attribute__((packed)) ")
	}
	if rec.reqAlign > 0 {
		r.w("__attribute__((aligned(", strconv.Itoa(rec.reqAlign), "))) ")
	}
	r.w(rec.cname, " { ")
	if len(rec.fields) == 0 && r.d.gnu {
		r.w("cc_char cc_empty[0]; ") // an empty struct takes no room in C
	}
	for _, f := range rec.fields {
		typ := f.typ
		if storesWhole(typ) {
			c := *typ // the record could not be copied
			c.q &^= qVolatile
			typ = &c
		}
		r.w(r.typeText(typ, f.cname))
		if a := max(f.align, arrayBase(f.typ).align, f.typ.align); a > 0 {
			r.w(" __attribute__((aligned(", strconv.Itoa(a), ")))")
		}
		if f.packed {
			r.w(" __attribute__((packed))")
		}
		r.w("; ")
	}
	if len(rec.fields) == 0 && !r.d.gnu {
		r.w("};") // it takes room: a record that has it as a member will not pass
		return
	}
	r.w("}; static_assert(sizeof(", rec.cname, ") == ", strconv.Itoa(rec.size), ", \"layout of ", rec.cname, "\");")
}

// global writes a constant of program scope.
func (r *renderer) global(g *symbol) {
	if g.init == nil || g.typ.isUnknown() {
		return
	}
	r.at(g.pos)
	r.w("static ", r.places[g], alignPrefix(g.typ), r.typeText(g.typ.in(Constant), g.cname), " = ")
	r.initializer(g.init)
	r.w(";")
}

func alignPrefix(t *ctype) string {
	if t.align > 0 {
		return "alignas(" + strconv.Itoa(t.align) + ") "
	}
	return ""
}

// hasLocals tells whether a kernel needs a block of local memory: for its own
// variables or for those of kernels that it calls.
func (r *renderer) hasLocals(k *function) bool {
	has, asked := r.memory[k]
	if !asked {
		has = len(k.locals) > 0 || slices.ContainsFunc(k.calls, func(c *call) bool { return c.to.kernel && c.to != k && r.hasLocals(c.to) })
		r.memory[k] = has
	}
	return has
}

// locals writes the struct of a kernel's local variables. A kernel that calls
// another holds the other's block too.
func (r *renderer) locals(k *function, done map[*function]bool) {
	if done[k] || !r.hasLocals(k) {
		return
	}
	done[k] = true
	for _, c := range k.calls {
		if c.to.kernel {
			r.locals(c.to, done)
		}
	}
	r.at(k.pos)
	r.w("struct cc_locals_", k.name, " { ")
	for _, s := range k.locals {
		r.w("alignas(", strconv.Itoa(localAlignment(s.typ)), ") ", r.typeText(s.typ, s.cname), "; ")
	}
	seen := map[*function]bool{}
	for _, c := range k.calls {
		if c.to.kernel && !seen[c.to] && r.hasLocals(c.to) {
			seen[c.to] = true
			r.w("cc_locals_", c.to.name, " cc_sub_", c.to.name, "; ")
		}
	}
	r.w("};")
}

// function writes a function or kernel as a member of the program. A kernel
// with local memory that others call is split, so that each caller brings the
// memory.
func (r *renderer) function(fn *function) {
	r.fn = fn
	if r.plans[fn] != nil {
		r.splitKernel(fn)
		if !r.called[fn] {
			return
		}
	}
	r.at(fn.pos)
	locals := fn.kernel && r.hasLocals(fn)
	if locals && r.d.msl {
		r.w("void kc_", fn.name, "(")
		r.params(fn, "threadgroup cc_locals_"+fn.name+" &cc_l")
		r.w(") {")
	} else if locals && r.called[fn] {
		r.w(r.d.kernel, "void ", fn.cname, "(")
		r.params(fn, "")
		r.w(") {")
		r.localBlock(fn)
		r.w(" kc_", fn.name, "(cc_l")
		for _, s := range fn.params {
			r.w(", ", s.cname)
		}
		r.w("); }")
		r.at(fn.pos)
		r.w(r.d.kernel, "void kc_", fn.name, "(")
		r.params(fn, "cc_locals_"+fn.name+" &cc_l")
		r.w(") {")
	} else {
		if fn.kernel {
			r.w(r.d.kernel)
		} else {
			r.w(r.d.function)
		}
		r.w(declareResult(r, fn), "(")
		r.params(fn, "")
		r.w(") {")
		if locals {
			r.localBlock(fn)
		}
	}
	for _, t := range fn.temps {
		r.w(" ", alignPrefix(t.typ), r.typeText(dropConst(t.typ), t.cname), ";")
	}
	for _, s := range fn.body.list {
		r.stmt(s)
	}
	if !endsInReturn(fn.body) && !fn.typ.elem.isVoid() {
		// C lets a function end without a value that nobody uses; C++ compilers
		// take the end for unreachable.
		r.w(" return {};")
	}
	r.w(" }")
	r.fn = nil
}

// localBlock declares cc_l, the block of a kernel's local variables.
func (r *renderer) localBlock(fn *function) {
	if r.d.gpu {
		r.w(" __shared__ cc_locals_", fn.name, " cc_l;")
		return
	}
	r.w(" cc_locals_", fn.name, " &cc_l = cc_local<cc_locals_", fn.name, ">(); (void)cc_l;")
}

// declareResult spells the result type and name of a function.
func declareResult(r *renderer, fn *function) string {
	return r.plain(fn.typ.elem) + " " + fn.cname
}

func endsInReturn(b *stmt) bool {
	return len(b.list) > 0 && b.list[len(b.list)-1].kind == stReturn
}

func (r *renderer) params(fn *function, first string) {
	r.w(first)
	for i, s := range fn.params {
		if i > 0 || first != "" {
			r.w(", ")
		}
		r.w(r.typeText(s.typ, s.cname))
	}
}

// dropConst makes a variable's type writable, for one that is assigned after
// its declaration.
func dropConst(t *ctype) *ctype {
	c := *t
	if t.kind == tArray {
		c.elem = dropConst(t.elem)
		return &c
	}
	c.q &^= qConst
	return &c
}

// variable writes the declaration of one variable as a statement.
func (r *renderer) variable(s *symbol) {
	if r.plan != nil && r.plannedVariable(s) {
		return
	}
	t := s.typ
	apart := r.fn.split || r.needsAssign(s.init)
	if apart || s.init == nil {
		t = dropConst(t)
	}
	r.w(alignPrefix(t), r.typeText(t, r.nameOf(s)))
	switch {
	case s.init == nil:
		r.w(";")
	case apart:
		r.w("; ")
		r.assignInit(r.nameOf(s), s.init, "; ")
	default:
		r.w(" = ")
		r.initializer(s.init)
		r.w(";")
	}
}

// needsAssign tells whether an initializer cannot be written in braces: it
// names a member of a union other than the first.
func (r *renderer) needsAssign(n *initNode) bool {
	if n == nil || n.value != nil {
		return false
	}
	needs, asked := r.assigned[n]
	if asked {
		return needs
	}
	for i, k := range n.kids {
		if n.typ.kind == tRecord && n.typ.rec.union && i > 0 || r.needsAssign(k) {
			needs = true
			break
		}
	}
	r.assigned[n] = needs
	return needs
}

// initializer writes an initializer in braces.
func (r *renderer) initializer(n *initNode) {
	switch {
	case n.value != nil && r.fn == nil && r.d.gpu && n.typ.isArith():
		r.constantValue(n.value)
	case n.value != nil:
		r.expr(n.value)
	case r.needsAssign(n) && r.fn == nil && r.d.gpu:
		r.unionConstant(n)
	case r.needsAssign(n) && r.d.msl:
		r.w("({ ", r.typeText(dropConst(n.typ.in(Private)), "cc_r"), "; ")
		r.assignInit("cc_r", n, "; ")
		r.w("cc_r; })")
	case r.needsAssign(n):
		r.w("[&]{ ", r.typeText(dropConst(n.typ.in(Private)), "cc_r"), "; ")
		r.assignInit("cc_r", n, "; ")
		r.w("return cc_r; }()")
	default:
		r.braces(n)
	}
}

// braces writes the elements of an initializer.
func (r *renderer) braces(n *initNode) {
	if len(n.kids) == 0 {
		r.w("{}")
		return
	}
	r.w("{")
	last := 0
	for i := range n.kids {
		last = max(last, i)
	}
	for i := 0; i <= last; i++ {
		if i > 0 {
			r.w(", ")
		}
		if k := n.kids[i]; k != nil {
			r.initializer(k)
		} else {
			r.w("{}")
		}
	}
	r.w("}")
}

// assignInit writes an initializer as assignments to lhs, each followed by sep.
func (r *renderer) assignInit(lhs string, n *initNode, sep string) {
	if n.value == nil && !n.typ.isAggregate() {
		r.w(lhs, " = {}", sep)
		return
	}
	if n.value == nil && r.d.msl {
		r.w("cc_clear(", lhs, ")", sep)
	} else if n.value == nil {
		r.w("CC_CLEAR((void *)&", lhs, ", 0, sizeof(", lhs, "))", sep)
	}
	r.assignParts(lhs, n, sep)
}

func (r *renderer) assignParts(lhs string, n *initNode, sep string) {
	if n.value != nil {
		if storesWhole(n.typ) {
			r.w("cc_store(", lhs, ", ")
			r.expr(n.value)
			r.w(")", sep)
			return
		}
		r.w(lhs, " = ")
		r.expr(n.value)
		r.w(sep)
		return
	}
	last := -1
	for i := range n.kids {
		last = max(last, i)
	}
	for i := 0; i <= last; i++ {
		k := n.kids[i]
		switch {
		case k == nil || k.value == nil && !k.typ.isAggregate():
		case n.typ.kind == tArray:
			r.assignParts(lhs+"["+strconv.Itoa(i)+"]", k, sep)
		default:
			r.assignParts(lhs+"."+n.typ.rec.fields[i].cname, k, sep)
		}
	}
}
