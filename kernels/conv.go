package kernels

// The families conv2d and im2col and their cases: filters of one element and filters larger
// than the image, padding, dilation, groups down to one channel.

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/concord-compute/concord/source"
)

func init() {
	Register(Family{
		ID: "conv2d", Doc: "convolution of images in NCHW, NHWC or CNHW layouts: stride, padding, dilation of filter and " +
			"image, groups, bias",
		Kernels: []string{"conv2d"}, Types: floatTypes, Defines: []string{"T", "BIAS", "NHWC", "CNHW", "SPREAD_H",
			"SPREAD_W"},
		Source: sources, Check: convCheck, Tile: productTile, Arguments: convArguments, Work: convWork, Reference: refConv2D,
		Bound: knows(convLaunch), Rows: convRows,
		Cases: convCases,
	})
}

func init() {
	Register(Family{
		ID: "im2col", Doc: "the matrix of patches with which a convolution becomes a matrix product",
		Kernels: []string{"im2col"}, Types: floatTypes, Defines: []string{"T"},
		Source: sources, Arguments: im2colArguments, Reference: refIm2Col, Bound: exactly,
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

// maxSpread is the largest distance of the elements of an image.
const maxSpread = 1024

func convCheck(d source.Define) error {
	if d.Name != "SPREAD_H" && d.Name != "SPREAD_W" {
		return zeroOrOne(d)
	}
	if n, err := strconv.Atoi(d.Value); err != nil || n < 1 || n > maxSpread || strconv.Itoa(n) != d.Value {
		return fmt.Errorf("%s=%s is not from 1 to %d", d.Name, d.Value, maxSpread)
	}
	return nil
}

// ConvOut returns the height of a convolution's output for an image of height n, or likewise its
// width. All sizes count elements; before and after are the elements of padding at the ends, and stride is at
// least 1. For an image of m elements that stand s apart n is (m-1)·s + 1. The result is 0 if the dilated
// filter is larger than the padded image.
func ConvOut(n, filter, stride, before, after, dilation int) int {
	room := n + before + after - dilation*(filter-1) - 1
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
	more                  [2]int // elements of padding at the end, beyond those of pad
	spread                [2]int // distance of the elements of the image; 0 is 1
	nhwc, cnhw            bool
}

func (s *convShape) out() (h, w int) {
	of := func(d, n int) int {
		n = max((n-1)*max(s.spread[d], 1)+1, 0)
		return ConvOut(n, s.filter[d], s.stride[d], s.pad[d], s.pad[d]+s.more[d], s.dilation[d])
	}
	return of(0, s.h), of(1, s.w)
}

var one, three = [2]int{1, 1}, [2]int{3, 3}

var convShapes = []convShape{
	{n: 1, c: 1, h: 1, w: 1, k: 1, groups: 1, filter: one, stride: one, dilation: one},
	{n: 0, c: 2, h: 3, w: 3, k: 2, groups: 1, filter: one, stride: one, dilation: one},
	{n: 1, c: 2, h: 3, w: 3, k: 2, groups: 1, filter: [2]int{5, 5}, stride: one, dilation: one, note: " no output"},
	{n: 2, c: 3, h: 9, w: 7, k: 5, groups: 1, filter: one, stride: one, dilation: one, bias: true},
	{n: 1, c: 3, h: 19, w: 23, k: 7, groups: 1, filter: three, stride: one, pad: one, dilation: one, bias: true},
	{n: 2, c: 5, h: 11, w: 8, k: 3, groups: 1, filter: [2]int{3, 2}, stride: [2]int{2, 3}, pad: [2]int{2, 1},
		dilation: [2]int{2, 1}, bias: true},
	{n: 2, c: 6, h: 8, w: 9, k: 4, groups: 2, filter: three, stride: one, pad: one, dilation: one},
	{n: 1, c: 7, h: 17, w: 33, k: 7, groups: 7, filter: three, stride: one, pad: one, dilation: one, bias: true},
	{n: 1, c: 4, h: 5, w: 5, k: 8, groups: 4, filter: [2]int{7, 7}, stride: one, pad: three, dilation: one},
	{n: 1, c: 33, h: 12, w: 40, k: 70, groups: 1, filter: three, stride: one, pad: one, dilation: one},
	{n: 5, c: 17, h: 16, w: 16, k: 66, groups: 1, filter: three, stride: [2]int{2, 2}, pad: one, dilation: one,
		bias: true},
	{n: 1, c: 2, h: 3, w: 4, k: 2, groups: 1, filter: three, stride: [2]int{3, 3}, pad: [2]int{4, 5}, dilation: one,
		bias: true, note: " mostly padding"},
	{n: 1, c: 2, h: 1, w: 100, k: 3, groups: 1, filter: [2]int{1, 9}, stride: one, pad: [2]int{0, 8},
		dilation: [2]int{1, 2}},
	{n: 1, c: 2, h: 100, w: 1, k: 3, groups: 1, filter: [2]int{9, 1}, stride: one, pad: [2]int{8, 0},
		dilation: [2]int{2, 1}},
	{n: 1, c: 2, h: 6, w: 6, k: 2, groups: 1, filter: three, stride: one, pad: one, dilation: one, note: " NaN in x"},
	{n: 2, c: 17, h: 13, w: 11, k: 50, groups: 1, filter: [2]int{5, 5}, stride: one, pad: [2]int{2, 1}, dilation: one,
		bias: true},
	{n: 1, c: 32, h: 19, w: 15, k: 96, groups: 2, filter: three, stride: one, pad: one, dilation: one, note: " NaN in x"},
	{n: 2, c: 0, h: 3, w: 4, k: 2, groups: 1, filter: one, stride: one, dilation: one, note: " no channels"},
	{n: 1, c: 0, h: 3, w: 4, k: 2, groups: 1, filter: three, stride: one, pad: one, dilation: one, bias: true,
		note: " no channels"},
}

// convVariants have padding that differs at the two ends, zeros between the elements of the image, and channels
// innermost.
var convVariants = []convShape{
	{n: 2, c: 5, h: 9, w: 11, k: 6, groups: 1, filter: three, stride: one, pad: [2]int{0, 2}, more: [2]int{3, -1},
		dilation: one, bias: true},
	{n: 1, c: 3, h: 10, w: 8, k: 4, groups: 1, filter: [2]int{2, 3}, stride: [2]int{2, 2}, more: one, dilation: one},
	{n: 2, c: 4, h: 7, w: 9, k: 5, groups: 1, filter: three, stride: one, pad: one, more: [2]int{1, 0}, dilation: one,
		spread: [2]int{2, 2}, bias: true},
	{n: 1, c: 2, h: 5, w: 6, k: 4, groups: 2, filter: [2]int{4, 2}, stride: [2]int{2, 1}, pad: [2]int{3, 0},
		dilation: [2]int{1, 2}, spread: [2]int{3, 1}},
	{n: 2, c: 5, h: 9, w: 11, k: 6, groups: 1, filter: three, stride: one, pad: one, dilation: one, nhwc: true,
		bias: true},
	{n: 1, c: 6, h: 8, w: 9, k: 4, groups: 2, filter: [2]int{3, 2}, stride: [2]int{2, 1}, pad: [2]int{1, 0}, more: one,
		dilation: one, nhwc: true},
	{n: 3, c: 33, h: 13, w: 6, k: 70, groups: 1, filter: one, stride: one, dilation: one, nhwc: true, bias: true},
	{n: 2, c: 3, h: 6, w: 5, k: 4, groups: 1, filter: three, stride: one, pad: [2]int{2, 2}, dilation: one,
		spread: [2]int{2, 3}, nhwc: true},
	{n: 1, c: 0, h: 3, w: 4, k: 2, groups: 1, filter: three, stride: one, pad: one, dilation: one, bias: true, nhwc: true,
		note: " no channels"},
	{n: 1, c: 2, h: 0, w: 3, k: 2, groups: 1, filter: one, stride: one, pad: one, dilation: one, bias: true,
		spread: [2]int{2, 1}, note: " no rows"},
	{n: 1, c: 2, h: 0, w: 3, k: 2, groups: 1, filter: one, stride: one, pad: one, dilation: one, bias: true, nhwc: true,
		note: " no rows"},
	{n: 3, c: 4, h: 14, w: 17, k: 5, groups: 1, filter: [2]int{14, 17}, stride: one, pad: one, dilation: one, cnhw: true,
		bias: true},
	{n: 2, c: 10, h: 12, w: 13, k: 14, groups: 2, filter: [2]int{6, 7}, stride: one, pad: one, more: [2]int{-1, 0},
		dilation: [2]int{2, 2}, cnhw: true},
	{n: 70, c: 3, h: 23, w: 29, k: 7, groups: 1, filter: [2]int{23, 29}, stride: one, dilation: one, cnhw: true},
	{n: 2, c: 3, h: 21, w: 22, k: 4, groups: 1, filter: [2]int{20, 20}, stride: [2]int{2, 1}, pad: one, dilation: one,
		cnhw: true, note: " NaN in x"},
	{n: 5, c: 6, h: 7, w: 6, k: 4, groups: 2, filter: three, stride: one, pad: one, dilation: one, spread: [2]int{2, 1},
		cnhw: true, bias: true},
	{n: 2, c: 0, h: 3, w: 4, k: 2, groups: 1, filter: three, stride: one, pad: one, dilation: one, bias: true, cnhw: true,
		note: " no channels"},
}

// longFilters are filters longer than the output, of images in the usual layout.
var longFilters = []convShape{
	{n: 3, c: 20, h: 20, w: 19, k: 8, groups: 1, filter: [2]int{19, 17}, stride: one, pad: one, dilation: one, bias: true},
	{n: 1, c: 4, h: 1, w: 3000, k: 3, groups: 1, filter: [2]int{1, 3000}, stride: one, pad: [2]int{0, 4}, dilation: one},
}

func convCases(f *Family) (list []Case) {
	for _, s := range slices.Concat(convShapes, convVariants, longFilters) {
		list = append(list, convCase(f, "f32", s))
	}
	for _, t := range f.Types[1:] {
		for _, i := range []int{0, 5, 7, 9, 10, 15, 17} {
			list = append(list, convCase(f, t, convShapes[i]))
		}
		list = append(list, convCase(f, t, longFilters[0]))
		for _, i := range []int{7, 11, 12, 14} {
			list = append(list, convCase(f, t, convVariants[i]))
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
	if s.more != [2]int{} {
		text += fmt.Sprintf(" and %d,%d more at the end", s.more[0], s.more[1])
	}
	if s.spread != [2]int{} {
		text += fmt.Sprintf(" spread %d,%d", s.spread[0], s.spread[1])
	}
	if s.nhwc {
		text += " NHWC"
	}
	if s.cnhw {
		text += " CNHW"
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
	name, bias := s.name(), "0"
	if s.bias {
		name, bias = name+" bias", "1"
	}
	args := append([]Arg{uintArg(s.n), uintArg(s.c), uintArg(s.h), uintArg(s.w), uintArg(s.k)}, s.sizes()...)
	args = append(args, uintArg(s.groups), uintArg(outH), uintArg(outW), in(t, s.n*s.c*s.h*s.w, s.image(t)),
		in(t, weights, Uniform(t, weights, 32, -1, 1)), in(t, s.k, Uniform(t, s.k, 33, -1, 1)), out(t, s.n*s.k*outH*outW))
	grid := []int{s.n, s.groups, s.k / s.groups, outH * outW}
	if s.cnhw {
		grid[0], grid[3] = 1, s.n*outH*outW
	}
	c := f.Case("conv2d", t, name, grid...).with(args...).define("BIAS", bias)
	if s.nhwc {
		c = c.define("NHWC", "1")
	}
	if s.cnhw {
		c = c.define("CNHW", "1")
	}
	for d, name := range []string{"SPREAD_H", "SPREAD_W"} {
		if s.spread[d] > 1 {
			c = c.define(name, strconv.Itoa(s.spread[d]))
		}
	}
	return c.within("ε·((K+2)·(Σ|x||weight| + |bias|) + |result|), K products; with filters of 3×3, stride 1 or 2, or "+
		"5×5, stride 1, and dilation 1 also "+
		"ε·((t·c+32)·|A|ᵀ(Σ|G||weight||G|ᵀ ⊙ |B|ᵀ|x||B|)|A| + |bias| + |result|), c channels of a group, t = 4 with stride "+
		"2, else 1",
		"a sum of K products and the bias, in any order, fused or not, errs by at most (K+1)·ε times the sum of their "+
			"magnitudes; the reference rounds once more. "+
			"The larger bound is that of Winograd's F(2×2, r×r): each of its matrices costs at most 12 roundings, the sum "+
			"over the channels t·c",
		func(_ int, in [][]float64, ref []float64) []float64 { return convBound(t, s, in, ref) })
}

func convBound(t string, s convShape, in [][]float64, ref []float64) []float64 {
	u, tiny := Roundoff(t), Smallest(t)
	x, weight, bias := in[16], in[17], in[18]
	sums := s.winograd(t, x, weight)
	terms := s.c / s.groups * s.filter[0] * s.filter[1]
	bound := make([]float64, len(ref))
	outH, outW := s.out()
	for i := range bound {
		if s.n*s.k*outH*outW == 0 { // the kernel must not change the one element of the buffer
			break
		}
		_, o, _ := s.place(i)
		sum := 0.0
		if s.bias {
			sum = math.Abs(bias[o])
		}
		s.visit(i, func(at, p int) { sum += math.Abs(x[at] * weight[s.weight(o, p)]) })
		most := float64(terms+2) * sum
		if sums != nil {
			most = max(most, sums(i))
			if s.bias {
				most = max(most, sums(i)+math.Abs(bias[o]))
			}
		}
		bound[i] = Stored(t, ref[i], u*(most+math.Abs(ref[i]))+float64(terms)*tiny)
	}
	return bound
}

// place returns the image, the filter, and the place in the plane of element i of the output.
func (s *convShape) place(i int) (image, o, at int) {
	outH, outW := s.out()
	outs := outH * outW
	if s.nhwc {
		return i / s.k / outs, i % s.k, i / s.k % outs
	}
	if s.cnhw {
		return i / outs % s.n, i / outs / s.n, i % outs
	}
	return i / outs / s.k, i / outs % s.k, i % outs
}

// winogradMatrices are the magnitudes of the matrices of Winograd's F(2×2, r×r) by r and the stride: those that
// transform the input, a filter and the products, for the points 0, ±1, ∞ and for r = 5 also ±2. With stride 2,
// the even elements have the points 0, 1 and ∞, and the odd ones are factors of their own.
// See A. Lavin, S. Gray, Fast Algorithms for Convolutional Neural Networks, 2016.
var winogradMatrices = map[[2]int][3][][]float64{
	{3, 1}: {
		{{1, 0, 1, 0}, {0, 1, 1, 0}, {0, 1, 1, 0}, {0, 1, 0, 1}},
		{{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, {0, 0, 1}},
		{{1, 1, 1, 0}, {0, 1, 1, 1}},
	},
	{3, 2}: {
		{{1, 0, 1, 0, 0}, {0, 1, 0, 0, 0}, {0, 0, 1, 0, 0}, {0, 0, 0, 1, 0}, {0, 0, 1, 0, 1}},
		{{1, 0, 0}, {0, 1, 0}, {1, 0, 1}, {0, 1, 0}, {0, 0, 1}},
		{{1, 1, 1, 0, 0}, {0, 0, 1, 1, 1}},
	},
	{5, 1}: {
		{{4, 0, 5, 0, 1, 0}, {0, 4, 4, 1, 1, 0}, {0, 4, 4, 1, 1, 0}, {0, 2, 1, 2, 1, 0}, {0, 2, 1, 2, 1, 0},
			{0, 4, 0, 5, 0, 1}},
		{{1. / 4, 0, 0, 0, 0}, {1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6}, {1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6},
			{1. / 24, 1. / 12, 1. / 6, 1. / 3, 2. / 3}, {1. / 24, 1. / 12, 1. / 6, 1. / 3, 2. / 3}, {0, 0, 0, 0, 1}},
		{{1, 1, 1, 1, 1, 0}, {0, 1, 1, 2, 2, 1}},
	},
}

// transform returns m·x·mᵀ for a square x, which at returns element by element.
func transform(m [][]float64, at func(i, j int) float64) [][]float64 {
	out := make([][]float64, len(m))
	for i := range m {
		out[i] = make([]float64, len(m))
		for j := range m {
			for p, a := range m[i] {
				for q, b := range m[j] {
					if a != 0 && b != 0 {
						out[i][j] += a * b * at(p, q)
					}
				}
			}
		}
	}
	return out
}

// winograd returns a function for (t·c+32) times the sum of the magnitudes that Winograd's method adds
// for element i of the output, or nil if the shape or the type is not one for the method.
func (s *convShape) winograd(t string, x, weight []float64) func(i int) float64 {
	step := s.stride[0]
	m, ok := winogradMatrices[[2]int{s.filter[0], step}]
	if !ok || t == "f64" || s.filter[0] != s.filter[1] || s.stride[1] != step || s.dilation != one {
		return nil
	}
	outH, outW := s.out()
	tilesH, tilesW, channels, r := (outH+1)/2, (outW+1)/2, s.c/s.groups, s.filter[0]
	tiles := make([][][]float64, s.n*s.c*tilesH*tilesW)
	for i := range tiles {
		plane, row, col := i/tilesW/tilesH, i/tilesW%tilesH*2*step-s.pad[0], i%tilesW*2*step-s.pad[1]
		tiles[i] = transform(m[0], func(p, q int) float64 {
			if at, ok := s.element(plane/s.c, plane%s.c, row+p, col+q); ok {
				if v := math.Abs(x[at]); v < math.Inf(1) { // with others, a device has to use the definition
					return v
				}
			}
			return 0
		})
	}
	filters := make([][][]float64, s.k*channels)
	for i := range filters {
		filters[i] = transform(m[1], func(p, q int) float64 {
			if s.nhwc {
				return math.Abs(weight[((i/channels*r+p)*r+q)*channels+i%channels])
			}
			return math.Abs(weight[s.weight(i/channels, (i%channels*r+p)*r+q)])
		})
	}
	return func(i int) float64 {
		image, o, at := s.place(i)
		row, col := at/outW, at%outW
		first, sum := image*s.c+o/(s.k/s.groups)*channels, 0.0
		for c := range channels {
			d, g := tiles[((first+c)*tilesH+row/2)*tilesW+col/2], filters[o*channels+c]
			for p, a := range m[2][row%2] {
				for q, b := range m[2][col%2] {
					sum += a * b * d[p][q] * g[p][q]
				}
			}
		}
		return float64(step*step*channels+32) * sum
	}
}

// visit calls f for each product of element i of the output, with the index at of its factor in x
// and the index p of its factor in the filter.
func (s *convShape) visit(i int, f func(at, p int)) {
	_, outW := s.out()
	image, o, at := s.place(i)
	channels := s.c / s.groups
	first := o / (s.k / s.groups) * channels
	for p := range channels * s.filter[0] * s.filter[1] {
		q, r, e := p/s.filter[1]/s.filter[0], p/s.filter[1]%s.filter[0], p%s.filter[1]
		if s.nhwc {
			q, r, e = p%channels, p/channels/s.filter[1], p/channels%s.filter[1]
		}
		y, x := at/outW*s.stride[0]+r*s.dilation[0]-s.pad[0], at%outW*s.stride[1]+e*s.dilation[1]-s.pad[1]
		if at, ok := s.element(image, first+q, y, x); ok {
			f(at, p)
		}
	}
}

// weight returns the index of element p of filter o, in the order of visit.
func (s *convShape) weight(o, p int) int {
	places := s.filter[0] * s.filter[1]
	if s.cnhw {
		return (p/places*s.k+o)*places + p%places
	}
	return o*(s.c/s.groups)*places + p
}

// element returns the index in x of the element at row y and column x of a channel, or false if there is padding or the
// space between elements.
func (s *convShape) element(image, channel, y, x int) (at int, ok bool) {
	high, wide := max(s.spread[0], 1), max(s.spread[1], 1)
	if y < 0 || x < 0 || y%high != 0 || x%wide != 0 || y/high >= s.h || x/wide >= s.w {
		return 0, false
	}
	y, x = y/high, x/wide
	if s.nhwc {
		return ((image*s.h+y)*s.w+x)*s.c + channel, true
	}
	if s.cnhw {
		deep := s.c / s.groups
		return ((((channel%deep)*s.groups+channel/deep)*s.n+image)*s.h+y)*s.w + x, true
	}
	return ((image*s.c+channel)*s.h+y)*s.w + x, true
}

func im2colCase(f *Family, t string, s convShape) Case {
	outH, outW := s.out()
	total := s.n * s.c * s.filter[0] * s.filter[1] * outH * outW
	args := append([]Arg{uintArg(s.n), uintArg(s.c), uintArg(s.h), uintArg(s.w)}, s.sizes()...)
	args = append(args, uintArg(outH), uintArg(outW), in(t, s.n*s.c*s.h*s.w, s.image(t)), out(t, total))
	return f.Case("im2col", t, s.name(), total).with(args...).exact("values are moved")
}

// refWindow is a filter of rows×cols over an image of h×w.
type refWindow struct {
	h, w, rows, cols, strideH, strideW, padH, padW, dilationH, dilationW int
	spreadH, spreadW                                                     int
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
	for i, name := range []string{"SPREAD_H", "SPREAD_W"} {
		if spread := c.number(name, 1); v(2+i) > math.MaxInt32/spread {
			c.Fail(2+i, "%d elements that are %d apart are more than %d", v(2+i), spread, math.MaxInt32)
		}
	}
	if c.Flag("NHWC") && c.Flag("CNHW") {
		c.Fail(0, "images have one layout, NHWC or CNHW")
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

// convWork counts the products and sums of the definition, those with zeros of the padding included, whatever
// form computes them.
func convWork(c *Call, bytes float64) (operations, moved float64) {
	v := func(i int) float64 { return float64(c.Int(i)) }
	results := v(0) * v(4) * v(14) * v(15)
	operations = 2 * results * v(1) / v(13) * v(5) * v(6)
	if c.Flag("BIAS") {
		operations += results
	}
	return operations, bytes
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
	return refWindow{int(c.Int(2)), int(c.Int(3)), v(0), v(1), v(2), v(3), v(4), v(5), v(6), v(7), c.number("SPREAD_H", 1),
		c.number("SPREAD_W", 1)}
}

// number returns the value of a definition that is a number, or the number otherwise without it.
func (c *Call) number(define string, otherwise int) int {
	if v, ok := c.Define(define); ok {
		otherwise, _ = strconv.Atoi(v) // the family has checked it
	}
	return otherwise
}

// place returns the index in the image of the element that element (r, s) of the filter is
// multiplied by for element (i, j) of the output, or -1 if it is in the padding, or
// between elements.
func (f *refWindow) place(i, j, r, s int) int {
	y, x := i*f.strideH+r*f.dilationH-f.padH, j*f.strideW+s*f.dilationW-f.padW
	if y < 0 || y%f.spreadH != 0 || y/f.spreadH >= f.h || x < 0 || x%f.spreadW != 0 || x/f.spreadW >= f.w {
		return -1
	}
	return y/f.spreadH*f.w + x/f.spreadW
}

// refConv2D computes conv2d by its formula, element by element.
func refConv2D(c *Call) error {
	t, f := c.Type("T"), refWindowOf(c, 5)
	n, channels, k, groups, outH, outW := int(c.Int(0)), int(c.Int(1)), int(c.Int(4)), int(c.Int(13)), int(c.Int(14)),
		int(c.Int(15))
	outs, deep := outH*outW, channels/groups
	x, weight, set := c.Get(16, t), c.Get(17, t), c.Set(19, t)
	bias := func(int) float64 { return 0 }
	if c.Flag("BIAS") {
		bias = c.Get(18, t)
	}
	each, last, across := deep*f.rows*f.cols, c.Flag("NHWC"), c.Flag("CNHW")
	for e := range n * k * outs {
		image, o, i, j := e/outs/k, e/outs%k, e%outs/outW, e%outW
		sum, channel := bias(o), o/(k/groups)*deep
		for p := range each {
			q, r, s := p/f.cols/f.rows, p/f.cols%f.rows, p%f.cols
			at := f.place(i, j, r, s)
			switch {
			case at >= 0 && last:
				sum += x((image*f.h*f.w+at)*channels+channel+q) * weight(o*each+(r*f.cols+s)*deep+q)
			case at >= 0 && across:
				sum += x(((q*groups+channel/deep)*n+image)*f.h*f.w+at) * weight((q*k+o)*f.rows*f.cols+p%(f.rows*f.cols))
			case at >= 0:
				sum += x((image*channels+channel+q)*f.h*f.w+at) * weight(o*each+p)
			}
		}
		switch {
		case last:
			e = (image*outs+i*outW+j)*k + o
		case across:
			e = (o*n+image)*outs + i*outW + j
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
