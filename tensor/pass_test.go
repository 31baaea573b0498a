package tensor

// What one member sends to another.

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
)

// TestSend passes numbers from member to member, each of which adds one, by Eval and by a compiled function that is
// called several times with other numbers. It fails if a member gets what another call has sent, or nothing.
func TestSend(t *testing.T) {
	members(t, func(t *testing.T, g *cluster.Group) {
		require.NoError(t, onAll(t, g, func(ctx context.Context, s *Scope) error {
			step := func(x *Tensor) (got, sent *Tensor) {
				if s.Rank() > 0 {
					x = Receive(x.Scope(), s.Rank()-1, F32, 2, 3)
				}
				x, sent = x.Add(1), Zeros(x.Scope(), U8, 1)
				if s.Rank() < s.Size()-1 {
					sent = x.Transpose(0, 1).Transpose(0, 1).Send(s.Rank() + 1)
				}
				return x, sent
			}
			f := Compile(s, func(a ...*Tensor) []*Tensor {
				x, sent := step(a[0])
				return []*Tensor{x, sent}
			})
			for i := range 4 {
				first := Iota(s, F32, 6).Add(10*i).Reshape(2, 3)
				x, sent := step(first)
				if err := Eval(ctx, x, sent); err != nil {
					return err
				}
				out, err := f.Call(ctx, first)
				if err != nil {
					return err
				}
				for _, x := range []*Tensor{x, out[0]} {
					got, err := Read[float32](ctx, x)
					if err != nil {
						return err
					}
					for at, v := range got {
						assert.Equal(t, float32(10*i+at+s.Rank()+1), v)
					}
				}
			}
			return nil
		}))
	})
}

// TestSendMistakes has members without another end, and a tensor of another length than the one that comes.
func TestSendMistakes(t *testing.T) {
	g := virtual(t, 2)
	require.NoError(t, onAll(t, g, func(ctx context.Context, s *Scope) error {
		for _, rank := range []int{-1, s.Rank(), 2} {
			assert.ErrorIs(t, Zeros(s, F32, 1).Send(rank).Err(), runtime.ErrInvalidArgument)
			assert.ErrorIs(t, Receive(s, rank, F32, 1).Err(), runtime.ErrInvalidArgument)
		}
		assert.ErrorIs(t, Receive(s, 1-s.Rank(), F32, -1).Err(), ErrShape)
		empty := Receive(s, 1-s.Rank(), F32, 2, 0)
		assert.NoError(t, Eval(ctx, empty, Zeros(s, F32, 0).Send(1-s.Rank())), "nothing moves")
		x := Zeros(s, F32, 3).Send(1 - s.Rank())
		if s.Rank() == 1 {
			x = Receive(s, 0, F32, 4)
		}
		var named *cluster.MemberError
		assert.ErrorAs(t, Eval(ctx, x), &named)
		return nil
	}))
}
