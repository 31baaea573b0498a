package cpu

// Tests of extreme sizes: results of no elements, and buffers that are too small.

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// sizesAfter returns the arguments of a launch: buffers followed by numbers.
func sizesAfter(buffers []any, sizes ...uint32) []any {
	for _, n := range sizes {
		buffers = append(buffers, n)
	}
	return buffers
}

// With alpha 0 the factors of a product are not read, and may be of any size.
func TestProductsOfNothing(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		y := []float32{1, 2, 3, 4, 5, 6, 7}
		b := unsafe.Slice((*byte)(unsafe.Pointer(&y[0])), 28)
		none := make([]byte, 4)
		require.NoError(t, invoke(t, d, "gemv", "gemv", nil, [3]int{1, 1, 1}, uint32(7), uint32(11), float32(0), none,
			uint32(11), none, float32(2), b))
		assert.Equal(t, []float32{2, 4, 6, 8, 10, 12, 14}, y)
		z := []int32{1, 2, 3, 4, 5, 6}
		b = unsafe.Slice((*byte)(unsafe.Pointer(&z[0])), 24)
		require.NoError(t, invoke(t, d, "gemm_batch", "gemm_batch", []source.Define{{Name: "T", Value: "i32"}},
			[3]int{1, 1, 3}, uint32(1), uint32(2), uint32(11),
			int32(0), none, uint32(11), none, uint32(2), int32(3), b, uint32(2), uint32(3), uint64(77), uint64(77), uint64(2)))
		assert.Equal(t, []int32{3, 6, 9, 12, 15, 18}, z)
	})
}

// TestEmptyResults launches with one size of 0 and others that are so large that no loop over
// them would end.
func TestEmptyResults(t *testing.T) {
	const all, half = math.MaxUint32, 1 << 31
	none := func(n int) []any {
		list := []any{}
		for range n {
			list = append(list, []byte(nil))
		}
		return list
	}
	one, batch := [3]int{1, 1, 1}, [3]int{1, 1, half}
	eachDevice(t, func(t *testing.T, d *device) {
		for _, c := range []struct {
			family, kernel string
			global         [3]int
			args           []any
		}{
			{"im2col", "im2col", one, append(sizesAfter(nil, 1e6, 1000, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1e6, 0), none(2)...)},
			{"im2col", "im2col", one, append(sizesAfter(nil, all, all, 0, 1, all, all, 1, 1, 0, 0, 1, 1, 0, all), none(2)...)},
			{"conv2d", "conv2d", one, append(sizesAfter(nil, half, half, 0, 1, half, 0, 1, 1, 1, 0, 0, 1, 1, half, 0, 7),
				none(4)...)},
			{"softmax", "softmax", one, sizesAfter(none(2), all, 0)},
			{"norm", "layer_norm", one, append(sizesAfter(none(4), all, 0), float32(0))},
			{"norm", "rms_norm", one, append(sizesAfter(none(3), all, 0), float32(0))},
			{"norm", "layer_norm", one, append(sizesAfter(none(4), 0, 1024), float32(0))},
			{"reduce", "reduce_sum", one, sizesAfter(none(2), all, all, 0)},
			{"reduce", "reduce_argmax", one, sizesAfter(none(2), 0, all, all)},
			{"topk", "topk", one, sizesAfter(none(3), all, 0, 0)},
			{"topk", "topk", one, sizesAfter(none(3), 5, 7, 0)},
			{"transpose", "transpose", batch, sizesAfter(none(2), 0, all)},
			{"transpose", "transpose", batch, sizesAfter(none(2), all, 0)},
			{"arith", "add_broadcast", one, sizesAfter(none(3), all, all, all, 0, 1, 1, 1, 1, 1, 1, 1, 1)},
			{"gather", "gather", one, sizesAfter(none(3), all, all, 0)},
			{"gather", "gather_parts", one, append(sizesAfter(none(3), all, all, all, 0), uint64(1), uint64(1))},
			{"scatter", "scatter", one, sizesAfter(none(4), all, all, 0)},
			{"scatter", "scatter_runs", one, sizesAfter(none(4), all, all, 0)},
			{"scatter", "scatter_add", one, sizesAfter(none(3), all, all, 0)},
			{"take_along", "take_along", one, sizesAfter(none(3), all, all, 0, all)},
			{"sort_pairs", "sort_blocks", one, sizesAfter(none(4), all, 0)},
			{"sort_pairs", "sort_merge", one, sizesAfter(none(4), 0, all, all)},
			{"segment", "segment_add", one, sizesAfter(none(4), all, all, all, 0)},
			{"scan", "scan_sum", one, sizesAfter(none(3), all, 0, all)},
			{"segment", "segment_max", one, sizesAfter(none(4), all, all, 0, all)},
		} {
			done := make(chan error, 1)
			go func() { done <- invoke(t, d, c.family, c.kernel, nil, c.global, c.args...) }()
			select {
			case err := <-done:
				assert.NoError(t, err, "%s %v", c.kernel, c.args)
			case <-time.After(10 * time.Second): // far more than a launch without work takes
				t.Errorf("%s %v does not end", c.kernel, c.args)
				return
			}
		}
	})
}

// TestOverflowRefuses launches with sizes whose product overflows 64 bits to 0 or to a small number.
func TestOverflowRefuses(t *testing.T) {
	const half = 1 << 31
	eachDevice(t, func(t *testing.T, d *device) {
		args := sizesAfter(nil, 1, half, 0, 1, half, 4, 1, 1, 0, 0, 1, 1, 1, 1)
		err := invoke(t, d, "im2col", "im2col", nil, [3]int{1, 1, 1}, append(args, []byte(nil), []byte(nil))...)
		assert.ErrorIs(t, err, driver.ErrInvalidArgument)
		err = invoke(t, d, "reduce", "reduce_sum", nil, [3]int{1, 1, 1},
			sizesAfter([]any{[]byte(nil), []byte(nil)}, math.MaxUint32, 0, math.MaxUint32)...)
		assert.ErrorIs(t, err, driver.ErrInvalidArgument)
	})
}

// TestIndexRefuses makes each buffer of gather and scatter one element too small.
func TestIndexRefuses(t *testing.T) {
	const rows, count, n = 5, 7, 3
	for _, c := range []struct {
		family, kernel string
		buffers        []int // elements
		names          []string
		sizes          []uint32
	}{
		{"gather", "gather", []int{rows * n, count, count * n}, []string{"in", "index", "out"}, []uint32{rows, count, n}},
		{"scatter", "scatter_last", []int{count, rows}, []string{"index", "last"}, []uint32{rows, count}},
		{"scatter", "scatter", []int{count * n, count, rows, rows * n}, []string{"in", "index", "last", "out"},
			[]uint32{rows, count, n}},
		{"scatter", "scatter_runs", []int{count * n, count, count, rows * n}, []string{"in", "index", "order", "out"},
			[]uint32{rows, count, n}},
		{"scatter", "scatter_add", []int{count * n, count, rows * n}, []string{"in", "index", "out"},
			[]uint32{rows, count, n}},
		{"take_along", "take_along", []int{2 * rows * n, 2 * count * n, 2 * count * n}, []string{"in", "index", "out"},
			[]uint32{2, rows, count, n}},
		{"sort_pairs", "sort_blocks", []int{rows * n, rows * n, rows * n, rows * n},
			[]string{"keys", "values", "keysOut", "valuesOut"}, []uint32{rows, n}},
		{"sort_pairs", "sort_merge", []int{rows * n, rows * n, rows * n, rows * n},
			[]string{"keys", "values", "keysOut", "valuesOut"}, []uint32{rows, n, 2}},
		{"scan", "scan_sum", []int{rows * n, rows * (count - 1), rows * n}, []string{"in", "totals", "out"},
			[]uint32{rows, n, count}},
		{"segment", "segment_min", []int{rows * n, count, count, 4 * n}, []string{"in", "id", "order", "out"},
			[]uint32{rows, count, 4, n}},
	} {
		eachDevice(t, func(t *testing.T, d *device) {
			for short := -1; short < len(c.buffers); short++ {
				buffers := []any{}
				for i, n := range c.buffers {
					if i == short {
						n--
					}
					buffers = append(buffers, make([]byte, 4*n))
				}
				err := invoke(t, d, c.family, c.kernel, nil, [3]int{1, 1, 1}, sizesAfter(buffers, c.sizes...)...)
				if short < 0 {
					require.NoError(t, err, c.kernel)
					continue
				}
				assert.ErrorIs(t, err, driver.ErrInvalidArgument, "%s: %s", c.kernel, c.names[short])
				assert.ErrorContains(t, err, " "+c.names[short]+")", c.kernel)
			}
		})
	}
}

// TestBadSizesRefuse changes one argument at a time of valid launches to an invalid value.
func TestBadSizesRefuse(t *testing.T) {
	const all = math.MaxUint32
	floats := func(n int) []byte { return make([]byte, 4*n) }
	gemm := []any{uint32(5), uint32(3), uint32(4), float32(1), floats(20), uint32(4), floats(12), uint32(3), float32(1),
		floats(15), uint32(3)}
	conv := sizesAfter(nil, 1, 4, 4, 4, 2, 3, 3, 1, 1, 0, 0, 1, 1, 2, 2, 2)
	im2col := sizesAfter(nil, 1, 2, 4, 4, 3, 3, 1, 1, 0, 0, 1, 1, 2, 2)
	type bad map[int][]any // by argument, its wrong values
	sizes := func(v ...uint32) []any { return sizesAfter(nil, v...) }
	products := bad{0: sizes(6, all), 1: sizes(4, all), 2: sizes(5, 100, 4e9, all), 5: sizes(5, all), 7: sizes(4, all),
		9: {floats(14), floats(0)}, 10: sizes(0, 1, 2, 4, all)}
	operands := bad{4: {floats(19), floats(0)}, 6: {floats(11), floats(0)}}
	for _, c := range []struct {
		kernel  string
		defines []source.Define
		args    []any
		bad     []bad
	}{
		{"gemm", nil, gemm, []bad{products, operands}},
		{"gemm_batch", nil, append(slices.Clone(gemm), uint32(1), uint64(0), uint64(0), uint64(0)),
			[]bad{products, operands, {11: sizes(2, all)}}},
		{"gemm_bias", nil, append(slices.Clone(gemm), floats(3)), []bad{products, operands, {11: {floats(2), floats(0)}}}},
		{"gemm_i8", nil, []any{uint32(5), uint32(3), uint32(4), int32(1), make([]byte, 20), uint32(4), make([]byte, 12),
			uint32(3), int32(1),
			floats(15), uint32(3)}, []bad{products, {4: {make([]byte, 19)}, 6: {make([]byte, 11)}}}},
		{"conv2d", define("BIAS", "1"), append(conv, floats(64), floats(36), floats(2), floats(8)),
			[]bad{{0: sizes(2, all), 1: sizes(3, 6, all),
				2: sizes(5, all), 3: sizes(5, all), 4: sizes(1, 3, 4, all), 5: sizes(4, all), 6: sizes(4, all), 7: sizes(0),
				8: sizes(0), 11: sizes(0), 12: sizes(0),
				13: sizes(0, 1, 3, all), 14: sizes(3, all), 15: sizes(3, all), 16: {floats(63)}, 17: {floats(35)}, 18: {floats(1)},
				19: {floats(7)}}}},
		{"im2col", nil, append(im2col, floats(32), floats(72)),
			[]bad{{0: sizes(2, all), 1: sizes(3, all), 2: sizes(5, all), 3: sizes(5, all),
				4: sizes(4, all), 5: sizes(4, all), 6: sizes(0), 7: sizes(0), 10: sizes(0), 11: sizes(0), 12: sizes(3, all),
				13: sizes(3, all),
				14: {floats(31)}, 15: {floats(71)}}}},
	} {
		eachDevice(t, func(t *testing.T, d *device) {
			run := func(args []any) error { return invoke(t, d, c.kernel, c.kernel, c.defines, [3]int{1, 1, 1}, args...) }
			require.NoError(t, run(c.args), c.kernel)
			for _, wrong := range c.bad {
				for i, values := range wrong {
					for _, v := range values {
						args := slices.Clone(c.args)
						args[i] = v
						assert.ErrorIs(t, run(args), driver.ErrInvalidArgument, "%s: argument %d is %v", c.kernel, i, v)
					}
				}
			}
		})
	}
}

// TestSmallBuffersRefuse makes each buffer of each small case of the catalog one element too
// small. Every implementation has to return an error, and not panic over an index that is out of range.
func TestSmallBuffersRefuse(t *testing.T) { eachDevice(t, smallBuffersRefuse) }

func smallBuffersRefuse(t *testing.T, d *device) {
	for _, f := range kernels.Families() {
		refused := map[string]bool{} // by kernel and argument
		for _, c := range kernels.Cases(f.ID) {
			if slices.ContainsFunc(c.Args, func(a kernels.Arg) bool { return a.Len > 2048 }) {
				continue
			}
			for short := -1; short < len(c.Args); short++ {
				if short >= 0 && c.Args[short].Dir == kernels.Value {
					continue
				}
				args := make([]any, len(c.Args))
				for i, a := range c.Args {
					args[i] = argumentOf(t, a, i == short)
				}
				err := invoke(t, d, c.Family, c.Kernel, c.Defines, gridOf(t, &c), args...)
				at := fmt.Sprintf("%s argument %d", c.Kernel, short)
				switch {
				case short < 0:
					require.NoError(t, err, c.Name())
				case err != nil:
					refused[at] = true
					require.ErrorIs(t, err, driver.ErrInvalidArgument, "%s: argument %d", c.Name(), short)
				case !refused[at]:
					refused[at] = false
				}
			}
		}
		for at, ok := range refused {
			assert.True(t, ok, "%s: no case needs all of %s", f.ID, at)
		}
	}
}

// gridOf returns the items of a case's grid.
func gridOf(t *testing.T, c *kernels.Case) [3]int {
	t.Helper()
	u, err := kernels.Unit(c.Family, nil, c.Defines...)
	require.NoError(t, err)
	items, _, err := kernels.Geometry(u, c.Kernel, c.Sizes...)
	require.NoError(t, err)
	return items
}

// TestOddOffsetsRefuse passes each buffer of one case of each kernel at an address that is not a
// multiple of the size of its elements, which every implementation has to refuse.
func TestOddOffsetsRefuse(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		for _, f := range kernels.Families() {
			seen := map[string]bool{}
			for _, c := range kernels.Cases(f.ID) {
				small := func(a kernels.Arg) bool { return a.Dir != kernels.Value && a.Len < 3 }
				if seen[c.Kernel] || slices.ContainsFunc(c.Args, small) {
					continue
				}
				seen[c.Kernel] = true
				for odd, a := range c.Args {
					unused := c.Kernel == "conv2d" && odd == 18 // the bias, where BIAS is 0
					if a.Dir == kernels.Value || kernels.SizeOf(a.Type) == 1 || unused {
						continue
					}
					args := make([]any, len(c.Args))
					for i, a := range c.Args {
						args[i] = argumentOf(t, a, false)
					}
					args[odd] = append([]byte{0}, args[odd].([]byte)...)[1:]
					assert.ErrorIs(t, invoke(t, d, c.Family, c.Kernel, c.Defines, gridOf(t, &c), args...), driver.ErrInvalidArgument,
						"%s: argument %d", c.Name(), odd)
				}
			}
			for _, k := range f.Kernels {
				assert.True(t, seen[k], "%s has no case with three elements", k)
			}
		}
	})
}

// argumentOf converts an argument of a case for invoke, without its last element if short.
func argumentOf(t *testing.T, a kernels.Arg, short bool) any {
	switch {
	case a.Bytes != nil:
		return structArgument(a.Bytes)
	case a.Dir != kernels.Value:
		x := a.Data()
		if x == nil {
			x = make([]float64, a.Len)
		}
		if short {
			x = x[:len(x)-1]
		}
		return kernels.Encode(a.Type, x)
	case a.Type == "f32":
		return float32(a.V)
	case a.Type == "f64":
		return a.V
	case a.Type == "i32":
		return int32(a.V)
	case a.Type == "i64":
		return uint64(int64(a.V))
	case a.Type == "u32":
		return uint32(a.V)
	}
	require.Equal(t, "u64", a.Type)
	return uint64(a.V)
}

// TestConvGivesBack stops a launch while it packs its filters; its scratch memory has to be given back, also
// that of copies of the images.
func TestConvGivesBack(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("the Go kernels do not pack filters")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, trial := range []struct {
			stride, gap int
			last        bool
			most        int // blocks at the same time
		}{{1, 0, false, 1}, {1, 1, false, 1}, {1, 0, true, 2}, {3, 1, false, 3}} {
			require.NoError(t, d.scratch.free())
			d.scratch.closed = false
			p := convPlan{convolution: convolution{n: 1, c: 1024, h: 1, w: 1, k: 16, groups: 1, rows: 1, cols: 1, strideH: 1,
				strideW:   trial.stride,
				dilationH: 1, dilationW: 1, outH: 1, outW: 1, gapW: trial.gap, last: trial.last}, call: &call{device: d,
				ctx: ctx}, set: d.simd, size: 4}
			f := newFence(t, 14)
			err := p.arrange(f.bytes(4*1024), f.bytes(4*16*1024), nil, f.bytes(4*16))
			require.ErrorIs(t, err, context.Canceled)
			assert.Equal(t, trial.most, len(d.scratch.idle))
		}
	})
}
