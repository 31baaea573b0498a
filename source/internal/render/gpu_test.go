package render_test

// Tests of the text of CUDA and HIP renderings, construct by construct, especially of constructs
// that would compile in another form and compute something else. Tests on devices check the
// results.

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/source/internal/render"
)

// programOf returns a rendering without its prelude.
func programOf(t *testing.T, text string, target source.Target) string {
	t.Helper()
	cpp, err := mustParse(t, text, source.Options{
		Name: "a.cl", Features: &source.Features{FP64: true, FP16: true, Int64Atomic: true, Subgroups: true}}).Render(target)
	require.NoError(t, err)
	_, program, ok := strings.Cut(cpp, "# 1 \"concord/program\"\n")
	require.True(t, ok)
	return program
}

const bigTable = `constant int big[16000] = {1}; constant int small[4] = {1, 2, 3, 4};
kernel void k(global int *o) { o[0] = big[1] + small[o[1]]; }`

// gpuSays lists programs with texts that their renderings must contain, and texts that they must
// not contain.
var gpuSays = []struct {
	name, text string
	has, not   []string
}{
	{"vector literal", "kernel void k(global float4 *o) { o[0] = (float4)(1, 2, 3, 4); }",
		[]string{"= cc_make<cc_float4>(1.0f, 2.0f, 3.0f, 4.0f)"}, nil},
	{"sums with dot products of bytes", `kernel void k(global int *o, int n, uint u, volatile global int *v) {
  n += dot_4x8packed_ss_int(u, 1);
  o[n] += (dot_4x8packed_us_int(u, 2));
  o[1] = dot_4x8packed_su_int(u, 3) + n;
  u += dot_4x8packed_uu_uint(u, 4) + dot_4x8packed_uu_uint(u, 5);
  u += dot_4x8packed_ss_int(u, 6);
  o[n++] += dot_4x8packed_ss_int(u, 7);
  v[0] += dot_4x8packed_ss_int(u, 8);
  o[2] -= dot_4x8packed_ss_int(u, 9) - n; }`,
		[]string{"u_n = cc_dot_add_4x8packed_ss_int(u_u, 1u, u_n);",
			"u_o[u_n] = cc_dot_add_4x8packed_us_int(u_u, 2u, u_o[u_n]);",
			"u_o[1] = cc_dot_add_4x8packed_su_int(u_u, 3u, u_n);", "u_u += cc_dot_add_4x8packed_uu_uint(u_u, 5u, " +
				"cc_dot_4x8packed_uu_uint(u_u, 4u));"},
		[]string{"add_4x8packed_ss_int(u_u, 6u", "add_4x8packed_ss_int(u_u, 7u", "add_4x8packed_ss_int(u_u, 8u",
			"add_4x8packed_ss_int(u_u, 9u"}},
	{"shift by a variable", "kernel void k(global int *o, int n) { o[0] = o[1] << n; o[2] = o[3] << 4; }",
		[]string{"cc_shl(u_o[1], u_n)", "u_o[3] << 4"}, []string{"<< u_n"}},
	{"float3", "kernel void k(global float3 *o, float3 v) { o[0] = v; }",
		[]string{"cc_float3 *cc_p0, cc_float3 cc_p1"}, nil},
	{"pow of an int", "kernel void k(global float *o, int n) { o[0] = pow(o[1], n); }",
		[]string{"cc_pow(u_o[1], ((cc_float)(u_n)))"}, nil},
	{"comparison", "kernel void k(global int *o, int n) { o[0] = (n < 3) + 1; }",
		[]string{"(cc_int(u_n < 3)) + 1"}, nil},
	{"unsigned maximum", "kernel void k(global uint *o, int n) { o[0] = max(o[1], (uint)n); }",
		[]string{"cc_max(u_o[1], ((cc_uint)(u_n)))"}, nil},
	{
		"local variable",
		"kernel void k(global float *o) { local float t[8]; local float *p = t; p[0] = o[0]; o[1] = t[0]; }",
		[]string{"struct cc_locals_k { alignas(32) cc_float u_t[8]; };", "__shared__ cc_locals_k cc_l;",
			"cc_float *u_p = cc_l.u_t;"}, []string{"__shared__ cc_float"}},
	{"local parameter", "kernel void k(global float *o, local float *a, int n, local int4 *const b) { a[n] = o[0]; " +
		"b[0].x = 1; }",
		[]string{"void cc_kernel_k(cc_float *cc_p0, cc_uint cc_p1, cc_int cc_p2, cc_uint cc_p3) { " +
			"cc_program::k_k(cc_p0, (cc_float *)(cc_dynamic + cc_p1), cc_p2, (cc_int4 *)(cc_dynamic + cc_p3)); }"}, nil},
	{"locals of two kernels", "kernel void a(global int *o) { local int t; t = 1; o[0] = t; } kernel void b(global int " +
		"*o) { local int t; t = 2; o[0] = t; }",
		[]string{"__shared__ cc_locals_a cc_l;", "__shared__ cc_locals_b cc_l;"}, nil},
	{"kernel calls kernel", "kernel void a(global int *o) { local int t; t = 1; o[0] = t; } kernel void b(global int " +
		"*o) { a(o); }",
		[]string{"void k_a(cc_int *u_o) { __shared__ cc_locals_a cc_l; kc_a(cc_l, u_o); }",
			"struct cc_locals_b { cc_locals_a cc_sub_a; };",
			"kc_a(cc_l.cc_sub_a, u_o);", "void cc_kernel_a(", "void cc_kernel_b("}, nil},
	{"group size", "kernel __attribute__((reqd_work_group_size(8, 4, 2))) void k(global int *o) { o[0] = 1; }",
		[]string{"extern \"C\" __global__ __launch_bounds__(64) void cc_kernel_k(cc_int *cc_p0)"}, nil},
	{"functions", "int f(int a) { return a; } kernel void k(global int *o) { o[0] = f(1); }",
		[]string{"static CC_FN cc_int u_f(cc_int u_a)", "static CC_INLINE void k_k(cc_int *u_o)"}, nil},
	{"restrict", "kernel void k(global const float *restrict a, constant int *b, global float *o) { o[0] = a[0] + b[0]; }",
		[]string{"cc_kernel_k(const cc_float * __restrict cc_p0, const cc_int *cc_p1, cc_float *cc_p2)"}, nil},
	{"a small and a big constant", bigTable,
		[]string{"static __device__ const cc_int u_big[16000]", "static __constant__ const cc_int u_small[4]"}, nil},
	{"a constant that another points to", "constant int t[2] = {1, 2}; constant int *constant p = t + 1; kernel void " +
		"k(global int *o) { o[0] = p[0]; }",
		[]string{"static __device__ const cc_int u_t[2] = {1, 2};",
			"static __constant__ const cc_int * const u_p = u_t + 1;"}, nil},
	{"vectors among constants", "constant float4 a = (float4)(1, 2, 3, 4); constant float4 b = a.wzyx * 2; constant " +
		"int4 c = as_int4((float4)(1.0f)); kernel void k(global float4 *o) { o[0] = b + a; o[1].x = c.y; }",
		[]string{"u_a = cc_float4{{1.0f, 2.0f, 3.0f, 4.0f}};", "u_b = cc_float4{{8.0f, 6.0f, 4.0f, 2.0f}};",
			"u_c = cc_int4{{1065353216, 1065353216, 1065353216, 1065353216}};"}, nil},
	{"constants of constants", "constant int t[3] = {1, 2}; constant struct { int a; float b; } s = {.b = 2}; constant " +
		"float x = t[1] + s.b; constant int z = t[2] - s.a - 1; kernel void k(global float *o) { o[0] = x + z; }",
		[]string{"u_x = 4.0f;", "u_z = (-1);"}, nil},
	{"special constants", "constant float i = INFINITY, n = NAN, m = -INFINITY; constant double d = HUGE_VAL; constant " +
		"float f = as_float(0x40490fdb); kernel void k(global float *o) { o[0] = i + n + m + d + f + INFINITY; }",
		[]string{"u_i = CC_INFINITY_INIT;", "u_n = CC_NAN_INIT;", "u_m = -CC_INFINITY_INIT;", "u_d = CC_INFINITY_INIT;",
			"u_f = 3.1415927f;", "+ CC_INFINITY)"}, nil},
	{"half constants", "constant half h[3] = {1.5h, 2.0f, -0.1h}; kernel void k(global half *o) { o[0] = h[1] * 2.0h; }",
		[]string{"{cc_half(cc_half_bits{15872}), cc_half(cc_half_bits{16384}), cc_half(cc_half_bits{44646})}",
			"* cc_half(cc_half_bits{16384})"}, nil},
	{"a union's second member among constants", "union U { int i; float f; }; constant struct { union U u; } s = {{.f = " +
		"1.0f}}; kernel void k(global float *o) { o[0] = s.u.f; }",
		[]string{"u_s[1] = {1065353216u};", "(*(const t_anonymous *)u_s).u_u.u_f"}, []string{"[&]"}},
	{"a union of bytes", "union U { float4 v; int a[4]; }; constant union U u = {.a = {1, 2}}; kernel void k(global int " +
		"*o) { o[0] = u.a[1]; }",
		[]string{"alignas(16) static __constant__ const cc_ulong u_u[2] = {cc_ulong(8589934593ULL), cc_ulong(0ULL)};",
			"(*(const t_U *)u_u).u_a[1]"}, nil},
	{"bits of a NaN", "constant float4 v = (float4)(1, as_float(0xffc12345u), 3, NAN); kernel void k(global float4 *o) " +
		"{ o[0] = v; }",
		[]string{"alignas(16) static __constant__ const cc_ulong u_v[2] = {cc_ulong(", "u_o[0] = (*(const cc_float4 *)u_v);"},
		nil},
	{"an aligned constant", "typedef float a16 __attribute__((aligned(16))); constant a16 c = 2.0f; kernel void " +
		"k(global float *o) { o[0] = c; }",
		[]string{"alignas(16) static __constant__ const cc_float u_c = 2.0f;"}, nil},
	{"unroll", "kernel void k(global int *o) {\n#pragma unroll 4\nfor (int i = 0; i < 8; i++) o[i] = i; }",
		[]string{"_Pragma(\"unroll 4\") for ("}, nil},
	{"unroll by no number", "kernel void k(global int *o, int n) {\n#pragma unroll n\nwhile (o[0]) o[0] = 0; }",
		[]string{"while (u_o[0])"}, []string{"_Pragma"}},
	{"strided copies", "kernel void k(global int *o, local int *l) { event_t e = async_work_group_strided_copy(l, o, 4, " +
		"2, 0); e = async_work_group_strided_copy(o, (const local int *)l, 4, 2, e); wait_group_events(1, &e); }",
		[]string{"cc_strided_to_local(u_l, u_o,", "cc_strided_to_global(u_o,", "cc_wait_group_events(1, &u_e, 1)"}, nil},
	{
		"printf",
		`kernel void k(global float4 *o, long l, char c) { printf("%d %5.1v4f %s?\n" "%lx%%%hhd", c, o[0], "a\"b", l, c); }`,
		[]string{`printf("%d %5.1f,%5.1f,%5.1f,%5.1f %s\077\n%llx%%%d"`, "(double)cc_a1.v[0], (double)cc_a1.v[1], " +
			"(double)cc_a1.v[2], (double)cc_a1.v[3]",
			"const char *cc_a2 = \"a\\\"b\";", "(unsigned long long)cc_a3", "(int)(signed char)cc_a4"}, nil},
	{"a format that is none", `kernel void k(global int *o) { o[0] = printf("%d %v5d\n", o[1]); }`, []string{"-1"},
		[]string{"printf(\"%d"}},
	{"a long printf", `kernel void k(float16 a, float16 b, float4 c) { printf("%v16f %v16f %v4f\n", a, b, c); }`,
		[]string{`cc_printed(printf("%f,%f,`, `cc_printed(printf("%f,%f,%f,%f\n", (double)cc_a2.v[0]`}, nil},
	{"order of evaluation", "int f(int a, int b) { return a - b; } kernel void k(global int *o) { int i = 0; o[0] = " +
		"f(i++, i++); }",
		[]string{"auto cc_a0 = u_i++; auto cc_a1 = u_i++; "}, []string{"u_f(u_i++"}},
	{"volatile vector", "kernel void k(global volatile float4 *o) { o[0] = o[1]; }",
		[]string{"cc_store(u_o[0], cc_load(u_o[1]))"}, nil},
	{"volatile half", "kernel void k(global volatile half *o) { o[0] = o[1]; o[2]++; o[3] *= 2.0f; }",
		[]string{"cc_store(u_o[0], cc_load(u_o[1]))", "cc_was = cc_load(cc_o)", "cc_store(cc_o, cc_r)"}, nil},
	{"packed", "typedef struct __attribute__((packed)) { char c; float4 v; } P; kernel void k(global P *p) { p[0].v += " +
		"p[1].v; }",
		[]string{"static_assert(sizeof(t_anonymous) == 17", "CC_COPY(cc_p, &cc_t, sizeof cc_t)"}, nil},
	{
		"goto past an initializer",
		"kernel void k(global int *o) { if (o[0]) goto end; int a = 3; o[1] = a; end: o[2] = 1; }",
		[]string{"cc_int u_a; u_a = 3;"}, []string{"cc_int u_a = 3"}},
	{"compound literal", "typedef struct { int a, b; } S; int f(S s) { return s.b; } kernel void k(global int *o) { " +
		"o[0] = f((S){.b = 3}); }",
		[]string{"cc_c0.u_b = 3, cc_c0)"}, []string{".u_b = 3}"}},
	{"sub-groups", "kernel void k(global int *o) { o[0] = sub_group_reduce_add(o[1]) + sub_group_shuffle_xor(o[2], 1) + " +
		"get_sub_group_size(); sub_group_barrier(CLK_LOCAL_MEM_FENCE); }",
		[]string{"cc_sub_group_reduce_add(u_o[1])", "cc_sub_group_shuffle_xor(u_o[2], 1u)", "cc_get_sub_group_size()",
			"cc_sub_group_barrier(CC_LOCAL_MEM_FENCE)"}, nil},
	{"names of C", "kernel void main(global int *printf, int threadIdx) { printf[0] = threadIdx; }",
		[]string{"void cc_kernel_main(cc_int *cc_p0, cc_int cc_p1) { cc_program::k_main(cc_p0, cc_p1); }",
			"u_printf[0] = u_threadIdx;"}, nil},
	{"lines", "\n\n\nkernel void k(global int *o) {\n\n\n\n\n\no[0] = 1; }",
		[]string{"#line 4 \"a.cl\"\nstatic CC_INLINE void k_k(", "#line 10 \"a.cl\"\nu_o[0] = 1;"}, nil},
}

func TestGPURenderings(t *testing.T) {
	for _, c := range gpuSays {
		for _, target := range []source.Target{source.CUDA, source.HIP} {
			t.Run(target.String()+"/"+c.name, func(t *testing.T) {
				got := programOf(t, c.text, target)
				for _, s := range c.has {
					assert.Contains(t, got, s)
				}
				for _, s := range append(c.not, "CC_KERNEL(", "__builtin_") {
					assert.NotContains(t, got, s)
				}
			})
		}
	}
}

// NVRTC has none of GNU's extensions, so CUDA renderings must not use them.
func TestCUDAHasNoExtensions(t *testing.T) {
	text := `struct Empty { };
kernel void k(global int *o) {
  struct Empty e;
  int a = o[0] ?: 7;
  int b = ({ int c = a; c++; c * 2; });
  switch (b) { case 1 ... 3: o[1] = 1; break; case 9: o[2] = 2; }
  o[3] = a + b + max(o[4]++, o[5]++);
}`
	hip := programOf(t, text, source.HIP)
	assert.Contains(t, hip, "case 1 ... 3: ")
	assert.Contains(t, hip, " ?: ")
	assert.Contains(t, hip, "({ ")
	cuda := programOf(t, text, source.CUDA)
	for _, s := range []string{"({", "?:", "...", "cc_empty"} {
		assert.NotContains(t, cuda, s)
	}
	assert.Contains(t, cuda, "case 1: case 2: case 3: ")
	assert.Contains(t, cuda, "[&] { auto cc_e = u_o[0]; return cc_e ? (cc_int)(cc_e) : (cc_int)(7); }()")
	assert.Contains(t, cuda, "return u_c * 2;")
}

// Errors about features that a target does not have include the position.
func TestUnsupported(t *testing.T) {
	for _, c := range []struct {
		name, text, place string
		target            source.Target
	}{
		{"jump out of a statement expression", "kernel void k(global int *o) {\n  int a = ({ if (o[0]) return; o[1]; });\n}",
			"a.cl:2:24", source.CUDA},
		{"break out of a statement expression", "kernel void k(global int *o) {\n  for (;;) { int a = ({ if (o[0]) break; " +
			"o[1]; }); }\n}", "a.cl:2:35", source.CUDA},
		{"a long range of cases", "kernel void k(global int *o) {\n  switch (o[0]) { case 1 ... 100000: o[1] = 1; }\n}",
			"a.cl:2:19", source.CUDA},
		{"sub-group on the host", "kernel void k(global int *o) {\n  o[0] = sub_group_all(o[1]);\n}", "a.cl:2:10",
			source.Host},
		{"a union beside a pointer", "union U { int i; float f; }; constant int t = 1;\nconstant struct { union U u; " +
			"constant int *p; } s = {{.f = 1.0f}, &t}; kernel void k(global int *o) { o[0] = *s.p; }", "a.cl:2:67", source.HIP},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := mustParse(t, c.text, source.Options{
				Name: "a.cl", Features: &source.Features{FP64: true, Subgroups: true}}).Render(c.target)
			require.ErrorIs(t, err, source.ErrUnsupported)
			var list source.ErrorList
			require.True(t, errors.As(err, &list))
			assert.Equal(t, c.place, list[0].Pos.String())
			assert.NotErrorIs(t, err, source.ErrTarget)
		})
	}
}

// A jump that stays inside of a statement expression is allowed.
func TestStatementExpressionLoops(t *testing.T) {
	got := programOf(t, "kernel void k(global int *o) { o[0] = ({ int s = 0; for (int i = 0; i < 4; i++) { if (i == 2) "+
		"continue; switch (i) { case 1: break; } s += i; } s; }); }", source.CUDA)
	assert.Contains(t, got, "return u_s; }()")
}

func TestSubgroupsNeedTheFeature(t *testing.T) {
	for _, call := range []string{"sub_group_all(1)", "get_sub_group_size()", "get_num_sub_groups()"} {
		text := "kernel void k(global int *o) { o[0] = " + call + "; }"
		_, err := source.Parse(text, source.Options{})
		var list source.ErrorList
		require.True(t, errors.As(err, &list), call)
		assert.Equal(t, 39, list[0].Pos.Col)
		u := mustParse(t, text, source.Options{Features: &source.Features{Subgroups: true}})
		cl, err := u.Render(source.OpenCL)
		require.NoError(t, err)
		assert.Contains(t, cl, call)
	}
	text := "#if defined(cl_khr_subgroups) && defined(cl_khr_subgroup_shuffle)\nint yes;\n#endif"
	_, err := source.Parse(text, source.Options{Features: &source.Features{Subgroups: true}})
	assert.ErrorContains(t, err, "'yes' must be constant")
	mustParse(t, text, source.Options{})
}

func TestFastFMA(t *testing.T) {
	text := "#ifdef FP_FAST_FMAF\n#ifdef FP_FAST_FMA\n#define A 2\n#else\n#define A 1\n#endif\n#else\n#define A " +
		"0\n#endif\nkernel void k(global int *o) { o[0] = A; }"
	for want, f := range []source.Features{{FP64: true}, {FastFMA: true}, {FP64: true, FastFMA: true}} {
		cpp, err := mustParse(t, text, source.Options{Features: &f}).Render(source.CUDA)
		require.NoError(t, err)
		assert.Contains(t, cpp, "u_o[0] = "+strconv.Itoa(want)+";")
	}
}

// The renderings of all stress programs, and of calls of every function of the prelude, are C++
// that uses only those parts of CUDA and HIP that prelude/cuda.h lists.
func TestGPUCompiles(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles C++")
	}
	cxx, err := exec.LookPath("g++")
	if err != nil {
		t.Skipf("no C++ compiler here: %v", err)
	}
	standin, err := filepath.Abs("testdata/gpu_standin.h")
	require.NoError(t, err)
	files, err := filepath.Glob("../../../internal/verify/stress/programs/*.cl")
	require.NoError(t, err)
	files = append(files, "testdata/gpu/subgroups.cl")
	for _, target := range []source.Target{source.CUDA, source.HIP} {
		t.Run(target.String(), func(t *testing.T) {
			var text strings.Builder
			text.WriteString(render.WholePrelude(target))
			inNamespace := func(i int, program string) {
				program = strings.ReplaceAll(program, "extern \"C\" ", "")
				text.WriteString("\nnamespace n" + strconv.Itoa(i) + " {\n" + program + "\n}\n")
			}
			program, _ := tableProgram(target, builtinNames(target), false)
			inNamespace(0, program)
			for i, file := range files {
				p := readStress(t, file)
				inNamespace(i+1, programOf(t, p.text, target))
			}
			src := filepath.Join(t.TempDir(), "all.cc")
			require.NoError(t, os.WriteFile(src, []byte(text.String()), 0o644))
			cmd := exec.Command(cxx, "-std=c++17", "-fsyntax-only", "-w", "-D_GNU_SOURCE", "-include", standin, src)
			out, err := cmd.CombinedOutput()
			assert.NoError(t, err, "%s", head(out))
		})
	}
}

// What a constant's ?: without a middle operand takes grows with its length, and not with two to the power of
// its depth.
func TestNestedChoicesOfConstants(t *testing.T) {
	first := "((int2)(0, 1)).x"
	for range 60 {
		first = "(" + first + " ?: 0)"
	}
	text := "constant int q = " + first + " ?: 7;\nkernel void f(global int *o) { o[0] = q; }"
	assert.Contains(t, programOf(t, text, source.CUDA), "7")
}
