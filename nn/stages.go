package nn

// Networks whose layers follow each other on the members of a group (model parallel): each member has the parameters
// of some consecutive layers, and passes on what they make of examples.

import (
	"context"
	"fmt"
	"strconv"

	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// BuildStages is [Build] for predictions of a network that does not fit one device: of L layers each of n members of
// a group has ceil(L/n) consecutive ones with their parameters, so that the last members may have fewer or none.
// Examples are computed in so many parts, one or more, or one by one where there are fewer: one member computes a
// part while the next one computes that before it. Results are those of [Build]'s network for each part, with the
// same bits on devices of one kind; all members get them. A member that is done waits for the others: all parts
// together have to take less than the Timeout of [cluster.Options]. The layers are not divided otherwise, and the
// network is not trained: [Model.Load] reads what another one has learned.
func BuildStages(ctx context.Context, s *tensor.Scope, seed uint64, parts int, in Spec,
	layers ...Layer) (*Model, error) {
	if parts < 1 {
		return nil, fmt.Errorf("%w: examples in %d parts", ErrConfig, parts)
	}
	return assemble(ctx, s, seed, in, layers, parts)
}

// stages is a Sequence of which each member of a group applies some layers.
type stages struct {
	layers Sequence
	parts  int
}

// String is that of a Sequence.
func (l stages) String() string { return l.layers.String() }

// each is how many layers a member has, unless there are fewer left.
func (l stages) each(members int) int { return (len(l.layers)-1)/members + 1 }

// last is the last member that has layers.
func (l stages) last(members int) int { return (len(l.layers) - 1) / l.each(members) }

// Apply returns the results of the last layer at the member that has it. The others return what has to be evaluated.
func (l stages) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	rank, each := p.scope.Rank(), l.each(p.scope.Size())
	first, end := min(rank*each, len(l.layers)), min((rank+1)*each, len(l.layers))
	if p.plan != nil { // all members learn of all parameters
		first, end = 0, len(l.layers)
		defer func() { p.owner = nil }()
	} else if first == end {
		return tensor.Zeros(x.Scope(), tensor.U8, 1)
	} else if first > 0 {
		like := l.like(p, x, first)
		x = tensor.Receive(x.Scope(), rank-1, like.Type(), like.Shape()...)
	}
	for i := first; i < end; i++ {
		if p.plan != nil {
			p.owner = new(i / each)
		}
		x = p.Layer(strconv.Itoa(i), l.layers[i], x)
	}
	if end < len(l.layers) {
		x = x.Send(rank + 1)
	}
	return x
}

// inStages returns what the network says of examples. A member queues its work on a part, and goes on to the next one;
// the results are sent once all parts are queued, since what a member queues waits for what it has sent.
func (m *Model) inStages(ctx context.Context, l stages, x, lengths *tensor.Tensor) (*tensor.Tensor, error) {
	work := m.scope.Scope()
	defer work.Close()
	last := l.last(m.scope.Size())
	var done []*tensor.Tensor
	for _, part := range partsOf(x.Dim(0), max(min(l.parts, x.Dim(0)), 1)) {
		some, steps := x.Narrow(0, part.First, part.Count), lengths
		if lengths != nil {
			steps = lengths.Narrow(0, part.First, part.Count)
		}
		y, err := m.call(ctx, some, steps)
		if err == nil && m.scope.Rank() == last {
			y, err = copyTo(ctx, work, y) // since a later call overwrites it
			done = append(done, y)
		}
		if err != nil {
			return nil, err
		}
	}
	if m.scope.Rank() == last {
		return copyTo(ctx, x.Scope(), tensor.Concat(0, done...).Broadcast(last))
	}
	p := m.pass(m.values.params, m.values.states, nil)
	p.Lengths = lengths
	like := l.like(p, x, len(l.layers))
	return copyTo(ctx, x.Scope(), like.Mul(tensor.Ones(work, like.Type(), 1)).Broadcast(last)) // in work
}

// like returns zeros in the type and the shape of what so many layers make of x.
func (l stages) like(p *Pass, x *tensor.Tensor, layers int) *tensor.Tensor {
	dry := &Pass{Lengths: p.Lengths, scope: p.scope, typ: p.typ, next: map[string]*tensor.Tensor{},
		plan: &plan{inits: map[string]Init{}}}
	y := l.layers[:layers].Apply(dry, tensor.Zeros(x.Scope(), x.Type(), x.Shape()...))
	if dry.err != nil && p.err == nil {
		p.err = dry.err
	}
	if y.Err() != nil {
		return y
	}
	return tensor.Zeros(x.Scope(), y.Type(), y.Shape()...)
}

// ownedBy returns a parameter that one member has, and the others do not.
func (v Param) ownedBy(owner, rank, members int) Param {
	v.Whole, v.axis, v.parts = append([]int{}, v.Shape...), -1, make([]cluster.Part, members)
	v.parts[owner].Count = v.Len()
	v.Shape = v.shapeAt(rank)
	return v
}
