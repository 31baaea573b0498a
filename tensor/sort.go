package tensor

// Sorting.

import (
	"math"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
)

// Sort returns the elements of t in order along an axis, and the indices, of type I64, that they have had.
// Equal elements keep their order, -0 equals 0, and NaN counts as larger than all numbers: it is last, or with
// descending first. The gradient of the values goes back to where they were.
func (t *Tensor) Sort(axis int, descending bool) (values, indices *Tensor) {
	const name = "sort"
	rows, n, back, bad := t.lines(name, axis)
	switch {
	case bad != nil:
		return bad, bad
	case t.Len() == 0:
		return t, filled(t.scope, I64, t.shape, zero(I64))
	case t.typ == Bool:
		values, indices = t.Cast(U8).Sort(axis, descending)
		return values.Cast(Bool), indices
	}
	sorted, order := sortPairs(rows, numbered(rows.scope, rows.shape), descending)
	sorted.op.(*callOp).back = func(t *Tensor, gs []*Tensor) []*Tensor {
		if gs[0] == nil || !IsFloat(t.typ) {
			return []*Tensor{nil, nil}
		}
		came := lastOf(placesOf(order, t.shape[0], n, 1), t.Len()).Sub(1) // where each element has gone
		return []*Tensor{gatherRows(gs[0].Reshape(-1, 1), came).Reshape(t.shape...), nil}
	}
	return back(sorted, n), back(order.Cast(I64), n)
}

// ArgSort returns the indices, of type I64, by which TakeAlong puts the elements of an axis in order, as Sort does.
func (t *Tensor) ArgSort(axis int, descending bool) *Tensor {
	_, indices := t.Sort(axis, descending)
	return indices
}

// TopK returns the k largest elements of each row along an axis, the largest first, or the k smallest ones, the
// smallest first, and their indices, of type I64. Of equal elements those with lower indices come first. Among
// the largest, NaN and +∞ count as equal; among the smallest, NaN is behind all numbers. The gradient of the
// values goes to where they were.
func (t *Tensor) TopK(k, axis int, largest bool) (values, indices *Tensor) {
	const name = "topk"
	rows, n, back, bad := t.lines(name, axis)
	switch {
	case bad != nil:
		return bad, bad
	case k < 0 || k > n:
		bad = failf(t.scope, name, ErrShape, "%d elements of axis %d of %v", k, axis, t.shape)
		return bad, bad
	case k == 0 || t.Len() == 0:
		values = t.Narrow(axis, 0, k)
		return values, filled(t.scope, I64, values.shape, zero(I64))
	case t.typ == Bool:
		values, indices = t.Cast(U8).TopK(k, axis, largest)
		return values.Cast(Bool), indices
	}
	keys := rows.StopGradient()
	if IsFloat(t.typ) && largest {
		keys = Where(keys.IsNaN(), math.Inf(1), keys)
	}
	var order *Tensor
	if IsFloat(t.typ) && k <= kernels.SortBlock && 4*k <= n { // a selection instead of a sort
		if largest {
			keys = keys.Neg()
		}
		o := &callOp{name: name, takes: onlyDense, run: onMemory(func(r *run, b []*runtime.Buffer, _, in []operand) error {
			m := in[0].shape[0]
			values, err := r.temp(in[0].typ, m*k)
			if err != nil {
				return err
			}
			return r.catalog("topk", "topk", []string{"T=" + in[0].typ.String()}, []int{m}, b[0], values, b[1], uint32(m),
				uint32(n), uint32(k))
		})}
		order = call(o, []Spec{{U32, []int{rows.shape[0], k}}}, keys)[0]
	} else {
		_, order = sortPairs(keys, numbered(rows.scope, rows.shape), largest)
		order = order.Narrow(1, 0, k)
	}
	indices = back(order.Cast(I64), k)
	return t.TakeAlong(axis, indices), indices
}

// lines returns t with an axis, of length n, as the rows of a matrix, and a function that puts rows of another
// length back to where the axis was.
func (t *Tensor) lines(name string, axis int) (rows *Tensor, n int, back func(rows *Tensor,
	n int) *Tensor, bad *Tensor) {
	if bad := check(name, t); bad != nil {
		return nil, 0, nil, bad
	}
	i, ok := t.axis(axis)
	if !ok {
		return nil, 0, nil, failf(t.scope, name, ErrShape, "axis %d of shape %v", axis, t.shape)
	}
	if bad := counted32(t.scope, name, t.shape, t.Len()); bad != nil {
		return nil, 0, nil, bad
	}
	last := len(t.shape) - 1
	turned := t.Transpose(i, last)
	n = t.shape[i]
	return turned.Reshape(t.Len()/max(n, 1), n), n, func(rows *Tensor, n int) *Tensor {
		shape := turned.Shape()
		shape[last] = n
		return rows.Reshape(shape...).Transpose(i, last)
	}, nil
}

// numbered returns a matrix of type U32 in which each row has the numbers from 0 on.
func numbered(s *Scope, shape []int) *Tensor { return Iota(s, U32, shape[1]).Expand(shape...) }

// sortPairs returns the keys of each row of a matrix in order, and values that were moved with them. Equal keys
// keep their order. The results have no gradients.
func sortPairs(keys, values *Tensor, descending bool) (*Tensor, *Tensor) {
	run := func(r *run, b []*runtime.Buffer, out, in []operand) error { return r.sort(b, out, in, descending) }
	o := &callOp{name: "sort", takes: onlyDense, run: onMemory(run)}
	list := call(o, []Spec{{keys.typ, keys.shape}, {values.typ, values.shape}}, keys, values)
	return list[0], list[1]
}

// sort sorts blocks of rows, and then merges them, from one pair of buffers to another one and back.
func (r *run) sort(b []*runtime.Buffer, out, in []operand, descending bool) (err error) {
	rows, n := in[0].shape[0], in[0].shape[1]
	defines := []string{"T=" + in[0].typ.String(), "VALUE=" + in[1].typ.String(), define("DESCENDING", descending)}
	from, to, other := [2]*runtime.Buffer(b[:2]), [2]*runtime.Buffer(b[2:]), [2]*runtime.Buffer{}
	if n > kernels.SortBlock {
		for i, o := range out {
			if other[i], err = r.temp(o.typ, rows*n); err != nil {
				return err
			}
		}
	}
	for width := kernels.SortBlock; width < n; width *= 2 { // an odd number of merges begins in the other buffers
		to, other = other, to
	}
	err = r.catalog("sort_pairs", "sort_blocks", defines, []int{rows, n}, from[0], from[1], to[0], to[1], uint32(rows),
		uint32(n))
	for width := kernels.SortBlock; width < n && err == nil; width *= 2 {
		err = r.catalog("sort_pairs", "sort_merge", defines, []int{rows, n}, to[0], to[1], other[0], other[1], uint32(rows),
			uint32(n), uint32(width))
		to, other = other, to
	}
	return err
}
