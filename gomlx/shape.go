package gomlx

// Operations that move elements: shapes, parts, margins, and bits as other types.

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/tensor"
)

// Reshape returns the elements of x with other dimensions.
func (f *function) Reshape(x compute.Value, dimensions ...int) (compute.Value, error) {
	var shape shapes.Shape
	infer := func(in []shapes.Shape) (_ shapes.Shape, err error) {
		shape, err = shapeinference.Reshape(in[0], dimensions)
		return shape, err
	}
	return f.inferred(compute.OpTypeReshape, []compute.Value{x}, infer,
		func(tr *trace, in []array) array { return in[0].Reshape(tr.shape(shape).Dimensions...) })
}

// Transpose returns x with its dimensions in another order.
func (f *function) Transpose(x compute.Value, permutation ...int) (compute.Value, error) {
	order := slices.Clone(permutation)
	v, err := f.inferred(compute.OpTypeTranspose, []compute.Value{x},
		func(in []shapes.Shape) (shapes.Shape, error) { return shapeinference.Transpose(in[0], order) },
		func(_ *trace, in []array) array { return in[0].Permute(order...) })
	if err != nil {
		return nil, err
	}
	v.(*value).node.order = order
	return v, nil
}

// BroadcastInDim returns x stretched to a shape, of which broadcastAxes[i] is x's dimension i.
func (f *function) BroadcastInDim(x compute.Value, outputShape shapes.Shape,
	broadcastAxes []int) (compute.Value, error) {
	shape, axes := outputShape.Clone(), slices.Clone(broadcastAxes)
	infer := func(in []shapes.Shape) (shapes.Shape, error) {
		return shape, shapeinference.BroadcastInDim(in[0], shape, axes, f.builder.axes)
	}
	return f.inferred(compute.OpTypeBroadcastInDim, []compute.Value{x}, infer,
		func(tr *trace, in []array) array { return stretched(in[0], axes, tr.shape(shape).Dimensions) })
}

// stretched returns x with its dimension i in place axes[i], stretched to dims.
func stretched(x array, axes, dims []int) array {
	with := slices.Repeat([]int{1}, len(dims))
	for i, a := range axes {
		with[a] = x.Dim(i)
	}
	return x.Reshape(with...).Expand(dims...)
}

// Concatenate returns arrays one after the other along an axis.
func (f *function) Concatenate(axis int, operands ...compute.Value) (compute.Value, error) {
	if len(operands) == 1 { // with any axis
		in, err := f.operands(compute.OpTypeConcatenate, operands...)
		if err != nil {
			return nil, err
		}
		return in[0], nil
	}
	return f.inferred(compute.OpTypeConcatenate, operands,
		func(in []shapes.Shape) (shapes.Shape, error) { return shapeinference.Concatenate(in, axis) },
		func(_ *trace, in []array) array { return tensor.Concat(axis, in...) })
}

// Slice returns every stride-th element of each dimension from its start to its limit.
func (f *function) Slice(x compute.Value, starts, limits, strides []int) (compute.Value, error) {
	ranges := make([]tensor.Range, len(starts))
	infer := func(in []shapes.Shape) (shapes.Shape, error) {
		shape, err := shapeinference.Slice(in[0], starts, limits, strides)
		if err != nil {
			return shape, err
		}
		for i := range ranges {
			ranges[i] = tensor.Range{Start: starts[i], Stop: limits[i], Step: or(strides, i, 1)}
			if limits[i] == shapes.DynamicDim {
				ranges[i].Stop = tensor.End
			}
		}
		return shape, nil
	}
	return f.inferred(compute.OpTypeSlice, []compute.Value{x}, infer,
		func(_ *trace, in []array) array { return in[0].Slice(ranges...) })
}

// Reverse returns x with the elements of dimensions in reverse order.
func (f *function) Reverse(x compute.Value, axes ...int) (compute.Value, error) {
	axes = slices.Clone(axes)
	infer := func(in []shapes.Shape) (shapes.Shape, error) {
		for _, a := range axes {
			if a < 0 || a >= in[0].Rank() {
				return shapes.Invalid(), errors.Errorf("Reverse of axis %d of %s", a, in[0])
			}
		}
		return in[0], nil
	}
	return f.inferred(compute.OpTypeReverse, []compute.Value{x}, infer, func(_ *trace, in []array) array {
		if len(axes) == 0 {
			return in[0]
		}
		return in[0].Flip(axes...)
	})
}

// Pad returns x with fillValue around and between the elements of dimensions. A negative number of elements
// leaves out as many of x.
func (f *function) Pad(x, fillValue compute.Value, axesConfig ...compute.PadAxis) (compute.Value, error) {
	config := slices.Clone(axesConfig)
	infer := func(in []shapes.Shape) (shapes.Shape, error) {
		if in[1].Size() != 1 || in[1].DType != in[0].DType {
			return shapes.Invalid(), errors.Errorf("Pad of %s with %s", in[0], in[1])
		}
		return shapeinference.Pad(in[0], config...)
	}
	return f.inferred(compute.OpTypePad, []compute.Value{x, fillValue}, infer,
		func(_ *trace, in []array) array { return padded(in[0], in[1], config) })
}

// padded returns x with a value, a number of Go or a tensor of one element, around and between its elements.
func padded(x array, value any, config []compute.PadAxis) array {
	fill := func(shape []int) array {
		if v, ok := value.(array); ok {
			return v.Reshape().Expand(shape...)
		}
		return tensor.Full(x.Scope(), x.Type(), value, shape...)
	}
	for axis, c := range config {
		if n := x.Dim(axis); c.Interior > 0 && n > 1 {
			shape := slices.Insert(x.Shape(), axis+1, c.Interior)
			to := x.Shape()
			to[axis] = n * (c.Interior + 1)
			x = tensor.Concat(axis+1, x.Unsqueeze(axis+1), fill(shape)).Reshape(to...).Narrow(axis, 0, to[axis]-c.Interior)
		}
		n := x.Dim(axis)
		if start, stop := min(max(-c.Start, 0), n), max(n-max(-c.End, 0), 0); start > 0 || stop < n {
			x = x.Narrow(axis, start, max(stop-start, 0))
		}
		parts := []array{x}
		if c.Start > 0 {
			shape := x.Shape()
			shape[axis] = c.Start
			parts = slices.Insert(parts, 0, fill(shape))
		}
		if c.End > 0 {
			shape := x.Shape()
			shape[axis] = c.End
			parts = append(parts, fill(shape))
		}
		if len(parts) > 1 {
			x = tensor.Concat(axis, parts...)
		}
	}
	return x
}

// Iota returns the numbers from 0 on along an axis.
func (f *function) Iota(shape shapes.Shape, iotaAxis int) (compute.Value, error) {
	if err := f.open(); err != nil {
		return nil, err
	}
	if iotaAxis < 0 || iotaAxis >= shape.Rank() {
		return nil, errors.Errorf("Iota along axis %d of %s", iotaAxis, shape)
	}
	t, err := typeOf(shape.DType)
	if err != nil {
		return nil, err
	}
	return f.single(compute.OpTypeIota, shape, nil, func(tr *trace, _ []array) array {
		return counted(tr.scope, t, iotaAxis, tr.shape(shape).Dimensions)
	})
}

// counted returns the numbers from 0 on along an axis.
func counted(s *tensor.Scope, t tensor.Type, axis int, dims []int) array {
	return stretched(convert(tensor.Iota(s, tensor.I64, dims[axis]), t), []int{axis}, dims)
}

// Bitcast returns the bits of x as another type. Elements of a larger type become several of a smaller one
// along a new last dimension, and back.
func (f *function) Bitcast(x compute.Value, target dtypes.DType) (compute.Value, error) {
	infer := func(in []shapes.Shape) (shapes.Shape, error) { return shapeinference.Bitcast(in[0], target) }
	return f.inferred(compute.OpTypeBitcast, []compute.Value{x}, infer, func(_ *trace, in []array) array {
		to := types[target]
		x := words(in[0])
		from, u := x.Type(), unsigned(to)
		switch {
		case from.Size() > u.Size():
			var parts []array
			for i := range from.Size() / u.Size() {
				parts = append(parts, convert(x.Shr(i*bitsOf(u)), u))
			}
			x = tensor.Stack(-1, parts...)
		case from.Size() < u.Size():
			var sum array
			for i := range u.Size() / from.Size() {
				sum = combined(sum, convert(x.Index(-1, i), u).Shl(i*bitsOf(from)), array.Or)
			}
			x = sum
		}
		return ofWords(x, to)
	})
}

// words returns the bits of x as unsigned integers.
func words(x array) array {
	t := x.Type()
	u := unsigned(t)
	e := expr.Input(0, t)
	switch t {
	case tensor.Bool:
		return x.Cast(tensor.U8)
	case tensor.F16, tensor.BF16:
		e = halfBits(t, e)
	default:
		e = bits(e, u)
	}
	return tensor.Apply("bits", e, x)
}

// ofWords returns unsigned integers as bits of type t.
func ofWords(x array, t tensor.Type) array {
	e := expr.Input(0, x.Type())
	switch t {
	case tensor.Bool:
		return x.Cast(tensor.Bool)
	case tensor.F16, tensor.BF16:
		return tensor.Apply("bits", halfOf(t, e), x).Cast(t)
	}
	return tensor.Apply("bits", bits(e, t), x)
}

// halfBits returns the U16 of bits of a half or bfloat16, whose value is a float.
func halfBits(t tensor.Type, x *expr.Expr) *expr.Expr {
	b := x.Bits(tensor.U32)
	if t == tensor.BF16 {
		return expr.Apply(expr.Shr, b, b.Number(16)).Cast(tensor.U16)
	}
	a := x.Abs()
	normal := expr.Apply(expr.Shr, a.Bits(tensor.U32).Sub(b.Number(112<<23)), b.Number(13))
	small := a.Mul(a.Number(1 << 24)).Cast(tensor.U32)
	magnitude := a.Lt(a.Number(1.0/(1<<14))).Select(small, a.Number(65504).Lt(a).Select(b.Number(0x7c00), normal))
	magnitude = expr.Apply(expr.IsNaN, x).Select(b.Number(0x7e00), magnitude)
	sign := expr.Apply(expr.And, expr.Apply(expr.Shr, b, b.Number(16)), b.Number(0x8000))
	return expr.Apply(expr.Or, sign, magnitude).Cast(tensor.U16)
}

// halfOf returns the float that has the value of a half or bfloat16 with the bits of a U16.
func halfOf(t tensor.Type, w *expr.Expr) *expr.Expr {
	b := w.Cast(tensor.U32)
	if t == tensor.BF16 {
		return expr.Apply(expr.Shl, b, b.Number(16)).Bits(tensor.F32)
	}
	and := func(x *expr.Expr, mask float64) *expr.Expr { return expr.Apply(expr.And, x, x.Number(mask)) }
	shift := func(op expr.Op, x *expr.Expr, n float64) *expr.Expr { return expr.Apply(op, x, x.Number(n)) }
	sign, exponent, fraction := shift(expr.Shl, and(b, 0x8000), 16), and(shift(expr.Shr, b, 10), 31), and(b, 0x3ff)
	normal := expr.Apply(expr.Or, shift(expr.Shl, exponent.Add(b.Number(112)), 23), shift(expr.Shl, fraction, 13))
	special := expr.Apply(expr.Or, b.Number(0x7f800000), shift(expr.Shl, fraction, 13))
	small := fraction.Cast(tensor.F32)
	small = small.Mul(small.Number(1.0 / (1 << 24)))
	magnitude := exponent.Eq(b.Number(0)).Select(small.Bits(tensor.U32), exponent.Eq(b.Number(31)).Select(special, normal))
	return expr.Apply(expr.Or, sign, magnitude).Bits(tensor.F32)
}
