package tensor

// Kernels joined with those that read their results.

import (
	"fmt"
	"slices"
)

// mostOutputs is how many tensors a kernel stores at most.
const mostOutputs = 4

// mostNear is how many kernels before one, with a loop of the same size, are tried to be joined with it, so that a plan takes a time that grows as the graph does.
const mostNear = 64

// merge joins kernels that store a tensor with kernels that read it in the same loop, so that it is stored but not read. The tasks are in
// order.
func (p *planner) merge() {
	needs := dependenciesOf(p.tasks)
	at := map[task]int{}
	for i, t := range p.tasks {
		at[t] = i
	}
	gone := map[*value]bool{}
	needed := map[*value]bool{} // after the plan
	for t := range p.kept {
		if to, ok := p.resolve(t, nil); ok {
			needed[to.v] = true
		}
	}
	for i, t := range p.tasks {
		b, ok := t.(*kernel)
		if !ok {
			continue
		}
		for {
			merged := false
			for _, r := range b.reads {
				a := p.made[r.t]
				if a == nil || a == b || p.once[r.t] {
					continue
				}
				spare := p.spare(a, b, needs, needed)
				if k := p.together(a, b, r.t, r.a, spare); k != nil && !needs.circular(a, b, k) {
					needs.replace(a, b, k)
					p.tasks[at[a]], p.tasks[i], at[k] = nil, k, i
					for t, at := range spare {
						delete(p.places, t)
						delete(p.made, t)
						gone[at.v] = true
					}
					for _, o := range k.outs {
						p.made[o.t] = k
					}
					b, merged = k, true
					break
				}
			}
			if !merged {
				break
			}
		}
	}
	p.tasks = slices.DeleteFunc(p.tasks, func(t task) bool { return t == nil })
	p.values = slices.DeleteFunc(p.values, func(v *value) bool { return gone[v] })
}

// mergeResults joins kernels whose results were all asked for and that read the same elements in the same loop, so that no memory is needed for longer: the
// states of an optimizer are computed so, with the parameters. It joins kernels of the same small loop in any case, since a launch takes longer than they do.
func (p *planner) mergeResults() {
	small := func(k *kernel) bool { return count(k.layout.Dims) < manyTimes }
	loop := func(k *kernel) []int { return k.outs[len(k.outs)-1].t.shape }
	may := func(t task) *kernel {
		k, ok := t.(*kernel)
		if !ok || k.m.Reduces() && !small(k) {
			return nil
		}
		for _, o := range k.outs {
			if !p.kept[o.t] && !small(k) || p.places[o.t] == nil || !o.a.plain(len(loop(k))) {
				return nil
			}
		}
		return k
	}
	share := func(a, b *kernel) bool {
		for _, x := range a.inputs {
			for _, y := range b.inputs {
				if x.v == y.v && x.text == y.text && len(x.at.terms) > 0 {
					return true
				}
			}
		}
		return false
	}
	needs := dependenciesOf(p.tasks)
	same := map[string][]int{} // the places of kernels, by the sizes of their loops
	for i, t := range p.tasks {
		b := may(t)
		if b == nil {
			continue
		}
		size := fmt.Sprint(b.layout.Dims, b.m.Reduces())
		near := same[size][max(0, len(same[size])-mostNear):]
		same[size] = append(same[size], i)
		before := needs.before(b)
		for _, j := range slices.Backward(near) {
			a := may(p.tasks[j])
			if a == nil || len(a.outs)+len(b.outs) > mostOutputs || !small(a) && !share(a, b) || before(a) {
				continue
			}
			first, last := a, b
			if len(loop(a)) > len(loop(b)) { // b stores one element for each row
				first, last = b, a
			}
			if n := len(loop(first)); !slices.Equal(loop(first), loop(last)[:n]) || n+1 < len(loop(last)) {
				continue
			}
			var ts []*Tensor
			var places []place
			var all []access
			for _, o := range slices.Concat(first.outs, last.outs) {
				ts, places, all = append(ts, o.t), append(places, o.to), append(all, o.a)
			}
			k, _, err := p.kernel(ts, all, places)
			if err != nil || needs.circular(a, b, k) {
				continue
			}
			needs.replace(a, b, k)
			p.tasks[j], p.tasks[i], b = nil, k, k
			before = needs.before(b)
		}
	}
	p.tasks = slices.DeleteFunc(p.tasks, func(t task) bool { return t == nil })
}

// plain reports whether an access names each of the first rank variables at most once, without anything else.
func (a access) plain(rank int) bool {
	var seen []int
	for _, l := range a {
		switch {
		case l.offset == 0 && len(l.terms) == 0:
		case l.offset != 0 || len(l.terms) != 1 || l.terms[0].factor != 1 || l.terms[0].v.number > rank || slices.Contains(seen, l.terms[0].v.number):
			return false
		default:
			seen = append(seen, l.terms[0].v.number)
		}
	}
	return true
}

// spare returns those results of a and b, by the kernels, that nothing else reads: one kernel in place of both does not have to store them. Those that were stored so
// that reductions do not compute them again are not among them.
func (p *planner) spare(a, b *kernel, needs *dependencies, needed map[*value]bool) map[*Tensor]place {
	list := map[*Tensor]place{}
	for _, o := range slices.Concat(a.outs, b.outs[:len(b.outs)-1]) {
		v := o.to.v
		other := func(x task) bool { return x != a && x != b }
		if !needed[v] && !p.once[o.t] && p.places[o.t] != nil && !slices.ContainsFunc(needs.readers[v], other) && !slices.ContainsFunc(needs.writers[v], other) {
			list[o.t] = *p.places[o.t]
		}
	}
	return list
}

// together returns one kernel in place of a, which stores t, and b, which reads it, or nil. Its loop is that of b, or where b reduces t, that of a.
// What is spare is not stored, if it is computed only once then.
func (p *planner) together(a, b *kernel, t *Tensor, at access, spare map[*Tensor]place) *kernel {
	main, own := b.outs[len(b.outs)-1].t, a.outs[len(a.outs)-1].t
	if !slices.Equal(own.shape, t.shape) || slices.ContainsFunc(a.outs, func(o output) bool { return p.places[o.t] == nil }) {
		return nil
	}
	var through, reversed func(a access) access
	if at.plain(len(main.shape)) {
		// Every element of t has to be computed: its dimensions are those of the loop.
		for j, l := range at {
			n := 1
			if len(l.terms) > 0 {
				n = main.shape[l.terms[0].v.number-1]
			}
			if n != t.shape[j] {
				return nil
			}
		}
		if slices.ContainsFunc(b.outs, func(o output) bool { return p.places[o.t] == nil }) {
			return nil
		}
		through = func(x access) access { return x.with(at) }
	} else {
		reversed = at.reversed(main.shape, t.shape)
		if reversed == nil || !b.m.Reduces() || slices.ContainsFunc(b.outs, func(o output) bool { return !o.row }) {
			return nil
		}
	}
	without := func(spare map[*Tensor]place) *kernel {
		var ts []*Tensor
		var places []place
		var all []access
		add := func(outs []output, through func(a access) access) {
			for _, o := range outs {
				if _, ok := spare[o.t]; ok {
					continue
				}
				ts, places = append(ts, o.t), append(places, o.to)
				if through != nil {
					all = append(all, through(o.a))
				} else {
					all = append(all, o.a)
				}
			}
		}
		if reversed != nil {
			add(b.outs, reversed)
			add(a.outs, nil)
		} else {
			add(a.outs, through)
			add(b.outs, nil)
		}
		loop := ts[len(ts)-1].shape
		if len(ts) > mostOutputs || slices.ContainsFunc(all[:len(all)-1], func(x access) bool { return !x.plain(len(loop)) }) {
			return nil
		}
		for t := range spare {
			delete(p.places, t)
		}
		k, _, err := p.kernel(ts, all, places)
		for t, at := range spare {
			p.places[t] = &at
		}
		if err != nil || len(spare) > 0 && slices.ContainsFunc(k.reductions, func(t *Tensor) bool { return p.before(t) > 0 }) {
			return nil
		}
		return k
	}
	if reversed != nil {
		delete(spare, own)
		main = own
	}
	for _, o := range slices.Concat(a.outs, b.outs) { // what is computed for one element would be computed again for each
		if !o.row && count(o.t.shape) != count(main.shape) {
			delete(spare, o.t)
		}
	}
	if len(spare) > 0 {
		if k := without(spare); k != nil {
			return k
		}
	}
	clear(spare)
	return without(nil)
}

// with returns an access by the dimensions of a tensor, of which at names an element, as one by the variables of at.
func (a access) with(at access) access {
	out := make(access, len(a))
	for i, l := range a {
		out[i].offset = l.offset
		for _, t := range l.terms {
			out[i] = out[i].plus(t.factor, at[t.v.number-1])
		}
	}
	return out
}

// reversed returns how accesses by the variables of a loop of shape loop become those by the dimensions of a tensor of shape, of which a names the element that
// belongs to each position of the loop and of a row. It is nil unless each dimension of the tensor is a variable by itself.
func (a access) reversed(loop, shape []int) func(x access) access {
	dims := map[int]*variable{} // by the number of a variable
	for j, l := range a {
		if shape[j] == 1 && l.offset == 0 && len(l.terms) == 0 {
			continue
		}
		if l.offset != 0 || len(l.terms) != 1 || l.terms[0].factor != 1 || l.terms[0].v.outer != nil || l.terms[0].v.extent != shape[j] || dims[l.terms[0].v.number] != nil {
			return nil
		}
		dims[l.terms[0].v.number] = &variable{number: j + 1, extent: shape[j]}
	}
	for i, n := range loop {
		if n > 1 && dims[i+1] == nil {
			return nil
		}
	}
	return func(x access) access {
		out := make(access, len(x))
		for i, l := range x {
			out[i].offset = l.offset
			for _, t := range l.terms {
				if v := dims[t.v.number]; v != nil {
					out[i].add(v, t.factor)
				}
			}
		}
		return out
	}
}
