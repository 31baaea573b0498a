package render

// Regions with an interchanged loop (loops/interchange.go), in C++. A row is processed in parts; a
// strip is a loop over the items of a part, and each round of an interchanged loop is a loop over
// those items that are still in it.

import (
	"strconv"

	"github.com/concord-compute/concord/source/internal/loops"
	"github.com/concord-compute/concord/source/internal/tree"
)

// interchanged writes the loop over the rows of a region that is cut into strips. If ids may not
// fit an int, each item evaluates the guards itself, and a part is one item.
func (r *renderer) interchanged(g *loops.Region) {
	f, most := r.plan, strconv.Itoa(g.Part())
	r.w("CC_ITEMS(cc_b, cc_r) { bool cc_left = false; (void)cc_left; cc_r.most(CC_SMALL ? ", most, " : 1); ")
	straight := r.beginRow(g.Rows, "cc_r")
	r.naming(g.Rows.Hoisted(), func() {
		for i, s := range g.Strips {
			if s.Rounds != nil {
				r.first(s.Rounds, "cc_f"+strconv.Itoa(i))
			}
		}
	})
	for _, s := range g.Held {
		r.w(r.typeText(dropConst(s.Type), f.Where[s]+"["+most+"]"), "; ")
	}
	for i, s := range g.Strips {
		if s.Rounds != nil {
			r.rounds(g, s, "cc_f"+strconv.Itoa(i))
			continue
		}
		r.straight, r.returns = straight, true
		r.strip(g, s)
		r.straight, r.returns = nil, false
	}
	r.w("} }")
}

// first writes the computation of the initial value of a loop's variable, and of the end of the run
// before the value wraps.
func (r *renderer) first(l *loops.Rounds, name string) {
	t := r.plain(l.K.Type)
	r.w("const ", t, " ", name, " = ", l.K.Init, "; ")
	if !loops.IsWide(l.K.Type) {
		r.w("cc_r.template from<", l.Step, ", ", t, ">(", name, "); ")
	}
}

// strip writes a strip of statements.
func (r *renderer) strip(g *loops.Region, s *loops.Strip) {
	r.each(g, s, "cc_r", "cc_k")
	r.w("{")
	for _, k := range s.List {
		r.stmt(k)
	}
	if s.Only != nil {
		r.w(" if (!CC_SMALL && !(", truth{s.Only.E}, ")) return void(cc_left = true);")
	}
	r.w(" }")
	r.stores(g, s)
	r.w(" }(); if (!CC_SMALL && cc_left) continue; ")
}

// rounds writes an interchanged loop. Several rounds with the same items are executed together if
// the memory that they access is far apart, so that the processor waits for several accesses at
// once. Consecutive memory is faster one round after the other, because the processor prefetches
// it.
func (r *renderer) rounds(g *loops.Region, s *loops.Strip, first string) {
	l := s.Rounds
	t := r.plain(l.K.Type)
	as := func(name string, write func()) {
		r.naming(g.Rows.Hoisted(), func() { r.naming(map[*tree.Symbol]string{l.K: name}, write) })
	}
	r.at(l.Loop.Pos)
	r.w("if (!CC_SMALL || cc_r.n < ", loops.ShortRow, ") { ")
	r.alone(g, s, as, first)
	r.w("} else if constexpr (CC_SMALL) { cc_rounds<cc_I, ", t, ", ", strconv.FormatInt(l.Step, 10), ", ",
		strconv.FormatBool(l.Signs), "> cc_q(cc_r.n, ", first, "); ")
	r.w("const auto cc_next = [&](", t, " cc_n) CC_ITEM { ")
	as("cc_n", func() { r.expr(l.Loop.Post) })
	r.w("; return cc_n; }; ")
	test := func(conds []*tree.Expr) {
		r.w("[&](const ", t, " cc_n) CC_ITEM -> bool { (void)cc_n; return ")
		for i, e := range conds {
			if i > 0 {
				r.w(" && ")
			}
			r.w("(")
			as("cc_n", func() { r.cond(e) })
			r.w(")")
		}
		r.w("; }")
	}
	r.w("for (; cc_q.begin(); cc_q.k = cc_next(cc_q.k)) { ")
	for _, e := range l.Conds {
		r.w("cc_q.cut(")
		test([]*tree.Expr{e})
		r.w("); ")
	}
	if l.Jam > 1 {
		most := strconv.Itoa(l.Jam)
		r.w("if (cc_q.far(cc_next) && cc_q.whole(", most, ", cc_next, ")
		test(l.Conds)
		r.w(")) { ")
		r.round(g, s, l.Jam)
		r.w("for (int cc_u = 1; cc_u < ", most, "; cc_u++) cc_q.k = cc_next(cc_q.k); continue; } ")
	}
	r.round(g, s, 1)
	r.w("} } ")
}

// alone writes the loop without interchange, item by item, for rows with few items, where finding
// the items of each round would cost too much.
func (r *renderer) alone(g *loops.Region, s *loops.Strip, as func(string, func()), first string) {
	l := s.Rounds
	t, k := r.plain(l.K.Type), r.nameOf(l.K)
	r.each(g, s, "cc_r", "cc_k")
	r.w("for (", r.typeText(dropConst(l.K.Type), k), " = (", t, ")(", first, " + cc_k * ", strconv.FormatInt(l.Step, 10),
		"); ")
	as(k, func() { r.cond(l.Loop.E) })
	r.w("; ")
	as(k, func() { r.expr(l.Loop.Post) })
	r.w(") ")
	r.body(l.Loop.Body)
	r.stores(g, s)
	r.w(" }(); ")
}

// each begins the loop over the items of a run. place is the index of the first item's elements in
// the arrays.
func (r *renderer) each(g *loops.Region, s *loops.Strip, run, place string) {
	r.w("CC_EACH(", run, ", ) [&]() CC_ITEM { const cc_long cc_j = ", place, "; (void)cc_j; ")
	r.computed(s.Anew)
	r.loads(g, s)
}

// round writes count rounds for the items that are in them.
func (r *renderer) round(g *loops.Region, s *loops.Strip, count int) {
	f, l := r.plan, s.Rounds
	t := r.plain(l.K.Type)
	in := f.BodyOf(g, l)
	for _, sym := range s.Anew {
		in.Value(sym)
	}
	in.Read(l.Loop.Body)
	r.w("for (cc_I cc_o = cc_q.lo; cc_o < cc_q.hi;) { cc_run<cc_I> cc_s = cc_q.run(cc_r, cc_o); this->cc_begin(cc_s); "+
		"const auto cc_head = [&](const ", t, " cc_f) CC_ITEM { ")
	var text map[*tree.Expr]string
	r.naming(map[*tree.Symbol]string{l.K: "cc_f"}, func() { text = r.beginRow(in, "cc_s") })
	r.w("struct { ", t, " f; cc_long x[", len(in.List)+1, "]; } cc_h = {cc_f, {")
	for i, x := range in.List {
		r.w("cc_x", in.First(i), ", ")
		text[x.E] = "(cc_h.x[" + strconv.Itoa(i) + "] + cc_k * " + strconv.FormatInt(x.Step, 10) + ")"
	}
	r.w("0}}; return cc_h; }; ", t, " cc_n = cc_q.at(cc_o); ")
	for i := range count {
		r.w("const auto cc_h", i, " = cc_head(cc_n); cc_n = cc_next(cc_n); ")
	}
	r.each(g, s, "cc_s", "cc_long(cc_o) + cc_k")
	r.w("const auto cc_body = [&](const auto &cc_h) CC_ITEM { ")
	r.w(r.typeText(dropConst(l.K.Type), r.nameOf(l.K)), " = (", t, ")(cc_h.f + cc_k * ", strconv.FormatInt(l.Step, 10),
		"); do ")
	r.straight = text
	r.body(l.Loop.Body)
	r.straight = nil
	r.w(" while (0); }; ")
	for i := range count {
		r.w("cc_body(cc_h", i, "); ")
	}
	r.stores(g, s)
	r.w(" }(); cc_o += cc_s.n; } ")
}

func (r *renderer) loads(g *loops.Region, s *loops.Strip) {
	for _, sym := range s.Vars {
		if r.plan.Keeps[sym] {
			r.load(sym, s.Home[sym])
		}
	}
	for _, sym := range g.Held {
		if !s.Refs[sym] {
			continue
		}
		r.w(r.typeText(dropConst(sym.Type), r.nameOf(sym)))
		if !s.Home[sym] {
			r.w(" = ", r.plan.Where[sym], "[cc_j]")
		}
		r.w("; ")
	}
}

func (r *renderer) stores(g *loops.Region, s *loops.Strip) {
	f := r.plan
	for _, sym := range s.Vars {
		if f.Keeps[sym] && f.Copied(sym) && (s.Writes[sym] || s.Home[sym]) {
			r.w(" ", f.Where[sym], "[cc_it] = ", f.Names[sym], ";")
		}
	}
	for _, sym := range g.Held {
		if s.Writes[sym] || s.Home[sym] {
			r.w(" ", f.Where[sym], "[cc_j] = ", f.Names[sym], ";")
		}
	}
}
