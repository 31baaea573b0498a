package tensor

// What a compiled function computes once for all calls.

import (
	"slices"

	"github.com/concord-compute/concord/kernels/expr"
)

// captured returns the tensors that a function has taken from around it to make outs, and that are not computed: those
// that are not younger than birth. Numbers that are only stretched are left out, and large tensors that are simple
// functions of much less, of which that is taken: they are not worth memory.
func captured(outs []*Tensor, birth uint64) (list []*Tensor) {
	worth := func(t *Tensor) bool {
		return slices.ContainsFunc(walk([]*Tensor{t}, (*Tensor).sources), func(t *Tensor) bool { return !t.plain() })
	}
	made := madeFrom(outs)
	walk(outs, func(t *Tensor) []*Tensor {
		if t.data != nil || t.born == 0 || t.born > birth || count(t.shape) == 0 {
			return t.sources()
		}
		if n := count(t.shape) * size(t.typ); n > largestConstant && n/8 >= made[t] {
			return t.sources()
		}
		if !slices.Contains(list, t) && worth(t) {
			list = append(list, t)
		}
		return nil
	})
	return list
}

// madeFrom returns for outs and all that they are made of how many bytes are read to compute them by views and simple
// operations alone: none for Full and Iota, and for what needs other operations the bytes of its own elements.
func madeFrom(outs []*Tensor) map[*Tensor]int {
	made := map[*Tensor]int{}
	for _, t := range walk(outs, (*Tensor).sources) {
		own, sum := count(t.shape)*size(t.typ), 0
		for _, a := range t.sources() {
			sum += made[a]
		}
		switch e := t.expression(); {
		case e != nil:
			if e.Indexed() && len(t.args) > 0 { // random numbers of a seed
				sum = own
			}
			for op := range e.Operations() {
				if function(op) {
					sum = own
				}
			}
		case t.kind() != kindView:
			sum = own
		}
		if t.data != nil {
			sum = own
			for i, step := range t.data.strides {
				if step == 0 {
					sum /= max(t.shape[i], 1)
				}
			}
		}
		made[t] = min(sum, own)
	}
	return made
}

// plain reports whether t has one number in all places, or is a view of its arg, or the same in another type.
func (t *Tensor) plain() bool {
	if t.data != nil {
		return false
	}
	if e := t.expression(); e != nil {
		operations := e.Operations()
		delete(operations, expr.Cast)
		return len(operations) == 0 && !e.Indexed()
	}
	return t.kind() == kindView
}

// largestConstant is how many bytes a value has at most that is computed once for all calls, in memory that nothing
// else uses meanwhile.
const largestConstant = 1 << 16

// constants divides a plan into the tasks that read nothing but what others of them write, so that what they compute is
// the same in each call, and a plan of the others, which keeps that.
func (p *plan) constants() (once []task, rest *plan) {
	rest = &plan{values: p.values, results: p.results, extern: p.extern, kept: slices.Clone(p.kept), costs: p.costs}
	fixed := map[*value]bool{}
	writers := map[*value]int{}
	for _, t := range p.tasks {
		_, out := t.values()
		for _, v := range out {
			writers[v]++
		}
	}
	for _, t := range p.tasks {
		in, out := t.values()
		if slices.ContainsFunc(in, func(v *value) bool { return !fixed[v] }) ||
			slices.ContainsFunc(out, func(v *value) bool {
				return p.keeps(v) || writers[v] > 1 || v.n*size(v.typ) > largestConstant
			}) {
			rest.tasks = append(rest.tasks, t)
			continue
		}
		for _, v := range out {
			fixed[v], rest.kept[v.number] = true, true
		}
		once = append(once, t)
	}
	return once, rest
}
