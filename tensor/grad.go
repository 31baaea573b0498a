package tensor

// Gradients: from the graph of operations of a tensor to the graph of its derivatives.

import "slices"

// Grad returns the derivatives of y, a tensor of one element of a floating type, with respect to others, each
// of the other's shape and type. They are tensors like all others: they are computed by Eval, best together
// with y, and have gradients themselves. With respect to a tensor from which y is not computed, the derivative
// is zero. Where a function has no derivative, the operation says what stands for it.
func Grad(y *Tensor, wrt ...*Tensor) []*Tensor {
	if bad := check("grad", append([]*Tensor{y}, wrt...)...); bad != nil {
		return slices.Repeat([]*Tensor{bad}, len(wrt))
	}
	if y.Len() != 1 {
		bad := failf(y.scope, "grad", ErrShape, "%v has %d elements; GradOf takes the gradient of the result", y.shape,
			y.Len())
		return slices.Repeat([]*Tensor{bad}, len(wrt))
	}
	return GradOf([]*Tensor{y}, []*Tensor{Ones(y.scope, y.typ, y.shape...)}, wrt...)
}

// GradOf returns the derivatives of Σ ys·gs, of tensors ys with gs of the same shapes and types, with respect
// to others, as Grad does.
func GradOf(ys, gs []*Tensor, wrt ...*Tensor) []*Tensor {
	const name = "grad"
	failed := func(t *Tensor) []*Tensor { return slices.Repeat([]*Tensor{t}, len(wrt)) }
	if len(ys) == 0 || len(ys) != len(gs) {
		return failed(failf(nil, name, ErrShape, "%d results and %d gradients", len(ys), len(gs)))
	}
	if bad := check(name, append(append(slices.Clone(ys), gs...), wrt...)...); bad != nil {
		return failed(bad)
	}
	adjoint := map[*Tensor]*Tensor{}
	add := func(t, g *Tensor) {
		if had := adjoint[t]; had != nil {
			g = had.Add(g)
		}
		adjoint[t] = g
	}
	for i, y := range ys {
		if !IsFloat(y.typ) || gs[i].typ != y.typ || !slices.Equal(gs[i].shape, y.shape) {
			return failed(failf(y.scope, name, ErrType, "%v%v with a gradient of %v%v", y.typ, y.shape, gs[i].typ, gs[i].shape))
		}
		add(y, gs[i])
	}
	order := walk(ys, func(t *Tensor) []*Tensor { return t.args })
	reaches := map[*Tensor]bool{} // tensors that are computed from one of wrt, or are one
	for _, t := range wrt {
		reaches[t] = true
	}
	for _, t := range order {
		reaches[t] = reaches[t] || !t.blocks() && slices.ContainsFunc(t.args, func(a *Tensor) bool { return reaches[a] })
	}
	parts := map[*Tensor][]*Tensor{} // of a call, the gradients of its results after the first
	for _, t := range slices.Backward(order) {
		g := adjoint[t]
		if !reaches[t] || t.blocks() || len(t.args) == 0 || g == nil && parts[t] == nil {
			continue
		}
		var list []*Tensor
		switch o := t.op.(type) {
		case *partOp:
			of := t.args[0]
			if parts[of] == nil {
				parts[of] = make([]*Tensor, len(of.op.(*callOp).parts))
			}
			parts[of][o.i-1] = g
			continue
		case *callOp:
			if o.back == nil {
				continue
			}
			all := append([]*Tensor{g}, make([]*Tensor, len(o.parts))...)
			copy(all[1:], parts[t])
			list = o.back(t, all)
		default:
			list = o.grad(t, g)
		}
		for i, d := range list {
			if d == nil || !reaches[t.args[i]] {
				continue
			}
			if d.err != nil {
				return failed(d)
			}
			add(t.args[i], d)
		}
	}
	out := make([]*Tensor, len(wrt))
	for i, t := range wrt {
		if out[i] = adjoint[t]; out[i] == nil {
			out[i] = Zeros(t.scope, t.typ, t.shape...)
		}
	}
	return out
}
