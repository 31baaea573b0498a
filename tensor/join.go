package tensor

// Tensors put together from parts: concatenation, padding, and the gradients of slices.

import (
	"slices"

	"github.com/concord-compute/concord/kernels/expr"
)

// joinOp puts its args into places of a new tensor. Elements in no part have the value fill, which is nil if
// there are none. Each part is computed into its place, without a copy, where nothing else needs it.
type joinOp struct {
	name  string
	fill  *expr.Expr
	parts []part
}

// part is a tensor, and the place of its elements in each dimension of the whole.
type part struct {
	t  *Tensor
	at []span
}

func (o *joinOp) String() string { return o.name }

func (o *joinOp) grad(t, g *Tensor) []*Tensor {
	list := make([]*Tensor, len(o.parts))
	if !IsFloat(t.typ) {
		return list
	}
	for i, p := range o.parts {
		list[i] = g.view(&viewOp{name: o.name + "'", cut: p.at}, p.t.shape)
	}
	return list
}

// join returns parts in a new tensor. Parts without elements are left out; if all are, the result has the value fill.
func join(name string, t Type, shape []int, fill *expr.Expr, parts ...part) *Tensor {
	s := parts[0].t.scope
	parts = slices.DeleteFunc(parts, func(p part) bool { return count(p.t.shape) == 0 })
	if len(parts) == 0 {
		return filled(s, t, shape, fill)
	}
	var args []*Tensor
	for _, p := range parts {
		args = append(args, p.t)
	}
	return made(&joinOp{name, fill, parts}, t, shape, args...)
}

// Concat returns tensors one after the other along an axis. They have the same lengths in all other dimensions;
// the type is that of Promote.
func Concat(axis int, ts ...*Tensor) *Tensor {
	const name = "concat"
	if len(ts) == 0 {
		return failf(nil, name, ErrShape, "no tensor")
	}
	if bad := check(name, ts...); bad != nil {
		return bad
	}
	i, ok := ts[0].axis(axis)
	if !ok {
		return failf(ts[0].scope, name, ErrShape, "axis %d of shape %v", axis, ts[0].shape)
	}
	shape, typ := slices.Clone(ts[0].shape), ts[0].typ
	shape[i] = 0
	var parts []part
	for _, t := range ts {
		at := slices.Repeat([]span{{0, 1}}, len(shape))
		if len(t.shape) != len(shape) {
			return failf(t.scope, name, ErrShape, "%v and %v along axis %d", ts[0].shape, t.shape, axis)
		}
		for j, d := range t.shape {
			if j != i && d != shape[j] {
				return failf(t.scope, name, ErrShape, "%v and %v along axis %d", ts[0].shape, t.shape, axis)
			}
		}
		at[i].start = shape[i]
		shape[i] += t.shape[i]
		typ = Promote(typ, t.typ)
		parts = append(parts, part{t, at})
	}
	for k := range parts {
		parts[k].t = parts[k].t.Cast(typ)
	}
	if err := checkShape(shape); err != nil {
		return fail(ts[0].scope, name, err)
	}
	if count(shape) == 0 {
		return parts[0].t.Reshape(shape...)
	}
	if len(parts) == 1 {
		return parts[0].t
	}
	return join(name, typ, shape, nil, parts...)
}

// Stack returns tensors of one shape side by side along a new axis.
func Stack(axis int, ts ...*Tensor) *Tensor {
	if len(ts) == 0 {
		return failf(nil, "stack", ErrShape, "no tensor")
	}
	if bad := check("stack", ts...); bad != nil {
		return bad
	}
	list := make([]*Tensor, len(ts))
	for i, t := range ts {
		if !slices.Equal(t.shape, ts[0].shape) {
			return failf(t.scope, "stack", ErrShape, "%v and %v", ts[0].shape, t.shape)
		}
		list[i] = t.Unsqueeze(axis)
	}
	if axis < 0 {
		axis += len(ts[0].shape) + 1
	}
	return Concat(axis, list...)
}

// Split returns the parts of t along an axis that have the given lengths, which add up to its length. They are views.
func (t *Tensor) Split(axis int, lengths ...int) []*Tensor {
	list := make([]*Tensor, len(lengths))
	sum := 0
	for i, n := range lengths {
		list[i] = t.Narrow(axis, sum, n)
		sum += n
	}
	if t.err == nil && sum != t.Dim(axis) {
		for i := range list {
			list[i] = failf(t.scope, "split", ErrShape, "axis %d of %v into %v", axis, t.shape, lengths)
		}
	}
	return list
}

// Pad returns t with value before and after the elements of dimensions: margins[j] are the numbers in front of
// and behind dimension j, missing ones 0.
func (t *Tensor) Pad(value any, margins ...[2]int) *Tensor {
	const name = "pad"
	if bad := check(name, t); bad != nil {
		return bad
	}
	fill, err := constant(t.typ, value)
	if err != nil {
		return fail(t.scope, name, err)
	}
	if len(margins) > len(t.shape) {
		return failf(t.scope, name, ErrShape, "%d margins for shape %v", len(margins), t.shape)
	}
	shape, at := slices.Clone(t.shape), slices.Repeat([]span{{0, 1}}, len(t.shape))
	for j, m := range margins {
		if m[0] < 0 || m[1] < 0 {
			return failf(t.scope, name, ErrShape, "a margin of %v", m)
		}
		at[j].start = m[0]
		shape[j] += m[0] + m[1]
	}
	if err := checkShape(shape); err != nil {
		return fail(t.scope, name, err)
	}
	switch {
	case slices.Equal(shape, t.shape):
		return t
	case count(t.shape) == 0:
		return filled(t.scope, t.typ, shape, fill)
	}
	return join(name, t.typ, shape, fill, part{t, at})
}
