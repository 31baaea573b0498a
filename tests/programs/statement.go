package programs

import (
	"fmt"
	"strings"
)

// statement adds one statement to a block: depth says how deep blocks may be within.
func (g *gen) statement(l *block, depth int) {
	if !g.diverged && g.chance(3) {
		g.together(l, depth)
		return
	}
	n := 14
	if depth > 0 {
		n = 22
	}
	switch g.IntN(n) {
	case 0, 1, 2, 3, 4:
		g.assign(l)
	case 5, 6:
		g.declareVariable(l)
	case 7:
		g.assignComponents(l)
	case 8:
		g.assignElement(l)
	case 9:
		g.store(l)
	case 10:
		g.near(l)
	case 11:
		g.atomic(l)
	case 12:
		g.pointed(l)
	case 13:
		g.copyRecord(l)
	case 14, 15:
		g.ifElse(l, depth-1)
	case 16, 17, 18:
		g.loop(l, depth-1)
	case 19:
		g.switchCase(l, depth-1)
	case 20:
		g.jump(l, depth-1)
	case 21:
		b := g.block(depth-1, 1+g.IntN(3))
		form := "{@0}"
		if g.chance(3) {
			form = "#if (" + g.condition() + ")\n;@0#endif"
			form = strings.Replace(form, "\n;@0", "\n{@0}\n", 1)
		}
		l.add(&stmt{form: form, blocks: []*block{b}})
	}
}

// condition makes a condition for #if.
func (g *gen) condition() string {
	a, b := g.IntN(50), 1+g.IntN(9)
	return pick(g, []string{
		fmt.Sprintf("%d / %d > %d && defined(__OPENCL_VERSION__)", a, b, g.IntN(9)),
		fmt.Sprintf("(%d << %d) - 100 < 0 || !defined M1", a, b),
		fmt.Sprintf("(%d ? -%d : %du) > 0", a%2, a, b),
		fmt.Sprintf("~%d %% %d == 0", a, b),
	})
}

// block makes statements with a scope of their own.
func (g *gen) block(depth, n int) *block {
	vars, recs := len(g.vars), len(g.recs)
	b := &block{}
	for range n {
		g.statement(b, depth)
	}
	g.vars, g.recs = g.vars[:vars], g.recs[:recs]
	return b
}

// within makes a block that not every item of a group reaches.
func (g *gen) within(depth, n int) *block {
	saved := g.diverged
	g.diverged = true
	b := g.block(depth, n)
	g.diverged = saved
	return b
}

// same makes an expression that has the same value for all items of a group.
func (g *gen) same(t typ, depth int) *expr {
	saved := g.alike
	g.alike = true
	e := g.expr(t, depth)
	g.alike = saved
	return e
}

// writable finds a variable that may be assigned here.
func (g *gen) writable(fits func(v *variable) bool) *variable {
	return g.find(func(v *variable) bool { return v.rw && (!v.alike || !g.diverged) && fits(v) })
}

// valueFor makes a value to assign to a variable. It is uniform if the variable has to be.
func (g *gen) valueFor(v *variable, t typ, depth int) *expr {
	if v.alike {
		return g.same(t, depth)
	}
	return g.expr(t, depth)
}

// declareVariable declares a variable, an array or a record, with its initial values.
func (g *gen) declareVariable(l *block) {
	name := g.fresh("x")
	t := g.anyOf()
	switch g.IntN(9) {
	case 0:
		t.n = pick(g, []int{1, 1, 1, 2, 4})
		n := pick(g, []int{4, 8, 8})
		s := &stmt{}
		var holes []string
		for i := range min(n, 1+g.IntN(9)) {
			holes = append(holes, fmt.Sprint("$", i))
			s.args = append(s.args, g.expr(t, 1))
		}
		s.form = fmt.Sprintf("%s %s[%d] = {%s};", t, name, n, strings.Join(holes, ", "))
		l.add(s)
		g.vars = append(g.vars, variable{name: name, t: t, n: n, rw: true})
	case 1:
		if len(g.records) > 0 {
			g.declareRecordVar(l)
			return
		}
		fallthrough
	case 2:
		if g.diverged || g.chance(3) {
			g.declarePointer(l)
			return
		}
		l.add(&stmt{form: fmt.Sprintf("%s %s = $0;", t, name), args: []*expr{g.same(t, 2)}})
		g.vars = append(g.vars, variable{name: name, t: t, rw: true, alike: true})
	case 3:
		l.add(&stmt{form: fmt.Sprintf("const %s %s = $0;", t, name), args: []*expr{g.expr(t, 3)}})
		g.vars = append(g.vars, variable{name: name, t: t})
	case 4: // an inner one hides an outer one
		if v := g.find(func(v *variable) bool {
			return v.rw && v.n == 0 && strings.HasPrefix(v.name, "x") && !strings.ContainsAny(v.name, ".[-")
		}); v != nil && g.diverged {
			value := g.expr(t, 2)
			hidden := v.name
			inner := &block{list: []*stmt{{form: fmt.Sprintf("%s h_%s = $0; {", t, hidden), args: []*expr{value}, fixed: true}}}
			saved := g.vars
			g.vars = nil
			for _, w := range saved {
				if w.name != hidden && !strings.HasPrefix(w.name, hidden+".") {
					g.vars = append(g.vars, w)
				}
			}
			recs := g.recs
			g.recs = nil
			inner.add(&stmt{form: fmt.Sprintf("%s %s = h_%s;", t, hidden, hidden), fixed: true})
			g.vars = append(g.vars, variable{name: hidden, t: t, rw: true})
			for range 2 {
				g.assign(inner)
			}
			g.store(inner)
			inner.add(&stmt{form: "}", fixed: true})
			g.vars, g.recs = saved, recs
			l.add(&stmt{form: "{@0}", blocks: []*block{inner}})
			return
		}
		fallthrough
	default:
		form := "%s %s = $0;"
		if g.chance(5) {
			form = "%s %s; " + name + " = $0;"
		}
		l.add(&stmt{form: fmt.Sprintf(form, t, name), args: []*expr{g.expr(t, 3)}})
		g.vars = append(g.vars, variable{name: name, t: t, rw: true})
	}
}

// declarePointer declares a pointer into an array whose elements may be read.
func (g *gen) declarePointer(l *block) {
	name := g.fresh("p")
	v := g.find(func(v *variable) bool { return v.n >= 8 && v.t.n == 1 && v.rw })
	if v != nil && g.chance(2) {
		l.add(&stmt{form: fmt.Sprintf("%s *%s = %s + ($0 & %du);", v.t, name, v.name, v.n/2-1), args: []*expr{g.index()}})
		g.vars = append(g.vars, variable{name: name, t: v.t, n: v.n / 2, rw: true})
		return
	}
	if g.kern == nil {
		g.assign(l)
		return
	}
	k := pick(g, g.kinds)
	l.add(&stmt{form: fmt.Sprintf("global const %s *%s = %s + ($0 & 31u);", k, name, g.kern.input(k)),
		args: []*expr{g.index()}})
	g.vars = append(g.vars, variable{name: name, t: typ{k, 1}, n: 32})
}

// initializer writes the values of a record. A form has ten holes: after nine they are constants.
func (g *gen) initializer(r *record, s *stmt) string {
	value := func(t typ) string {
		if len(s.args) >= 9 || r.union {
			return g.literal(t).form
		}
		s.args = append(s.args, g.expr(t, 2))
		return fmt.Sprint("$", len(s.args)-1)
	}
	var list []string
	for _, f := range r.fields {
		one := func() string {
			if f.rec != nil {
				return g.initializer(f.rec, s)
			}
			return value(f.t)
		}
		text := one()
		if f.n > 0 {
			parts := []string{text}
			for range f.n - 1 {
				parts = append(parts, one())
			}
			text = "{" + strings.Join(parts, ", ") + "}"
		}
		list = append(list, text)
		if r.union {
			break
		}
	}
	return "{" + strings.Join(list, ", ") + "}"
}

func (g *gen) declareRecordVar(l *block) {
	r := pick(g, g.records)
	s := &stmt{}
	init := g.initializer(r, s)
	if name := g.fresh("x"); g.chance(4) { // an array of two
		second := g.initializer(r, s)
		s.form = fmt.Sprintf("%s %s[2] = {%s, %s};", r.tag(), name, init, second)
		l.add(s)
		for i := range 2 {
			g.recs = append(g.recs, recordVar{fmt.Sprintf("%s[%d]", name, i), r})
		}
		index := g.IntN(2)
		g.members(fmt.Sprintf("%s[%d]", name, index), r, true, false)
		if g.kern != nil {
			g.members(name+"[l & 1]", r, true, false)
		}
	} else {
		s.form = fmt.Sprintf("%s %s = %s;", r.tag(), name, init)
		l.add(s)
		g.recs = append(g.recs, recordVar{name, r})
		g.members(name, r, true, false)
		if g.chance(3) {
			p := g.fresh("p")
			l.add(&stmt{form: fmt.Sprintf("%s *%s = &%s;", r.tag(), p, name)})
			g.members(p+"->", r, true, false)
		}
	}
}

// copyRecord copies records, by assignment or through a function.
func (g *gen) copyRecord(l *block) {
	for range 3 {
		if len(g.recs) == 0 {
			break
		}
		to, from := pick(g, g.recs), pick(g, g.recs)
		if to.rec != from.rec || to.name == "vr" {
			continue
		}
		for _, h := range g.helpers {
			if h.rec == to.rec && len(h.prefix) == 0 && g.chance(2) {
				s := &stmt{}
				list := []string{from.name}
				for i, p := range h.params {
					list = append(list, fmt.Sprint("$", i))
					s.args = append(s.args, g.expr(p, 2))
				}
				s.form = fmt.Sprintf("%s = %s(%s);", to.name, h.name, strings.Join(list, ", "))
				l.add(s)
				return
			}
		}
		if to.name != from.name {
			l.add(&stmt{form: fmt.Sprintf("%s = %s;", to.name, from.name)})
			return
		}
	}
	g.assign(l)
}

// assign makes an assignment, plain or with an operator.
func (g *gen) assign(l *block) {
	v := g.writable(func(v *variable) bool { return v.n == 0 })
	if v == nil {
		return
	}
	unsigned := !v.t.k.signed() && !v.t.k.float()
	small := v.t.k.size() < 4 && v.t.n == 1
	form, t := "%s = $0;", v.t
	switch n := g.IntN(8); {
	case n < 3 || v.alike && n < 6:
	case n == 3 && (unsigned && !small || v.t.k.float()):
		form = "%s " + pick(g, []string{"+", "-", "*"}) + "= $0;"
	case n == 4 && !v.t.k.float():
		form = "%s " + pick(g, []string{"&", "|", "^", "<<", ">>"}) + "= $0;"
	case n == 5 && small && v.t.k != kUShort:
		form, t = "%s "+pick(g, []string{"+", "-", "*"})+"= $0;", typ{pick(g, []kind{kChar, kUChar, kShort}), 1}
	case n == 6 && (unsigned || small):
		form = pick(g, []string{"%s++;", "%s--;", "++%s;", "--%s;"})
	case n == 7 && v.t.n > 1 && (unsigned || v.t.k.float()):
		form, t = "%s "+pick(g, []string{"+", "-", "*"})+"= $0;", t.scalar()
	case n == 7 && v.t.n == 1 && !v.alike: // two at once
		if w := g.writable(func(w *variable) bool {
			return w.n == 0 && w.t == v.t && !w.alike && apart(v.name, w.name)
		}); w != nil {
			form = "%s = (" + w.name + " = $0, $1);"
			l.add(&stmt{form: fmt.Sprintf(form, v.name), args: []*expr{g.expr(t, 2), g.expr(t, 2)}})
			return
		}
	}
	l.add(&stmt{form: fmt.Sprintf(form, v.name), args: []*expr{g.valueFor(v, t, 3)}})
}

// apart reports whether two names certainly designate different objects.
func apart(a, b string) bool {
	return !strings.ContainsAny(a, ".[>") && !strings.ContainsAny(b, ".[>") && a != b
}

func (g *gen) assignComponents(l *block) {
	v := g.writable(func(v *variable) bool { return v.n == 0 && v.t.n > 1 })
	if v == nil {
		g.assign(l)
		return
	}
	n := pick(g, []int{1, 1, 2, 3, 4, 8})
	for n > v.t.n {
		n = 1
	}
	form := "%s%s = $0;"
	if !v.t.k.signed() && (v.t.k.size() >= 4 || n > 1) && g.chance(3) {
		form = "%s%s += $0;"
	}
	l.add(&stmt{form: fmt.Sprintf(form, v.name, g.components(v.t.n, n, true)),
		args: []*expr{g.valueFor(v, typ{v.t.k, n}, 2)}})
}

func (g *gen) assignElement(l *block) {
	v := g.writable(func(v *variable) bool { return v.n > 0 })
	if v == nil {
		g.assign(l)
		return
	}
	if v.t.n == 1 && v.n >= 4 && g.chance(4) {
		l.add(&stmt{form: fmt.Sprintf("vstore4($0, 0, %s);", v.name), args: []*expr{g.valueFor(v, typ{v.t.k, 4}, 2)}})
		return
	}
	index, saved := (*expr)(nil), g.alike
	g.alike = g.alike || v.alike
	index = g.index()
	g.alike = saved
	form := fmt.Sprintf("%s[$0 & %du] = $1;", v.name, v.n-1)
	if !v.t.k.signed() && !v.t.k.float() && v.t.k.size() >= 4 && g.chance(2) {
		form = fmt.Sprintf("%s[$0 & %du] += $1;", v.name, v.n-1)
	}
	l.add(&stmt{form: form, args: []*expr{index, g.valueFor(v, v.t, 2)}})
}

// pointed makes calls of functions that write through pointers.
func (g *gen) pointed(l *block) {
	k := g.floatKind()
	if !g.hasKind(k) {
		k = kInt
	}
	v := g.writable(func(v *variable) bool { return v.n == 0 && v.t == typ{k, 1} && !v.alike && !v.dirty })
	if k.float() && v != nil && g.chance(2) {
		tmp := g.fresh("t")
		form := pick(g, []string{
			"{ %[1]s %[2]s; %[3]s = fract($0, &%[2]s) + %[2]s; }", "{ %[1]s %[2]s; %[3]s = modf($0, &%[2]s); %[3]s -= %[2]s; }",
			"{ int %[2]s; %[3]s = $0; %[3]s = frexp(isfinite(%[3]s) ? %[3]s : (%[1]s)1.5f, &%[2]s); %[3]s += %[2]s; }",
			"{ int %[2]s; %[3]s = remquo($0, $1, &%[2]s); }",
		})
		l.add(&stmt{form: fmt.Sprintf(form, k, tmp, v.name), args: []*expr{g.expr(v.t, 2), g.expr(v.t, 2)}})
		return
	}
	var fit []*helper
	for _, h := range g.helpers {
		if len(h.prefix) > 0 && h.prefix[0].space != "local" && h.rec == nil &&
			(h.prefix[0].space == "private" || g.kern != nil) {
			fit = append(fit, h)
		}
	}
	if len(fit) == 0 {
		g.assign(l)
		return
	}
	h := pick(g, fit)
	p := h.prefix[0]
	target := g.writable(func(v *variable) bool { return v.n == 0 && v.t == h.ret && !v.alike && !v.dirty })
	s := &stmt{}
	first := ""
	if p.space == "private" {
		a := g.writable(func(v *variable) bool { return v.n == 8 && v.t == typ{p.k, 1} && !v.alike })
		if a == nil {
			g.assign(l)
			return
		}
		first = a.name
	} else {
		first = g.kern.input(p.k) + " + ($9 & 31u)"
	}
	list := []string{first}
	for i, t := range h.params {
		list = append(list, fmt.Sprint("$", i))
		s.args = append(s.args, g.expr(t, 2))
	}
	if p.space != "private" {
		list[0] = strings.Replace(first, "$9", fmt.Sprint("$", len(s.args)), 1)
		s.args = append(s.args, g.index())
	}
	s.form = fmt.Sprintf("%s(%s);", h.name, strings.Join(list, ", "))
	if target != nil {
		s.form = target.name + " = " + s.form
	}
	l.add(s)
}
