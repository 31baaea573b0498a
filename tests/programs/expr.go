package programs

import (
	"fmt"
	"strings"
)

// op is an operation: its form, and a letter for the type of each operand. The type is that of the
// result, t (g), its scalar (s), its signed or unsigned counterpart (i, u), something that the
// usual conversions take to t (o), any integer for a condition or a count (c), integers whose sums
// and products fit an int (h), int of t's width (q), halves of an integer for upsample (H, L). {T},
// {U}, {I} and {S} are names of types.
type op struct{ form, args string }

// The operators of unsigned integers of 32 and 64 bits.
var unsignedOps = []op{
	{"($0 + $1)", "go"}, {"($0 - $1)", "go"}, {"($0 * $1)", "og"}, {"($1 - $0)", "go"}, {"($0 * $1 + $2)", "ggo"},
	{"($0 + $1 * $2 - $3)", "gggg"}, {"(-$0)", "g"}, {"(+$0)", "g"},
	{"($0 / ($1 | ({T})1))", "gg"}, {"($0 % ($1 | ({T})1))", "gg"}, {"($0 + $1 << $2)", "ggc"},
	{"($0 >> $1 % 7u + $2)", "gcc"},
}

// The operators of signed integers of 32 and 64 bits. Their overflow is undefined, so that the
// operands of sums and products are narrow, or unsigned.
var signedOps = []op{
	{"({T})(({U})$0 + ({U})$1)", "gg"}, {"as_{T}(as_{U}($0) * as_{U}($1))", "gg"}, {"({T})(({U})$0 - $1)", "gu"},
	{"({T})($0 + $1)", "hh"}, {"({T})($0 * $1)", "hh"}, {"({T})($0 - $1)", "hh"}, {"({T})-$0", "h"},
	{"($0 / (($1 & ({T})63) + ({T})1))", "gg"}, {"($0 % (($1 & ({T})63) + ({T})1))", "gg"},
	{"($0 / -(($1 & ({T})63) + ({T})2))", "gg"}, {"($0 % -(($1 & ({T})63) + ({T})2))", "gg"},
}

// The operators of all integers of 32 and 64 bits.
var wideOps = []op{
	{"($0 & $1)", "go"}, {"($0 | $1)", "go"}, {"($0 ^ $1)", "og"}, {"(~$0)", "g"}, {"($0 << $1)", "gc"},
	{"($0 >> $1)", "gc"},
	{"($0 & $1 | $2 ^ $3)", "ggog"}, {"($0 ? $1 : $2)", "cgo"}, {"($0 < $1 ? $2 : $3)", "cc"}, {"($0, $1)", "cg"},
}

// The operators of integers of 8 and 16 bits: C computes in int.
var narrowOps = []op{
	{"({T})($0 + $1)", "hh"}, {"({T})($0 * $1)", "hh"}, {"({T})($0 - $1)", "gg"}, {"({T})-$0", "g"}, {"({T})~$0", "g"},
	{"({T})($0 & $1)", "go"}, {"({T})($0 | $1)", "gc"}, {"({T})($0 ^ $1)", "cg"}, {"({T})($0 << $1)", "gc"},
	{"({T})($0 >> $1)", "gc"},
	{"({T})($0 / (($1 & 63) + 1))", "gg"}, {"({T})($0 % -(($1 & 63) + 2))", "gg"}, {"({T})($0 ? $1 : $2)", "cgg"},
	{"({T})$0", "c"}, {"({T})$0", "c"},
}

// avoided are constructs that oclgrind (21.10) computes wrongly: functions of a vector and a scalar
// read components beyond the scalar; !, && and || of vectors return 1 for true; bitselect uses the
// values of floats and not their bits; and a switch over a value of few bits jumps to a wrong case.
const avoided = `#ifdef OCLGRIND
long keep(long x) { volatile long v = x; return v; }
#define SWITCH1(x) keep(x)
#define NOT1(T, a) (a == (T)0)
#define AND1(T, a, b) ((a != (T)0) & (b != (T)0))
#define OR1(T, a, b) ((a != (T)0) | (b != (T)0))
#define BITS1(T, I, a, b, c) as_##T(bitselect(as_##I(a), as_##I(b), as_##I(c)))
#define MIN1(T, a, b) min(a, (T)(b))
#define MAX1(T, a, b) max(a, (T)(b))
#define CLAMP1(T, a, b, c) clamp(a, (T)(b), (T)(c))
#else
#define SWITCH1(x) x
#define NOT1(T, a) (!a)
#define AND1(T, a, b) (a && b)
#define OR1(T, a, b) (a || b)
#define BITS1(T, I, a, b, c) bitselect(a, b, c)
#define MIN1(T, a, b) min(a, b)
#define MAX1(T, a, b) max(a, b)
#define CLAMP1(T, a, b, c) clamp(a, b, c)
#endif`

// The operators of vectors of integers, of unsigned ones and of signed ones.
var (
	vectorOps = []op{
		{"($0 & $1)", "gg"}, {"($0 | $1)", "gs"}, {"($0 ^ $1)", "sg"}, {"(~$0)", "g"}, {"($0 << $1)", "gg"},
		{"($0 >> $1)", "gg"},
		{"($0 << $1)", "gs"}, {"($0 >> $1)", "gs"}, {"($0 ? $1 : $2)", "igg"}, {"({T})($0)", "s"},
		{"MIN1({T}, $0, $1)", "gs"}, {"MAX1({T}, $0, $1)", "gs"},
		{"CLAMP1({T}, $0, min($1, $2), max($1, $2))", "gss"}, {"($0, $1)", "cg"},
	}
	unsignedVectorOps = []op{
		{"($0 + $1)", "gg"}, {"($0 - $1)", "gs"}, {"($0 * $1)", "gg"}, {"($0 * $1)", "sg"}, {"(-$0)", "g"},
		{"($0 / ($1 | ({T})1))", "gg"}, {"($0 % ($1 | ({T})(1)))", "gg"}, {"($0 * $1 + $2)", "ggg"},
	}
	signedVectorOps = []op{
		{"as_{T}(as_{U}($0) + as_{U}($1))", "gg"}, {"as_{T}(as_{U}($0) * $1)", "gu"}, {"as_{T}($0 - as_{U}($1))", "ug"},
		{"($0 / (($1 & ({T})63) + ({T})1))", "gg"}, {"($0 % -(($1 & ({T})63) + ({T})2))", "gg"},
		{"AND1({T}, LIVE_{T}($0), LIVE_{T}($1))", "gg"}, {"OR1({U}, LIVE_{U}($0), LIVE_{U}($1))", "uu"},
		{"NOT1({T}, LIVE_{T}($0))", "g"}, {"NOT1({U}, LIVE_{U}($0))", "u"},
	}
)

// The built-in functions of integers, scalars and vectors.
var (
	integerCalls = []op{
		{"min($0, $1)", "gg"}, {"max($0, $1)", "gg"}, {"clamp($0, min($1, $2), max($1, $2))", "ggg"},
		{"add_sat($0, $1)", "gg"}, {"sub_sat($0, $1)", "gg"}, {"hadd($0, $1)", "gg"}, {"rhadd($0, $1)", "gg"},
		{"mul_hi($0, $1)", "gg"},
		{"rotate($0, $1)", "gg"}, {"mad_sat($0, $1, $2)", "ggg"}, {"clz($0)", "g"}, {"popcount($0)", "g"},
		{"select($0, $1, $2)", "ggi"}, {"select($0, $1, $2)", "ggu"}, {"bitselect($0, $1, $2)", "ggg"},
	}
	// abs and abs_diff of signed numbers are left out: PoCL 3.1 computes them as signed numbers, so that
	// the size of INT_MIN is undefined there; here and by the specification it is 2147483648.
	unsignedCalls = []op{{"abs_diff($0, $1)", "uu"}, {"abs($0)", "u"}, {"mad_hi($0, $1, $2)", "ggg"}}
	halvesCalls   = []op{{"upsample($0, $1)", "HL"}}
	// The product of signed integers of 24 bits may overflow, which is undefined.
	int32Calls  = []op{{"mul24($0 >> 16, $1 >> 16)", "gg"}}
	uint32Calls = []op{{"mul24($0 >> 8, $1 >> 8)", "gg"}, {"mad24($0 >> 8, $1 >> 8, $2)", "ggg"}}
)

// The floating-point operations whose results are exact or correctly rounded. For two zeros, fmin
// and similar functions may return either, so that a zero is added; sign(+0) is -0 in oclgrind
// (21.10), and remainder(-0, 2) is +0 in rusticl (22.3).
var floatOps = []op{
	{"($0 + $1)", "gg"}, {"($0 - $1)", "gg"}, {"($0 * $1)", "gg"}, {"($0 / $1)", "gg"}, {"($0 + $1)", "gs"},
	{"($0 - $1)", "sg"}, {"($0 * $1)", "sg"}, {"($0 / $1)", "gs"},
	{"($0 * $1 + $2)", "ggg"}, {"($0 - $1 * $2)", "ggg"}, {"(-$0)", "g"}, {"(+$0)", "g"},
	{"fabs($0)", "g"}, {"floor($0)", "g"}, {"ceil($0)", "g"}, {"rint($0)", "g"}, {"trunc($0)", "g"}, {"round($0)", "g"},
	{"(fmin($0, $1) + ({S})0)", "gg"}, {"(fmax($0, $1) + ({S})0)", "gs"}, {"copysign($0, clean_{T}($1))", "gg"},
	{"(maxmag($0, $1) + ({S})0)", "gg"}, {"(minmag($0, $1) + ({S})0)", "gg"},
	{"ldexp($0, $1)", "gq"}, {"nextafter($0, $1)", "gg"}, {"fdim($0, $1)", "gg"}, {"fmod($0, $1)", "gg"},
	{"(remainder($0, $1) + ({S})0)", "gg"},
	{"logb($0)", "g"}, {"(sign($0) + ({S})0)", "g"}, {"step($0, $1)", "gg"}, {"select($0, $1, $2)", "ggi"},
	{"select($0, $1, $2)", "ggu"},
	{"clean_{T}(as_{T}($0))", "i"}, {"clean_{T}(as_{T}($0))", "u"},
	{"clean_{T}(BITS1({T}, {I}, clean_{T}($0), clean_{T}($1), clean_{T}($2)))", "ggg"},
	{"CLAMP1({T}, clean_{T}($0), ({S})-100, ({S})1000)", "g"}, {"({T})($0 ? $1 : $2)", "cgg"},
}

// fused are the operations with one rounding. With Concord's build options sqrt and division have
// to be correctly rounded.
var fused = []op{{"fma($0, $1, $2)", "ggg"}, {"fma(-$0, $1, $2)", "ggg"}, {"fma($0, $1, -$2)", "ggg"},
	{"sqrt(fabs($0))", "g"},
	{"(-fma($0, $1, $2))", "ggg"}, {"(-fma($0, -$1, $2))", "ggg"}, {"(fma($0, $1, $2) * ({S})-1)", "ggg"},
	{"(-($0 * $1))", "gg"}, {"(-($0 - $1))", "gg"}}

var comparisons = []string{"<", "<=", ">", ">=", "==", "!="}

// relations are the built-in functions that compare floats.
var relations = []string{"isequal", "isnotequal", "isgreater", "isgreaterequal", "isless", "islessequal",
	"islessgreater", "isordered", "isunordered"}

// classes are the built-in functions that classify a float.
var classes = []string{"isfinite", "isinf", "isnan", "isnormal"}

func (g *gen) chance(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g *gen, list []T) T { return list[g.IntN(len(list))] }

func choose(g *gen, lists ...[]op) op {
	n := 0
	for _, l := range lists {
		n += len(l)
	}
	i := g.IntN(n)
	for _, l := range lists {
		if i < len(l) {
			return l[i]
		}
		i -= len(l)
	}
	panic("programs: no operation")
}

// apply makes an expression of an operation.
func (g *gen) apply(o op, t typ, depth int) *expr {
	if strings.Contains(o.form, "clean_{T}") {
		g.clean(t)
	}
	if !g.p.Hard && t.k.size() == 8 && strings.HasPrefix(o.form, "mad_sat") {
		o.form = "add_sat($0, $1)"
		o.args = "gg"
	}
	if strings.Contains(o.form, "LIVE_{T}") {
		g.live(t)
	}
	if strings.Contains(o.form, "LIVE_{U}") {
		g.live(t.unsigned())
	}
	e := &expr{t: t, form: strings.NewReplacer("{T}", t.String(), "{U}", t.unsigned().String(),
		"{I}", t.toSigned().String(), "{S}", t.k.String()).Replace(o.form)}
	for _, c := range o.args {
		e.args = append(e.args, g.operand(c, t, depth))
	}
	for len(e.args) < 4 && strings.Contains(o.form, fmt.Sprint("$", len(e.args))) {
		e.args = append(e.args, g.expr(t, depth))
	}
	return e
}

// operand makes one operand of an expression of type t.
func (g *gen) operand(c rune, t typ, depth int) *expr {
	switch c {
	case 's':
		t = t.scalar()
	case 'i':
		t = t.toSigned()
	case 'u':
		t = t.unsigned()
	case 'o':
		if g.chance(3) {
			narrower := integers[:t.k.toSigned()]
			if len(narrower) > 0 {
				t.k = pick(g, narrower)
			}
		}
	case 'c':
		t = typ{pick(g, integers), 1}
	case 'h':
		t = typ{pick(g, []kind{kChar, kUChar, kShort}), 1}
	case 'q':
		t = typ{kInt, t.n}
	case 'H':
		t.k -= 2
	case 'L':
		t.k = (t.k - 2).unsigned()
	}
	return g.expr(t, depth)
}

// expr makes an expression of type t.
func (g *gen) expr(t typ, depth int) *expr {
	if depth <= 0 || g.chance(7) {
		return g.leaf(t)
	}
	if e := g.general(t, depth-1); e != nil {
		return e
	}
	switch {
	case t.k.float():
		return g.floating(t, depth-1)
	case t.n > 1:
		return g.vector(t, depth-1)
	}
	return g.integer(t, depth-1)
}

// general makes an expression of a form that exists for every type, or returns nil.
func (g *gen) general(t typ, depth int) *expr {
	switch g.IntN(16) {
	case 0, 1:
		return g.convert(t, depth)
	case 2, 3:
		return g.call(t, depth)
	case 4:
		return g.reinterpret(t, depth)
	case 5, 6:
		if t.n > 1 {
			return g.vectorLiteral(t, depth)
		}
	case 7:
		return g.swizzle(t, depth)
	case 8:
		if t.n > 1 && t.n != 3 {
			u := typ{t.k.unsigned(), t.n}
			if g.chance(2) {
				return &expr{t, "shuffle($0, $1)", []*expr{g.expr(typ{t.k, pick(g, []int{2, 4, 8})}, depth), g.expr(u, depth)}}
			}
			from := typ{t.k, pick(g, []int{2, 4, 8})}
			return &expr{t, "shuffle2($0, $1, $2)", []*expr{g.expr(from, depth), g.expr(from, depth), g.expr(u, depth)}}
		}
	}
	return nil
}

func (g *gen) integer(t typ, depth int) *expr {
	if t.k.size() >= 4 && g.chance(5) {
		if e := g.truth(t, depth); e != nil {
			return e
		}
	}
	lists := [][]op{integerCalls}
	switch {
	case t.k.size() < 4:
		lists = append(lists, narrowOps)
	case t.k.signed():
		lists = append(lists, signedOps, wideOps, wideOps)
	default:
		lists = append(lists, unsignedOps, wideOps, wideOps)
	}
	return g.apply(choose(g, append(lists, calls(t)...)...), t, depth)
}

// calls returns the built-in functions of integers of type t.
func calls(t typ) (lists [][]op) {
	if !t.k.signed() {
		lists = append(lists, unsignedCalls)
	}
	if t.k.size() > 1 {
		lists = append(lists, halvesCalls)
	}
	if t.k == kInt {
		lists = append(lists, int32Calls)
	}
	if t.k == kUInt {
		lists = append(lists, uint32Calls)
	}
	return lists
}

// truth makes an int that is 0 or 1, or a size.
func (g *gen) truth(t typ, depth int) *expr {
	if t.k != kInt {
		if t.k == kULong && g.chance(2) {
			return &expr{t: t, form: "sizeof(" + g.anyType() + ")"}
		}
		return nil
	}
	of := typ{pick(g, g.kinds), 1}
	two := func(form string, t typ) *expr {
		return &expr{typ{kInt, 1}, form, []*expr{g.expr(t, depth), g.expr(t, depth)}}
	}
	switch g.IntN(7) {
	case 0, 1:
		return two("($0 "+pick(g, comparisons)+" $1)", of)
	case 2: // the usual conversions, to unsigned too
		return &expr{t, "($0 " + pick(g, comparisons) + " $1)", []*expr{g.operand('c', t, depth), g.operand('c', t, depth)}}
	case 3:
		return &expr{t, pick(g, []string{"($0 && $1)", "($0 || $1)", "(!$0 != !$1)"}),
			[]*expr{g.operand('c', t, depth), g.operand('c', t, depth)}}
	case 4:
		return &expr{t, "(!$0)", []*expr{g.expr(of, depth)}}
	case 5:
		v := typ{pick(g, []kind{kChar, kShort, kInt, kLong}), pick(g, widths)}
		return &expr{t, pick(g, []string{"any($0)", "all($0)"}), []*expr{g.expr(v, depth)}}
	}
	of.k = g.floatKind()
	if g.chance(3) {
		return &expr{t, pick(g, classes) + "($0)", []*expr{g.expr(of, depth)}}
	}
	if g.chance(5) {
		g.clean(of)
		return &expr{t, "signbit(clean_" + of.String() + "($0))", []*expr{g.expr(of, depth)}}
	}
	return two(pick(g, relations)+"($0, $1)", of)
}

func (g *gen) vector(t typ, depth int) *expr {
	if t.k.signed() && g.chance(5) { // a comparison of operands of the same width
		of := []kind{t.k, t.k.unsigned()}
		if t.k == kInt {
			of = append(of, kFloat)
		}
		if t.k == kLong && g.p.Double {
			of = append(of, kDouble)
		}
		from := typ{pick(g, of), t.n}
		form := "(" + g.live(from) + "($0) " + pick(g, comparisons) + " $1)"
		if from.k.float() && g.chance(2) {
			if g.chance(3) {
				return &expr{t, pick(g, classes) + "($0)", []*expr{g.expr(from, depth)}}
			}
			form = pick(g, relations) + "($0, $1)"
		}
		return &expr{t, form, []*expr{g.expr(from, depth), g.expr(from, depth)}}
	}
	own := unsignedVectorOps
	if t.k.signed() {
		own = signedVectorOps
	}
	return g.apply(choose(g, append([][]op{integerCalls, vectorOps, own}, calls(t)...)...), t, depth)
}

func (g *gen) floating(t typ, depth int) *expr {
	e := g.apply(choose(g, floatOps, fused), t, depth)
	return e
}

// clean declares a function that replaces NaNs, whose bits are not defined.
func (g *gen) clean(t typ) string {
	name := "clean_" + t.String()
	if t.n == 1 {
		g.support(name, fmt.Sprintf("%[1]s clean_%[1]s(%[1]s x) { return isnan(x) ? (%[1]s)1.5f : x; }", t))
	} else {
		g.support(name, fmt.Sprintf("%[1]s clean_%[1]s(%[1]s x) { return select(x, (%[1]s)(1.5f), isnan(x)); }", t))
	}
	return name
}

// live declares a function that hides from oclgrind (21.10) that a vector is constant, because its
// comparisons of constants return 1 for true.
func (g *gen) live(t typ) string {
	name := "LIVE_" + t.String()
	g.support(name, fmt.Sprintf("#ifdef OCLGRIND\n%[1]s live_%[1]s(%[1]s x) { volatile %[1]s v = x; return v; "+
		"}\n#define LIVE_%[1]s live_%[1]s\n#else\n#define LIVE_%[1]s\n#endif", t))
	return name
}

// support declares something once, at the top of the program.
func (g *gen) support(name, text string) {
	for _, p := range g.supports {
		if p.name == name {
			return
		}
	}
	g.supports = append(g.supports, &part{name: name, head: text})
}
