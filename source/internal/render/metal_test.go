package render_test

// Tests of the text of Metal renderings, construct by construct, of the programs that are refused,
// and of the prelude, which has to have every form of every built-in for every address space.

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/source/internal/builtins"
	"github.com/concord-compute/concord/source/internal/tree"
)

const metalIDArguments = "uint3 cc_i0 [[thread_position_in_threadgroup]], uint3 cc_i1 [[threads_per_threadgroup]], " +
	"uint3 cc_i2 [[threadgroup_position_in_grid]], uint3 cc_i3 [[threadgroups_per_grid]]"

var metalSays = []struct {
	name, text string
	has, not   []string
}{
	{"arguments", "kernel void k(global float *a, float b, constant int *c, local int *d, int4 e, const global uchar " +
		"*f) { a[0] = b; }",
		[]string{"kernel void cc_kernel_k(device cc_float *cc_p0 [[buffer(0)]], constant cc_float &cc_p1 [[buffer(1)]], " +
			"constant cc_int *cc_p2 [[buffer(2)]], threadgroup cc_int *cc_p3 [[threadgroup(0)]], constant cc_int4 &cc_p4 " +
			"[[buffer(3)]], " +
			"device const cc_uchar *cc_p5 [[buffer(4)]], " + metalIDArguments + ") {",
			"cc_program cc_it = {cc_i0, cc_i1, cc_i2, cc_i3}; cc_it.k_k((device cc_float *)cc_p0, cc_p1, (constant cc_int " +
				"*)cc_p2, " +
				"(threadgroup cc_int *)cc_p3, cc_get(cc_p4), (device const cc_uchar *)cc_p5); }"}, nil},
	{"void pointers", "kernel void k(global void *p) { *(global int *)p = 1; }",
		[]string{"device cc_uchar *cc_p0 [[buffer(0)]]", "cc_it.k_k((device void *)cc_p0)", "*((device cc_int *)(u_p)) = 1;"},
		nil},
	{"pointers to pointers", "int f(int *const *p, global int **q, constant int *r) { return **p + **q + r[0]; } " +
		"kernel void k(global int *o, constant int *c) { int i = 1; int *const p = &i; global int *q = o; o[0] = f(&p, " +
		"&q, c); }",
		[]string{"cc_int u_f(thread cc_int * thread const*u_p, device cc_int * thread*u_q, constant cc_int *u_r)",
			"thread cc_int * const u_p = &u_i;"}, nil},
	{"pointers to arrays", "int f(int (*p)[4], local int (*q)[2]) { return p[0][1] + q[1][0]; } kernel void k(global " +
		"int *o) { local int t[2][2]; int a[1][4]; a[0][1] = 2; t[1][0] = 3; o[0] = f(a, t); }",
		[]string{"cc_int u_f(thread cc_int (*u_p)[4], threadgroup cc_int (*u_q)[2])", "u_f(u_a, cc_l.u_t)"}, nil},
	{"fields", "struct S { global float *p; float *q; int n; }; kernel void k(global float *o) { float x = 1; struct S " +
		"s = {o, &x, 2}; s.p[0] = *s.q + s.n; }",
		[]string{"device cc_float *u_p; thread cc_float *u_q; cc_int u_n;"}, nil},
	{"local memory", "kernel void k(global float *o) { local float t[8]; local float *p = t; p[0] = o[0]; o[1] = t[0]; }",
		[]string{"struct cc_locals_k { alignas(32) cc_float u_t[8]; };", "void kc_k(threadgroup cc_locals_k &cc_l, device " +
			"cc_float *u_o)",
			"threadgroup cc_float *u_p = cc_l.u_t;", "alignas(128) threadgroup cc_uchar cc_m[sizeof(cc_locals_k)];",
			"cc_it.kc_k(*(threadgroup cc_locals_k *)cc_m, (device cc_float *)cc_p0)"}, nil},
	{"kernel calls kernel", "kernel void a(global int *o) { local int t; t = 1; o[0] = t; } kernel void b(global int " +
		"*o) { a(o); }",
		[]string{"struct cc_locals_b { cc_locals_a cc_sub_a; };", "kc_a(cc_l.cc_sub_a, u_o);", "kernel void cc_kernel_a(",
			"kernel void cc_kernel_b("}, nil},
	{"vectors in memory", "kernel void k(global float4 *o, float4 v) { o[0] = o[1] + v; o[2] += v; o[3].xz = v.yw; " +
		"o[4].w = 1; }",
		[]string{"cc_put(u_o[0], cc_get(u_o[1]) + u_v);", "u_o[2] += u_v;", "cc_ref<0,2>(u_o[3]) = cc_swz<1,3>(u_v);",
			"u_o[4].v[3] = 1.0f;"}, nil},
	{"structs in memory", "typedef struct { int a; float4 v; } S; int f(S s) { return s.a; } kernel void k(global S *p, " +
		"local S *l) { l[0] = p[0]; p[1] = l[0]; p[0].a = f(p[1]); S *none = 0; }",
		[]string{"cc_put(u_l[0], cc_get(u_p[0]));", "cc_put(u_p[1], cc_get(u_l[0]));", "u_p[0].u_a = u_f(cc_get(u_p[1]));",
			"thread t_anonymous *u_none"}, nil},
	{"constants", "constant float4 a = (float4)(1, 2, 3, 4); constant int t[2] = {1, 2}; constant int *constant p = t + " +
		"1; kernel void k(global float4 *o) { o[0] = a * p[0]; }",
		[]string{"constant cc_float4 u_a = {{1.0f, 2.0f, 3.0f, 4.0f}};", "constant cc_int u_t[2] = {1, 2};",
			"constant cc_int * constant u_p = u_t + 1;", "cc_get(u_a)"},
		[]string{"__constant__", "const cc_float4"}},
	{"halves", "constant half h = 0.1h; kernel void k(global half *o) { o[0] = h * 2.0h; o[1]++; o[2] *= 2.0f; }",
		[]string{"u_h = cc_half(0.099975586f)", "u_o[1]++;", "u_o[2] *= 2.0f;"}, []string{"cc_half_bits", "[&]"}},
	{"wide literals", "kernel void k(global ulong *o, long n) { o[0] = 5000000000 + n; o[1] = 0xffffffffffffffffUL; }",
		[]string{"cc_long(5000000000L)", "cc_ulong(18446744073709551615UL)"}, []string{"LL"}},
	{"order of evaluation", "int f(int a, int b) { return a - b; } kernel void k(global int *o) { int i = 0; o[0] = " +
		"f(i++, i++); }",
		[]string{"({ auto cc_a0 = u_i++; auto cc_a1 = u_i++; u_f(cc_a0, cc_a1); })"}, []string{"[&]"}},
	{"group size", "kernel __attribute__((reqd_work_group_size(8, 4, 2))) void k(global int *o) { o[0] = 1; }",
		[]string{"[[max_total_threads_per_threadgroup(64)]] kernel void cc_kernel_k("}, nil},
	{"strided copies", "kernel void k(global int *o, local int *l) { event_t e = async_work_group_strided_copy(l, o, 4, " +
		"2, 0); e = async_work_group_strided_copy(o, (const local int *)l, 4, 2, e); wait_group_events(1, &e); }",
		[]string{"cc_strided_to_local(u_l, u_o,", "cc_strided_to_global(u_o,", "cc_wait_group_events(1, &u_e, 1)"}, nil},
	{
		"strings",
		`constant char *constant s = "ab"; kernel void k(global char *o) { constant char *t = "cd"; o[0] = s[0] + t[1]; }`,
		[]string{`((constant cc_char *)"ab")`}, []string{"const cc_char *)"}},
	{"sub-groups", "kernel void k(global int *o) { o[0] = sub_group_reduce_add(o[1]) + get_sub_group_size(); }",
		[]string{"cc_sub_group_reduce_add(u_o[1])", "[[thread_index_in_simdgroup]], uint cc_i5 " +
			"[[simdgroup_index_in_threadgroup]], uint cc_i6 [[threads_per_simdgroup]], " +
			"uint cc_i7 [[simdgroups_per_threadgroup]]"}, nil},
	{"names of Metal", "int device(int thread) { return thread; } kernel void main(global int *texture, int sampler) { " +
		"int vertex = device(sampler), threadgroup = 2; texture[0] = vertex + threadgroup; }",
		[]string{"kernel void cc_kernel_main(", "cc_int u_device(cc_int u_thread)"}, nil},
	{"lines", "\n\n\nkernel void k(global int *o) {\n\n\n\n\n\no[0] = 1; }",
		[]string{"#line 4 \"a.cl\"\nvoid k_k(", "#line 10 \"a.cl\"\nu_o[0] = 1;"}, nil},
}

// spaceless matches a pointer or reference to a type of the prelude or the program without an
// address space.
var spaceless = regexp.MustCompile(`(^|[(,;{])\s*(const |volatile )*(cc_[a-z0-9]+|t_\w+) [*&]`)

func TestMetalRenderings(t *testing.T) {
	features := source.MetalFeatures
	features.Subgroups = true
	for _, c := range metalSays {
		t.Run(c.name, func(t *testing.T) {
			text, err := mustParse(t, c.text, source.Options{Name: "a.cl", Features: &features}).Render(source.Metal)
			require.NoError(t, err)
			got := text[strings.LastIndex(text, "# 1 \"concord/program\"\n"):]
			for _, s := range c.has {
				assert.Contains(t, text, s)
			}
			for _, s := range append(c.not, "double", "__builtin_", "namespace", "static_cast", "[&]", "__restrict") {
				assert.NotContains(t, got, s)
			}
			for _, m := range spaceless.FindAllString(got, -1) {
				assert.Contains(t, []string{}, m, "no address space")
			}
		})
	}
}

// The values of a kernel with more parameters than Metal has buffers become one struct.
func TestMetalManyParameters(t *testing.T) {
	list := func(n int, one string) string {
		var s []string
		for i := range n {
			s = append(s, fmt.Sprintf(one, i))
		}
		return strings.Join(s, ", ")
	}
	render := func(params string) (string, error) {
		return mustParse(t, "kernel void k("+params+") { p0[0] = 1; }",
			source.Options{Name: "a.cl", Features: &source.MetalFeatures}).Render(source.Metal)
	}
	got, err := render(list(2, "global int *p%d") + ", local int *l, " + list(30, "float v%d"))
	require.NoError(t, err)
	assert.Contains(t, got, "struct cc_args_k { cc_float cc_p3; cc_float cc_p4; ")
	assert.Contains(t, got, "constant cc_args_k &cc_v [[buffer(2)]], uint3")
	assert.Contains(t, got, "(threadgroup cc_int *)cc_p2, cc_v.cc_p3, cc_v.cc_p4")
	got, err = render(list(2, "global int *p%d") + ", " + list(29, "float v%d"))
	require.NoError(t, err)
	assert.Contains(t, got, "constant cc_float &cc_p30 [[buffer(30)]]")
	_, err = render(list(31, "global int *p%d"))
	assert.NoError(t, err)
	for _, params := range []string{list(32, "global int *p%d"), list(31, "global int *p%d") + ", int n",
		"global int *p0, " + list(32, "local int *l%d")} {
		_, err = render(params)
		require.ErrorIs(t, err, source.ErrUnsupported)
		assert.Contains(t, err.Error(), "a.cl:1:13: kernel 'k' has")
	}
}

// Features that Metal does not have are refused, also in programs whose Features include them.
func TestMetalRefuses(t *testing.T) {
	for _, c := range []struct{ text, place, says string }{
		{"kernel void k(global float *o) {\n  o[0] = (double)o[1] * 2.0;\n}", "a.cl:2:", "double"},
		{"kernel void k(global double *o) { o[0] = 1; }", "a.cl:1:", "double"},
		{"struct S { double d; };\nkernel void k(global struct S *o) { o[0].d = 1; }", "a.cl:1:", "double"},
		{"kernel void k(global long *o) {\n  atom_add(o, 1L);\n}", "a.cl:2:3", "'atom_add'"},
		{"kernel void k(global int *o) {\n  printf(\"%d\", o[0]);\n}", "a.cl:2:3", "printf"},
		{"kernel void k(global int *o) {\n  if (o[0]) goto end;\n  o[1] = 1;\nend: o[2] = 1;\n}", "a.cl:2:13", "goto"},
	} {
		_, err := mustParse(t, c.text, source.Options{
			Name: "a.cl", Features: &source.Features{FP64: true, Int64Atomic: true}}).Render(source.Metal)
		require.ErrorIs(t, err, source.ErrUnsupported, c.text)
		var list source.ErrorList
		require.True(t, errors.As(err, &list))
		assert.True(t, strings.HasPrefix(list[0].Pos.String(), c.place), "%v", err)
		assert.Contains(t, list[0].Error(), c.says)
	}
}

// metalCall returns a statement that calls one form of a built-in with pointers into one address
// space.
func metalCall(b *builtins.Func, f *builtins.Form, g builtins.Type, space source.Space) string {
	memory := map[source.Space]string{source.Global: "g", source.Constant: "c", source.Local: "l", source.Private: "p"}
	var args []string
	async := strings.HasPrefix(b.Name, "async")
	for i, s := range f.Params {
		a := s.Of(g, builtins.Type{Kind: source.UInt, Width: 4})
		name := clName(a)
		switch {
		case s.Sym == 'e' && s.Ptr:
			args = append(args, "&e")
			continue
		case s.Sym == 'e':
			args = append(args, "e")
			continue
		case !a.Ptr:
			args = append(args, fmt.Sprintf("*(global %s *)g", name))
			continue
		}
		at := space
		if async && i == 0 { // the other side of the copy
			at = source.Local
			if space == source.Local {
				at = source.Global
			}
		}
		args = append(args, fmt.Sprintf("(%s %s *)%s", at, name, memory[at]))
	}
	call := fmt.Sprintf("%s(%s);", b.Name, strings.Join(args, ", "))
	r := f.Result.Of(g, builtins.Type{Kind: source.UInt, Width: 4})
	switch {
	case r.Event:
		return "e = " + call
	case r.None:
		return call
	}
	return fmt.Sprintf("*(global %s *)g = %s", clName(r), call)
}

// metalSpacesOf returns the address spaces that the pointers of a built-in may point into.
func metalSpacesOf(b *builtins.Func, f *builtins.Form) []source.Space {
	pointers := slices.ContainsFunc(f.Params, func(s builtins.Slot) bool { return s.Ptr })
	switch {
	case !pointers, b.Name == "wait_group_events", b.Name == "prefetch":
		return []source.Space{source.Global}
	case b.Atomic, strings.HasPrefix(b.Name, "async"):
		return []source.Space{source.Global, source.Local}
	case strings.HasPrefix(b.Name, "vload"):
		return []source.Space{source.Global, source.Constant, source.Local, source.Private}
	}
	return []source.Space{source.Global, source.Local, source.Private}
}

// Every form of every built-in, for every type but double, in every address space.
func TestMetalOffersAll(t *testing.T) {
	driver := metalDriver(t, "driver")
	widths := []int{1, 3}
	if os.Getenv("CONCORD_STRESS") == "check" {
		widths = []int{1, 2, 3, 4, 8, 16}
	}
	var text strings.Builder
	calls := 0
	for name, b := range builtins.Table() {
		if name == "printf" || name == "vec_step" {
			continue
		}
		for i := range b.Forms {
			f := &b.Forms[i]
			for _, g := range classTypes(f.Class) {
				double := g.Kind == source.Double || b.Atomic && tree.KindSize(g.Kind) == 8 || !slices.Contains(widths, g.Lanes())
				for _, s := range append([]builtins.Slot{f.Result}, f.Params...) {
					double = double || s.Of(g, builtins.Type{Kind: source.UInt, Width: 4}).Kind == source.Double
				}
				if double || g.Kind == source.Bool {
					continue
				}
				for _, space := range metalSpacesOf(b, f) {
					calls++
					fmt.Fprintf(&text, "void f%d(global char *g, constant char *c, local char *l, char *p) { event_t e; %s }\n", calls,
						metalCall(b, f, g, space))
				}
			}
		}
	}
	features := source.MetalFeatures
	features.Subgroups = true
	text.WriteString("kernel void k(global int *o) { o[0] = 1; }\n")
	msl, err := mustParse(t, text.String(), source.Options{Name: "all.cl", Features: &features}).Render(source.Metal)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "all.metal")
	require.NoError(t, os.WriteFile(file, []byte(msl), 0o644))
	out, err := exec.Command(driver, file, "", "1", "1").CombinedOutput()
	require.NoError(t, err, "%s", head(out))
	t.Logf("%d calls", calls)
	assert.Greater(t, calls, 1000)
}

// The simulated compiler refuses the same programs as Metal's. Without that, the tests above would
// prove little.
func TestMetalCompilerIsStrict(t *testing.T) {
	driver := metalDriver(t, "driver")
	dir := t.TempDir()
	compile := func(body string) string {
		file := filepath.Join(dir, "a.metal")
		text := "#include <metal_stdlib>\nusing namespace metal;\nstruct S { int a; };\nint f(device int *p) { return " +
			"p[0]; }\n" + body
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		out, err := exec.Command(driver, file, "", "1", "1").CombinedOutput()
		if err == nil {
			return ""
		}
		require.NotEmpty(t, out)
		return string(out)
	}
	kernel := func(body string) string {
		return "kernel void k(device int *o [[buffer(0)]], constant int &n [[buffer(1)]], threadgroup int *l " +
			"[[threadgroup(0)]], uint i [[thread_position_in_grid]]) {\n" + body + "\n}\n"
	}
	assert.Empty(t, compile(kernel("threadgroup float t[8]; t[i] = sqrt(float(n)); o[i] = f(o) + int(t[0]); "+
		"threadgroup_barrier(mem_flags::mem_threadgroup);")))
	for body, says := range map[string]string{
		"int *p = o;":                             "cannot initialize",
		"threadgroup int *p = o;":                 "cannot initialize",
		"l[0] = f(l);":                            "no matching function",
		"n = 1;":                                  "const",
		"double d = 1;":                           "poisoned",
		"goto end; end: o[0] = 1;":                "poisoned",
		"auto f = [&] { return 1; };":             "lambda",
		"o[0] = int(erf(float(n)));":              "erf",
		"o[0] = atomicAdd(o, 1);":                 "atomicAdd",
		"o[0] = int(metal::precise::rint(1.5f));": "rint",
		"printf(\"x\");":                          "poisoned",
	} {
		assert.Contains(t, compile(kernel(body)), says, body)
	}
	assert.Contains(t, compile("kernel void k(device int *o) { o[0] = 1; }"), "missing attribute")
	assert.Contains(t, compile("kernel void k(device int *o [[buffer(0)]], uint i [[thread_number]]) { o[0] = i; }"),
		"thread_number")
	assert.Contains(t, compile("\n\n"+kernel("nothing;")), "program_source:8:")
}
