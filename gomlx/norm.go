package gomlx

// Batch normalization.

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/pkg/errors"
)

// features checks the operands of a batch normalization: the first and the last wide ones have one shape, the
// others one number for each feature.
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
		if want := (i+1 >= len(in)-wide); want && !v.shape.Equal(x) || !want &&
			(v.shape.Rank() != 1 || v.shape.Dimensions[0] != x.Dimensions[axis]) {
			return nil, errors.Errorf("%s of %s along axis %d: operand %d is of shape %s", op, x, axis, i+1, v.shape)
		}
	}
	return in, nil
}

// along returns a vector as a tensor that stretches to x's shape along an axis.
func along(v, x array, axis int) array {
	shape := slices.Repeat([]int{1}, x.Rank())
	shape[axis] = v.Len()
	return v.Reshape(shape...)
}

// computed returns halves as floats, so that what is computed of them is rounded once.
func computed(x array) array { return x.Cast(x.Type().Computed()) }

// BatchNormForInference returns the operand, normalized with given means and variances, scaled and moved.
func (f *function) BatchNormForInference(operand, scale, offset, mean, variance compute.Value, epsilon float32,
	featureAxis int) (compute.Value, error) {
	in, err := f.features(compute.OpTypeBatchNormForInference, featureAxis, 0, operand, scale, offset, mean, variance)
	if err != nil {
		return nil, err
	}
	return f.single(compute.OpTypeBatchNormForInference, in[0].shape, in,
		func(_ *trace, in []array) array {
			x := computed(in[0])
			v := func(i int) array { return along(computed(in[i]), x, featureAxis) }
			factor := v(4).Add(float64(epsilon)).Rsqrt().Mul(v(1))
			return x.Sub(v(3)).Mul(factor).Add(v(2)).Cast(in[0].Type())
		})
}

// BatchNormForTraining returns the operand, normalized over all axes but one, scaled and moved, and the means
// and variances.
func (f *function) BatchNormForTraining(operand, scale, offset compute.Value, epsilon float32,
	featureAxis int) (normalized, batchMean, batchVariance compute.Value, err error) {
	in, err := f.features(compute.OpTypeBatchNormForTraining, featureAxis, 0, operand, scale, offset)
	if err != nil {
		return nil, nil, nil, err
	}
	return three(f.several(&node{op: compute.OpTypeBatchNormForTraining, in: in,
		emit: func(_ *trace, in []array) []array {
			x, t := computed(in[0]), in[0].Type()
			axes := others(x.Rank(), featureAxis)
			mean, variance := x.Mean(axes...), x.Var(0, axes...)
			v := func(x2 array) array { return along(x2, x, featureAxis) }
			y := x.Sub(v(mean)).Mul(v(variance).Add(float64(epsilon)).Rsqrt().Mul(v(computed(in[1])))).Add(v(computed(in[2])))
			return []array{y.Cast(t), mean.Cast(t), variance.Cast(t)}
		}}, in[0].shape, in[1].shape, in[1].shape))
}

// BatchNormGradient returns the gradients of BatchNormForTraining with respect to its operands.
func (f *function) BatchNormGradient(operand, scale, mean, variance, gradOutput compute.Value, epsilon float32,
	featureAxis int) (
	gradOperand, gradScale, gradOffset compute.Value, err error) {
	in, err := f.features(compute.OpTypeBatchNormGradient, featureAxis, 1, operand, scale, mean, variance, gradOutput)
	if err != nil {
		return nil, nil, nil, err
	}
	return three(f.several(&node{op: compute.OpTypeBatchNormGradient, in: in,
		emit: func(_ *trace, in []array) []array {
			x, g, t := computed(in[0]), computed(in[4]), in[0].Type()
			axes := others(x.Rank(), featureAxis)
			v := func(x2 array) array { return along(computed(x2), x, featureAxis) }
			factor := v(in[3]).Add(float64(epsilon)).Rsqrt()
			y := x.Sub(v(in[2])).Mul(factor)
			toOffset, toScale := g.Sum(axes...), g.Mul(y).Sum(axes...)
			n := float64(max(x.Len()/max(x.Dim(featureAxis), 1), 1))
			toOperand := g.Sub(v(toOffset).Div(n)).Sub(y.Mul(v(toScale).Div(n))).Mul(factor.Mul(v(in[1])))
			return []array{toOperand.Cast(t), toScale.Cast(t), toOffset.Cast(t)}
		}}, in[0].shape, in[1].shape, in[1].shape))
}
