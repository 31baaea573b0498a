package tensor

// Running sums.

import (
	"slices"

	"github.com/concord-compute/concord/kernels"
)

// CumSum returns the running sums along an axis: element i of it is the sum of the elements up to i. Integers
// are added in 64 bits, half and bfloat16 in F32, and of Bools it is how many are true. Sums are added up in an
// order that depends on the shape alone. The gradient of an element is the sum of those from it on.
func (t *Tensor) CumSum(axis int) *Tensor {
	const name = "cumsum"
	if bad := check(name, t); bad != nil {
		return bad
	}
	wide := t.wide()
	rows, n, back, bad := wide.lines(name, axis)
	switch {
	case bad != nil:
		return bad
	case t.Len() == 0 || n == 1:
		return wide
	}
	o := &callOp{name: name, takes: onlyDense, run: runCumSum, back: func(t *Tensor, gs []*Tensor) []*Tensor {
		if !IsFloat(t.typ) {
			return []*Tensor{nil}
		}
		return []*Tensor{gs[0].Flip(1).CumSum(1).Flip(1)}
	}}
	return back(call(o, []spec{{rows.typ, rows.shape}}, rows)[0], n)
}

// runCumSum computes rows in one launch, or in two where there are few and long ones: the sums of their parts,
// and the running sums of each part.
func runCumSum(r *run, out, in []operand) error {
	b, err := r.buffers(in[0], out[0])
	if err != nil {
		return err
	}
	rows, n := in[0].shape[0], in[0].shape[1]
	defines := []string{"T=" + in[0].typ.String()}
	parts, partial := kernels.ReduceParts(rows, n, 1), in[0].typ
	if IsFloat(partial) {
		partial = partial.Computed()
	}
	totals, err := r.temp(partial, rows*parts)
	if err != nil {
		return err
	}
	if parts > 1 {
		err = r.catalog("reduce", "reduce_sum", append(slices.Clone(defines), "STAGE=1"), []int{rows, parts, 1},
			b[0], totals, uint32(rows), uint32(n), uint32(1), uint32(parts))
		if err != nil {
			return err
		}
	}
	return r.catalog("scan", "scan_sum", defines, []int{rows, parts}, b[0], totals, b[1], uint32(rows), uint32(n),
		uint32(parts))
}
