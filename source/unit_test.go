package source

import (
	"crypto/sha256"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"io/fs"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func mustParse(t *testing.T, text string, opt Options) *Unit {
	t.Helper()
	u, err := Parse(text, opt)
	require.NoError(t, err)
	return u
}

func TestKernelDescription(t *testing.T) {
	u := mustParse(t, `
typedef struct { char c; float4 v; } S;
void sync() { barrier(CLK_LOCAL_MEM_FENCE); }
kernel __attribute__((reqd_work_group_size(8, 4, 1)))
void a(float x, global const float3 *p, constant S *s, local uchar *l, S v, global void *w, int2 n, volatile global uint *q) { local float t[4]; local double d; sync(); }
kernel void b() { }
`, Options{Name: "d.cl"})
	require.Len(t, u.Kernels(), 2)
	k, ok := u.Kernel("a")
	require.True(t, ok)
	assert.Equal(t, [3]int{8, 4, 1}, k.ReqdLocal)
	assert.True(t, k.Barrier, "through a helper")
	assert.Equal(t, 24, k.LocalBytes)
	assert.Equal(t, Pos{File: "d.cl", Line: 5, Col: 6}, k.Pos)
	want := []Param{
		{Name: "x", Kind: Float, Width: 1, Size: 4, Decl: "float"},
		{Name: "p", Pointer: true, Space: Global, Kind: Float, Width: 3, Size: 16, Const: true,
			Decl: "global const float3 *"},
		{Name: "s", Pointer: true, Space: Constant, Kind: Struct, Width: 1, Size: 32, Const: true, Decl: "constant S *"},
		{Name: "l", Pointer: true, Space: Local, Kind: UChar, Width: 1, Size: 1, Decl: "local uchar *"},
		{Name: "v", Kind: Struct, Width: 1, Size: 32, Decl: "S"},
		{Name: "w", Pointer: true, Space: Global, Kind: Void, Width: 1, Decl: "global void *"},
		{Name: "n", Kind: Int, Width: 2, Size: 8, Decl: "int2"},
		{Name: "q", Pointer: true, Space: Global, Kind: UInt, Width: 1, Size: 4, Decl: "global volatile uint *"},
	}
	assert.Equal(t, want, k.Params)
	b, _ := u.Kernel("b")
	assert.False(t, b.Barrier)
	_, ok = u.Kernel("c")
	assert.False(t, ok)
	assert.Equal(t, "d.cl (a, b)", u.String())
}

func TestHash(t *testing.T) {
	text := "#include \"a.h\"\nkernel void k(global int *o) { o[0] = A + B; }"
	dir := func(h string) []fs.FS { return []fs.FS{fstest.MapFS{"a.h": {Data: []byte(h)}}} }
	base := Options{Defines: []Define{{Name: "B", Value: "2"}}, Includes: dir("#define A 1")}
	h := mustParse(t, text, base).Hash()
	assert.Equal(t, h, mustParse(t, text, base).Hash(), "the same inputs")
	for name, u := range map[string]*Unit{
		"text":    mustParse(t, text+" ", base),
		"define":  mustParse(t, text, Options{Defines: []Define{{Name: "B", Value: "3"}}, Includes: base.Includes}),
		"include": mustParse(t, text, Options{Defines: base.Defines, Includes: dir("#define A 2")}),
		"features": mustParse(t, text, Options{Defines: base.Defines, Includes: base.Includes, Features: &Features{
			FP64: true}}),
		"name": mustParse(t, text, Options{Name: "other.cl", Defines: base.Defines, Includes: base.Includes}),
	} {
		assert.NotEqual(t, h, u.Hash(), name)
	}
	assert.Equal(t, []File{{Name: "a.h", Text: "#define A 1"}}, mustParse(t, text, base).Includes())
}

func TestRenderOpenCL(t *testing.T) {
	text := "kernel void k(global float *x, local int *l) { x[0] = N; }\n"
	u := mustParse(t, text, Options{Name: "a.cl", Defines: []Define{{Name: "N", Value: "3"}}})
	cl, err := u.Render(OpenCL)
	require.NoError(t, err)
	assert.Equal(t, "#pragma OPENCL FP_CONTRACT OFF\n#line 1 \"a.cl\"\n"+text, cl)
	moved, err := u.RenderOffsets()
	require.NoError(t, err)
	assert.Contains(t, moved, "ulong cc_o0")
	assert.NotContains(t, moved, "cc_o1")
	assert.Contains(t, moved, "x[0] = 3;")
	_, err = u.Render(Target(99))
	assert.True(t, errors.Is(err, ErrTarget), "%v", err)
	assert.Contains(t, err.Error(), Target(99).String())
}

// TestHostLines: the C++ compiler's messages carry the portable text's lines.
func TestHostLines(t *testing.T) {
	u := mustParse(t, "\n\n\nkernel void k(global float *x) {\n\n\n\n\n\n  x[0] = 1;\n}\n",
		Options{Name: "dir/\"odd\".cl"})
	cpp, err := u.Render(Host)
	require.NoError(t, err)
	assert.Contains(t, cpp, "#line 4 \"dir/\\\"odd\\\".cl\"\ntemplate <class cc_I> CC_KERNEL_FN void ks_k(")
	assert.Contains(t, cpp, "#line 10 \"dir/\\\"odd\\\".cl\"\nu_x[0] = 1.0f;")
	assert.True(t, strings.HasSuffix(cpp, "CC_PROGRAM_END\n"))
}

// A kernel may have the name of a built-in function and does not hide that function; OpenCL renderings
// give the kernel another name wherever it is declared and called.
func TestKernelNamedLikeBuiltin(t *testing.T) {
	u, err := Parse(`#define LOW(x) clamp(x, LO, 6.0f)
float low(float x) { return LOW(x); }
kernel void (clamp)(global float *x, float lo);
kernel void clamp(global float *x, float lo) { x[0] = clamp(low(x[1]), lo, 5.0f); }
kernel void as_int(global float *x) { clamp(x, 1.0f); }
kernel void plain(global float *x) { int clamp = 1; x[clamp] = 0; }
`, Options{Defines: []Define{{Name: "LO", Value: "2.0f"}}, Features: &Portable})
	require.NoError(t, err)
	assert.True(t, u.Expanded())
	assert.Equal(t, []string{"cc_kernel_clamp", "cc_kernel_as_int", "plain"},
		[]string{u.OpenCLName("clamp"), u.OpenCLName("as_int"), u.OpenCLName("plain")})
	text, err := u.Render(OpenCL)
	require.NoError(t, err)
	offsets, err := u.RenderOffsets()
	require.NoError(t, err)
	for _, s := range []string{text, offsets} {
		assert.Contains(t, s, "return clamp(x, 2.0f, 6.0f)")
		assert.Contains(t, s, "kernel void (cc_kernel_clamp)(")
		assert.Contains(t, s, "= clamp(low(x[1]), lo, 5.0f)")
		assert.Contains(t, s, "kernel void cc_kernel_as_int(")
		assert.Contains(t, s, " cc_kernel_clamp(x, 1.0f")
		assert.Contains(t, s, "int clamp = 1; x[clamp]")
	}
	assert.Contains(t, offsets, "cc_kernel_clamp(x, 1.0f , 0ul )")
	_, err = Parse("kernel void clamp(global int *x) { clamp(x[0], x); }", Options{})
	require.ErrorContains(t, err, "no 'clamp' takes (")
	other, err := Parse("kernel void own(global int *x) { x[0] = clamp(1, 2, 3); }", Options{})
	require.NoError(t, err)
	assert.False(t, other.Expanded())
}

// TestRevision: every source file of the front end is part of the revision.
func TestRevision(t *testing.T) {
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "testdata" {
			return filepath.SkipDir
		}
		if err == nil && !d.IsDir() && slices.Contains([]string{".go", ".h", ".cl"}, filepath.Ext(path)) {
			_, err = self.ReadFile(filepath.ToSlash(path))
		}
		return err
	}))
	assert.Len(t, revision(), len("concord source ")+2*sha256.Size)
}

func TestLoops(t *testing.T) {
	for body, want := range map[string]bool{
		"x[0] = 1;": false, "if (x[0]) x[1] = x[2] ? 3 : sin(4.0f); else return;": false,
		"barrier(CLK_LOCAL_MEM_FENCE);":                false,
		"switch (x[0]) { case 1: x[1] = 2; }":          false,
		"for (int i = 0; i < x[0]; i++) x[i]++;":       true,
		"while (x[0]) x[0]--;":                         true,
		"do x[0]--; while (x[0]);":                     true,
		"again: if (x[0]-- > 0) goto again;":           true,
		"x[0] = count(x[0]);":                          true,
		"if (x[0]) { if (x[1]) while (x[2]) x[2]--; }": true,
	} {
		text := "kernel void k(global int *x) { " + body + " }"
		if strings.Contains(body, "count") {
			text = "int count(int n) { int s = 0; for (int i = 0; i < n; i++) s += i; return s; }\n" + text
		}
		u, err := Parse(text, Options{Name: "loops.cl"})
		require.NoError(t, err, text)
		assert.Equal(t, want, u.Loops(), text)
	}
}
