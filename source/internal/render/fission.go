package render

// Host kernels that are cut at their barriers (loops/plan.go), in C++: one function runs the whole
// group. Each region is a lambda that is called for every item by a loop over a row, inside of a loop
// over the rows; the prelude has both as macros, since a compiler would optimize the whole text again for each
// lambda around it. The text of the region is the same as on a fiber; kept variables of an item are loaded
// before it and stored after it.

import (
	"slices"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/loops"
	"github.com/concord-compute/concord/source/internal/tree"
)

// splitName returns the name of the function that runs a whole group of a kernel.
func splitName(fn *tree.Function) string { return "ks_" + fn.Name }

// nameOf returns the name of a variable at the current place.
func (r *renderer) nameOf(s *tree.Symbol) string {
	for _, names := range slices.Backward(r.names) {
		if names[s] != "" {
			return names[s]
		}
	}
	if r.plan != nil && r.plan.Names[s] != "" {
		return r.plan.Names[s]
	}
	return s.CName
}

// planned returns the pieces that a body was cut into.
func (r *renderer) planned(s *tree.Stmt) ([]loops.Piece, bool) {
	if r.plan == nil {
		return nil, false
	}
	ps, ok := r.plan.Pieces[s]
	return ps, ok
}

// splitKernel writes a kernel as a function that runs a whole group.
func (r *renderer) splitKernel(fn *tree.Function) {
	f := r.plans[fn]
	r.plan, r.vectors = f, f.Vectors()
	defer func() { r.plan = nil }()
	r.at(fn.Pos)
	r.w("template <class cc_I> CC_KERNEL_FN void ", splitName(fn), "(")
	for i, s := range fn.Params {
		r.comma(i)
		name := s.CName
		if len(f.Writes[s]) > 0 {
			name = arrived(s)
		}
		r.w(r.typeText(s.Type, name))
	}
	r.w(") {")
	if r.hasLocals(fn) {
		r.localBlock(fn)
	}
	for _, s := range f.Kept {
		at := f.Where[s]
		r.w(" ", r.typeText(dropConst(s.Type), "(*"+at+")"), "; CC_KEEP(", at, ");")
	}
	r.pieces(f.Pieces[fn.Body])
	r.w(" }")
}

// splitEntry writes the function in the table for a kernel that was cut, and the sizes of its parameters.
// Launches with ids beyond 2^31 are rare: their copy of the kernel is optimized for size. Without barriers
// it runs the items one by one, for which compilers take half as long.
func (r *renderer) splitEntry(fn *tree.Function) {
	var bytes, load, args strings.Builder
	for i, s := range fn.Params {
		t, n := dropConst(s.Type), strconv.Itoa(i)
		bytes.WriteString("sizeof(" + r.typeText(t, "") + "), ")
		load.WriteString(r.typeText(t, "cc_a"+n) + " = *(" + r.typeText(t, "*") + ")cc_args[" + n + "]; ")
		if i > 0 {
			args.WriteString(", ")
		}
		args.WriteString("cc_a" + n)
	}
	begin := "(concord_ctx *cc_ctx, void *const *cc_args) {\ncc_program cc_p; cc_p.cc_enter(cc_ctx); "
	call := func(f string) string { return load.String() + "\n" + f + "(" + args.String() + "); }\n" }
	big := "cc_p." + splitName(fn) + "<cc_size>"
	if !fn.Barrier {
		big = "CC_ONE_BY_ONE(cc_p) cc_p." + fn.CName
	}
	run := "void cc_run_"
	if r.plans[fn].Vectors() == loops.Even {
		run = "CC_LONG " + run
	}
	r.raw("namespace {\nconstexpr uint32_t cc_bytes_" + fn.Name + "[] = {" + bytes.String() + "0};\n" +
		"__attribute__((cold, noinline)) void cc_big_" + fn.Name + begin + call(big) +
		run + fn.Name + begin + "if (!cc_p.cc_small()) return cc_big_" + fn.Name + "(cc_ctx, cc_args); " +
		call("cc_p."+splitName(fn)+"<cc_int>") + "}\n")
}

// arrived returns the name of the C++ parameter for a kernel parameter that the kernel assigns.
func arrived(s *tree.Symbol) string { return "cc_in_" + s.CName }

func (r *renderer) pieces(ps []loops.Piece) {
	for _, p := range ps {
		switch {
		case p.Items != nil:
			r.region(p.Items)
		case p.Sym != nil:
			r.at(p.Sym.Pos)
			r.variable(p.Sym)
		case p.Fence:
			r.w(" CC_REGION_END;")
		default:
			r.stmt(p.Once)
		}
	}
}

// region writes the loop over the items of a group.
func (r *renderer) region(g *loops.Region) {
	f := r.plan
	r.at(g.List[0].Pos)
	r.w(" { ")
	r.box(g)
	if g.Strips != nil {
		r.interchanged(g)
		return
	}
	r.w("CC_ITEMS(cc_b, cc_r) { ")
	r.straight = r.beginRow(f.StraightOf(g), "cc_r")
	apart := ""
	if r.vectors >= loops.Apart {
		apart = "CC_APART"
	}
	r.w("CC_EACH(cc_r, ", apart, ") [&]() CC_ITEM { ")
	r.computed(g.Anew)
	for _, s := range g.Vars {
		if f.Keeps[s] {
			r.load(s, f.Home[s] == g)
		}
	}
	r.w("{")
	for _, s := range g.List {
		r.stmt(s)
	}
	r.w(" }")
	for _, s := range g.Vars {
		if f.Keeps[s] && f.Copied(s) && (g.Writes[s] || f.Home[s] == g) {
			r.w(" ", f.Where[s], "[cc_it] = ", f.Names[s], ";")
		}
	}
	r.straight = nil
	r.w(" }(); } }")
}

// beginRow writes the computation of the straight indices' first values for a run, and returns the
// texts that replace the indices.
func (r *renderer) beginRow(s *loops.Straights, run string) map[*tree.Expr]string {
	text := map[*tree.Expr]string{}
	r.naming(s.Hoisted(), func() {
		for i, sym := range s.Order {
			r.w("const ", r.typeText(dropConst(sym.Type), "cc_h"+strconv.Itoa(i)), " = ", sym.Init, "; ")
		}
		for i, x := range s.List {
			at, step := "cc_x"+strconv.Itoa(s.First(i)), strconv.FormatInt(x.Step, 10)
			if s.First(i) == i {
				r.w("const cc_long ", at, " = ", run, ".template from<", step, ", ", r.plain(x.E.Type), ">(", x.E,
					"); ")
			}
			text[x.E] = "(" + at + " + cc_k * " + step + ")"
		}
	})
	return text
}

// naming calls write with other names for some variables.
func (r *renderer) naming(names map[*tree.Symbol]string, write func()) {
	r.names = append(r.names, names)
	write()
	r.names = r.names[:len(r.names)-1]
}

// computed writes the declarations of variables that are computed again.
func (r *renderer) computed(need []*tree.Symbol) {
	for _, s := range need {
		r.w(r.typeText(s.Type, r.nameOf(s)), " = ", s.Init, "; ")
	}
}

// box writes the range of items that execute a region, as far as its guards limit it.
func (r *renderer) box(g *loops.Region) {
	f := r.plan
	limits := f.Guards(g)
	need := map[*tree.Symbol]bool{}
	for _, l := range limits {
		tree.WalkExpr(l.U, func(e *tree.Expr) {
			if e.Op == tree.OpSym && e.Sym.Kind == tree.SymVar && !e.Sym.Inst && !f.Shared[e.Sym] {
				f.Needs(e.Sym, need)
			}
		})
	}
	r.computed(f.InOrder(need))
	r.w("cc_box<cc_I> cc_b(*this); ")
	if len(limits) == 0 {
		return
	}
	r.w("if constexpr (CC_SMALL) { ")
	for _, l := range limits {
		for _, way := range l.Ways() {
			global := "false"
			if l.ID.Global {
				global = "true"
			}
			r.w("cc_b.", way.Method, "(", l.ID.Dim, ", ", global, ", cc_b.limit(", l.U, ")", way.Plus, "); ")
		}
	}
	r.w("} ")
}

// load writes the loading of a kept variable in a region. fresh says that the variable is declared
// in the region and has no value yet.
func (r *renderer) load(s *tree.Symbol, fresh bool) {
	f := r.plan
	name, t := f.Names[s], dropConst(s.Type)
	switch {
	case !f.Copied(s):
		r.w(r.typeText(t, "(&"+name+")"), " = ", f.Where[s], "[cc_it]; ")
	case fresh:
		r.w(r.typeText(t, name), "; ")
	default:
		r.w(r.typeText(t, name), " = ", f.Where[s], "[cc_it]; ")
	}
}

// plannedVariable writes the declaration of a variable that a plan keeps in an array. It returns
// false for other variables.
func (r *renderer) plannedVariable(s *tree.Symbol) bool {
	f := r.plan
	name := r.nameOf(s)
	switch {
	case f.Where[s] != "" && s.Kind == tree.SymParam:
		r.w(name, " = ", arrived(s), ";")
	case f.Where[s] != "":
		if s.Init != nil {
			r.assignInit(name, s.Init, "; ")
		}
		r.w(";")
	case s.Kind == tree.SymParam:
		r.w(r.typeText(s.Type, name), " = ", arrived(s), ";")
	case name != s.CName && !f.Shared[s]: // computed at the beginning of the region
		r.w(";")
	default:
		return false
	}
	return true
}
