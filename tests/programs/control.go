package programs

import (
	"fmt"
	"strings"
)

func (g *gen) ifElse(l *block, depth int) {
	s := &stmt{form: "if ($0) {@0}", args: []*expr{g.expr(typ{pick(g, []kind{kInt, kInt, kUInt, kChar}), 1}, 3)}}
	s.blocks = append(s.blocks, g.within(depth, 1+g.IntN(3)))
	if g.chance(2) {
		s.form += " else {@1}"
		s.blocks = append(s.blocks, g.within(depth, 1+g.IntN(2)))
	}
	l.add(s)
}

// loop makes a loop that ends after a few rounds, whatever its body does.
func (g *gen) loop(l *block, depth int) {
	i := g.fresh("i")
	counter := variable{name: i, t: typ{kUInt, 1}}
	limit := g.expr(typ{kUInt, 1}, 2)
	canBreak, canNext := g.canBreak, g.canNext
	g.canBreak, g.canNext = true, true
	vars := len(g.vars)
	g.vars = append(g.vars, counter)
	form := pick(g, []string{
		"for (uint %[1]s = 0; %[1]s < ($0 & 3u); %[1]s++) {@0}", "for (uint %[1]s = 0; %[1]s < %[2]du; ++%[1]s) {@0}",
		"for (uint %[1]s = %[2]d; %[1]s-- > 0u;) {@0}", "for (uint %[1]s = 1u; %[1]s <= 16u; %[1]s <<= 1) {@0}",
		"{ uint %[1]s = $0 & 3u;\nwhile (%[1]s-- > 0u) {@0} }",
		"{ uint %[1]s = %[2]d;\nwhile (%[1]s != 0u && --%[1]s) {@0} }",
		"{ uint %[1]s = 0;\ndo {@0} while (++%[1]s < ($0 & 3u)); }", "for (uint %[1]s = ($0 & 3u), n%[1]s = 5u; %[1]s < " +
			"n%[1]s; %[1]s++, n%[1]s--) {@0}",
	})
	body := g.within(depth, 1+g.IntN(3))
	if g.chance(3) {
		at := g.IntN(len(body.list) + 1)
		leave := &stmt{form: "if ($0) " + pick(g, []string{"break;", "continue;"}), args: []*expr{g.expr(typ{kInt, 1}, 1)}}
		// Variables that it mentions may be declared after the place where it is inserted.
		if at < len(body.list) {
			leave.args[0] = g.outer(vars)
		}
		body.list = append(body.list[:at:at], append([]*stmt{leave}, body.list[at:]...)...)
	}
	g.vars = g.vars[:vars]
	g.canBreak, g.canNext = canBreak, canNext
	l.add(&stmt{form: fmt.Sprintf(form, i, 1+g.IntN(5)), args: []*expr{limit}, blocks: []*block{body}})
}

// outer makes a condition of the variables that are declared before a loop.
func (g *gen) outer(vars int) *expr {
	saved := g.vars
	g.vars = g.vars[:vars]
	e := g.expr(typ{kInt, 1}, 2)
	g.vars = saved
	return e
}

func (g *gen) switchCase(l *block, depth int) {
	k := pick(g, []kind{kInt, kUInt, kChar, kLong, kUShort})
	s := &stmt{args: []*expr{g.expr(typ{k, 1}, 2)}}
	var b strings.Builder
	mask := pick(g, []string{"($0 & 7)", "($0 & 3)", "$0", "($0 % 5)"})
	if k == kLong || k == kInt {
		mask = strings.Replace(mask, "% 5", "& 15", 1)
	}
	fmt.Fprintf(&b, "switch (SWITCH1(%s)) {\n", mask)
	canBreak := g.canBreak
	g.canBreak = true
	labels := g.Perm(8)
	for i := range 1 + g.IntN(4) {
		label := fmt.Sprint(labels[i])
		if i == 2 && k == kInt {
			label = pick(g, []string{"-1", "1 + 16 * 2", "'a'", "(3 << 4)"})
		}
		if i == 1 && g.chance(2) {
			label = "default"
			fmt.Fprintf(&b, "%s: {@%d}", label, i)
		} else {
			fmt.Fprintf(&b, "case %s: {@%d}", label, i)
		}
		s.blocks = append(s.blocks, g.within(depth, 1+g.IntN(2)))
		if !g.chance(3) {
			b.WriteString(" break;")
		}
		b.WriteString("\n")
	}
	g.canBreak = canBreak
	s.form = b.String() + "}"
	l.add(s)
}

// jump makes a break, continue, return or goto.
func (g *gen) jump(l *block, depth int) {
	when := []*expr{g.expr(typ{kInt, 1}, 2)}
	switch {
	case g.canNext && g.diverged && g.chance(4):
		l.add(&stmt{form: "if ($0) continue;", args: when})
	case g.canBreak && g.diverged && g.chance(4):
		l.add(&stmt{form: "if ($0) break;", args: when})
	case g.kern != nil && !g.kern.coop && g.chance(3):
		l.add(&stmt{form: "if ($0) return;", args: when})
	case g.chance(2):
		label := g.fresh("skip")
		l.add(&stmt{form: fmt.Sprintf("if ($0) goto %[1]s;@0%[1]s: ;", label), args: when,
			blocks: []*block{g.within(depth, 1+g.IntN(3))}})
	default:
		label := g.fresh("again")
		l.add(&stmt{form: fmt.Sprintf("{ uint n%[1]s = 0;\n%[1]s: ;@0if (n%[1]s++ < 3u && $0) goto %[1]s; }", label),
			args: when, blocks: []*block{g.within(depth, 1+g.IntN(3))}})
	}
}

// together makes statements that all items of a group execute together: barriers, inside of uniform
// control flow.
func (g *gen) together(l *block, depth int) {
	n := 5
	if depth > 0 {
		n = 9
	}
	switch g.IntN(n) {
	case 0, 1, 2:
		g.exchange(l)
	case 3:
		g.reduce(l)
	case 4:
		g.localAtomic(l)
	case 5, 6:
		s := &stmt{form: "if ($0) {@0}", args: []*expr{g.same(typ{kInt, 1}, 2)},
			blocks: []*block{g.block(depth-1, 1+g.IntN(3))}}
		if g.chance(2) {
			s.form += " else {@1}"
			s.blocks = append(s.blocks, g.block(depth-1, 1+g.IntN(2)))
		}
		l.add(s)
	default:
		i := g.fresh("r")
		limit := []*expr{g.same(typ{kUInt, 1}, 1)}
		form := pick(g, []string{
			"for (uint %[1]s = 0; %[1]s < ($0 & 3u); %[1]s++) {@0}", "for (int %[1]s = 0; %[1]s < 3; ++%[1]s) {@0}",
			"{ uint %[1]s = 0;\ndo {@0} while (++%[1]s < ($0 & 3u)); }",
			"{ uint %[1]s = ($0 & 3u);\nwhile (%[1]s-- > 0u) {@0} }",
		})
		t := typ{kUInt, 1}
		if strings.Contains(form, "int %[1]s = 0; %[1]s < 3") {
			t.k = kInt
		}
		vars := len(g.vars)
		g.vars = append(g.vars, variable{name: i, t: t, alike: true})
		body := g.block(depth-1, 1+g.IntN(3))
		if g.chance(3) {
			saved := g.vars
			body.add(&stmt{form: "if ($0) " + pick(g, []string{"break;", "continue;"}), args: []*expr{g.same(typ{kInt, 1}, 1)}})
			g.vars = saved
		}
		g.vars = g.vars[:vars]
		l.add(&stmt{form: fmt.Sprintf(form, i), args: limit, blocks: []*block{body}})
	}
}

const (
	fence       = "barrier(CLK_LOCAL_MEM_FENCE);"
	globalFence = "barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);"
)

// localArray returns local memory with elements of a kind: an argument of the launch, or a
// declaration in the text.
func (g *gen) localArray(k kind) (name, declaration string) {
	if g.chance(2) {
		for i, of := range g.kern.locals {
			if of == k {
				return fmt.Sprint("given", i), ""
			}
		}
		if len(g.kern.locals) < 2 {
			g.kern.locals = append(g.kern.locals, k)
			return fmt.Sprint("given", len(g.kern.locals)-1), ""
		}
	}
	name = g.fresh("L")
	return name, fmt.Sprintf("local %s %s[%d];\n", k, name, maxGroup)
}

// exchange makes items write values that others read after a barrier. The declaration of local
// memory is in a separate block; some compilers refuse it anywhere but at the top of a kernel.
func (g *gen) exchange(l *block) {
	v := g.writable(func(v *variable) bool { return v.n == 0 && v.t.n == 1 && !v.alike && !v.dirty })
	if v == nil {
		return
	}
	if g.chance(6) && g.kern.groups { // through global memory
		out := g.kern.output(v.t.k, 1, 0)
		other := strings.Replace(out, "o *", "(get_global_id(0) - get_local_id(0) + (get_local_size(0) - 1 - "+
			"get_local_id(0)) + get_global_size(0) * (get_global_id(1) + get_global_size(1) * get_global_id(2))) *", 1)
		l.add(&stmt{form: fmt.Sprintf("%[3]s *%[1]s = $0; %[3]s %[4]s = *%[2]s; %[3]s *%[1]s = %[4]s;", out, other,
			globalFence, v.name), args: []*expr{g.expr(v.t, 2)}})
		return
	}
	m, declaration := g.localArray(v.t.k)
	g.top(declaration)
	from := pick(g, []string{"%s[(l + %du) %% ls]", "%s[ls - 1u - l + 0u * %d]", "%s[(l * 5u + %du) %% ls]", "%s[0 * %d]"})
	read := fmt.Sprintf(from, m, g.IntN(40))
	s := &stmt{args: []*expr{g.expr(v.t, 3)}}
	if from == "%s[0 * %d]" && g.chance(2) {
		s.form = fmt.Sprintf("if (l == 0) %s[0] = $0;\n%s\n%s = %s;\n%s", m, fence, v.name, read, fence)
		l.add(s)
		return
	}
	for _, h := range g.helpers { // a function reads it
		if len(h.prefix) > 0 && h.prefix[0].space == "local" && h.prefix[0].k == v.t.k && h.rec == nil && h.ret == v.t {
			list := []string{m + " + (l & 31u)"}
			for i, t := range h.params {
				list = append(list, fmt.Sprint("$", i+1))
				s.args = append(s.args, g.expr(t, 1))
			}
			read = h.name + "(" + strings.Join(list, ", ") + ")"
			s.form = fmt.Sprintf("for (uint i = l; i < %du; i += ls) %s[i] = $0;\n%s\n%s = %s;\n%s", maxGroup, m, fence, v.name,
				read, fence)
			l.add(s)
			return
		}
	}
	s.form = fmt.Sprintf("%s[l] = $0;\n%s\n%s = %s;\n%s", m, fence, v.name, read, fence)
	l.add(s)
}

// top declares local memory at the top of the kernel.
func (g *gen) top(declaration string) {
	if declaration != "" {
		g.kern.tops = append(g.kern.tops, &stmt{form: strings.TrimSuffix(declaration, "\n")})
	}
}

// reduce makes a tree reduction, or a running total, over the items of a group.
func (g *gen) reduce(l *block) {
	k := pick(g, []kind{kUInt, kULong, kUShort, kInt})
	v := g.writable(func(v *variable) bool { return v.n == 0 && v.t == typ{k, 1} && !v.alike })
	if v == nil {
		return
	}
	m, declaration := g.localArray(k)
	g.top(declaration)
	w := g.fresh("w")
	step := pick(g, []string{
		fmt.Sprintf("%[1]s[l] ^= %[1]s[l + %[2]s]", m, w), fmt.Sprintf("%[1]s[l] = max(%[1]s[l], %[1]s[l + %[2]s])", m, w),
		fmt.Sprintf("%[1]s[l] = (%[3]s)((ulong)%[1]s[l] + (ulong)%[1]s[l + %[2]s])", m, w, k),
	})
	form := fmt.Sprintf("%[1]s[l] = $0;\n%[2]s\nfor (uint %[3]s = 32u; %[3]s > 0u; %[3]s >>= 1) {\n  if (l < %[3]s && l "+
		"+ %[3]s < ls) %[4]s;\n  %[2]s\n}\n%[5]s = %[1]s[0];\n%[2]s", m, fence, w, step, v.name)
	if g.chance(3) {
		form = fmt.Sprintf("%[1]s[l] = $0;\n%[2]s\nfor (uint %[3]s = 1u; %[3]s < ls; %[3]s *= 2u) {\n  %[5]s t%[3]s = l >= "+
			"%[3]s ? %[1]s[l - %[3]s] : (%[5]s)0;\n  %[2]s\n  %[1]s[l] ^= t%[3]s;\n  %[2]s\n}\n%[4]s = %[1]s[l];\n%[2]s", m,
			fence, w, v.name, k)
	}
	l.add(&stmt{form: form, args: []*expr{g.expr(typ{k, 1}, 2)}})
}

// localAtomic makes atomic sums in local memory.
func (g *gen) localAtomic(l *block) {
	k := pick(g, []kind{kUInt, kInt})
	v := g.writable(func(v *variable) bool { return v.n == 0 && v.t == typ{k, 1} && !v.alike })
	if v == nil {
		return
	}
	m, declaration := g.localArray(k)
	g.top(declaration)
	name := pick(g, []string{"atomic_add", "atomic_xor", "atomic_min", "atomic_max", "atomic_or", "atomic_and",
		"atomic_sub"})
	l.add(&stmt{form: fmt.Sprintf("if (l == 0) %[1]s[3] = $0;\n%[2]s\n%[3]s(%[1]s + 3, $1);\n%[2]s\n%[4]s = "+
		"%[1]s[3];\n%[2]s", m, fence, name, v.name),
		args: []*expr{g.expr(typ{k, 1}, 1), g.expr(typ{k, 1}, 2)}})
}

// atomic makes all items change a shared cell by the same atomic operation, whose result does not
// depend on the order.
func (g *gen) atomic(l *block) {
	k := g.kern
	if k == nil {
		return
	}
	t, cell := typ{kUInt, 1}, fmt.Sprintf("cells + %d", k.cells)
	name := "atomic_"
	if g.p.LongAtomic && g.chance(3) {
		t.k, name, cell = kULong, "atom_", fmt.Sprintf("wide + %d", k.wide)
		k.wide++
	} else {
		k.cells++
		if g.chance(3) {
			t.k, cell = kInt, "(global volatile int *)cells + "+fmt.Sprint(k.cells-1)
		}
	}
	args := []*expr{g.expr(t, 2)}
	switch g.IntN(8) {
	case 0:
		l.add(&stmt{form: fmt.Sprintf("%s(%s);", name+pick(g, []string{"inc", "dec"}), cell)})
	case 1:
		l.add(&stmt{form: fmt.Sprintf("%s(%s, %s);", name+"xchg", cell, g.constant(t.k))})
	case 2:
		old := g.fresh("old")
		l.add(&stmt{form: fmt.Sprintf("{ %[1]s %[2]s, new%[2]s;\ndo { %[2]s = *(%[3]s); new%[2]s = %[2]s ^ $0; } while "+
			"(%[4]s(%[3]s, %[2]s, new%[2]s) != %[2]s); }", t, old, cell, name+"cmpxchg"), args: args})
	default:
		l.add(&stmt{form: fmt.Sprintf("%s(%s, $0);", name+pick(g, []string{"add", "sub", "min", "max", "and", "or", "xor"}),
			cell), args: args})
	}
}

// store makes a store of a value to an output buffer.
func (g *gen) store(l *block) {
	if g.kern == nil {
		g.assign(l)
		return
	}
	t := g.anyOf()
	g.storeValue(l, t, g.expr(t, 3))
}

func (g *gen) storeValue(l *block, t typ, e *expr) {
	if t.n == 3 {
		l.add(&stmt{form: fmt.Sprintf("vstore3($0, 0, %s);", g.kern.output(t.k, 4, 0)), args: []*expr{e}})
		return
	}
	at := g.kern.output(t.k, t.n, 0)
	form := fmt.Sprintf("*%s = $0;", at)
	if t.n > 1 {
		form = fmt.Sprintf("vstore%d($0, 0, %s);", t.n, at)
		if g.chance(2) {
			form = fmt.Sprintf("*(global %s *)%s = $0;", t, at)
		}
	}
	l.add(&stmt{form: form, args: []*expr{e}})
}

// stores makes stores of the remaining variables to output buffers.
func (g *gen) stores(l *block) {
	for i := range g.vars {
		v := g.vars[i]
		if v.n == 0 && v.rw && v.t.k != kUInt || strings.HasPrefix(v.name, "x") && v.n == 0 {
			g.storeValue(l, v.t, g.read(&v))
		}
	}
}

// nearOps are the functions that are not exact, with the specification's limit in units in the last place.
var nearOps = []struct {
	form string
	ulps int
}{
	{"acos($0)", 4}, {"acosh($0)", 4}, {"acospi($0)", 5}, {"asin($0)", 4}, {"asinh($0)", 4}, {"asinpi($0)", 5},
	{"atan($0)", 5}, {"atan2($0, $1)", 6},
	{"atanh($0)", 5}, {"atanpi($0)", 5}, {"atan2pi($0, $1)", 6}, {"cbrt($0)", 2}, {"cos($0)", 4}, {"cosh($0)", 4},
	{"cospi($0)", 4}, {"erf($0)", 16},
	{"erfc($0)", 16}, {"exp($0)", 3}, {"exp2($0)", 3}, {"exp10($0)", 3}, {"expm1($0)", 3}, {"hypot($0, $1)", 4},
	{"log($0)", 3}, {"log2($0)", 3},
	{"log10($0)", 3}, {"log1p($0)", 2}, {"pow($0, $1)", 16}, {"powr($0, $1)", 16}, {"pown($0, $2)", 16},
	{"rootn($0, $2 | 1)", 16}, {"rsqrt($0)", 2},
	{"sin($0)", 4}, {"sinh($0)", 4}, {"sinpi($0)", 4}, {"tan($0)", 5}, {"tanh($0)", 5}, {"tanpi($0)", 6},
	{"tgamma($0)", 16},
}

// near stores the result of an inexact function, which is not used in any other way.
func (g *gen) near(l *block) {
	k := g.floatKind()
	if g.kern == nil || !g.hasKind(k) {
		g.store(l)
		return
	}
	f := pick(g, nearOps)
	t := typ{k, 1}
	l.add(&stmt{form: fmt.Sprintf("*%s = %s;", g.kern.output(k, 1, f.ulps), f.form),
		args: []*expr{g.expr(t, 1), g.expr(t, 1), g.expr(typ{kInt, 1}, 1)}})
}
