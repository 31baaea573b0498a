package tensor

// Kernels joined with those that read their results.

import "slices"

// merge joins kernels that store a tensor with kernels that read it in the same loop, so that it is stored but not read. The tasks are in
// order.
func (p *planner) merge() {
	needs := dependenciesOf(p.tasks)
	at := map[task]int{}
	for i, t := range p.tasks {
		at[t] = i
	}
	for i, t := range p.tasks {
		b, ok := t.(*kernel)
		if !ok || p.places[b.outs[0].t] == nil {
			continue
		}
		for {
			merged := false
			for _, r := range b.reads {
				a := p.made[r.t]
				if a == nil || a == b || p.once[r.t] || len(a.outs)+len(b.outs) > 4 || !r.a.plain(len(b.outs[len(b.outs)-1].t.shape)) {
					continue
				}
				if k := p.together(a, b, r.t, r.a); k != nil && !needs.circular(a, b, k) {
					needs.replace(a, b, k)
					p.tasks[at[a]], p.tasks[i], at[k] = nil, k, i
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
}

// mergeResults joins kernels that read the same elements in the same loop and whose results were all asked for, so that no memory is needed for longer.
// The states of an optimizer are computed so, with the parameters.
func (p *planner) mergeResults() {
	asked := func(t task) *kernel {
		k, ok := t.(*kernel)
		if !ok || k.m.Reduces() {
			return nil
		}
		shape := k.outs[len(k.outs)-1].t.shape
		if count(shape) < manyTimes {
			return nil
		}
		for _, o := range k.outs {
			if !p.kept[o.t] || p.places[o.t] == nil || !slices.Equal(o.t.shape, shape) || !o.a.plain(len(shape)) {
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
	for i, t := range p.tasks {
		b := asked(t)
		for j := i - 1; j >= 0 && b != nil; j-- {
			a := asked(p.tasks[j])
			if a == nil || len(a.outs)+len(b.outs) > 4 || !slices.Equal(a.outs[0].t.shape, b.outs[0].t.shape) || !share(a, b) {
				continue
			}
			var ts []*Tensor
			var places []place
			var all []access
			for _, o := range slices.Concat(a.outs, b.outs) {
				ts, places, all = append(ts, o.t), append(places, o.to), append(all, o.a)
			}
			k, _, err := p.kernel(ts, all, places)
			if err != nil || needs.circular(a, b, k) {
				continue
			}
			needs.replace(a, b, k)
			p.tasks[j], p.tasks[i], b = nil, k, k
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

// together returns one kernel in place of a, which stores t, and b, which reads it, or nil.
func (p *planner) together(a, b *kernel, t *Tensor, at access) *kernel {
	main := b.outs[len(b.outs)-1].t
	for _, o := range a.outs {
		if !slices.Equal(o.t.shape, t.shape) || p.places[o.t] == nil {
			return nil
		}
	}
	for _, o := range b.outs {
		if p.places[o.t] == nil {
			return nil
		}
	}
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
	var ts []*Tensor
	var places []place
	var all []access
	for _, o := range a.outs {
		ts, places, all = append(ts, o.t), append(places, o.to), append(all, at)
	}
	for _, o := range b.outs {
		ts, places, all = append(ts, o.t), append(places, o.to), append(all, o.a)
	}
	for _, x := range all[:len(all)-1] {
		if !x.plain(len(main.shape)) {
			return nil
		}
	}
	k, _, err := p.kernel(ts, all, places)
	if err != nil {
		return nil
	}
	return k
}
