package tensor

// The fifth pass: one task in place of several. It has three parts, with [schedule] after each: [fuseEpilogues],
// [fuseReaders] and [fuseLoops].

import (
	"fmt"
	"slices"
)

// mostOutputs is how many tensors a kernel stores at most.
const mostOutputs = 4

// mostNear is how many kernels before one, with a loop of the same size, are tried to be joined with it, so that a plan
// takes a time that grows as the graph does.
const mostNear = 64

// fusion is the state of a pass that fuses.
type fusion struct {
	taskList
	layouts
	made   []*kernel       // by the number of a node: the kernel that stores it
	needed map[*value]bool // after the plan
}

// newFusion returns the state at the beginning.
func newFusion(p taskList) *fusion {
	own := taskList{p.storage.clone(), slices.Clone(p.tasks)}
	f := &fusion{taskList: own, made: make([]*kernel, len(p.nodes)), needed: map[*value]bool{}}
	for _, t := range f.tasks {
		if k, ok := t.(*kernel); ok {
			for _, o := range k.outs {
				if f.places[o.n.number].v == o.to.v {
					f.made[o.n.number] = k
				}
			}
		}
	}
	for _, n := range f.results {
		if to, ok := f.resolve(n); ok {
			f.needed[to.v] = true
		}
	}
	return f
}

// result returns the tasks without tasks that are nil and without values that are gone.
func (f *fusion) result(gone map[*value]bool) taskList {
	f.tasks = slices.DeleteFunc(f.tasks, func(t task) bool { return t == nil })
	f.values = slices.DeleteFunc(f.values, func(v *value) bool { return gone[v] })
	return f.taskList
}

// fuseReaders returns the pass that joins kernels that store a node with kernels that read it in the same loop, so that
// it is stored but not read. The tasks are in order.
func fuseReaders(l layouts) func(p taskList) taskList {
	return func(p taskList) taskList {
		f := newFusion(p)
		f.layouts = l
		needs := dependenciesOf(f.tasks)
		at := map[task]int{}
		for i, t := range f.tasks {
			at[t] = i
		}
		gone := map[*value]bool{}
		for i, t := range f.tasks {
			replaced := func(a, k *kernel) { f.tasks[at[a]], f.tasks[i], at[k] = nil, k, i }
			for b, ok := t.(*kernel); ok; {
				b, ok = f.fuseInto(b, needs, gone, replaced)
			}
		}
		return f.result(gone)
	}
}

// fuseInto fuses b with a kernel that stores what it reads, and returns the kernel in place of both; false if there is
// none.
func (f *fusion) fuseInto(b *kernel, needs *dependencies, gone map[*value]bool,
	replaced func(a, k *kernel)) (*kernel, bool) {
	for _, r := range b.reads {
		a := f.made[r.n.number]
		if a == nil || a == b || f.revisit[r.n.number] {
			continue
		}
		spare := f.spare(a, b, needs)
		k, spare := f.together(a, b, r.n, r.a, spare)
		if k == nil || needs.circular(a, b, k) {
			continue
		}
		needs.replace(a, b, k)
		replaced(a, k)
		for _, n := range spare {
			gone[f.places[n.number].v] = true
			f.places[n.number], f.made[n.number] = place{}, nil
		}
		for _, o := range k.outs {
			f.made[o.n.number] = k
		}
		return k, true
	}
	return nil, false
}

// fuseLoops joins kernels whose results were all asked for and that read the same elements in the same loop, so that no
// memory is needed for longer: the states of an optimizer are computed so, with the parameters. It joins kernels of the
// same small loop in any case, since a launch takes longer than they do.
func fuseLoops(p taskList) taskList {
	f := newFusion(p)
	many := p.graph.costs.Many
	small := func(k *kernel) bool { return count(k.layout.Dims) < many }
	loop := func(k *kernel) []int { return k.outs[len(k.outs)-1].n.shape }
	may := func(t task) *kernel {
		k, ok := t.(*kernel)
		if !ok || k.m.Reduces() && !small(k) {
			return nil
		}
		for _, o := range k.outs {
			if !o.n.asked && !small(k) || f.places[o.n.number].v == nil || !o.a.plain(len(loop(k))) {
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
	needs := dependenciesOf(f.tasks)
	same := map[string][]int{} // the places of kernels, by the sizes of their loops
	for i, t := range f.tasks {
		b := may(t)
		if b == nil {
			continue
		}
		size := fmt.Sprint(b.layout.Dims, b.m.Reduces())
		near := same[size][max(0, len(same[size])-mostNear):]
		same[size] = append(same[size], i)
		related := needs.related(b)
		for _, j := range slices.Backward(near) {
			a := may(f.tasks[j])
			if a == nil || len(a.outs)+len(b.outs) > mostOutputs || !small(a) && !share(a, b) || related(a) {
				continue
			}
			first, last := a, b
			if len(loop(a)) > len(loop(b)) { // b stores one element for each row
				first, last = b, a
			}
			if n := len(loop(first)); !slices.Equal(loop(first), loop(last)[:n]) || n+1 < len(loop(last)) {
				continue
			}
			var ns []*node
			var places []place
			var all []access
			for _, o := range slices.Concat(first.outs, last.outs) {
				ns, places, all = append(ns, o.n), append(places, o.to), append(all, o.a)
			}
			k := f.attempt(ns, all, places).kernel
			if k == nil || needs.circular(a, b, k) {
				continue
			}
			needs.replace(a, b, k)
			f.tasks[j], f.tasks[i], b = nil, k, k
			related = needs.related(b)
		}
	}
	return f.result(nil)
}

// plain reports whether an access names each of the first rank variables at most once, without anything else.
func (a access) plain(rank int) bool {
	var seen []int
	for _, l := range a {
		switch {
		case l.offset == 0 && len(l.terms) == 0:
		case l.offset != 0 || len(l.terms) != 1 || l.terms[0].factor != 1 || l.terms[0].v.number > rank ||
			slices.Contains(seen, l.terms[0].v.number):
			return false
		default:
			seen = append(seen, l.terms[0].v.number)
		}
	}
	return true
}

// spare returns those results of a and b, by the kernels, that nothing else reads: one kernel in place of both does not
// have to store them. Those that were stored since a kernel visits them several times are not among them.
func (f *fusion) spare(a, b *kernel, needs *dependencies) (list []*node) {
	other := func(x task) bool { return x != a && x != b }
	for _, o := range slices.Concat(a.outs, b.outs[:len(b.outs)-1]) {
		v := o.to.v
		if _, stored := f.place(o.n); stored && !f.needed[v] && !f.revisit[o.n.number] &&
			!slices.ContainsFunc(needs.readers[v], other) && !slices.ContainsFunc(needs.writers[v], other) {
			list = append(list, o.n)
		}
	}
	return list
}

// together returns one kernel in place of a, which stores n, and b, which reads it, or nil. Its loop is that of b, or
// where b reduces n, that of a. It also returns which of those that are spare it does not store: all, if each is
// computed only once then.
func (f *fusion) together(a, b *kernel, n *node, at access, spare []*node) (*kernel, []*node) {
	stored := func(o output) bool { return f.places[o.n.number].v != nil }
	main, own := b.outs[len(b.outs)-1].n, a.outs[len(a.outs)-1].n
	if !slices.Equal(own.shape, n.shape) || !all(a.outs, stored) {
		return nil, nil
	}
	first, last := a.outs, b.outs // the outputs by the loop of the last ones
	through := func(x access) access { return x.with(at) }
	if at.plain(len(main.shape)) {
		// Every element of n has to be computed: its dimensions are those of the loop.
		for j, l := range at {
			length := 1
			if len(l.terms) > 0 {
				length = main.shape[l.terms[0].v.number-1]
			}
			if length != n.shape[j] {
				return nil, nil
			}
		}
		if !all(b.outs, stored) {
			return nil, nil
		}
	} else {
		first, last, through = b.outs, a.outs, at.reversed(main.shape, n.shape)
		if through == nil || !b.m.Reduces() || !all(b.outs, func(o output) bool { return o.row }) {
			return nil, nil
		}
		main = own
		spare = slices.DeleteFunc(spare, func(x *node) bool { return x == own })
	}
	for _, o := range slices.Concat(a.outs, b.outs) { // what is computed for one element would be computed again for each
		if !o.row && count(o.n.shape) != count(main.shape) {
			spare = slices.DeleteFunc(spare, func(x *node) bool { return x == o.n })
		}
	}
	without := func(spare []*node) *kernel {
		var ns []*node
		var places []place
		var accesses []access
		for i, o := range slices.Concat(first, last) {
			if slices.Contains(spare, o.n) {
				continue
			}
			a := o.a
			if i < len(first) {
				a = through(a)
			}
			ns, places, accesses = append(ns, o.n), append(places, o.to), append(accesses, a)
		}
		loop := ns[len(ns)-1].shape
		if len(ns) > mostOutputs || !all(accesses[:len(accesses)-1], func(x access) bool { return x.plain(len(loop)) }) {
			return nil
		}
		k := f.attempt(ns, accesses, places, spare...).kernel
		if k != nil && len(spare) > 0 && slices.ContainsFunc(k.reductions, func(n *node) bool { return f.revisits(n) > 0 }) {
			return nil
		}
		return k
	}
	if len(spare) > 0 {
		if k := without(spare); k != nil {
			return k, spare
		}
	}
	return without(nil), nil
}

// all reports whether f is true of all elements.
func all[E any](list []E, f func(x E) bool) bool {
	return !slices.ContainsFunc(list, func(x E) bool { return !f(x) })
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

// reversed returns how accesses by the variables of a loop of shape loop become those by the dimensions of a tensor of
// shape, of which a names the element that belongs to each position of the loop and of a row. It is nil unless each
// dimension of the tensor is a variable by itself.
func (a access) reversed(loop, shape []int) func(x access) access {
	dims := map[int]*variable{} // by the number of a variable
	for j, l := range a {
		if shape[j] == 1 && l.offset == 0 && len(l.terms) == 0 {
			continue
		}
		if l.offset != 0 || len(l.terms) != 1 || l.terms[0].factor != 1 || l.terms[0].v.outer != nil ||
			l.terms[0].v.extent != shape[j] || dims[l.terms[0].v.number] != nil {
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
