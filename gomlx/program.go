package gomlx

// A function as parts that are compiled each, with the operations that the host controls between them.

import (
	"bytes"
	"context"
	"maps"
	"reflect"
	"slices"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// constant returns a tensor of data. Where all elements are the same, it is a number in the kernels that use it.
func constant(s *tensor.Scope, raw []byte, shape shapes.Shape) array {
	t, n := types[shape.DType], shape.Size()
	if n == 0 {
		return tensor.Zeros(s, t, shape.Dimensions...)
	}
	if size := len(raw) / n; !bytes.Equal(raw[size:], raw[:len(raw)-size]) {
		return tensor.FromBytes(s, t, raw, shape.Dimensions...)
	}
	one := dtypes.UnsafeAnySliceFromBytes(unsafe.Pointer(unsafe.SliceData(raw)), shape.DType, 1)
	number := reflect.ValueOf(one).Index(0).Interface()
	if half, ok := number.(interface{ Float32() float32 }); ok {
		number = half.Float32()
	}
	return tensor.Full(s, t, number, shape.Dimensions...)
}

// run is one execution on one device.
type run struct {
	ctx     context.Context
	replica *replica
	axes    shapes.AxisBindings // lengths of dynamic axes
	temps   []owned             // of the function that runs
	donated []bool              // of the parameters of the main function, until it runs
}

// owned is a result with memory of its own.
type owned struct {
	memory *runtime.Buffer
	shape  []int
	typ    tensor.Type
}

func (r *run) wrap(o owned) array {
	return tensor.Wrap(r.replica.scope, o.memory, o.typ, o.shape...)
}

// keep returns results as tensors, whose memory ends with the function that runs.
func (r *run) keep(list []owned) []array {
	r.temps = append(r.temps, list...)
	ts := make([]array, len(list))
	for i, o := range list {
		ts[i] = r.wrap(o)
	}
	return ts
}

func free(list []owned) error {
	for _, o := range list {
		if err := o.memory.Close(); err != nil {
			return errors.WithStack(err)
		}
	}
	return nil
}

// program is a function as parts and operations of the host, in the order in which they run. Values are known
// by numbers.
type program struct {
	steps  []any // *part or *hosted
	values int
	result *part // the last step, which computes the results
}

// part is a piece of a function that is compiled as a whole.
type part struct {
	nodes   []*node // in order
	args    []int
	from    []*value // the values of args
	results []int
	to      []*value // the values of results
}

type compiled struct {
	f   *tensor.Func
	err error // the mistake that ended the last trace
}

// hosted is an operation that the host controls.
type hosted struct {
	node    *node
	args    []int
	results []int
}

// prepared returns the program of the function, which replicas on several devices share.
func (f *function) prepared() *program {
	f.prepare.Do(func() { f.program = f.split() })
	return f.program
}

// split puts the nodes that the results need into parts. A value has a level: the number of operations of the
// host, one after the other, that come before it. Part l has the nodes of level l; what needs no operand
// belongs to every part that reads it.
func (f *function) split() *program {
	f.exchange()
	level, free, number := map[*value]int{}, map[*node]bool{}, map[*value]int{}
	needed := map[*node]bool{}
	for _, o := range f.outputs {
		needed[o.node] = true
	}
	for _, n := range slices.Backward(f.nodes) {
		if needed[n] {
			for _, v := range n.in {
				needed[v.node] = true
			}
		}
	}
	given := append(slices.Clone(f.params), f.captured...)
	for i, v := range given {
		number[v] = i
	}
	top := 0
	for _, n := range f.nodes {
		if !needed[n] || n.op == compute.OpTypeParameter {
			continue
		}
		l, isFree := 0, n.host == nil
		for _, v := range n.in {
			l = max(l, level[v])
			isFree = isFree && free[v.node]
		}
		if free[n] = isFree; n.host != nil {
			l++
		}
		for _, v := range n.out {
			level[v] = l
		}
		top = max(top, l)
	}
	for _, o := range f.outputs {
		top = max(top, level[o])
	}
	// computed reports whether a part computes the value: it is neither given nor a result of the host.
	computed := func(v *value) bool { return v.node.function == f && v.node.emit != nil }
	p := &program{values: len(given)}
	numbered := func(v *value) int {
		if _, ok := number[v]; !ok {
			number[v] = p.values
			p.values++
		}
		return number[v]
	}
	for l := 0; l <= top; l++ {
		q := &part{}
		// Values of this level that operations of the host or later parts read.
		wanted := func(v *value) {
			if !slices.Contains(q.to, v) {
				q.to = append(q.to, v)
			}
		}
		var hosts []*node
		for _, n := range f.nodes {
			if !needed[n] || n.op == compute.OpTypeParameter {
				continue
			}
			at := 0
			for _, v := range n.in {
				at = max(at, level[v])
			}
			for _, v := range n.in {
				switch {
				case !computed(v):
				case free[v.node]:
					if n.host != nil && at == l {
						wanted(v)
					}
				case level[v] == l && (n.host != nil || at > l):
					wanted(v)
				}
			}
			if n.host != nil && at == l {
				hosts = append(hosts, n)
			}
		}
		if l < top {
			for _, o := range f.outputs {
				if level[o] == l && computed(o) && !free[o.node] {
					wanted(o)
				}
			}
		} else {
			q.to = f.outputs
		}
		inside := map[*node]bool{}
		var visit func(v *value)
		visit = func(v *value) {
			if !computed(v) || level[v] < l && !free[v.node] {
				if !slices.Contains(q.from, v) {
					q.from = append(q.from, v)
				}
				return
			}
			if !inside[v.node] {
				inside[v.node] = true
				for _, u := range v.node.in {
					visit(u)
				}
			}
		}
		for _, v := range q.to {
			visit(v)
		}
		for _, n := range f.nodes {
			if inside[n] {
				q.nodes = append(q.nodes, n)
			}
		}
		for _, v := range q.from {
			q.args = append(q.args, numbered(v))
		}
		for _, v := range q.to {
			q.results = append(q.results, numbered(v))
		}
		if len(q.to) > 0 {
			p.steps = append(p.steps, q)
		}
		for _, n := range hosts {
			h := &hosted{node: n}
			for _, v := range n.in {
				h.args = append(h.args, numbered(v))
			}
			for _, v := range n.out {
				h.results = append(h.results, numbered(v))
			}
			p.steps = append(p.steps, h)
		}
		p.result = q
	}
	return p
}

// exchange makes a transposed product that nothing else reads a product of exchanged operands, whose elements
// lie in the order in which they are read.
func (f *function) exchange() {
	uses := map[*value]int{}
	for _, n := range f.nodes {
		for _, v := range n.in {
			uses[v]++
		}
	}
	for _, o := range f.outputs {
		uses[o]++
	}
	for _, n := range f.nodes {
		if n.order == nil || uses[n.in[0]] != 1 || n.in[0].node.exchanged == nil || n.in[0].node.function != f {
			continue
		}
		if e, ok := n.in[0].node.exchanged(n.order); ok {
			n.in, n.emit = e.in, e.emit
		}
	}
}

// run computes the function of its parameters and captured values. The caller owns the results.
func (f *function) run(r *run, args []array) (results []owned, err error) {
	p := f.prepared()
	outer, donated := r.temps, r.donated
	r.temps, r.donated = nil, nil
	defer func() {
		if e := free(r.temps); err == nil {
			err = e
		}
		r.temps = outer
	}()
	values := make([]array, p.values)
	copy(values, args)
	var in []array
	for _, s := range p.steps {
		in = in[:0]
		switch s := s.(type) {
		case *part:
			for _, i := range s.args {
				in = append(in, values[i])
			}
			var flags []bool
			for _, i := range s.args {
				flags = append(flags, s == p.result && i < len(donated) && donated[i])
			}
			out, err := s.prepare(r).owned(r, flags, in)
			if err != nil || s == p.result {
				return out, err
			}
			for i, t := range r.keep(out) {
				values[s.results[i]] = t
			}
		case *hosted:
			for _, i := range s.args {
				in = append(in, values[i])
			}
			out, err := s.node.host(r, in)
			if err != nil {
				return nil, errors.WithMessage(err, s.node.op.String())
			}
			for i, j := range s.results {
				values[j] = out[i]
			}
		}
	}
	return nil, errors.Errorf("a function without results")
}

// prepare returns the compiled function for the lengths of dynamic axes.
func (q *part) prepare(r *run) *compiled {
	return r.compiled(q, r.axes.Key(), r.axes, func(tr *trace, args []array) []array {
		have := map[*value]array{}
		for i, v := range q.from {
			have[v] = args[i]
		}
		emitAll(tr, q.nodes, have)
		return pick(have, q.to)
	})
}

// emitAll computes nodes from the values that there are. It panics with the first mistake.
func emitAll(tr *trace, nodes []*node, have map[*value]array) {
	for _, n := range nodes {
		out := n.emit(tr, pick(have, n.in))
		for i, v := range n.out {
			if err := out[i].Err(); err != nil {
				panic(mistake{errors.WithMessage(err, n.op.String())})
			}
			have[v] = out[i]
		}
	}
}

func pick(have map[*value]array, list []*value) []array {
	ts := make([]array, len(list))
	for i, v := range list {
		ts[i] = have[v]
	}
	return ts
}

// inline computes a function without operations of the host from its parameters and captured values.
func (f *function) inline(tr *trace, args []array) []array {
	have := map[*value]array{}
	for i, v := range append(slices.Clone(f.params), f.captured...) {
		have[v] = args[i]
	}
	emitAll(tr, f.prepared().result.nodes, have)
	return pick(have, f.outputs)
}

// hosted reports whether the function has operations that the host controls.
func (f *function) hosted() bool { return len(f.prepared().steps) > 1 }

// compiled returns a function of tensors, of a part or a node with certain lengths of axes, that is traced when it is
// first called.
func (r *run) compiled(of any, key string, axes shapes.AxisBindings,
	f func(tr *trace, args []array) []array) *compiled {
	name := funcKey{of, key}
	if c := r.replica.funcs[name]; c != nil {
		return c
	}
	scope, c := r.replica.scope, &compiled{}
	r.replica.funcs[name] = c
	axes = maps.Clone(axes)
	c.f = tensor.Compile(scope, func(args ...array) (outs []array) {
		c.err = nil
		defer func() {
			p := recover()
			if m, ok := p.(mistake); ok {
				outs, c.err = nil, m.error
			} else if p != nil {
				panic(p)
			}
		}()
		outs = f(&trace{scope: scope, axes: axes}, args)
		for i, o := range outs {
			if slices.Contains(outs[:i], o) {
				outs[i] = o.Copy()
			}
		}
		return outs
	})
	return c
}

// owned calls the function.
func (c *compiled) owned(r *run, donated []bool, args []array) ([]owned, error) {
	c.err = nil // a call that fails before a trace begins has no mistake
	memory, specs, err := c.f.CallOwned(r.ctx, donated, args...)
	list := make([]owned, len(memory))
	for i, m := range memory {
		list[i] = owned{m, specs[i].Shape, specs[i].Type}
	}
	if err != nil && c.err != nil {
		err = c.err
	}
	return list, errors.WithStack(err)
}
