package nn

// Ternary weights: how layers learn them, and how they are packed for products that read 2 bits for a weight.

import (
	"context"
	"fmt"

	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/tensor"
)

// leastScale is the smallest scale of ternary weights, as that of quant.AbsMean.
const leastScale = 1e-5

// ternary returns each weight as that of -s, 0 and s which is nearest to it, where s is the mean magnitude of
// all (the method quant.AbsMean). Their gradient is that of the weights themselves (a straight-through
// estimator), so that the weights go on to change by less than s.
func ternary(w *tensor.Tensor) *tensor.Tensor {
	s, twice := scaleOf(w), w.Mul(2)
	nearest := tensor.Where(twice.Ge(s), s, tensor.Where(twice.Le(s.Neg()), s.Neg(), 0))
	return tensor.WithGradient(nearest, []*tensor.Tensor{w}, func(g *tensor.Tensor) []*tensor.Tensor {
		return []*tensor.Tensor{g}
	})
}

func scaleOf(w *tensor.Tensor) *tensor.Tensor { return w.Abs().Mean().Maximum(leastScale) }

// PackTernary returns the weights [in, out] of a [Dense] with Ternary set as it applies them, as a matrix of
// out rows with 2 bits for each weight and one scale. Weights that are not finite are ErrData. [Packed]
// multiplies by it, with x in 8 bits, as does what quant.Prepare makes of it.
func PackTernary(ctx context.Context, w *tensor.Tensor) (quant.Matrix, error) {
	if w == nil || w.Rank() != 2 || w.Len() == 0 || !tensor.IsFloat(w.Type()) {
		return quant.Matrix{}, fmt.Errorf("%w: ternary weights of %v; they are a matrix of floats", ErrData, w)
	}
	scale, err := tensor.Read[float32](ctx, scaleOf(w).Cast(tensor.F32)) // in the layer's order of additions
	if err != nil {
		return quant.Matrix{}, err
	}
	x, err := tensor.Read[float32](ctx, w.Transpose(0, 1).Cast(tensor.F32))
	if err != nil {
		return quant.Matrix{}, err
	}
	if err := quant.Ternary(x, x, scale[0]); err != nil {
		return quant.Matrix{}, fmt.Errorf("%w: %w", ErrData, err)
	}
	l := quant.Layout{Format: quant.I2SM1, Rows: w.Dim(1), Cols: w.Dim(0)}
	m, err := quant.New(l)
	if err != nil { // rows share groups, but all of them together do not fill the last one
		return quant.Pack(l, x)
	}
	return m, quant.Encode(m, x)
}

// Packed is what a [Dense] with Ternary set becomes after its training: x·weight + bias, of the last dimension
// of x, for weights of 2 bits. Rows of x are rounded to 8 bits in each product ([tensor.Tensor.MatMulTernary]).
// The weights belong to the layer and not to the network: they are neither parameters, nor in files of these,
// and gradients end here.
type Packed struct {
	Weight *tensor.Ternary // of a scope that lasts as long as the network; required
	Act    Activation      // behind it; "" is Linear
	NoBias bool            // nothing is added; false is that "bias" is
}

// Apply returns a tensor of x's shape, but for the last dimension, which is the number of rows of the weights.
// Its parameter is "bias".
func (l Packed) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	if l.Weight == nil || x.Rank() < 2 {
		return p.Fail(x, "weights %v for rows of shape %v", l.Weight, x.Shape())
	}
	y := x.MatMulTernary(l.Weight).Cast(p.Type())
	if !l.NoBias {
		y = y.Add(p.Param("bias", Zeros, y.Dim(-1)))
	}
	return l.Act.Apply(p, y)
}

// String says how many outputs the layer has.
func (l Packed) String() string { return fmt.Sprintf("packed %v%s", l.Weight, l.Act.and()) }
