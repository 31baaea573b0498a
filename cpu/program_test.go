//go:build cgo && unix

package cpu

// Portable programs, from text to results. Without a C++ compiler these skip.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/seal"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/half"
	"github.com/concord-compute/concord/source"
)

const saxpyText = `
kernel void saxpy(float a, global const float *x, global float *y, int n) {
  int i = get_global_id(0);
  if (i < n) y[i] = a * x[i] + y[i];
}
`

const sumText = `
kernel void sum(global const float *x, global float *out, local float *tile) {
  int l = get_local_id(0);
  tile[l] = x[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int s = get_local_size(0) / 2; s > 0; s /= 2) {
    if (l < s) tile[l] += tile[l + s];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (l == 0) out[get_group_id(0)] = tile[0];
}
`

func needCompiler(t testing.TB) {
	t.Helper()
	if _, _, err := findToolchain(context.Background()); err != nil {
		t.Skip(err)
	}
}

func parse(t testing.TB, text string, defines ...source.Define) *source.Unit {
	t.Helper()
	u, err := source.Parse(text, source.Options{Name: "test.cl", Defines: defines})
	require.NoError(t, err)
	return u
}

var built sync.Map // text of a program: its driver.Binary; a build takes a second

func buildProgram(t testing.TB, d *device, u *source.Unit) driver.Binary {
	t.Helper()
	if bin, ok := built.Load(u.Hash()); ok {
		return bin.(driver.Binary)
	}
	bin, err := d.Compile(background(t), u, nil)
	require.NoError(t, err)
	assert.Empty(t, bin.Log, "a correct program gives no warning")
	built.Store(u.Hash(), bin)
	return bin
}

func loadKernel(t testing.TB, d *device, text, name string) driver.Kernel {
	t.Helper()
	needCompiler(t)
	u := parse(t, text)
	m, err := d.Load(background(t), u, buildProgram(t, d, u))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	k, err := m.Kernel(name)
	require.NoError(t, err)
	return k
}

func upload[T any](t testing.TB, s *stream, v []T) driver.Memory {
	t.Helper()
	m := allocBytes(t, s.device, int64(len(bytesOf(v))))
	require.NoError(t, s.Upload(background(t), m, bytesOf(v)))
	return m
}

func count(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i % 1000)
	}
	return v
}

func saxpyLaunch(k driver.Kernel, a float32, x, y driver.Memory, n, local int) *driver.Launch {
	l := &driver.Launch{Kernel: k, Dim: 1, Global: [3]int{(n + local - 1) / local * local, 1, 1},
		Local: [3]int{local, 1, 1}}
	pass(l, a)
	l.Args = append(l.Args, driver.Arg{Kind: driver.ArgMemory, Memory: x}, driver.Arg{Kind: driver.ArgMemory, Memory: y})
	pass(l, int32(n))
	return l
}

func TestSaxpy(t *testing.T) {
	d := openDevice(t)
	k := loadKernel(t, d, saxpyText, "saxpy")
	assert.Equal(t, "c++", k.Info().Implementation)
	assert.False(t, k.Info().Native)
	s := openStream(t, d)
	for _, n := range []int{1, 2, 31, 33, 257, 65537} {
		x := count(n)
		mx, my := upload(t, s, x), upload(t, s, x)
		require.NoError(t, s.Launch(saxpyLaunch(k, 2, mx, my, n, 64)))
		require.NoError(t, s.Launch(saxpyLaunch(k, -1, mx, my, n, 1)))
		out := make([]float32, n)
		require.NoError(t, s.Download(background(t), bytesOf(out), my))
		for i := range out {
			require.Equal(t, 2*x[i], out[i])
		}
	}
}

func TestSumWithBarriers(t *testing.T) {
	d := openDevice(t)
	k := loadKernel(t, d, sumText, "sum")
	s := openStream(t, d)
	for _, local := range []int{1, 2, 64, 256, 1024} {
		groups := 37
		x := count(groups * local)
		in, out := upload(t, s, x), upload(t, s, make([]float32, groups))
		l := launchOf(k, len(x), in, out)
		l.Local[0] = local
		l.Args = append(l.Args, driver.Arg{Kind: driver.ArgLocal, Size: 4 * local})
		require.NoError(t, s.Launch(l))
		got := make([]float32, groups)
		require.NoError(t, s.Download(background(t), bytesOf(got), out))
		for g := range got {
			want := float32(0)
			for _, v := range x[g*local : (g+1)*local] {
				want += v
			}
			require.Equal(t, want, got[g], "group %d of %d items", g, local)
		}
	}
}

func TestWideValuesAreAligned(t *testing.T) {
	d := openDevice(t)
	k := loadKernel(t, d, `
struct pair { char c; double d; };
kernel void wide(char c, double16 v, float3 w, struct pair p, global double *out) {
  out[0] = v.s0 + v.sf + w.z + p.d + c;
}`, "wide")
	s := openStream(t, d)
	out := upload(t, s, make([]float64, 1))
	l := launchOf(k, 1)
	pass(l, int8(1))
	pass(l, [16]float64{0: 10, 15: 20})
	pass(l, [4]float32{0, 0, 3, 0})
	pass(l, struct {
		c int8
		d float64
	}{7, 400})
	l.Args = append(l.Args, driver.Arg{Kind: driver.ArgMemory, Memory: out})
	require.NoError(t, s.Launch(l))
	got := make([]float64, 1)
	require.NoError(t, s.Download(background(t), bytesOf(got), out))
	assert.EqualValues(t, 434, got[0])
}

func TestHalfArithmetic(t *testing.T) {
	d := openDevice(t)
	needCompiler(t)
	features := d.Info().Features
	u, err := source.Parse(`
#ifndef cl_khr_fp16
#error no half
#endif
kernel void h(global half *x, half4 v) {
  half a = x[0] * x[1] + (half)0.1f;
  x[2] = sqrt(a) > v.y ? max(a, v.z) : a;
}`, source.Options{Features: &features})
	require.NoError(t, err)
	m, err := d.Load(background(t), u, buildProgram(t, d, u))
	require.NoError(t, err)
	defer m.Close()
	k, err := m.Kernel("h")
	require.NoError(t, err)
	s := openStream(t, d)
	x := upload(t, s, []half.Float16{half.ToFloat16(1.5), half.ToFloat16(3), 0, 0})
	l := launchOf(k, 1, x)
	pass(l, [4]half.Float16{0, half.ToFloat16(2), half.ToFloat16(9), 0})
	require.NoError(t, s.Launch(l))
	got := make([]half.Float16, 4)
	require.NoError(t, s.Download(background(t), bytesOf(got), x))
	sum := half.ToFloat16(4.5 + half.ToFloat16(0.1).Float64())
	want := sum
	if math.Sqrt(sum.Float64()) > 2 {
		want = half.ToFloat16(9)
	}
	assert.Equal(t, want, got[2])
}

// TestHalfCompound checks that a compound assignment with half computes in the type of the usual
// conversions and rounds once.
func TestHalfCompound(t *testing.T) {
	d := openDevice(t)
	needCompiler(t)
	features := d.Info().Features
	u, err := source.Parse(`kernel void h(global int *o) {
  half h = 1.0h;
  float f = 0x1.002p-11f; // just above half a step of 1.0h
  h += f;
  o[0] = as_ushort(h);
  int i = 2049;
  i += 1.0h; // at this size neighbouring halves differ by 2
  o[1] = i;
  half n = 2.0h;
  o[2] = as_ushort(n++);
  o[3] = as_ushort(--n);
}`, source.Options{Features: &features})
	require.NoError(t, err)
	m, err := d.Load(background(t), u, buildProgram(t, d, u))
	require.NoError(t, err)
	defer m.Close()
	k, err := m.Kernel("h")
	require.NoError(t, err)
	s := openStream(t, d)
	x := upload(t, s, make([]int32, 4))
	require.NoError(t, s.Launch(launchOf(k, 1, x)))
	got := make([]int32, 4)
	require.NoError(t, s.Download(background(t), bytesOf(got), x))
	assert.Equal(t, []int32{0x3c01, 2048, 0x4000, 0x4000}, got)
}

func TestEightStreamsOfPrograms(t *testing.T) {
	d := openDevice(t)
	k := loadKernel(t, d, saxpyText, "saxpy")
	var wg sync.WaitGroup
	ctx := background(t)
	for range 8 {
		s := openStream(t, d)
		n := 5000
		mx, my := upload(t, s, count(n)), upload(t, s, make([]float32, n))
		wg.Go(func() {
			for range 100 {
				assert.NoError(t, s.Launch(saxpyLaunch(k, 1, mx, my, n, 50)))
			}
			out := make([]float32, n)
			assert.NoError(t, s.Download(ctx, bytesOf(out), my))
			assert.EqualValues(t, 100*999, out[999])
		})
	}
	wg.Wait()
}

func TestBinaryMovesBetweenDevices(t *testing.T) {
	d := openDevice(t)
	needCompiler(t)
	u := parse(t, saxpyText)
	bin := buildProgram(t, d, u)
	for range 20 { // each a different library behind what may be the same file number
		m, err := openDevice(t).Load(background(t), u, bin)
		require.NoError(t, err)
		_, err = m.Kernel("axpy")
		require.ErrorIs(t, err, driver.ErrCompile)
		assert.Contains(t, err.Error(), "saxpy", "the error lists the kernels of the program")
		require.NoError(t, m.Close())
		require.NoError(t, m.Close())
	}
	other := parse(t, "kernel void saxpy(global float *x) { x[0] = 1; }")
	_, err := d.Load(background(t), other, bin)
	require.ErrorIs(t, err, driver.ErrCorrupt, "a binary of another program")
}

// TestLoaderDoesNotConfusePrograms checks that the dynamic loader keeps two programs apart that were
// loaded one after the other through the same file descriptor number.
func TestLoaderDoesNotConfusePrograms(t *testing.T) {
	d := openDevice(t)
	s := openStream(t, d)
	out := upload(t, s, make([]int32, 1))
	for i, text := range []string{"kernel void k(global int *x) { x[0] = 1; }",
		"kernel void k(global int *x) { x[0] = 2; }"} {
		k := loadKernel(t, d, text, "k") // both stay loaded
		require.NoError(t, s.Launch(launchOf(k, 1, out)))
		got := make([]int32, 1)
		require.NoError(t, s.Download(background(t), bytesOf(got), out))
		assert.EqualValues(t, i+1, got[0])
	}
}

func TestModuleClosedWhileQueued(t *testing.T) {
	d := openDevice(t)
	needCompiler(t)
	u := parse(t, saxpyText)
	m, err := d.Load(background(t), u, buildProgram(t, d, u))
	require.NoError(t, err)
	k, err := m.Kernel("saxpy")
	require.NoError(t, err)
	s := openStream(t, d)
	f, started, open := gate()
	require.NoError(t, s.Launch(launchOf(goKernel(d, "gate", f), 1)))
	<-started
	x := allocBytes(t, d, 64)
	require.NoError(t, s.Launch(saxpyLaunch(k, 1, x, x, 16, 16)))
	require.NoError(t, m.Close())
	require.ErrorIs(t, s.Launch(saxpyLaunch(k, 1, x, x, 16, 16)), driver.ErrClosed)
	_, err = m.Kernel(k.Info().Name)
	require.ErrorIs(t, err, driver.ErrClosed)
	close(open)
	require.NoError(t, s.Sync(background(t)), "a queued launch keeps its program")
}

func TestCorruptBinary(t *testing.T) {
	d := openDevice(t)
	needCompiler(t)
	u := parse(t, saxpyText)
	good := buildProgram(t, d, u).Code
	elf, err := unseal(good)
	require.NoError(t, err)
	change := func(at int) []byte {
		b := append([]byte(nil), good...)
		b[at] ^= 1
		return b
	}
	for name, code := range map[string][]byte{
		"empty": nil, "short": good[:20], "header only": good[:seal.Size], "truncated": good[:len(good)-1],
		"longer": append(change(0)[:0:0], append(good, 0)...),
		"magic":  change(0), "length": change(9), "checksum": change(20), "payload": change(len(good) / 2),
		"sealed text": programs.Seal([]byte("#!/bin/sh\n")), "sealed truncated": programs.Seal(elf[:len(elf)/2]),
		"sealed header": programs.Seal(elf[:64]), "sealed magic": programs.Seal(elf[:4]),
	} {
		_, err := d.Load(background(t), u, driver.Binary{Code: code})
		assert.ErrorIs(t, err, driver.ErrCorrupt, name)
	}
	_, err = d.Load(background(t), u, driver.Binary{Code: []byte("something else entirely, of sufficient length to hold " +
		"a header")})
	require.ErrorIs(t, err, driver.ErrFormat)
}

func TestUniquePath(t *testing.T) {
	seen := map[string]bool{}
	for n := range uint32(1000) {
		p := uniquePath(7, n+1)
		assert.False(t, seen[p])
		seen[p] = true
		assert.Equal(t, "/proc/self/fd/7", filepath.Clean(p))
	}
}

func BenchmarkCompileSaxpy(b *testing.B) {
	d := openDevice(b)
	needCompiler(b)
	u := parse(b, saxpyText)
	for b.Loop() {
		_, err := d.Compile(context.Background(), u, nil)
		require.NoError(b, err)
	}
}

// smallUnits are programs of one operation.
func smallUnits(t testing.TB) (units []*source.Unit) {
	for _, value := range []string{
		"-x", "x * x", "x + y", "x - y", "x * y", "x / y", "x < y ? x : y", "x > 0 ? x : 0", "1 / x", "x == y",
		"fabs(x)", "floor(x)", "sqrt(x)", "rsqrt(x)", "sign(x)", "fmax(x, y)", "fmin(x, y)", "fmod(x, y)",
		"clamp(x, 0.0f, 1.0f)",
		"exp(x)", "log(x)", "tanh(x)", "erf(x)", "sin(x)", "cos(x)", "pow(x, y)", "1 / (1 + exp(-x))",
		"0.5f * x * (1 + erf(x * 0.70710678f))", "x / (1 + exp(-x))", "(int)x", "(uchar)x", "isnan(x)", "a[i / 2]",
		"a[n - 1 - i]",
		"select(x, y, i % 2)", "convert_float(as_uint(x))",
	} {
		units = append(units, parse(t, "kernel void k(global const float *a, global const float *b, global float *out, "+
			"uint n) {\n"+
			"  uint i = get_global_id(0);\n  if (i >= n)\n    return;\n  float x = a[i], y = b[i];\n  out[i] = "+value+";\n}\n"))
	}
	return units
}

// BenchmarkCompileSmall compiles programs of one operation, one by one and together, and reports the
// processor time of the compiler for each.
func BenchmarkCompileSmall(b *testing.B) {
	d := openDevice(b)
	needCompiler(b)
	units := smallUnits(b)
	spent := func() time.Duration {
		var r syscall.Rusage
		require.NoError(b, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &r))
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	_, err := d.Compile(b.Context(), units[0], nil) // asks the compiler for its version
	require.NoError(b, err)
	for name, compile := range map[string]func(b *testing.B){
		"one_by_one": func(b *testing.B) {
			for _, u := range units {
				_, err := d.Compile(b.Context(), u, nil)
				require.NoError(b, err, u.Text())
			}
		},
		"together": func(b *testing.B) {
			_, errs := d.CompileAll(b.Context(), units, nil)
			require.NoError(b, errors.Join(errs...))
		},
	} {
		b.Run(name, func(b *testing.B) {
			before := spent()
			for b.Loop() {
				compile(b)
			}
			b.ReportMetric((spent()-before).Seconds()/float64(b.N*len(units)), "cpu-s/program")
		})
	}
}

func BenchmarkLoadSaxpy(b *testing.B) {
	d := openDevice(b)
	needCompiler(b)
	u := parse(b, saxpyText)
	bin := buildProgram(b, d, u)
	for b.Loop() {
		m, err := d.Load(context.Background(), u, bin)
		require.NoError(b, err)
		require.NoError(b, m.Close())
	}
}

func BenchmarkProgramLaunchSync(b *testing.B) {
	benchmarkSaxpy(b, 64, 64)
}

func BenchmarkSaxpyMillion(b *testing.B) {
	benchmarkSaxpy(b, 1<<20, 4096)
}

func benchmarkSaxpy(b *testing.B, n, local int) {
	d := openDevice(b)
	k := loadKernel(b, d, saxpyText, "saxpy")
	s := openStream(b, d)
	ctx := context.Background()
	l := saxpyLaunch(k, 2, upload(b, s, count(n)), upload(b, s, count(n)), n, local)
	b.ReportAllocs()
	b.SetBytes(int64(12 * n))
	for b.Loop() {
		if s.Launch(l) != nil || s.Sync(ctx) != nil {
			b.Fatal(s.Err())
		}
	}
}

// BenchmarkGrids compares grids whose sizes have no divisors with round ones.
func BenchmarkGrids(b *testing.B) {
	d := openDevice(b)
	k := loadKernel(b, d, `kernel void k(global float *x) {
		ulong i = get_global_id(1) * get_global_size(0) + get_global_id(0);
		x[i] = x[i] * 1.5f + 1;
	}`, "k")
	s := openStream(b, d)
	for _, g := range []struct{ items, group [3]int }{
		{[3]int{10, 2097152, 1}, [3]int{10, 16, 1}}, {[3]int{10, 2097143, 1}, [3]int{10, 1, 1}},
		{[3]int{4096, 4096, 1}, [3]int{256, 1, 1}}, {[3]int{4093, 4093, 1}, [3]int{1, 1, 1}},
		{[3]int{16, 1048576, 1}, [3]int{16, 16, 1}}, {[3]int{13, 1048573, 1}, [3]int{13, 1, 1}},
	} {
		b.Run(fmt.Sprintf("%dx%d", g.items[0], g.items[1]), func(b *testing.B) {
			n := int64(g.items[0]) * int64(g.items[1])
			x := upload(b, s, make([]float32, n))
			l := &driver.Launch{Kernel: k, Dim: 2, Global: g.items, Local: g.group,
				Args: []driver.Arg{{Kind: driver.ArgMemory, Memory: x}}}
			b.SetBytes(8 * n)
			for b.Loop() {
				if s.Launch(l) != nil || s.Sync(context.Background()) != nil {
					b.Fatal(s.Err())
				}
			}
		})
	}
}

func TestProgramLaunchAllocations(t *testing.T) {
	if instrumented {
		t.Skip("the checker allocates")
	}
	d := openDevice(t)
	k := loadKernel(t, d, saxpyText, "saxpy")
	s := openStream(t, d)
	x := allocBytes(t, d, 256)
	l := saxpyLaunch(k, 1, x, x, 64, 64)
	ctx := background(t)
	n := testing.AllocsPerRun(500, func() {
		_ = s.Launch(l)
		_ = s.Sync(ctx)
	})
	assert.LessOrEqual(t, n, 0.5)
}

func BenchmarkExecutorAlone(b *testing.B) {
	d := openDevice(b)
	k := loadKernel(b, d, saxpyText, "saxpy")
	s := openStream(b, d)
	p, err := newLaunch(d, k.(*kernel), saxpyLaunch(k, 2, upload(b, s, count(64)), upload(b, s, count(64)), 64, 64))
	require.NoError(b, err)
	defer p.done()
	for b.Loop() {
		_ = p.runHost()
	}
}

// TestCompileEndsWhileRendering checks that a context ends the compilation of a program that takes
// long to render, and that the device works afterwards.
func TestCompileEndsWhileRendering(t *testing.T) {
	needCompiler(t)
	const n = 30000
	var text strings.Builder
	text.WriteString("kernel void k(global int *x, int n) { int l = get_local_id(0), a0 = 0;\n")
	for i := range n {
		fmt.Fprintf(&text, "int a%d = 0; a%d = a%d;\n", i+1, i, i+1)
	}
	fmt.Fprintf(&text, "a%d = l; barrier(CLK_LOCAL_MEM_FENCE); x[l] = a0; }", n)
	u := parse(t, text.String())
	d := openDevice(t)
	_, err := d.toolchain(background(t))
	require.NoError(t, err)
	why := errors.New("enough")
	for _, after := range []time.Duration{0, 10 * time.Millisecond, 100 * time.Millisecond} {
		ctx, cancel := context.WithCancelCause(background(t))
		time.AfterFunc(after, func() { cancel(why) })
		start := time.Now()
		_, err = d.Compile(ctx, u, nil)
		assert.ErrorIs(t, err, why)
		assert.NotErrorIs(t, err, driver.ErrCompile, "the next caller may have more time")
		assert.Less(t, time.Since(start), 30*time.Second) // without the context it takes up to half an hour
	}
	loadKernel(t, d, saxpyText, "saxpy")
}

// TestNegatedFmaByOtherInstructions checks that a negated fma keeps the sign of its result also if GCC
// uses the fused operations of AVX-512, which it does if those of FMA3 are switched off.
func TestNegatedFmaByOtherInstructions(t *testing.T) {
	if goruntime.GOARCH != "amd64" {
		t.Skip("the option exists only for another processor")
	}
	needCompiler(t)
	d := openDevice(t)
	u := parse(t, "kernel void minus(global const float *x, global float *y) { y[0] = -fma(x[0], x[1], x[2]); }")
	bin, err := d.Compile(background(t), u, []string{"-mno-fma"})
	require.NoError(t, err)
	m, err := d.Load(background(t), u, bin)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	k, err := m.Kernel("minus")
	require.NoError(t, err)
	s := openStream(t, d)
	for _, in := range [][]float32{{2, 3, -6}, {2.5, 0, float32(math.Copysign(0, -1))}} {
		out := []float32{1}
		mx, my := upload(t, s, in), upload(t, s, out)
		require.NoError(t, s.Launch(launchOf(k, 1, mx, my)))
		require.NoError(t, s.Download(background(t), bytesOf(out), my))
		assert.Equal(t, uint32(1)<<31, math.Float32bits(out[0]), "%v: %v is not -0", in, out[0])
	}
}
