package gomlx

// Elements by index: gather, scatter, and parts whose places are computed.

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/tensor"
)

// windows are parts of an array, at places that a matrix of indices gives, as parts of rows of a matrix: the
// axes behind the last one that is not read as a whole are the columns.
type windows struct {
	rows, columns int
	count, each   int   // the number of windows, and of rows in one
	starts        array // count × axes, the first row's place in each axis that axes names
	axes          []int
	dims, sizes   []int // of the array and of a window
	lead          int   // the axes that are rows
}

// newWindows puts the indices in order. Axes of which whole marks the end are columns.
func newWindows(x, indices array, vectorAxis int, axes, sizes []int, whole func(axis int) bool) *windows {
	w := &windows{axes: axes, dims: x.Shape(), sizes: sizes, lead: x.Rank(), columns: 1, each: 1}
	for ; w.lead > 0 && whole(w.lead-1); w.lead-- {
		w.columns *= w.dims[w.lead-1]
	}
	w.rows = size(w.dims[:w.lead])
	for _, n := range sizes[:w.lead] {
		w.each *= n
	}
	if vectorAxis == indices.Rank() {
		indices = indices.Unsqueeze(-1)
	}
	indices = indices.Permute(append(others(indices.Rank(), vectorAxis), vectorAxis)...)
	w.count = size(indices.Shape()[:indices.Rank()-1])
	w.starts = convert(indices, tensor.I64).Reshape(w.count, len(axes))
	return w
}

// places returns the number of each row of each window, a matrix, where only every one of a run of neighbouring
// rows counts. Windows that reach beyond the array are moved into it, or, if drop is set, have the number
// behind the last row.
func (w *windows) places(drop bool, run int) array {
	s := w.starts.Scope()
	first := tensor.Zeros(s, tensor.I64, w.count)
	there := tensor.Full(s, tensor.Bool, true, w.count)
	for k, axis := range w.axes {
		last := w.dims[axis] - w.sizes[axis]
		start := w.starts.Index(1, k)
		if drop {
			there = there.And(start.Ge(0)).And(start.Le(last))
		} else {
			start = start.Clamp(0, last)
		}
		if axis < w.lead {
			first = first.Add(start.Mul(size(w.dims[axis+1 : w.lead])))
		}
	}
	sizes := slices.Clone(w.sizes[:w.lead])
	if run > 1 { // the last axis
		sizes[w.lead-1] = 1
	}
	inside := tensor.Zeros(s, tensor.I64, sizes...)
	for axis := range w.lead {
		inside = inside.Add(counted(s, tensor.I64, axis, sizes).Mul(size(w.dims[axis+1 : w.lead])))
	}
	all := first.Unsqueeze(1).Add(inside.Reshape(1, w.each/run))
	if drop {
		all = tensor.Where(there.Unsqueeze(1), all, w.rows)
	}
	return all
}

// vectorShape returns the shape of indices with an axis of vectors, which has length 1 where it is behind the last one.
func vectorShape(indices shapes.Shape, vectorAxis int) shapes.Shape {
	if vectorAxis != indices.Rank() {
		return indices
	}
	s := indices.Clone()
	s.Dimensions = append(s.Dimensions, 1)
	if s.AxisNames != nil {
		s.AxisNames = append(s.AxisNames, "")
	}
	return s
}

// Gather returns parts of the operand, at the places that startIndices give, moved into the operand where they
// reach beyond it.
func (f *function) Gather(operand, startIndices compute.Value, indexVectorAxis int, offsetOutputAxes,
	collapsedSliceAxes, startIndexMap, sliceSizes []int,
	indicesAreSorted bool) (compute.Value, error) {
	offsets, collapsed, axes, parts := slices.Clone(offsetOutputAxes), slices.Clone(collapsedSliceAxes),
		slices.Clone(startIndexMap), slices.Clone(sliceSizes)
	infer := func(in []shapes.Shape) (shapes.Shape, error) {
		return shapeinference.Gather(in[0], vectorShape(in[1], indexVectorAxis), indexVectorAxis, offsets, collapsed, axes,
			parts, indicesAreSorted)
	}
	operands := []compute.Value{operand, startIndices}
	return f.inferred(compute.OpTypeGather, operands, infer, func(_ *trace, in []array) array {
		x, sizes := in[0], slices.Clone(parts)
		for i, n := range sizes {
			if n == shapes.DynamicDim {
				sizes[i] = x.Dim(i)
			}
		}
		w := newWindows(x, in[1], indexVectorAxis, axes, sizes, func(axis int) bool { return sizes[axis] == x.Dim(axis) })
		run := 1 // neighbouring rows are read together, so that they need one place
		if w.lead > 0 && w.each > 0 {
			run = sizes[w.lead-1]
		}
		table := x.Reshape(w.rows, w.columns)
		if run > 1 {
			table = table.Windows(0, run, 1, 1).Reshape(w.rows-run+1, run*w.columns)
		}
		taken := table.Take(0, w.places(false, run))
		dims := append(dimsAt(in[1].Shape(), others(in[1].Rank(), indexVectorAxis)),
			dimsAt(sizes, others(len(sizes), collapsed...))...)
		to := append(others(len(dims), offsets...), slices.Sorted(slices.Values(offsets))...)
		return taken.Reshape(dims...).Permute(inverse(to)...)
	})
}

// scatter adds an operation that combines windows of the operand with updates.
func (f *function) scatter(op compute.OpType, operand, scatterIndices, updates compute.Value, vectorAxis int,
	windowAxes, insertedAxes, operandAxes []int,
	combine func(x, places, updates array) array) (compute.Value, error) {
	windowAxes, insertedAxes, operandAxes = slices.Clone(windowAxes), slices.Clone(insertedAxes), slices.Clone(operandAxes)
	infer := func(in []shapes.Shape) (shapes.Shape, error) {
		return shapeinference.Scatter(in[0], in[1], in[2], vectorAxis, windowAxes, insertedAxes, operandAxes)
	}
	return f.inferred(op, []compute.Value{operand, scatterIndices, updates}, infer, func(_ *trace, in []array) array {
		x, u := in[0], in[2]
		sizes := slices.Repeat([]int{1}, x.Rank())
		for k, axis := range others(x.Rank(), insertedAxes...) {
			sizes[axis] = u.Dim(windowAxes[k])
		}
		w := newWindows(x, in[1], vectorAxis, operandAxes, sizes, func(axis int) bool {
			return sizes[axis] == x.Dim(axis) && !slices.Contains(operandAxes, axis)
		})
		n := w.count * w.each
		u = u.Permute(append(others(u.Rank(), windowAxes...), windowAxes...)...).Reshape(n, w.columns)
		return combine(x.Reshape(w.rows, w.columns), w.places(true, 1).Reshape(n), u).Reshape(x.Shape()...)
	})
}

// ScatterSum returns the operand with updates added, in order, to its windows at scatterIndices. Those that
// reach beyond it are left out.
func (f *function) ScatterSum(operand, scatterIndices, updates compute.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, _, _ bool) (compute.Value, error) {
	return f.scatter(compute.OpTypeScatterSum, operand, scatterIndices, updates, indexVectorAxis, updateWindowAxes,
		insertedWindowAxes, scatterAxesToOperandAxes,
		func(x, places, u array) array { return x.IndexAdd(0, places, u) })
}

// ScatterMax is ScatterSum with the maximum in place of the sum.
func (f *function) ScatterMax(operand, scatterIndices, updates compute.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, _, _ bool) (compute.Value, error) {
	return f.scatter(compute.OpTypeScatterMax, operand, scatterIndices, updates, indexVectorAxis, updateWindowAxes,
		insertedWindowAxes, scatterAxesToOperandAxes, scatterMax)
}

// ScatterMin is ScatterSum with the minimum in place of the sum.
func (f *function) ScatterMin(operand, scatterIndices, updates compute.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, _, _ bool) (compute.Value, error) {
	return f.scatter(compute.OpTypeScatterMin, operand, scatterIndices, updates, indexVectorAxis, updateWindowAxes,
		insertedWindowAxes, scatterAxesToOperandAxes,
		func(x, places, u array) array {
			// Of the numbers in reverse order, which of integers is that of the inverted bits.
			reverse := array.Neg
			if !tensor.IsFloat(x.Type()) {
				reverse = array.Not
			}
			return reverse(scatterMax(reverse(x), places, reverse(u)))
		})
}

// scatterMax stores the updates in increasing order, so that of several with one place the largest stays.
func scatterMax(x, places, u array) array {
	n, columns := u.Dim(0), u.Dim(1)
	column := tensor.Iota(x.Scope(), tensor.I64, 1, columns)
	at := places.Unsqueeze(1).Mul(columns).Add(column).Reshape(n * columns)
	u = u.Reshape(n * columns)
	order := u.ArgSort(0, false)
	least := tensor.Full(x.Scope(), x.Type(), limit(x.Type(), false), x.Len())
	largest := least.IndexSet(0, at.Take(0, order), u.Take(0, order))
	return x.Maximum(largest.Reshape(x.Shape()...))
}

// DynamicSlice returns the part of the operand of the given lengths that begins at startIndices, moved into the
// operand where it reaches beyond it.
func (f *function) DynamicSlice(operand compute.Value, startIndices []compute.Value,
	sliceDims []int) (compute.Value, error) {
	dims := slices.Clone(sliceDims)
	infer := func(in []shapes.Shape) (shapes.Shape, error) {
		if err := checkStarts(in[0], in[1:]); err != nil {
			return shapes.Invalid(), errors.WithMessage(err, "DynamicSlice")
		}
		return shapeinference.DynamicSlice(in[0], dims)
	}
	operands := append([]compute.Value{operand}, startIndices...)
	return f.inferred(compute.OpTypeDynamicSlice, operands, infer, func(_ *trace, in []array) array {
		x := in[0]
		for axis, n := range dims {
			if last := x.Dim(axis) - n; last > 0 {
				start := startAt(in[1:], axis).Clamp(0, last)
				x = x.Take(axis, start.Add(tensor.Iota(x.Scope(), tensor.I64, n)))
			}
		}
		return x
	})
}

// checkStarts returns an error if indices are not one integer for each axis, each by itself or all in one vector.
func checkStarts(x shapes.Shape, starts []shapes.Shape) error {
	rank, vector := x.Rank(), len(starts) == 1 && starts[0].Rank() == 1
	if n := len(starts); !vector && n != rank || vector && starts[0].Dimensions[0] != rank {
		return errors.Errorf("%d indices for %s", n, x)
	}
	for i, s := range starts {
		if !vector && s.Rank() != 0 || !s.DType.IsInt() {
			return errors.Errorf("index %d is of shape %s", i, s)
		}
	}
	return nil
}

// startAt returns the index of an axis.
func startAt(starts []array, axis int) array {
	if starts[0].Rank() == 1 {
		return convert(starts[0].Index(0, axis), tensor.I64)
	}
	return convert(starts[axis], tensor.I64)
}

// DynamicUpdateSlice returns the operand with update in the part that begins at startIndices, which is moved as
// DynamicSlice does.
func (f *function) DynamicUpdateSlice(operand, update compute.Value,
	startIndices []compute.Value) (compute.Value, error) {
	infer := func(in []shapes.Shape) (shapes.Shape, error) {
		if err := checkStarts(in[0], in[2:]); err != nil {
			return shapes.Invalid(), errors.WithMessage(err, "DynamicUpdateSlice")
		}
		return shapeinference.DynamicUpdateSlice(in[0], in[1])
	}
	operands := append([]compute.Value{operand, update}, startIndices...)
	return f.inferred(compute.OpTypeDynamicUpdateSlice, operands, infer, func(_ *trace, in []array) array {
		x, u := in[0], in[1]
		if u.Len() == 0 {
			return x
		}
		var inside array
		for axis := range x.Rank() {
			dim, n := x.Dim(axis), u.Dim(axis)
			if n == dim {
				continue
			}
			at := tensor.Iota(x.Scope(), tensor.I64, dim).Sub(startAt(in[2:], axis).Clamp(0, dim-n))
			u = u.Take(axis, at.Clamp(0, n-1))
			here := stretched(at.Ge(0).And(at.Lt(n)), []int{axis}, x.Shape())
			inside = combined(inside, here, array.And)
		}
		if inside == nil {
			return u
		}
		return tensor.Where(inside, u, x)
	})
}
