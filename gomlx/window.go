package gomlx

// Operations on windows: convolution, and pooling with its gradient.

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapeinference"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/tensor"
)

// or returns list[i], or otherwise if there is no list.
func or(list []int, i, otherwise int) int {
	if len(list) == 0 {
		return otherwise
	}
	return list[i]
}

// ConvGeneral returns the convolution of input with a kernel.
func (f *function) ConvGeneral(input, kernel compute.Value, axes compute.ConvolveAxesConfig, strides []int, paddings [][2]int,
	inputDilations, kernelDilations []int, channelGroupCount, batchGroupCount int) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeConvGeneral, input, kernel)
	if err != nil {
		return nil, err
	}
	channelGroups, batchGroups := max(channelGroupCount, 1), max(batchGroupCount, 1)
	shape, err := shapeinference.ConvGeneral(in[0].shape, in[1].shape, axes, strides, paddings, inputDilations, kernelDilations, channelGroups, batchGroups)
	if err != nil {
		return nil, err
	}
	if in[0].shape.DType != in[1].shape.DType {
		return nil, errors.Errorf("ConvGeneral of %s and %s", in[0].shape, in[1].shape)
	}
	axes, strides, paddings, inputDilations, kernelDilations = axes.Clone(), slices.Clone(strides), slices.Clone(paddings), slices.Clone(inputDilations), slices.Clone(kernelDilations)
	return f.single(compute.OpTypeConvGeneral, shape, in, func(_ *trace, in []*tensor.Tensor) *tensor.Tensor {
		x := in[0].Permute(append([]int{axes.InputBatch, axes.InputChannels}, axes.InputSpatial...)...)
		k := in[1].Permute(append([]int{axes.KernelOutputChannels, axes.KernelInputChannels}, axes.KernelSpatial...)...)
		config := make([]compute.PadAxis, x.Rank())
		steps, gaps := make([]int, len(axes.InputSpatial)), make([]int, len(axes.InputSpatial))
		for i := range axes.InputSpatial {
			config[2+i].Interior = or(inputDilations, i, 1) - 1
			if len(paddings) > 0 {
				config[2+i].Start, config[2+i].End = paddings[i][0], paddings[i][1]
			}
			steps[i], gaps[i] = or(strides, i, 1), or(kernelDilations, i, 1)
		}
		y := convolved(padded(x, 0, config), k, steps, gaps, channelGroups, batchGroups)
		order := make([]int, y.Rank())
		order[axes.OutputBatch], order[axes.OutputChannels] = 0, 1
		for i, a := range axes.OutputSpatial {
			order[a] = 2 + i
		}
		return y.Permute(order...)
	})
}

// convolved returns the convolution of x, batch × channels × places, with k, results × channels × places, as a product of matrices: one has the elements
// that a place of the kernel meets in each row.
func convolved(x, k *tensor.Tensor, steps, gaps []int, channelGroups, batchGroups int) *tensor.Tensor {
	batch, channels, results := x.Dim(0), x.Dim(1), k.Dim(0)
	window := k.Shape()[2:]
	out := make([]int, len(window))
	for i, n := range window {
		out[i] = (x.Dim(2+i)-(n-1)*gaps[i]-1)/steps[i] + 1
	}
	var parts []*tensor.Tensor
	eachOffset(window, func(at []int) {
		ranges := []tensor.Range{tensor.All, tensor.All}
		for i, o := range at {
			start := o * gaps[i]
			ranges = append(ranges, tensor.Range{Start: start, Stop: start + (out[i]-1)*steps[i] + 1, Step: steps[i]})
		}
		parts = append(parts, x.Slice(ranges...).Reshape(batch, channels, size(out)))
	})
	columns := tensor.Stack(2, parts...)
	groups := channelGroups * batchGroups
	columns = columns.Reshape(batchGroups, batch/batchGroups, channelGroups, channels/channelGroups*len(parts), size(out))
	columns = columns.Permute(1, 0, 2, 3, 4).Reshape(batch/batchGroups, groups, channels/channelGroups*len(parts), size(out))
	y := k.Reshape(groups, results/groups, channels/channelGroups*len(parts)).MatMul(columns)
	return y.Reshape(append([]int{batch / batchGroups, results}, out...)...)
}

// eachOffset calls f for each place in a window, the last axis changing fastest.
func eachOffset(window []int, f func(at []int)) {
	at := make([]int, len(window))
	for range size(window) {
		f(at)
		for i := len(at) - 1; i >= 0; i-- {
			if at[i]++; at[i] < window[i] {
				break
			}
			at[i] = 0
		}
	}
}

// ReduceWindow returns the reduction of each window. Strides are the window's lengths if there are none.
func (f *function) ReduceWindow(input compute.Value, reductionType compute.ReduceOpType, windowDimensions, strides, inputDilations, windowDilations []int,
	paddings [][2]int) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeReduceWindow, input)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.ReduceWindow(in[0].shape, windowDimensions, strides, inputDilations, windowDilations, paddings)
	if err != nil {
		return nil, err
	}
	t, err := typeOf(shape.DType)
	if err != nil {
		return nil, err
	}
	var combine func(x, y *tensor.Tensor) *tensor.Tensor
	var reduce func(x *tensor.Tensor, axes ...int) *tensor.Tensor
	var none any
	switch reductionType {
	case compute.ReduceOpSum:
		combine, reduce, none = with((*tensor.Tensor).Add), (*tensor.Tensor).Sum, 0
	case compute.ReduceOpProduct:
		combine, reduce, none = with((*tensor.Tensor).Mul), (*tensor.Tensor).Prod, 1
	case compute.ReduceOpMax:
		combine, reduce, none = with((*tensor.Tensor).Maximum), (*tensor.Tensor).Max, limit(t, false)
	case compute.ReduceOpMin:
		combine, reduce, none = with((*tensor.Tensor).Minimum), (*tensor.Tensor).Min, limit(t, true)
	default:
		return nil, errors.Errorf("ReduceWindow with %s", reductionType)
	}
	if t == tensor.Bool {
		return nil, errors.Errorf("ReduceWindow of %s", in[0].shape)
	}
	windowDimensions, strides, windowDilations = slices.Clone(windowDimensions), slices.Clone(strides), slices.Clone(windowDilations)
	config := margins(in[0].shape.Rank(), inputDilations, paddings)
	return f.single(compute.OpTypeReduceWindow, shape, in, func(_ *trace, in []*tensor.Tensor) *tensor.Tensor {
		x := padded(in[0], none, config)
		for axis := range x.Rank() {
			w := or(windowDimensions, axis, 1)
			step, gap := or(strides, axis, w), or(windowDilations, axis, 1)
			if w > 1 && w == step && gap == 1 && x.Rank() < tensor.MaxRank {
				n := x.Dim(axis) / w
				split := slices.Replace(x.Shape(), axis, axis+1, n, w)
				x = convert(reduce(x.Narrow(axis, 0, n*w).Reshape(split...), axis+1), t)
			} else if w > 1 || step > 1 {
				x = slid(x, axis, w, step, gap, combine)
			}
		}
		return x
	})
}

// margins returns the padding of windows.
func margins(rank int, dilations []int, paddings [][2]int) []compute.PadAxis {
	config := make([]compute.PadAxis, rank)
	for i := range config {
		config[i].Interior = or(dilations, i, 1) - 1
		if len(paddings) > 0 {
			config[i].Start, config[i].End = paddings[i][0], paddings[i][1]
		}
	}
	return config
}

// slid combines the elements of windows along an axis. Windows of a length that is a power of two are combined from halves.
func slid(x *tensor.Tensor, axis, w, step, gap int, combine func(x, y *tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
	places := x.Dim(axis) - (w-1)*gap // with step 1
	var sum *tensor.Tensor
	for have, length := 0, 1; have < w; length *= 2 {
		if w&length != 0 {
			part := x.Narrow(axis, have*gap, places)
			if have += length; sum == nil {
				sum = part
			} else {
				sum = combine(sum, part)
			}
		}
		if have < w {
			n := x.Dim(axis) - length*gap
			x = combine(x.Narrow(axis, 0, n), x.Narrow(axis, length*gap, n))
		}
	}
	ranges := slices.Repeat([]tensor.Range{tensor.All}, x.Rank())
	ranges[axis].Step = step
	return sum.Slice(ranges...)
}

// SelectAndScatterMax returns an array of the operand's shape, to which each element of source is added where its window of the operand has the
// largest element, the first of equal ones.
func (f *function) SelectAndScatterMax(operand, source compute.Value, windowDimensions, windowStrides []int, paddings [][2]int) (compute.Value, error) {
	return f.selectAndScatter(compute.OpTypeSelectAndScatterMax, operand, source, windowDimensions, windowStrides, paddings, false)
}

// SelectAndScatterMin is SelectAndScatterMax with the smallest element.
func (f *function) SelectAndScatterMin(operand, source compute.Value, windowDimensions, windowStrides []int, paddings [][2]int) (compute.Value, error) {
	return f.selectAndScatter(compute.OpTypeSelectAndScatterMin, operand, source, windowDimensions, windowStrides, paddings, true)
}

func (f *function) selectAndScatter(op compute.OpType, operand, source compute.Value, windowDimensions, windowStrides []int, paddings [][2]int,
	smallest bool) (compute.Value, error) {
	in, err := f.operands(op, operand, source)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.SelectAndScatter(in[0].shape, in[1].shape, windowDimensions, windowStrides, paddings)
	if err != nil {
		return nil, err
	}
	var window, steps, split []int
	for i := range shape.Rank() {
		window = append(window, or(windowDimensions, i, 1))
		if steps = append(steps, or(windowStrides, i, window[i])); window[i] > 1 || steps[i] > 1 {
			split = append(split, i)
		}
	}
	if shape.Rank()+len(split) > tensor.MaxRank {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "%s of %s with windows %v", op, shape, window)
	}
	config := margins(shape.Rank(), nil, paddings)
	return f.single(op, shape, in, func(_ *trace, in []*tensor.Tensor) *tensor.Tensor {
		return selected(in[0], in[1], window, steps, split, config, smallest)
	})
}

// selected adds the elements of source up where their windows' largest or smallest elements are. Axis i of split becomes two: the number of a window, and
// the place from its begin to that of the next one. An element lies in the window that begins there, and in some before it.
func selected(x, source *tensor.Tensor, window, steps, split []int, config []compute.PadAxis, smallest bool) *tensor.Tensor {
	s, rank := x.Scope(), x.Rank()
	before := make([]int, rank) // how many windows an element lies in, along each axis
	code := make([]int, rank)   // what a step along each axis adds to the number of a place
	next := 1
	for i := rank - 1; i >= 0; i-- {
		before[i] = (window[i] + steps[i] - 1) / steps[i]
		code[i] = next
		next *= before[i] * steps[i]
	}
	px := padded(x, limit(x.Type(), smallest), config)
	var best, place *tensor.Tensor
	eachOffset(window, func(at []int) {
		ranges := make([]tensor.Range, rank)
		number := 0
		for i, o := range at {
			ranges[i] = tensor.Range{Start: o, Stop: o + (source.Dim(i)-1)*steps[i] + 1, Step: steps[i]}
			number += o * code[i]
		}
		part := px.Slice(ranges...)
		if best == nil {
			best, place = part, tensor.Full(s, tensor.I32, number, source.Shape()...)
			return
		}
		better := part.Gt(best)
		if smallest {
			better = part.Lt(best)
		}
		best, place = tensor.Where(better, part, best), tensor.Where(better, number, place)
	})
	around := make([]compute.PadAxis, rank)
	counts := make([]int, rank)
	for i := range around {
		counts[i] = max(source.Dim(i), (config[i].Start+x.Dim(i)+steps[i]-1)/steps[i])
		around[i] = compute.PadAxis{Start: before[i] - 1, End: counts[i] - source.Dim(i)}
	}
	source, place = padded(source, 0, around), padded(place, -1, around)
	var dims, merged []int
	for i, n := range counts {
		dims, merged = append(dims, n), append(merged, n*steps[i])
		if slices.Contains(split, i) {
			dims = append(dims, steps[i])
		}
	}
	sum := tensor.Zeros(s, x.Type(), dims...)
	eachOffset(before, func(at []int) {
		ranges := make([]tensor.Range, rank)
		shape := []int{}
		here := tensor.Full(s, tensor.I32, 0, dims...)
		axis := 0
		for i, back := range at {
			start := before[i] - 1 - back
			ranges[i] = tensor.Range{Start: start, Stop: start + counts[i], Step: 1}
			shape = append(shape, counts[i])
			if slices.Contains(split, i) {
				shape = append(shape, 1)
				axis++
				here = here.Add(counted(s, tensor.I32, axis, dims).Add(back * steps[i]).Mul(code[i]))
			}
			axis++
		}
		part, chosen := source.Slice(ranges...).Reshape(shape...), place.Slice(ranges...).Reshape(shape...)
		sum = sum.Add(tensor.Where(chosen.Eq(here), part, 0))
	})
	sum = sum.Reshape(merged...)
	for i := range rank {
		sum = sum.Narrow(i, config[i].Start, x.Dim(i))
	}
	return sum
}
