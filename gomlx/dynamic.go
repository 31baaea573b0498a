package gomlx

// Operations of dynamic shapes. Lengths that come from shapes alone are known when a function is traced; others
// are read by the host.

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/tensor"
)

// DynamicDimensionSize returns the length of a dimension, an Int32.
func (f *function) DynamicDimensionSize(operand compute.Value, axis int) (compute.Value, error) {
	infer := func(in []shapes.Shape) (shapes.Shape, error) {
		if axis < 0 || axis >= in[0].Rank() {
			return shapes.Invalid(), errors.Errorf("DynamicDimensionSize of axis %d of %s", axis, in[0])
		}
		return shapes.Make(dtypes.Int32), nil
	}
	return f.inferred(compute.OpTypeDynamicDimensionSize, []compute.Value{operand}, infer,
		func(_ *trace, in []array) array { return tensor.Full(in[0].Scope(), tensor.I32, in[0].Dim(axis)) })
}

// DynamicShape returns the lengths of the dimensions, a vector of Int32.
func (f *function) DynamicShape(operand compute.Value) (compute.Value, error) {
	infer := func(in []shapes.Shape) (shapes.Shape, error) { return shapes.Make(dtypes.Int32, in[0].Rank()), nil }
	return f.inferred(compute.OpTypeDynamicShape, []compute.Value{operand}, infer, func(_ *trace, in []array) array {
		var dims []int32
		for _, d := range in[0].Shape() {
			dims = append(dims, int32(d))
		}
		return tensor.From(in[0].Scope(), dims, len(dims))
	})
}

// read returns the number in a tensor of one integer.
func (r *run) read(t array) (int, error) {
	x, err := tensor.Number(r.ctx, t)
	return int(x), errors.WithStack(err)
}

// lengths adds a node whose result depends on numbers that the host reads: the values, in order, behind the
// operands. bind names some of the numbers as lengths of axes; emit gets them all.
func (f *function) lengths(op compute.OpType, shape shapes.Shape, operands, values []*value,
	bind func(numbers []int, axes shapes.AxisBindings),
	emit func(tr *trace, in []array, numbers []int) array) (compute.Value, error) {
	if _, err := typeOf(shape.DType); err != nil {
		return nil, err
	}
	if len(values) == 0 {
		return f.single(op, shape, operands, func(tr *trace, in []array) array { return emit(tr, in, nil) })
	}
	n := len(operands)
	node := &node{op: op, in: append(slices.Clone(operands), values...)}
	node.host = func(r *run, in []array) ([]array, error) {
		numbers := make([]int, len(values))
		for i := range numbers {
			var err error
			if numbers[i], err = r.read(in[n+i]); err != nil {
				return nil, err
			}
		}
		axes := maps.Clone(r.axes)
		if axes == nil {
			axes = shapes.AxisBindings{}
		}
		bind(numbers, axes)
		r.axes = axes
		c := r.compiled(node, fmt.Sprint(axes.Key(), numbers), axes, func(tr *trace, args []array) []array {
			return []array{emit(tr, args, numbers)}
		})
		res, err := c.owned(r, nil, in[:n])
		return r.keep(res), err
	}
	return one(f.several(node, shape))
}

// sized adds an operation whose result has a list of dimensions. emit gets their lengths, -1 for one that is
// inferred. Names of dimensions with values are known from here on, but for a reshape.
func (f *function) sized(op compute.OpType, shape shapes.Shape, in []*value, dimensions []compute.DynamicDimensionSpec,
	emit func(tr *trace, in []array, dims []int) array) (compute.Value, error) {
	list, values := slices.Clone(dimensions), []*value(nil)
	for _, d := range list {
		if d.Value != nil {
			v, err := f.operands(op, d.Value)
			if err != nil {
				return nil, err
			}
			if v[0].shape.Size() != 1 || !v[0].shape.DType.IsInt() {
				return nil, errors.Errorf("%s: a length of shape %s", op, v[0].shape)
			}
			values = append(values, v[0])
		}
	}
	for _, d := range list {
		if op != compute.OpTypeDynamicReshape && d.Value != nil && d.Name != "" {
			f.builder.axes.Insert(d.Name)
		}
	}
	bind := func(numbers []int, axes shapes.AxisBindings) {
		for _, d := range list {
			if d.Value != nil {
				if d.Name != shapes.AnonymousAxis {
					axes[d.Name] = numbers[0]
				}
				numbers = numbers[1:]
			}
		}
	}
	return f.lengths(op, shape, in, values, bind, func(tr *trace, in []array, numbers []int) array {
		out := make([]int, len(list))
		for i, d := range list {
			n, known := tr.axes[d.Name]
			switch {
			case d.Value != nil:
				out[i], numbers = numbers[0], numbers[1:]
			case d.Name == "":
				out[i] = d.Static
			case known:
				out[i] = n
			default:
				out[i] = -1
			}
		}
		return emit(tr, in, out)
	})
}

// DynamicReshape returns the elements of the operand with other dimensions.
func (f *function) DynamicReshape(operand compute.Value, dimensions ...compute.DynamicDimensionSpec) (
	compute.Value, error) {
	const op = compute.OpTypeDynamicReshape
	in, err := f.operands(op, operand)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.DynamicReshape(in[0].shape, dimensions)
	if err != nil {
		return nil, err
	}
	return f.sized(op, shape, in, dimensions, func(_ *trace, in []array, dims []int) array {
		return in[0].Reshape(dims...)
	})
}

// DynamicBroadcastInDim returns the operand stretched to dimensions, of which broadcastAxes[i] is its dimension i.
func (f *function) DynamicBroadcastInDim(operand compute.Value, broadcastAxes []int,
	dimensions ...compute.DynamicDimensionSpec) (compute.Value, error) {
	const op = compute.OpTypeDynamicBroadcastInDim
	in, err := f.operands(op, operand)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.DynamicBroadcastInDim(in[0].shape, broadcastAxes, dimensions, f.builder.axes)
	if err != nil {
		return nil, err
	}
	axes := slices.Clone(broadcastAxes)
	return f.sized(op, shape, in, dimensions, func(_ *trace, in []array, dims []int) array {
		return stretched(in[0], axes, dims)
	})
}

// DynamicIota returns the numbers from 0 on along an axis.
func (f *function) DynamicIota(dtype dtypes.DType, iotaAxis int, dimensions ...compute.DynamicDimensionSpec) (
	compute.Value, error) {
	const op = compute.OpTypeDynamicIota
	if err := f.open(); err != nil {
		return nil, err
	}
	shape, err := shapeinference.DynamicIota(dtype, iotaAxis, dimensions, f.builder.axes)
	if err != nil {
		return nil, err
	}
	return f.sized(op, shape, nil, dimensions, func(tr *trace, _ []array, dims []int) array {
		return counted(tr.scope, types[dtype], iotaAxis, dims)
	})
}

// DynamicPad returns x with fillValue around and between the elements of dimensions.
func (f *function) DynamicPad(x, fillValue compute.Value, axesConfig ...compute.DynamicPadAxis) (compute.Value, error) {
	const op = compute.OpTypeDynamicPad
	in, err := f.operands(op, x, fillValue)
	if err != nil {
		return nil, err
	}
	if in[1].shape.Size() != 1 || in[1].shape.DType != in[0].shape.DType {
		return nil, errors.Errorf("%s of %s with %s", op, in[0].shape, in[1].shape)
	}
	shape, err := shapeinference.DynamicPad(in[0].shape, axesConfig...)
	if err != nil {
		return nil, err
	}
	config := slices.Clone(axesConfig)
	var values []*value
	for _, c := range config {
		for _, v := range []compute.Value{c.StartValue, c.EndValue, c.InteriorValue} {
			if v != nil {
				list, err := f.operands(op, v)
				if err != nil {
					return nil, err
				}
				values = append(values, list[0])
			}
		}
	}
	// margins returns the margins with the numbers that were read.
	margins := func(numbers []int) []compute.PadAxis {
		var list []compute.PadAxis
		for _, c := range config {
			p := compute.PadAxis{Start: c.Start, End: c.End, Interior: c.Interior}
			for _, v := range []struct {
				value compute.Value
				to    *int
			}{{c.StartValue, &p.Start}, {c.EndValue, &p.End}, {c.InteriorValue, &p.Interior}} {
				if v.value != nil {
					*v.to, numbers = numbers[0], numbers[1:]
				}
			}
			list = append(list, p)
		}
		return list
	}
	bind := func(numbers []int, axes shapes.AxisBindings) {
		s, err := in[0].shape.Resolve(axes)
		if err != nil {
			return // the name of the result stays unknown
		}
		for i, p := range margins(numbers) {
			if name := config[i].TargetAxisName; name != "" {
				d := s.Dimensions[i]
				axes[name] = d + p.Start + p.End + max(d-1, 0)*p.Interior
			}
		}
	}
	return f.lengths(op, shape, in, values, bind, func(_ *trace, in []array, numbers []int) array {
		return padded(in[0], in[1], margins(numbers))
	})
}
