package tensor

// Windows: the view of a dimension through windows that may overlap, and what is added up where windows overlap.

import (
	"math"
	"slices"

	"github.com/concord-compute/concord/kernels"
)

// Windows returns a view of t in which an axis has become two: the number of a window, and behind it the place
// in the window. Element j of window i is element i·stride + j·dilation of the axis, and there are as many
// windows as fit. The gradient is added up where windows overlap.
func (t *Tensor) Windows(axis, size, stride, dilation int) *Tensor {
	const name = "windows"
	if bad := check(name, t); bad != nil {
		return bad
	}
	i, ok := t.axis(axis)
	if !ok || min(size, stride, dilation) < 1 || max(size, stride, dilation) > math.MaxInt32 {
		return failf(t.scope, name, ErrShape, "windows of %d elements %d apart, every %d elements, along axis %d of shape %v",
			size, dilation, stride, axis, t.shape)
	}
	out := kernels.ConvOut(t.shape[i], size, stride, 0, 0, dilation)
	shape := slices.Insert(slices.Clone(t.shape), i+1, size)
	shape[i] = out
	if err := checkShape(shape); err != nil {
		return fail(t.scope, name, err)
	}
	return t.view(&viewOp{name: name, slide: &slide{i, size, stride, dilation}}, shape)
}

// back returns the gradient of a tensor of the given shape for that of its windows.
func (s *slide) back(g *Tensor, shape []int) *Tensor {
	if count(g.shape) == 0 {
		return filled(g.scope, g.typ, shape, zero(g.typ))
	}
	if s.stride == s.size && s.dilation == 1 { // they do not overlap
		whole := slices.Clone(shape)
		whole[s.axis] = g.shape[s.axis] * s.size
		return g.Reshape(whole...).padAxis(s.axis, 0, shape[s.axis]-whole[s.axis])
	}
	return s.gather(shape[s.axis], g.shape[s.axis], func(before, behind int) func(j int) *Tensor {
		wide := g.padAxis(s.axis, before, behind)
		return func(j int) *Tensor { return wide.Narrow(s.axis+1, j, 1).Squeeze(s.axis + 1) }
	})
}

// padAxis returns t with zeros in front of and behind the elements of an axis.
func (t *Tensor) padAxis(axis, before, behind int) *Tensor {
	if before == 0 && behind == 0 {
		return t
	}
	margins := make([][2]int, axis+1)
	margins[axis] = [2]int{before, behind}
	return t.Pad(0, margins...)
}

// gather adds up what windows have for the elements of an axis of length n, of which there are out. padded
// returns a function that returns what the windows have for their places j, with zeros for windows in front of
// the first and behind the last one. The elements whose indices leave one rest when they are divided by the
// stride are the sums of the same places, and are computed together.
func (s *slide) gather(n, out int, padded func(before, behind int) func(j int) *Tensor) *Tensor {
	// Element q·stride + rest has place j of window q + shift.
	type place struct{ rest, j, shift int }
	var places []place
	before, behind := 0, 0
	length := func(rest int) int { return (n - rest + s.stride - 1) / s.stride }
	for rest := range min(s.stride, n) {
		for j := range s.size {
			if (rest-j*s.dilation)%s.stride == 0 {
				shift := (rest - j*s.dilation) / s.stride
				places = append(places, place{rest, j, shift})
				before, behind = max(before, -shift), max(behind, shift+length(rest)-out)
			}
		}
	}
	at := padded(before, behind)
	var whole *Tensor
	var parts []part
	for rest := range min(s.stride, n) {
		var sum *Tensor
		for _, p := range places {
			if p.rest != rest {
				continue
			}
			x := at(p.j).Narrow(s.axis, before+p.shift, length(rest))
			if sum != nil {
				x = sum.Add(x)
			}
			sum = x
		}
		if sum == nil {
			continue
		}
		if sum.err != nil {
			return sum
		}
		places := slices.Repeat([]span{{0, 1}}, len(sum.shape))
		places[s.axis] = span{rest, s.stride}
		whole = sum
		parts = append(parts, part{sum, places})
	}
	if s.stride == 1 {
		return whole
	}
	shape := slices.Clone(at(0).shape)
	shape[s.axis] = n
	fill := zero(at(0).typ)
	if len(parts) == min(s.stride, n) {
		fill = nil
	}
	if len(parts) == 0 {
		return filled(at(0).scope, at(0).typ, shape, fill)
	}
	return join("windows'", whole.typ, shape, fill, parts...)
}

// sizesOf returns a size for each of dims dimensions: those given, or otherwise if there are none. It is false
// if there are others than dims, or one is less than least.
func sizesOf(given []int, dims, otherwise, least int) ([]int, bool) {
	if given == nil {
		return slices.Repeat([]int{otherwise}, dims), true
	}
	return given, len(given) == dims && slices.Min(append(slices.Clone(given), least)) >= least &&
		slices.Max(append(slices.Clone(given), 0)) <= math.MaxInt32
}
