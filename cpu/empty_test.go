package cpu

// Sizes at the ends of their range: results of nothing, and buffers that are too small.

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// sizesAfter is a launch's arguments: buffers, and numbers behind them.
func sizesAfter(buffers []any, sizes ...uint32) []any {
	for _, n := range sizes {
		buffers = append(buffers, n)
	}
	return buffers
}

// TestEmptyResults has sizes whose product is 0, though that of the others is more than
// anything could count to.
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
	eachSet(t, func(t *testing.T, d *device) {
		for _, c := range []struct {
			family, kernel string
			global         [3]int
			args           []any
		}{
			{"im2col", "im2col", one, append(sizesAfter(nil, 1e6, 1000, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1e6, 0), none(2)...)},
			{"im2col", "im2col", one, append(sizesAfter(nil, all, all, 0, 1, all, all, 1, 1, 0, 0, 1, 1, 0, all), none(2)...)},
			{"conv2d", "conv2d", one, append(sizesAfter(nil, half, half, 0, 1, half, 0, 1, 1, 1, 0, 0, 1, 1, half, 0, 7), none(4)...)},
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
			{"scatter", "scatter", one, sizesAfter(none(4), all, all, 0)},
			{"scatter", "scatter_add", one, sizesAfter(none(3), all, all, 0)},
		} {
			done := make(chan error, 1)
			go func() { done <- invoke(t, d, c.family, c.kernel, nil, c.global, c.args...) }()
			select {
			case err := <-done:
				assert.NoError(t, err, "%s %v", c.kernel, c.args)
			case <-time.After(10 * time.Second): // far more than nothing takes
				t.Errorf("%s %v does not end", c.kernel, c.args)
				return
			}
		}
	})
}

// TestOverflowRefuses has sizes whose product is 0 or small only in 64 bits.
func TestOverflowRefuses(t *testing.T) {
	const half = 1 << 31
	eachSet(t, func(t *testing.T, d *device) {
		args := sizesAfter(nil, 1, half, 0, 1, half, 4, 1, 1, 0, 0, 1, 1, 1, 1)
		err := invoke(t, d, "im2col", "im2col", nil, [3]int{1, 1, 1}, append(args, []byte(nil), []byte(nil))...)
		assert.ErrorIs(t, err, driver.ErrInvalidArgument)
		err = invoke(t, d, "reduce", "reduce_sum", nil, [3]int{1, 1, 1}, sizesAfter([]any{[]byte(nil), []byte(nil)}, math.MaxUint32, 0, math.MaxUint32)...)
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
		{"scatter", "scatter", []int{count * n, count, rows, rows * n}, []string{"in", "index", "last", "out"}, []uint32{rows, count, n}},
		{"scatter", "scatter_add", []int{count * n, count, rows * n}, []string{"in", "index", "out"}, []uint32{rows, count, n}},
	} {
		eachSet(t, func(t *testing.T, d *device) {
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

// TestConvGivesBack stops a launch while it packs its filters.
func TestConvGivesBack(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("Go packs nothing")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p := convPlan{convolution: convolution{n: 1, c: 1024, h: 1, w: 1, k: 16, groups: 1, rows: 1, cols: 1, strideH: 1, strideW: 1,
			dilationH: 1, dilationW: 1, outH: 1, outW: 1}, call: &call{device: d, ctx: ctx}, set: d.simd, size: 4}
		f := newFence(t, 14)
		require.ErrorIs(t, p.run(f.bytes(4*1024), f.bytes(4*16*1024), nil, f.bytes(4*16)), context.Canceled)
		require.True(t, p.packed)
		assert.Len(t, d.scratch.idle, 1)
	})
}
