package cpu

// Tests of the vector kernels, in every instruction set of this processor.

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/klauspost/cpuid/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// eachSet runs f on a device for every set of this build and processor, including go.
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

// eachBytes calls f for the sets, and for those whose processor adds four products of bytes in an instruction
// also as if it did not.
func eachBytes(t *testing.T, f func(t *testing.T, d *device)) {
	t.Helper()
	eachSet(t, func(t *testing.T, d *device) {
		f(t, d)
		if d.simd != nil && d.simd.multipliesBytes() {
			plain := *d.simd
			plain.four = cpuid.UNKNOWN
			d.simd = &plain
			f(t, d)
		}
	})
}

// eachDevice calls f for the sets and for the reference, which have to agree on the arguments
// that they refuse.
func eachDevice(t *testing.T, f func(t *testing.T, d *device)) {
	t.Helper()
	eachSet(t, f)
	t.Run("reference", func(t *testing.T) { f(t, openIndex(t, referenceIndex)) })
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

// cut divides a test's name at its last slash.
func cut(name string) (before, after string, found bool) {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '/' {
			return name[:i], name[i+1:], true
		}
	}
	return "", name, false
}

// brief reports whether to test only a sample: with -short, and under a checker, which makes
// everything many times slower.
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

// fence is memory between two inaccessible pages. It returns slices that begin or end at one of
// them.
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

// numbers returns n elements of a type, most of them from -1 to 1.
func (f *fence) numbers(typ string, n int) []byte {
	x := make([]float64, n)
	for i := range x {
		x[i] = 2*f.r.Float64() - 1
	}
	b := f.bytes(n * kernels.SizeOf(typ))
	copy(b, kernels.Encode(typ, x))
	return b
}

// invoke runs a kernel of the catalog on memory of the test. Arguments are
// []byte for buffers, uint32, uint64, float32, float64.
func invoke(t testing.TB, d *device, family, kernel string, defines []source.Define, global [3]int, args ...any) error {
	t.Helper()
	u, err := kernels.Unit(family, &source.Features{FP64: true}, defines...)
	require.NoError(t, err)
	return invokeUnit(t, d, u, kernel, global, args...)
}

// invokeUnit launches a kernel of a program.
func invokeUnit(t testing.TB, d *device, u *source.Unit, kernel string, global [3]int, args ...any) error {
	t.Helper()
	f, ok := d.find(u, kernel)
	require.True(t, ok)
	p := &launch{
		kernel: &kernelOf{info: driver.KernelInfo{Name: kernel}, device: d, unit: u, params: unitParams(u, kernel),
			run: f.run}}
	c := &p.call
	*c = call{Call: Call{Unit: u, Kernel: kernel, Params: p.kernel.params, Dim: 3, Global: global, Local: [3]int{1, 1, 1},
		Host: c}, device: d, ctx: d.ctx}
	for _, a := range args {
		var b []byte
		switch a := a.(type) {
		case []byte:
			c.Args = append(c.Args, kernels.Argument{Kind: kernels.BufferArgument, Bytes: a})
			continue
		case structArgument:
			b = a
		case uint32:
			b = binary.NativeEndian.AppendUint32(nil, a)
		case int32:
			b = binary.NativeEndian.AppendUint32(nil, uint32(a))
		case uint64:
			b = binary.NativeEndian.AppendUint64(nil, a)
		case float32:
			b = binary.NativeEndian.AppendUint32(nil, math.Float32bits(a))
		case float64:
			b = binary.NativeEndian.AppendUint64(nil, math.Float64bits(a))
		}
		c.Args = append(c.Args, kernels.Argument{Kind: kernels.ValueArgument, Bytes: b})
	}
	return p.execute()
}

// structArgument is a struct that invoke passes by value; a []byte is a buffer.
type structArgument []byte

// kernelOf is the type kernel, for use where an argument has that name.
type kernelOf = kernel

func TestGemmRefuses(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
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

// TestGemmBatchRefuses has matrices C that overlap, and buffers that are too small for the last matrix of
// a batch, also with strides whose products overflow.
func TestGemmBatchRefuses(t *testing.T) {
	one, large := uint64(1), uint64(math.MaxUint64)
	for _, c := range []struct {
		na, nb, nc          int
		ldc                 uint32
		count               uint32
		stepA, stepB, stepC uint64
		ok                  bool
	}{
		{4, 4, 4, 2, 1, large, large, large, true}, // with one matrix the strides do not matter
		{12, 12, 12, 2, 3, 4, 4, 4, true},
		{11, 12, 12, 2, 3, 4, 4, 4, false},
		{12, 11, 12, 2, 3, 4, 4, 4, false},
		{12, 12, 11, 2, 3, 4, 4, 4, false},
		{4, 4, 12, 2, 3, 0, 0, 4, true},
		{4, 4, 12, 2, 3, 0, 0, 0, false},
		{4, 4, 12, 2, 3, 0, 0, 3, false},
		{4, 4, 12, 6, 3, 0, 0, 2, true},
		{4, 4, 12, 6, 3, 0, 0, one, false},
		{4, 4, 12, 5, 3, 0, 0, 2, false}, // the first row of the third matrix overlaps the second row of the first
		{4, 4, 12, 4, 2, 0, 0, 3, false},
		{4, 4, 12, 2, 3, large, 0, 4, false},
		{4, 4, 12, 2, 3, 0, large / 2, 4, false},
		{4, 4, 12, 2, math.MaxUint32, 0, 0, large/math.MaxUint32 + 1, false},
		{4, 4, 12, 2, math.MaxUint32, 0, 0, large - 3, false},
	} {
		eachDevice(t, func(t *testing.T, d *device) {
			f := newFence(t, 5)
			err := invoke(t, d, "gemm_batch", "gemm_batch", nil, [3]int{1, 1, 1}, uint32(2), uint32(2), uint32(2), float32(1),
				f.numbers("f32", c.na), uint32(2),
				f.numbers("f32", c.nb), uint32(2), float32(0), f.numbers("f32", c.nc), c.ldc, c.count, c.stepA, c.stepB, c.stepC)
			if c.ok {
				assert.NoError(t, err, "%+v", c)
			} else {
				assert.ErrorIs(t, err, driver.ErrInvalidArgument, "%+v", c)
			}
		})
	}
	eachDevice(t, func(t *testing.T, d *device) {
		f := newFence(t, 5)
		assert.ErrorIs(t, invoke(t, d, "gemm_bias", "gemm_bias", nil, [3]int{1, 1, 1}, uint32(2), uint32(2), uint32(2),
			float32(1), f.numbers("f32", 4), uint32(2),
			f.numbers("f32", 4), uint32(2), float32(0), f.numbers("f32", 4), uint32(2),
			f.numbers("f32", 1)), driver.ErrInvalidArgument)
	})
}

// TestModesStay checks that denormal numbers are not flushed to zero, neither in the kernels nor after
// them.
func TestModesStay(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 6)
		tiny := float32(math.SmallestNonzeroFloat32)
		a, b, c := f.bytes(4), f.bytes(4), f.bytes(4)
		copy(a, bytesOf([]float32{tiny}))
		copy(b, bytesOf([]float32{1}))
		require.NoError(t, invoke(t, d, "gemm", "gemm", nil, [3]int{1, 1, 1}, uint32(1), uint32(1), uint32(1), float32(1), a,
			uint32(1), b, uint32(1), float32(0), c, uint32(1)))
		assert.Equal(t, bytesOf([]float32{tiny}), c, "denormal numbers are kept")
		assert.NotZero(t, tiny/2*2+tiny)
	})
}
