package tensor

// The third pass: a task for each tensor that is stored.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/concord-compute/concord/kernels/expr"
)

// task is one step of a plan: a *kernel or a *step, or of a collective a start or a finish.
type task interface {
	fmt.Stringer
	// values returns the values that the task reads and writes.
	values() (in, out []*value)
}

// step is a call of kernels of the catalog.
type step struct {
	op  *callOp
	in  []operand
	out []operand
}

// operand is a tensor of a step: where it lies, and its type and shape.
type operand struct {
	place
	typ   Type
	shape []int
}

func (s *step) String() string { return s.op.String() }

func (s *step) values() (in, out []*value) {
	for _, o := range s.in {
		in = append(in, o.v)
	}
	for _, o := range s.out {
		out = append(out, o.v)
	}
	return in, out
}

// taskList has the tasks that store what a storage says. [schedule] and [fuse] follow.
type taskList struct {
	*storage
	tasks []task
}

// lower makes a kernel or a call for each node that is stored. Where no kernel can be made, it stores more than was
// chosen.
func lower(chosen *storage) (taskList, error) {
	l := &lowering{taskList{storage: chosen.clone()}, make([]bool, len(chosen.nodes))}
	for _, n := range chosen.order {
		if _, ok := l.place(n); ok {
			if err := l.task(n); err != nil {
				return taskList{}, err
			}
		}
	}
	l.ordered()
	return l.taskList, nil
}

// lowering is the state of lower.
type lowering struct {
	taskList
	done []bool // by the number of a node: its task has been made
}

// task makes the tasks that store a node which has a place.
func (l *lowering) task(n *node) error {
	l.done = append(l.done, make([]bool, len(l.nodes)-len(l.done))...)
	if l.done[n.number] || n.given {
		return nil
	}
	l.done[n.number] = true
	switch n.what {
	case kindResult:
		return l.task(n.args[0])
	case kindCall:
		return l.call(n.op.(*callOp), n)
	case kindJoin:
		return l.join(n.op.(*joinOp), n)
	}
	_, err := l.compute(n, l.places[n.number])
	return err
}

// call makes the step of a call.
func (l *lowering) call(o *callOp, n *node) error {
	s := &step{op: o}
	for i, a := range n.args {
		at, ok := l.resolve(a)
		if !ok || !o.takes(i, a.shape, at.strides) {
			c := l.copied(a)
			if err := l.first(c, "read by a call"); err != nil {
				return err
			}
			at = l.places[c.number]
		}
		s.in = append(s.in, operand{at, a.typ, a.shape})
	}
	for _, x := range append([]*node{n}, n.results...) {
		s.out = append(s.out, operand{l.places[x.number], x.typ, x.shape})
	}
	if o.exchange != nil {
		l.exchange(s, n.born)
		return nil
	}
	l.tasks = append(l.tasks, s)
	return nil
}

// join makes the tasks that compute parts into their places.
func (l *lowering) join(o *joinOp, n *node) error {
	whole := l.places[n.number]
	if o.fill != nil {
		k, err := l.compute(l.add(filled(n.scope, n.typ, n.shape, o.fill)), whole)
		if err != nil {
			return err
		}
		k.fills = true
	}
	if l.sideBySide(o, n, whole) {
		return nil
	}
	for i, part := range o.parts {
		x := n.args[i]
		if at, ok := l.resolve(x); ok && at.v == whole.v { // a call computes it there
			if err := l.task(x.base()); err != nil {
				return err
			}
			continue
		}
		if _, ok := l.place(x); ok || x.base() != x {
			x = l.add(made(&mapOp{name: "place", e: expr.Input(0, x.typ)}, x.typ, x.shape, x.Tensor), x)
		}
		if _, err := l.compute(x, whole.within(part.at)); err != nil {
			return err
		}
	}
	return nil
}

// mostSide is how many parts one kernel computes.
const mostSide = 4

// sideBySide makes one kernel for a few parts of one shape, if they are made of the same nodes, which it then reads
// once. It reports whether it has.
func (l *lowering) sideBySide(o *joinOp, n *node, whole place) bool {
	if len(n.args) < 2 || len(n.args) > mostSide {
		return false
	}
	var at []access
	var places []place
	first := n.args[0]
	for i, x := range n.args {
		both := func(a *node) bool { return count(a.shape) > 1 && slices.Contains(first.args, a) }
		if _, ok := l.place(x); ok || !kinds[x.what].maps || slices.Contains(n.args[:i], x) ||
			!slices.ContainsFunc(x.args, both) || !slices.Equal(x.shape, first.shape) {
			return false
		}
		var vars variables
		var all access
		for _, d := range x.shape {
			all = append(all, of(vars.new(d)))
		}
		at, places = append(at, all), append(places, whole.within(o.parts[i].at))
	}
	a := l.attempt(n.args, at, places)
	if a.kernel == nil { // they are computed one by one, which says what has to be stored or is wrong
		return false
	}
	l.tasks = append(l.tasks, a.kernel)
	return true
}

// first stores a node before what needs it.
func (l *lowering) first(n *node, reason string) error {
	l.materialize(n, decision{reason: reason})
	return l.task(n)
}

// compute makes the kernel that computes n to a place. What has to be stored before it is stored first.
func (l *lowering) compute(n *node, to place) (*kernel, error) {
	for {
		a := l.attempt([]*node{n}, nil, []place{to})
		switch {
		case a.kernel != nil:
			l.tasks = append(l.tasks, a.kernel)
			return a.kernel, nil
		case len(a.first) == 0 && a.reason != "":
			return nil, fmt.Errorf("tensor: %s of shape %v is too large for a kernel: %w", name(n.Tensor), n.shape, a.err)
		case len(a.first) == 0:
			return nil, a.err
		}
		for _, x := range a.first {
			if _, ok := l.place(x); ok && a.err == nil {
				return nil, fmt.Errorf("tensor: the kernel for %s of shape %v cannot be made from %s",
					name(n.Tensor), n.shape, name(x.Tensor))
			}
			if err := l.first(x, a.reason); err != nil {
				return nil, err
			}
		}
	}
}

// String lists the tasks with what they read and write.
func (p taskList) String() string {
	var b strings.Builder
	for i, t := range p.tasks {
		in, out := t.values()
		fmt.Fprintf(&b, "%d %v:", i, t)
		for j, list := range [][]*value{in, out} {
			b.WriteString([]string{" reads", " stores"}[j])
			for k, v := range list {
				if !slices.Contains(list[:k], v) {
					b.WriteString(" " + v.String())
				}
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
