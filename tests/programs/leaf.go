package programs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// leaf makes an expression of a variable, a constant, or an element of memory.
func (g *gen) leaf(t typ) *expr {
	for range 4 {
		var e *expr
		switch g.IntN(9) {
		case 0, 1, 2:
			e = g.variable(t)
		case 3:
			e = g.swizzleOf(t)
		case 4:
			e = g.element(t)
		case 5:
			e = g.load(t)
		case 6:
			e = g.id(t)
		case 7:
			return g.literal(t)
		default:
			e = g.variable(t)
		}
		if e != nil {
			return e
		}
	}
	return g.literal(t)
}

// find returns one of the variables that fit, or nil.
func (g *gen) find(fits func(v *variable) bool) *variable {
	var found *variable
	n := 0
	for i := range g.vars {
		v := &g.vars[i]
		if fits(v) && (!g.alike || v.alike) {
			if n++; g.chance(n) || i > len(g.vars)-4 && g.chance(2) {
				found = v
			}
		}
	}
	return found
}

// read returns an expression for a variable's value.
func (g *gen) read(v *variable) *expr {
	if v.dirty {
		return &expr{t: v.t, form: g.clean(v.t) + "(" + v.name + ")"}
	}
	return &expr{t: v.t, form: v.name}
}

func (g *gen) variable(t typ) *expr {
	if v := g.find(func(v *variable) bool { return v.n == 0 && v.t == t }); v != nil {
		return g.read(v)
	}
	return nil
}

// swizzleOf makes a swizzle of a variable.
func (g *gen) swizzleOf(t typ) *expr {
	v := g.find(func(v *variable) bool { return v.n == 0 && v.t.k == t.k && v.t.n > 1 && !v.dirty })
	if v == nil {
		return nil
	}
	return &expr{t: t, form: v.name + g.components(v.t.n, t.n, false)}
}

// components writes a swizzle that takes n of the components of a vector; as an
// lvalue each at most once.
func (g *gen) components(of, n int, lvalue bool) string {
	if of != 3 && of == 2*n && g.chance(2) {
		return pick(g, []string{".lo", ".hi", ".even", ".odd"})
	}
	order := g.Perm(of)
	if !lvalue {
		for i := range order {
			order[i] = g.IntN(of)
		}
		for len(order) < n {
			order = append(order, g.IntN(of))
		}
	}
	order = order[:n]
	var b strings.Builder
	names := "xyzw"
	if of > 4 || g.chance(3) {
		names = pick(g, []string{"0123456789abcdef", "0123456789ABCDEF"})
		b.WriteString(pick(g, []string{".s", ".S"}))
	} else {
		b.WriteString(".")
	}
	for _, i := range order {
		b.WriteByte(names[i])
	}
	return b.String()
}

// swizzle makes a swizzle of any vector expression.
func (g *gen) swizzle(t typ, depth int) *expr {
	from := typ{t.k, pick(g, widths)}
	return &expr{t, "($0)" + g.components(from.n, t.n, false), []*expr{g.expr(from, depth)}}
}

// element makes an expression for an element of an array, or of a pointer's target.
func (g *gen) element(t typ) *expr {
	v := g.find(func(v *variable) bool { return v.n > 0 && v.t.k == t.k && (v.t.n == t.n || v.t.n == 1 && v.n >= t.n) })
	if v == nil {
		return nil
	}
	if v.t.n == t.n {
		form := fmt.Sprintf("%s[$0 & %du]", v.name, v.n-1)
		if g.chance(4) {
			form = fmt.Sprintf("*(%s + ($0 & %du))", v.name, v.n-1)
		}
		return &expr{t, form, []*expr{g.index()}}
	}
	if t.n == 3 || v.n < 2*t.n {
		return &expr{t: t, form: fmt.Sprintf("vload%d(0, %s)", t.n, v.name)}
	}
	return &expr{t, fmt.Sprintf("vload%d($0 & %du, %s)", t.n, v.n/t.n-1, v.name), []*expr{g.index()}}
}

// index makes an unsigned expression, which the caller masks.
func (g *gen) index() *expr {
	if g.chance(4) {
		return g.expr(typ{kUInt, 1}, 1)
	}
	return g.leaf(typ{kUInt, 1})
}

// inputs is the number of elements of an input buffer.
const inputs = 64

// load makes an expression that reads an input buffer, and adds the buffer to the kernel's
// parameters.
func (g *gen) load(t typ) *expr {
	if g.kern == nil || !g.hasKind(t.k) {
		return nil
	}
	name := g.kern.input(t.k)
	switch {
	case t.n == 1:
		return &expr{t, fmt.Sprintf("%s[$0 & %du]", name, inputs-1), []*expr{g.index()}}
	case t.n == 3 || g.chance(2):
		return &expr{t, fmt.Sprintf("vload%d($0 & %du, %s)", t.n, inputs/4/t.n, name), []*expr{g.index()}}
	}
	return &expr{t, fmt.Sprintf("((global const %s *)%s)[$0 & %du]", t, name, inputs/t.n-1), []*expr{g.index()}}
}

// id makes an expression for an id or size of the item or its group.
func (g *gen) id(t typ) *expr {
	if t.n > 1 || t.k.float() || !g.ids {
		return nil
	}
	d := g.IntN(3)
	list := []string{fmt.Sprintf("get_global_size(%d)", d)}
	if !g.alike {
		list = []string{fmt.Sprintf("get_global_id(%d)", d), "get_global_id(0)"}
	}
	if g.kern != nil && g.kern.groups {
		if g.alike {
			list = append(list, fmt.Sprintf("get_group_id(%d)", d), fmt.Sprintf("get_local_size(%d)", d),
				fmt.Sprintf("get_num_groups(%d)", d))
		} else {
			list = append(list, fmt.Sprintf("get_local_id(%d)", d), fmt.Sprintf("get_group_id(%d)", d), "l")
		}
	}
	form := pick(g, list) // a size_t, except for l
	if t.k != kULong || form == "l" {
		form = "(" + t.String() + ")" + form
	}
	return &expr{t: t, form: form}
}

// literal makes a constant of exactly type t.
func (g *gen) literal(t typ) *expr {
	if t.n > 1 {
		if g.chance(2) {
			return &expr{t: t, form: fmt.Sprintf("(%s)(%s)", t, g.constant(t.k))}
		}
		list := make([]string, t.n)
		for i := range list {
			list[i] = g.constant(t.k)
		}
		return &expr{t: t, form: fmt.Sprintf("(%s)(%s)", t, strings.Join(list, ", "))}
	}
	return &expr{t: t, form: g.constant(t.k)}
}

var floatNames = []string{"INFINITY", "(-INFINITY)", "NAN", "FLT_MAX", "FLT_MIN", "FLT_EPSILON", "M_PI_F", "MAXFLOAT",
	"0x1.8p-3f", "1e-40f", "(-0.0f)", "0.0f", "3e38f", "16777217.0f"}

// constant writes a constant of a kind.
func (g *gen) constant(k kind) string {
	switch {
	case k.float():
		if g.chance(8) {
			if k == kFloat {
				return pick(g, floatNames)
			}
			return pick(g, []string{"(double)INFINITY", "DBL_MAX", "DBL_MIN", "M_PI", "0x1.8p-3", "1e-310", "(-0.0)", "0.0",
				"1e300"})
		}
		f := float64(g.IntN(4000)-2000) / pick(g, []float64{1, 2, 3, 8, 1000})
		if k == kFloat {
			return "(" + decimal(f, 32) + "f)"
		}
		return "(" + decimal(f, 64) + ")"
	case g.chance(8):
		names := map[kind]string{kChar: "CHAR", kUChar: "UCHAR", kShort: "SHRT", kUShort: "USHRT", kInt: "INT", kUInt: "UINT",
			kLong: "LONG", kULong: "ULONG"}
		limit := "_MAX"
		if k.signed() && g.chance(2) {
			limit = "_MIN"
		}
		return "(" + k.String() + ")" + names[k] + limit
	}
	bits := 8*k.size() - 1
	v := g.Uint64() >> (64 - 1 - g.IntN(bits)) // never negative
	text := strconv.FormatUint(v, 10)
	switch g.IntN(6) {
	case 0:
		text = "0x" + strconv.FormatUint(v, 16)
	case 1:
		text = "0" + strconv.FormatUint(v, 8)
	}
	if k == kInt && g.chance(10) {
		text = pick(g, []string{"'a'", "'\\n'", "'\\x7f'", "'\\0'"})
	} else if k >= kInt {
		text += [...]string{"", "u", "L", "UL"}[k-kInt]
	}
	if k.signed() && g.chance(3) {
		text = "-" + text
	}
	if k < kInt {
		return "(" + k.String() + ")" + text
	}
	return "(" + text + ")"
}

func decimal(f float64, bits int) string {
	s := strconv.FormatFloat(f, 'g', -1, bits)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// vectorLiteral puts a vector together from parts.
func (g *gen) vectorLiteral(t typ, depth int) *expr {
	if g.chance(4) {
		return &expr{t, fmt.Sprintf("(%s)($0)", t), []*expr{g.expr(t.scalar(), depth)}}
	}
	e := &expr{t: t}
	var holes []string
	for left := t.n; left > 0; {
		n := 1
		if w := pick(g, widths); w <= left && (g.chance(2) || left > 8) {
			n = w
		}
		if len(e.args) == 9 && n < left { // a form has ten holes
			n = 0
			for left > 0 {
				holes, left = append(holes, g.constant(t.k)), left-1
			}
		}
		if n > 0 {
			holes, left = append(holes, fmt.Sprint("$", len(e.args))), left-n
			e.args = append(e.args, g.expr(typ{t.k, n}, depth-1))
		}
	}
	e.form = fmt.Sprintf("(%s)(%s)", t, strings.Join(holes, ", "))
	return e
}

var modes = []string{"", "_rte", "_rtz", "_rtp", "_rtn"}

// convert makes a conversion of a value of another kind.
func (g *gen) convert(t typ, depth int) *expr {
	from := typ{pick(g, g.kinds), t.n}
	if g.chance(3) {
		from.k = pick(g, integers)
	}
	arg := []*expr{g.expr(from, depth)}
	mode := pick(g, modes)
	switch {
	case t.k.float() && t.n == 1 && g.chance(3):
		return &expr{t, "(" + t.String() + ")$0", arg}
	case t.k.float():
		return &expr{t, "convert_" + t.String() + mode + "($0)", arg}
	case from.k.float() && g.chance(2):
		lo, hi := "-120", "120"
		if !t.k.signed() {
			lo = "0"
		}
		form := fmt.Sprintf("(CLAMP1(%s, %s($0), (%s)%s, (%s)%s))", from, g.clean(from), from.k, lo, from.k, hi)
		if t.n == 1 && g.chance(2) {
			return &expr{t, "(" + t.String() + ")" + form, arg}
		}
		return &expr{t, "convert_" + t.String() + mode + form, arg}
	case from.k.float() && !g.p.Hard:
		return &expr{t, "convert_" + t.String() + "_sat" + mode + "(" + g.clean(from) + "($0))", arg}
	case from.k.float() || g.chance(2):
		return &expr{t, "convert_" + t.String() + "_sat" + mode + "($0)", arg}
	case t.n == 1 && g.chance(2):
		return &expr{t, "(" + t.String() + ")$0", arg}
	}
	return &expr{t, "convert_" + t.String() + "($0)", arg}
}

// reinterpret makes an expression that reinterprets the bits of a value as another type.
func (g *gen) reinterpret(t typ, depth int) *expr {
	var fit []typ
	for _, k := range append(integers[:8:8], g.kinds...) {
		for _, n := range []int{1, 2, 3, 4, 8, 16} {
			from := typ{k, n}
			if from != t && (n == 3) == (t.n == 3) && from.size() == t.size() {
				fit = append(fit, from)
			}
		}
	}
	if len(fit) == 0 {
		return nil
	}
	from := pick(g, fit)
	form := "$0"
	if from.k.float() {
		form = g.clean(from) + "($0)"
	}
	form = "as_" + t.String() + "(" + form + ")"
	if t.k.float() {
		form = g.clean(t) + "(" + form + ")"
	}
	return &expr{t, form, []*expr{g.expr(from, depth)}}
}

// call makes a call of a function or a macro of the program.
func (g *gen) call(t typ, depth int) *expr {
	var fit []*helper
	for _, h := range g.helpers {
		if h.ret == t && h.pure && (!h.ids || g.ids && !g.alike) {
			fit = append(fit, h)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	h := pick(g, fit)
	e := &expr{t: t}
	var holes []string
	for i, p := range h.params {
		holes = append(holes, fmt.Sprint("$", i))
		e.args = append(e.args, g.expr(p, depth-1))
	}
	e.form = h.name + "(" + strings.Join(holes, ", ") + ")"
	return e
}

// anyType returns the name of a type, for sizeof.
func (g *gen) anyType() string {
	if len(g.records) > 0 && g.chance(2) {
		r := pick(g, g.records)
		if r.union {
			return "union " + r.name
		}
		return "struct " + r.name
	}
	t := typ{pick(g, g.kinds), pick(g, []int{1, 2, 3, 4, 8, 16})}
	if g.chance(3) {
		return fmt.Sprintf("%s[%d]", t, 1+g.IntN(9))
	}
	return t.String()
}

// special are the bits of floats at the edges of the formats, of 32 and of 64 bits.
var (
	special32 = []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3e9, -3e9, 65504, 1e-38,
		1e-45, -1e-45, 3.4e38, -3.4e38,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 16777216, 8388607.5, 2147483648, 4294967296,
		9.223372e18, 127.5, -128.5, 255.5, 0.1}
	special64 = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 2.5, -2.5, 1e300, -1e300, 5e-324, 1e-310, math.Inf(1),
		math.Inf(-1), math.NaN(),
		9007199254740993, 4503599627370495.5, 9.223372036854775e18, 1.8446744073709552e19, 2147483647.5, -2147483648.5, 1e-45,
		3.5e38, 0.1}
)
