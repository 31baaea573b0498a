package nn

// Recurrent layers, of sequences [examples, steps, width].

import (
	"fmt"
	"slices"

	"github.com/concord-compute/concord/tensor"
)

// The recurrent layers begin with states of zeros and go through the steps of a sequence; x is a step, h the
// state before it. They return the last state of each example, [examples, Units], or with Sequences the states
// after each step, [examples, steps, Units]. With [Pass.Lengths] the state of an example stays as it is from
// its length on, and the states of the steps behind it are returned as zeros. Gradients go back through all
// steps, or with Truncate n through no more than n: not beyond every n-th step. Gates lie side by side in the
// last dimension of parameters, in the order in which they are named.
type (
	// RNN is h = tanh(x·weight + bias + h·recurrent).
	RNN struct {
		Units     int  // numbers of a state; required
		Sequences bool // returns the states after all steps; false is the last one
		Truncate  int  // steps of gradients; 0 is all
	}
	// GRU has the gates r and z, sigmoids, and n = tanh(x·weight + bias + r·(h·recurrent + recurrent_bias)), and
	// is h = (1-z)·n + z·h. recurrent_bias [Units] is of n alone. Its settings are those of [RNN].
	GRU RNN
	// LSTM has the gates i and f, sigmoids, g, a tanh, and o, a sigmoid, and is c = f·c + i·g; h = o·tanh(c). The
	// bias of f is 1 at first. Its settings are those of [RNN].
	LSTM RNN
)

// Apply returns states. Its parameters are "weight" [width, Units], "recurrent" [Units, Units] and "bias" [Units].
func (l RNN) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	return l.apply(p, x, 1, Zeros,
		func(x, h *tensor.Tensor, s []*tensor.Tensor) []*tensor.Tensor {
			return []*tensor.Tensor{x.Add(h).Tanh()}
		})
}

// Apply returns states. Its parameters are "weight" [width, 3·Units], "recurrent" [Units, 3·Units], "bias"
// [3·Units] and "recurrent_bias" [Units].
func (l GRU) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	n := l.Units
	if n < 1 {
		return p.Fail(x, "%d units", n)
	}
	b := p.Param("recurrent_bias", Zeros, n)
	return RNN(l).apply(p, x, 3, Zeros,
		func(x, h *tensor.Tensor, s []*tensor.Tensor) []*tensor.Tensor {
			xs, hs := x.Split(-1, n, n, n), h.Split(-1, n, n, n)
			r, z := xs[0].Add(hs[0]).Sigmoid(), xs[1].Add(hs[1]).Sigmoid()
			next := xs[2].Add(r.Mul(hs[2].Add(b))).Tanh()
			return []*tensor.Tensor{next.Add(z.Mul(s[0].Sub(next)))}
		})
}

// Apply returns states. Its parameters are "weight" [width, 4·Units], "recurrent" [Units, 4·Units] and "bias"
// [4·Units].
func (l LSTM) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	n := l.Units
	forget := func(s *tensor.Scope, _ any, t tensor.Type, _, _ int, shape ...int) *tensor.Tensor {
		return tensor.Ones(s, t, n).Pad(0, [2]int{n, 2 * n})
	}
	return RNN(l).apply(p, x, 4, forget,
		func(x, h *tensor.Tensor, s []*tensor.Tensor) []*tensor.Tensor {
			gates := x.Add(h).Split(-1, n, n, n, n)
			c := gates[1].Sigmoid().Mul(s[1]).Add(gates[0].Sigmoid().Mul(gates[2].Tanh()))
			return []*tensor.Tensor{gates[3].Sigmoid().Mul(c.Tanh()), c}
		})
}

// apply goes through the steps of a layer with so many gates and results. cell returns the next states, of which the
// first is h, from x·weight + bias, h·recurrent and the states.
func (l RNN) apply(p *Pass, x *tensor.Tensor, gates int, bias Init,
	cell func(x, h *tensor.Tensor, s []*tensor.Tensor) []*tensor.Tensor) *tensor.Tensor {
	if l.Units < 1 || l.Truncate < 0 || x.Rank() != 3 || x.Dim(1) < 1 {
		return p.Fail(x, "%d units for sequences %v, truncated after %d steps", l.Units, x.Shape(), l.Truncate)
	}
	n, steps, wide := x.Dim(0), x.Dim(1), gates*l.Units
	u := p.Param("recurrent", XavierUniform, l.Units, wide)
	// The inputs of all steps are multiplied together.
	x = p.MatMul(x, p.Param("weight", XavierUniform, x.Dim(2), wide)).Add(p.Param("bias", bias, wide))
	states := []*tensor.Tensor{tensor.Zeros(x.Scope(), x.Type(), n, l.Units)}
	if gates == 4 {
		states = append(states, states[0])
	}
	var all []*tensor.Tensor
	for i := range steps {
		if l.Truncate > 0 && i > 0 && i%l.Truncate == 0 {
			for j, s := range states {
				states[j] = s.StopGradient()
			}
		}
		h := tensor.Zeros(x.Scope(), x.Type(), n, wide)
		if i > 0 {
			h = p.MatMul(states[0], u)
		}
		next := cell(x.Index(1, i), h, states)
		out := next[0]
		if p.Lengths != nil {
			goes := p.Lengths.Gt(i).Reshape(n, 1)
			for j := range next {
				next[j] = tensor.Where(goes, next[j], states[j])
			}
			if l.Sequences {
				out = tensor.Where(goes, out, 0)
			}
		}
		states = slices.Clone(next)
		if l.Sequences {
			all = append(all, out)
		}
	}
	if l.Sequences {
		return tensor.Stack(1, all...)
	}
	return states[0]
}

func (l RNN) describe(name string) string {
	s := fmt.Sprintf("%s %d", name, l.Units)
	if l.Sequences {
		s += " sequences"
	}
	if l.Truncate > 0 {
		s += fmt.Sprintf(" truncated %d", l.Truncate)
	}
	return s
}

// String says how many units there are.
func (l RNN) String() string { return l.describe("rnn") }

// String says how many units there are.
func (l GRU) String() string { return RNN(l).describe("gru") }

// String says how many units there are.
func (l LSTM) String() string { return RNN(l).describe("lstm") }
