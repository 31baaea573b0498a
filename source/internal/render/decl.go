package render

import (
	"slices"
	"strconv"

	"github.com/concord-compute/concord/source/internal/tree"
)

// Declarations in C++: records, constants, local memory, functions, variables.

func recordWord(rec *tree.Record) string {
	if rec.Union {
		return "union"
	}
	return "struct"
}

// record writes a struct or union, with an assertion for the C++ compiler that it has the size that
// the parser computed.
func (r *renderer) record(rec *tree.Record) {
	r.at(rec.Pos)
	r.w(recordWord(rec), " ")
	if rec.Packed {
		r.w("__attribute__((packed)) ")
	}
	if rec.ReqAlign > 0 {
		r.w("__attribute__((aligned(", rec.ReqAlign, "))) ")
	}
	r.w(rec.CName, " { ")
	if len(rec.Fields) == 0 && r.d.gnu {
		r.w("cc_char cc_empty[0]; ") // an empty struct has size 0 in C
	}
	for _, f := range rec.Fields {
		typ := f.Type
		if tree.StoresWhole(typ) {
			c := *typ // otherwise the record could not be copied
			c.Q &^= tree.QVolatile
			typ = &c
		}
		r.w(r.typeText(typ, f.CName))
		if a := max(f.Align, tree.ArrayBase(f.Type).Align, f.Type.Align); a > 0 {
			r.w(" __attribute__((aligned(", a, ")))")
		}
		if f.Packed {
			r.w(" __attribute__((packed))")
		}
		r.w("; ")
	}
	if len(rec.Fields) == 0 && !r.d.gnu {
		r.w("};") // it has size 1 here: the assertion of a record with such a member will fail
		return
	}
	r.w("}; static_assert(sizeof(", rec.CName, ") == ", rec.Size, ", \"layout of ", rec.CName, "\");")
}

// global writes a constant of program scope.
func (r *renderer) global(g *tree.Symbol) {
	if g.Init == nil || g.Type.IsUnknown() {
		return
	}
	r.at(g.Pos)
	if r.asWords[g] = r.d.gpu && r.needsWords(g.Init); r.asWords[g] {
		r.words(g)
		return
	}
	r.w(alignPrefix(g.Type), r.constant(g, g.Type.In(tree.Constant)), " = ", g.Init, ";")
}

// constant returns the declaration of a constant of program scope as an object of type t.
func (r *renderer) constant(g *tree.Symbol, t *tree.Type) string {
	if r.d.msl {
		return r.metalType(t, g.CName, true)
	}
	return "static " + r.places[g] + r.typeText(t, g.CName)
}

func alignPrefix(t *tree.Type) string {
	if t.Align > 0 {
		return "alignas(" + strconv.Itoa(t.Align) + ") "
	}
	return ""
}

// hasLocals reports whether a kernel needs a block of local memory, for its own variables or for
// those of kernels that it calls.
func (r *renderer) hasLocals(k *tree.Function) bool {
	has, asked := r.memory[k]
	if !asked {
		has = len(k.Locals) > 0 || slices.ContainsFunc(k.Calls, func(c *tree.Call) bool {
			return c.To.Kernel && c.To != k && r.hasLocals(c.To)
		})
		r.memory[k] = has
	}
	return has
}

// locals writes the struct of a kernel's local variables. The block of a kernel that calls another
// contains the other's block.
func (r *renderer) locals(k *tree.Function, done map[*tree.Function]bool) {
	if done[k] || !r.hasLocals(k) {
		return
	}
	done[k] = true
	for _, c := range k.Calls {
		if c.To.Kernel {
			r.locals(c.To, done)
		}
	}
	r.at(k.Pos)
	r.w("struct cc_locals_", k.Name, " { ")
	for _, s := range k.Locals {
		r.w("alignas(", tree.LocalAlignment(s.Type), ") ", r.typeText(s.Type, s.CName), "; ")
	}
	seen := map[*tree.Function]bool{}
	for _, c := range k.Calls {
		if c.To.Kernel && !seen[c.To] && r.hasLocals(c.To) {
			seen[c.To] = true
			r.w("cc_locals_", c.To.Name, " cc_sub_", c.To.Name, "; ")
		}
	}
	r.w("};")
}

// function writes a function or kernel as a member of the program. A kernel with local memory that
// other kernels call is split, so that each caller passes the memory.
func (r *renderer) function(fn *tree.Function) {
	r.fn = fn
	if r.plans[fn] != nil {
		r.splitKernel(fn)
		if fn.Barrier && !r.called[fn] {
			return
		}
	}
	r.at(fn.Pos)
	locals := fn.Kernel && r.hasLocals(fn)
	if locals && r.d.msl {
		r.w("void kc_", fn.Name, "(")
		r.params(fn, "threadgroup cc_locals_"+fn.Name+" &cc_l")
		r.w(") {")
	} else if locals && r.called[fn] {
		r.w(r.d.kernel, "void ", fn.CName, "(")
		r.params(fn, "")
		r.w(") {")
		r.localBlock(fn)
		r.w(" kc_", fn.Name, "(cc_l")
		for _, s := range fn.Params {
			r.w(", ", s.CName)
		}
		r.w("); }")
		r.at(fn.Pos)
		r.w(r.d.kernel, "void kc_", fn.Name, "(")
		r.params(fn, "cc_locals_"+fn.Name+" &cc_l")
		r.w(") {")
	} else {
		if fn.Kernel {
			r.w(r.d.kernel)
		} else {
			r.w(r.d.function)
		}
		r.w(r.plain(fn.Type.Elem), " ", fn.CName, "(")
		r.params(fn, "")
		r.w(") {")
		if locals {
			r.localBlock(fn)
		}
	}
	for _, t := range fn.Temps {
		r.w(" ", alignPrefix(t.Type), r.typeText(dropConst(t.Type), t.CName), ";")
	}
	for _, s := range fn.Body.List {
		r.stmt(s)
	}
	if !endsInReturn(fn.Body) && !fn.Type.Elem.IsVoid() {
		// In C a function may end without returning a value if the caller does not use it; C++
		// compilers treat that end as unreachable.
		r.w(" return {};")
	}
	r.w(" }")
	r.fn = nil
}

// localBlock declares cc_l, the block of a kernel's local variables.
func (r *renderer) localBlock(fn *tree.Function) {
	if r.d.gpu {
		r.w(" __shared__ cc_locals_", fn.Name, " cc_l;")
		return
	}
	r.w(" cc_locals_", fn.Name, " &cc_l = cc_local<cc_locals_", fn.Name, ">(); (void)cc_l;")
}

func endsInReturn(b *tree.Stmt) bool {
	return len(b.List) > 0 && b.List[len(b.List)-1].Kind == tree.StReturn
}

func (r *renderer) params(fn *tree.Function, first string) {
	r.w(first)
	for i, s := range fn.Params {
		if i > 0 || first != "" {
			r.w(", ")
		}
		r.w(r.typeText(s.Type, s.CName))
	}
}

// dropConst removes const from the type of a variable that is assigned after its declaration.
func dropConst(t *tree.Type) *tree.Type {
	c := *t
	if t.Kind == tree.TArray {
		c.Elem = dropConst(t.Elem)
		return &c
	}
	c.Q &^= tree.QConst
	return &c
}

// variable writes the declaration of one variable as a statement.
func (r *renderer) variable(s *tree.Symbol) {
	if r.plan != nil && r.plannedVariable(s) {
		return
	}
	t := s.Type
	apart := r.fn.Split || r.needsAssign(s.Init)
	if apart || s.Init == nil {
		t = dropConst(t)
	}
	r.w(alignPrefix(t), r.typeText(t, r.nameOf(s)))
	switch {
	case s.Init == nil:
		r.w(";")
	case apart:
		r.w("; ")
		r.assignInit(r.nameOf(s), s.Init, "; ")
	default:
		r.w(" = ", s.Init, ";")
	}
}

// needsAssign reports whether an initializer cannot be written in braces because it initializes a
// member of a union other than the first.
func (r *renderer) needsAssign(n *tree.Init) bool {
	if n == nil || n.Value != nil {
		return false
	}
	needs, asked := r.assigned[n]
	if asked {
		return needs
	}
	for i, k := range n.Kids {
		if n.Type.Kind == tree.TRecord && n.Type.Rec.Union && i > 0 || r.needsAssign(k) {
			needs = true
			break
		}
	}
	r.assigned[n] = needs
	return needs
}

// initializer writes an initializer in braces.
func (r *renderer) initializer(n *tree.Init) {
	switch {
	case n.Value != nil && r.fn == nil && r.d.gpu && n.Type.IsArith():
		r.constantValue(n.Value)
	case n.Value != nil:
		r.expr(n.Value)
	case r.needsAssign(n) && n.Type.Kind == tree.TArray: // which no function returns
		r.braces(n)
	case r.needsAssign(n) && r.d.msl:
		r.w("({ ", r.typeText(dropConst(n.Type.In(tree.Private)), "cc_r"), "; ")
		r.assignInit("cc_r", n, "; ")
		r.w("cc_r; })")
	case r.needsAssign(n):
		capture := "[&]{ "
		if r.fn == nil { // C++ allows no capture there
			capture = "[]{ "
		}
		r.w(capture, r.typeText(dropConst(n.Type.In(tree.Private)), "cc_r"), "; ")
		r.assignInit("cc_r", n, "; ")
		r.w("return cc_r; }()")
	default:
		r.braces(n)
	}
}

// braces writes the elements of an initializer.
func (r *renderer) braces(n *tree.Init) {
	r.w("{")
	for i := range n.Len() {
		r.comma(i)
		if k := n.Kids[i]; k != nil {
			r.initializer(k)
		} else {
			r.w("{}")
		}
	}
	r.w("}")
}

// assignInit writes an initializer as assignments to lhs, each followed by sep.
func (r *renderer) assignInit(lhs string, n *tree.Init, sep string) {
	if n.Value == nil && !n.Type.IsAggregate() {
		r.w(lhs, " = {}", sep)
		return
	}
	if n.Value == nil && r.d.msl {
		r.w("cc_clear(", lhs, ")", sep)
	} else if n.Value == nil {
		r.w("CC_CLEAR((void *)&", lhs, ", 0, sizeof(", lhs, "))", sep)
	}
	r.assignParts(lhs, n, sep)
}

func (r *renderer) assignParts(lhs string, n *tree.Init, sep string) {
	if n.Value != nil {
		if tree.StoresWhole(n.Type) {
			r.w("cc_store(", lhs, ", ", n.Value, ")", sep)
			return
		}
		r.w(lhs, " = ", n.Value, sep)
		return
	}
	for i := range n.Len() {
		k := n.Kids[i]
		switch {
		case k == nil || k.Value == nil && !k.Type.IsAggregate():
		case n.Type.Kind == tree.TArray:
			r.assignParts(lhs+"["+strconv.Itoa(i)+"]", k, sep)
		default:
			r.assignParts(lhs+"."+n.Type.Rec.Fields[i].CName, k, sep)
		}
	}
}
