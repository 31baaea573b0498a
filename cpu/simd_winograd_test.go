package cpu

import (
	"bytes"
	"math"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

// winogradTrial is a random convolution that the method is used for, with so many filters that they do not fit
// in half of the second-level cache if many is set.
func (f *fence) winogradTrial(typ string, rows, side int, many bool) convTrial {
	r, size, stride := f.r, 3+2*f.r.IntN(2), 1
	if size == 3 {
		stride += f.r.IntN(2)
	}
	g := 1 + r.IntN(2)
	s := convolution{c: g * (16 + r.IntN(20)), h: size + r.IntN(stride*side), w: size + r.IntN(stride*side), groups: g,
		k:    g * (4*rows + r.IntN(15)),
		rows: size, cols: size, strideH: stride, strideW: stride, padH: r.IntN(size + 1), padW: r.IntN(size + 1),
		dilationH: 1, dilationW: 1}
	if l2, _ := cacheSizes(); many {
		s.k = g * (1 + l2/8/16/(s.c/g))
	}
	s.outH, s.outW = kernels.ConvOut(s.h, size, stride, s.padH, s.padH, 1),
		kernels.ConvOut(s.w, size, stride, s.padW, s.padW, 1)
	few := 256
	if stride == 2 {
		few = 1024
	}
	s.n = (few-1+s.outs())/s.outs() + r.IntN(3)
	return convTrial{s, typ, r.IntN(2) == 0, false}
}

func TestConvWinograd(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("the Go kernel computes by definition")
		}
		f, count, several, fewer := newFence(t, 21), 24, 0, 0
		if brief() {
			count = 12
		}
		for i := range count {
			s := f.winogradTrial([]string{"f32", "f32", "f16", "bf16"}[i%4], d.simd.rows, []int{4, 9, 24}[i%3], i%6 == 3)
			p := convPlan{convolution: s.convolution, call: &call{device: d}, set: d.simd, size: 4}
			require.True(t, p.winograd(), "%+v", s)
			p.planWinograd()
			several, fewer = several+int(flag(p.strips > 1)), fewer+int(flag(p.some < p.filters))
			s.run(t, d, f)
		}
		assert.Positive(t, several, "tasks of several strips")
		assert.True(t, fewer > 0 || d.threads == 1, "tasks of some filters")
	})
}

// The bound of the catalog is for the filters and tiles of a launch, and a phase of an image with gaps has others.
func TestConvPhaseByDefinition(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("the Go kernel computes by definition")
		}
		s := convolution{n: 1, c: 16, h: 24, w: 24, k: 4 * d.simd.rows, groups: 1, rows: 6, cols: 6, strideH: 1, strideW: 1,
			padH: 2, padW: 2,
			dilationH: 1, dilationW: 1, gapH: 1, gapW: 1}
		s.outH, s.outW = kernels.ConvOut(47, 6, 1, 2, 2, 1), kernels.ConvOut(47, 6, 1, 2, 2, 1)
		f, r := newFence(t, 23), 0
		image, filters := make([]float64, s.c*s.h*s.w), make([]float64, s.k*s.depth())
		for i := range image {
			image[i] = 1
		}
		for c := range s.c {
			image[c*s.h*s.w+5*s.w+7] = 1e7 // of which the transforms leave rounding errors elsewhere
		}
		for i := range filters {
			if r = i / 6 % 6; r/2 != 1 || i%6/2 != 1 {
				filters[i] = 1.0 / 3
			}
		}
		x, weight, y := f.bytes(4*len(image)), f.bytes(4*len(filters)), f.bytes(4*s.k*s.outs())
		copy(x, kernels.Encode("f32", image))
		copy(weight, kernels.Encode("f32", filters))
		trial := convTrial{s, "f32", false, false}
		defines := []source.Define{{Name: "SPREAD_H", Value: "2"}, {Name: "SPREAD_W", Value: "2"}}
		require.NoError(t, invoke(t, d, "conv2d", "conv2d", defines, [3]int{1, 1, 1},
			trial.args(x, weight, f.bytes(4), y)...))
		got, image, filters := kernels.Decode("f32", y), kernels.Decode("f32", x), kernels.Decode("f32", weight)
		for i, g := range got {
			sum, weight := 0.0, 0.0
			for p := range s.depth() {
				row, col := i/s.outW%s.outH+p/6%6-2, i%s.outW+p%6-2
				if row >= 0 && col >= 0 && row%2 == 0 && col%2 == 0 && row/2 < s.h && col/2 < s.w {
					v := image[(p/36*s.h+row/2)*s.w+col/2] * filters[i/s.outs()*s.depth()+p]
					sum, weight = sum+v, weight+math.Abs(v)
				}
			}
			require.InDelta(t, sum, g, float64(s.depth()+2)*0x1p-24*weight, "element %d", i)
		}
		f.free()
	})
}

// An infinite element and a NaN change only the outputs that they are a factor of, and an overflow in
// a transform changes none.
func TestConvWinogradNotFinite(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("the Go kernel computes by definition")
		}
		s := convolution{n: 1, c: 16, h: 20, w: 20, k: 4 * d.simd.rows, groups: 1, rows: 3, cols: 3, strideH: 1, strideW: 1,
			dilationH: 1, dilationW: 1,
			outH: 18, outW: 18}
		trial := convTrial{s, "f32", false, false}
		f := newFence(t, 22)
		for _, odd := range []float64{math.Inf(1), math.NaN(), math.MaxFloat32} {
			image, filters := make([]float64, s.c*s.h*s.w), make([]float64, s.k*s.depth())
			for i := range image {
				image[i] = 1
			}
			for i := range filters {
				filters[i] = 0.5
			}
			image[5*s.w+7], image[5*s.w+8] = odd, odd
			x, weight, y := f.bytes(4*len(image)), f.bytes(4*len(filters)), f.bytes(4*s.k*s.outs())
			copy(x, kernels.Encode("f32", image))
			copy(weight, kernels.Encode("f32", filters))
			require.NoError(t, invoke(t, d, "conv2d", "conv2d", nil, [3]int{1, 1, 1}, trial.args(x, weight, f.bytes(4), y)...))
			for i, got := range kernels.Decode("f32", y) {
				row, col := i/s.outW%s.outH, i%s.outW
				if row < 3 || row > 5 || col < 5 || col > 8 {
					require.Equal(t, 72.0, got, "%v at %d, %d", odd, row, col)
				} else {
					require.False(t, got == 72, "%v at %d, %d", odd, row, col)
				}
			}
			f.free()
		}
	})
}

// TestWinogradStack checks that what an earlier launch has left on the stack makes no difference: here NaN,
// which a strip with fewer tiles than two registers must not take for its own.
func TestWinogradStack(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("the Go functions have no strips")
		}
		goruntime.LockOSThread()
		defer goruntime.UnlockOSThread()
		strip := 2 * d.simd.bytes / 4
		cols := strip/4 + 2 // tiles in a row
		rows := 0
		for rows = 8; ; rows++ {
			left := rows * cols % strip
			if left > strip/2 && left < strip-2 && rows*cols*4 >= 256 && (rows*cols/strip*strip)%cols == 0 {
				break
			}
			if rows > 500 {
				t.Skip("no shape")
			}
		}
		s := convolution{n: 1, c: 16, h: 2 * rows, w: 2 * cols, k: 4 * d.simd.rows, groups: 1, rows: 3, cols: 3, strideH: 1,
			strideW: 1, dilationH: 1, dilationW: 1, padH: 1, padW: 1,
			outH: 2 * rows, outW: 2 * cols}
		f := newFence(t, 22)
		defer f.free()
		image, filters := make([]float64, s.c*s.h*s.w), make([]float64, s.k*s.depth())
		for i := range image {
			image[i] = math.Sin(float64(i))
		}
		for i := range filters {
			filters[i] = math.Cos(float64(i))
		}
		x, bad, weight, y := f.bytes(4*len(image)), f.bytes(4*len(image)), f.bytes(4*len(filters)), f.bytes(4*s.k*s.outs())
		copy(x, kernels.Encode("f32", image))
		for i := range image {
			image[i] = math.NaN()
		}
		copy(bad, kernels.Encode("f32", image))
		copy(weight, kernels.Encode("f32", filters))
		p := convPlan{convolution: s, call: &call{device: d}, set: d.simd, size: 4}
		require.True(t, p.winograd())
		n, not := 1500, 0
		if testing.Short() {
			n = 150
		}
		trial := convTrial{s, "f32", false, false}
		require.NoError(t, invoke(t, d, "conv2d", "conv2d", nil, [3]int{1, 1, 1}, trial.args(x, weight, f.bytes(4), y)...))
		base := bytes.Clone(y)
		for range n {
			require.NoError(t, invoke(t, d, "conv2d", "conv2d", nil, [3]int{1, 1, 1}, trial.args(bad, weight, f.bytes(4), y)...))
			require.NoError(t, invoke(t, d, "conv2d", "conv2d", nil, [3]int{1, 1, 1}, trial.args(x, weight, f.bytes(4), y)...))
			got := bytes.Clone(y)
			require.NoError(t, invoke(t, d, "conv2d", "conv2d", nil, [3]int{1, 1, 1}, trial.args(x, weight, f.bytes(4), y)...))
			if !bytes.Equal(got, base) || !bytes.Equal(y, base) {
				not++
			}
		}
		require.Zero(t, not, "of %d have other bits after a launch with NaN", n)
	})
}
