package gomlx

// Operations on windows: convolution, and pooling with its gradient.

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/support/xslices"
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
func (f *function) ConvGeneral(input, kernel compute.Value, axes compute.ConvolveAxesConfig, strides []int,
	paddings [][2]int,
	inputDilations, kernelDilations []int, channelGroupCount, batchGroupCount int) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeConvGeneral, input, kernel)
	if err != nil {
		return nil, err
	}
	channelGroups, batchGroups := max(channelGroupCount, 1), max(batchGroupCount, 1)
	shape, err := shapeinference.ConvGeneral(in[0].shape, in[1].shape, axes, strides, paddings, inputDilations,
		kernelDilations, channelGroups, batchGroups)
	if err != nil {
		return nil, err
	}
	if in[0].shape.DType != in[1].shape.DType {
		return nil, errors.Errorf("ConvGeneral of %s and %s", in[0].shape, in[1].shape)
	}
	axes, strides, paddings, inputDilations, kernelDilations = axes.Clone(), slices.Clone(strides), slices.Clone(paddings),
		slices.Clone(inputDilations), slices.Clone(kernelDilations)
	// The numbers of places of the kernel and of the result, where they are known.
	few := false
	if channelGroups*batchGroups == 1 && !in[0].shape.IsDynamic() && !in[1].shape.IsDynamic() {
		n := size(dimsAt(shape.Dimensions, axes.OutputSpatial))
		few = n > 0 && n < size(dimsAt(in[1].shape.Dimensions, axes.KernelSpatial))
	}
	return f.single(compute.OpTypeConvGeneral, shape, in, func(_ *trace, in []array) array {
		n := len(axes.InputSpatial)
		config := append(make([]compute.PadAxis, 2), margins(n, inputDilations, paddings)...)
		steps, gaps := make([]int, n), make([]int, n)
		for i := range n {
			steps[i], gaps[i] = or(strides, i, 1), or(kernelDilations, i, 1)
		}
		if few {
			return met(in[0], in[1], axes, config[2:], steps, gaps)
		}
		x := in[0].Permute(append([]int{axes.InputBatch, axes.InputChannels}, axes.InputSpatial...)...)
		k := in[1].Permute(append([]int{axes.KernelOutputChannels, axes.KernelInputChannels}, axes.KernelSpatial...)...)
		var y array
		if tensor.IsFloat(x.Type()) && n >= 1 && n <= 3 {
			o := tensor.ConvOptions{Stride: steps, Dilation: gaps, Groups: channelGroups * batchGroups}
			for _, c := range config[2:] {
				o.Pad, o.InputDilation = append(o.Pad, [2]int{c.Start, c.End}), append(o.InputDilation, c.Interior+1)
			}
			if batchGroups > 1 { // images of a group are channels of their own
				apart := append([]int{batchGroups, x.Dim(0) / batchGroups}, x.Shape()[1:]...)
				order := append([]int{1, 0}, xslices.Iota(2, len(apart)-2)...)
				x = x.Reshape(apart...).Permute(order...).Reshape(append([]int{apart[1], batchGroups * apart[2]}, apart[3:]...)...)
			}
			y = tensor.Conv(x, k, nil, o)
		} else {
			y = convolved(padded(x, 0, config), k, steps, gaps, channelGroups, batchGroups)
		}
		return y.Permute(outputOrder(axes, 0, 1, 2)...)
	})
}

// outputOrder returns the order of a result's axes for a permutation, where the batch, the channels and the
// first spatial axis are given.
func outputOrder(axes compute.ConvolveAxesConfig, batch, channels, spatial int) []int {
	order := make([]int, 2+len(axes.OutputSpatial))
	order[axes.OutputBatch], order[axes.OutputChannels] = batch, channels
	for i, a := range axes.OutputSpatial {
		order[a] = spatial + i
	}
	return order
}

// met returns a convolution whose kernel has more places than the result, such as the gradient of a kernel. For
// each place of the result, what the kernel meets there is a matrix, in the order of the operands' axes, and
// the kernel is the other one.
func met(x, k array, axes compute.ConvolveAxesConfig, config []compute.PadAxis, steps,
	gaps []int) array {
	margins, out := make([]compute.PadAxis, x.Rank()), make([]int, len(config))
	for i, a := range axes.InputSpatial {
		margins[a] = config[i]
	}
	x = padded(x, 0, margins)
	for i, a := range axes.InputSpatial {
		out[i] = (x.Dim(a)-(k.Dim(axes.KernelSpatial[i])-1)*gaps[i]-1)/steps[i] + 1
	}
	var parts []array
	eachOffset(out, func(at []int) {
		ranges := slices.Repeat([]tensor.Range{tensor.All}, x.Rank())
		for i, a := range axes.InputSpatial {
			start := at[i] * steps[i]
			ranges[a] = tensor.Range{Start: start, Stop: start + (k.Dim(axes.KernelSpatial[i])-1)*gaps[i] + 1, Step: gaps[i]}
		}
		parts = append(parts, x.Slice(ranges...))
	})
	// What is added up, in the order in which x has it.
	axis := map[int]int{axes.InputChannels: axes.KernelInputChannels}
	for i, a := range axes.InputSpatial {
		axis[a] = axes.KernelSpatial[i]
	}
	first, second, terms := []int{0, 1 + axes.InputBatch}, []int{}, 1
	for _, a := range slices.Sorted(maps.Keys(axis)) {
		first, second, terms = append(first, 1+a), append(second, axis[a]), terms*k.Dim(axis[a])
	}
	batch, results := x.Dim(axes.InputBatch), k.Dim(axes.KernelOutputChannels)
	a := tensor.Stack(0, parts...).Permute(first...)
	b := k.Permute(append(second, axes.KernelOutputChannels)...).Reshape(terms, results)
	var y array
	if batch == 1 {
		y = a.Reshape(len(parts), terms).MatMul(b)
	} else {
		y = a.Reshape(len(parts), batch, terms).MatMul(b)
	}
	y = y.Reshape(append(slices.Clone(out), batch, results)...)
	return y.Permute(outputOrder(axes, len(out), len(out)+1, 0)...)
}

// convolved returns the convolution of x, batch × channels × places, with k, results × channels × places, as a
// product of matrices: one has the elements that a place of the kernel meets in each row.
func convolved(x, k array, steps, gaps []int, channelGroups, batchGroups int) array {
	batch, channels, results := x.Dim(0), x.Dim(1), k.Dim(0)
	window := k.Shape()[2:]
	out := make([]int, len(window))
	for i, n := range window {
		out[i] = (x.Dim(2+i)-(n-1)*gaps[i]-1)/steps[i] + 1
	}
	var parts []array
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
	columns = columns.Permute(1, 0, 2, 3, 4).Reshape(batch/batchGroups, groups, channels/channelGroups*len(parts),
		size(out))
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
func (f *function) ReduceWindow(input compute.Value, reductionType compute.ReduceOpType, windowDimensions, strides,
	inputDilations, windowDilations []int,
	paddings [][2]int) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeReduceWindow, input)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.ReduceWindow(in[0].shape, windowDimensions, strides, inputDilations, windowDilations,
		paddings)
	if err != nil {
		return nil, err
	}
	t, err := typeOf(shape.DType)
	if err != nil {
		return nil, err
	}
	var combine func(x array, y any) array
	var reduce func(x array, axes ...int) array
	var none any
	switch reductionType {
	case compute.ReduceOpSum:
		combine, reduce, none = array.Add, array.Sum, 0
	case compute.ReduceOpProduct:
		combine, reduce, none = array.Mul, array.Prod, 1
	case compute.ReduceOpMax:
		combine, reduce, none = array.Maximum, array.Max, limit(t, false)
	case compute.ReduceOpMin:
		combine, reduce, none = array.Minimum, array.Min, limit(t, true)
	default:
		return nil, errors.Errorf("ReduceWindow with %s", reductionType)
	}
	if t == tensor.Bool { // a sum of truths is whether there is one, and a product whether all are
		switch reductionType {
		case compute.ReduceOpSum, compute.ReduceOpMax:
			combine, reduce, none = array.Or, array.Any, false
		default:
			combine, reduce, none = array.And, array.All, true
		}
	}
	windowDimensions, strides, windowDilations = slices.Clone(windowDimensions), slices.Clone(strides),
		slices.Clone(windowDilations)
	config := margins(in[0].shape.Rank(), inputDilations, paddings)
	pool := poolOf(windowDimensions, strides, windowDilations, config)
	return f.single(compute.OpTypeReduceWindow, shape, in, func(tr *trace, in []array) array {
		if reductionType == compute.ReduceOpMax && pool.fits && t != tensor.Bool {
			return pool.max(tr, in[0])
		}
		x := padded(in[0], none, config)
		for axis := range x.Rank() {
			w := or(windowDimensions, axis, 1)
			step, gap := or(strides, axis, w), or(windowDilations, axis, 1)
			if w > manyElements && w == step && gap == 1 && x.Rank() < tensor.MaxRank {
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

// manyElements is how many elements a window along an axis has at most that are combined one by one, in the
// kernel that reads them.
const manyElements = 16

// pool is a maximum of windows, as tensors have it: of the last dimensions, behind those without windows.
type pool struct {
	order, back, size []int // back undoes order
	options           tensor.PoolOptions
	fits              bool // tensors have it
}

func poolOf(window, strides, dilations []int, config []compute.PadAxis) *pool {
	p := &pool{fits: true}
	var last []int
	for i, c := range config {
		w := or(window, i, 1)
		step := or(strides, i, w)
		if w == 1 && step == 1 && c == (compute.PadAxis{}) {
			p.order = append(p.order, i)
			continue
		}
		last, p.size = append(last, i), append(p.size, w)
		p.options.Stride, p.options.Dilation = append(p.options.Stride, step), append(p.options.Dilation, or(dilations, i, 1))
		p.options.Pad = append(p.options.Pad, [2]int{c.Start, c.End})
		p.fits = p.fits && min(c.Start, c.End) >= 0 && c.Interior == 0
	}
	p.order = append(p.order, last...)
	p.back = inverse(p.order)
	p.fits = p.fits && len(last) > 0
	return p
}

// max returns the maxima of x, those that the trace has if it has them: gradients need them again.
func (p *pool) max(tr *trace, x array) array {
	key := fmt.Sprintf("%p %v %v %v", x, p.order, p.size, p.options)
	if tr.maxima[key] == nil {
		if tr.maxima == nil {
			tr.maxima = map[string]array{}
		}
		tr.maxima[key] = x.Permute(p.order...).MaxPool(p.size, p.options).Permute(p.back...)
	}
	return tr.maxima[key]
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

// slid combines the elements of windows along an axis. Windows of a length that is a power of two are combined
// from halves.
func slid(x array, axis, w, step, gap int, combine func(x array, y any) array) array {
	places := x.Dim(axis) - (w-1)*gap // with step 1
	var sum array
	for have, length := 0, 1; have < w; length *= 2 {
		if w&length != 0 {
			sum = combined(sum, x.Narrow(axis, have*gap, places), combine)
			have += length
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

// SelectAndScatterMax returns an array of the operand's shape, to which each element of source is added where
// its window of the operand has the largest element, the first of equal ones.
func (f *function) SelectAndScatterMax(operand, source compute.Value, windowDimensions, windowStrides []int,
	paddings [][2]int) (compute.Value, error) {
	return f.selectAndScatter(compute.OpTypeSelectAndScatterMax, operand, source, windowDimensions, windowStrides,
		paddings, false)
}

// SelectAndScatterMin is SelectAndScatterMax with the smallest element.
func (f *function) SelectAndScatterMin(operand, source compute.Value, windowDimensions, windowStrides []int,
	paddings [][2]int) (compute.Value, error) {
	return f.selectAndScatter(compute.OpTypeSelectAndScatterMin, operand, source, windowDimensions, windowStrides,
		paddings, true)
}

func (f *function) selectAndScatter(op compute.OpType, operand, source compute.Value, windowDimensions,
	windowStrides []int, paddings [][2]int,
	smallest bool) (compute.Value, error) {
	in, err := f.operands(op, operand, source)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.SelectAndScatter(in[0].shape, in[1].shape, windowDimensions, windowStrides, paddings)
	if err != nil {
		return nil, err
	}
	t, err := typeOf(shape.DType)
	if err != nil {
		return nil, err
	}
	p := poolOf(windowDimensions, windowStrides, nil, margins(shape.Rank(), nil, paddings))
	if !p.fits || t == tensor.I64 || t == tensor.U64 {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "%s of %s with windows %v and margins %v", op, shape,
			windowDimensions, paddings)
	}
	return f.single(op, shape, in, func(tr *trace, in []array) array {
		x, source := in[0], in[1]
		if !tensor.IsFloat(t) {
			x, source = x.Cast(tensor.F64), source.Cast(tensor.F64)
		}
		y := x
		if smallest {
			y, source = x.Neg(), source.Neg()
		}
		return convert(tensor.GradOf([]array{p.max(tr, y)}, []array{source}, x)[0], t)
	})
}
