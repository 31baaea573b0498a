//go:build cgo && opencl && (linux || darwin)

package opencl

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/seal"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

func TestKernelInfo(t *testing.T) {
	d := open(t)
	m := load(t, d, programText)
	k := kernelOf(t, m, "saxpy")
	assert.Same(t, k, kernelOf(t, m, "saxpy"), "one kernel per name")
	info := k.Info()
	assert.Equal(t, "saxpy", info.Name)
	assert.Equal(t, "opencl", info.Implementation)
	assert.False(t, info.Native)
	if d.platform.name != rusticl { // which has no answer
		assert.Positive(t, info.MaxGroup)
	}
	assert.LessOrEqual(t, info.MaxGroup, d.info.MaxGroupSize)
	assert.Positive(t, info.GroupMultiple)

	_, err := m.Kernel("nope")
	require.ErrorIs(t, err, driver.ErrCompile)
	for _, want := range []string{"nope", "test.cl", "saxpy", "places"} {
		assert.Contains(t, err.Error(), want)
	}
	assert.NoError(t, m.Close())
	_, err = m.Kernel("saxpy")
	assert.ErrorIs(t, err, driver.ErrClosed)
	assert.ErrorIs(t, newStream(t, d).Launch(launch(k, 1, 1)), driver.ErrClosed)
}

// TestBuildErrors compiles programs that the front end accepts and the compiler refuses, and checks
// that the errors have positions in the portable text.
func TestBuildErrors(t *testing.T) {
	d := open(t)
	unit := parse(t, d, "kernel void k(global int *p) { p[0] = 1; }\n")
	text := "#line 1 \"sub/my prog.cl\"\nkernel void k(global int *p) {\n  p[0] = nope;\n}\n"
	_, _, err := d.build("sub/my prog.cl", text, standard)
	require.ErrorIs(t, err, driver.ErrCompile)
	var be *driver.BuildError
	require.ErrorAs(t, err, &be)
	assert.Equal(t, "opencl:0", be.Target)
	assert.Equal(t, "sub/my prog.cl", be.Source)
	assert.Regexp(t, `(?m)^sub/my prog\.cl:2:10: error: use of undeclared identifier 'nope'`, be.Log)
	assert.Contains(t, err.Error(),
		"sub/my prog.cl: build for opencl:0: program did not build: sub/my prog.cl:2:10: error")

	_, err = d.Compile(t.Context(), unit, []string{"-fno-such-option-of-opencl"})
	if err != nil { // rusticl accepts anything
		assert.ErrorIs(t, err, driver.ErrCompile)
		assert.NotErrorIs(t, err, driver.ErrOutOfMemory)
	}
	for _, bad := range []string{"", "word", "-D A=1", "-DA=\"x\"", "-DA=\x00"} {
		_, err = d.Compile(t.Context(), unit, []string{bad})
		assert.ErrorIs(t, err, driver.ErrInvalidArgument, "%q", bad)
	}
	// A failed build changes nothing.
	s, out := newStream(t, d), alloc(t, d, 4)
	require.NoError(t, s.Launch(launch(kernelOf(t, load(t, d, programText), "set"), 1, 1, out, int32(7))))
	assert.Equal(t, []int32{7}, download[int32](t, s, out))
}

func TestMapLog(t *testing.T) {
	sent := "#define A 1\n#pragma X\n#line 10 \"a.cl\"\nx\ny\n#line 3 \"in\\\"c.h\"\nz\n"
	for in, want := range map[string]string{
		"error: a.cl:11:2: bad":                   "a.cl:11:2: error: bad",
		"a.cl:11:2: error: bad":                   "a.cl:11:2: error: bad",
		"/tmp/pocl/tempfile_x.cl:5:2: warning: b": "a.cl:11:2: warning: b",
		"<source>:7:1: note: here":                "in\"c.h:3:1: note: here",
		"<source>:1:1: error: d":                  "a.cl:1:1: error: d",
		"<source>:99:1: error: d":                 "a.cl:99:1: error: d",
		"1 error generated.\n":                    "1 error generated.",
		"":                                        "",
	} {
		assert.Equal(t, want, mapLog(in, "a.cl", sent), in)
	}
}

// TestDefinitions passes values that would not work as -D options.
func TestDefinitions(t *testing.T) {
	d := open(t)
	s, out := newStream(t, d), alloc(t, d, 4)
	m := load(t, d, `
kernel void k(global T *p) {
#ifdef cl_khr_fp64
  int wide = 1;
#else
  int wide = 0;
#endif
  p[0] = SUM(N, EMPTY 2) + 100 * wide + sizeof(TEXT);
}`,
		source.Define{Name: "T", Value: "unsigned int"}, source.Define{Name: "SUM(a, b)", Value: "((a) + (b))"},
		source.Define{Name: "N", Value: "5"}, source.Define{Name: "EMPTY"}, source.Define{Name: "TEXT", Value: `"a b\"c"`},
		source.Define{Name: "N", Value: "1"})
	require.NoError(t, s.Launch(launch(kernelOf(t, m, "k"), 1, 1, out)))
	want := uint32(1 + 2 + 6)
	if d.info.Features.FP64 {
		want += 100
	}
	assert.Equal(t, []uint32{want}, download[uint32](t, s, out))
}

// TestFeatures: the device's compiler has the same extension macros as the front end.
func TestFeatures(t *testing.T) {
	d := open(t)
	unit, err := source.Parse(`
#ifdef cl_khr_fp64
kernel void k(global double *p, double v) { p[0] = v; }
#else
kernel void k(global float *p, float v) { p[0] = v; }
#endif`, source.Options{Name: "f.cl", Features: &source.Features{Int64Atomic: true}})
	require.NoError(t, err)
	bin, err := d.Compile(t.Context(), unit, nil)
	require.NoError(t, err)
	m, err := d.Load(t.Context(), unit, bin)
	require.NoError(t, err)
	defer m.Close()
	s, out := newStream(t, d), alloc(t, d, 4)
	k, err := m.Kernel("k")
	require.NoError(t, err)
	require.NoError(t, s.Launch(launch(k, 1, 1, out, float32(2.5))))
	assert.Equal(t, []float32{2.5}, download[float32](t, s, out))
}

// TestDimensions queries dimensions above 2, for which OpenCL defines the results, in both kinds of
// text.
func TestDimensions(t *testing.T) {
	d := open(t)
	m := load(t, d, `kernel void k(global uint *p) {
  p[0] = get_global_size(3) + 10 * get_local_size(7) + 100 * get_num_groups(3) + 1000 * get_global_size(2);
  p[1] = get_global_id(3) + get_local_id(4) + get_group_id(5) + get_global_offset(6) + get_local_size(0);
}`)
	s, out := newStream(t, d), alloc(t, d, 16)
	for _, at := range []int64{0, 4} {
		out := view(out, at, 8)
		require.NoError(t, s.Launch(launch(kernelOf(t, m, "k"), 6, 6, out)))
		assert.Equal(t, []uint32{1111, 6}, download[uint32](t, s, out))
	}
}

func TestIncludes(t *testing.T) {
	d := open(t)
	files := fstest.MapFS{"two.h": {Data: []byte("#define TWO (VALUE)\ninline int two(void) { return TWO; }\n")}}
	unit, err := source.Parse("#include \"two.h\"\nkernel void k(global int *p) { p[0] = two() + VALUE; }\n",
		source.Options{Name: "inc.cl", Includes: []fs.FS{files}, Defines: []source.Define{{Name: "VALUE", Value: "2"}},
			Features: &d.info.Features})
	require.NoError(t, err)
	bin, err := d.Compile(t.Context(), unit, nil)
	require.NoError(t, err)
	m, err := d.Load(t.Context(), unit, bin)
	require.NoError(t, err)
	defer m.Close()
	s, out := newStream(t, d), alloc(t, d, 16)
	k, err := m.Kernel("k")
	require.NoError(t, err)
	require.NoError(t, s.Launch(launch(k, 1, 1, view(out, 4, 4))), "at an offset, too")
	assert.Equal(t, []int32{4}, download[int32](t, s, view(out, 4, 4)))
}

func TestCorruptBinary(t *testing.T) {
	d := open(t)
	unit := parse(t, d, programText)
	bin, err := d.Compile(t.Context(), unit, nil)
	require.NoError(t, err)
	assert.Equal(t, string(programs), string(bin.Code[:len(programs)]))
	for _, n := range []int{0, 1, len(programs), seal.Size - 1, seal.Size, seal.Size + 3, len(bin.Code) / 2,
		len(bin.Code) - 1} {
		_, err := d.Load(t.Context(), unit, driver.Binary{Code: bin.Code[:n]})
		require.ErrorIs(t, err, driver.ErrCorrupt, "cut to %d of %d bytes", n, len(bin.Code))
	}
	for _, at := range []int{0, len(programs), len(programs) + 9, seal.Size, len(bin.Code) - 1} {
		bad := slices.Clone(bin.Code)
		bad[at] ^= 1
		_, err := d.Load(t.Context(), unit, driver.Binary{Code: bad})
		require.ErrorIs(t, err, driver.ErrCorrupt, "byte %d", at)
	}
	foreign, err := parseFrame(bin.Code)
	require.NoError(t, err)
	foreign.device[0]++
	_, err = d.Load(t.Context(), unit, driver.Binary{Code: foreign.bytes()})
	assert.ErrorIs(t, err, driver.ErrCorrupt)
	assert.Contains(t, err.Error(), "another device or driver")
}

// TestSourceFrame tests the frames for drivers that return no binary.
func TestSourceFrame(t *testing.T) {
	d := open(t)
	unit := parse(t, d, programText)
	text, err := d.text(t.Context(), unit)
	require.NoError(t, err)
	identity, err := d.Identity(t.Context())
	require.NoError(t, err)
	f := frame{source: true, device: deviceHash(identity), options: standard, code: []byte(text)}
	m, err := d.Load(t.Context(), unit, driver.Binary{Code: f.bytes()})
	require.NoError(t, err)
	assert.NoError(t, m.Close())
}

// TestSecondProcess compiles in this process, and loads and runs in another one that cannot use the
// driver's cache.
func TestSecondProcess(t *testing.T) {
	d := open(t)
	unit := parse(t, d, programText)
	bin, err := d.Compile(t.Context(), unit, nil)
	require.NoError(t, err)
	path := t.TempDir() + "/program"
	require.NoError(t, os.WriteFile(path, bin.Code, 0o600))
	out, err := child(t, []string{helperVar + "=load", "POCL_KERNEL_CACHE=0", "OPENCL_TEST_BINARY=" + path})
	require.NoError(t, err, out)
	t.Log(out)
}

func helpLoad() {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	ctx := context.Background()
	opened, err := backend{}.Open(ctx, 0, configured())
	must(err)
	d := opened.(*device)
	code, err := os.ReadFile(os.Getenv("OPENCL_TEST_BINARY"))
	must(err)
	unit, err := source.Parse(programText, source.Options{Name: "test.cl", Features: &d.info.Features})
	must(err)
	start := time.Now()
	m, err := d.Load(ctx, unit, driver.Binary{Code: code})
	must(err)
	fmt.Printf("loaded %d bytes (%x) in %v\n", len(code), sha256.Sum256(code), time.Since(start))
	k, err := m.Kernel("set")
	must(err)
	s, err := d.NewStream()
	must(err)
	out, err := d.Alloc(64, driver.OnDevice)
	must(err)
	must(s.Launch(launch(k, 16, 4, out, int32(42))))
	got := make([]int32, 16)
	must(s.Download(ctx, bytesOf(got), out))
	if got[0] != 42 || got[15] != 42 {
		panic(fmt.Sprint(got))
	}
	fmt.Printf("launched after %v\n", time.Since(start))
	must(s.Close())
	must(m.Close())
	must(d.Free(out))
	must(d.Close())
}

func TestIdentity(t *testing.T) {
	d := open(t)
	id, err := d.Identity(t.Context())
	require.NoError(t, err)
	assert.Contains(t, id, d.info.DriverVersion)
	assert.Contains(t, id, d.platform.version)
	again, err := d.Identity(t.Context())
	require.NoError(t, err)
	assert.Equal(t, id, again)
}

func TestCompileGivesUp(t *testing.T) {
	d := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	unit := parse(t, d, programText)
	_, err := d.Compile(ctx, unit, nil)
	assert.ErrorIs(t, err, context.Canceled)
	bin, err := d.Compile(t.Context(), unit, nil)
	require.NoError(t, err)
	_, err = d.Load(ctx, unit, bin)
	assert.ErrorIs(t, err, context.Canceled)
}
