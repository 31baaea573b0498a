package tensor

// The places of extremes.

import (
	"slices"

	"github.com/concord-compute/concord/kernels"
)

// ArgMax returns the index, an I64, of the largest element of an axis, which the result lacks: the first one of
// equals, and the first NaN if there is one. Of no elements there is none, which is an error.
func (t *Tensor) ArgMax(axis int) *Tensor { return t.argExtreme("reduce_argmax", axis) }

// ArgMin returns the index of the smallest element, as ArgMax does that of the largest.
func (t *Tensor) ArgMin(axis int) *Tensor { return t.argExtreme("reduce_argmin", axis) }

func (t *Tensor) argExtreme(kernel string, axis int) *Tensor {
	name := kernel[len("reduce_"):]
	if bad := check(name, t); bad != nil {
		return bad
	}
	i, ok := t.axis(axis)
	if !ok {
		return failf(t.scope, name, ErrShape, "axis %d of shape %v", axis, t.shape)
	}
	outer, n, in := around(t.shape, i)
	shape := slices.Delete(slices.Clone(t.shape), i, i+1)
	if bad := counted32(t.scope, name, t.shape, outer, n, in); bad != nil {
		return bad
	}
	switch {
	case n == 0:
		return failf(t.scope, name, ErrShape, "no element in axis %d of %v", axis, t.shape)
	case count(shape) == 0:
		return filled(t.scope, I64, shape, zero(I64))
	case t.typ == Bool:
		t = t.Cast(U8)
	}
	o := &callOp{name: name, takes: onlyDense, run: func(r *run, out, in []operand) error {
		return r.argExtreme(kernel, out[0], in[0])
	}}
	return call(o, []spec{{I64, []int{outer, in}}}, t.Reshape(outer, n, in))[0].Reshape(shape...)
}

// argExtreme reduces an axis in one launch, or in two where it is long and there are few results.
func (r *run) argExtreme(kernel string, out, in operand) error {
	outer, n, inner := in.shape[0], in.shape[1], in.shape[2]
	b, err := r.buffers(in, out)
	if err != nil {
		return err
	}
	if inner >= 32 { // neighbouring items read neighbouring elements
		kernel += "_columns"
	}
	defines := []string{"T=" + in.typ.String(), "INDEX=i64"}
	sizes := []any{uint32(outer), uint32(n), uint32(inner)}
	parts := kernels.ReduceParts(outer, n, inner)
	if parts == 1 {
		return r.catalog("reduce", kernel, defines, []int{outer, inner}, append([]any{b[0], b[1]}, sizes...)...)
	}
	sizes = append(sizes, uint32(parts))
	values, err := r.temp(in.typ.Computed(), outer*parts*inner)
	if err != nil {
		return err
	}
	places, err := r.temp(U32, outer*parts*inner)
	if err != nil {
		return err
	}
	err = r.catalog("reduce", kernel, append(slices.Clone(defines), "STAGE=1"), []int{outer, parts, inner},
		append([]any{b[0], values, places}, sizes...)...)
	if err != nil {
		return err
	}
	return r.catalog("reduce", kernel, append(defines, "STAGE=2"), []int{outer, inner},
		append([]any{values, places, b[1]}, sizes...)...)
}
