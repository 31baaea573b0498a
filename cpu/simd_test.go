package cpu

// The vector kernels, in every instruction set of this processor.

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// eachSet runs f on a device of every implementation that is here, Go's among them.
func eachSet(t *testing.T, f func(t *testing.T, d *device)) {
	t.Helper()
	for _, name := range append([]string{goKernels}, setNames()...) {
		t.Run(name, func(t *testing.T) {
			d, err := backend{}.Open(context.Background(), fastIndex, &driver.Config{CPUKernels: name, CPUThreads: 3})
			if err != nil {
				require.ErrorIs(t, err, driver.ErrUnsupported)
				t.Skip(err)
			}
			t.Cleanup(func() { assert.NoError(t, d.Close()) })
			f(t, d.(*device))
		})
	}
}

func setNames() (names []string) {
	for _, s := range simdSets {
		names = append(names, s.name)
	}
	return names
}

func TestCPUKernels(t *testing.T) {
	_, err := backend{}.Open(t.Context(), fastIndex, &driver.Config{CPUKernels: "mmx"})
	require.ErrorIs(t, err, driver.ErrInvalidArgument)
	assert.ErrorContains(t, err, "avx512, avx2, neon, go")
	best, err := chooseSIMD(nil)
	require.NoError(t, err)
	for _, s := range simdSets {
		got, err := chooseSIMD(&driver.Config{CPUKernels: s.name})
		if s.missing() != nil {
			assert.ErrorIs(t, err, driver.ErrUnsupported)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, s, got)
		assert.NotNil(t, best)
	}
	eachSet(t, func(t *testing.T, d *device) {
		u, err := kernels.Unit("gemm", nil)
		require.NoError(t, err)
		k, ok := d.Native(u, "gemm")
		require.True(t, ok)
		_, name, _ := cut(t.Name())
		assert.Equal(t, name, k.Info().Implementation)
	})
}

// cut is the last part of a test's name.
func cut(name string) (before, after string, found bool) {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '/' {
			return name[:i], name[i+1:], true
		}
	}
	return "", name, false
}

// brief tells that a sample has to do: under a checker everything is many times slower.
func brief() bool { return testing.Short() || instrumented }

// TestSetsAgainstReference runs the catalog in every instruction set.
func TestSetsAgainstReference(t *testing.T) {
	exact := openIndex(t, referenceIndex)
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("see TestGoAgainstReference")
		}
		for _, f := range kernels.Families() {
			for i, c := range kernels.Cases(f.ID) {
				if _, ok := vectorized[entry{f.ID, c.Kernel}]; !ok || brief() && i%7 != 0 {
					continue
				}
				if err := judge(&c, runCase(t, exact, &c), runCase(t, d, &c)); err != nil {
					t.Errorf("%s: %v", c.Name(), err)
				}
			}
		}
	})
}

// fence is memory between two pages that may not be touched. It gives out the bytes
// beside one of them.
type fence struct {
	t    testing.TB
	r    *rand.Rand
	held []block
}

func newFence(t testing.TB, seed uint64) *fence {
	f := &fence{t: t, r: rand.New(rand.NewPCG(seed, 7))}
	t.Cleanup(f.free)
	return f
}

func (f *fence) free() {
	for _, b := range f.held {
		assert.NoError(f.t, unmapBlock(b))
	}
	f.held = nil
}

func (f *fence) bytes(n int) []byte {
	if n == 0 {
		return nil
	}
	size := int(roundUp(int64(n), int64(os.Getpagesize())))
	b, err := mapBlock(int64(size))
	require.NoError(f.t, err)
	f.held = append(f.held, b)
	if f.r.IntN(3) == 0 {
		return b.data[:n:n]
	}
	return b.data[size-n:]
}

// numbers gives n elements of a type, most of them from -1 to 1.
func (f *fence) numbers(typ string, n int) []byte {
	x := make([]float64, n)
	for i := range x {
		x[i] = 2*f.r.Float64() - 1
	}
	b := f.bytes(n * refSize(typ))
	copy(b, encode(typ, x))
	return b
}

// invoke runs a kernel of the catalog on memory of the test's own. Arguments are
// []byte for buffers, uint32, uint64, float32, float64.
func invoke(t testing.TB, d *device, family, kernel string, defines []source.Define, global [3]int, args ...any) error {
	t.Helper()
	u, err := kernels.Unit(family, &source.Features{FP64: true}, defines...)
	require.NoError(t, err)
	f, ok := d.find(u, kernel)
	require.True(t, ok)
	p := &launch{kernel: &kernelOf{info: driver.KernelInfo{Name: kernel}, device: d, unit: u, params: unitParams(u, kernel), run: f.run}}
	c := &p.call
	*c = Call{Unit: u, Kernel: kernel, Params: p.kernel.params, Dim: 3, Global: global, Local: [3]int{1, 1, 1}, device: d, ctx: d.ctx}
	for _, a := range args {
		var b []byte
		switch a := a.(type) {
		case []byte:
			c.args, c.buffers = append(c.args, driver.Arg{Kind: driver.ArgMemory}), append(c.buffers, a)
			continue
		case uint32:
			b = binary.NativeEndian.AppendUint32(nil, a)
		case uint64:
			b = binary.NativeEndian.AppendUint64(nil, a)
		case float32:
			b = binary.NativeEndian.AppendUint32(nil, math.Float32bits(a))
		case float64:
			b = binary.NativeEndian.AppendUint64(nil, math.Float64bits(a))
		}
		c.data = append(c.data, make([]byte, -len(c.data)&7)...)
		c.args, c.buffers = append(c.args, driver.Arg{Kind: driver.ArgValue, Offset: len(c.data), Size: len(b)}), append(c.buffers, nil)
		c.data = append(c.data, b...)
	}
	return p.execute()
}

// kernelOf is the type that the name of an argument hides.
type kernelOf = kernel

// gemmTrial is one product between guard pages.
type gemmTrial struct {
	typ            string
	m, n, k        int
	transA, transB bool
	alpha, beta    float64
	pad            int
}

func (g *gemmTrial) run(t testing.TB, d *device, f *fence) error {
	t.Helper()
	reach := func(rows, cols int) (ld, n int) {
		if ld = cols + g.pad; rows > 0 && cols > 0 {
			n = (rows-1)*ld + cols
		}
		return ld, n
	}
	flip := func(on bool, a, b int) (int, int) {
		if on {
			return b, a
		}
		return a, b
	}
	lda, na := reach(flip(g.transA, g.m, g.k))
	ldb, nb := reach(flip(g.transB, g.k, g.n))
	ldc, nc := reach(g.m, g.n)
	a, b, c := f.numbers(g.typ, na), f.numbers(g.typ, nb), f.numbers(g.typ, nc)
	before := decode(g.typ, c)
	if g.beta == 0 {
		for i := range before {
			before[i] = math.NaN()
		}
		copy(c, encode(g.typ, before))
	}
	old := append([]byte(nil), c...)
	scalar := func(v float64) any {
		if g.typ == "f64" {
			return v
		}
		return float32(v)
	}
	defines := []source.Define{{Name: "T", Value: g.typ}, {Name: "TRANS_A", Value: zeroOne(g.transA)}, {Name: "TRANS_B", Value: zeroOne(g.transB)}}
	if err := invoke(t, d, "gemm", "gemm", defines, [3]int{1, 1, 1}, uint32(g.m), uint32(g.n), uint32(g.k), scalar(g.alpha),
		a, uint32(lda), b, uint32(ldb), scalar(g.beta), c, uint32(ldc)); err != nil {
		return err
	}
	x, y, got, size := decode(g.typ, a), decode(g.typ, b), decode(g.typ, c), refSize(g.typ)
	u := map[string]float64{"f64": 0x1p-52, "f32": 0x1p-24, "f16": 0x1p-10, "bf16": 0x1p-7}[g.typ]
	for i, o := 0, 0; o < nc; i++ {
		for j := range min(ldc, nc-o) {
			if j >= g.n {
				if at := (o + j) * size; !bytes.Equal(old[at:at+size], c[at:at+size]) {
					require.Fail(t, "wrote between rows", "%+v at %d,%d", *g, i, j)
				}
				continue
			}
			sum, weight := 0.0, 0.0
			for p := range g.k {
				q, r := flip(g.transA, i, p)
				v, w := flip(g.transB, p, j)
				z := x[q*lda+r] * y[v*ldb+w]
				sum, weight = sum+z, weight+math.Abs(z)
			}
			want, small := g.alpha*sum, 0x1p-24*float64(g.k+2)*math.Abs(g.alpha)*weight
			if g.typ == "f64" {
				small *= 0x1p-28
			}
			if g.beta != 0 {
				want += g.beta * before[o+j]
				small += u * math.Abs(g.beta*before[o+j])
			}
			if g.typ == "f16" {
				small += 0x1p-24 // between its denormal numbers
			}
			if !(math.Abs(want-got[o+j]) <= small+2*u*math.Abs(want)) {
				require.Equal(t, want, got[o+j], "%+v at %d,%d", *g, i, j)
			}
		}
		o += ldc
	}
	f.free()
	return nil
}

func zeroOne(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

func TestGemmShapes(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 3)
		count := 1500
		if brief() || d.simd == nil {
			count = 200
		}
		for i := range count {
			g := gemmTrial{typ: []string{"f32", "f64", "f32", "f64", "f16", "bf16"}[f.r.IntN(6)],
				m: f.r.IntN(71), n: f.r.IntN(71), k: f.r.IntN(71), transA: f.r.IntN(3) == 0, transB: f.r.IntN(3) == 0,
				alpha: []float64{1, 1, 0.5, 0}[f.r.IntN(4)], beta: []float64{0, 1, -2}[f.r.IntN(3)], pad: f.r.IntN(2) * f.r.IntN(9)}
			switch i % 10 { // the narrow ones have ways of their own
			case 0:
				g.m = f.r.IntN(5)
			case 1:
				g.n = f.r.IntN(5)
			case 2:
				g.k = f.r.IntN(5)
			}
			require.NoError(t, g.run(t, d, f), "%+v", g)
		}
	})
}

func TestGemmLarge(t *testing.T) {
	if brief() {
		t.Skip("large products")
	}
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("as for small ones")
		}
		f := newFence(t, 4)
		for i := range 16 {
			g := gemmTrial{typ: []string{"f32", "f64", "f16", "bf16"}[i%4], m: 1 + f.r.IntN(500), n: 1 + f.r.IntN(700), k: 1 + f.r.IntN(1400),
				transA: i&4 != 0, transB: i&8 != 0, alpha: 1.5, beta: float64(i % 3), pad: f.r.IntN(5)}
			require.NoError(t, g.run(t, d, f), "%+v", g)
		}
	})
}

func TestGemmRefuses(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("Go panics")
		}
		f := newFence(t, 5)
		call := func(na, nb, nc int, m, n, k, lda, ldb, ldc uint32) error {
			return invoke(t, d, "gemm", "gemm", nil, [3]int{1, 1, 1}, m, n, k, float32(1), f.numbers("f32", na), lda,
				f.numbers("f32", nb), ldb, float32(0), f.numbers("f32", nc), ldc)
		}
		assert.NoError(t, call(20, 12, 15, 5, 3, 4, 4, 3, 3))
		assert.ErrorIs(t, call(19, 12, 15, 5, 3, 4, 4, 3, 3), driver.ErrInvalidArgument)
		assert.ErrorIs(t, call(20, 11, 15, 5, 3, 4, 4, 3, 3), driver.ErrInvalidArgument)
		assert.ErrorIs(t, call(20, 12, 14, 5, 3, 4, 4, 3, 3), driver.ErrInvalidArgument)
		assert.ErrorIs(t, call(20, 12, 15, 5, 3, 4, 5, 3, 3), driver.ErrInvalidArgument)
		assert.ErrorIs(t, call(20, 12, 15, math.MaxUint32, 3, 4, math.MaxUint32, 3, 3), driver.ErrInvalidArgument)
	})
}

// TestModesStay demands that denormal numbers count, in the kernels and after them.
func TestModesStay(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 6)
		tiny := float32(math.SmallestNonzeroFloat32)
		a, b, c := f.bytes(4), f.bytes(4), f.bytes(4)
		copy(a, bytesOf([]float32{tiny}))
		copy(b, bytesOf([]float32{1}))
		require.NoError(t, invoke(t, d, "gemm", "gemm", nil, [3]int{1, 1, 1}, uint32(1), uint32(1), uint32(1), float32(1), a, uint32(1), b, uint32(1), float32(0), c, uint32(1)))
		assert.Equal(t, bytesOf([]float32{tiny}), c, "denormal numbers are kept")
		assert.NotZero(t, tiny/2*2+tiny)
	})
}
