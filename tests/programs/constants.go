package programs

import (
	"fmt"
	"strings"
)

// Constants that a front end has to compute: initializers of program scope, values of enumerations, case labels and
// sizes of arrays.

// computed selects how the targets with the definition COMPUTED get the constants: as variables of the kernel that
// reads them, so that their compilers compute what Concord's front end folds elsewhere. OpenCL compilers do not take
// vectors and as_T in the initializers of program scope.
const computed = `#ifdef COMPUTED
#define GLOBAL(...)
#define OWN(...) const __VA_ARGS__
#else
#define GLOBAL(...) constant __VA_ARGS__
#define OWN(...)
#endif`

// borders are constants at the limits of the types, without a sign of their own.
var (
	integerBorders = []string{"CHAR_MIN", "CHAR_MAX", "UCHAR_MAX", "SHRT_MIN", "SHRT_MAX", "USHRT_MAX", "INT_MIN",
		"INT_MAX", "UINT_MAX",
		"LONG_MIN", "LONG_MAX", "ULONG_MAX",
		"(1UL << 63)", "((1UL << 53) + 1)", "((1L << 25) - 1)", "0xffffff7fffffffffUL",
		"(1 << 24 | 1)", "9007199791611905L", "2049", "65520", "0", "1", "-1", "5", "31", "32", "63", "64"}
	floatBorders = []string{"INFINITY", "(-INFINITY)", "FLT_MAX", "(-FLT_MAX)", "FLT_MIN", "1e-45f", "(-1e-40f)", "0.0f",
		"(-0.0f)", "1.0f",
		"16777216.0f", "0x1.000002p0f", "0x1p63f", "0x1p64f", "0.1f", "2147483648.0f", "1e-8f", "65519.9f"}
	doubleBorders = []string{"DBL_MAX", "(-DBL_MAX)", "DBL_MIN", "5e-324", "(-1e-310)", "0.0", "(-0.0)",
		"0x1.0000010000001p0", "0x1.ffffffp127", "0x1.ffep15", "0x1.0040000000001p0",
		"9007199254740993.0", "0.1", "1e-45"}
	halfBorders = []string{"65504.0h", "0x1p-24h", "(-0x1p-25h)", "0.1h", "1.0h", "(-0.0h)", "2049.0h", "6e-5h"}
)

// constants makes a kernel that reads constants of every type. It comes after all others: they stay as they are.
func (g *gen) constants() {
	k := &kernel{g: g, name: "constants"}
	g.kern = k
	g.support("computed", computed)
	body := &block{}
	body.add(&stmt{form: "const size_t o = get_global_id(0) + get_global_size(0) * (get_global_id(1) + " +
		"get_global_size(1) * get_global_id(2));\n" +
		"const uint l = (uint)o;", fixed: true})
	kinds := append(integers[:len(integers):len(integers)], kFloat)
	if g.p.Double {
		kinds = append(kinds, kDouble)
	}
	if g.p.Half {
		kinds = append(kinds, kHalf)
	}
	f := &folded{gen: g, kinds: kinds, rich: true}
	for _, of := range kinds {
		t := typ{of, 1}
		f.observe(body, t, f.global(body, t, "", f.value(t, 3)))
		t.n = pick(g, widths)
		f.observe(body, t, f.global(body, t, "", f.value(t, 2)))
	}
	f.aggregates(body)
	f.rich = false // in what follows every front end takes every expression
	for range 3 {
		f.plain(body)
	}
	f.kinds = integers // of floating numbers clang makes no integer constant expressions
	f.whole(body)
	k.finish(body)
	g.kern = nil
}

// folded makes constant expressions. Their behaviour is defined: no overflow of signed integers, no conversion of a
// floating number to an integer that does not hold it, no division by zero.
type folded struct {
	*gen
	kinds []kind
	rich  bool // vectors and as_T
}

// global declares a constant of program scope, or of the kernel, and returns its name. size stands behind the name.
func (f *folded) global(l *block, t any, size, value string) string {
	name := f.fresh("K")
	f.declare(name, "#define %[1]s_INIT %[2]s\nGLOBAL(%[3]v %[1]s%[4]s = %[1]s_INIT;)", name, value, t, size)
	l.add(&stmt{form: fmt.Sprintf("OWN(%v %s%s = %[2]s_INIT;)", t, name, size), fixed: true})
	return name
}

// observe stores a value; halves as their bits.
func (f *folded) observe(l *block, t typ, text string) {
	if t.k == kHalf {
		bits := typ{kUShort, t.n}
		if t.n == 1 {
			text = fmt.Sprintf("(%s == %[1]s ? as_ushort(%[1]s) : (ushort)1)", text)
		} else {
			text = fmt.Sprintf("(%s == %[1]s ? as_%s(%[1]s) : (%[2]s)(1))", text, bits)
		}
		t = bits
	}
	f.storeValue(l, t, &expr{t: t, form: text})
}

// aggregates makes arrays, structs and unions.
func (f *folded) aggregates(l *block) {
	for range 2 {
		t := typ{pick(f.gen, f.kinds), pick(f.gen, []int{1, 1, 2, 4})}
		name := f.global(l, t, "[4]", fmt.Sprintf("{%s, [2] = %s, %s}", f.value(t, 2), f.value(t, 2), f.value(t, 1)))
		f.observe(l, t, name+"[l & 3u]")
	}
	a, b, c := typ{pick(f.gen, f.kinds), 1}, typ{pick(f.gen, f.kinds), pick(f.gen, []int{2, 4})},
		typ{pick(f.gen, f.kinds), 1}
	rec := f.fresh("S")
	f.declare(rec, "struct %s {\n  %s a;\n  %s b;\n  %s c[2];\n};", rec, a, b, c)
	value := fmt.Sprintf("{.b = %s, .c = {%s, %s}, .a = %s}", f.value(b, 2), f.value(c, 2), f.value(c, 2), f.value(a, 2))
	name := f.global(l, "struct "+rec, "", value)
	f.observe(l, a, name+".a")
	f.observe(l, b, name+".b")
	f.observe(l, c, name+".c[l & 1u]")
	// The members of the union have the same size, so that initializing one of them determines all bits.
	either := f.fresh("U")
	members := []field{{name: "u", t: typ{kUInt, 1}}, {name: "s", t: typ{kShort, 2}}, {name: "b", t: typ{kUChar, 4}},
		{name: "i", t: typ{kInt, 1}}, {name: "f", t: typ{kFloat, 1}}}
	var text strings.Builder
	for _, m := range members {
		fmt.Fprintf(&text, "  %s %s;\n", m.t, m.name)
	}
	f.declare(either, "union %s {\n%s};", either, text.String())
	for _, m := range []field{pick(f.gen, members), pick(f.gen, members)} {
		value := f.value(m.t, 2)
		if m.t.k == kFloat {
			value = f.ordered(value, "1.5f")
		}
		f.observe(l, members[0].t, f.global(l, "union "+either, "", fmt.Sprintf("{.%s = %s}", m.name, value))+".u")
	}
	quiet := fmt.Sprintf("as_float(%#xu)", pick(f.gen, []uint32{0x7fc00000, 0xffc00000})|f.Uint32()>>10)
	f.observe(l, members[0].t, "as_uint("+f.global(l, "float", "", quiet)+")")
}

// ordered replaces a NaN, whose bits differ between implementations.
func (f *folded) ordered(value, other string) string {
	return fmt.Sprintf("(%s == %[1]s ? %[1]s : %s)", value, other)
}

// plain makes a constant of program scope that every front end folds, and one case of a switch that has its value.
func (f *folded) plain(l *block) {
	t := typ{pick(f.gen, f.kinds), 1}
	if t.k == kHalf {
		t.k = kFloat
	}
	name := f.fresh("K")
	value := f.value(t, 3)
	f.declare(name, "constant %s %s = %s;", t, name, value)
	f.observe(l, t, name)
	if t.k >= kInt && !t.k.float() {
		at := f.kern.output(kInt, 1, 0)
		l.add(&stmt{form: fmt.Sprintf("switch (%s) { case %s: *%s = 1; break; default: *%[3]s = 2; }", name, value, at)})
	}
}

// whole makes an enumeration, labels of cases and sizes of arrays.
func (f *folded) whole(l *block) {
	of := pick(f.gen, integers[4:])
	name := f.fresh("N")
	f.declare(name, "enum { %[1]s_a = %[2]s, %[1]s_b = %[3]s, %[1]s_c };", name, f.value(typ{of, 1}, 3),
		f.value(typ{kUChar, 1}, 2))
	for _, m := range "abc" {
		f.observe(l, typ{kULong, 1}, fmt.Sprintf("(ulong)%s_%c", name, m))
	}
	f.observe(l, typ{kInt, 1}, fmt.Sprintf("(int)sizeof(%s_a)", name))
	array := f.fresh("A")
	l.add(&stmt{form: fmt.Sprintf("int %s[((%s) & 15) + 1];", array, f.value(typ{pick(f.gen, integers), 1}, 3)),
		fixed: true})
	f.observe(l, typ{kInt, 1}, "(int)sizeof("+array+")")
	at := f.kern.output(kInt, 1, 0)
	form := fmt.Sprintf("*%s = 7;\nswitch (SWITCH1(l & 63u)) {\n", at)
	for i := range 4 { // no label occurs twice
		form += fmt.Sprintf("case (%s) & 7 | %d: *%s = %[2]d; break;\n", f.value(typ{pick(f.gen, integers), 1}, 3), 8*i, at)
	}
	l.add(&stmt{form: form + "}"})
}

// value makes a constant expression of exactly type t.
func (f *folded) value(t typ, depth int) string {
	switch {
	case t.n > 1:
		return f.vector(t, depth)
	case depth <= 0 || f.chance(6):
		return f.border(t.k)
	case f.rich && f.chance(4):
		return f.lane(t, depth-1)
	case t.k.float():
		return f.floating(t, depth-1)
	}
	return f.integer(t, depth-1)
}

// border makes a literal, often one at a limit of some type.
func (f *folded) border(k kind) string {
	switch {
	case k == kFloat && f.rich && f.chance(8):
		return "NAN" // in oclgrind (21.10) NAN is not a constant expression
	case k == kFloat && f.chance(2):
		return pick(f.gen, floatBorders)
	case k == kDouble && f.chance(2):
		return pick(f.gen, doubleBorders)
	case k == kHalf:
		return pick(f.gen, halfBorders)
	case k.float() || f.chance(3):
		return strings.ReplaceAll(f.constant(k), "NAN", "1.5f")
	}
	return fmt.Sprintf("(%s)%s", k, pick(f.gen, integerBorders))
}

// any makes a scalar of any type.
func (f *folded) any(depth int) string { return f.value(typ{pick(f.gen, f.kinds), 1}, depth) }

// anyInteger makes an integer of any type.
func (f *folded) anyInteger(depth int) string { return f.value(typ{pick(f.gen, integers), 1}, depth) }

// condition makes a comparison or a logical operator, an int.
func (f *folded) condition(depth int) string {
	switch f.IntN(5) {
	case 0:
		return fmt.Sprintf("(%s %s %s)", f.any(depth), pick(f.gen, []string{"&&", "||"}), f.any(depth))
	case 1:
		return "(!" + f.any(depth) + ")"
	}
	return fmt.Sprintf("(%s %s %s)", f.any(depth), pick(f.gen, comparisons), f.any(depth))
}

func (f *folded) integer(t typ, depth int) string {
	u := typ{max(t.k.unsigned(), kUInt), 1}
	s := typ{max(t.k, kInt), 1}
	switch f.IntN(10) {
	case 0:
		return fmt.Sprintf("(%s)%s", t, f.anyInteger(depth))
	case 1:
		return fmt.Sprintf("(%s)%s", t, f.condition(depth))
	case 2:
		return fmt.Sprintf("(%s)(%s ? %s : %s)", t, f.anyInteger(depth), f.anyInteger(depth), f.anyInteger(depth))
	case 3:
		return fmt.Sprintf("(%s)(%s %s %s)", t, f.anyInteger(depth), pick(f.gen, []string{"&", "|", "^"}),
			f.anyInteger(depth))
	case 4:
		return fmt.Sprintf("(%s)(%s << (%s & 127))", t, f.value(u, depth), f.anyInteger(depth))
	case 5:
		return fmt.Sprintf("(%s)(%s >> (%s & 127))", t, f.anyInteger(depth), f.anyInteger(depth))
	case 6:
		return fmt.Sprintf("(%s)(%s %s ((%s & (%s)63) + (%[5]s)1))", t, f.value(s, depth), pick(f.gen, []string{"/", "%"}),
			f.value(s, depth), s)
	case 7:
		if k := pick(f.gen, f.kinds); k.float() { // both are in the range of every type
			v := f.value(typ{k, 1}, depth)
			return fmt.Sprintf("(%s)(%s >= 0 && %[2]s < 128 ? %[2]s : 3)", t, v)
		}
		return fmt.Sprintf("(%s)(%s%s)", t, pick(f.gen, []string{"-", "~", "+"}), f.value(u, depth))
	}
	return fmt.Sprintf("(%s)(%s %s %s)", t, f.value(u, depth), pick(f.gen, []string{"+", "-", "*"}), f.value(u, depth))
}

func (f *folded) floating(t typ, depth int) string {
	switch f.IntN(6) {
	case 0, 1:
		return fmt.Sprintf("(%s)%s", t, f.any(depth))
	case 2:
		return fmt.Sprintf("(%s)(%s ? %s : %s)", t, f.condition(depth), f.any(depth), f.any(depth))
	case 3:
		return fmt.Sprintf("(-%s)", f.value(t, depth))
	}
	return fmt.Sprintf("(%s %s %s)", f.value(t, depth), pick(f.gen, []string{"+", "-", "*", "/"}), f.value(t, depth))
}

// lane makes a scalar of a vector, or from the bits of another type.
func (f *folded) lane(t typ, depth int) string {
	if f.chance(2) {
		n := pick(f.gen, widths)
		return fmt.Sprintf("(%s).s%x", f.vector(typ{t.k, n}, depth), f.IntN(n))
	}
	from := typ{t.k.toSigned() | kind(f.IntN(2)), 1}
	if t.k.float() {
		return fmt.Sprintf("as_%s(%s)", t, f.value(from, depth))
	}
	for _, k := range f.kinds {
		if k.float() && k.size() == t.k.size() && f.chance(2) {
			return fmt.Sprintf("as_%s(%s)", t, f.ordered(f.value(typ{k, 1}, depth), fmt.Sprintf("(%s)2", k)))
		}
	}
	return fmt.Sprintf("as_%s(%s)", t, f.value(from, depth))
}

// vector makes a vector. Logical operators of vectors are left out: clang's own folding, which PoCL uses, returns 1
// instead of -1.
func (f *folded) vector(t typ, depth int) string {
	if depth <= 0 || f.chance(4) {
		if f.chance(4) {
			return fmt.Sprintf("((%s)(%s))", t, f.value(t.scalar(), depth-1))
		}
		list := make([]string, t.n)
		for i := range list {
			list[i] = f.value(t.scalar(), min(depth-1, 1))
		}
		return fmt.Sprintf("((%s)(%s))", t, strings.Join(list, ", "))
	}
	depth--
	two := func(of typ, ops ...string) string {
		return fmt.Sprintf("(%s %s %s)", f.vector(of, depth), pick(f.gen, ops), f.vector(of, depth))
	}
	switch f.IntN(7) {
	case 0:
		from := typ{t.k, pick(f.gen, widths)}
		return f.vector(from, depth) + f.components(from.n, t.n, false)
	case 1:
		return fmt.Sprintf("(%s ? %s : %s)", f.vector(t.toSigned(), depth), f.vector(t, depth), f.vector(t, depth))
	}
	switch {
	case t.k.float() && f.chance(4):
		return fmt.Sprintf("(-%s)", f.vector(t, depth))
	case t.k.float():
		return two(t, "+", "-", "*", "/")
	case t.k.signed() && f.chance(3):
		var of []typ
		for _, k := range f.kinds {
			if k.size() == t.k.size() && (k.toSigned() == t.k) {
				of = append(of, typ{k, t.n})
			}
		}
		from := pick(f.gen, of)
		if f.chance(4) {
			return fmt.Sprintf("(!%s(%s))", f.live(from), f.vector(from, depth))
		}
		return fmt.Sprintf("(%s(%s) %s %s)", f.live(from), f.vector(from, depth), pick(f.gen, comparisons),
			f.vector(from, depth))
	case f.chance(3):
		return two(t, "&", "|", "^", "<<", ">>")
	case f.chance(4):
		return fmt.Sprintf("as_%s(%s / (%s | (%s)1))", t, f.vector(t.unsigned(), depth), f.vector(t.unsigned(), depth),
			t.unsigned())
	}
	return fmt.Sprintf("as_%s%s", t, two(t.unsigned(), "+", "-", "*"))
}
