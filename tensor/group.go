package tensor

// Tensors of a group of devices: every member computes the same function of its own data (SPMD), and collectives
// exchange what they have.

import (
	"context"
	"fmt"
	"slices"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
)

// NewMemberScope returns a scope for tensors on the device of a member of a group, which is not nil. Close the scope
// before the group: that waits for a collective under way. Its tensors have collectives: [Tensor.AllReduce],
// [Tensor.AllGather], [Tensor.ReduceScatter], [Tensor.Broadcast]; and two members move a tensor by [Tensor.Send] and
// [Receive], of which others need not know.
//
// Every member runs the same program on a scope of its own, in a goroutine or a process of its own, as
// [cluster.Group.Do] calls it. It describes the same collectives in the same order, and evaluates the same tensors in
// the same order: an Eval or a call of a compiled function waits until all members have come to its collectives. What
// only one member evaluates may contain no collective. In one plan the collectives come in the order in which the
// program has described them. They move data beside what does not depend on them.
//
// Where one member fails in such a computation, or its context ends meanwhile, all members' calls return the same
// [*cluster.MemberError], which names it, and the group has failed. A member that has computed its part by then has
// returned no error, and learns of it by its next collective. One that fails before it begins, with a mistake, a
// context that is done, or without memory, tells the others when its function returns the error to [cluster.Group.Do],
// or by [cluster.Member.Fail]. A member waits for another one as long as [cluster.Options] say, while that traces and
// compiles, too. In a group of one a collective is its argument, whose gradients are those of no collective.
func NewMemberScope(m *cluster.Member) *Scope {
	s := NewScope(m.Device())
	s.engine.member = m
	return s
}

// Member returns the member of a group to which the scope belongs, or nil.
func (s *Scope) Member() *cluster.Member { return s.engine.member }

// Rank returns the number of the scope's member in its group, and 0 where there is no group.
func (s *Scope) Rank() int {
	if m := s.engine.member; m != nil {
		return m.Rank()
	}
	return 0
}

// Size returns the number of members of the scope's group, and 1 where there is no group.
func (s *Scope) Size() int {
	if m := s.engine.member; m != nil {
		return m.Size()
	}
	return 1
}

// AllReduce combines the elements of t of all members, which have one shape: all get the same bits. Without a group,
// and in a group of one, the result is t. The gradient of a sum or a mean is that of the results of all members
// together: the sum or the mean of their gradients. Of other operations there is none: the error matches
// [runtime.ErrUnsupported]. Bools are refused with [ErrType].
func (t *Tensor) AllReduce(op cluster.Op) *Tensor {
	const name = "all-reduce"
	if bad := t.combinable(name, op); bad != nil {
		return bad
	}
	return t.exchanged(name+" "+op.String(), t.shape,
		func(ctx context.Context, m *cluster.Member, dst, src *runtime.Buffer) error {
			return m.AllReduce(ctx, nil, op, dst, src)
		},
		func(g *Tensor) *Tensor {
			if op != cluster.Sum && op != cluster.Mean {
				return withoutGradient(g, name, op)
			}
			return g.AllReduce(op)
		})
}

// AllGather returns the tensors t of all members, which have one shape, one after the other along the first dimension,
// by rank. Without a group, and in a group of one, the result is t. The gradient is each member's part of the sum of
// the members' gradients.
func (t *Tensor) AllGather() *Tensor {
	const name = "all-gather"
	if bad := check(name, t); bad != nil {
		return bad
	}
	if len(t.shape) == 0 {
		return failf(t.scope, name, ErrShape, "a tensor without dimensions has no first one")
	}
	shape := slices.Clone(t.shape)
	shape[0] *= t.scope.Size()
	if err := checkShape(shape); err != nil {
		return fail(t.scope, name, err)
	}
	return t.exchanged(name, shape,
		func(ctx context.Context, m *cluster.Member, dst, src *runtime.Buffer) error {
			return m.AllGather(ctx, nil, dst, src)
		},
		func(g *Tensor) *Tensor { return g.ReduceScatter(cluster.Sum) })
}

// ReduceScatter combines the elements of t of all members, which have one shape, and returns this member's part of the
// result: the first dimension is divided by the number of members. Without a group, and in a group of one, the result
// is t. There are gradients and errors as of [Tensor.AllReduce].
func (t *Tensor) ReduceScatter(op cluster.Op) *Tensor {
	const name = "reduce-scatter"
	if bad := t.combinable(name, op); bad != nil {
		return bad
	}
	members := t.scope.Size()
	if len(t.shape) == 0 || t.shape[0]%members != 0 {
		return failf(t.scope, name, ErrShape, "%v, of which %d members get a part each", t.shape, members)
	}
	shape := slices.Clone(t.shape)
	shape[0] /= members
	return t.exchanged(name+" "+op.String(), shape,
		func(ctx context.Context, m *cluster.Member, dst, src *runtime.Buffer) error {
			return m.ReduceScatter(ctx, nil, op, dst, src)
		},
		func(g *Tensor) *Tensor {
			switch op {
			case cluster.Sum:
				return g.AllGather()
			case cluster.Mean:
				return g.AllGather().Mul(1 / float64(members))
			}
			return withoutGradient(g, name, op)
		})
}

// Broadcast returns t of the member root, of all members. Without a group, and in a group of one, the result is t. The
// gradient is the sum of the members' gradients at the root, and zero at all others.
func (t *Tensor) Broadcast(root int) *Tensor {
	const name = "broadcast"
	if bad := t.rooted(name, root); bad != nil {
		return bad
	}
	return t.exchanged(name, t.shape,
		func(ctx context.Context, m *cluster.Member, dst, src *runtime.Buffer) error {
			return m.Broadcast(ctx, nil, root, dst, src)
		},
		func(g *Tensor) *Tensor { return g.reduceTo(root) })
}

// reduceTo returns the sum of the members' tensors at the root, and zeros at the others.
func (t *Tensor) reduceTo(root int) *Tensor {
	return t.exchanged("reduce", t.shape,
		func(ctx context.Context, m *cluster.Member, dst, src *runtime.Buffer) error {
			if err := m.Reduce(ctx, nil, cluster.Sum, root, dst, src); err != nil || m.Rank() == root {
				return err
			}
			return m.Stream().Fill(dst, make([]byte, dst.Type().Size()))
		},
		func(g *Tensor) *Tensor { return g.Broadcast(root) })
}

// Send sends t to the member to of the group, which describes a [Receive] of t's type and shape; others describe
// nothing. The result is one zero of type U8: what evaluates it makes the call, which waits until the other member
// makes its own: two members that both send first wait until the time of the group is over. The calls of one evaluation
// come in the order in which they were described. The gradient of what is received is an error at the receiver.
func (t *Tensor) Send(to int) *Tensor {
	const name = "send"
	if bad := t.scope.peer(name, to, t); bad != nil {
		return bad
	}
	return t.moved(name, Spec{U8, []int{1}}, func(ctx context.Context, m *cluster.Member, dst, src *runtime.Buffer) error {
		if err := m.Send(ctx, nil, to, src); err != nil {
			return err
		}
		return m.Stream().Fill(dst, []byte{0})
	})
}

// Receive returns what the member from of the group of s sends, which describes a [Tensor.Send] of a tensor of this
// type and shape.
func Receive(s *Scope, from int, typ Type, shape ...int) *Tensor {
	const name = "receive"
	if bad := s.peer(name, from); bad != nil {
		return bad
	}
	if err := checkShape(shape); err != nil {
		return fail(s, name, err)
	}
	if count(shape) == 0 {
		return filled(s, typ, shape, zero(typ))
	}
	return Zeros(s, U8, 1).moved(name, Spec{typ, slices.Clone(shape)},
		func(ctx context.Context, m *cluster.Member, dst, _ *runtime.Buffer) error {
			return m.Recv(ctx, nil, from, dst)
		})
}

// peer returns a tensor with the mistake if a tensor is none, or there is no other member of that rank.
func (s *Scope) peer(name string, rank int, ts ...*Tensor) *Tensor {
	if bad := check(name, ts...); bad != nil {
		return bad
	}
	if rank < 0 || rank >= s.Size() || rank == s.Rank() {
		return fail(s, name, fmt.Errorf("%w: member %d for member %d of %d", runtime.ErrInvalidArgument, rank, s.Rank(),
			s.Size()))
	}
	return nil
}

// moved returns the result of a call that two members make. Without elements there is none.
func (t *Tensor) moved(name string, result Spec,
	do func(ctx context.Context, m *cluster.Member, dst, src *runtime.Buffer) error) *Tensor {
	if t.Len() == 0 {
		return filled(t.scope, result.Type, result.Shape, zero(result.Type))
	}
	return call(&callOp{name: name, takes: onlyDense, exchange: do}, []Spec{result}, t)[0]
}

// combinable returns a tensor with the mistake if the elements of t cannot be combined by op.
func (t *Tensor) combinable(name string, op cluster.Op) *Tensor {
	if bad := check(name, t); bad != nil {
		return bad
	}
	if op > cluster.Product {
		return fail(t.scope, name, fmt.Errorf("%w: %v", runtime.ErrInvalidArgument, op))
	}
	if t.typ == Bool {
		return failf(t.scope, name, ErrType, "%v of %v", op, t.typ)
	}
	return nil
}

// rooted returns a tensor with the mistake if there is no member root.
func (t *Tensor) rooted(name string, root int) *Tensor {
	if bad := check(name, t); bad != nil {
		return bad
	}
	if n := t.scope.Size(); root < 0 || root >= n {
		return fail(t.scope, name, fmt.Errorf("%w: root %d of %d members", runtime.ErrInvalidArgument, root, n))
	}
	return nil
}

// withoutGradient returns the mistake that stands for the gradient of what has none.
func withoutGradient(g *Tensor, name string, op cluster.Op) *Tensor {
	return fail(g.scope, name, fmt.Errorf("%w: the gradient of %v", runtime.ErrUnsupported, op))
}

// exchanged returns the result of a collective of t, which has no mistake: t itself where there are no other members.
// Without elements there is nothing to exchange, at any member.
func (t *Tensor) exchanged(name string, shape []int,
	do func(ctx context.Context, m *cluster.Member, dst, src *runtime.Buffer) error,
	back func(g *Tensor) *Tensor) *Tensor {
	if t.scope.Size() == 1 {
		return t
	}
	if t.Len() == 0 {
		return filled(t.scope, t.typ, shape, zero(t.typ))
	}
	o := &callOp{name: name, takes: onlyDense, exchange: do}
	if IsFloat(t.typ) {
		o.back = func(_ *Tensor, gs []*Tensor) []*Tensor { return []*Tensor{back(gs[0])} }
	}
	return call(o, []Spec{{t.typ, slices.Clone(shape)}}, t)[0]
}
