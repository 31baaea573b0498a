package tensor

// Convolutions, and the transposed ones, which are their gradients.
//
// One call does the work, the catalog's conv2d, and its gradients are calls of it: that of the image is a
// convolution of the gradient, whose elements stand a stride apart, with the filters turned around; that of the
// filters is one of the image with the gradient as the filter, in which images and channels have changed
// places. Images of one dimension have a height of 1. Those of three are cut along their depth, and the windows
// of the depth are channels.

import (
	"math"
	"slices"
	"strconv"

	"github.com/concord-compute/concord/kernels"
)

// ConvOptions are the sizes of a convolution that do not follow from its operands. Each list has a number for
// each spatial dimension.
type ConvOptions struct {
	Stride []int // distance of neighbouring places of the filter; nil is 1
	// zeros in front of and behind the elements of a dimension; negative numbers take elements away. nil is none
	Pad      [][2]int
	Dilation []int // distance of neighbouring elements of the filter; nil is 1
	// distance of neighbouring elements of x, with zeros between them; margins are around those. nil is 1
	InputDilation []int
	Groups        int // equal groups of channels and of filters; a filter sees the channels of its group. 0 is 1
}

// Conv returns the cross-correlation of images x, of shape [images, channels, spatial dimensions...], with
// filters w, of shape [filters, channels/Groups, sizes...]:
//
//	y[b][o][i...] = bias[o] + Σ x[b][c][i·stride + r·dilation - pad] · w[o][q][r...]
//
// with the sum over q and r..., where c is channel q of the group of filter o, and elements of x beyond the
// margins are zeros. bias has an element for each filter, or is nil. There are one to three spatial dimensions,
// and of y each has
//
//	(length + pad before + pad behind - dilation·(size - 1) - 1) / stride + 1
//
// elements, or none if the filter is longer than the image. The operands are floating-point numbers; the type
// is that of Promote. Half and bfloat16 are summed in F32. It has gradients of x, w and bias.
func Conv(x, w, bias *Tensor, o ConvOptions) *Tensor {
	const name = "conv"
	ts := append([]*Tensor{x, w}, present(bias)...)
	if bad := check(name, ts...); bad != nil {
		return bad
	}
	s, dims := inner(ts...), len(x.shape)-2
	if dims < 1 || dims > 3 || len(w.shape) != len(x.shape) {
		return failf(s, name, ErrShape, "images %v and filters %v", x.shape, w.shape)
	}
	groups := max(o.Groups, 1)
	if o.Groups < 0 || x.shape[1] != groups*w.shape[1] || w.shape[0]%groups != 0 {
		return failf(s, name, ErrShape, "images %v and filters %v in %d groups", x.shape, w.shape, groups)
	}
	typ := x.typ
	for _, t := range ts[1:] {
		typ = Promote(typ, t.typ)
	}
	if !IsFloat(typ) {
		return failf(s, name, ErrType, "%v and %v", x.typ, w.typ)
	}
	if bias != nil {
		if !slices.Equal(bias.shape, w.shape[:1]) {
			return failf(s, name, ErrShape, "a bias of shape %v for filters %v", bias.shape, w.shape)
		}
		bias = bias.Cast(typ)
	}
	axes, ok := o.axes(x.shape[2:], w.shape[2:])
	if !ok {
		return failf(s, name, ErrShape, "options %+v for images %v and filters %v", o, x.shape, w.shape)
	}
	shape := []int{x.shape[0], w.shape[0]}
	for _, a := range axes {
		shape = append(shape, a.out)
	}
	if err := checkShape(shape); err != nil {
		return fail(s, name, err)
	}
	return convolved(x.Cast(typ), w.Cast(typ), bias, groups, axes)
}

// convAxis are the sizes of a convolution along one dimension: the result has out elements, pad zeros are in
// front of the image, and its elements stand spread apart.
type convAxis struct{ stride, dilation, spread, pad, out int }

// axes returns the sizes for images and filters, or false if the options do not fit or are too large.
func (o ConvOptions) axes(images, filters []int) ([]convAxis, bool) {
	dims := len(images)
	stride, one := sizesOf(o.Stride, dims, 1, 1)
	dilation, two := sizesOf(o.Dilation, dims, 1, 1)
	spread, three := sizesOf(o.InputDilation, dims, 1, 1)
	pad := o.Pad
	if pad == nil {
		pad = make([][2]int, dims)
	}
	if !one || !two || !three || len(pad) != dims {
		return nil, false
	}
	var list []convAxis
	for i, n := range images {
		for _, size := range []int{n * spread[i], filters[i] * dilation[i], pad[i][0], pad[i][1]} {
			if size > math.MaxInt32/4 || size < -math.MaxInt32/4 {
				return nil, false
			}
		}
		long := max((n-1)*spread[i]+1, 0)
		list = append(list, convAxis{stride[i], dilation[i], spread[i], pad[i][0],
			kernels.ConvOut(long, filters[i], stride[i], pad[i][0], pad[i][1], dilation[i])})
	}
	return list, true
}

// convolved returns the convolution of images and filters of one type, in one to three dimensions.
func convolved(x, w, bias *Tensor, groups int, axes []convAxis) *Tensor {
	if y := pointwise(x, w, bias, groups, axes); y != nil {
		return y
	}
	n, channels, filters := x.shape[0], x.shape[1], w.shape[0]
	out := []int{n, filters}
	for _, a := range axes {
		out = append(out, a.out)
	}
	switch len(axes) {
	case 1:
		y := conv2D(x.Unsqueeze(2), w.Unsqueeze(2), bias, groups, [2]convAxis{{1, 1, 1, 0, 1}, axes[0]})
		return y.Reshape(out...)
	case 2:
		return conv2D(x, w, bias, groups, [2]convAxis(axes))
	}
	d := axes[0]
	depth := w.shape[2]
	if count(out) == 0 || depth == 0 || x.shape[2] == 0 {
		return filteredNothing(x, bias, out)
	}
	// The elements of the depth that filters meet.
	x = x.spread(2, d.spread)
	need := (d.out-1)*d.stride + (depth-1)*d.dilation + 1
	if d.pad < 0 {
		cut := min(-d.pad, x.shape[2])
		x, d.pad = x.Narrow(2, cut, x.shape[2]-cut), d.pad+cut
	}
	x = x.padAxis(2, max(d.pad, 0), max(need-max(d.pad, 0)-x.shape[2], 0))
	cuts := x.Windows(2, depth, d.stride, d.dilation).Narrow(2, 0, d.out)
	cuts = cuts.Permute(0, 2, 1, 3, 4, 5).Reshape(n*d.out, channels*depth, x.shape[3], x.shape[4])
	y := conv2D(cuts, w.Reshape(filters, w.shape[1]*depth, w.shape[3], w.shape[4]), bias, groups, [2]convAxis(axes[1:]))
	return y.Reshape(n, d.out, filters, axes[1].out, axes[2].out).Permute(0, 2, 1, 3, 4)
}

// pointwise returns the convolution of images with filters of one element as a product of matrices if the
// images are a view of such with channels last, whose elements are the rows of a matrix. Otherwise it returns
// nil.
func pointwise(x, w, bias *Tensor, groups int, axes []convAxis) *Tensor {
	view, ok := x.op.(*viewOp)
	if !ok || x.data != nil || groups > 1 || count(w.shape[2:]) != 1 || count(x.shape) == 0 || w.shape[0] == 0 ||
		bias != nil && size(x.typ) == 2 {
		return nil
	}
	last := len(x.shape) - 1
	first := append([]int{0, last}, counts(1, last)...)
	if !slices.Equal(view.perm, first) {
		return nil
	}
	cuts := []Range{All}
	for i, a := range axes {
		if a.pad != 0 || a.spread != 1 || a.out != (x.shape[2+i]-1)/a.stride+1 {
			return nil
		}
		cuts = append(cuts, Range{0, End, a.stride})
	}
	channels, filters := x.shape[1], w.shape[0]
	y := x.args[0].Slice(cuts...).MatMul(w.Reshape(filters, channels).T())
	if bias != nil {
		y = y.Add(bias)
	}
	return y.Permute(first...)
}

// counts returns the numbers from lo to hi-1.
func counts(lo, hi int) (list []int) {
	for i := lo; i < hi; i++ {
		list = append(list, i)
	}
	return list
}

// spread returns t with zeros between the elements of an axis.
func (t *Tensor) spread(axis, distance int) *Tensor {
	if distance == 1 || t.shape[axis] < 2 {
		return t
	}
	shape, at := slices.Clone(t.shape), slices.Repeat([]span{{0, 1}}, len(t.shape))
	shape[axis] = (shape[axis]-1)*distance + 1
	at[axis].step = distance
	return join("spread", t.typ, shape, zero(t.typ), part{t, at})
}

// filteredNothing returns the result of shape out of a convolution without products: the bias, or zeros.
func filteredNothing(x, bias *Tensor, out []int) *Tensor {
	if bias == nil || count(out) == 0 {
		return filled(x.scope, x.typ, out, zero(x.typ))
	}
	return bias.Reshape(append([]int{1, bias.Len()}, slices.Repeat([]int{1}, len(out)-2)...)...).expand(out)
}

// mostSpread is the largest distance of the elements of an image in the catalog's conv2d.
const mostSpread = 1024

// conv2D returns the convolution of images of two dimensions.
func conv2D(x, w, bias *Tensor, groups int, axes [2]convAxis) *Tensor {
	out := []int{x.shape[0], w.shape[0], axes[0].out, axes[1].out}
	for i := range axes {
		a := &axes[i]
		if a.spread > mostSpread {
			x = x.spread(2+i, a.spread)
			a.spread = 1
		}
		if a.pad < 0 { // elements in front of the filters are left out
			n := x.shape[2+i]
			cut := min((-a.pad+a.spread-1)/a.spread, n)
			x, a.pad = x.Narrow(2+i, cut, n-cut), max(a.pad+cut*a.spread, 0)
		}
	}
	if count(out) == 0 || count(x.shape) == 0 || count(w.shape) == 0 {
		return filteredNothing(x, bias, out)
	}
	for _, n := range slices.Concat(x.shape, w.shape, out) {
		if n > math.MaxInt32/4 {
			return failf(inner(x, w), "conv", ErrShape, "images %v and filters %v: a dimension is beyond 2^29", x.shape, w.shape)
		}
	}
	c := &conv{groups: groups, axes: axes, bias: bias != nil}
	o := &callOp{name: "conv", takes: onlyDense, run: c.run, back: c.back}
	return call(o, []Spec{{x.typ, out}}, append([]*Tensor{x, w}, present(bias)...)...)[0]
}

// conv is a call of conv2d. With across set, images and channels of its operands and its result have changed places.
type conv struct {
	groups int
	axes   [2]convAxis
	bias   bool
	across bool
}

// back returns the gradients of the image, the filters and the bias.
func (c *conv) back(t *Tensor, gs []*Tensor) []*Tensor {
	x, w, g := t.args[0], t.args[1], gs[0]
	list := []*Tensor{c.toImages(g, w, x.shape), c.toFilters(x, g, w.shape)}
	if c.bias {
		list = append(list, g.Sum(0, 2, 3))
	}
	return list
}

// toImages returns the gradient of images of a shape.
func (c *conv) toImages(g, w *Tensor, shape []int) *Tensor {
	var axes [2]convAxis
	for i, a := range c.axes {
		axes[i] = convAxis{stride: a.spread, dilation: a.dilation, spread: a.stride, pad: (w.shape[2+i]-1)*a.dilation - a.pad,
			out: shape[2+i]}
	}
	groups, each, channels, filters := c.groups, w.shape[0]/c.groups, w.shape[1], w.shape[2:]
	turned := w.Reshape(groups, each, channels, filters[0], filters[1]).Permute(0, 2, 1, 3, 4).Flip(3,
		4).Reshape(groups*channels, each, filters[0], filters[1])
	return conv2D(g, turned, nil, groups, axes)
}

// toFilters returns the gradient of filters of a shape: a convolution of the images with their gradients as
// filters, in which images and channels have changed places.
func (c *conv) toFilters(x, g *Tensor, shape []int) *Tensor {
	if count(shape) == 0 || count(x.shape) == 0 || count(g.shape) == 0 {
		return filled(x.scope, x.typ, shape, zero(x.typ))
	}
	across := *c
	across.across, across.bias = true, false
	for i, a := range c.axes {
		across.axes[i] = convAxis{stride: a.dilation, dilation: a.stride, spread: a.spread, pad: a.pad, out: shape[2+i]}
	}
	o := &callOp{name: "conv filters", takes: onlyDense, run: across.run}
	o.back = func(t *Tensor, gs []*Tensor) []*Tensor {
		x, g := t.args[0], t.args[1]
		return []*Tensor{c.toImages(g, gs[0], x.shape), conv2D(x, gs[0], nil, c.groups, c.axes)}
	}
	return call(o, []Spec{{x.typ, shape}}, x, g)[0]
}

// mostGroups is how many groups of items a device has at least in the third dimension of a grid.
const mostGroups = 65535

func (c *conv) run(r *run, out, in []operand) error {
	defines := []string{"T=" + out[0].typ.String(), define("BIAS", c.bias), define("CNHW", c.across)}
	for i, name := range []string{"SPREAD_H", "SPREAD_W"} {
		if s := c.axes[i].spread; s > 1 {
			defines = append(defines, name+"="+strconv.Itoa(s))
		}
	}
	x, w, y := in[0], in[1], out[0]
	if c.across {
		n := x.shape[1] / c.groups
		return c.launch(r, defines, n, c.groups*x.shape[0], w.shape[1],
			[]int{1, c.groups, w.shape[1] / c.groups, n * c.axes[0].out * c.axes[1].out}, x, w, nil, y)
	}
	most := max(mostGroups/c.groups, 1)
	for first := 0; first < x.shape[0]; first += most {
		n := min(most, x.shape[0]-first)
		from, to := x, y
		from.first += first * count(x.shape[1:])
		to.first += first * count(y.shape[1:])
		grid := []int{n, c.groups, w.shape[0] / c.groups, c.axes[0].out * c.axes[1].out}
		if err := c.launch(r, defines, n, x.shape[1], w.shape[0], grid, from, w, in[2:], to); err != nil {
			return err
		}
	}
	return nil
}

// launch launches conv2d for n images.
func (c *conv) launch(r *run, defines []string, n, channels, filters int, grid []int, x, w operand, bias []operand,
	y operand) error {
	b, err := r.buffers(x, w, y)
	if err != nil {
		return err
	}
	add := b[1]
	if len(bias) > 0 {
		if add, err = r.at(bias[0]); err != nil {
			return err
		}
	}
	h, l, v := c.axes[0], c.axes[1], func(n int) uint32 { return uint32(n) }
	return r.catalog("conv2d", "conv2d", defines, grid,
		v(n), v(channels), v(x.shape[2]), v(x.shape[3]), v(filters), v(w.shape[2]), v(w.shape[3]), v(h.stride), v(l.stride),
		v(h.pad), v(l.pad),
		v(h.dilation), v(l.dilation), v(c.groups), v(h.out), v(l.out), b[0], b[1], add, b[2])
}

// ConvTransposeOptions are the sizes of a transposed convolution that do not follow from its operands, each
// list with a number for each spatial dimension.
type ConvTransposeOptions struct {
	Stride    []int    // distance of the places that elements of x are spread to; nil is 1
	Pad       [][2]int // elements that are taken away in front and behind; nil is none
	OutputPad []int    // elements that are added behind; nil is none
	Dilation  []int    // distance of neighbouring elements of the filter; nil is 1
	Groups    int      // equal groups of the channels of x and of y; 0 is 1
}

// ConvTranspose returns the transposed convolution of x, of shape [images, channels, spatial dimensions...],
// with filters w, of shape [channels, results/Groups, sizes...]: each element of x adds a filter, multiplied by
// it, to its surroundings,
//
//	y[b][o][i·stride + r·dilation - pad] = bias[o] + Σ x[b][c][i...] · w[c][q][r...]
//
// where o is result q of the group of channel c. Of y each spatial dimension has
//
//	(length - 1)·stride + dilation·(size - 1) + 1 - pad before - pad behind + output pad
//
// elements. It is the gradient of the image of a convolution with the same filters, and all else is as for [Conv].
func ConvTranspose(x, w, bias *Tensor, o ConvTransposeOptions) *Tensor {
	const name = "conv transpose"
	ts := append([]*Tensor{x, w}, present(bias)...)
	if bad := check(name, ts...); bad != nil {
		return bad
	}
	s, dims, groups := inner(ts...), len(x.shape)-2, max(o.Groups, 1)
	if dims < 1 || dims > 3 || len(w.shape) != len(x.shape) || o.Groups < 0 || x.shape[1] != w.shape[0] ||
		w.shape[0]%groups != 0 {
		return failf(s, name, ErrShape, "images %v and filters %v in %d groups", x.shape, w.shape, groups)
	}
	more, ok := sizesOf(o.OutputPad, dims, 0, 0)
	same := ConvOptions{Stride: o.Stride, Pad: o.Pad, Dilation: o.Dilation, Groups: groups}
	axes, fit := same.axes(x.shape[2:], w.shape[2:])
	if !ok || !fit {
		return failf(s, name, ErrShape, "options %+v for images %v and filters %v", o, x.shape, w.shape)
	}
	turned := ConvOptions{Dilation: o.Dilation, InputDilation: o.Stride, Groups: groups}
	for i, a := range axes {
		reach, behind := (w.shape[2+i]-1)*a.dilation, 0
		if o.Pad != nil {
			behind = o.Pad[i][1]
		}
		turned.Pad = append(turned.Pad, [2]int{reach - a.pad, reach - behind + more[i]})
	}
	apart := append([]int{groups, w.shape[0] / groups}, w.shape[1:]...)
	order := append([]int{0, 2, 1}, counts(3, 3+dims)...)
	filters := w.Flip(counts(2, 2+dims)...).Reshape(apart...).Permute(order...).Reshape(
		append([]int{groups * w.shape[1], w.shape[0] / groups}, w.shape[2:]...)...)
	return Conv(x, filters, bias, turned)
}
