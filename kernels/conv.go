package kernels

// The families conv2d and im2col and their cases: filters of one element and filters larger
// than the image, padding, dilation, groups down to one channel.

import (
	"fmt"
	"math"

	"github.com/concord-compute/concord/source"
)

func init() {
	Register(Family{
		ID: "conv2d", Doc: "convolution of images in NCHW layout: stride, padding, dilation, groups, bias",
		Kernels: []string{"conv2d"}, Types: floatTypes, Defines: []string{"T", "BIAS"},
		Source: sources, Arguments: convArguments, Reference: refConv2D,
		Cases: convCases,
	})
}

func init() {
	Register(Family{
		ID: "im2col", Doc: "the matrix of patches with which a convolution becomes a matrix product",
		Kernels: []string{"im2col"}, Types: floatTypes, Defines: []string{"T"},
		Source: sources, Arguments: im2colArguments, Reference: refIm2Col,
		Cases: func(f *Family) (list []Case) {
			for _, s := range convShapes {
				if s.groups == 1 {
					list = append(list, im2colCase(f, "f32", s))
				}
			}
			for _, t := range f.Types[1:] {
				list = append(list, im2colCase(f, t, convShapes[5]))
			}
			return list
		},
	})
}

// ConvOut returns the height of a convolution's output for an image of height n, or likewise its
// width. All sizes count elements; pad is added at both ends, and stride is at least 1. The
// result is 0 if the dilated filter is larger than the padded image.
func ConvOut(n, filter, stride, pad, dilation int) int {
	room := n + 2*pad - dilation*(filter-1) - 1
	if room < 0 || filter == 0 {
		return 0
	}
	return room/stride + 1
}

// convShape is one convolution. The pairs have the number for the height, then that for the width.
type convShape struct {
	n, c, h, w, k, groups int
	filter, stride, pad   [2]int
	dilation              [2]int
	bias                  bool
	note                  string
}

func (s *convShape) out() (h, w int) {
	return ConvOut(s.h, s.filter[0], s.stride[0], s.pad[0], s.dilation[0]), ConvOut(s.w, s.filter[1], s.stride[1], s.pad[1], s.dilation[1])
}

var one, three = [2]int{1, 1}, [2]int{3, 3}

var convShapes = []convShape{
	{n: 1, c: 1, h: 1, w: 1, k: 1, groups: 1, filter: one, stride: one, dilation: one},
	{n: 0, c: 2, h: 3, w: 3, k: 2, groups: 1, filter: one, stride: one, dilation: one},
	{n: 1, c: 2, h: 3, w: 3, k: 2, groups: 1, filter: [2]int{5, 5}, stride: one, dilation: one, note: " no output"},
	{n: 2, c: 3, h: 9, w: 7, k: 5, groups: 1, filter: one, stride: one, dilation: one, bias: true},
	{n: 1, c: 3, h: 19, w: 23, k: 7, groups: 1, filter: three, stride: one, pad: one, dilation: one, bias: true},
	{n: 2, c: 5, h: 11, w: 8, k: 3, groups: 1, filter: [2]int{3, 2}, stride: [2]int{2, 3}, pad: [2]int{2, 1}, dilation: [2]int{2, 1}, bias: true},
	{n: 2, c: 6, h: 8, w: 9, k: 4, groups: 2, filter: three, stride: one, pad: one, dilation: one},
	{n: 1, c: 7, h: 17, w: 33, k: 7, groups: 7, filter: three, stride: one, pad: one, dilation: one, bias: true},
	{n: 1, c: 4, h: 5, w: 5, k: 8, groups: 4, filter: [2]int{7, 7}, stride: one, pad: three, dilation: one},
	{n: 1, c: 33, h: 12, w: 40, k: 70, groups: 1, filter: three, stride: one, pad: one, dilation: one},
	{n: 3, c: 17, h: 16, w: 16, k: 66, groups: 1, filter: three, stride: [2]int{2, 2}, pad: one, dilation: one, bias: true},
	{n: 1, c: 2, h: 3, w: 4, k: 2, groups: 1, filter: three, stride: [2]int{3, 3}, pad: [2]int{4, 5}, dilation: one, bias: true, note: " mostly padding"},
	{n: 1, c: 2, h: 1, w: 100, k: 3, groups: 1, filter: [2]int{1, 9}, stride: one, pad: [2]int{0, 8}, dilation: [2]int{1, 2}},
	{n: 1, c: 2, h: 100, w: 1, k: 3, groups: 1, filter: [2]int{9, 1}, stride: one, pad: [2]int{8, 0}, dilation: [2]int{2, 1}},
	{n: 1, c: 2, h: 6, w: 6, k: 2, groups: 1, filter: three, stride: one, pad: one, dilation: one, note: " NaN in x"},
	{n: 2, c: 0, h: 3, w: 4, k: 2, groups: 1, filter: one, stride: one, dilation: one, note: " no channels"},
	{n: 1, c: 0, h: 3, w: 4, k: 2, groups: 1, filter: three, stride: one, pad: one, dilation: one, bias: true, note: " no channels"},
}

func convCases(f *Family) (list []Case) {
	for _, s := range convShapes {
		list = append(list, convCase(f, "f32", s))
	}
	for _, t := range f.Types[1:] {
		for _, i := range []int{0, 5, 7, 10, 15} {
			list = append(list, convCase(f, t, convShapes[i]))
		}
	}
	return list
}

// sizes returns the arguments from filterH to dilationW, which conv2d and im2col have in common.
func (s *convShape) sizes() []Arg {
	return []Arg{uintArg(s.filter[0]), uintArg(s.filter[1]), uintArg(s.stride[0]), uintArg(s.stride[1]),
		uintArg(s.pad[0]), uintArg(s.pad[1]), uintArg(s.dilation[0]), uintArg(s.dilation[1])}
}

func (s *convShape) name() string {
	text := fmt.Sprintf("%d×%d×%d×%d filters %d×%d×%d stride %d,%d pad %d,%d dilation %d,%d", s.n, s.c, s.h, s.w, s.k,
		s.filter[0], s.filter[1], s.stride[0], s.stride[1], s.pad[0], s.pad[1], s.dilation[0], s.dilation[1])
	if s.groups != 1 {
		text += fmt.Sprintf(" groups %d", s.groups)
	}
	return text + s.note
}

func (s *convShape) image(t string) func() []float64 {
	x := Uniform(t, s.n*s.c*s.h*s.w, 31, -1, 1)
	if s.note == " NaN in x" {
		return mixed(x, math.NaN(), 0, 40)
	}
	return x
}

func convCase(f *Family, t string, s convShape) Case {
	outH, outW := s.out()
	weights := s.k * s.c / s.groups * s.filter[0] * s.filter[1]
	bias := "0"
	if s.bias {
		bias = "1"
	}
	args := append([]Arg{uintArg(s.n), uintArg(s.c), uintArg(s.h), uintArg(s.w), uintArg(s.k)}, s.sizes()...)
	args = append(args, uintArg(s.groups), uintArg(outH), uintArg(outW), in(t, s.n*s.c*s.h*s.w, s.image(t)),
		in(t, weights, Uniform(t, weights, 32, -1, 1)), in(t, s.k, Uniform(t, s.k, 33, -1, 1)), out(t, s.n*s.k*outH*outW))
	global, local := Conv2DGrid(s.n, s.k, s.groups, outH, outW)
	name := s.name()
	if s.bias {
		name += " bias"
	}
	c := f.Case("conv2d", t, name).with(global, local, args...)
	c.Defines = append(c.Defines, source.Define{Name: "BIAS", Value: bias})
	return c.within("ε·((K+2)·(Σ|x||weight| + |bias|) + |result|), K products",
		"a sum of K products and the bias, in any order, fused or not, errs by at most (K+1)·ε times the sum of their magnitudes; the reference rounds once more",
		func(_ int, in [][]float64, ref []float64) []float64 { return convBound(t, s, in, ref) })
}

func convBound(t string, s convShape, in [][]float64, ref []float64) []float64 {
	u, tiny := Roundoff(t), Smallest(t)
	x, weight, bias := in[16], in[17], in[18]
	terms := s.c / s.groups * s.filter[0] * s.filter[1]
	bound := make([]float64, len(ref))
	outH, outW := s.out()
	for i := range bound {
		if s.n*s.k*outH*outW == 0 { // the kernel must not change the one element of the buffer
			break
		}
		o := i / (outH * outW) % s.k
		sum := 0.0
		if s.bias {
			sum = math.Abs(bias[o])
		}
		s.visit(i, func(at, p int) { sum += math.Abs(x[at] * weight[o*terms+p]) })
		bound[i] = Stored(t, ref[i], u*(float64(terms+2)*sum+math.Abs(ref[i]))+float64(terms)*tiny)
	}
	return bound
}

// visit calls f for each product of element i of the output, with the index at of its factor in x
// and the index p of its factor in the filter.
func (s *convShape) visit(i int, f func(at, p int)) {
	outH, outW := s.out()
	col, row, o, image := i%outW, i/outW%outH, i/outW/outH%s.k, i/outW/outH/s.k
	channels := s.c / s.groups
	first := o / (s.k / s.groups) * channels
	for p := range channels * s.filter[0] * s.filter[1] {
		q, r, e := p/s.filter[1]/s.filter[0], p/s.filter[1]%s.filter[0], p%s.filter[1]
		y, x := row*s.stride[0]+r*s.dilation[0]-s.pad[0], col*s.stride[1]+e*s.dilation[1]-s.pad[1]
		if y >= 0 && y < s.h && x >= 0 && x < s.w {
			f(((image*s.c+first+q)*s.h+y)*s.w+x, p)
		}
	}
}

func im2colCase(f *Family, t string, s convShape) Case {
	outH, outW := s.out()
	total := s.n * s.c * s.filter[0] * s.filter[1] * outH * outW
	args := append([]Arg{uintArg(s.n), uintArg(s.c), uintArg(s.h), uintArg(s.w)}, s.sizes()...)
	args = append(args, uintArg(outH), uintArg(outW), in(t, s.n*s.c*s.h*s.w, s.image(t)), out(t, total))
	global, local := ElementsGrid(total)
	return f.Case("im2col", t, s.name()).with(global, local, args...).exact("values are moved")
}

// refWindow is a filter of rows×cols over an image of h×w.
type refWindow struct {
	h, w, rows, cols, strideH, strideW, padH, padW, dilationH, dilationW int
}

// needSteps ends the launch if a stride or a dilation is less than 1. The first stride is the argument at
// position at.
func needSteps(c *Call, at int) {
	for _, i := range [4]int{at, at + 1, at + 4, at + 5} {
		if c.Int(i) < 1 {
			c.Fail(i, "%d is less than 1", c.Int(i))
		}
	}
}

func convArguments(c *Call) bool {
	needSteps(c, 7)
	t, v := c.Type("T"), func(i int) int { return int(c.Int(i)) }
	n, channels, k, groups := v(0), v(1), v(4), v(13)
	if groups < 1 || channels%groups != 0 || k%groups != 0 {
		c.Fail(13, "%d channels and %d filters cannot be divided into %d equal groups", channels, k, groups)
	}
	total := c.Product(n, k, v(14), v(15))
	needAll(c, t, c.Product(n, channels, v(2), v(3)), 16)
	needAll(c, t, c.Product(k, channels/groups, v(5), v(6)), 17)
	needAll(c, t, total, 19)
	if c.Flag("BIAS") {
		needAll(c, t, k, 18)
	}
	return total > 0
}

func im2colArguments(c *Call) bool {
	needSteps(c, 6)
	t, v := c.Type("T"), func(i int) int { return int(c.Int(i)) }
	n, channels := v(0), v(1)
	total := c.Product(n, channels, v(4), v(5), v(12), v(13))
	needAll(c, t, c.Product(n, channels, v(2), v(3)), 14)
	needAll(c, t, total, 15)
	return total > 0
}

// refWindowOf reads the size of the image and the eight arguments from position at on.
func refWindowOf(c *Call, at int) refWindow {
	v := func(i int) int { return int(c.Int(at + i)) }
	return refWindow{int(c.Int(2)), int(c.Int(3)), v(0), v(1), v(2), v(3), v(4), v(5), v(6), v(7)}
}

// place returns the index in the image of the element that element (r, s) of the filter is
// multiplied by for element (i, j) of the output, or -1 if it is in the padding.
func (f *refWindow) place(i, j, r, s int) int {
	y, x := i*f.strideH+r*f.dilationH-f.padH, j*f.strideW+s*f.dilationW-f.padW
	if y < 0 || y >= f.h || x < 0 || x >= f.w {
		return -1
	}
	return y*f.w + x
}

// refConv2D computes conv2d by its formula, element by element.
func refConv2D(c *Call) error {
	t, f := c.Type("T"), refWindowOf(c, 5)
	n, channels, k, groups, outH, outW := int(c.Int(0)), int(c.Int(1)), int(c.Int(4)), int(c.Int(13)), int(c.Int(14)), int(c.Int(15))
	outs, deep := outH*outW, channels/groups
	x, weight, set := c.Get(16, t), c.Get(17, t), c.Set(19, t)
	bias := func(int) float64 { return 0 }
	if c.Flag("BIAS") {
		bias = c.Get(18, t)
	}
	for e := range n * k * outs {
		image, o, i, j := e/outs/k, e/outs%k, e%outs/outW, e%outW
		sum := bias(o)
		for p := range deep * f.rows * f.cols {
			q, r, s := p/f.cols/f.rows, p/f.cols%f.rows, p%f.cols
			if at := f.place(i, j, r, s); at >= 0 {
				plane := image*channels + o/(k/groups)*deep + q
				sum += x(plane*f.h*f.w+at) * weight(o*deep*f.rows*f.cols+p)
			}
		}
		set(e, sum)
	}
	return nil
}

// refIm2Col copies the elements that each element of a filter is multiplied by.
func refIm2Col(c *Call) error {
	t, f := c.Type("T"), refWindowOf(c, 4)
	n, channels, outH, outW := int(c.Int(0)), int(c.Int(1)), int(c.Int(12)), int(c.Int(13))
	outs := outH * outW
	get, set := refGetBits(c, 14, SizeOf(t)), refSetBits(c, 15, SizeOf(t))
	for e := range n * channels * f.rows * f.cols * outs {
		p := e / outs
		plane, r, s := p/f.cols/f.rows, p/f.cols%f.rows, p%f.cols
		v := uint64(0)
		if at := f.place(e%outs/outW, e%outW, r, s); at >= 0 {
			v = get(plane*f.h*f.w + at)
		}
		set(e, v)
	}
	return nil
}
