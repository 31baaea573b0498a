package nn

// Model, a network with values for its parameters.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/concord-compute/concord/tensor"
)

// Model is a network on a device, with its parameters and running statistics. It is safe for concurrent use
// once it is built, except while it is trained.
type Model struct {
	In Spec // an example

	scope  *tensor.Scope
	net    Layer // a Sequence, or stages
	typ    tensor.Type
	params []Param
	states []Param
	rows   []row
	split  bool // members have parts of parameters
	values values

	mu      sync.Mutex   // held by Predict, since the next call but one of predict overwrites a result
	predict *tensor.Func // params, states, examples[, lengths] -> results
	mistake error        // of the network when predict is traced
}

// Spec is the type and the shape of an example.
type Spec = tensor.Spec

// values are all parameters and all running statistics, each in one tensor, and the scope that they are computed in.
type values struct {
	scope          *tensor.Scope
	params, states *tensor.Tensor
}

// Build makes a network of layers for examples of the type and shape in, and the first values of its parameters from
// a seed. Parameters are of type F64 if the examples are, else of F32. Mistakes of layers match [ErrConfig] or an
// error of package tensor, and say which layer it is. The model ends with the scope. On a scope of a group's member
// all members build the network, which begins with the values of rank 0; a member's part of a parameter that they
// divide is the part of what one device would have from the seed of rank 0.
func Build(ctx context.Context, s *tensor.Scope, seed uint64, in Spec, layers ...Layer) (*Model, error) {
	return assemble(ctx, s, seed, in, layers, 0)
}

// assemble builds a network, of stages that compute so many parts if there are any.
func assemble(ctx context.Context, s *tensor.Scope, seed uint64, in Spec, layers Sequence, parts int) (*Model, error) {
	layers = slices.Clone(layers)
	m := &Model{In: Spec{Type: in.Type, Shape: slices.Clone(in.Shape)}, scope: s, net: layers, typ: tensor.F32}
	if parts > 0 {
		m.net = stages{layers, parts}
	}
	if in.Type == tensor.F64 {
		m.typ = tensor.F64
	}
	if len(layers) == 0 {
		return nil, fmt.Errorf("%w: a network without layers", ErrConfig)
	}
	work := s.Scope()
	defer work.Close()
	l := &plan{inits: map[string]Init{}}
	p := &Pass{Training: true, scope: work, typ: m.typ, seed: tensor.From(work, []uint64{0}),
		next: map[string]*tensor.Tensor{}, plan: l}
	x := tensor.Zeros(work, in.Type, append([]int{1}, in.Shape...)...)
	if x.Err() != nil {
		return nil, fmt.Errorf("nn: examples %v: %w", in, x.Err())
	}
	y := m.apply(p, x)
	if p.err == nil && y.Err() != nil {
		p.err = y.Err()
	}
	if p.err == nil && (y.Rank() < 1 || y.Dim(0) != 1) {
		p.Fail(y, "a result of shape %v for one example, whose first dimension has to be 1", y.Shape())
	}
	if p.err != nil {
		return nil, p.err
	}
	m.params, m.states, m.rows = l.params, l.states, l.rows
	if m.split = isDivided(m.params) || isDivided(m.states); m.split {
		list, err := tensor.Read[uint64](ctx, tensor.From(work, []uint64{seed}).Broadcast(0))
		if err != nil {
			return nil, err
		}
		seed = list[0]
	}
	first := func(list []Param) (*tensor.Tensor, error) {
		var parts []*tensor.Tensor
		for i, v := range whole(list) {
			in, out := fans(v.Shape)
			draw := func(s *tensor.Scope) *tensor.Tensor {
				x := l.inits[v.Name](s, mixed(seed, uint64(i)), m.typ, in, out, v.Shape...).Cast(m.typ).Expand(v.Shape...)
				return list[i].of(x, s.Rank())
			}
			if list[i].Whole == nil {
				parts = append(parts, draw(work).Flatten())
				continue
			}
			one, err := list[i].alone(ctx, work, m.typ, draw)
			if err != nil {
				return nil, err
			}
			parts = append(parts, one.Flatten())
		}
		row := together(work, m.typ, parts)
		return merged(list, row, common(list, row).Broadcast(0)), nil
	}
	params, err := first(m.params)
	if err != nil {
		return nil, err
	}
	states, err := first(m.states)
	if err != nil {
		return nil, err
	}
	if err := m.set(ctx, params, states); err != nil {
		return nil, err
	}
	m.predict = tensor.Compile(s, func(a ...*tensor.Tensor) []*tensor.Tensor {
		p := m.pass(a[0], a[1], nil)
		if len(a) > 3 {
			p.Lengths = a[3]
		}
		y := m.apply(p, a[2])
		if m.mistake = p.err; p.err != nil {
			return nil
		}
		return []*tensor.Tensor{y}
	})
	return m, nil
}

// apply applies the network.
func (m *Model) apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	y := m.net.Apply(p, x)
	if p.cut != nil {
		return p.Fail(y, "columns that members divide, without rows behind them")
	}
	return y
}

// mixed returns a seed made of one and a number (SplitMix64).
func mixed(seed, i uint64) uint64 {
	z := seed + (i+1)*0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// together returns rows as one tensor.
func together(s *tensor.Scope, t tensor.Type, parts []*tensor.Tensor) *tensor.Tensor {
	if len(parts) == 0 {
		return tensor.Zeros(s, t, 0)
	}
	return tensor.Concat(0, parts...)
}

// named returns views of all values by their names.
func (m *Model) named(params, states *tensor.Tensor) map[string]*tensor.Tensor {
	of := map[string]*tensor.Tensor{}
	named(of, m.params, params)
	named(of, m.states, states)
	return of
}

// named adds views of the values in a row by their names.
func named(to map[string]*tensor.Tensor, list []Param, row *tensor.Tensor) {
	for _, v := range list {
		to[v.Name] = row.Narrow(0, v.First, v.Len()).Reshape(v.Shape...)
	}
}

// pass returns a pass with given values.
func (m *Model) pass(params, states, seed *tensor.Tensor) *Pass {
	p := NewPass(m.named(params, states), seed)
	p.typ, p.scope = m.typ, params.Scope()
	return p
}

// gradients returns the derivatives of a pass's loss with respect to each parameter, in one row each.
func (m *Model) gradients(p *Pass, loss *tensor.Tensor) (parts []*tensor.Tensor) {
	var wrt []*tensor.Tensor
	for _, v := range m.params {
		wrt = append(wrt, p.params[v.Name])
	}
	for _, g := range tensor.Grad(loss, wrt...) {
		parts = append(parts, g.Flatten())
	}
	return parts
}

// set gives the model copies of values.
func (m *Model) set(ctx context.Context, params, states *tensor.Tensor) error {
	next, err := copied(ctx, m.scope, params, states)
	if err != nil {
		return err
	}
	m.values.close()
	m.values = next
	return nil
}

// copied returns copies of values in a scope of their own.
func copied(ctx context.Context, s *tensor.Scope, params, states *tensor.Tensor) (v values, err error) {
	v.scope = s.Scope()
	if v.params, err = copyTo(ctx, v.scope, params); err == nil {
		v.states, err = copyTo(ctx, v.scope, states)
	}
	if err != nil {
		v.close()
		return values{}, err
	}
	return v, nil
}

// copyTo returns a copy of a tensor that belongs to a scope, whatever scope the tensor belongs to.
func copyTo(ctx context.Context, s *tensor.Scope, t *tensor.Tensor) (*tensor.Tensor, error) {
	work := s.Scope()
	defer work.Close()
	// A product with a tensor of the innermost scope belongs to that one, from which Keep moves it outward.
	for in, up := work, 1; ; in, up = in.Scope(), up+1 {
		y := t.Mul(tensor.Ones(in, t.Type(), 1))
		if err := y.Err(); err != nil {
			return nil, err
		}
		if y.Scope() != in {
			continue
		}
		for range up {
			var err error
			if y, err = y.Keep(ctx); err != nil {
				return nil, err
			}
		}
		return y, nil
	}
}

func (v *values) close() {
	if v.scope != nil {
		v.scope.Close()
	}
}

// Params returns the parameters, in their order in the one tensor that has them all.
func (m *Model) Params() []Param { return slices.Clone(m.params) }

// States returns the running statistics, in their order in the one tensor that has them all.
func (m *Model) States() []Param { return slices.Clone(m.states) }

// Count returns how many numbers the parameters are, or this member's parts of them.
func (m *Model) Count() int { return elements(m.params) }

// Value returns a parameter or a running statistic, or this member's part of it, a view that lasts until the model
// gets other values, or nil if there is none of that name.
func (m *Model) Value(name string) *tensor.Tensor {
	return m.named(m.values.params, m.values.states)[name]
}

// SetValues gives parameters and running statistics, or this member's parts of them, other values, by their names. The
// others stay as they are.
func (m *Model) SetValues(ctx context.Context, named map[string]*tensor.Tensor) error {
	used := 0
	build := func(list []Param, whole *tensor.Tensor) (*tensor.Tensor, error) {
		var parts []*tensor.Tensor
		for _, v := range list {
			t := named[v.Name]
			switch {
			case t == nil:
				t = whole.Narrow(0, v.First, v.Len())
			case !slices.Equal(t.Shape(), v.Shape) || t.Type() != m.typ:
				return nil, fmt.Errorf("%w: %q of type %v and shape %v instead of %v and %v", ErrData, v.Name, t.Type(), t.Shape(),
					m.typ, v.Shape)
			default:
				used++
			}
			parts = append(parts, t.Flatten())
		}
		return together(m.scope, m.typ, parts), nil
	}
	params, err := build(m.params, m.values.params)
	if err != nil {
		return err
	}
	states, err := build(m.states, m.values.states)
	if err != nil {
		return err
	}
	if used != len(named) {
		return fmt.Errorf("%w: %d of %d values have names that the network does not have", ErrData, len(named)-used,
			len(named))
	}
	return m.set(ctx, params, states)
}

// fits returns an error unless x are examples.
func (m *Model) fits(x *tensor.Tensor) error {
	if x == nil {
		return fmt.Errorf("%w: no examples", ErrData)
	}
	if err := x.Err(); err != nil {
		return err
	}
	if x.Type() != m.In.Type || x.Rank() != len(m.In.Shape)+1 || !slices.Equal(x.Shape()[1:], m.In.Shape) {
		return fmt.Errorf("%w: examples %v%v, where the network takes %v each", ErrData, x.Type(), x.Shape(), m.In)
	}
	return nil
}

// fitLengths returns an error unless lengths, if they are not nil, are one integer for each of n examples.
func fitLengths(lengths *tensor.Tensor, n int) error {
	if lengths == nil {
		return nil
	}
	if err := lengths.Err(); err != nil {
		return err
	}
	if lengths.Rank() != 1 || lengths.Dim(0) != n || tensor.IsFloat(lengths.Type()) {
		return fmt.Errorf("%w: lengths %v%v of %d examples", ErrData, lengths.Type(), lengths.Shape(), n)
	}
	return nil
}

// Predict returns what the network says of examples, computed together. lengths, if they are not nil, are
// [Pass.Lengths]. The result belongs to the scope of x. Where members of a group divide the network, all of them call
// it, with the same examples, and have the results.
func (m *Model) Predict(ctx context.Context, x, lengths *tensor.Tensor) (*tensor.Tensor, error) {
	if err := m.fits(x); err != nil {
		return nil, err
	}
	if err := fitLengths(lengths, x.Dim(0)); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if l, ok := m.net.(stages); ok {
		return m.inStages(ctx, l, x, lengths)
	}
	y, err := m.call(ctx, x, lengths)
	if err != nil {
		return nil, err
	}
	return copyTo(ctx, x.Scope(), y)
}

// call calls predict. The next call but one overwrites the result.
func (m *Model) call(ctx context.Context, x, lengths *tensor.Tensor) (*tensor.Tensor, error) {
	args := []*tensor.Tensor{m.values.params, m.values.states, x}
	if lengths != nil {
		args = append(args, lengths)
	}
	out, err := m.predict.Call(ctx, args...)
	if m.mistake != nil {
		err, m.mistake = m.mistake, nil
	}
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// Summary returns a table of the layers: their names, what they are, the shape of a result, and the number of
// parameters.
func (m *Model) Summary() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "NAME\tLAYER\tRESULT\tPARAMETERS\n\tinput %v\t%v\t0\n", m.In.Type, m.In.Shape)
	for _, r := range m.rows {
		fmt.Fprintf(w, "%s%s\t%s\t%v\t%d\n", strings.Repeat("  ", r.depth), r.path, r.layer, r.shape, r.before)
	}
	w.Flush()
	fmt.Fprintf(&b, "%d parameters of type %v", m.Count(), m.typ)
	if n := elements(m.states); n > 0 {
		fmt.Fprintf(&b, ", %d running statistics", n)
	}
	b.WriteByte('\n')
	return b.String()
}
