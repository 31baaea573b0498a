package golden

// Operations that package tensor has no function for, from those it has.

import (
	"math"
	"slices"

	"github.com/concord-compute/concord/tensor"
)

// formulas are operations of the data from several of package tensor, which fuses them.
var formulas = map[string]call{
	"layer_norm": func(c request, x []*T) []*T {
		axes := last(x[0], x[1])
		return []*T{normalized(x[0], c.Attrs.Float("eps"), axes...).Mul(x[1]).Add(x[2])}
	},
	"rms_norm": func(c request, x []*T) []*T {
		axes := last(x[0], x[1])
		mean := x[0].KeepDims(x[0].Square().Mean(axes...), axes...)
		return []*T{x[0].Mul(mean.Add(c.Attrs.Float("eps")).Rsqrt()).Mul(x[1])}
	},
	"batch_norm": func(c request, x []*T) []*T {
		y := normalized(x[0], c.Attrs.Float("eps"), others(x[0])...)
		return []*T{y.Mul(channels(x[1], x[0])).Add(channels(x[2], x[0]))}
	},
	"batch_norm_inference": func(c request, x []*T) []*T {
		root := channels(x[4], x[0]).Add(c.Attrs.Float("eps")).Sqrt()
		y := x[0].Sub(channels(x[3], x[0])).Div(root)
		return []*T{y.Mul(channels(x[1], x[0])).Add(channels(x[2], x[0]))}
	},
	"group_norm": func(c request, x []*T) []*T {
		shape := x[0].Shape()
		y := normalized(x[0].Reshape(shape[0], c.Attrs.Int("groups"), -1), c.Attrs.Float("eps"), 2).Reshape(shape...)
		return []*T{y.Mul(channels(x[1], x[0])).Add(channels(x[2], x[0]))}
	},
	"global_max_pool": one(func(c request, x *T) *T { return x.KeepDims(x.Max(others(x)[1:]...), others(x)[1:]...) }),
	"global_avg_pool": one(func(c request, x *T) *T { return x.KeepDims(x.Mean(others(x)[1:]...), others(x)[1:]...) }),
	"attention":       attention,

	"loss_mse": loss(func(p, t *T) *T { return p.Sub(t).Square().Mean() }),
	"loss_mae": loss(func(p, t *T) *T { return p.Sub(t).Abs().Mean() }),
	"loss_bce": loss(func(p, t *T) *T {
		p = clipped(p)
		return t.Mul(p.Log()).Add(ones(t).Sub(t).Mul(ones(p).Sub(p).Log())).Mean().Neg()
	}),
	"loss_cce": loss(func(p, t *T) *T { return t.Mul(clipped(p).Log()).Sum(-1).Mean().Neg() }),
	"loss_sparse_cce": loss(func(p, labels *T) *T {
		return p.TakeAlong(1, labels.Unsqueeze(1)).Log().Mean().Neg()
	}),
	"loss_softmax_cce": func(c request, x []*T) []*T {
		return []*T{crossEntropy(x[0], x[1], c.Attrs.Float("smoothing"))}
	},
	"loss_sparse_softmax_cce": func(c request, x []*T) []*T {
		return []*T{crossEntropy(x[0], x[1].OneHot(x[0].Dim(1), x[0].Type()), c.Attrs.Float("smoothing"))}
	},
	"loss_sigmoid_bce": loss(func(z, t *T) *T { return z.Softplus().Sub(t.Mul(z)).Mean() }),
	"loss_huber": func(c request, x []*T) []*T {
		delta, d := c.Attrs.Float("delta"), x[0].Sub(x[1]).Abs()
		return []*T{tensor.Where(d.Le(delta), d.Square().Mul(0.5), d.Sub(delta/2).Mul(delta)).Mean()}
	},
	"loss_hinge":         loss(func(p, t *T) *T { return ones(p).Sub(t.Mul(p)).Relu().Mean() }),
	"loss_squared_hinge": loss(func(p, t *T) *T { return ones(p).Sub(t.Mul(p)).Relu().Square().Mean() }),
	"loss_kl": loss(func(p, t *T) *T {
		p, t = p.Maximum(1e-15), t.Maximum(1e-15)
		return t.Mul(t.Div(p).Log()).Mean()
	}),
	"loss_poisson": loss(func(p, t *T) *T { return p.Sub(t.Mul(p.Log())).Mean() }),
	"loss_cosine": loss(func(p, t *T) *T {
		squares := p.Square().Sum(-1).Mul(t.Square().Sum(-1))
		some := squares.Gt(0)
		cos := p.Mul(t).Sum(-1).Div(tensor.Where(some, squares, 1).Sqrt())
		return ones(cos).Sub(tensor.Where(some, cos, 0)).Mean()
	}),
	"loss_log_cosh": loss(func(p, t *T) *T {
		d := p.Sub(t).Abs()
		return d.Add(d.Mul(-2).Exp().Log1p()).Sub(math.Ln2).Mean()
	}),
	"loss_quantile": func(c request, x []*T) []*T {
		q, d := c.Attrs.Float("q"), x[1].Sub(x[0])
		return []*T{tensor.Where(d.Ge(0), d.Mul(q), d.Mul(q-1)).Mean()}
	},
}

func loss(f func(p, t *T) *T) call {
	return func(c request, x []*T) []*T { return []*T{f(x[0], x[1])} }
}

// ones is a tensor to subtract from.
func ones(x *T) *T { return tensor.Ones(x.Scope(), x.Type()) }

func clipped(p *T) *T { return p.Clamp(1e-15, 1-1e-15) }

// last returns the last axes of x, as many as gamma has.
func last(x, gamma *T) (axes []int) {
	for i := range gamma.Rank() {
		axes = append(axes, x.Rank()-gamma.Rank()+i)
	}
	return axes
}

// others returns all axes but 1.
func others(x *T) []int {
	axes := []int{0}
	for i := 2; i < x.Rank(); i++ {
		axes = append(axes, i)
	}
	return axes
}

// channels stretches a vector along dimension 1 of x.
func channels(v, x *T) *T {
	shape := slices.Repeat([]int{1}, x.Rank())
	shape[1] = -1
	return v.Reshape(shape...)
}

func normalized(x *T, eps float64, axes ...int) *T {
	d := x.Sub(x.KeepDims(x.Mean(axes...), axes...))
	variance := d.KeepDims(d.Square().Mean(axes...), axes...)
	return d.Mul(variance.Add(eps).Rsqrt())
}

func crossEntropy(z, t *T, smoothing float64) *T {
	t = t.Mul(1 - smoothing).Add(smoothing / float64(z.Dim(-1)))
	return t.Mul(z.LogSoftmax(-1)).Sum(-1).Mean().Neg()
}

func attention(c request, x []*T) []*T {
	q, k, v := x[0], x[1], x[2]
	scale := 1 / math.Sqrt(float64(q.Dim(-1)))
	if !c.Attrs.Null("scale") {
		scale = c.Attrs.Float("scale")
	}
	batch, heads, queries, keys, group := q.Dim(0), q.Dim(1), q.Dim(2), k.Dim(2), q.Dim(1)/k.Dim(1)
	each := func(x *T) *T {
		return x.Unsqueeze(2).Expand(-1, -1, group, -1, -1).Reshape(batch, heads, keys, -1)
	}
	scores := q.MatMul(each(k).T()).Mul(scale)
	var sees *T
	if len(x) > 3 {
		sees = x[3]
	}
	if c.Attrs.Bool("causal") {
		row := tensor.Iota(q.Scope(), tensor.I64, queries, 1).Add(c.Attrs.Int("offset"))
		causal := tensor.Iota(q.Scope(), tensor.I64, keys).Le(row)
		if sees != nil {
			causal = causal.And(sees)
		}
		sees = causal
	}
	if sees == nil {
		return []*T{scores.Softmax(-1).MatMul(each(v))}
	}
	sees = sees.Expand(scores.Shape()...)
	something := sees.KeepDims(sees.Any(-1), -1)
	p := tensor.Where(sees.Or(something.Not()), scores, math.Inf(-1)).Softmax(-1)
	return []*T{tensor.Where(something, p, 0).MatMul(each(v))}
}
