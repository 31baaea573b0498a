package tensor

// The second pass: which tensors are stored, and which are computed again by each kernel that needs them.

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/concord-compute/concord/kernels/expr"
)

// choose decides what is stored: what was asked for, what calls read and write, and what several kernels would compute
// otherwise where that costs more than to store it. The result also has the copies for calls that cannot read what is
// stored as it lies. [lower] follows, which stores more where no kernel can be made.
func choose(g graph, l layouts, fuse bool) *storage {
	nodes := len(g.nodes)
	c := &chooser{storage: newStorage(g), layouts: l, fuse: fuse, users: make([][]user, nodes),
		twice: make([]answer, nodes), reduces: make([]bool, nodes), seen: make([]int, nodes), price: g.costs}
	for _, n := range c.order {
		among := func(a *node) bool { return c.reduces[a.number] }
		c.reduces[n.number] = n.is(kindReduction) || slices.ContainsFunc(n.args, among)
	}
	var free []*node // what may lie in any order of dimensions
	for _, n := range slices.Backward(c.order) {
		why := c.decide(n)
		if n.is(kindResult) {
			c.materialize(n, why)
			continue
		}
		if why.reason != "" {
			if _, placed := c.place(n); !placed && !n.is(kindView) {
				free = append(free, n)
			}
			c.materialize(n, why)
		}
		before := c.revisits(n)
		for _, a := range n.args {
			if why.reason != "" {
				c.use(a, n, 1<<before)
				continue
			}
			for _, u := range c.users[n.number] {
				c.use(a, u.by, u.uses<<before)
			}
		}
	}
	c.reorder(free)
	return c.storage
}

// chooser is the state of choose.
type chooser struct {
	*storage
	layouts
	price Costs
	fuse  bool
	// By the numbers of nodes:
	users   [][]user // the stored nodes whose kernels would compute it, the last one first
	twice   []answer // whether it is cheaper to store it than to compute it at two visits
	reduces []bool   // whether a reduction is among what it is computed from
	seen    []int    // the last walk that has seen it
	walks   int
}

// answer is yes, no, or not known yet.
type answer int8

// user is a stored node whose kernel computes another one. visits has a bit for each time that it visits the elements
// of that: bit i for the visit after which i levels of reductions follow that visit their elements again.
type user struct {
	by   *node
	uses uint64
}

// use notes that the kernel of a stored node computes n.
func (c *chooser) use(n, by *node, uses uint64) {
	list := c.users[n.number]
	downwards := func(u user, by *node) int { return cmp.Compare(by.number, u.by.number) }
	i, found := slices.BinarySearchFunc(list, by, downwards)
	if found {
		list[i].uses |= uses
		return
	}
	c.users[n.number] = slices.Insert(list, i, user{by, uses})
}

// decide returns why n is stored; without a reason if it is not. All that read it have been decided.
func (c *chooser) decide(n *node) decision {
	users := c.users[n.number]
	_, placed := c.place(n)
	why := c.why[n.number]
	switch {
	case placed:
	case n.asked:
		why = decision{reason: "asked for"}
		if n.is(kindView) {
			if b := n.base(); c.inMemory(b) {
				c.materialize(b, decision{reason: "a view of it is asked for"})
				if _, ok := c.resolve(n); ok {
					why = decision{}
				}
			}
		}
	case kinds[n.what].stored:
		why = decision{reason: "computed in memory"}
	case !c.fuse && !n.is(kindView) && !kinds[n.what].inline:
		why = decision{reason: "nothing is fused"}
	case n.is(kindReduction) && len(users) > 1:
		why = decision{reason: "a reduction that several kernels need"}
	}
	switch {
	case n.is(kindCall):
		c.materialize(n, why)
		for i, a := range n.args {
			c.readable(n.op.(*callOp), i, a)
		}
	case n.is(kindJoin):
		c.materialize(n, why)
		if o := n.op.(*joinOp); c.fuse && o.fill == nil {
			for i, part := range o.parts {
				c.computeInto(n, part, n.args[i])
			}
		}
	case kinds[n.what].maps:
		if why.reason == "" && len(users) > 1 {
			why = c.shared(n, len(users))
		}
		if why.reason == "" && c.fuse && c.scalar(n, users) {
			why = decision{reason: "one number, which a kernel would compute for each of many elements"}
		}
		if why.reason == "" && c.fuse {
			if again := c.revisited(n, users); again.reason != "" {
				why, c.revisit[n.number] = again, true
			}
		}
	}
	return why
}

// inMemory reports whether a node is stored in any case.
func (c *chooser) inMemory(n *node) bool {
	_, ok := c.place(n)
	return ok || kinds[n.what].stored
}

// revisits returns 1 if n is a reduction whose kernel visits the elements again once it is known, and 0 otherwise: the
// CPU keeps rows in a cache, but neither columns nor long rows.
func (l layouts) revisits(n *node) int {
	if !n.is(kindReduction) || n.divided() || n.scope.engine.groups {
		return 0
	}
	a := n.args[0]
	last := len(a.shape) - 1
	// That rows are few depends on the threads, but a plan does not: two of them are assumed.
	if length, rows := a.shape[last], count(n.shape); length > expr.LongestKept || length > expr.Kept && rows < 4 {
		return 1
	}
	strides := l.of(a)
	if strides == nil {
		return 0
	}
	// The innermost of the other dimensions lies further in.
	for j, s := range strides[:last] {
		if a.shape[j] > 1 && s != 0 && max(s, -s) < max(strides[last], -strides[last]) {
			return 1
		}
	}
	return 0
}

// revisited decides whether n is stored because one kernel would compute it at each of several visits.
func (c *chooser) revisited(n *node, users []user) decision {
	most := 0
	for _, u := range users {
		most = max(most, bits.OnesCount64(u.uses))
	}
	if recompute, store := c.costs(n, most); most > 1 && recompute > store {
		return decision{"a kernel visits it several times", recompute, store, "operations an element"}
	}
	return decision{}
}

// costs returns the efforts, for an element, of computing n at each of so many visits, and of storing it and reading
// it, beyond what both have.
func (c *chooser) costs(n *node, visits int) (recompute, store int) {
	if visits < 2 {
		return 0, 0
	}
	elements := max(count(n.shape), 1)
	move := c.price.moving(elements * size(n.typ))
	compute, inputs := c.effort(n)
	return (visits - 1) * (compute + inputs*move), (visits+1)*move + c.price.Task/elements
}

// effort returns that of computing an element of n from what is stored, and how many stored elements are read for it.
// What several operations read is decided for itself: it counts as stored if two visits would be enough to store it.
func (c *chooser) effort(n *node) (compute, reads int) {
	const enough = 1000 // to store anything but tensors of few elements, for which the estimate does not matter
	seen := map[*node]bool{}
	var visit func(n *node)
	visit = func(n *node) {
		switch {
		case kinds[n.what].maps:
			for op, times := range n.expression().Operations() {
				compute += times * c.price.effort(op)
			}
		case !n.is(kindView):
			reads++
			return
		case n.op.(*viewOp).expand: // an element of the caches
			return
		}
		for _, a := range n.args {
			if seen[a] || compute > enough {
				continue
			}
			seen[a] = true
			if _, placed := c.place(a); placed || a.reads > 1 && c.worthStoring(a) {
				if count(a.shape) > 1 {
					reads++
				}
				continue
			}
			visit(a)
		}
	}
	visit(n)
	return compute, reads
}

// worthStoring reports whether two visits are enough to store n.
func (c *chooser) worthStoring(n *node) bool {
	const yes, no answer = 1, 2
	if c.twice[n.number] == 0 {
		c.twice[n.number] = no
		if recompute, store := c.costs(n, 2); recompute > store {
			c.twice[n.number] = yes
		}
	}
	return c.twice[n.number] == yes
}

// function reports whether an operation on floating numbers is computed by a series of others.
func function(op expr.Op) bool { return op != expr.Div && op.Effort() > 1 }

// computeInto gives the result of a call, of which a part of a tensor is the only reader, its place in that tensor, so
// that it is not copied there.
func (c *chooser) computeInto(whole *node, at part, n *node) {
	shape := n.shape
	for n.reads == 1 && n.is(kindView) && n.op.(*viewOp).shape {
		n = n.args[0]
	}
	if _, placed := c.place(n); placed || !n.is(kindCall) || len(n.results) > 0 || n.reads != 1 || n.asked {
		return
	}
	to := c.places[whole.number].within(at.at)
	if strides, ok := reshaped(to.strides, shape, n.shape); ok && isDense(n.shape, strides) {
		c.places[n.number] = place{to.v, to.first, rowMajor(n.shape)}
		c.why[n.number] = decision{reason: "computed into its place"}
	}
}

// scalar reports whether n is one number, made by a function of stored ones, that a kernel would compute for each of
// many elements.
func (c *chooser) scalar(n *node, users []user) bool {
	if count(n.shape) != 1 || c.shared(n, 1).reason == "" || c.reduces[n.number] {
		return false
	}
	return slices.ContainsFunc(users, func(u user) bool { return count(u.by.shape) >= c.price.Many })
}

// readable makes sure that argument i of a call is stored, or is a view of what is stored.
func (c *chooser) readable(o *callOp, i int, a *node) {
	operand := decision{reason: "read by a call"}
	b := a.base()
	if _, placed := c.place(b); c.inMemory(b) || count(b.shape) <= count(a.shape) {
		if !placed { // what if it were stored
			c.places[b.number] = place{v: &value{}, strides: rowMajor(b.shape)}
		}
		at, ok := c.resolve(a)
		if !placed {
			c.places[b.number] = place{}
		}
		if ok && o.takes(i, a.shape, at.strides) {
			c.materialize(b, operand)
			return
		}
	}
	c.materialize(c.copied(a), operand)
}

// shared decides whether n is stored because several kernels would compute it: it has an expensive function, or what it
// is made of is more memory than it is itself.
func (c *chooser) shared(n *node, kernels int) decision {
	bytes, costly := 0, false
	c.walks++
	var visit func(n *node, depth int)
	visit = func(n *node, depth int) {
		if costly || c.seen[n.number] == c.walks {
			return
		}
		c.seen[n.number] = c.walks
		if _, ok := c.place(n); ok {
			bytes += n.bytes()
			return
		}
		switch {
		case kinds[n.what].maps:
			for op := range n.expression().Operations() {
				costly = costly || c.price.expensive(op)
			}
			costly = costly || n.expression().Indexed() && depth > 0
		case n.is(kindReduction):
			costly = true
		case !n.is(kindView): // will be stored
			bytes += n.bytes()
			return
		case n.op.(*viewOp).expand: // each element is read from the caches after the first time
			visit(n.args[0], depth)
			return
		}
		if depth > 16 {
			costly = true
		}
		for _, a := range n.args {
			visit(a, depth+1)
		}
	}
	visit(n, 0)
	recompute, store := kernels*bytes, bytes+n.bytes()*(1+kernels)
	switch {
	case costly:
		return decision{reason: "several kernels need it, and it is expensive"}
	case recompute > store:
		return decision{"several kernels need it", recompute, store, "bytes"}
	}
	return decision{}
}

// reorder stores nodes whose order is free in that of what they are computed from, if all that read them lie so too.
func (c *chooser) reorder(free []*node) {
	free = slices.DeleteFunc(free, func(n *node) bool { return c.of(n) == nil || n.asked })
	if len(free) == 0 {
		return
	}
	other := make([]bool, len(c.nodes)) // read by something that lies otherwise
	for _, n := range slices.Backward(c.order) {
		for _, a := range n.args {
			if s := c.of(a); s != nil && !other[a.number] {
				other[a.number] = c.against(n, s, other)
			}
		}
	}
	for _, n := range free {
		if !other[n.number] {
			c.places[n.number].strides = c.of(n)
		}
	}
}

// against reports whether n would rather read an arg in another order than that of the given strides.
func (c *chooser) against(n *node, strides []int, other []bool) bool {
	switch n.what {
	case kindReduction:
		return false
	case kindView:
		return other[n.number] || n.op.(*viewOp).shape && c.of(n) == nil
	case kindElementwise, kindBarrier:
		own := c.of(n)
		if own == nil || n.asked {
			own = rowMajor(n.shape)
		}
		return opposed(n.shape, own, strides)
	}
	return true
}
