package tensor

// Normalization: elements moved and scaled to mean 0 and variance 1. Variances are means of squares of
// distances from the mean, so that numbers far from 0 lose nothing. What is normalized together is one
// dimension, so that it is a row of one kernel.

import (
	"slices"

	"github.com/concord-compute/concord/kernels/expr"
)

// LayerNorm returns t normalized over some axes, scaled by gamma and moved by beta:
//
//	(t - m) / √(v + eps) · gamma + beta
//
// with the mean m and the biased variance v of the elements that differ in these axes alone. gamma and beta
// have the lengths of the axes as their shape; either may be nil. Without axes they are the last dimensions, as
// many as gamma has, or beta, or else one. Integers become F64, the type is that of Promote, and half and
// bfloat16 are computed in F32.
func (t *Tensor) LayerNorm(gamma, beta *Tensor, eps float64, axes ...int) *Tensor {
	return t.normalized("layer norm", gamma, beta, eps, true, axes)
}

// RMSNorm returns t divided by the root of the mean of its squares over some axes, which are as LayerNorm's,
// and scaled by gamma, which may be nil:
//
//	t / √(mean(t²) + eps) · gamma
func (t *Tensor) RMSNorm(gamma *Tensor, eps float64, axes ...int) *Tensor {
	return t.normalized("rms norm", gamma, nil, eps, false, axes)
}

// normalized is LayerNorm and RMSNorm.
func (t *Tensor) normalized(name string, gamma, beta *Tensor, eps float64, center bool, axes []int) *Tensor {
	x, typ, bad := t.operands(name, &gamma, &beta)
	if bad != nil {
		return bad
	}
	if len(axes) == 0 {
		n := 1
		for _, w := range []*Tensor{beta, gamma} {
			if w != nil {
				n = max(len(w.shape), 1)
			}
		}
		axes = counts(-n, 0)
	}
	list, err := x.axes(axes)
	if err != nil {
		return fail(x.scope, name, err)
	}
	var lengths []int
	kept := slices.Repeat([]int{1}, len(x.shape))
	for _, i := range list {
		lengths, kept[i] = append(lengths, x.shape[i]), x.shape[i]
	}
	for _, w := range []**Tensor{&gamma, &beta} {
		if *w == nil {
			continue
		}
		if !slices.Equal((*w).shape, lengths) {
			return failf(x.scope, name, ErrShape, "a parameter of shape %v for axes %v of shape %v", (*w).shape, axes, x.shape)
		}
		*w = (*w).Reshape(kept...)
	}
	// Neighbouring axes become one.
	first, last, shape := list[0], list[len(list)-1], x.shape
	if last-first == len(list)-1 {
		joined := func(t *Tensor) *Tensor {
			if t == nil {
				return nil
			}
			s := append(append(slices.Clone(t.shape[:first]), count(t.shape[first:last+1])), t.shape[last+1:]...)
			return t.Reshape(s...)
		}
		x, gamma, beta, list = joined(x), joined(gamma), joined(beta), []int{first}
	}
	return x.standard(x.moments(list, eps, center)).scaled(gamma, beta).Reshape(shape...).Cast(typ)
}

// operands returns t and, in their places, the parameters of a normalization, which may be nil, in the type in
// which it is computed, and the type of the result.
func (t *Tensor) operands(name string, params ...**Tensor) (x *Tensor, typ Type, bad *Tensor) {
	ts := []*Tensor{t}
	for _, p := range params {
		if *p != nil {
			ts = append(ts, *p)
		}
	}
	if bad := check(name, ts...); bad != nil {
		return nil, 0, bad
	}
	typ = t.typ
	for _, p := range ts[1:] {
		typ = Promote(typ, p.typ)
	}
	if !IsFloat(typ) {
		typ = F64
	}
	for _, p := range params {
		if *p != nil {
			*p = (*p).Cast(typ.Computed())
		}
	}
	return t.Cast(typ.Computed()), typ, nil
}

// moments are the mean and the variance of a tensor over some axes, and 1 / √(variance + eps), stretching to
// the tensor's shape. The variance is about the mean, or about 0 if that is nil.
type moments struct {
	axes                  []int
	mean, variance, scale *Tensor
}

// moments returns the moments of t over axes.
func (t *Tensor) moments(axes []int, eps float64, center bool) (m moments) {
	d := t
	if m.axes = axes; center {
		m.mean = t.Mean(axes...).keep(t, axes)
		d = t.Sub(m.mean)
	}
	m.variance = d.Square().Mean(axes...).keep(t, axes)
	m.scale = m.variance.Add(eps).Rsqrt()
	return m
}

// standard returns t normalized by its own moments.
func (t *Tensor) standard(m moments) *Tensor {
	d, op := t, expr.RMSNormalize
	if m.mean != nil {
		d, op = t.Sub(m.mean), expr.Normalize
	}
	y := d.Mul(m.scale).completing(op)
	if y.err != nil {
		return y
	}
	var out *Tensor
	// With h = g·scale, less the mean of h, and less y times the mean of y·h.
	out = WithGradient(y, []*Tensor{t}, func(g *Tensor) []*Tensor {
		dx := g.Sub(out.Mul(out.Mul(g).Mean(m.axes...).keep(t, m.axes)))
		if m.mean != nil {
			dx = dx.Sub(g.Mean(m.axes...).keep(t, m.axes))
		}
		return []*Tensor{dx.Mul(m.scale)}
	})
	return out
}

// scaled returns t scaled by gamma and moved by beta, which stretch to its shape and may be nil.
func (t *Tensor) scaled(gamma, beta *Tensor) *Tensor {
	if gamma != nil {
		t = t.Mul(gamma)
	}
	if beta != nil {
		t = t.Add(beta)
	}
	return t
}

// channels returns a parameter with an element for each channel, dimension 1 of t, as one that stretches to t's
// shape; nil for nil.
func (t *Tensor) channels(name string, w *Tensor) *Tensor {
	if w == nil {
		return nil
	}
	if !slices.Equal(w.shape, t.shape[1:2]) {
		return failf(t.scope, name, ErrShape, "a parameter of shape %v for the channels of %v", w.shape, t.shape)
	}
	return w.Reshape(append([]int{-1}, slices.Repeat([]int{1}, len(t.shape)-2)...)...)
}

// GroupNorm returns t, of shape [items, channels, ...], normalized as LayerNorm does over groups of channels of each
// item, with all that lies behind these. It is scaled and moved by gamma and beta, which have an element for each
// channel; either may be nil.
func (t *Tensor) GroupNorm(groups int, gamma, beta *Tensor, eps float64) *Tensor {
	const name = "group norm"
	x, typ, bad := t.operands(name, &gamma, &beta)
	if bad != nil {
		return bad
	}
	if len(x.shape) < 2 || groups < 1 || x.shape[1]%groups != 0 {
		return failf(x.scope, name, ErrShape, "%d groups of the channels of %v", groups, x.shape)
	}
	gamma, beta = x.channels(name, gamma), x.channels(name, beta)
	if x.Len() == 0 {
		return x.scaled(gamma, beta).Cast(typ)
	}
	rows := x.Reshape(x.shape[0], groups, x.Len()/(x.shape[0]*groups))
	return rows.standard(rows.moments([]int{2}, eps, true)).Reshape(x.shape...).scaled(gamma, beta).Cast(typ)
}

// BatchNorm returns t, of shape [items, channels, ...], normalized by the mean and the biased variance of each channel,
// dimension 1. It is scaled and moved by gamma and beta, which have an element for each channel; either may be nil.
// mean and variance are those of this batch, for running averages. Types are as LayerNorm's.
func (t *Tensor) BatchNorm(gamma, beta *Tensor, eps float64) (y, mean, variance *Tensor) {
	const name = "batch norm"
	x, typ, bad := t.operands(name, &gamma, &beta)
	if bad == nil && len(x.shape) < 2 {
		bad = failf(x.scope, name, ErrShape, "%v has no channels", x.shape)
	}
	if bad != nil {
		return bad, bad, bad
	}
	axes := append([]int{0}, counts(2, len(x.shape))...)
	params := []*Tensor{x.channels(name, gamma), x.channels(name, beta)}
	args := []*Tensor{x}
	for _, w := range params {
		if w != nil {
			if w.err != nil {
				return w, w, w
			}
			args = append(args, w)
		}
	}
	m := x.moments(axes, eps, true)
	own := x.standard(m)
	// The sums for gamma and beta are also what the gradient of x needs.
	y = WithGradient(own.scaled(params[0], params[1]), args, func(g *Tensor) []*Tensor {
		toGamma, toBeta := g.Mul(own).Sum(axes...).keep(x, axes), g.Sum(axes...).keep(x, axes)
		n := float64(x.Len() / max(x.shape[1], 1))
		dx := g.Sub(own.Mul(toGamma.Div(n))).Sub(toBeta.Div(n)).Mul(m.scale)
		if params[0] != nil {
			dx = dx.Mul(params[0])
		}
		list := []*Tensor{dx}
		for i, d := range []*Tensor{toGamma, toBeta} {
			if params[i] != nil {
				list = append(list, d.Reshape(params[i].shape...))
			}
		}
		return list
	}).Cast(typ)
	return y, m.mean.Reshape(-1).Cast(typ), m.variance.Reshape(-1).Cast(typ)
}

// BatchNormInference returns t normalized by given means and variances of the channels, as BatchNorm does by its own.
func (t *Tensor) BatchNormInference(gamma, beta, mean, variance *Tensor, eps float64) *Tensor {
	const name = "batch norm"
	if bad := check(name, t, mean, variance); bad != nil {
		return bad
	}
	x, typ, bad := t.operands(name, &gamma, &beta, &mean, &variance)
	switch {
	case bad != nil:
		return bad
	case len(x.shape) < 2:
		return failf(x.scope, name, ErrShape, "%v has no channels", x.shape)
	}
	y := x.Sub(x.channels(name, mean)).Mul(x.channels(name, variance.Add(eps).Rsqrt()))
	return y.scaled(x.channels(name, gamma), x.channels(name, beta)).Cast(typ)
}
