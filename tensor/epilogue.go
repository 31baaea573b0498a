package tensor

// Products with what follows them: a bias for each column and an activation are computed by the product's kernel, while
// its results are in registers.

import (
	"sync"

	"github.com/concord-compute/concord/kernels/expr"
)

// epilogues has the maps of two inputs, a product's result and the bias of its column in either order, by their texts:
// the definition ACT of the family gemm_bias.
var epilogues = sync.OnceValue(func() map[string]string {
	list := map[string]string{}
	for act, f := range map[string]func(x *expr.Expr) *expr.Expr{
		"none":      func(x *expr.Expr) *expr.Expr { return x },
		"relu":      (*expr.Expr).Relu,
		"sigmoid":   (*expr.Expr).Sigmoid,
		"tanh":      (*expr.Expr).Tanh,
		"gelu":      (*expr.Expr).GELU,
		"silu":      silu,
		"gelu_tanh": geluTanh,
	} {
		for _, t := range []Type{F32, F64, F16, BF16} {
			// operands of a sum have an order of their own
			m, err := expr.New(f(expr.Input(0, t).Add(expr.Input(1, t))).Output(t))
			if err != nil {
				panic(err) // the maps are constants
			}
			list[m.String()] = act
		}
	}
	return list
})

// fuseEpilogues joins products with kernels that alone read them and compute an epilogue, in vector loops: GPUs have
// libraries for gemm, which are faster than the portable text that gemm_bias is there. The tasks are in order.
func fuseEpilogues(p taskList) taskList {
	f := newFusion(p)
	at, readers := map[*value]int{}, map[*value]int{} // the product that writes a value, and how many tasks read it
	for i, t := range f.tasks {
		in, out := t.values()
		for _, v := range in {
			readers[v]++
		}
		if s, ok := t.(*step); ok && s.op.epilogue != nil && !f.needed[out[0]] {
			at[out[0]] = i
		}
	}
	gone := map[*value]bool{}
	for i, t := range f.tasks {
		k, ok := t.(*kernel)
		if !ok || len(k.outs) != 1 || len(k.inputs) != 2 || k.outs[0].n.scope.engine.groups {
			continue
		}
		act, ok := epilogues()[k.m.String()]
		if !ok {
			continue
		}
		for c, in := range k.inputs {
			j, ok := at[in.v]
			if !ok || readers[in.v] != 1 {
				continue
			}
			if s := withEpilogue(f.tasks[j].(*step), act, k, in, k.inputs[1-c]); s != nil {
				f.tasks[j], f.tasks[i] = nil, s
				gone[in.v] = true
				break
			}
		}
	}
	return f.result(gone)
}

// withEpilogue returns the step in place of s, whose result is the input c of the kernel, and of the kernel; nil if the
// loop of the kernel is not over all elements of c in their order with the bias of their columns.
func withEpilogue(s *step, act string, k *kernel, c, bias input) *step {
	out := k.outs[0]
	shape := out.n.shape
	last := len(shape) - 1
	if last < 1 || !isDense(shape, out.to.strides) || count(shape) != count(s.out[0].shape) {
		return nil
	}
	row := place{v: bias.v, first: bias.at.offset, strides: make([]int, len(shape))}
	row.strides[last] = 1
	if !c.at.divided().equal(place{strides: rowMajor(shape)}.flat(out.a)) || !bias.at.divided().equal(row.flat(out.a)) {
		return nil
	}
	row.strides = row.strides[last:]
	joined := s.op.epilogue(s, act, operand{row, out.n.typ, shape[last:]}, out.to)
	if joined != nil {
		joined.op.name += " " + k.String()
	}
	return joined
}
