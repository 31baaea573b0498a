//go:build cgo && unix

package cgo

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tests/sim/null"
)

// productUnit returns a program with the declaration of the catalog's gemm for a type.
func productUnit(typ string, defines ...source.Define) *source.Unit {
	types := map[string][2]string{"f32": {"float", "float"}, "f64": {"double", "double"}, "f16": {"half", "float"},
		"bf16": {"ushort", "float"}}
	of, scalar := types[typ][0], types[typ][1]
	u, err := source.Parse("kernel void gemm(uint m, uint n, uint k, "+scalar+" alpha, global const "+of+
		" *a, uint lda, global const "+of+
		" *b, uint ldb, "+scalar+" beta, global "+of+" *c, uint ldc) {}",
		source.Options{Defines: append([]source.Define{{Name: "T", Value: typ}}, defines...), Family: "gemm"})
	if err != nil {
		panic(err)
	}
	return u
}

// productOf returns a launch of a product of 2 x 3 x 1 in float.
func productOf(k driver.Kernel, m driver.Memory) *driver.Launch {
	return product(k, 4, [3]uint32{2, 3, 1}, [3]uint32{1, 3, 3}, 2, 0.5, m)
}

func product(k driver.Kernel, scalar int, size, ld [3]uint32, alpha, beta float64, m driver.Memory) *driver.Launch {
	l := &driver.Launch{Kernel: k, Dim: 2, Global: [3]int{8, 8, 1}, Local: [3]int{8, 8, 1}}
	number := func(bits uint64, size int) {
		l.Args = append(l.Args, driver.Arg{Kind: driver.ArgValue, Offset: len(l.Data), Size: size})
		l.Data = binary.LittleEndian.AppendUint64(l.Data, bits)
	}
	float := func(x float64) {
		if scalar == 8 {
			number(math.Float64bits(x), 8)
		} else {
			number(uint64(math.Float32bits(float32(x))), 4)
		}
	}
	memory := func() { l.Args = append(l.Args, driver.Arg{Kind: driver.ArgMemory, Memory: m}) }
	for _, n := range size {
		number(uint64(n), 4)
	}
	float(alpha)
	memory()
	number(uint64(ld[0]), 4)
	memory()
	number(uint64(ld[1]), 4)
	float(beta)
	memory()
	number(uint64(ld[2]), 4)
	return l
}

func TestProduct(t *testing.T) {
	d := openNull(t, vendor())
	s, m := newStream(t, d), alloc(t, d, 1<<16, driver.OnDevice)
	part := driver.Memory{Handle: m.Handle, Offset: 64, Size: m.Size - 64}
	for number, typ := range []string{"f32", "f64", "f16"} {
		k, ok := d.Native(productUnit(typ, source.Define{Name: "TRANS_B", Value: "1"}), "gemm")
		require.True(t, ok, typ)
		assert.Equal(t, driver.KernelInfo{Name: "gemm", Implementation: "nullblas", Native: true}, k.Info())
		require.NoError(t, s.Launch(product(k, gemmTypes[typ].scalar, [3]uint32{4, 5, 6}, [3]uint32{7, 8, 9}, 2, -0.5, part)))
		at := m.Handle + 64
		assert.Equal(t, null.Product{Type: number, TransB: true, M: 4, N: 5, K: 6, LDA: 7, LDB: 8, LDC: 9, Alpha: 2,
			Beta: -0.5, A: at, B: at, C: at},
			null.LastProduct(), typ)
	}
	assert.Equal(t, 1, null.Calls("blas_open"), "once")
	require.NoError(t, s.Sync(ctx))

	_, ok := d.Native(productUnit("bf16"), "gemm")
	assert.False(t, ok, "not a type of the library")
	_, ok = d.Native(parse(t, saxpyText), "saxpy")
	assert.False(t, ok)
	forged, err := source.Parse(saxpyText, source.Options{Family: "gemm"})
	require.NoError(t, err)
	_, ok = d.Native(forged, "gemm")
	assert.False(t, ok, "no such kernel in it")
}

func TestProductRefused(t *testing.T) {
	d := openNull(t, vendor())
	s, m := newStream(t, d), alloc(t, d, 1<<16, driver.OnDevice)
	k, ok := d.Native(productUnit("f32"), "gemm")
	require.True(t, ok)
	launch := func(size, ld [3]uint32, alpha float64) *driver.Launch { return product(k, 4, size, ld, alpha, 0, m) }
	for what, l := range map[string]*driver.Launch{
		"m": launch([3]uint32{0, 1, 1}, [3]uint32{1, 1, 1}, 1), "n": launch([3]uint32{1, 0, 1}, [3]uint32{1, 1, 1}, 1),
		"k": launch([3]uint32{1, 1, 0}, [3]uint32{1, 1, 1}, 1), "alpha": launch([3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0),
		"lda": launch([3]uint32{2, 2, 2}, [3]uint32{1, 2, 2}, 1), "ldb": launch([3]uint32{2, 2, 2}, [3]uint32{2, 1, 2}, 1),
		"ldc":  launch([3]uint32{2, 2, 2}, [3]uint32{2, 2, 1}, 1),
		"huge": launch([3]uint32{1, 1 << 31, 1}, [3]uint32{1, 1 << 31, 1 << 31}, 1),
	} {
		assert.ErrorIs(t, s.Launch(l), driver.ErrUnsupported, what)
		assert.False(t, k.(driver.Selective).Takes(l), what)
	}
	large := [3]uint32{128, 128, 128}
	assert.NoError(t, s.Launch(launch(large, large, 1)), "all of the memory")
	assert.ErrorIs(t, s.Launch(launch([3]uint32{129, 128, 128}, large, 1)), driver.ErrBufferOverflow)
	most := [3]uint32{math.MaxInt32, math.MaxInt32, math.MaxInt32}
	assert.ErrorIs(t, s.Launch(launch(most, most, 1)), driver.ErrBufferOverflow, "no overflow of numbers")
	assert.ErrorIs(t, s.Launch(&driver.Launch{Kernel: k}), driver.ErrInvalidArgument)
	wide := launch(large, large, 1)
	wide.Args[gemmAlpha].Size = 8
	assert.ErrorIs(t, s.Launch(wide), driver.ErrInvalidArgument)
	null.Fail("gemm", 0, int(statusInvalid))
	err := s.Launch(launch(large, large, 1))
	assert.ErrorIs(t, err, driver.ErrLaunch)
	assert.ErrorContains(t, err, "launch gemm")
	_, err = d.Occupancy(k, 64, 0)
	assert.ErrorIs(t, err, driver.ErrUnsupported)

	other, err := NewBackend(vendor()).Open(ctx, 1, nil)
	require.NoError(t, err)
	defer other.Close()
	foreign, err := other.NewStream()
	require.NoError(t, err)
	assert.ErrorIs(t, foreign.Launch(launch(large, large, 1)), driver.ErrInvalidArgument)
}

// TestTakes: the size from which on the library is used.
func TestTakes(t *testing.T) {
	d := openNull(t, vendor())
	k, ok := d.Native(productUnit("f32"), "gemm")
	require.True(t, ok)
	takes := func(m, n, depth uint32) bool {
		return k.(driver.Selective).Takes(product(k, 4, [3]uint32{m, n, depth}, [3]uint32{depth, n, n}, 1, 0,
			driver.Memory{}))
	}
	assert.True(t, takes(64, 64, 64))
	assert.False(t, takes(64, 64, 63))
	assert.True(t, takes(1, 1, 64*64*64))
	assert.False(t, takes(1, 1, 64*64*64-1))
	assert.True(t, takes(math.MaxInt32, math.MaxInt32, 1))
}

// Without the library there is no native kernel, and the library is looked for once.
func TestNoBLAS(t *testing.T) {
	d := openNull(t, vendor())
	null.Fail("blas_open", 0, int(statusUnsupported))
	for range 2 {
		_, ok := d.Native(productUnit("f32"), "gemm")
		assert.False(t, ok)
	}
	assert.Equal(t, 1, null.Calls("blas_open"))
}

// The reason why the library is missing is reported. It is remembered if it is permanent; otherwise
// the library is looked for again.
func TestWhyNoBLAS(t *testing.T) {
	d := openNull(t, vendor())
	s, unit := newStream(t, d), productUnit("f32")
	require.NoError(t, d.WhyNotNative(productUnit("bf16"), "gemm"), "nothing that could be there")
	require.NoError(t, s.BeginCapture())
	_, ok := d.Native(unit, "gemm")
	assert.False(t, ok)
	assert.ErrorIs(t, d.WhyNotNative(unit, "gemm"), driver.ErrUnsupported)
	assert.Zero(t, null.Calls("blas_open"), "not inside a recording")
	require.NoError(t, s.DropCapture())
	null.Fail("blas_open", 0, int(statusNoMemory))
	assert.ErrorIs(t, d.WhyNotNative(unit, "gemm"), driver.ErrOutOfMemory)
	_, ok = d.Native(unit, "gemm")
	assert.True(t, ok, "there is room by now")
	require.NoError(t, s.BeginCapture())
	_, ok = d.Native(unit, "gemm")
	assert.True(t, ok, "it is open")
	require.NoError(t, s.Close())
	assert.Zero(t, d.blas.captures.Load())

	other, err := NewBackend(vendor()).Open(ctx, 1, nil)
	require.NoError(t, err)
	defer other.Close()
	null.Fail("blas_open", 0, int(statusUnsupported))
	for range 2 {
		err := other.(driver.NoNative).WhyNotNative(unit, "gemm")
		assert.ErrorIs(t, err, driver.ErrUnsupported)
		assert.ErrorContains(t, err, "open nullblas")
	}
}

func TestNoBLASEntry(t *testing.T) {
	v := vendor()
	v.Table = null.Bare
	_, ok := openNull(t, v).Native(productUnit("f32"), "gemm")
	assert.False(t, ok)
}

// A product allocates nothing, like a launch.
func TestProductAllocations(t *testing.T) {
	if instrumented {
		t.Skip("the checker allocates")
	}
	d := openNull(t, vendor())
	s, m := newStream(t, d), alloc(t, d, 1<<16, driver.OnDevice)
	k, _ := d.Native(productUnit("f32"), "gemm")
	l := productOf(k, m)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if !k.(driver.Selective).Takes(l) && s.Launch(l) != nil {
			t.Error("refused")
		}
	}))
}
