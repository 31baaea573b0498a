package tensor

// Plans: which tensors are stored, by which tasks, in which order.

import (
	"errors"
	"fmt"
	"slices"

	"github.com/concord-compute/concord/kernels/expr"
)

// task is one step of a plan: a *kernel or a *step.
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

// plan computes tensors.
type plan struct {
	tasks  []task
	values []*value
	places map[*Tensor]place // of the tensors that were asked for
	extern map[*array]*value // computed before
}

// planner makes a plan.
type planner struct {
	fuse   bool
	order  []*Tensor // those to compute, args before what is made of them
	places map[*Tensor]*place
	copies map[*Tensor]*Tensor
	values []*value
	tasks  []task
	made   map[*Tensor]*kernel // the kernel that stores a tensor
	once   map[*Tensor]bool    // what is stored so that reductions do not compute it at each of their visits
	twice  map[*Tensor]bool    // whether two visits are enough to store a tensor
	kept   map[*Tensor]bool    // what was asked for
	state  map[*Tensor]bool    // whether a stored tensor's task has been made
	extern map[*array]*value
	fills  map[*value]task   // the task that fills a value before others store parts of it
	steps  map[*Tensor][]int // how tensors lie that do not lie as rowMajor has them
}

// newPlan plans the computation of tensors that have no mistakes.
func newPlan(ts []*Tensor, fuse bool) (*plan, error) {
	p := &planner{fuse: fuse, places: map[*Tensor]*place{}, copies: map[*Tensor]*Tensor{}, made: map[*Tensor]*kernel{}, once: map[*Tensor]bool{}, twice: map[*Tensor]bool{},
		kept: map[*Tensor]bool{}, state: map[*Tensor]bool{}, extern: map[*array]*value{}, fills: map[*value]task{}, steps: map[*Tensor][]int{}}
	if err := p.visit(ts); err != nil {
		return nil, err
	}
	for _, t := range ts {
		p.kept[t] = true
	}
	p.lie()
	p.reorder(p.choose())
	for _, t := range slices.Clone(p.order) {
		if p.places[t] != nil {
			if err := p.store(t); err != nil {
				return nil, err
			}
		}
	}
	if err := p.sort(); err != nil {
		return nil, err
	}
	if fuse {
		p.joinProducts()
		p.merge()
		if err := p.sort(); err != nil {
			return nil, err
		}
		p.mergeResults()
		if err := p.sort(); err != nil {
			return nil, err
		}
	}
	for _, t := range p.tasks {
		if k, ok := t.(*kernel); ok {
			var exprs []*expr.Expr
			for _, o := range k.outs {
				exprs = append(exprs, o.e)
			}
			k.m, k.params = shared(k.m, k.layout, exprs)
		}
	}
	out := &plan{tasks: p.tasks, values: p.values, places: map[*Tensor]place{}, extern: p.extern}
	for _, t := range ts {
		at, ok := p.resolve(t, nil)
		if !ok {
			return nil, fmt.Errorf("tensor: %s of shape %v was not stored", name(t), t.shape)
		}
		at.v.kept = true
		out.places[t] = at
	}
	return out, nil
}

func name(t *Tensor) string {
	switch {
	case t.title != "":
		return t.title
	case t.op == nil:
		return "data"
	}
	return t.op.String()
}

// visit orders the tensors that have to be computed. Of several args the one with the longest chain of operations behind it comes first, so that
// what is quickly computed does not wait in memory for it. A tensor of a closed scope is an error.
func (p *planner) visit(ts []*Tensor) error {
	depth := map[*Tensor]int{}
	for _, t := range walk(ts, func(t *Tensor) []*Tensor { return t.sources() }) {
		for _, a := range t.sources() {
			depth[t] = max(depth[t], depth[a]+1)
		}
	}
	p.order = walk(ts, func(t *Tensor) []*Tensor {
		list := slices.Clone(t.sources())
		slices.SortStableFunc(list, func(a, b *Tensor) int { return depth[b] - depth[a] })
		return list
	})
	if i := slices.IndexFunc(p.order, func(t *Tensor) bool { return t.scope.closed }); i >= 0 {
		return fmt.Errorf("%w: that of %s of shape %v", ErrScope, name(p.order[i]), p.order[i].shape)
	}
	p.order = slices.DeleteFunc(p.order, func(t *Tensor) bool { return t.data != nil || count(t.shape) == 0 })
	return nil
}

// sources returns the tensors from which t has to be computed.
func (t *Tensor) sources() []*Tensor {
	switch {
	case t.data != nil || count(t.shape) == 0:
		return nil
	case t.divided():
		return []*Tensor{t.op.(*reduceOp).parts}
	case len(t.args) > 1:
		if _, view := t.op.(*viewOp); view { // the others have its gradient
			return t.args[:1]
		}
	}
	return t.args
}

// divided reports whether t is a reduction in two steps.
func (t *Tensor) divided() bool {
	o, ok := t.op.(*reduceOp)
	return ok && o.parts != nil
}

// walk lists tensors and all that they are made of, as args tells, args before what is made of them, in the order of args.
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

// place returns where t lies, or will lie, if it is data or stored.
func (p *planner) place(t *Tensor) (place, bool) {
	if at := p.places[t]; at != nil {
		return *at, true
	}
	switch {
	case t.data != nil:
		v := p.extern[t.data]
		if v == nil {
			v = &value{typ: t.typ, data: t.data, kept: true, have: true}
			p.extern[t.data] = v
		}
		return place{v, t.data.first, t.data.steps}, true
	case count(t.shape) == 0:
		v := &value{typ: t.typ}
		p.values = append(p.values, v)
		p.places[t] = &place{v: v, steps: rowMajor(t.shape)}
		return *p.places[t], true
	}
	return place{}, false
}

// resolve returns where t lies, if it is a view of what is stored and not among what a kernel computes.
func (p *planner) resolve(t *Tensor, inside map[*Tensor]bool) (place, bool) {
	if !inside[t] {
		if at, ok := p.place(t); ok {
			return at, true
		}
	}
	o, ok := t.op.(*viewOp)
	if !ok {
		return place{}, false
	}
	base, ok := p.resolve(t.args[0], inside)
	if !ok {
		return place{}, false
	}
	if o.shape {
		steps, ok := reshaped(base.steps, t.args[0].shape, t.shape)
		if c := p.places[p.copies[t.args[0]]]; !ok && c != nil {
			return place{v: c.v, steps: rowMajor(t.shape)}, true
		}
		return place{base.v, base.first, steps}, ok
	}
	var vars variables
	var whole access
	var domain []*variable
	for _, d := range t.shape {
		v := vars.new(d)
		domain, whole = append(domain, v), append(whole, of(v))
	}
	a, ok := o.through(whole, t.args[0].shape, t.shape, &vars)
	if !ok {
		return place{}, false
	}
	flat := base.flat(a)
	out := place{v: base.v, first: flat.offset}
	for _, v := range domain {
		step, below := 0, (*variable)(nil)
		for _, part := range slices.Backward(leaves([]*variable{v})) {
			if part.extent == 1 {
				continue
			}
			f := flat.factorOf(part)
			if below == nil {
				step = f
			} else if f != flat.factorOf(below)*below.extent {
				return place{}, false
			}
			below = part
		}
		out.steps = append(out.steps, step)
	}
	return out, true
}

// reshaped returns the steps of shape to for elements that lie with steps in shape from, which has as many elements; false if there are none.
func reshaped(steps, from, to []int) ([]int, bool) {
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
		_, step, ok := even(from[i0:i], steps[i0:i])
		if !ok {
			return nil, false
		}
		for d := j - 1; d >= j0; d-- {
			out[d] = step
			step *= to[d]
		}
	}
	return out, true
}

// keep gives t a value of its own, so that a task will store it.
func (p *planner) keep(t *Tensor) {
	if _, ok := p.place(t); ok {
		return
	}
	if _, ok := t.op.(*partOp); ok { // stored by the call
		p.keep(t.args[0])
		return
	}
	p.newValue(t)
	if o, ok := t.op.(*callOp); ok {
		for _, part := range o.parts {
			if p.places[part] == nil {
				p.newValue(part)
			}
		}
	}
}

func (p *planner) newValue(t *Tensor) {
	v := &value{typ: t.typ, n: count(t.shape)}
	p.values = append(p.values, v)
	p.places[t] = &place{v: v, steps: rowMajor(t.shape)}
}

// base returns the tensor that t is a chain of views of.
func base(t *Tensor) *Tensor {
	for t.data == nil {
		if _, ok := t.op.(*viewOp); !ok {
			break
		}
		t = t.args[0]
	}
	return t
}

// solid reports whether a tensor is stored in any case.
func (p *planner) solid(t *Tensor) bool {
	if _, ok := p.place(t); ok {
		return true
	}
	switch t.op.(type) {
	case *callOp, *joinOp, *partOp:
		return true
	}
	return false
}

// store makes the tasks that store a tensor which has a place.
func (p *planner) store(t *Tensor) error {
	if p.state[t] || t.data != nil || count(t.shape) == 0 {
		return nil
	}
	p.state[t] = true
	switch o := t.op.(type) {
	case *partOp:
		return p.store(t.args[0])
	case *callOp:
		s := &step{op: o}
		for i, a := range t.args {
			at, ok := p.resolve(a, nil)
			if !ok || !o.takes(i, a.shape, at.steps) {
				c := p.copied(a)
				if _, ok := p.place(c); !ok {
					p.keep(c)
				}
				if err := p.store(c); err != nil {
					return err
				}
				at = *p.places[c]
			}
			s.in = append(s.in, operand{at, a.typ, a.shape})
		}
		for _, x := range append([]*Tensor{t}, o.parts...) {
			s.out = append(s.out, operand{*p.places[x], x.typ, x.shape})
		}
		p.tasks = append(p.tasks, s)
		return nil
	case *joinOp:
		whole := *p.places[t]
		if o.fill != nil {
			f := filled(t.scope, t.typ, t.shape, o.fill)
			p.state[f] = true
			if err := p.compute(f, whole); err != nil {
				return err
			}
			p.fills[whole.v] = p.tasks[len(p.tasks)-1]
		}
		if done, err := p.side(o.parts, whole); done || err != nil {
			return err
		}
		for _, part := range o.parts {
			x := part.t
			if at, ok := p.resolve(x, nil); ok && at.v == whole.v { // a call computes it there
				if err := p.store(base(x)); err != nil {
					return err
				}
				continue
			}
			if _, ok := p.place(x); ok || base(x) != x {
				x = made(&mapOp{name: "place", e: expr.Input(0, x.typ)}, x.typ, x.shape, x)
			}
			if err := p.compute(x, whole.within(part.at)); err != nil {
				return err
			}
		}
		return nil
	}
	return p.compute(t, *p.places[t])
}

// compute makes the kernel that computes t to a place. What has to be stored before it is stored first.
func (p *planner) compute(t *Tensor, to place) error {
	for {
		k, _, err := p.kernel([]*Tensor{t}, nil, []place{to})
		var s split
		var large tooLarge
		switch {
		case err == nil:
			p.tasks = append(p.tasks, k)
			if p.places[t] != nil {
				p.made[t] = k
			}
			return nil
		case errors.As(err, &s):
			if p.places[s.store] != nil {
				return fmt.Errorf("tensor: the kernel for %s of shape %v cannot be made from %s", name(t), t.shape, name(s.store))
			}
			p.keep(s.store)
			if err := p.store(s.store); err != nil {
				return err
			}
		case errors.As(err, &large):
			cuts := t.sources()
			if large.cut != nil {
				cuts = []*Tensor{large.cut}
			}
			more := false
			for _, a := range cuts {
				if _, ok := p.resolve(a, nil); !ok && a.Len() > 0 {
					more = true
					p.keep(a)
					if err := p.store(a); err != nil {
						return err
					}
				}
			}
			if !more {
				return fmt.Errorf("tensor: %s of shape %v is too large for a kernel: %w", name(t), t.shape, err)
			}
		default:
			return err
		}
	}
}

// sort puts the tasks into an order in which values are written before they are read.
func (p *planner) sort() error {
	writers := map[*value][]task{}
	for _, t := range p.tasks {
		_, out := t.values()
		for _, v := range out {
			writers[v] = append(writers[v], t)
		}
	}
	const visiting, done = 1, 2
	state := map[task]int{}
	var list []task
	var visit func(t task) error
	visit = func(t task) error {
		switch state[t] {
		case visiting:
			return fmt.Errorf("tensor: task %v depends on itself", t)
		case done:
			return nil
		}
		state[t] = visiting
		in, out := t.values()
		for _, v := range in {
			for _, w := range writers[v] {
				if w != t {
					if err := visit(w); err != nil {
						return err
					}
				}
			}
		}
		for _, v := range out {
			if w := p.fills[v]; w != nil && w != t {
				if err := visit(w); err != nil {
					return err
				}
			}
		}
		state[t] = done
		list = append(list, t)
		return nil
	}
	for _, t := range p.tasks {
		if err := visit(t); err != nil {
			return err
		}
	}
	p.tasks = list
	return nil
}
