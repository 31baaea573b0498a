package nn

// Normalization. eps is inside the root.

import (
	"fmt"

	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// BatchNorm normalizes each channel, dimension 1: in training by mean and biased variance of the batch,
// otherwise by running averages of the means and the unbiased variances. In a group the batch is that of all members,
// which add up their sums; with Local it is each member's own rows.
type BatchNorm struct {
	Eps      *float64 // nil is 1e-5
	Momentum *float64 // the part of a batch in the averages; nil is 0.1
	// Local spares the exchange: a member of a group takes the statistics of its own rows, and the running averages are
	// the means of the members', with their rows as weights. Training is not that of one device then. A member with one
	// number of a channel, whose variance is 0, normalizes it to 0, and leaves its averages as they were.
	Local bool
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
	var y, m, v *tensor.Tensor
	var part any // of the batch in the average of the unbiased variance
	if n := float64(x.Len() / max(c, 1)); !p.divided() || l.Local {
		y, m, v = x.BatchNorm(gamma, beta, eps)
		part = momentum * n / max(n-1, 1)
		if p.divided() && n < 2 {
			m, v, part = mean, variance, momentum
		}
	} else {
		if p.share.rows == 0 {
			n = 0
		}
		var all *tensor.Tensor
		y, m, v, all = batchNorm(x, n, gamma, beta, eps)
		part = all.Div(all.Sub(1).Maximum(1)).Mul(momentum)
	}
	p.SetState("running_mean", mean.Mul(1-momentum).Add(m.StopGradient().Mul(momentum)))
	p.SetState("running_var", variance.Mul(1-momentum).Add(v.StopGradient().Mul(part)))
	return y
}

// batchNorm is [tensor.Tensor.BatchNorm] over the batch of all members, of which this one has n numbers of a channel; 0
// of them is for one that takes part without rows. all is the number of those of all members. Of the centred squares
// there are sums of their own, as on one device: differences of squares of large means would have no digits left.
func batchNorm(x *tensor.Tensor, n float64, gamma, beta *tensor.Tensor, eps float64) (y, mean, variance,
	all *tensor.Tensor) {
	c, axes, shape := x.Dim(1), []int{0}, []int{1, x.Dim(1)}
	for i := 2; i < x.Rank(); i++ {
		axes, shape = append(axes, i), append(shape, 1)
	}
	sum := func(x *tensor.Tensor) *tensor.Tensor {
		s := x.Sum(axes...).Reshape(c)
		if n == 0 {
			return s.Mul(0)
		}
		return s
	}
	first := tensor.Concat(0, sum(x), tensor.Full(x.Scope(), x.Type(), n, 1)).AllReduce(cluster.Sum)
	all = first.Narrow(0, c, 1)
	mean = first.Narrow(0, 0, c).Div(all)
	d := x.Sub(mean.Reshape(shape...))
	variance = sum(d.Square()).AllReduce(cluster.Sum).Div(all)
	scale := gamma.Mul(variance.Add(eps).Rsqrt())
	return d.Mul(scale.Reshape(shape...)).Add(beta.Reshape(shape...)), mean, variance, all
}

// String says whether members have statistics of their own.
func (l BatchNorm) String() string {
	if l.Local {
		return "local batch norm"
	}
	return "batch norm"
}

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
