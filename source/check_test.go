package source

// Programs that are refused, and where: every case is one small program with an @ in front of the
// character where the mistake is, and a part of the message.

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source/internal/token"
)

var refused = []struct{ name, text, construct, msg string }{
	{"undeclared identifier", "kernel void k(global int *o) { o[0] = @x; }", "identifier", "'x' is not declared"},
	{"unknown function", "kernel void k(global int *o) { o[0] = @frob(1); }", "call", "'frob' is not declared"},
	{"unknown type", "kernel void k(global @floot *o) { }", "parameter", "unknown type name 'floot'"},
	{"no member", "struct S { int a; }; kernel void k(global struct S *o) { o->@b = 1; }", "member", "no member 'b'"},
	{"no component", "kernel void k(global float2 *o) { o[0].@z = 1; }", "swizzle", "no component 'z'"},
	{"assign to const", "kernel void k(global const int *o) { @o[0] = 1; }", "assignment", "cannot be assigned to"},
	{"assign to constant", "constant int t[2] = {1, 2}; kernel void k() { @t[0] = 1; }", "assignment",
		"cannot be assigned to"},
	{"assign to value", "kernel void k(int a) { @(a + 1) = 2; }", "assignment", "cannot be assigned to"},
	{"twice in a swizzle", "kernel void k(float4 a) { @a.xx = 1; }", "assignment", "named twice"},
	{"kernel result", "kernel int @k() { return 1; }", "kernel", "must return void"},
	{"missing semicolon", "kernel void k(global int *o) {\n  int a = 1@\n  o[0] = a;\n}", "declaration",
		"expected ';' before 'o'"},
	{"missing parenthesis", "kernel void k(global int *o) { o[0] = (1 + 2@; }", "expression", "expected ')' before ';'"},
	{"missing brace", "kernel void k() { if (1) { @", "block", "expected '}' before the end of the program"},
	{"image", "kernel void k(read_only @image2d_t i) { }", "image", "image is not part of the portable language"},
	{"sampler", "constant @sampler_t s = 0;", "sampler", "not part of the portable language"},
	{"image function", "kernel void k() { @read_imagef(0, 0); }", "image", "not part of the portable language"},
	{"pipe", "kernel void k(@pipe int p) { }", "pipe", "not part"},
	{"queue", "kernel void k() { @queue_t q; }", "device enqueue", "not part"},
	{"recursion", "int f(int n) { return n ? @f(n - 1) : 0; } kernel void k() { f(1); }", "recursion", "'f' calls itself"},
	{"mutual recursion", "int g(int n); int f(int n) { return @g(n); } int g(int n) { return f(n); } kernel void k() { " +
		"f(1); }", "recursion", "calls itself"},
	{"function pointer", "kernel void k() { int (@*f)(int); }", "function pointer", "function pointers"},
	{"function as a value", "int f(int a) { return a; } kernel void k(global int *o) { o[0] = (f)@(1); }", "call",
		"not a function"},
	{"variable length array", "kernel void k(int n) { float a[@n]; }", "variable length array", "not a constant"},
	{"bit-field", "struct S { int a @: 3; };", "bit-field", "bit-fields"},
	{"flexible array", "struct S { int n; float @a[]; };", "flexible array member", "flexible"},
	{"variadic", "int @f(int a, ...) { return a; }", "variadic function", "..."},
	{"program-scope variable", "int @x = 1;", "program-scope variable", "must be constant"},
	{"constant without value", "constant int @x;", "constant", "needs an initializer"},
	{"constant not constant", "kernel void k(int n) { constant int x = @n; }", "constant", "must itself be constant"},
	{"local in a helper", "void f() { local int @t[2]; }", "local variable", "only a kernel"},
	{"local with initializer", "kernel void k() { local int t @= 1; }", "local variable", "cannot have an initializer"},
	{"static variable", "kernel void k() { static int @t = 1; }", "storage class", "static"},
	{"address spaces in a call", "void f(local int *p) { } kernel void k(global int *o) { f(@o); }", "address space",
		"the address spaces differ"},
	{"address spaces in a cast", "kernel void k(global int *o) { int *p = (int *)@o; }", "address space",
		"the address spaces differ"},
	{"kernel pointer without a space", "kernel void k(int *@o) { }", "kernel parameter", "must say global"},
	{"kernel pointer to pointer", "kernel void k(global int * global *@o) { }", "kernel parameter",
		"pointers to pointers"},
	{"kernel bool", "kernel void k(bool @b) { }", "kernel parameter", "'bool'"},
	{"kernel buffer of bool", "kernel void k(global const bool *@b) { }", "kernel parameter", "'uchar'"},
	{"kernel constant of bool", "kernel void k(constant bool *@b) { }", "kernel parameter", "'uchar'"},
	{"kernel array of bool", "typedef bool B; kernel void k(global B @b[]) { }", "kernel parameter", "'uchar'"},
	{"kernel size_t", "kernel void k(size_t @n) { }", "kernel parameter", "'size_t'"},
	{"kernel half", "kernel void k(half @n) { }", "kernel parameter", "half"},
	{"half arithmetic", "kernel void k(global half *h, global float *o) { o[0] = @h[0]; }", "half", "cl_khr_fp16"},
	{"too many components", "kernel void k(global float4 *o) { o[0] = @(float4)(1, 2, 3); }", "vector literal",
		"takes 4 components, not 3"},
	{"vector cast", "kernel void k(int4 a, global float4 *o) { o[0] = @(float4)a; }", "cast", "convert_float4"},
	{"vector sizes", "kernel void k(float4 a, float2 b, global float4 *o) { o[0] = a @+ b; }", "operator +",
		"'float4' and 'float2'"},
	{"vector to scalar", "kernel void k(float4 a) { float f = @a; }", "initialization", "cannot become"},
	{"float modulo", "kernel void k(float a) { float f = a @% 2; }", "operator %", "cannot be applied"},
	{"float shift", "kernel void k(float a) { a @<< 2; }", "operator <<", "cannot be applied"},
	{"pointer times", "kernel void k(global int *a) { a @* 2; }", "operator *", "cannot be applied"},
	{"argument count", "int f(int a) { return a; } kernel void k() { @f(1, 2); }", "call", "takes 1 arguments, not 2"},
	{"built-in arguments", "kernel void k(float4 a, float2 b) { @max(a, b); }", "call", "no 'max' takes (float4, float2)"},
	{"not a function", "kernel void k(int a) { a@(1); }", "call", "not a function"},
	{"struct condition", "struct S { int a; }; kernel void k(struct S s) { if (@s) ; }", "condition", "must be a scalar"},
	{"redeclared", "kernel void k() { int a; float @a; }", "declaration", "already declared"},
	{"redefined", "void f() { } void @f() { }", "function", "defined twice"},
	{"other parameters", "void f(int a); void @f(float a) { }", "function", "other parameters"},
	{"not defined", "int f(int a); kernel void k(global int *o) { o[0] = @f(1); }", "call", "not defined"},
	{"two defaults", "kernel void k(int a) { switch (a) { default: ; @default: ; } }", "default", "two defaults"},
	{"case twice", "kernel void k(int a) { switch (a) { case 1: ; @case 1: ; } }", "case", "twice"},
	{"case outside", "kernel void k() { @case 1: ; }", "case", "outside"},
	{"break outside", "kernel void k() { @break; }", "break", "outside"},
	{"no label", "kernel void k() { goto @there; }", "goto", "no label 'there'"},
	{"return value", "int f() { @return; }", "return", "must return"},
	{"no return value", "void f() { return @1; }", "return", "returns nothing"},
	{"incomplete struct", "struct S; kernel void k() { struct S @s; }", "declaration", "incomplete"},
	{"void variable", "kernel void k() { void @v; }", "declaration", "void"},
	{"negative array", "kernel void k() { int a[@-1]; }", "array", "out of range"},
	{"huge array", "kernel void k() { int a@[1 << 30][1 << 30]; }", "array", "too large"},
	{"designator out of range", "kernel void k() { int a[2] = {1, [2] = @3}; }", "initializer", "more values"},
	{"barrier arguments", "kernel void k() { @barrier(); }", "call", "no 'barrier' takes"},
	{"write through vstore", "kernel void k(constant float *c) { vstore4((float4)(1), 0, @c); }", "call", "would write"},
	{"printf format", "kernel void k(constant char *f) { @printf(f); }", "printf", "string literal"},
	{"asm", "kernel void k() { @asm(\"nop\"); }", "asm", "inline assembly"},
	{"statement expression", "constant int a = @({ 1; });", "statement expression", "cannot be initialized by statements"},
	{"keyword as a name", "kernel void k(int @if) { }", "parameter", "cannot be a name"},
	{"vector ?:", "kernel void k(int2 c, float4 a) { a = c @? a : a; }", "?:", "does not fit"},
	{"address of a swizzle", "kernel void k(float4 a) { float *p = @&a.xy; }", "operator &", "no address"},
	{"rank of a scalar", "kernel void k(global float4 *o, double d) { o[0] = o[1] * @d; }", "vector operand", "cast it"},
	{"int from pointer", "kernel void k(global int *o) { int a = @o; }", "initialization", "cannot become"},
	{"two types", "kernel void k() { @int float a; }", "declaration", "not a type"},
	{"else", "kernel void k() { @else ; }", "else", "without"},
	{"declaration as a body", "kernel void k(int a) { if (a) @int b; }", "declaration", "needs braces"},
}

func TestRefused(t *testing.T) {
	for _, c := range refused {
		t.Run(c.name, func(t *testing.T) {
			at := strings.Index(c.text, "@")
			text := c.text[:at] + c.text[at+1:]
			_, err := Parse(text, Options{Name: "t.cl"})
			require.Error(t, err)
			var list ErrorList
			require.True(t, errors.As(err, &list), "%T", err)
			line := 1 + strings.Count(text[:at], "\n")
			col := at - strings.LastIndex(text[:at], "\n")
			assert.Equal(t, Pos{File: "t.cl", Line: line, Col: col}, list[0].Pos, "%v", err)
			assert.Equal(t, c.construct, list[0].Construct, "%v", err)
			assert.Contains(t, list[0].Msg, c.msg)
		})
	}
}

func TestFeatures(t *testing.T) {
	noFP64 := Options{Features: &Features{Int64Atomic: true}}
	_, err := Parse("kernel void k(global double *d) { }", noFP64)
	assert.ErrorContains(t, err, "cl_khr_fp64")
	u, err := Parse("kernel void k(global float *f) { f[0] = 1.5 * 2; }", noFP64)
	require.NoError(t, err)
	cpp, err := u.Render(Host)
	require.NoError(t, err)
	assert.Contains(t, cpp, "u_f[0] = 1.5f * 2;", "an unsuffixed literal is float where there is no double")
	_, err = Parse("kernel void k(global long *l) { atom_add(l, 1L); }", Options{Features: &Features{FP64: true}})
	assert.ErrorContains(t, err, "cl_khr_int64_base_atomics")
	_, err = Parse("kernel void k(global half *h) { half a = h[0]; h[1] = a * a + 1.0h; }",
		Options{Features: &Features{FP16: true}})
	assert.NoError(t, err)
}

// TestManyErrors: parsing goes on after a mistake, and stops after a limited number of them.
func TestManyErrors(t *testing.T) {
	_, err := Parse("kernel void a() { int x = y; }\nkernel void b() { x = ; }\nvoid c( { }\nkernel void d() { z = 1; }",
		Options{})
	var list ErrorList
	require.True(t, errors.As(err, &list))
	var lines []int
	for _, e := range list {
		lines = append(lines, e.Pos.Line)
	}
	assert.Equal(t, []int{1, 2, 2, 3, 4}, lines, "%v", err)
	_, err = Parse("kernel void a() { "+strings.Repeat("x; ", 100)+"}", Options{})
	require.True(t, errors.As(err, &list))
	assert.LessOrEqual(t, len(list), token.MaxErrors)
}

// TestDeep: endless nesting and endless chains are errors and do not overflow the stack.
func TestDeep(t *testing.T) {
	n := 100000
	deep := map[string]string{
		"parentheses":  "kernel void k(int a) { a = " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n) + "; }",
		"unary":        "kernel void k(int a) { a = " + strings.Repeat("-", n) + "1; }",
		"sum":          "kernel void k(int a) { a = 1" + strings.Repeat("+1", n) + "; }",
		"blocks":       "kernel void k(int a) { " + strings.Repeat("{", n) + strings.Repeat("}", n) + " }",
		"else if":      "kernel void k(int a) { if (a) ;" + strings.Repeat(" else if (a) ;", n) + " }",
		"pointers":     "kernel void k() { int " + strings.Repeat("*", n) + "a; }",
		"arrays":       "kernel void k() { int a" + strings.Repeat("[1]", n) + "; }",
		"declarators":  "kernel void k() { int " + strings.Repeat("(", n) + "a" + strings.Repeat(")", n) + "; }",
		"structs":      strings.Repeat("struct { ", n) + "int a;" + strings.Repeat("} b;", n),
		"initializers": "constant int a[1] = " + strings.Repeat("{", n) + "1" + strings.Repeat("}", n) + ";",
		"casts":        "kernel void k(int a) { a = " + strings.Repeat("(int)", n) + "1; }",
		"postfix":      "struct S { int a; }; kernel void k(float4 a) { a = a" + strings.Repeat(".xyzw", n) + "; }",
		"labels":       "kernel void k() { " + strings.Repeat("a: ", n) + "; }",
		"conditional":  "kernel void k(int a) { a = " + strings.Repeat("a ? a : ", n) + "1; }",
		"calls": "int f(int a) { return a; } kernel void k(int a) { a = " + strings.Repeat("f(", n) + "1" +
			strings.Repeat(")", n) + "; }",
		"comma":       "kernel void k(int a) { a" + strings.Repeat(", a", n) + "; }",
		"sizeof":      "kernel void k(int a) { a = " + strings.Repeat("sizeof ", n) + "a; }",
		"typeof":      "kernel void k(int a) { " + strings.Repeat("typeof(", n) + "a" + strings.Repeat(")", n) + " b; }",
		"designators": "constant int a[] = {[1000000000] = 1};",
	}
	for name, text := range deep {
		t.Run(name, func(t *testing.T) {
			u, err := Parse(text, Options{})
			if err == nil {
				_, err = u.Render(Host)
				require.NoError(t, err)
			}
		})
	}
}
