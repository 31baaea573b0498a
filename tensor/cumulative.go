package tensor

// Running sums.

import (
	"slices"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
)

// CumSum returns the running sums along an axis: element i of it is the sum of the elements up to i. Integers
// are added in 64 bits, half and bfloat16 in F32, and of Bools it is how many are true. Sums are added up in an
// order that depends on the shape and the strides alone. The gradient of an element is the sum of those from it on.
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
	// Few long rows are divided into parts, of which the scan takes the sums.
	count, parts := rows.shape[0], kernels.ReduceParts(rows.shape[0], n, 1)
	span := (n + parts - 1) / parts
	parts = (n + span - 1) / span
	args := []*Tensor{rows}
	if whole := parts - 1; whole > 0 {
		totals := rows.Narrow(1, 0, whole*span).Reshape(count, whole, span)
		args = append(args, totals.reduceAxes("sum", expr.Sum, []int{2}, rows.typ.Computed()))
	}
	o := &callOp{name: name, takes: onlyDense}
	o.run = func(r *run, out, in []operand) error {
		b, err := r.buffers(slices.Concat(out, in)...)
		if err != nil {
			return err
		}
		if len(in) == 1 {
			none, err := r.temp(in[0].typ.Computed(), 1)
			if err != nil {
				return err
			}
			b = append(b, none)
		}
		return r.catalog("scan", "scan_sum", []string{"T=" + in[0].typ.String()}, []int{count, parts}, b[1], b[2], b[0],
			uint32(count), uint32(n), uint32(parts))
	}
	o.back = func(t *Tensor, gs []*Tensor) []*Tensor {
		list := make([]*Tensor, len(args))
		if IsFloat(t.typ) {
			list[0] = gs[0].Flip(1).CumSum(1).Flip(1)
		}
		return list
	}
	return back(call(o, []Spec{{rows.typ, rows.shape}}, args...)[0], n)
}
