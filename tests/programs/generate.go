package programs

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// variable is something that an expression can name: a variable, a member of one, an array.
type variable struct {
	name  string
	t     typ
	n     int  // elements of an array or of a pointer's target, a power of two; 0: no array
	rw    bool // it may be assigned
	alike bool // it has the same value for all items of a group
	dirty bool // its bits may be those of any NaN
}

// recordVar is a variable of a record's type.
type recordVar struct {
	name string
	rec  *record
}

// helper is a function or a macro of the program.
type helper struct {
	name   string
	ret    typ
	params []typ
	ids    bool      // it differs between the items
	pure   bool      // params are its only parameters
	prefix []pointer // the pointers before them
	rec    *record   // it takes and returns a value of this type
}

// pointer is a parameter that points to elements in some space.
type pointer struct {
	space string
	k     kind
}

// gen makes one program.
type gen struct {
	*rand.Rand
	p        *Program
	supports []*part
	parts    []*part
	kinds    []kind // the kinds that this program uses most
	records  []*record
	helpers  []*helper
	vars     []variable
	recs     []recordVar
	kern     *kernel // nil within a helper
	alike    bool    // generated expressions have to have the same value for all items of a group
	ids      bool    // ids may be used
	diverged bool    // not every item of a group reaches this place
	canBreak bool    // a break is possible
	canNext  bool    // there is a loop to continue
	names    int
}

// harder is the ratio of all programs to those that are Hard.
const harder = 6

// kernelsPerProgram is the number of kernels per program, which share the time for starting a
// compiler.
const kernelsPerProgram = 4

// Generate makes the program of a seed.
func Generate(seed uint64) *Program {
	g := &gen{Rand: rand.New(rand.NewPCG(seed, 12)), p: &Program{Seed: seed, Hard: seed%harder == 0}}
	g.p.Double = g.chance(3)
	g.p.LongAtomic = g.chance(3)
	g.kinds = []kind{kInt, kUInt}
	for range 2 {
		g.kinds = append(g.kinds, pick(g, integers))
	}
	if !g.chance(4) {
		g.kinds = append(g.kinds, kFloat)
	}
	if g.p.Double {
		g.kinds = append(g.kinds, kDouble)
	}
	g.support("avoided", avoided)
	g.macros()
	g.tables()
	for range g.IntN(4) {
		g.declareRecord()
	}
	for range 1 + g.IntN(4) {
		g.function()
	}
	for i := range kernelsPerProgram {
		g.makeKernel(i)
	}
	g.p.Half = g.chance(8)
	g.constants()
	if g.p.Half {
		g.supports = append([]*part{{name: "half", head: "#pragma OPENCL EXTENSION cl_khr_fp16 : enable"}}, g.supports...)
	}
	if g.p.Double {
		g.supports = append([]*part{{name: "double", head: "#pragma OPENCL EXTENSION cl_khr_fp64 : enable"}}, g.supports...)
	}
	g.p.parts = append(g.supports, g.parts...)
	return g.p
}

func (g *gen) hasKind(k kind) bool {
	for _, have := range g.kinds {
		if have == k {
			return true
		}
	}
	return false
}

func (g *gen) floatKind() kind {
	if g.p.Double && g.chance(2) {
		return kDouble
	}
	return kFloat
}

func (g *gen) fresh(prefix string) string {
	g.names++
	return fmt.Sprint(prefix, g.names)
}

// anyOf returns a type of the program, in most cases a scalar.
func (g *gen) anyOf() typ {
	if g.chance(2) {
		return typ{pick(g, g.kinds), pick(g, widths)}
	}
	return typ{pick(g, g.kinds), 1}
}

// declare puts a part of text into the program.
func (g *gen) declare(name, format string, args ...any) *part {
	p := &part{name: name, head: fmt.Sprintf(format, args...)}
	g.parts = append(g.parts, p)
	return p
}

// macros makes constants and functions of the preprocessor, enumerations and names of types.
func (g *gen) macros() {
	for range g.IntN(3) {
		name := g.fresh("M")
		g.declare(name, "#define %s %s", name, g.constant(kUInt))
		g.vars = append(g.vars, variable{name: name, t: typ{kUInt, 1}, alike: true})
	}
	for range g.IntN(3) {
		name := g.fresh("F")
		h := &helper{name: name, ret: typ{pick(g, g.kinds), 1}, pure: true}
		saved := g.vars
		var params []string
		for i := range 1 + g.IntN(3) {
			t := typ{pick(g, g.kinds), 1}
			h.params = append(h.params, t)
			p := string("abc"[i])
			params = append(params, p)
			g.vars = append(g.vars[:len(g.vars):len(g.vars)], variable{name: "(" + t.String() + ")(" + p + ")", t: t,
				alike: true})
		}
		body := g.expr(h.ret, 2)
		g.vars = saved
		g.declare(name, "#define %s(%s) ((%s)%s)", name, strings.Join(params, ", "), h.ret,
			strings.ReplaceAll(body.String(), " + ", " \\\n + "))
		g.helpers = append(g.helpers, h)
	}
	if g.chance(2) {
		name, a := g.fresh("E"), g.IntN(100)
		g.declare(name, "enum %[1]s { %[1]s_a = %[2]d, %[1]s_b, %[1]s_c = -%[2]d, %[1]s_d = %[1]s_a * 2 + (%[1]s_b << 3) };",
			name, a)
		for _, m := range "abcd" {
			g.vars = append(g.vars, variable{name: fmt.Sprintf("(int)%s_%c", name, m), t: typ{kInt, 1}, alike: true})
		}
	}
}

// tables makes arrays of constants at the top of the program.
func (g *gen) tables() {
	for range g.IntN(3) {
		t := g.anyOf()
		name, n := g.fresh("table"), pick(g, []int{4, 8})
		list := make([]string, n)
		for i := range list {
			// In oclgrind (21.10) NAN is not a constant expression.
			list[i] = strings.ReplaceAll(g.literal(t).form, "NAN", "1.5f")
		}
		if g.chance(4) { // the rest is zeros
			list = list[:1+g.IntN(n)]
		}
		g.declare(name, "%s %s %s[%d] = {%s};", pick(g, []string{"constant", "__constant"}), t, name, n,
			strings.Join(list, ", "))
		g.vars = append(g.vars, variable{name: name, t: t, n: n, alike: true})
	}
}

// declareRecord makes a struct or a union. The first member of a union is its
// largest, so that initializing it initializes all of its bytes.
func (g *gen) declareRecord() {
	r := &record{name: g.fresh("R"), union: g.chance(3)}
	if r.union {
		first := pick(g, []typ{{kULong, 1}, {kUInt, 2}, {kUInt, 4}, {kUShort, 8}, {kUInt, 1}})
		r.fields = append(r.fields, field{name: "u", t: first})
		for i := range 1 + g.IntN(3) {
			for {
				t := typ{pick(g, g.kinds), pick(g, []int{1, 2, 4, 8})}
				f := field{name: fmt.Sprint("m", i), t: t}
				if g.chance(3) && first.size()/t.size() > 1 {
					f.n = first.size() / t.size()
				}
				if max(f.n, 1)*t.size() <= first.size() {
					r.fields = append(r.fields, f)
					break
				}
			}
		}
	} else {
		for i := range 2 + g.IntN(4) {
			f := field{name: fmt.Sprint("m", i), t: g.anyOf()}
			if len(g.records) > 0 && g.chance(4) {
				f.rec = pick(g, g.records)
			}
			if g.chance(4) {
				f.n = pick(g, []int{2, 4})
			}
			r.fields = append(r.fields, f)
		}
	}
	var b strings.Builder
	for _, f := range r.fields {
		t, n := f.t.String(), ""
		if f.rec != nil {
			t = f.rec.tag()
		}
		if f.n > 0 {
			n = fmt.Sprintf("[%d]", f.n)
		}
		fmt.Fprintf(&b, "  %s %s%s;\n", t, f.name, n)
	}
	g.records = append(g.records, r)
	g.declare(r.name, "%s {\n%s};", r.tag(), b.String())
}

func (r *record) tag() string {
	if r.union {
		return "union " + r.name
	}
	return "struct " + r.name
}

// function makes a helper: of values, with a pointer, or of a record.
func (g *gen) function() {
	h := &helper{name: g.fresh("f"), ret: g.anyOf(), pure: true, ids: g.chance(3)}
	vars, recs := g.vars, g.recs
	g.vars, g.recs = g.vars[:len(g.vars):len(g.vars)], nil
	var params []string
	if g.chance(2) {
		p := pointer{pick(g, []string{"private", "global const", "local"}), pick(g, g.kinds)}
		h.pure, h.prefix = false, []pointer{p}
		params = append(params, fmt.Sprintf("%s %s *p", p.space, p.k))
		g.vars = append(g.vars, variable{name: "p", t: typ{p.k, 1}, n: 8, rw: p.space == "private"})
	}
	if len(g.records) > 0 && g.chance(3) {
		h.pure, h.rec = false, pick(g, g.records)
		params = append(params, h.rec.tag()+" r")
		g.recs = append(g.recs, recordVar{"r", h.rec})
		g.members("r", h.rec, true, false)
	}
	for i := range 1 + g.IntN(3) {
		t := g.anyOf()
		name := string("abc"[i])
		h.params = append(h.params, t)
		params = append(params, t.String()+" "+name)
		g.vars = append(g.vars, variable{name: name, t: t, rw: true})
	}
	g.ids, g.diverged = h.ids, true
	body := &block{}
	for range 1 + g.IntN(4) {
		g.statement(body, 1)
	}
	ret := h.ret.String()
	if h.rec != nil {
		ret = h.rec.tag()
		body.add(&stmt{form: "return r;", fixed: true})
	} else {
		body.add(&stmt{form: "return $0;", args: []*expr{g.expr(h.ret, 2)}, fixed: true})
	}
	p := g.declare(h.name, "%s%s %s(%s)", pick(g, []string{"", "static ", "inline static "}), ret, h.name,
		strings.Join(params, ", "))
	p.body = body
	g.vars, g.recs = vars, recs
	g.helpers = append(g.helpers, h)
}

func (l *block) add(s *stmt) { l.list = append(l.list, s) }

// members makes the members of a record variables.
func (g *gen) members(path string, r *record, rw, alike bool) {
	for _, f := range r.fields {
		name := path + "." + f.name
		if i := len(path) - 2; i > 0 && path[i:] == "->" {
			name = path + f.name
		}
		switch {
		case f.rec != nil && f.n == 0:
			g.members(name, f.rec, rw, alike)
		case f.rec != nil:
			for i := range f.n {
				g.members(fmt.Sprintf("%s[%d]", name, i), f.rec, rw, alike)
			}
		default:
			// A float in a union is only read, because its bits are visible through the other
			// members.
			g.vars = append(g.vars, variable{name: name, t: f.t, n: f.n, rw: rw && !(r.union && f.t.k.float()), alike: alike,
				dirty: f.t.k.float()})
		}
	}
}
