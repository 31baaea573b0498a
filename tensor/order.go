package tensor

// In which order of dimensions the elements of tensors lie.

import (
	"cmp"
	"slices"

	"github.com/concord-compute/concord/kernels/expr"
)

// lie finds how the elements of each tensor lie if what is not stored is imagined to be stored in the order of what it is computed from. Where that is rowMajor,
// steps has nothing.
func (p *planner) lie() {
	for _, t := range p.order {
		if s := p.natural(t); s != nil && !slices.Equal(s, rowMajor(t.shape)) {
			p.steps[t] = s
		}
	}
}

// lies returns the steps of a tensor that is stored, or imagined to be, and nil for rowMajor.
func (p *planner) lies(t *Tensor) []int {
	if t.data != nil {
		if !isDense(t.shape, t.data.steps) {
			return t.data.steps
		}
		return nil
	}
	return p.steps[t]
}

func (p *planner) natural(t *Tensor) []int {
	switch o := t.op.(type) {
	case *mapOp:
		if o.e.Indexed() {
			return nil
		}
		return p.denseAs(t, t.args)
	case *reduceOp:
		return p.denseAs(t, t.sources())
	case *viewOp:
		a := t.args[0]
		s := p.lies(a)
		if s == nil {
			if o.same || o.shape {
				return nil
			}
			s = rowMajor(a.shape)
		}
		switch {
		case o.same:
			return s
		case o.shape:
			if s, ok := reshaped(s, a.shape, t.shape); ok {
				return s
			}
			return nil
		case o.slide != nil:
			i := o.slide.axis
			return slices.Concat(s[:i], []int{s[i] * o.slide.stride, s[i] * o.slide.dilation}, s[i+1:])
		}
		out := slices.Clone(s)
		for j := range out {
			switch {
			case o.perm != nil:
				out[j] = s[o.perm[j]]
			case o.cut != nil:
				out[j] = s[j] * o.cut[j].step
			case a.shape[j] == 1: // repeated
				out[j] = 0
			}
		}
		return out
	}
	return nil
}

// denseAs returns the steps of dense elements of t in the order of most of what it is computed from, or nil for rowMajor.
func (p *planner) denseAs(t *Tensor, args []*Tensor) []int {
	if len(t.shape) < 2 || !slices.ContainsFunc(args, func(a *Tensor) bool { return p.lies(a) != nil }) {
		return nil
	}
	var steps [][]int
	var bytes []int
	for _, a := range args {
		s := p.lies(a)
		if s == nil {
			s = rowMajor(a.shape)
		}
		steps, bytes = append(steps, s), append(bytes, size(a.typ))
	}
	return denseBy(t.shape, expr.Order(t.shape, steps, bytes))
}

// denseBy returns the steps of dense elements whose dimensions lie in an order.
func denseBy(shape, order []int) []int {
	out, step := make([]int, len(shape)), 1
	for _, j := range slices.Backward(order) {
		out[j] = step
		step *= shape[j]
	}
	return out
}

// reorder stores tensors whose order is free in that of what they are computed from, if all that read them lie so too.
func (p *planner) reorder(free []*Tensor) {
	free = slices.DeleteFunc(free, func(t *Tensor) bool { return p.steps[t] == nil || p.kept[t] })
	if len(free) == 0 {
		return
	}
	other := map[*Tensor]bool{} // read by something that lies otherwise
	for _, t := range slices.Backward(p.order) {
		for _, a := range t.sources() {
			if s := p.lies(a); s != nil && !other[a] {
				other[a] = p.against(t, s, other)
			}
		}
	}
	for _, t := range free {
		if !other[t] {
			p.places[t].steps = p.steps[t]
		}
	}
}

// against reports whether t would rather read an arg in another order than that of the given steps.
func (p *planner) against(t *Tensor, steps []int, other map[*Tensor]bool) bool {
	switch o := t.op.(type) {
	case *reduceOp:
		return false
	case *viewOp:
		return other[t] || o.shape && p.steps[t] == nil
	case *mapOp:
		s := p.steps[t]
		if s == nil || p.kept[t] {
			s = rowMajor(t.shape)
		}
		return opposed(t.shape, s, steps)
	}
	return true
}

// opposed reports whether two dimensions lie within each other in one order by steps a and in the other one by steps b.
func opposed(shape, a, b []int) bool {
	within := func(s []int, i, j int) int {
		if s[i] == 0 || s[j] == 0 {
			return 0
		}
		return cmp.Compare(max(s[i], -s[i]), max(s[j], -s[j]))
	}
	for i := range shape {
		for j := range i {
			if shape[i] > 1 && shape[j] > 1 && within(a, i, j)*within(b, i, j) < 0 {
				return true
			}
		}
	}
	return false
}
