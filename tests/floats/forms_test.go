package floats

import (
	"math"
	"os"
	"regexp"
)

// form is an expression of x, y and z. In its text T is the type, S the type of its lanes, and '1'
// a literal of S.
type form struct {
	text   string
	before string // declarations and statements that come first
	value  func(f *format, v *arguments) float64
}

// arguments are the arguments for one lane of one item.
type arguments struct {
	x, y, z float64
	odd     bool // the item's id is odd
}

// inner are the inner expressions of a form.
var inner = []form{
	{text: "fma(x, y, z)", value: func(f *format, v *arguments) float64 { return f.fma(v.x, v.y, v.z) }},
	{text: "fma(x, -y, z)", value: func(f *format, v *arguments) float64 { return f.fma(v.x, -v.y, v.z) }},
	{text: "fma(-x, y, -z)", value: func(f *format, v *arguments) float64 { return f.fma(-v.x, v.y, -v.z) }},
	{text: "fma(x, (T)('2.5'), z)", value: func(f *format, v *arguments) float64 { return f.fma(v.x, 2.5, v.z) }},
	{text: "fma(x, y, (T)('0'))", value: func(f *format, v *arguments) float64 { return f.fma(v.x, v.y, 0) }},
	{text: "x * y", value: func(f *format, v *arguments) float64 { return f.mul(v.x, v.y) }},
	{text: "x * y + z", value: func(f *format, v *arguments) float64 { return f.add(f.mul(v.x, v.y), v.z) }},
	{text: "x - y", value: func(f *format, v *arguments) float64 { return f.add(v.x, -v.y) }},
}

// outer are the operations on e, which is one of the inner expressions.
var outer = []struct {
	form
	value func(f *format, v *arguments, e float64) float64
}{
	{form{text: "-e"}, func(_ *format, _ *arguments, e float64) float64 { return -e }},
	{form{text: "-(-e)"}, func(_ *format, _ *arguments, e float64) float64 { return e }},
	{form{text: "e * '-1'"}, func(_ *format, _ *arguments, e float64) float64 { return -e }},
	{form{text: "'-1' * e"}, func(_ *format, _ *arguments, e float64) float64 { return -e }},
	{form{text: "e / '-1'"}, func(_ *format, _ *arguments, e float64) float64 { return -e }},
	{form{text: "'0' - e"}, func(f *format, _ *arguments, e float64) float64 { return f.add(0, -e) }},
	{form{text: "'-0' - e"}, func(f *format, _ *arguments, e float64) float64 { return f.add(math.Copysign(0, -1), -e) }},
	{form{text: "e + '0'"}, func(f *format, _ *arguments, e float64) float64 { return f.add(e, 0) }},
	{form{text: "e + '-0'"}, func(_ *format, _ *arguments, e float64) float64 { return e }},
	{form{text: "e - '0'"}, func(_ *format, _ *arguments, e float64) float64 { return e }},
	{form{text: "e - '-0'"}, func(f *format, _ *arguments, e float64) float64 { return f.add(e, 0) }},
	{form{text: "z - e"}, func(f *format, v *arguments, e float64) float64 { return f.add(v.z, -e) }},
	{form{text: "-e - z"}, func(f *format, v *arguments, e float64) float64 { return f.add(-e, -v.z) }},
	{form{text: "-e * z"}, func(f *format, v *arguments, e float64) float64 { return f.mul(-e, v.z) }},
	{form{text: "-(e * z)"}, func(f *format, v *arguments, e float64) float64 { return -f.mul(e, v.z) }},
	{form{text: "z / -e"}, func(f *format, v *arguments, e float64) float64 { return f.div(v.z, -e) }},
	{form{text: "-(e - z)"}, func(f *format, v *arguments, e float64) float64 { return -f.add(e, -v.z) }},
	{form{text: "-(e + z)"}, func(f *format, v *arguments, e float64) float64 { return -f.add(e, v.z) }},
	{form{text: "fabs(-e)"}, func(_ *format, _ *arguments, e float64) float64 { return math.Abs(e) }},
	{form{text: "-fabs(e)"}, func(_ *format, _ *arguments, e float64) float64 { return -math.Abs(e) }},
	{form{text: "copysign(e, -z)"}, func(_ *format, v *arguments, e float64) float64 { return math.Copysign(e, -v.z) }},
	{form{text: "copysign(z, -e)"}, func(_ *format, v *arguments, e float64) float64 { return math.Copysign(v.z, -e) }},
	{form{text: "i % 2 ? -e : e"}, flipped},
	{form{before: "T t = e; if (i % 2) t = -t;", text: "t"}, flipped},
	{form{before: "T t = e; if (i % 2) t *= '-1';", text: "t"}, flipped},
	{form{before: "T t = e; S s = i % 2 ? '-1' : '1';", text: "t * s"}, flipped},
	{form{before: "T t = e; S s = '-1';", text: "t * s"}, func(_ *format, _ *arguments, e float64) float64 { return -e }},
	{form{before: "T t = e; S s = '-1';", text: "t / s"}, func(_ *format, _ *arguments, e float64) float64 { return -e }},
	{form{before: "T t = e; S s = '-0';", text: "s - t"}, func(f *format, _ *arguments, e float64) float64 {
		return f.add(math.Copysign(0, -1), -e)
	}},
	{form{before: "T t = e; t /= '-1';", text: "t"}, func(_ *format, _ *arguments, e float64) float64 { return -e }},
	{form{before: "T t = '-0'; t -= e;", text: "t"}, func(f *format, _ *arguments, e float64) float64 {
		return f.add(math.Copysign(0, -1), -e)
	}},
	{form{text: "negative(e)"}, func(_ *format, _ *arguments, e float64) float64 { return -e }},
	{form{text: "times(e, '-1')"}, func(_ *format, _ *arguments, e float64) float64 { return -e }},
	{form{before: "T t[2]; t[0] = e; t[1] = '-1';", text: "t[0] * t[1]"},
		func(_ *format, _ *arguments, e float64) float64 { return -e }},
	{form{before: "union { T t; T u; } w; w.t = e;", text: "-w.u"}, func(_ *format, _ *arguments, e float64) float64 {
		return -e
	}},
	{form{before: "T t = e; for (int k = 0; k < 3; k++) t = -t;", text: "t"},
		func(_ *format, _ *arguments, e float64) float64 { return -e }},
	{form{before: "T t = '0'; for (int k = -1; k < 2; k += 2) t = (S)k * e;", text: "t"},
		func(_ *format, _ *arguments, e float64) float64 { return e }},
	{form{before: "T t = '0'; for (int k = 1; k > -2; k -= 2) t = (S)k * e;", text: "t"},
		func(_ *format, _ *arguments, e float64) float64 { return -e }},
}

func flipped(_ *format, v *arguments, e float64) float64 {
	if v.odd {
		return -e
	}
	return e
}

// scalarOnly are operations that do not exist for vectors.
var scalarOnly = []struct {
	form
	value func(f *format, v *arguments, e float64) float64
}{
	{form{text: "dot(e, '-1')"}, func(_ *format, _ *arguments, e float64) float64 { return -e }},
	{form{text: "dot('-1', e)"}, func(_ *format, _ *arguments, e float64) float64 { return -e }},
	{form{before: "S3 t = (S3)(e, '1', x) * (S3)('-1', '1', '1');", text: "t.x"},
		func(_ *format, _ *arguments, e float64) float64 { return -e }},
	{form{before: "S4 t = (S4)(x, e, y, z); t.yw = -t.yw;", text: "t.y"},
		func(_ *format, _ *arguments, e float64) float64 { return -e }},
	{form{before: "S4 t = (S4)(x, e, y, z); t.yw *= (S2)('-1', '2');", text: "t.y"},
		func(_ *format, _ *arguments, e float64) float64 { return -e }},
}

// variable selects all combinations, which take an hour to compile. Without it each inner
// expression and each operation is tried with a few of the others.
const variable = "FLOATS_ALL"

// forms returns the combinations for scalars or for vectors.
func forms(scalar bool) (list []form) {
	all := outer
	if scalar {
		all = append(all[:len(all):len(all)], scalarOnly...)
	}
	for i, in := range inner {
		for j, out := range all {
			if i > 0 && j > 0 && os.Getenv(variable) == "" {
				continue
			}
			list = append(list, form{
				text:   named(out.text, in.text),
				before: named(out.before, in.text),
				value:  func(f *format, v *arguments) float64 { return out.value(f, v, in.value(f, v)) },
			})
		}
	}
	return list
}

var name = regexp.MustCompile(`\be\b`)

// named replaces the name e in a text by the expression e.
func named(text, e string) string { return name.ReplaceAllLiteralString(text, "("+e+")") }
