package cpu

// conv2d with dilation and without the products in the padding.

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/source"
)

// dilatedTrial is a random convolution with dilation in at least one direction. Often the padding is no multiple of the
// dilation, or the output is no multiple of a cell, so that cells reach past the image.
func (f *fence) dilatedTrial(typ string, rows int) convTrial {
	r := f.r
	g := 1 + r.IntN(3)*r.IntN(2)
	s := convolution{n: 1 + r.IntN(3), c: g * (1 + r.IntN(12)), h: 1 + r.IntN(30), w: 1 + r.IntN(30),
		k: g * (1 + r.IntN(3*rows)), groups: g, rows: 1 + r.IntN(4), cols: 1 + r.IntN(4), strideH: 1, strideW: 1,
		dilationH: 1 + r.IntN(6), dilationW: 2 + r.IntN(6), last: r.IntN(4) == 0}
	if r.IntN(4) == 0 {
		s.dilationH, s.dilationW = s.dilationW, s.dilationH
	}
	s.padH, s.padW = r.IntN(3*s.dilationH), r.IntN(3*s.dilationW)
	if r.IntN(2) == 0 {
		s.padH, s.padW = s.dilationH, s.dilationW
	}
	s.across = !s.last && r.IntN(4) == 0
	s.outH = kernels.ConvOut(s.h, s.rows, 1, s.padH, s.padH+r.IntN(3), s.dilationH)
	s.outW = kernels.ConvOut(s.w, s.cols, 1, s.padW, s.padW+r.IntN(3), s.dilationW)
	return convTrial{s, typ, r.IntN(2) == 0, r.IntN(4) == 0}
}

// TestConvDilated has few and many filters, channels that are copied at once and in parts, and cells of any size.
func TestConvDilated(t *testing.T) {
	for _, values := range []map[string]int{{"cpu.conv.dilated": 0}, {"cpu.conv.dilated": 0, "cpu.conv.room": 8,
		"cpu.conv.sums": 128}} {
		set, err := choice.NewSet(values)
		require.NoError(t, err)
		eachSet(t, func(t *testing.T, d *device) {
			if d.simd == nil {
				t.Skip("the Go kernel has one form")
			}
			d.Choose(set)
			f, count, used, cut := newFence(t, 35), 300, 0, 0
			if brief() {
				count = 60
			}
			for i := range count {
				s := f.dilatedTrial([]string{"f32", "f64", "f32", "f16", "bf16"}[i%5], d.simd.rows)
				if i%10 == 9 { // more channels than fit in a part of a cache of 2 MiB
					s.n, s.c, s.k, s.h, s.w, s.groups = 1, 90, 7+f.r.IntN(20), 28, 27, 1
					s.dilationH, s.dilationW, s.rows, s.cols, s.padH, s.padW = 4, 4, 3, 3, 4, 4+f.r.IntN(2)
					s.outH, s.outW, s.odd = 28, 27, false
				}
				p := convPlan{convolution: s.convolution, call: &call{device: d, chosen: set}, set: d.simd,
					size: max(kernels.SizeOf(s.typ), 4)}
				if s.n*s.k*s.outs() > 0 && !p.long() {
					q, ok := p.dilated()
					used += int(flag(ok))
					cut += int(flag(ok && q.deep < q.channels))
				}
				s.run(t, d, f)
			}
			assert.Greater(t, used, count/10)
			if values["cpu.conv.room"] > 0 {
				assert.Positive(t, cut)
			}
		})
	}
}

// TestConvDilatedPadding has filters whose first row is infinite: what meets it only in the padding is finite, since
// there is no product.
func TestConvDilatedPadding(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("the Go kernel has one form")
		}
		f := newFence(t, 36)
		defer f.free()
		s := convTrial{convolution{n: 1, c: 16, h: 28, w: 28, k: 5, groups: 1, rows: 3, cols: 3, strideH: 1, strideW: 1,
			padH: 4, padW: 4, dilationH: 4, dilationW: 4, outH: 28, outW: 28}, "f32", false, false}
		p := convPlan{convolution: s.convolution, call: &call{device: d}, set: d.simd, size: 4}
		_, ok := p.dilated()
		require.True(t, ok)
		x, weight := f.numbers("f32", s.c*s.h*s.w), f.numbers("f32", s.k*s.depth())
		bias, y := f.numbers("f32", s.k), f.numbers("f32", s.k*s.outs())
		values := kernels.Decode("f32", weight)
		for i := range values {
			if i%9 < 3 {
				values[i] = math.Inf(1)
			}
		}
		copy(weight, kernels.Encode("f32", values))
		defines := []source.Define{{Name: "T", Value: "f32"}}
		require.NoError(t, invoke(t, d, "conv2d", "conv2d", defines, [3]int{1, 1, 1}, s.args(x, weight, bias, y)...))
		for i, v := range kernels.Decode("f32", y) {
			row := i / s.outW % s.outH
			require.Equal(t, row < s.padH, !math.IsInf(v, 0) && !math.IsNaN(v), "element %d is %g", i, v)
		}
	})
}
