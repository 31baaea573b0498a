package tensor

// The graph of a plan: the tensors that have to be computed, numbered.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// node is a tensor in the graph of a plan. Passes never change it; what they find out about nodes they keep in slices
// by their numbers.
type node struct {
	*Tensor
	number  int
	what    kind
	given   bool    // it has memory before the plan begins, or no elements
	args    []*node // what it is computed from; none if it is given
	results []*node // of a call, those after the first
	reads   int     // how many operations read it
	asked   bool    // it is a result of the plan
}

// graph has the nodes of a plan, numbered so that args come before what is made of them, but for the results of calls
// that nothing reads. It is the first value of the planner; [layout] follows.
type graph struct {
	nodes   []*node
	order   []*node // those to compute, args before what is made of them
	results []*node // those that were asked for, in the order of the question
	costs   Costs   // of the device, when the graph was made: all passes decide by the same ones
}

// newGraph returns the graph of tensors without mistakes. Of several args the one with the longest chain of operations
// behind it comes first, so that what is quickly computed does not wait in memory for it. A tensor of a closed scope is
// an error.
func newGraph(ts []*Tensor) (graph, error) {
	depth := map[*Tensor]int{}
	for _, t := range walk(ts, (*Tensor).sources) {
		for _, a := range t.sources() {
			depth[t] = max(depth[t], depth[a]+1)
		}
	}
	order := walk(ts, func(t *Tensor) []*Tensor {
		list := t.sources()
		if len(list) > 1 {
			list = slices.Clone(list)
			slices.SortStableFunc(list, func(a, b *Tensor) int { return cmp.Compare(depth[b], depth[a]) })
		}
		return list
	})
	if i := slices.IndexFunc(order, func(t *Tensor) bool { return t.scope.closed }); i >= 0 {
		return graph{}, fmt.Errorf("%w: that of %s of shape %v", ErrScope, name(order[i]), order[i].shape)
	}
	var g graph
	of := make(map[*Tensor]*node, len(order))
	for _, t := range order {
		n := g.add(t)
		for _, a := range t.sources() {
			n.args = append(n.args, of[a])
		}
		of[t] = n
		if n.given {
			continue
		}
		g.order = append(g.order, n)
		for _, a := range n.args {
			a.reads++
		}
	}
	for _, n := range g.order {
		if n.is(kindCall) {
			for _, r := range n.op.(*callOp).parts {
				if of[r] == nil {
					of[r] = g.add(r, n)
				}
				n.results = append(n.results, of[r])
			}
		}
	}
	for _, t := range ts {
		of[t].asked = true
		g.results = append(g.results, of[t])
	}
	if len(g.nodes) > 0 {
		g.costs = costsOf(g.nodes[0].scope.engine.device)
	}
	return g, nil
}

// clone returns a copy to which nodes can be added.
func (g graph) clone() graph {
	return graph{slices.Clip(g.nodes), slices.Clip(g.order), g.results, g.costs}
}

// add returns a new node.
func (g *graph) add(t *Tensor, args ...*node) *node {
	n := &node{Tensor: t, number: len(g.nodes), what: t.kind(), given: t.data != nil || count(t.shape) == 0, args: args}
	g.nodes = append(g.nodes, n)
	return n
}

// is reports whether n has to be computed by an operation of a kind.
func (n *node) is(k kind) bool { return !n.given && n.what == k }

// base returns the node that n is a chain of views of.
func (n *node) base() *node {
	for n.is(kindView) {
		n = n.args[0]
	}
	return n
}

// bytes returns how much memory the elements of n take.
func (n *node) bytes() int { return count(n.shape) * size(n.typ) }

// String returns the number, the operation and the type of n.
func (n *node) String() string {
	return fmt.Sprintf("%%%d %s %v", n.number, name(n.Tensor), Spec{n.typ, n.shape})
}

// String lists the nodes with their args.
func (g graph) String() string {
	var b strings.Builder
	for _, n := range g.nodes {
		fmt.Fprintf(&b, "%v", n)
		for _, a := range n.args {
			fmt.Fprintf(&b, " %%%d", a.number)
		}
		if n.asked {
			b.WriteString(" (result)")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// name returns what computes t, for people.
func name(t *Tensor) string {
	switch {
	case t.title != "":
		return t.title
	case t.op == nil:
		return "data"
	}
	return t.op.String()
}

// sources returns the tensors from which t has to be computed.
func (t *Tensor) sources() []*Tensor {
	switch {
	case t.data != nil || count(t.shape) == 0:
		return nil
	case t.divided():
		return []*Tensor{t.op.(*reduceOp).parts}
	case len(t.args) > 1 && t.kind() == kindView: // the others have its gradient
		return t.args[:1]
	}
	return t.args
}

// divided reports whether t is a reduction in two steps.
func (t *Tensor) divided() bool {
	o, ok := t.op.(*reduceOp)
	return ok && o.parts != nil
}

// walk lists tensors and all that they are made of, as args tells, args before what is made of them, in the order of
// args.
func walk(ts []*Tensor, args func(t *Tensor) []*Tensor) []*Tensor {
	var order []*Tensor
	done := map[*Tensor]bool{}
	stack := slices.Clone(ts)
	slices.Reverse(stack)
	for len(stack) > 0 {
		t, n := stack[len(stack)-1], len(stack)
		if !done[t] {
			for _, a := range slices.Backward(args(t)) {
				if !done[a] {
					stack = append(stack, a)
				}
			}
		}
		if len(stack) > n {
			continue
		}
		stack = stack[:n-1]
		if !done[t] {
			done[t] = true
			order = append(order, t)
		}
	}
	return order
}
