package gomlx

// The operations that GoMLX calls fused. For each, GoMLX has a version of its own, composed of other operations, which
// defines the result. Where that version and the interface read the shape of an operand differently, the operation
// returns compute.ErrNotImplemented, and GoMLX uses its version.

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"
)

// axisOf returns an axis counted from the front.
func axisOf(axis int, shape shapes.Shape) (int, error) {
	i := axis
	if i < 0 {
		i += shape.Rank()
	}
	if i < 0 || i >= shape.Rank() {
		return 0, errors.Errorf("axis %d of %s", axis, shape)
	}
	return i, nil
}

// optional returns the values that are not nil, behind others.
func optional(values []compute.Value, more ...compute.Value) []compute.Value {
	for _, v := range more {
		if v != nil {
			values = append(values, v)
		}
	}
	return values
}

// fits reports whether dimensions stretch to others of the same number. Lengths that are not known yet fit.
func fits(dims, to []int) bool {
	for i, d := range dims {
		if d >= 0 && d != 1 && to[i] >= 0 && d != to[i] {
			return false
		}
	}
	return true
}

// behind returns dimensions with ones in front of them, so that there are rank of them, or nil if there are more.
func behind(dims []int, rank int) []int {
	if len(dims) > rank {
		return nil
	}
	return append(slices.Repeat([]int{1}, rank-len(dims)), dims...)
}

// FusedSoftmax returns e^x divided by its sum along an axis.
func (f *function) FusedSoftmax(x compute.Value, axis int) (compute.Value, error) {
	infer := func(in []shapes.Shape) (shapes.Shape, error) {
		if axis < 0 || axis >= in[0].Rank() || !in[0].DType.IsFloat() {
			return shapes.Invalid(), errors.Errorf("FusedSoftmax along axis %d of %s", axis, in[0])
		}
		return in[0], nil
	}
	return f.inferred(compute.OpTypeFusedSoftmax, []compute.Value{x}, infer,
		func(_ *trace, in []array) array { return in[0].Softmax(axis) })
}

// FusedGelu returns x·Φ(x), or the approximation of it with a hyperbolic tangent.
func (f *function) FusedGelu(x compute.Value, exact bool) (compute.Value, error) {
	infer := func(in []shapes.Shape) (shapes.Shape, error) { return in[0], floating(compute.OpTypeFusedGelu, in[0]) }
	return f.inferred(compute.OpTypeFusedGelu, []compute.Value{x}, infer, func(_ *trace, in []array) array {
		if exact {
			return in[0].GELU()
		}
		return in[0].GELUTanh()
	})
}

// FusedLayerNorm returns x normalized over axes, times gamma, plus beta, which may be nil. Both have the lengths of the
// axes, or stretch to x.
func (f *function) FusedLayerNorm(x compute.Value, axes []int, epsilon float64, gamma, beta compute.Value) (
	compute.Value, error) {
	const op = compute.OpTypeFusedLayerNorm
	in, err := f.operands(op, optional([]compute.Value{x}, gamma, beta)...)
	if err != nil {
		return nil, err
	}
	shape := in[0].shape
	if err := floating(op, shape); err != nil {
		return nil, err
	}
	axes = slices.Clone(axes)
	for i := range axes {
		if axes[i], err = axisOf(axes[i], shape); err != nil {
			return nil, errors.WithMessage(err, op.String())
		}
	}
	slices.Sort(axes)
	if len(axes) == 0 || len(slices.Compact(slices.Clone(axes))) < len(axes) {
		return nil, errors.Errorf("%s of %s over the axes %v", op, shape, axes)
	}
	factors := make([][]int, len(in)-1)
	for i, v := range in[1:] {
		if factors[i], err = factor(shape, axes, v.shape); err != nil {
			return nil, errors.WithMessagef(err, "%s of %s over the axes %v", op, shape, axes)
		}
	}
	return f.single(op, shape, in, func(_ *trace, in []array) array {
		x := computed(in[0])
		keep := func(r array) array { return x.KeepDims(r, axes...) }
		y := x.Sub(keep(x.Mean(axes...))).Mul(keep(x.Var(0, axes...)).Add(epsilon).Rsqrt())
		rest := in[1:]
		if gamma != nil {
			y, rest = y.Mul(computed(rest[0]).Reshape(factors[0]...)), rest[1:]
		}
		if beta != nil {
			y = y.Add(computed(rest[0]).Reshape(factors[len(factors)-1]...))
		}
		return y.Cast(in[0].Type())
	})
}

// factor returns the dimensions with which a factor of a normalization over axes stretches to x. The interface says
// that it has the lengths of the axes, and GoMLX's own version that it stretches to x.
func factor(x shapes.Shape, axes []int, shape shapes.Shape) ([]int, error) {
	if shape.IsDynamic() {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "a factor of the dynamic shape %s", shape)
	}
	last := behind(shape.Dimensions, x.Rank())
	stretches := last != nil && fits(last, x.Dimensions)
	named := slices.Repeat([]int{1}, x.Rank())
	names := shape.Rank() == len(axes)
	if names {
		for i, a := range axes {
			named[a] = shape.Dimensions[i]
		}
		names = fits(named, x.Dimensions)
	}
	switch {
	case shape.DType != x.DType, !stretches && !names:
		return nil, errors.Errorf("a factor of shape %s", shape)
	case stretches && names && !slices.Equal(last, named):
		return nil, errors.Wrapf(compute.ErrNotImplemented, "a factor of shape %s, which fits in two ways", shape)
	case names:
		return named, nil
	}
	return last, nil
}

// activations has the functions that FusedDense applies.
var activations = map[compute.ActivationType]func(x array) array{
	compute.ActivationNone: func(x array) array { return x },
	compute.ActivationGelu: array.GELU,
	compute.ActivationRelu: array.Relu,
	compute.ActivationSilu: array.SiLU,
	compute.ActivationHardSwish: func(x array) array {
		return x.Mul(x.Add(3).Clamp(0, 6)).Mul(1.0 / 6)
	},
	compute.ActivationTanh: array.Tanh,
}

// FusedDense returns an activation function of the product of x and the weights, plus bias, which may be nil and
// stretches to the product.
func (f *function) FusedDense(x, weight, bias compute.Value, options compute.DenseConfig) (compute.Value, error) {
	const op = compute.OpTypeFusedDense
	in, err := f.operands(op, optional([]compute.Value{x, weight}, bias)...)
	if err != nil {
		return nil, err
	}
	a, w := in[0].shape, in[1].shape
	if a.Rank() < 1 || w.Rank() < 2 || a.DType != w.DType {
		return nil, errors.Errorf("%s of %s and %s", op, a, w)
	}
	activation, ok := activations[options.Activation]
	if !ok {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "%s with the activation %s", op, options.Activation)
	}
	if !a.DType.IsFloat() && options.Activation != compute.ActivationNone {
		return nil, errors.Errorf("%s of %s with the activation %s", op, a, options.Activation)
	}
	var axis int
	var outputs []int
	switch options.WeightLayout {
	case compute.DenseLayoutInputOutputs:
		outputs = w.Dimensions[1:]
	case compute.DenseLayoutOutputsInput:
		axis = w.Rank() - 1
		outputs = w.Dimensions[:axis]
	default:
		return nil, errors.Wrapf(compute.ErrNotImplemented, "%s with the layout %s", op, options.WeightLayout)
	}
	shape := a.Clone()
	last := a.Rank() - 1
	if w.IsDynamic() || a.Dimensions[last] < 0 {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "%s of %s and %s", op, a, w)
	}
	shape.Dimensions = append(shape.Dimensions[:last:last], outputs...)
	if shape.AxisNames != nil {
		shape.AxisNames = append(shape.AxisNames[:last:last], make([]string, len(outputs))...)
	}
	if a.Dimensions[last] != w.Dimensions[axis] {
		return nil, errors.Errorf("%s of %s and %s", op, a, w)
	}
	if err := stretches(op, in[2:], shape); err != nil {
		return nil, err
	}
	return f.single(op, shape, in, func(_ *trace, in []array) array {
		y := dot(in[0], []int{last}, nil, in[1], []int{axis}, nil)
		if bias != nil {
			y = y.Add(in[2])
		}
		return activation(y)
	})
}

// stretches returns an error if one of the values that are added to a product does not stretch to its shape.
func stretches(op compute.OpType, list []*value, shape shapes.Shape) error {
	for _, v := range list {
		dims := behind(v.shape.Dimensions, shape.Rank())
		if v.shape.DType != shape.DType || dims == nil || !fits(dims, shape.Dimensions) {
			return errors.Errorf("%s: %s is added to a product of shape %s", op, v.shape, shape)
		}
	}
	return nil
}

// FusedAttentionQKVProjection returns the parts of the product of x and wQKV that are queries, keys and values, plus
// their biases, which may be nil and stretch to the parts. x has vectors along its last axis, or is one.
func (f *function) FusedAttentionQKVProjection(x, wQKV, biasQ, biasK, biasV compute.Value, queryDim, keyValueDim int) (
	query, key, value compute.Value, err error) {
	const op = compute.OpTypeFusedAttentionQKVProjection
	biases := []compute.Value{biasQ, biasK, biasV}
	in, err := f.operands(op, optional([]compute.Value{x, wQKV}, biases...)...)
	if err != nil {
		return nil, nil, nil, err
	}
	a, w := in[0].shape, in[1].shape
	last := a.Rank() - 1
	if last < 0 || w.Rank() != 2 || a.DType != w.DType || queryDim < 0 || keyValueDim < 0 {
		return nil, nil, nil, errors.Errorf("%s of %s and %s to %d and %d", op, a, w, queryDim, keyValueDim)
	}
	if w.IsDynamic() || a.Dimensions[last] < 0 {
		return nil, nil, nil, errors.Wrapf(compute.ErrNotImplemented, "%s of %s and %s", op, a, w)
	}
	if a.Dimensions[last] != w.Dimensions[0] || w.Dimensions[1] != queryDim+2*keyValueDim {
		return nil, nil, nil, errors.Errorf("%s of %s and %s to %d and %d", op, a, w, queryDim, keyValueDim)
	}
	rest := in[2:]
	var results []shapes.Shape
	for i, n := range []int{queryDim, keyValueDim, keyValueDim} {
		s := a.Clone()
		s.Dimensions[last] = n
		if results = append(results, s); biases[i] != nil {
			if err := stretches(op, rest[:1], s); err != nil {
				return nil, nil, nil, err
			}
			rest = rest[1:]
		}
	}
	return three(f.several(&node{op: op, in: in, emit: func(_ *trace, in []array) []array {
		parts := dot(in[0], []int{last}, nil, in[1], []int{0}, nil).Split(last, queryDim, keyValueDim, keyValueDim)
		rest := in[2:]
		for i, b := range biases {
			if b != nil {
				parts[i], rest = parts[i].Add(rest[0]), rest[1:]
			}
		}
		return parts
	}}, results...))
}
