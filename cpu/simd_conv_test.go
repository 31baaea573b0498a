package cpu

// conv2d and im2col between guard pages, in every instruction set.

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// convTrial is one convolution of random data between guard pages.
type convTrial struct {
	convolution
	typ  string
	bias bool
	odd  bool // the images have a few elements that are not finite
}

func (f *fence) convTrial(typ string, side, channels int) convTrial {
	r := f.r
	g := 1 + r.IntN(3)*r.IntN(2)
	s := convolution{n: 1 + r.IntN(2), c: g * (1 + r.IntN(channels)), h: 1 + r.IntN(side), w: 1 + r.IntN(side),
		k: g * (1 + r.IntN(2*channels)), groups: g, rows: 1 + r.IntN(4), cols: 1 + r.IntN(4), strideH: 1 +
			r.IntN(6)/3*r.IntN(4),
		strideW: 1 + r.IntN(6)/3*r.IntN(4), padH: r.IntN(4), padW: r.IntN(4), dilationH: 1 + r.IntN(6)/3*r.IntN(6),
		dilationW: 1 + r.IntN(6)/3*r.IntN(6),
		gapH:      r.IntN(6) / 4 * r.IntN(3), gapW: r.IntN(6) / 4 * r.IntN(3), last: r.IntN(4) == 0}
	s.across = !s.last && r.IntN(4) == 0
	s.outH = kernels.ConvOut(between(s.h, s.gapH), s.rows, s.strideH, s.padH, r.IntN(4), s.dilationH)
	s.outW = kernels.ConvOut(between(s.w, s.gapW), s.cols, s.strideW, s.padW, r.IntN(4), s.dilationW)
	return convTrial{convolution: s, typ: typ, bias: r.IntN(2) == 0}
}

// wildTrial has sizes of 0, primes, outputs of any length, much padding, and often the shapes of which there
// are other forms than that by definition: those of Winograd's method and filters longer than the output.
func (f *fence) wildTrial(rows int) convTrial {
	r := f.r
	pick := func(list ...int) int { return list[r.IntN(len(list))] }
	form, g := r.IntN(3), pick(1, 1, 1, 2, 3)
	s := convolution{n: pick(1, 2, 3, 7), c: g * pick(0, 1, 2, 5, 17, 31), h: pick(0, 1, 2, 5, 11, 17, 29),
		w: pick(0, 1, 3, 7, 13, 31, 61), k: g * pick(1, 2, 5, 13, 4*rows, 4*rows+7),
		groups: g, rows: pick(0, 1, 2, 3, 5, 7, 13), cols: pick(0, 1, 2, 3, 5, 11, 23), strideH: pick(1, 1, 2, 7),
		strideW: pick(1, 1, 3, 5), padH: pick(0, 1, 2, 9, 1<<20),
		padW: pick(0, 1, 3, 40, 1<<20), dilationH: pick(1, 1, 2, 7), dilationW: pick(1, 1, 3, 5), gapH: pick(0, 0, 0, 1, 4),
		gapW: pick(0, 0, 0, 2, 3)}
	if form == 1 {
		s.rows, s.dilationH, s.dilationW, s.gapH, s.gapW = pick(3, 5), 1, 1, 0, 0
		s.cols, s.strideH = s.rows, 1+r.IntN(4-s.rows/2)/2
		s.strideW, s.c, s.k = s.strideH, g*pick(16, 19, 33), g*pick(4*rows, 4*rows+7, 8*rows-1)
	}
	out := func(n, gap, filter, stride, pad, dilation int) int {
		if form == 2 || r.IntN(3) == 0 {
			return pick(1, 2, 3, 5, 17)
		}
		return min(kernels.ConvOut(max(between(n, gap), 0), filter, stride, pad, min(pad, 40), dilation), 40)
	}
	if form == 2 {
		s.rows, s.cols = pick(7, 13, 29), pick(13, 31, 64)
		s.h, s.w = s.rows+r.IntN(5)-2, s.cols+r.IntN(5)-2
	}
	s.last = r.IntN(3) == 0
	s.across = !s.last && r.IntN(3) == 0
	s.outH, s.outW = out(s.h, s.gapH, s.rows, s.strideH, s.padH, s.dilationH),
		out(s.w, s.gapW, s.cols, s.strideW, s.padW, s.dilationW)
	return convTrial{s, []string{"f32", "f32", "f64", "f16", "bf16"}[r.IntN(5)], r.IntN(2) == 0, r.IntN(2) == 0}
}

// between returns the length of n elements with gap zeros between them.
func between(n, gap int) int { return (n-1)*(gap+1) + 1 }

func (s *convTrial) args(buffers ...any) []any {
	list := []any{}
	for _, v := range []int{s.n, s.c, s.h, s.w, s.k, s.rows, s.cols, s.strideH, s.strideW, s.padH, s.padW, s.dilationH,
		s.dilationW, s.groups, s.outH, s.outW} {
		list = append(list, uint32(v))
	}
	return append(list, buffers...)
}

func (s *convTrial) run(t *testing.T, d *device, f *fence) {
	defer f.free()
	x, weight := f.numbers(s.typ, s.n*s.c*s.h*s.w), f.numbers(s.typ, s.k*s.depth())
	bias, y := f.numbers(s.typ, s.k), f.numbers(s.typ, s.n*s.k*s.outs())
	if size := kernels.SizeOf(s.typ); s.odd && len(x) > 0 {
		for range 1 + f.r.IntN(3) {
			copy(x[f.r.IntN(len(x)/size)*size:], kernels.Encode(s.typ,
				[]float64{[]float64{math.NaN(), math.Inf(1), math.Inf(-1)}[f.r.IntN(3)]}))
		}
	}
	defines := []source.Define{{Name: "T", Value: s.typ}, {Name: "BIAS", Value: zeroOne(s.bias)},
		{Name: "NHWC", Value: zeroOne(s.last)}, {Name: "CNHW", Value: zeroOne(s.across)},
		{Name: "SPREAD_H", Value: strconv.Itoa(s.gapH + 1)}, {Name: "SPREAD_W", Value: strconv.Itoa(s.gapW + 1)}}
	require.NoError(t, invoke(t, d, "conv2d", "conv2d", defines, [3]int{1, 1, 1}, s.args(x, weight, bias, y)...), "%+v",
		*s)
	in, filter, add, got := kernels.Decode(s.typ, x), kernels.Decode(s.typ, weight), kernels.Decode(s.typ, bias),
		kernels.Decode(s.typ, y)
	u := map[string]float64{"f64": 0x1p-52, "f32": 0x1p-24, "f16": 0x1p-10, "bf16": 0x1p-7}[s.typ]
	step := 1
	if brief() && len(got)*s.depth() > 1<<16 {
		step = 13 // a checker checks addresses, so a sample of the results is enough
	}
	if work := len(got) * s.depth(); work > 1<<22 {
		step = max(step, work>>22|1)
	}
	for e := 0; e < len(got); e += step {
		i, o, sum, weight := s.element(e/s.outs()/s.k, e/s.outs()%s.k, e%s.outs()), e/s.outs()%s.k, 0.0, 0.0
		if s.bias {
			sum, weight = add[o], math.Abs(add[o])
		}
		filters := s.k / s.groups
		for p := range s.depth() {
			if at := s.source(e/s.outs()/s.k, o/filters, p, e%s.outs()); at >= 0 {
				z := in[at] * filter[s.weight(o/filters, o%filters, p)]
				sum, weight = sum+z, weight+math.Abs(z)
			}
		}
		small := min(u, 0x1p-24)*float64(s.depth()+2)*weight + 2*u*math.Abs(sum)
		if s.typ == "f16" {
			small += 0x1p-24
		}
		if near := math.Abs(got[i]-sum) <= small && !math.IsInf(sum, 0); !(near || got[i] == sum || math.IsNaN(got[i]) &&
			math.IsNaN(sum)) {
			t.Fatalf("%+v: element %d is %v instead of %v", *s, i, got[i], sum)
		}
	}
}

func TestConvWild(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("the Go kernel has one form")
		}
		f, count, winograd, long, phases, apart := newFence(t, 33), 200, 0, 0, 0, 0
		if brief() {
			count = 100
		}
		for done := 0; done < count; {
			s := f.wildTrial(d.simd.rows)
			if s.n*s.k*s.outs()*s.depth() > 1<<23 {
				continue
			}
			p := convPlan{convolution: s.convolution, call: &call{device: d}, set: d.simd, size: max(kernels.SizeOf(s.typ), 4)}
			if s.n*s.k*s.outs() > 0 && p.long() {
				long++
			} else if s.n*s.k*s.outs() > 0 {
				winograd += int(flag(p.winograd()))
			}
			if s.n*s.k*s.outs() > 0 && s.gapH+s.gapW > 0 {
				together := p.inPhases()
				phases += int(flag(together.plan()))
				apart += int(flag(!together.plan()))
			}
			s.run(t, d, f)
			done++
		}
		assert.Positive(t, winograd)
		assert.Positive(t, long)
		assert.Positive(t, phases)
		assert.Positive(t, apart)
	})
}

func TestConvShapes(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 8)
		count := 400
		if brief() || d.simd == nil {
			count = 80
		}
		for i := range count {
			s := f.convTrial([]string{"f32", "f64", "f32", "f16", "bf16"}[i%5], 24, 6)
			s.run(t, d, f)
		}
		if !brief() {
			for i := range 10 {
				s := f.convTrial([]string{"f32", "f64"}[i%2], 20, 40)
				s.run(t, d, f)
			}
			s := f.convTrial("f32", 70, 70)
			s.run(t, d, f)
		}
	})
}

// TestConvImages has small images of which a task computes several, also in a number that does not
// divide evenly.
func TestConvImages(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("the Go kernel computes one image at a time")
		}
		f, count, several := newFence(t, 14), 2000, 0
		if brief() {
			count = 100
		}
		for i := range count {
			s := f.convTrial([]string{"f32", "f64", "f32", "bf16"}[i%4], 8, 2)
			s.n, s.k = 2+f.r.IntN(8), s.groups*(4*d.simd.rows+f.r.IntN(20))
			if s.n*s.k*s.outs() > 20000 {
				s.n = 2
			}
			p := convPlan{convolution: s.convolution, call: &call{device: d}, set: d.simd, size: max(kernels.SizeOf(s.typ), 4)}
			if s.outs() > 0 {
				p.plan()
				several += int(flag(p.batch > 1))
			}
			s.run(t, d, f)
		}
		assert.Greater(t, several, count/4)
	})
}

// TestConvLong has filters that are longer than the output, with one or several channels side by side, cut into
// rows or not, or each alone as in gradients of depthwise convolutions.
func TestConvLong(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("the Go kernel has one form")
		}
		f, count, long := newFence(t, 31), 300, 0
		if brief() {
			count = 40
		}
		for i := range count {
			r := f.r
			g := 1 + r.IntN(3)*r.IntN(2)
			s := convolution{n: 1 + r.IntN(6), c: g * (1 + r.IntN(12)), k: g * (1 + r.IntN(9)), groups: g, rows: 1 + r.IntN(30),
				cols:    1 + r.IntN(40),
				strideH: 1 + r.IntN(3)/2, strideW: 1 + r.IntN(3)/2, padH: r.IntN(3), padW: r.IntN(3), dilationH: 1 + r.IntN(4)/2,
				dilationW: 1 + r.IntN(4)/2,
				outH:      1 + r.IntN(4), outW: 1 + r.IntN(4), across: r.IntN(2) == 0}
			if i%20 == 0 {
				s.rows, s.cols = 1, 5000 // longer than what is copied at a time
			}
			if i%10 == 1 {
				s.groups, s.n, s.c, s.k, s.rows, s.cols, s.outH, s.outW, s.across = 2, 1, 2*(2+r.IntN(3)), 2, 9+r.IntN(20),
					29+r.IntN(50), 3, 3, true
				s.strideH, s.strideW, s.dilationH, s.dilationW = 1, 1, 1, 1
			}
			// The image has what the output needs, or less: the rest is padding.
			s.h = max((s.outH-1)*s.strideH+(s.rows-1)*s.dilationH+1-s.padH-r.IntN(3), 0)
			s.w = max((s.outW-1)*s.strideW+(s.cols-1)*s.dilationW+1-s.padW-r.IntN(3), 0)
			trial := convTrial{s, []string{"f32", "f64", "f32", "bf16"}[i%4], r.IntN(2) == 0, false}
			p := convPlan{convolution: s, call: &call{device: d}, set: d.simd, size: max(kernels.SizeOf(trial.typ), 4)}
			long += int(flag(p.long()))
			trial.run(t, d, f)
		}
		assert.Greater(t, long, count/2)
	})
}

// TestConvTurned has gradients of filters of so many images that these are innermost in copies: in numbers that
// fill no whole registers, cut into rows, with gaps, in groups, and with filters whole pages apart, which are
// packed.
func TestConvTurned(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("the Go kernel has one form")
		}
		f, count, turned, packed, cut := newFence(t, 33), 200, 0, 0, 0
		if brief() {
			count = 30
		}
		for i := range count {
			r := f.r
			typ := []string{"f32", "f64", "f32", "bf16"}[i%4]
			size := max(kernels.SizeOf(typ), 4)
			g, lanes := 1+r.IntN(3)*r.IntN(2), d.simd.bytes/size
			s := convolution{n: lanes + r.IntN(5*lanes), c: g * (1 + r.IntN(3)), k: g * (1 + r.IntN(40)), groups: g,
				rows: 1 + r.IntN(30), cols: 20 + r.IntN(30),
				strideH: 1 + r.IntN(3)/2, strideW: 1 + r.IntN(3)/2, padH: r.IntN(3), padW: r.IntN(3), dilationH: 1 + r.IntN(4)/2,
				dilationW: 1 + r.IntN(4)/2,
				outH:      1 + r.IntN(4), outW: 2 + r.IntN(3), across: r.IntN(2) == 0}
			switch i % 10 {
			case 1:
				s.rows, s.cols, s.across, s.n, s.k, s.dilationH, s.dilationW = 32, 64, true, 4*lanes, 16*g, 1, 1 // 8 KiB, or 16
			case 2:
				s.rows, s.cols = 1, 700
			case 3:
				// more than is copied at a time, with enough filters to pay for copies
				s.rows, s.cols, s.n, s.c, s.k, s.outH, s.dilationH, s.dilationW = 110, 90, 4*lanes, g, 16*g, 2, 1, 1
			}
			s.h = max((s.outH-1)*s.strideH+(s.rows-1)*s.dilationH+1-s.padH-r.IntN(3), 0)
			s.w = max((s.outW-1)*s.strideW+(s.cols-1)*s.dilationW+1-s.padW-r.IntN(3), 0)
			p := convPlan{convolution: s, call: &call{device: d}, set: d.simd, size: size}
			if p.long() && p.planTurned() {
				turned++
				packed += int(flag(p.packed))
				cut += int(flag(p.lines < p.rows))
			}
			trial := convTrial{s, typ, r.IntN(2) == 0, false}
			trial.run(t, d, f)
		}
		assert.Greater(t, turned, count/4)
		assert.Positive(t, packed)
		assert.Positive(t, cut)
	})
}

// TestConvFarApart has filters whose elements are as far apart on the image as the arguments can say: of two
// rows of the output each meets another element.
func TestConvFarApart(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 34)
		for _, far := range []int{1 << 10, 1 << 29, math.MaxUint32} {
			s := convolution{n: 17, c: 1, k: 7, groups: 1, h: 2, w: 2, rows: 1, cols: 512, strideH: far - 1, strideW: far - 1,
				padH: 1, padW: 1, dilationH: far, dilationW: far, outH: 2, outW: 2}
			trial := convTrial{s, "f32", true, false}
			trial.run(t, d, f)
		}
	})
}

// TestConvLongNotFinite has an infinity that is not multiplied by all places of a filter: a dot product over
// all rows would spread it.
func TestConvLongNotFinite(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 32)
		defer f.free()
		s := convTrial{convolution{n: 1, c: 2, h: 30, w: 30, k: 3, groups: 1, rows: 30, cols: 30, strideH: 1, strideW: 1,
			padH: 1, padW: 1, dilationH: 1, dilationW: 1, outH: 3, outW: 3}, "f32", false, false}
		x, weight, bias, y := f.numbers("f32", 2*900), f.numbers("f32", 3*2*900), f.numbers("f32", 3), f.numbers("f32", 27)
		values := kernels.Decode("f32", x)
		// the end of the first row, which neither the first column of the output meets nor the last row
		values[29] = math.Inf(1)
		copy(x, kernels.Encode("f32", values))
		defines := []source.Define{{Name: "T", Value: "f32"}}
		require.NoError(t, invoke(t, d, "conv2d", "conv2d", defines, [3]int{1, 1, 1}, s.args(x, weight, bias, y)...))
		for i, v := range kernels.Decode("f32", y) {
			spread := i%3 != 0 && i/3%3 != 2
			assert.Equal(t, spread, math.IsInf(v, 0) || math.IsNaN(v), "%d is %g", i, v)
		}
	})
}

// TestConvCuts has every kind of division into tasks, and strides and dilations that are larger than
// any plane.
func TestConvCuts(t *testing.T) {
	shape := func(n, c, h, w, k, groups, rows, cols, stride, pad, dilation int) convTrial {
		s := convolution{n: n, c: c, h: h, w: w, k: k, groups: groups, rows: rows, cols: cols, strideH: stride,
			strideW: stride,
			padH:    pad, padW: pad, dilationH: dilation, dilationW: dilation}
		s.outH = kernels.ConvOut(h, rows, stride, pad, pad, dilation)
		s.outW = kernels.ConvOut(w, cols, stride, pad, pad, dilation)
		return convTrial{s, "f32", true, false}
	}
	shapes := []convTrial{
		shape(1, 40, 60, 60, 3, 1, 3, 3, 1, 1, 1),       // some rows and channels at a time
		shape(1, 100, 7, 7, 50, 1, 3, 3, 1, 1, 1),       // some filters at a time
		shape(1, 1, 4, 300, 5, 1, 3, 300, 1, 0, 1),      // a filter as wide as the image
		shape(1, 2, 40, 40, 14, 1, 31, 31, 1, 15, 1),    // a filter almost as wide as the image
		shape(1, 2, 3, 3, 14, 1, 2, 2, 1, 1<<30, 1<<31), // filter elements far outside the image
		shape(1, 3, 90, 90, 2, 1, 3, 3, 1, 40, 40),
		shape(1, 2, 100, 100, 13, 1, 2, 2, 1001, 1000, 1000),
		shape(2, 3, 32, 32, 20, 1, 8, 8, 8, 0, 1),
		shape(2, 0, 5, 5, 20, 1, 3, 3, 1, 1, 1),
		shape(3, 1024, 4, 4, 50, 1, 1, 1, 1, 0, 1), // filters a page apart
		shape(1, 512, 12, 12, 30, 2, 2, 2, 1, 1, 1),
		shape(2, 7, 13, 37, 7, 7, 3, 3, 1, 1, 1), // each channel alone
		shape(2, 4, 9, 67, 4, 4, 3, 3, 1, 0, 1),
		shape(3, 2, 7, 150, 2, 2, 3, 3, 1, 1, 1),
		shape(3, 2, 6, 110, 2, 2, 3, 3, 1, 2, 1),
		shape(3, 5, 23, 9, 5, 5, 5, 3, 2, 2, 1),
		shape(1, 3, 9, 131, 3, 3, 1, 4, 1, 3, 2),
		shape(2, 1, 70, 70, 1, 1, 3, 3, 1, 1, 1),
		shape(3, 17, 23, 19, 41, 1, 1, 1, 1, 0, 1), // the image itself
		shape(2, 66, 31, 37, 70, 2, 1, 1, 1, 0, 1),
		shape(1, 300, 9, 57, 24, 1, 1, 1, 1, 0, 1),
	}
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 10)
		for _, s := range shapes {
			s.run(t, d, f)
		}
	})
}

// TestConvRoom has shapes whose planes and sums fill a task's memory exactly, while registers of the
// last row of the last sums reach past these.
func TestConvRoom(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("the Go kernel needs no scratch memory")
		}
		f := newFence(t, 11)
		require.NoError(t, d.scratch.free()) // from now on each launch maps new memory
		found, w := 0, d.simd.bytes/4
		for range 1 << 20 {
			s := convolution{n: 1, c: 1 + f.r.IntN(24), h: 3 + f.r.IntN(40), w: 3 + f.r.IntN(120), k: 1 + f.r.IntN(60),
				groups: 1, rows: 1 + f.r.IntN(3),
				cols: 2, strideH: 1, strideW: 1, dilationH: 1, dilationW: 1}
			s.outH, s.outW = kernels.ConvOut(s.h, s.rows, 1, 0, 0, 1), kernels.ConvOut(s.w, s.cols, 1, 0, 0, 1)
			p := convPlan{convolution: s, call: &call{device: d}, set: d.simd, size: 4}
			p.plan()
			end := (p.lines-1)*(s.outW+p.along.longer) + roundUpInt(s.outW, w)
			if p.sums == 0 || end <= p.sums || p.room()%(1<<16) != 0 {
				continue
			}
			trial := convTrial{s, "f32", true, false}
			trial.run(t, d, f)
			if found++; found == 3 {
				break
			}
		}
		assert.NotZero(t, found)
	})
}

// TestConvFar checks that strides, padding and dilation up to the largest values of an argument are
// handled without overflow or large memory.
func TestConvFar(t *testing.T) {
	const far = math.MaxUint32
	eachSet(t, func(t *testing.T, d *device) {
		f, start := newFence(t, 12), time.Now()
		for _, stride := range []int{1, 1 << 26, far} {
			for _, dilation := range []int{1, 1 << 31, far} {
				for _, pad := range []int{0, 2, 1 << 31, far} {
					for i, out := range [][2]int{{1, 1}, {1, 20}, {20, 1}, {2, 2}} {
						s := convolution{n: 1, c: 2, h: 20, w: 20, k: 14, groups: 1, rows: 3, cols: 3, strideH: stride, strideW: stride,
							padH: pad, padW: pad, dilationH: dilation, dilationW: dilation, outH: out[0], outW: out[1]}
						across := s // far apart in one direction only
						across.strideW, across.padW, across.dilationW = 1, 1, 1
						for _, s := range []convolution{s, across} {
							trial := convTrial{s, []string{"f32", "f64"}[i%2], true, false}
							trial.run(t, d, f)
						}
					}
				}
			}
		}
		assert.Less(t, time.Since(start), time.Minute)
	})
}

func TestConvRefuses(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		f := newFence(t, 9)
		s := convTrial{convolution: convolution{n: 1, c: 2, h: 4, w: 4, k: 2, groups: 1, rows: 3, cols: 3, strideH: 1,
			strideW: 1, dilationH: 1,
			dilationW: 1, outH: 2, outW: 2}}
		call := func(nx, nw, ny int, change func(s *convTrial)) error {
			q := s
			if change != nil {
				change(&q)
			}
			return invoke(t, d, "conv2d", "conv2d", nil, [3]int{1, 1, 1}, q.args(f.numbers("f32", nx), f.numbers("f32", nw),
				f.numbers("f32", 1), f.numbers("f32", ny))...)
		}
		assert.NoError(t, call(32, 36, 8, nil))
		assert.ErrorIs(t, call(31, 36, 8, nil), driver.ErrInvalidArgument)
		assert.ErrorIs(t, call(32, 35, 8, nil), driver.ErrInvalidArgument)
		assert.ErrorIs(t, call(32, 36, 7, nil), driver.ErrInvalidArgument)
		assert.ErrorIs(t, call(32, 36, 8, func(s *convTrial) { s.strideH = 0 }), driver.ErrInvalidArgument)
		assert.ErrorIs(t, call(32, 36, 8, func(s *convTrial) { s.groups = 3 }), driver.ErrInvalidArgument)
		assert.ErrorIs(t, call(32, 36, 8, func(s *convTrial) { s.outW = math.MaxUint32 }), driver.ErrInvalidArgument)
	})
}
