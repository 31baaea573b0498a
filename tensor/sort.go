package tensor

// Sorting.

import (
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
)

// sortPairs returns the keys of each row of a matrix in order, and values that were moved with them. Equal keys keep their order. The results have no
// gradients.
func sortPairs(keys, values *Tensor, descending bool) (*Tensor, *Tensor) {
	o := &callOp{name: "sort", takes: onlyDense, run: func(r *run, out, in []operand) error { return r.sort(out, in, descending) }}
	list := call(o, []spec{{keys.typ, keys.shape}, {values.typ, values.shape}}, keys, values)
	return list[0], list[1]
}

// sort sorts blocks of rows, and then merges them, from one pair of buffers to another one and back.
func (r *run) sort(out, in []operand, descending bool) error {
	b, err := r.buffers(in[0], in[1], out[0], out[1])
	if err != nil {
		return err
	}
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
	err = r.catalog("sort_pairs", "sort_blocks", defines, []int{rows, n}, from[0], from[1], to[0], to[1], uint32(rows), uint32(n))
	for width := kernels.SortBlock; width < n && err == nil; width *= 2 {
		err = r.catalog("sort_pairs", "sort_merge", defines, []int{rows, n}, to[0], to[1], other[0], other[1], uint32(rows), uint32(n), uint32(width))
		to, other = other, to
	}
	return err
}
