package gomlx

// Functions that are called, loops and branches, whose conditions the host reads, and sorting by a function
// that compares.

import (
	"cmp"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/tensor"
)

// callee returns a function of the same builder that has returned.
func (f *function) callee(what string, g compute.Function) (*function, error) {
	c, ok := g.(*function)
	if !ok || c == nil || c.builder != f.builder {
		return nil, errors.Errorf("%s: a %T of another builder", what, g)
	}
	if !c.returned {
		return nil, errors.Errorf("%s: function %q has not returned", what, c.name)
	}
	return c, nil
}

// closure returns a closure of this function, or of one around it, that has returned. GoMLX makes all closures
// those of the main function.
func (f *function) closure(what string, g compute.Function) (*function, error) {
	c, err := f.callee(what, g)
	if err != nil {
		return nil, err
	}
	for p := f; p != nil; p = p.parent {
		if c.parent == p {
			return c, nil
		}
	}
	return nil, errors.Errorf("%s: it has to be a closure of the function that uses it", what)
}

// check returns an error if a list of values has other shapes than these.
func check(what string, list, want []*value) error {
	if len(list) != len(want) {
		return errors.Errorf("%s: %d values for %d", what, len(list), len(want))
	}
	for i, v := range list {
		if v.shape.DType != want[i].shape.DType || !slices.Equal(v.shape.Dimensions, want[i].shape.Dimensions) {
			return errors.Errorf("%s: value %d is of shape %s, not %s", what, i, v.shape, want[i].shape)
		}
	}
	return nil
}

// predicate returns an error if a list of values is not one truth.
func predicate(what string, list []*value) error {
	if len(list) != 1 || list[0].shape.DType != dtypes.Bool || list[0].shape.Rank() != 0 {
		return errors.Errorf("%s has to be one Bool", what)
	}
	return nil
}

func shapesOf(list []*value) []shapes.Shape {
	var s []shapes.Shape
	for _, v := range list {
		s = append(s, v.shape)
	}
	return s
}

// Call returns the results of a function with a name.
func (f *function) Call(g compute.Function, inputs ...compute.Value) ([]compute.Value, error) {
	in, err := f.operands(compute.OpTypeCall, inputs...)
	if err != nil {
		return nil, err
	}
	c, err := f.callee("Call", g)
	if err != nil {
		return nil, err
	}
	if c.parent != nil {
		return nil, errors.Errorf("Call of a closure")
	}
	if err := check("Call", in, c.params); err != nil {
		return nil, err
	}
	n := &node{op: compute.OpTypeCall, in: in}
	if c.hosted() {
		n.host = func(r *run, in []array) ([]array, error) {
			out, err := c.run(r, in)
			return r.keep(out), err
		}
	} else {
		n.emit = c.inline
	}
	return f.several(n, shapesOf(c.outputs)...)
}

// enclosed returns the values that closures capture as operands, behind others, and for each closure a function
// that returns its arguments from the operands of the node.
func (f *function) enclosed(in []*value,
	closures ...*function) ([]*value, []func(params, in []array) []array, error) {
	in = slices.Clone(in)
	var arguments []func(params, in []array) []array
	for _, c := range closures {
		var at []int
		for _, v := range c.captured {
			if err := f.capture(v); err != nil {
				return nil, nil, err
			}
			at, in = append(at, len(in)), append(in, v)
		}
		arguments = append(arguments, func(params, in []array) []array {
			args := slices.Clone(params)
			for _, i := range at {
				args = append(args, in[i])
			}
			return args
		})
	}
	return in, arguments, nil
}

// decide runs a function whose result is one Bool, and reads it.
func (f *function) decide(r *run, args []array) (bool, error) {
	out, err := f.run(r, args)
	if err != nil {
		return false, err
	}
	yes, err := tensor.Read[bool](r.ctx, r.wrap(out[0]))
	if e := free(out); err == nil {
		err = e
	}
	return err == nil && yes[0], errors.WithStack(err)
}

// While returns the state after body has been applied to it as long as cond is true of it.
func (f *function) While(cond, body compute.Function, initialState ...compute.Value) ([]compute.Value, error) {
	state, err := f.operands(compute.OpTypeWhile, initialState...)
	if err != nil {
		return nil, err
	}
	if len(state) == 0 {
		return nil, errors.Errorf("While without a state")
	}
	test, err := f.closure("While: cond", cond)
	if err != nil {
		return nil, err
	}
	step, err := f.closure("While: body", body)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(
		check("While: cond", state, test.params),
		check("While: body", state, step.params),
		check("While: results of body", step.outputs, state),
		predicate("While: the result of cond", test.outputs),
	); err != nil {
		return nil, err
	}
	in, arguments, err := f.enclosed(state, test, step)
	if err != nil {
		return nil, err
	}
	n := len(state)
	return f.several(&node{op: compute.OpTypeWhile, in: in,
		host: func(r *run, in []array) ([]array, error) {
			now := in[:n]
			var mine []owned // the memory of now
			for {
				again, err := test.decide(r, arguments[0](now, in))
				if err != nil {
					_ = free(mine) // the first error says what is wrong
					return nil, err
				}
				if !again {
					break
				}
				next, err := step.run(r, arguments[1](now, in))
				if err == nil {
					err = free(mine)
				}
				if err != nil {
					return nil, err
				}
				mine, now = next, nil
				for _, o := range next {
					now = append(now, r.wrap(o))
				}
			}
			r.temps = append(r.temps, mine...)
			return now, nil
		}}, shapesOf(state)...)
}

// If returns the results of one of two branches.
func (f *function) If(pred compute.Value, trueBranch, falseBranch compute.Function) ([]compute.Value, error) {
	in, err := f.operands(compute.OpTypeIf, pred)
	if err != nil {
		return nil, err
	}
	yes, err := f.closure("If: the true branch", trueBranch)
	if err != nil {
		return nil, err
	}
	no, err := f.closure("If: the false branch", falseBranch)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(
		predicate("If: the condition", in),
		check("If: the true branch", yes.params, nil),
		check("If: the false branch", no.params, nil),
		check("If: results of the branches", no.outputs, yes.outputs),
	); err != nil {
		return nil, err
	}
	in, arguments, err := f.enclosed(in, yes, no)
	if err != nil {
		return nil, err
	}
	return f.several(&node{
		op: compute.OpTypeIf, in: in, host: func(r *run, in []array) ([]array, error) {
			which, err := tensor.Read[bool](r.ctx, in[0])
			if err != nil {
				return nil, errors.WithStack(err)
			}
			branch, args := no, arguments[1]
			if which[0] {
				branch, args = yes, arguments[0]
			}
			out, err := branch.run(r, args(nil, in))
			return r.keep(out), err
		}}, shapesOf(yes.outputs)...)
}

// Sort returns arrays of one shape in the order that comparator gives to their elements along an axis. Its
// parameters are an element and another one of each array in turn, and its result whether the first ones come
// before the others.
func (f *function) Sort(comparator compute.Function, axis int, isStable bool,
	inputs ...compute.Value) ([]compute.Value, error) {
	list, err := f.operands(compute.OpTypeSort, inputs...)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.Errorf("Sort of nothing")
	}
	c, err := f.closure("Sort: comparator", comparator)
	if err != nil {
		return nil, err
	}
	if err := predicate("Sort: the result of comparator", c.outputs); err != nil {
		return nil, err
	}
	if axis, err = axisOf(axis, list[0].shape); err != nil {
		return nil, errors.WithMessage(err, "Sort")
	}
	if len(c.params) != 2*len(list) {
		return nil, errors.Errorf("Sort: comparator has %d parameters for %d arrays", len(c.params), len(list))
	}
	for i, p := range c.params {
		if v := list[i/2]; p.shape.Rank() != 0 || p.shape.DType != v.shape.DType ||
			!slices.Equal(v.shape.Dimensions, list[0].shape.Dimensions) {
			return nil, errors.Errorf("Sort: parameter %d of comparator is of shape %s for an array of %s", i, p.shape, v.shape)
		}
	}
	if c.hosted() {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "Sort with a comparator that has loops or branches")
	}
	in, arguments, err := f.enclosed(list, c)
	if err != nil {
		return nil, err
	}
	n := len(list)
	by, descending, plain := c.ordering(isStable)
	return f.several(&node{op: compute.OpTypeSort, in: in, emit: func(tr *trace, in []array) []array {
		if !plain {
			before := func(pairs []array) array { return c.inline(tr, arguments[0](pairs, in))[0] }
			return network(in[:n], axis, before)
		}
		out := make([]array, n)
		var order array
		out[by], order = in[by].Sort(axis, descending)
		for i, x := range in[:n] {
			if i != by {
				out[i] = x.TakeAlong(axis, order)
			}
		}
		return out
	}}, shapesOf(list)...)
}

// ordering returns the number of the array whose elements alone a comparator compares, and whether the largest
// comes first, if it does nothing else.
func (f *function) ordering(stable bool) (by int, descending, plain bool) {
	v := f.outputs[0]
	switch v.node.op {
	case compute.OpTypeLessThan:
	case compute.OpTypeGreaterThan:
		descending = true
	case compute.OpTypeLessOrEqual, compute.OpTypeGreaterOrEqual:
		if descending = v.node.op == compute.OpTypeGreaterOrEqual; stable {
			return 0, false, false
		}
	default:
		return 0, false, false
	}
	a, b := slices.Index(f.params, v.node.in[0]), slices.Index(f.params, v.node.in[1])
	if a < 0 || b < 0 || a/2 != b/2 || a == b || f.params[a].shape.DType == dtypes.Bool {
		return 0, false, false
	}
	if a > b {
		descending = !descending
	}
	return a / 2, descending, true
}

// network sorts by a bitonic network, of which each layer exchanges all pairs of elements at one distance.
// Equal elements keep their order, as their first places are compared too, by which those beyond the end, which
// make the length a power of two, come last.
func network(list []array, axis int, before func(pairs []array) array) []array {
	n := list[0].Dim(axis)
	if n < 2 || list[0].Len() == 0 {
		return list
	}
	length := 1
	for length < n {
		length *= 2
	}
	s, shape := list[0].Scope(), list[0].Shape()
	order := append(others(len(shape), axis), axis)
	rows := list[0].Len() / n
	var columns []array
	for _, x := range list {
		x = x.Permute(order...).Reshape(rows, n)
		if length > n {
			x = tensor.Concat(1, x, tensor.Zeros(s, x.Type(), rows, length-n))
		}
		columns = append(columns, x)
	}
	columns = append(columns, counted(s, tensor.I64, 1, []int{rows, length}))
	less := func(a, b []array) array {
		last := len(a) - 1
		var ab, ba []array
		for i := range last {
			ab, ba = append(ab, a[i], b[i]), append(ba, b[i], a[i])
		}
		earlier, in, other := a[last].Lt(b[last]), a[last].Lt(n), b[last].Lt(n)
		compared := before(ab).Or(before(ba).Not().And(earlier))
		return tensor.Where(in.And(other), compared, earlier)
	}
	for block := 2; block <= length; block *= 2 {
		for distance := block / 2; distance >= 1; distance /= 2 {
			pairs := length / (2 * distance)
			var a, b []array
			for _, x := range columns {
				x = x.Reshape(rows, pairs, 2, distance)
				a, b = append(a, x.Index(2, 0)), append(b, x.Index(2, 1))
			}
			up := counted(s, tensor.I64, 0, []int{pairs, 1}).Mul(2 * distance).And(block).Eq(0)
			exchange := tensor.Where(up, less(b, a), less(a, b))
			for i := range columns {
				first, second := tensor.Where(exchange, b[i], a[i]), tensor.Where(exchange, a[i], b[i])
				columns[i] = tensor.Stack(2, first, second).Reshape(rows, length)
			}
		}
	}
	dims, back := dimsAt(shape, order), inverse(order)
	out := make([]array, len(list))
	for i := range out {
		out[i] = columns[i].Narrow(1, 0, n).Reshape(dims...).Permute(back...)
	}
	return out
}
