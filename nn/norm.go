package nn

// Normalization. eps is inside the root.

import (
	"fmt"

	"github.com/concord-compute/concord/tensor"
)

// BatchNorm normalizes each channel, dimension 1: in training by mean and biased variance of the batch,
// otherwise by running averages of the means and the unbiased variances. A member of a group takes the statistics of
// its own rows.
type BatchNorm struct {
	Eps      *float64 // nil is 1e-5
	Momentum *float64 // the part of a batch in the averages; nil is 0.1
}

// Apply returns the normalized tensor. Its parameters are "weight" and "bias", its statistics "running_mean"
// and "running_var", each [channels].
func (l BatchNorm) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	if x.Rank() < 2 {
		return p.Fail(x, "inputs without channels")
	}
	c, eps, momentum := x.Dim(1), given(l.Eps, 1e-5), given(l.Momentum, 0.1)
	gamma, beta := p.Param("weight", Constant(1), c), p.Param("bias", Zeros, c)
	mean, variance := p.State("running_mean", 0, c), p.State("running_var", 1, c)
	if !p.Training {
		return x.BatchNormInference(gamma, beta, mean, variance, eps)
	}
	y, m, v := x.BatchNorm(gamma, beta, eps)
	n := float64(x.Len() / max(c, 1))
	p.SetState("running_mean", mean.Mul(1-momentum).Add(m.StopGradient().Mul(momentum)))
	p.SetState("running_var", variance.Mul(1-momentum).Add(v.StopGradient().Mul(momentum*n/max(n-1, 1))))
	return y
}

// String names the layer.
func (l BatchNorm) String() string { return "batch norm" }

// LayerNorm normalizes rows by their mean and biased variance.
type LayerNorm struct {
	Eps *float64 // nil is 1e-5
}

// Apply returns the normalized rows. Its parameters are "weight" and "bias", each of the last dimension's length.
func (l LayerNorm) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	n := x.Dim(-1)
	return x.LayerNorm(p.Param("weight", Constant(1), n), p.Param("bias", Zeros, n), given(l.Eps, 1e-5))
}

// String names the layer.
func (l LayerNorm) String() string { return "layer norm" }

// RMSNorm divides rows by the root of the mean of their squares.
type RMSNorm struct {
	Eps *float64 // nil is 1e-5
}

// Apply returns the normalized rows. Its parameter is "weight", of the last dimension's length.
func (l RMSNorm) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	return x.RMSNorm(p.Param("weight", Constant(1), x.Dim(-1)), given(l.Eps, 1e-5))
}

// String names the layer.
func (l RMSNorm) String() string { return "rms norm" }

// GroupNorm normalizes groups of channels of each example.
type GroupNorm struct {
	Groups int      // groups of channels, which they divide; 0 is 1
	Eps    *float64 // nil is 1e-5
}

// Apply returns the normalized tensor. Its parameters are "weight" and "bias", each [channels].
func (l GroupNorm) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	groups := or(l.Groups, 1)
	if x.Rank() < 2 || groups < 1 || x.Dim(1)%groups != 0 {
		return p.Fail(x, "%d groups for the channels of %v", groups, x.Shape())
	}
	c := x.Dim(1)
	return x.GroupNorm(groups, p.Param("weight", Constant(1), c), p.Param("bias", Zeros, c), given(l.Eps, 1e-5))
}

// String says how many groups there are.
func (l GroupNorm) String() string { return fmt.Sprintf("group norm %d", or(l.Groups, 1)) }
