package tensor

// Where tensors are stored in a plan.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/concord-compute/concord/kernels/expr"
)

// value is the memory of a tensor in a plan. Only what executes the plan changes one: its data.
type value struct {
	typ    Type
	n      int
	data   *array // if it has been computed before; else the plan computes it
	have   bool   // computed before the plan
	arg    int    // 1 more than the number of the argument of a compiled function that it is
	number int    // among the values of the plan
	token  bool   // it has no memory: a task that reads it comes after the one that writes it
	id     int    // among those that were computed before, or among others, for people
}

// place is where the elements of a tensor lie in a value: the element of index i is first + Σ strides[j]·i[j].
type place struct {
	v       *value
	first   int
	strides []int
}

// rowMajor returns the strides of dense elements.
func rowMajor(shape []int) []int { return expr.Rows(shape...).Steps }

// within returns the place of part of a tensor that lies at p.
func (p place) within(at []span) place {
	out := place{p.v, p.first, slices.Clone(p.strides)}
	for j, s := range at {
		out.first += s.start * p.strides[j]
		out.strides[j] *= s.step
	}
	return out
}

// flat returns the index in the value of the element that an access names.
func (p place) flat(a access) linear {
	out := linear{offset: p.first}
	for j, l := range a {
		out = out.plus(p.strides[j], l)
	}
	return out.divided()
}

// decision is why a node is stored, and the estimates that decided, if it was a matter of cost: of computing it
// wherever it is needed, and of storing it once and reading it, both in the unit.
type decision struct {
	reason           string
	recompute, store int
	unit             string
}

func (d decision) String() string {
	if d.unit == "" {
		return d.reason
	}
	return fmt.Sprintf("%s: %d %s to compute it again, %d to store it", d.reason, d.recompute, d.unit, d.store)
}

// storage says of each node of a graph whether it is stored, where and why. What is not stored is computed by each
// kernel that needs it.
type storage struct {
	graph
	places  []place    // by the nodes' numbers; without a value where a node is not stored
	why     []decision // of the nodes that are stored
	revisit []bool     // it is stored so that no kernel computes it at each of several visits
	copies  []*node    // the dense copy that is read in place of a node by what cannot read it as it lies
	values  []*value   // that the plan makes, in the order of the decisions
	made    int        // how many values there have been
	before  int        // and how many of them are not made by the plan
}

// newStorage returns the storage in which only what has been computed before is stored.
func newStorage(g graph) *storage {
	s := &storage{graph: g.clone()}
	s.grow()
	memory := map[*array]*value{}
	for _, n := range s.nodes {
		switch {
		case n.data != nil:
			v := memory[n.data]
			if v == nil {
				v = s.value(value{typ: n.typ, data: n.data, have: true, arg: n.data.arg, id: len(memory)})
				memory[n.data] = v
			}
			s.places[n.number] = place{v, n.data.first, n.data.strides}
		case n.given:
			s.places[n.number] = place{v: s.value(value{typ: n.typ}), strides: rowMajor(n.shape)}
		}
	}
	s.before = s.made
	return s
}

// value returns v as a new value with a number of its own.
func (s *storage) value(v value) *value {
	v.number = s.made
	s.made++
	return &v
}

// clone returns a copy whose changes do not reach s.
func (s *storage) clone() *storage {
	c := *s
	c.graph = s.graph.clone()
	c.places, c.why, c.revisit = slices.Clone(s.places), slices.Clone(s.why), slices.Clone(s.revisit)
	c.copies, c.values = slices.Clone(s.copies), slices.Clone(s.values)
	return &c
}

// grow makes room for nodes that were added to the graph.
func (s *storage) grow() {
	more := len(s.nodes) - len(s.places)
	s.places, s.why = append(s.places, make([]place, more)...), append(s.why, make([]decision, more)...)
	s.revisit, s.copies = append(s.revisit, make([]bool, more)...), append(s.copies, make([]*node, more)...)
}

// add adds a node to the graph, which is not stored.
func (s *storage) add(t *Tensor, args ...*node) *node {
	n := s.graph.add(t, args...)
	s.grow()
	return n
}

// place returns where n lies, or will lie, if it is stored.
func (s *storage) place(n *node) (place, bool) {
	at := s.places[n.number]
	return at, at.v != nil
}

// materialize gives n a value of its own, if it has none, so that a task will store it.
func (s *storage) materialize(n *node, why decision) {
	if n.is(kindResult) { // stored by the call
		n = n.args[0]
	}
	for _, x := range append([]*node{n}, n.results...) {
		if s.places[x.number].v != nil {
			continue
		}
		v := s.value(value{typ: x.typ, n: count(x.shape), id: s.made - s.before})
		s.values = append(s.values, v)
		s.places[x.number], s.why[x.number] = place{v: v, strides: rowMajor(x.shape)}, why
	}
}

// resolve returns where n lies, if it is a view of what is stored and not among what a kernel computes itself.
func (s *storage) resolve(n *node, computed ...*node) (place, bool) {
	if at, ok := s.place(n); ok && !slices.Contains(computed, n) {
		return at, true
	}
	if !n.is(kindView) {
		return place{}, false
	}
	o, a := n.op.(*viewOp), n.args[0]
	base, ok := s.resolve(a, computed...)
	if !ok {
		return place{}, false
	}
	if o.shape {
		strides, ok := reshaped(base.strides, a.shape, n.shape)
		if c := s.copies[a.number]; !ok && c != nil && s.places[c.number].v != nil {
			return place{v: s.places[c.number].v, strides: rowMajor(n.shape)}, true
		}
		return place{base.v, base.first, strides}, ok
	}
	var vars variables
	var whole access
	var domain []*variable
	for _, d := range n.shape {
		v := vars.new(d)
		domain, whole = append(domain, v), append(whole, of(v))
	}
	in, ok := o.through(whole, a.shape, n.shape, &vars)
	if !ok {
		return place{}, false
	}
	flat := base.flat(in)
	out := place{v: base.v, first: flat.offset}
	for _, v := range domain {
		stride, ok := flat.step(leaves([]*variable{v}))
		if !ok {
			return place{}, false
		}
		out.strides = append(out.strides, stride)
	}
	return out, true
}

// reshaped returns the strides of shape to for elements that lie with strides in shape from, which has as many
// elements; false if there are none.
func reshaped(strides, from, to []int) ([]int, bool) {
	out := rowMajor(to)
	i, j := 0, 0
	for count(to) > 0 && i < len(from) && j < len(to) {
		// The next dimensions of both with one product.
		i0, j0, n, m := i, j, from[i], to[j]
		for i, j = i+1, j+1; n != m; {
			if n < m {
				n *= from[i]
				i++
			} else {
				m *= to[j]
				j++
			}
		}
		_, stride, ok := even(from[i0:i], strides[i0:i])
		if !ok {
			return nil, false
		}
		for d := j - 1; d >= j0; d-- {
			out[d] = stride
			stride *= to[d]
		}
	}
	return out, true
}

// copied returns the dense node that is read in place of n: n itself, or a copy if n is stored in another way.
func (s *storage) copied(n *node) *node {
	if at, ok := s.place(n); !ok || slices.Equal(at.strides, rowMajor(n.shape)) {
		return n
	}
	if s.copies[n.number] == nil {
		c := s.add(n.Tensor.copied(), n)
		s.copies[n.number] = c
		s.order = append(s.order, c)
	}
	return s.copies[n.number]
}

// String lists what is stored, where and why.
func (s *storage) String() string {
	var b strings.Builder
	for _, n := range s.nodes {
		if at, ok := s.place(n); ok {
			fmt.Fprintf(&b, "%v in %s", n, at)
			if w := s.why[n.number]; w.reason != "" {
				fmt.Fprintf(&b, ": %v", w)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// String names a value: x and a number if it was computed before, a and a number if the plan computes it.
func (v *value) String() string {
	switch {
	case v.have:
		return fmt.Sprintf("x%d", v.id)
	case v.token:
		return fmt.Sprintf("token%d", v.id)
	case v.n == 0:
		return "empty"
	}
	return fmt.Sprintf("a%d", v.id)
}

// String returns the value, the first element, and the strides.
func (p place) String() string {
	if p.first == 0 {
		return fmt.Sprintf("%v%v", p.v, p.strides)
	}
	return fmt.Sprintf("%v+%d%v", p.v, p.first, p.strides)
}
