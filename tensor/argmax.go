package tensor

// The places of extremes.

import (
	"slices"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
)

// ArgMax returns the index, an I64, of the largest element of an axis, which the result lacks: the first one of
// equals, and the first NaN if there is one. Of no elements there is none, which is an error.
func (t *Tensor) ArgMax(axis int) *Tensor {
	return t.argExtreme("argmax", expr.ArgLargest, expr.Largest, axis)
}

// ArgMin returns the index of the smallest element, as ArgMax does that of the largest.
func (t *Tensor) ArgMin(axis int) *Tensor {
	return t.argExtreme("argmin", expr.ArgSmallest, expr.Smallest, axis)
}

// argExtreme reduces an axis by op, whose result is the place of the element that extreme returns.
func (t *Tensor) argExtreme(name string, op, extreme expr.Op, axis int) *Tensor {
	if bad := check(name, t); bad != nil {
		return bad
	}
	i, ok := t.axis(axis)
	if !ok {
		return failf(t.scope, name, ErrShape, "axis %d of shape %v", axis, t.shape)
	}
	outer, n, in := around(t.shape, i)
	shape := slices.Delete(slices.Clone(t.shape), i, i+1)
	switch {
	case n == 0:
		return failf(t.scope, name, ErrShape, "no element in axis %d of %v", axis, t.shape)
	case count(shape) == 0:
		return filled(t.scope, I64, shape, zero(I64))
	case t.typ == Bool:
		t = t.Cast(U8)
	}
	if parts := kernels.ReduceParts(outer, n, in); parts > 1 && t.scope.engine.inGroups() {
		o := &callOp{name: name, takes: onlyDense, run: func(r *run, out, in []operand) error {
			return r.argExtreme(op, extreme, parts, out[0], in[0])
		}}
		return call(o, []Spec{{I64, []int{outer, in}}}, t.Reshape(outer, n, in))[0].Reshape(shape...)
	}
	return t.reduceAxes(name, op, []int{i}, I64)
}

// argExtreme reduces a long axis in two launches: the extremes of its parts and their places, and then the first of the
// extremes. Without that, few of a device's groups would do all the work.
func (r *run) argExtreme(op, extreme expr.Op, parts int, out, in operand) error {
	outer, n, inner := in.shape[0], in.shape[1], in.shape[2]
	span := (n + parts - 1) / parts
	parts = (n + span - 1) / span
	b, err := r.buffers(in, out)
	if err != nil {
		return err
	}
	tops, err := r.temp(in.typ, outer*inner*parts)
	if err != nil {
		return err
	}
	places, err := r.temp(I64, outer*inner*parts)
	if err != nil {
		return err
	}
	x := expr.Input(0, in.typ)
	for part := 0; part < parts; { // those of equal length in one launch, and the rest in another one
		some, length := n/span-part, span
		if some == 0 {
			some, length = 1, n-part*span
		}
		from := expr.Operand{First: part * span * inner, Steps: []int{n * inner, 1, span * inner, inner}}
		to := expr.Operand{First: part, Steps: []int{inner * parts, parts, 1, 0}}
		if err := r.apply([]int{outer, inner, some, length}, []expr.Operand{from, to, to},
			[]*runtime.Buffer{b[0], tops, places}, expr.Apply(extreme, x).Output(in.typ), expr.Apply(op, x)); err != nil {
			return err
		}
		part += some
	}
	which := expr.Apply(op, x)
	here := expr.Apply(expr.Rem, expr.Index(), expr.Length()).Eq(which)
	place := here.Select(expr.Input(1, I64), zero(I64)).Sum().Add(which.Mul(expr.Int(I64, int64(span))))
	rows := expr.Rows(outer*inner, parts)
	return r.apply([]int{outer * inner, parts}, []expr.Operand{rows, rows, {Steps: []int{1, 0}}},
		[]*runtime.Buffer{tops, places, b[1]}, place)
}
