package preprocess

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source/internal/token"
)

func fsList(list ...fs.FS) []fs.FS { return list }

// spellings returns the texts of tokens without the final EOF.
func spellings(toks []token.Token) []string {
	var s []string
	for _, t := range toks {
		if t.Kind != token.EOF {
			s = append(s, t.Text)
		}
	}
	return s
}

// preprocessed expands a text for the features of source.Portable, without a name.
func preprocessed(text string, opt Options) (*Result, error) {
	if opt.Name == "" {
		opt.Name = "program.cl"
	}
	return Expand(token.NewMeter(context.Background()), text, opt)
}

// expand returns the result of text as one line, or the error's text.
func expand(text string, opt Options) string {
	res, err := preprocessed(text, opt)
	if err != nil {
		return err.Error()
	}
	return strings.Join(spellings(res.Tokens), " ")
}

func TestExpand(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"object", "#define N 16\nint a[N];", "int a [ 16 ] ;"},
		{"function over lines", "#define MAX(a, b) ((a) > (b) ? (a) : (b))\nMAX(x,\n\n  y)",
			"( ( x ) > ( y ) ? ( x ) : ( y ) )"},
		{"no call", "#define f(x) x\nf g f\n(2)", "f g 2"},
		{"variadic", "#define P(...) printf(__VA_ARGS__)\nP(\"%d\", 1) P()", "printf ( \"%d\" , 1 ) printf ( )"},
		{"comma dropped", "#define P(f, ...) printf(f, ##__VA_ARGS__)\nP(\"a\")", "printf ( \"a\" )"},
		{"string of expansion", "#define S(x) #x\n#define X(x) S(x)\n#define N 4\nS(N) X(N)", `"N" "4"`},
		{"paste of expansion", "#define C(a,b) a##b\n#define X(a,b) C(a,b)\n#define T float\nX(T,4)", "float4"},
		{"blue paint", "#define f(a) a*g\n#define g(a) f(a)\nf(2)(9)", "2 * 9 * g"},
		{"address space", "#define GLB __global\nGLB float *p;", "__global float * p ;"},
		{"undef", "#define A 1\n#undef A\n#undef B\nA", "A"},
		{"directive in arguments", "#define f(x) x\nf(1\n#ifdef A\n2\n#else\n3\n#endif\n)", "1 3"},
		{"null and true", "#if true && !NULL\nyes\n#endif", "yes"},
		{"crlf", "#define A \\\r\n 1\r\n#if A\r\nA\r\n#endif\r\n", "1"},
		{"no line end", "#define A 1\n#if A\nA\n#endif", "1"},
		{"byte order mark", "\ufeff#define A 1\nA", "1"},
		{"digraphs", "%:define A <%\nA x<:1:>%>", "{ x [ 1 ] }"},
		{"unused stray", "#define A @\n#if 0\n`\n#endif\n1", "1"},
		{"numbers", "1 0x1F 017 0b101 1u 2UL 3ull 1. .5 1e5 1.5e-3f 0x1.8p3 0x1p-2f 1.0h",
			"1 0x1F 017 0b101 1u 2UL 3ull 1. .5 1e5 1.5e-3f 0x1.8p3 0x1p-2f 1.0h"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, expand(test.text, Options{}))
		})
	}
}

func TestErrors(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"error", "\n #error stop  here, don't\n", "program.cl:2:2: #error stop here, don't"},
		{"comment", "a /* b", "program.cl:1:3: comment is not closed"},
		{"string", "x \"abc\n", `program.cl:1:3: string is not closed: missing "`},
		{"char", "\n'a", "program.cl:2:1: character constant is not closed: missing '"},
		{"empty char", "''", "program.cl:1:1: empty character constant"},
		{"wide", `L"x"`, `program.cl:1:1: wide literal L"x": OpenCL C has none`},
		{"stray", "a = @;", `program.cl:1:5: stray character "@"`},
		{"stray letter", "a = é;", `program.cl:1:5: stray character "\u00e9"`},
		{"number", "x = 1.2.3 + 0x + 1e + 09 + 1ux + 0x1.8;", "program.cl:1:5: 1.2.3 is not a number\nprogram.cl:1:13: 0x " +
			"is not a number\n" +
			"program.cl:1:18: 1e is not a number\nprogram.cl:1:23: 09 is not a number\nprogram.cl:1:28: 1ux is not a " +
			"number\nprogram.cl:1:34: 0x1.8 is not a number"},
		{"if open", "#if 1\n#ifdef A\n#else", "program.cl:1:2: #if without #endif\nprogram.cl:2:2: #ifdef without #endif"},
		{"endif", "#endif", "program.cl:1:2: #endif without #if"},
		{"two else", "#if 1\n#else\n#else\n#endif", "program.cl:3:2: #else after #else"},
		{"elif late", "#if 0\n#else\n#elif 1\n#endif", "program.cl:3:2: #elif after #else"},
		{"directive", "#foo", "program.cl:1:2: unknown directive #foo"},
		{"if empty", "#if\n#endif", "program.cl:1:2: #if without an expression"},
		{"if junk", "#if 1 2\n#endif", `program.cl:1:7: unexpected "2" in #if`},
		{"if unclosed", "#if (1\n#endif", `program.cl:1:6: expected ")" in #if, not the end of the line`},
		{"if zero", "#if 1 / 0\n#endif", "program.cl:1:9: division by zero in #if"},
		{"if float", "#if 1.0\n#endif", `program.cl:1:5: #if: expected an integer (floating constant), not "1.0"`},
		{"if string", "#if \"a\"\n#endif", "program.cl:1:5: #if: expected a value, not a string"},
		{"if assign", "#if A = 1\n#endif", `program.cl:1:7: unexpected "=" in #if`},
		{"if huge", "#if 18446744073709551616\n#endif",
			`program.cl:1:5: #if: expected an integer (it needs more than 64 bits), not "18446744073709551616"`},
		{"defined", "#if defined 1\n#endif", `program.cl:1:13: defined needs the name of a macro, not "1"`},
		{"ifdef", "#ifdef\n#endif", "program.cl:1:2: #ifdef needs the name of a macro"},
		{"define", "#define 1", "program.cl:1:9: #define needs the name of a macro"},
		{"define defined", "#define defined", "program.cl:1:9: defined cannot be defined"},
		{"parameters", "#define f(a,\n#define g(a a)\n#define h(a, a)\n#define i(..., a)\n#define j(1)",
			"program.cl:1:10: macro f: expected a parameter, not the end of the line\n" +
				"program.cl:2:13: macro g: expected , or ) after a parameter, not \"a\"\n" +
				"program.cl:3:14: macro h: parameter a is not allowed here\n" +
				"program.cl:4:14: macro i: expected , or ) after a parameter, not \",\"\nprogram.cl:5:11: macro j: expected a " +
				"parameter, not \"1\""},
		{"paste ends", "#define A ## b\n#define B a ##", "program.cl:1:11: macro A: ## cannot stand at the end of the " +
			"list\nprogram.cl:2:13: macro B: ## cannot stand at the end of the list"},
		{"hash", "#define f(a) # b", "program.cl:1:14: macro f: # needs a parameter after it"},
		{"paste", "#define C(a,b) a##b\n\n C(+,x)", "program.cl:3:2: + and x do not make one token"},
		{"paste comment", "#define C(a,b) a##b\nC(/,/)", "program.cl:2:1: / and / do not make one token"},
		{"arguments", "#define f(a,b) a\nf(1)\nf(1,2,3)\n#define g() 1\ng(1)", "program.cl:2:1: macro f takes 2 arguments, " +
			"not 1\nprogram.cl:3:1: macro f takes 2 arguments, not 3\nprogram.cl:5:1: macro g takes 0 arguments, not 1"},
		{"call open", "#define f(a) a\n x f(1\n", "program.cl:2:4: call of macro f has no )"},
		{"line", "#line\n#line 0x10\n#line 4 foo", "program.cl:1:2: #line needs a line number\nprogram.cl:2:7: #line 0x10: " +
			"not a line number\nprogram.cl:3:9: #line needs a quoted file name, not \"foo\""},
		{"pragma operator", "_Pragma(1)\n_Pragma", "program.cl:1:1: _Pragma needs a string in parentheses\nprogram.cl:2:1: " +
			"_Pragma needs a string in parentheses"},
		{"include", "#include\n#include foo\n#include \"\"\n#include <no.h>\n#include \"/etc/passwd\"\n#include \"../x.h\"",
			"program.cl:1:9: #include needs \"name\" or <name>\n" +
				"program.cl:2:10: #include needs \"name\" or <name>\nprogram.cl:3:10: #include \"\": empty name\n" +
				"program.cl:4:10: #include <no.h>: not found in the given file systems\n" +
				"program.cl:5:10: #include \"/etc/passwd\": absolute path: includes come from the given file systems\n" +
				"program.cl:6:10: #include \"../x.h\": leads out of the given file systems"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			res, err := preprocessed(test.text, Options{})
			require.Error(t, err)
			assert.Nil(t, res)
			assert.Equal(t, test.want, err.Error())
			var e *token.Error
			require.ErrorAs(t, err, &e)
			assert.NotEmpty(t, e.Construct)
		})
	}
}

func TestErrorsAreCapped(t *testing.T) {
	_, err := preprocessed(strings.Repeat("@\n", 1000), Options{})
	var list token.ErrorList
	require.ErrorAs(t, err, &list)
	assert.Len(t, list, token.MaxErrors)

	_, err = preprocessed("#error "+strings.Repeat("long ", 1000), Options{})
	assert.Less(t, len(err.Error()), 500)
}

func TestWarnings(t *testing.T) {
	res, err := preprocessed("#define A 1\n#define A 1\n#define A 2\n#warning look\n#ifdef A x\n#endif A\n#undef A b\n",
		Options{})
	require.NoError(t, err)
	var got []string
	for _, w := range res.warnings {
		got = append(got, w.Error())
	}
	assert.Equal(t, []string{
		"program.cl:3:9: macro A is redefined",
		"program.cl:4:1: #warning look",
		"program.cl:5:10: extra text after #ifdef A",
		"program.cl:6:8: extra text after #endif",
		"program.cl:7:10: extra text after #undef A",
	}, got)
}

func TestDefines(t *testing.T) {
	tests := []struct {
		name string
		defs []Define
		text string
		want string
	}{
		{"value", []Define{{"T", "float"}, {"N", "4"}}, "T N", "float 4"},
		{"nothing", []Define{{"T", ""}}, "a T b", "a b"},
		{"later wins", []Define{{"N", "4"}, {"N", "8"}}, "N", "8"},
		{"function", []Define{{"F(x, y)", "x - y"}}, "F(1, 2)", "1 - 2"},
		{"value in parentheses", []Define{{"F", "(x) - x"}}, "F", "( x ) - x"},
		{"of each other", []Define{{"A", "B"}, {"B", "1"}}, "A", "1"},
		{"over predefined", []Define{{"M_PI", "3"}}, "M_PI", "3"},
		{"bad name", []Define{{"1x", ""}}, "", `-D 1x:1:1: "1x" is not the name of a macro`},
		{"no name", []Define{{"", "1"}}, "", `-D :1:1: "" is not the name of a macro`},
		{"two names", []Define{{"A B", ""}}, "", `-D A B:1:1: "A B" is not the name of a macro`},
		{"assigned", []Define{{"A=1", ""}}, "", `-D A=1:1:1: "A=1" is not the name of a macro`},
		{"text after parameters", []Define{{"F(x)y", ""}}, "", `-D F(x)y:1:1: "F(x)y" is not the name of a macro`},
		{"line end", []Define{{"A", "1\n#error"}}, "", `-D A:1:1: definition of "A" contains a line end`},
		{"open comment", []Define{{"A", "/*"}}, "", `-D A:1:1: comment is not closed`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, expand(test.text, Options{Defines: test.defs}))
		})
	}
}

func TestPredefined(t *testing.T) {
	const ask = `__OPENCL_VERSION__ __OPENCL_C_VERSION__ CL_VERSION_1_2 INT_MIN FLT_MAX INFINITY NAN NULL CLK_LOCAL_MEM_FENCE
#ifdef cl_khr_fp64
fp64 M_PI
#endif
#ifdef cl_khr_fp16
fp16 HALF_MAX
#endif
#ifdef cl_khr_int64_base_atomics
atomic64
#endif
#if defined __cplusplus || defined __GNUC__ || defined __IMAGE_SUPPORT__ || defined __DATE__ || defined __TIME__
wrong
#endif
#if __OPENCL_C_VERSION__ >= CL_VERSION_1_2 && defined(INFINITY) && !CLK_LOCAL_MEM_FENCE
right
#endif`
	const common = "120 120 120 ( - 2147483647 - 1 ) 0x1.fffffep127f INFINITY NAN NULL CLK_LOCAL_MEM_FENCE"
	const pi = " fp64 3.14159265358979323846264338327950288"
	tests := []struct {
		f    token.Features
		want string
	}{
		{token.Features{FP64: true, Int64Atomic: true}, common + pi + " atomic64 right"},
		{token.Features{}, common + " right"},
		{token.Features{FP64: true}, common + pi + " right"},
		{token.Features{FP16: true}, common + " fp16 0x1.ffcp15h right"},
		{token.Features{Int64Atomic: true}, common + " atomic64 right"},
	}
	for _, test := range tests {
		assert.Equal(t, test.want, expand(ask, Options{Features: test.f}), "%+v", test.f)
	}
	assert.Equal(t, "3.0", expand("#define M_PI 3.0\n#undef NULL\nM_PI", Options{}))
}

func TestPragma(t *testing.T) {
	res, err := preprocessed("#define N 4\n#pragma unroll N\nfor _Pragma(\"unroll(N)\")\n#pragma OPENCL EXTENSION "+
		"cl_khr_fp64 : enable\n", Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"#pragma unroll 4", "for", "#pragma unroll(4)",
		"#pragma OPENCL EXTENSION cl_khr_fp64 : enable"}, spellings(res.Tokens))
	assert.Equal(t, token.Pragma, res.Tokens[0].Kind)
	assert.Equal(t, token.EOF, res.Tokens[4].Kind)
}

func TestIncludes(t *testing.T) {
	first := fstest.MapFS{
		"a.h":       {Data: []byte("#pragma once\nfirst_a\n")},
		"dir/b.h":   {Data: []byte("#include \"c.h\"\n#include <c.h>\n#include \"../a.h\"\n")},
		"dir/c.h":   {Data: []byte("dir_c\n")},
		"c.h":       {Data: []byte("top_c\n")},
		"open.h":    {Data: []byte("#if 1\n")},
		"call.h":    {Data: []byte("f(1,")},
		"folder/x":  {Data: []byte("x")},
		"main/d.h":  {Data: []byte("beside_main\n")},
		"main/up.h": {Data: []byte("#include \"../../c.h\"")},
	}
	second := fstest.MapFS{
		"a.h":     {Data: []byte("second_a\n")},
		"only.h":  {Data: []byte("#include \"a.h\"\n#include <a.h>\n")},
		"dir/c.h": {Data: []byte("second_dir_c\n")},
	}
	opt := Options{Includes: fsList(nil, first, second)}
	tests := []struct{ name, text, want string }{
		{"order and once", "#include <a.h>\n#include \"a.h\"\n", "first_a"},
		{"beside the includer", "#include <dir/b.h>", "dir_c top_c first_a"},
		{"same file system first", "#include <only.h>", "second_a first_a"},
		{"macro", "#define H <dir/c.h>\n#include H", "dir_c"},
		{"cleaned", "#include \"x/../dir/./c.h\"", "dir_c"},
		{"left out", "#if 0\n#include <none>\n#endif\n1", "1"},
		{"its own groups", "#include \"open.h\"\n#endif",
			"open.h:1:2: #if without #endif\nprogram.cl:2:2: #endif without #if"},
		{"call ends with file", "#define f(a,b) a b\n#include \"call.h\"\n2)", "call.h:1:1: call of macro f has no )"},
		{"folder", "#include \"folder\"", "program.cl:1:10: #include \"folder\": read folder: invalid argument"},
		{"in arguments", "#define f(a) a\nf(\n#include \"a.h\"\n)",
			"program.cl:3:1: #include inside the arguments of a macro"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, expand(test.text, opt))
		})
	}
	opt.Name = "main/k.cl"
	assert.Equal(t, "beside_main", expand("#include \"d.h\"", opt))
	assert.Contains(t, expand("#include \"up.h\"", opt), "main/up.h:1:10: #include \"../../c.h\": leads out")

	res, err := preprocessed("#include <dir/b.h>\n#include <dir/b.h>", opt)
	require.NoError(t, err)
	var names []string
	for _, f := range res.Files {
		names = append(names, f.Name)
	}
	assert.Equal(t, []string{"dir/b.h", "dir/c.h", "c.h", "a.h"}, names)
	assert.Equal(t, "dir_c\n", res.Files[1].Text)
}

// brokenFS is a file system whose errors are not fs.ErrNotExist.
type brokenFS struct{}

func (brokenFS) Open(string) (fs.File, error) { return nil, errors.New("disk on fire") }

func TestIncludeFailure(t *testing.T) {
	assert.Equal(t, "program.cl:1:10: #include <a.h>: disk on fire",
		expand("#include <a.h>", Options{Includes: fsList(brokenFS{})}))
}
