package gomlx

// Batch normalization, and the operations that GoMLX calls fused.

import (
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/tensor"
)

// features checks the operands of a batch normalization: the first and the last wide ones have one shape, the others one number for each feature.
func (f *function) features(op compute.OpType, axis int, wide int, values ...compute.Value) ([]*value, error) {
	in, err := f.operands(op, values...)
	if err != nil {
		return nil, err
	}
	x := in[0].shape
	if axis < 0 || axis >= x.Rank() || !x.DType.IsFloat() {
		return nil, errors.Errorf("%s of %s along axis %d", op, x, axis)
	}
	for i, v := range in[1:] {
		if want := (i+1 >= len(in)-wide); want && !v.shape.Equal(x) || !want && (v.shape.Rank() != 1 || v.shape.Dimensions[0] != x.Dimensions[axis]) {
			return nil, errors.Errorf("%s of %s along axis %d: operand %d is of shape %s", op, x, axis, i+1, v.shape)
		}
	}
	return in, nil
}

// along returns a vector as a tensor that stretches to x's shape along an axis.
func along(v, x *tensor.Tensor, axis int) *tensor.Tensor {
	shape := slices.Repeat([]int{1}, x.Rank())
	shape[axis] = v.Len()
	return v.Reshape(shape...)
}

// others returns all axes but one.
func others(rank, axis int) []int {
	var list []int
	for i := range rank {
		if i != axis {
			list = append(list, i)
		}
	}
	return list
}

// computed returns halves as floats, so that what is computed of them is rounded once.
func computed(x *tensor.Tensor) *tensor.Tensor { return x.Cast(x.Type().Computed()) }

// BatchNormForInference returns the operand, normalized with given means and variances, scaled and moved.
func (f *function) BatchNormForInference(operand, scale, offset, mean, variance compute.Value, epsilon float32, featureAxis int) (compute.Value, error) {
	in, err := f.features(compute.OpTypeBatchNormForInference, featureAxis, 0, operand, scale, offset, mean, variance)
	if err != nil {
		return nil, err
	}
	return f.single(compute.OpTypeBatchNormForInference, in[0].shape, in, func(_ *trace, in []*tensor.Tensor) *tensor.Tensor {
		x := computed(in[0])
		v := func(i int) *tensor.Tensor { return along(computed(in[i]), x, featureAxis) }
		factor := v(4).Add(float64(epsilon)).Rsqrt().Mul(v(1))
		return x.Sub(v(3)).Mul(factor).Add(v(2)).Cast(in[0].Type())
	})
}

// BatchNormForTraining returns the operand, normalized over all axes but one, scaled and moved, and the means and variances.
func (f *function) BatchNormForTraining(operand, scale, offset compute.Value, epsilon float32, featureAxis int) (normalized, batchMean, batchVariance compute.Value, err error) {
	in, err := f.features(compute.OpTypeBatchNormForTraining, featureAxis, 0, operand, scale, offset)
	if err != nil {
		return nil, nil, nil, err
	}
	out, err := f.several(&node{op: compute.OpTypeBatchNormForTraining, in: in, emit: func(_ *trace, in []*tensor.Tensor) []*tensor.Tensor {
		x, t := computed(in[0]), in[0].Type()
		axes := others(x.Rank(), featureAxis)
		mean, variance := x.Mean(axes...), x.Var(0, axes...)
		v := func(x2 *tensor.Tensor) *tensor.Tensor { return along(x2, x, featureAxis) }
		y := x.Sub(v(mean)).Mul(v(variance).Add(float64(epsilon)).Rsqrt().Mul(v(computed(in[1])))).Add(v(computed(in[2])))
		return []*tensor.Tensor{y.Cast(t), mean.Cast(t), variance.Cast(t)}
	}}, in[0].shape, in[1].shape, in[1].shape)
	if err != nil {
		return nil, nil, nil, err
	}
	return out[0], out[1], out[2], nil
}

// BatchNormGradient returns the gradients of BatchNormForTraining with respect to its operands.
func (f *function) BatchNormGradient(operand, scale, mean, variance, gradOutput compute.Value, epsilon float32, featureAxis int) (
	gradOperand, gradScale, gradOffset compute.Value, err error) {
	in, err := f.features(compute.OpTypeBatchNormGradient, featureAxis, 1, operand, scale, mean, variance, gradOutput)
	if err != nil {
		return nil, nil, nil, err
	}
	out, err := f.several(&node{op: compute.OpTypeBatchNormGradient, in: in, emit: func(_ *trace, in []*tensor.Tensor) []*tensor.Tensor {
		x, g, t := computed(in[0]), computed(in[4]), in[0].Type()
		axes := others(x.Rank(), featureAxis)
		v := func(x2 *tensor.Tensor) *tensor.Tensor { return along(computed(x2), x, featureAxis) }
		factor := v(in[3]).Add(float64(epsilon)).Rsqrt()
		y := x.Sub(v(in[2])).Mul(factor)
		toOffset, toScale := g.Sum(axes...), g.Mul(y).Sum(axes...)
		n := float64(max(x.Len()/max(x.Dim(featureAxis), 1), 1))
		toOperand := g.Sub(v(toOffset).Div(n)).Sub(y.Mul(v(toScale).Div(n))).Mul(factor.Mul(v(in[1])))
		return []*tensor.Tensor{toOperand.Cast(t), toScale.Cast(t), toOffset.Cast(t)}
	}}, in[0].shape, in[1].shape, in[1].shape)
	if err != nil {
		return nil, nil, nil, err
	}
	return out[0], out[1], out[2], nil
}

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

// FusedSoftmax returns e^x divided by its sum along an axis.
func (f *function) FusedSoftmax(x compute.Value, axis int) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeFusedSoftmax, x)
	if err != nil {
		return nil, err
	}
	if axis < 0 || axis >= in[0].shape.Rank() || !in[0].shape.DType.IsFloat() {
		return nil, errors.Errorf("FusedSoftmax along axis %d of %s", axis, in[0].shape)
	}
	return f.single(compute.OpTypeFusedSoftmax, in[0].shape, in, func(_ *trace, in []*tensor.Tensor) *tensor.Tensor { return in[0].Softmax(axis) })
}

// FusedGelu returns x·Φ(x), or the approximation of it with a hyperbolic tangent.
func (f *function) FusedGelu(x compute.Value, exact bool) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeFusedGelu, x)
	if err != nil {
		return nil, err
	}
	return f.single(compute.OpTypeFusedGelu, in[0].shape, in, func(_ *trace, in []*tensor.Tensor) *tensor.Tensor {
		if exact {
			return in[0].GELU()
		}
		return in[0].GELUTanh()
	})
}

// FusedLayerNorm returns x normalized over axes, times gamma, plus beta, which may be nil.
func (f *function) FusedLayerNorm(x compute.Value, axes []int, epsilon float64, gamma, beta compute.Value) (compute.Value, error) {
	values := []compute.Value{x}
	for _, v := range []compute.Value{gamma, beta} {
		if v != nil {
			values = append(values, v)
		}
	}
	in, err := f.operands(compute.OpTypeFusedLayerNorm, values...)
	if err != nil {
		return nil, err
	}
	axes = slices.Clone(axes)
	for i := range axes {
		if axes[i], err = axisOf(axes[i], in[0].shape); err != nil {
			return nil, errors.WithMessage(err, "FusedLayerNorm")
		}
	}
	slices.Sort(axes)
	return f.single(compute.OpTypeFusedLayerNorm, in[0].shape, in, func(_ *trace, in []*tensor.Tensor) *tensor.Tensor {
		x := computed(in[0])
		keep := func(r *tensor.Tensor) *tensor.Tensor { return x.KeepDims(r, axes...) }
		y := x.Sub(keep(x.Mean(axes...))).Mul(keep(x.Var(0, axes...)).Add(epsilon).Rsqrt())
		rest := in[1:]
		wide := func(v *tensor.Tensor) *tensor.Tensor {
			shape := slices.Repeat([]int{1}, x.Rank())
			for _, a := range axes {
				shape[a] = x.Dim(a)
			}
			return computed(v).Reshape(shape...)
		}
		if gamma != nil {
			y, rest = y.Mul(wide(rest[0])), rest[1:]
		}
		if beta != nil {
			y = y.Add(wide(rest[0]))
		}
		return y.Cast(in[0].Type())
	})
}

// activated returns an activation function of x.
func activated(x *tensor.Tensor, a compute.ActivationType) *tensor.Tensor {
	switch a {
	case compute.ActivationGelu:
		return x.GELU()
	case compute.ActivationRelu:
		return x.Relu()
	case compute.ActivationSilu:
		return x.SiLU()
	case compute.ActivationHardSwish:
		return x.Mul(x.Add(3).Clamp(0, 6)).Mul(1.0 / 6)
	case compute.ActivationTanh:
		return x.Tanh()
	}
	return x
}

// FusedDense returns an activation function of the product of x and the weights, plus bias, which may be nil.
func (f *function) FusedDense(x, weight, bias compute.Value, options compute.DenseConfig) (compute.Value, error) {
	values := []compute.Value{x, weight}
	if bias != nil {
		values = append(values, bias)
	}
	in, err := f.operands(compute.OpTypeFusedDense, values...)
	if err != nil {
		return nil, err
	}
	a, w := in[0].shape, in[1].shape
	if a.Rank() < 1 || w.Rank() < 2 || a.DType != w.DType {
		return nil, errors.Errorf("FusedDense of %s and %s", a, w)
	}
	axis := 0
	outputs := w.Dimensions[1:]
	if options.WeightLayout == compute.DenseLayoutOutputsInput {
		axis = w.Rank() - 1
		outputs = w.Dimensions[:axis]
	}
	shape := a.Clone()
	last := a.Rank() - 1
	if a.Dimensions[last] != w.Dimensions[axis] || bias != nil && !slices.Equal(in[2].shape.Dimensions, outputs) {
		return nil, errors.Errorf("FusedDense of %s and %s", a, w)
	}
	shape.Dimensions = append(shape.Dimensions[:last:last], outputs...)
	if shape.AxisNames != nil {
		shape.AxisNames = append(shape.AxisNames[:last:last], make([]string, len(outputs))...)
	}
	return f.single(compute.OpTypeFusedDense, shape, in, func(_ *trace, in []*tensor.Tensor) *tensor.Tensor {
		y := dot(in[0], []int{last}, nil, in[1], []int{axis}, nil)
		if bias != nil {
			y = y.Add(in[2])
		}
		return activated(y, options.Activation)
	})
}

// FusedAttentionQKVProjection returns the parts of the product of x and wQKV that are queries, keys and values, plus their biases, which may be nil.
func (f *function) FusedAttentionQKVProjection(x, wQKV, biasQ, biasK, biasV compute.Value, queryDim, keyValueDim int) (query, key, value compute.Value, err error) {
	biases := []compute.Value{biasQ, biasK, biasV}
	values := []compute.Value{x, wQKV}
	for _, b := range biases {
		if b != nil {
			values = append(values, b)
		}
	}
	in, err := f.operands(compute.OpTypeFusedAttentionQKVProjection, values...)
	if err != nil {
		return nil, nil, nil, err
	}
	a, w := in[0].shape, in[1].shape
	if a.Rank() != 2 || w.Rank() != 2 || a.DType != w.DType || a.Dimensions[1] != w.Dimensions[0] || w.Dimensions[1] != queryDim+2*keyValueDim {
		return nil, nil, nil, errors.Errorf("FusedAttentionQKVProjection of %s and %s to %d and %d", a, w, queryDim, keyValueDim)
	}
	var results []shapes.Shape
	for _, n := range []int{queryDim, keyValueDim, keyValueDim} {
		s := a.Clone()
		s.Dimensions[1] = n
		results = append(results, s)
	}
	out, err := f.several(&node{op: compute.OpTypeFusedAttentionQKVProjection, in: in, emit: func(_ *trace, in []*tensor.Tensor) []*tensor.Tensor {
		parts := in[0].MatMul(in[1]).Split(1, queryDim, keyValueDim, keyValueDim)
		rest := in[2:]
		for i, b := range biases {
			if b != nil {
				parts[i], rest = parts[i].Add(rest[0]), rest[1:]
			}
		}
		return parts
	}}, results...)
	if err != nil {
		return nil, nil, nil, err
	}
	return out[0], out[1], out[2], nil
}

// FusedScaledDotProductAttention returns softmax(query·keyᵀ·scale + mask)·value for each head. It has no states for a gradient of its own.
func (f *function) FusedScaledDotProductAttention(query, key, value compute.Value, axesLayout compute.AttentionAxesLayout,
	options *compute.ScaledDotProductAttentionConfig) (output compute.Value, statesForVJP []compute.Value, err error) {
	const op = compute.OpTypeFusedScaledDotProductAttention
	if options == nil {
		options = &compute.ScaledDotProductAttentionConfig{}
	}
	values := []compute.Value{query, key, value}
	extra := []compute.Value{options.Mask, options.Bias, options.QuerySeqLen, options.KeyValueSeqLen}
	for _, v := range extra {
		if v != nil {
			values = append(values, v)
		}
	}
	in, err := f.operands(op, values...)
	if err != nil {
		return nil, nil, err
	}
	q, k := in[0].shape, in[1].shape
	heads, seq := axesLayout.HeadsAxis(), axesLayout.SeqAxis()
	if q.Rank() != 4 || k.Rank() != 4 || !k.Equal(in[2].shape) || q.DType != k.DType || q.Dimensions[0] != k.Dimensions[0] || q.Dimensions[3] != k.Dimensions[3] ||
		k.Dimensions[heads] == 0 || q.Dimensions[heads]%k.Dimensions[heads] != 0 {
		return nil, nil, errors.Errorf("%s of %s, %s and %s", op, q, k, in[2].shape)
	}
	scale := options.Scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(q.Dimensions[3]))
	}
	causal := options.Causal
	output, err = f.single(op, q, in, func(_ *trace, in []*tensor.Tensor) *tensor.Tensor {
		front := []int{0, heads, seq, 3}
		q, k, v := computed(in[0].Permute(front...)), computed(in[1].Permute(front...)), computed(in[2].Permute(front...))
		rest := in[3:]
		take := func() *tensor.Tensor {
			x := rest[0]
			rest = rest[1:]
			return x
		}
		// sees says which keys a query sees, and added is added to the products.
		var sees, added *tensor.Tensor
		for _, x := range extra[:2] {
			if x == nil {
				continue
			}
			if m := take(); m.Type() == tensor.Bool && x == options.Mask {
				sees = m
			} else if added == nil {
				added = computed(m)
			} else {
				added = added.Add(computed(m))
			}
		}
		for i := range 2 {
			if extra[2+i] == nil {
				continue
			}
			length := []int{q.Dim(2), 1}
			if i == 1 {
				length = []int{1, k.Dim(2)}
			}
			here := counted(q.Scope(), tensor.I64, i, length).Lt(convert(take(), tensor.I64).Reshape(q.Dim(0), 1, 1, 1))
			if sees == nil {
				sees = here
			} else {
				sees = sees.And(here)
			}
		}
		mask := added
		if mask == nil {
			mask = sees
		} else if sees != nil {
			mask = tensor.Where(sees, added, math.Inf(-1))
		}
		y := tensor.Attention(q, k, v, tensor.AttentionOptions{Mask: mask, Causal: causal, Scale: scale})
		return y.Permute(front...).Cast(in[0].Type())
	})
	return output, nil, err
}
