package tensor

// The first pass: how the elements of each tensor lie.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/concord-compute/concord/kernels/expr"
)

// layouts has the strides of the nodes of a graph, by their numbers: nil for those that are row-major. What is not in
// memory has those that it would have if it were stored in the order of what it is computed from. [choose] follows.
type layouts struct {
	in      graph
	strides [][]int
}

// layout finds the strides of all nodes.
func layout(g graph) layouts {
	l := layouts{g, make([][]int, len(g.nodes))}
	for _, n := range g.nodes {
		switch {
		case n.data != nil && !isDense(n.shape, n.data.strides):
			l.strides[n.number] = n.data.strides
		case !n.given:
			if s := l.natural(n); s != nil && !slices.Equal(s, rowMajor(n.shape)) {
				l.strides[n.number] = s
			}
		}
	}
	return l
}

// of returns the strides of a node, nil for row-major ones, as copies have that were added later.
func (l layouts) of(n *node) []int {
	if n.number < len(l.strides) {
		return l.strides[n.number]
	}
	return nil
}

// natural returns the strides that follow from those of the args, or nil for row-major ones.
func (l layouts) natural(n *node) []int {
	switch {
	case n.is(kindView):
		return l.ofView(n)
	case n.is(kindReduction), kinds[n.what].maps && !n.expression().Indexed():
		return l.denseAs(n)
	}
	return nil
}

// ofView is natural for a view.
func (l layouts) ofView(n *node) []int {
	o, a := n.op.(*viewOp), n.args[0]
	s := l.of(a)
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
		if s, ok := reshaped(s, a.shape, n.shape); ok {
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

// denseAs returns the strides of dense elements of n in the order of most of what it is computed from, or nil for
// row-major ones.
func (l layouts) denseAs(n *node) []int {
	if len(n.shape) < 2 || !slices.ContainsFunc(n.args, func(a *node) bool { return l.of(a) != nil }) {
		return nil
	}
	var strides [][]int
	var bytes []int
	for _, a := range n.args {
		s := l.of(a)
		if s == nil {
			s = rowMajor(a.shape)
		}
		strides, bytes = append(strides, s), append(bytes, size(a.typ))
	}
	return denseBy(n.shape, expr.Order(n.shape, strides, bytes))
}

// denseBy returns the strides of dense elements whose dimensions lie in an order.
func denseBy(shape, order []int) []int {
	out, stride := make([]int, len(shape)), 1
	for _, j := range slices.Backward(order) {
		out[j] = stride
		stride *= shape[j]
	}
	return out
}

// opposed reports whether two dimensions lie within each other in one order by strides a and in the other one by
// strides b.
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

// String lists the nodes that are not row-major.
func (l layouts) String() string {
	var b strings.Builder
	for _, n := range l.in.nodes {
		if s := l.of(n); s != nil {
			fmt.Fprintf(&b, "%v strides %v\n", n, s)
		}
	}
	if b.Len() == 0 {
		return "all are row-major\n"
	}
	return b.String()
}
