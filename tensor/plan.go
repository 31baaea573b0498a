package tensor

// Plans. The planner is a chain of passes, each of which makes a new value of earlier ones and changes none of them:
//
//	newGraph   which tensors have to be computed, numbered           graph
//	layout     how the elements of each lie                          layouts
//	choose     which are stored, where and why                       *storage
//	lower      a kernel or a call for each                           taskList
//	schedule   the order of the tasks                                taskList
//	fuse       tasks in place of several (with schedule in between)  taskList
//	allocate   what shares memory, and where it lies                 *allocation

import (
	"fmt"
	"slices"

	"github.com/concord-compute/concord/kernels/expr"
)

// plan computes tensors.
type plan struct {
	tasks   []task
	values  []*value // that the tasks write
	results []place  // of the tensors that were asked for
	extern  []*value // computed before, which tasks read or which are results
	kept    []bool   // by the numbers of values: it is needed after the plan
	costs   Costs    // by which it was decided
}

// keeps reports whether a value has to stay after its last task.
func (p *plan) keeps(v *value) bool { return v.have || p.kept[v.number] }

// newPlan plans the computation of tensors that have no mistakes. Its caller allocates. The value of each pass is told
// to show, unless that is nil.
func newPlan(ts []*Tensor, fused bool, show func(pass string, value fmt.Stringer)) (*plan, error) {
	if show == nil {
		show = func(string, fmt.Stringer) {}
	}
	g, err := newGraph(ts)
	if err != nil {
		return nil, err
	}
	show("graph", g)
	l := layout(g)
	show("layout", l)
	c := choose(g, l, fused)
	show("choose", c)
	p, err := lower(c)
	if err != nil {
		return nil, err
	}
	show("lower", p)
	if p, err = schedule(p); err != nil {
		return nil, err
	}
	show("schedule", p)
	if fused {
		for _, pass := range []func(p taskList) taskList{fuseEpilogues, fuseReaders(l), fuseLoops} {
			if p, err = schedule(pass(p)); err != nil {
				return nil, err
			}
		}
		show("fuse", p)
	}
	return p.finished()
}

// finished returns the plan of tasks.
func (p taskList) finished() (*plan, error) {
	out := &plan{tasks: slices.Clone(p.tasks), values: p.values, kept: make([]bool, p.made),
		costs: p.graph.costs}
	for i, t := range p.tasks {
		if k, ok := t.(*kernel); ok {
			k := *k
			var exprs []*expr.Expr
			for _, o := range k.outs {
				exprs = append(exprs, o.e)
			}
			k.m, k.params = shared(k.m, k.layout, exprs)
			out.tasks[i] = &k
		}
		in, _ := t.values()
		out.reads(in...)
	}
	for _, n := range p.results {
		at, ok := p.resolve(n)
		if !ok {
			return nil, fmt.Errorf("tensor: %s of shape %v was not stored", name(n.Tensor), n.shape)
		}
		out.kept[at.v.number] = true
		out.results = append(out.results, at)
		out.reads(at.v)
	}
	return out, nil
}

// reads notes which of some values were computed before.
func (p *plan) reads(values ...*value) {
	for _, v := range values {
		if v.have && !slices.Contains(p.extern, v) {
			p.extern = append(p.extern, v)
		}
	}
}
