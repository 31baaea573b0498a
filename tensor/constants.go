package tensor

// What a compiled function computes once for all calls.

import (
	"slices"

	"github.com/concord-compute/concord/kernels/expr"
)

// captured returns the tensors that a function has taken from around it to make outs, and that are not computed: those
// that are not younger than birth. Numbers that are only stretched are left out, since they are not worth memory.
func captured(outs []*Tensor, birth uint64) (list []*Tensor) {
	worth := func(t *Tensor) bool {
		return slices.ContainsFunc(walk([]*Tensor{t}, (*Tensor).sources), func(t *Tensor) bool { return !t.plain() })
	}
	walk(outs, func(t *Tensor) []*Tensor {
		if t.data != nil || t.born == 0 || t.born > birth || count(t.shape) == 0 {
			return t.sources()
		}
		if !slices.Contains(list, t) && worth(t) {
			list = append(list, t)
		}
		return nil
	})
	return list
}

// plain reports whether t has one number in all places, or is a view of its arg, or the same in another type.
func (t *Tensor) plain() bool {
	switch o := t.op.(type) {
	case *viewOp:
		return t.data == nil
	case *mapOp:
		operations := o.e.Operations()
		delete(operations, expr.Cast)
		return t.data == nil && len(operations) == 0 && !o.e.Indexed()
	}
	return false
}

// largestConstant is how many bytes a value has at most that is computed once for all calls, in memory that nothing
// else uses meanwhile.
const largestConstant = 1 << 16

// constants takes the tasks out of a plan that read nothing but what others of them write, and returns them: what they
// compute is the same in each call.
func (p *plan) constants() (once []task) {
	fixed := map[*value]bool{}
	writers := map[*value]int{}
	for _, t := range p.tasks {
		_, out := t.values()
		for _, v := range out {
			writers[v]++
		}
	}
	p.tasks = slices.DeleteFunc(p.tasks, func(t task) bool {
		in, out := t.values()
		if slices.ContainsFunc(in, func(v *value) bool { return !fixed[v] }) ||
			slices.ContainsFunc(out, func(v *value) bool { return v.kept || writers[v] > 1 || v.n*size(v.typ) > largestConstant }) {
			return false
		}
		for _, v := range out {
			fixed[v], v.kept = true, true
		}
		once = append(once, t)
		return true
	})
	return once
}
