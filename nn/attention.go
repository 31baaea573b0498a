package nn

// Attention, and blocks of transformers.

import (
	"fmt"

	"github.com/concord-compute/concord/tensor"
)

// Attention is attention of sequences [examples, steps, width] to themselves in several heads, with a dense
// layer in front of queries, keys and values each, and one behind the heads. With [Pass.Lengths] nothing
// attends to steps behind an example's length.
type Attention struct {
	Heads    int  // which divide the width; 0 is 1
	KeyHeads int  // of keys and values, which divide Heads; 0 is as many
	Causal   bool // a step attends to itself and those before it only; false is to all
	NoBias   bool // the dense layers add nothing; false is that they have a bias
	// Divided has each member of a group compute some of the heads, in training and in predictions: those of one head
	// of keys, or of several, so that fewer KeyHeads than members are refused. Members may have one of them more than
	// others. Without a group it changes nothing; false is that each member computes all
	Divided bool
}

// Apply returns a tensor of x's shape. The names of its parts are "query", "key", "value" and "out".
func (l Attention) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	var mask *tensor.Tensor
	if p.Lengths != nil && x.Rank() == 3 {
		steps := tensor.Iota(x.Scope(), tensor.I32, x.Dim(1))
		mask = p.Lengths.Cast(tensor.I32).Reshape(-1, 1, 1, 1).Gt(steps)
	}
	return l.Attend(p, x, x, mask)
}

// Attend returns what the steps of x see in those of y, for layers of your own: [examples, steps of x, width of
// x]. mask, if it is not nil, stretches to [examples, Heads, steps of x, steps of y], as that of
// [tensor.AttentionOptions].
func (l Attention) Attend(p *Pass, x, y, mask *tensor.Tensor) *tensor.Tensor {
	l.Heads = or(l.Heads, 1)
	keyHeads := or(l.KeyHeads, l.Heads)
	if l.Heads < 1 || keyHeads < 1 || l.Heads%keyHeads != 0 || x.Rank() != 3 || y.Rank() != 3 || x.Dim(2)%l.Heads != 0 {
		return p.Fail(x, "%d heads, %d of keys, for sequences %v and %v", l.Heads, keyHeads, x.Shape(), y.Shape())
	}
	width := x.Dim(2) / l.Heads
	part, out := func(d Dense, _ int) Layer { return d }, Layer(Dense{Out: x.Dim(2), NoBias: l.NoBias})
	if l.Divided {
		group := l.Heads / keyHeads // of heads, for a head of keys
		part = func(d Dense, heads int) Layer { return columns{d, heads / keyHeads * width} }
		out = rows{out.(Dense), group * width, x.Dim(2)}
		if mask != nil && tensor.IsFloat(mask.Type()) { // whose gradient is of all heads
			mask = p.enter(mask)
		}
		if own := p.partOf(keyHeads); mask != nil && mask.Rank() > 2 && mask.Dim(-3) > 1 {
			mask = mask.Narrow(-3, own.First*group, own.Count*group)
		}
		if x == y {
			x = p.enter(x)
			y = x
		} else {
			x, y = p.enter(x), p.enter(y)
		}
	}
	heads := func(name string, x *tensor.Tensor, n int) *tensor.Tensor {
		h := p.Layer(name, part(Dense{Out: n * width, NoBias: l.NoBias}, n), x)
		if p.err != nil {
			return h
		}
		return h.Reshape(x.Dim(0), x.Dim(1), h.Dim(2)/width, width).Permute(0, 2, 1, 3)
	}
	q, k, v := heads("query", x, l.Heads), heads("key", y, keyHeads), heads("value", y, keyHeads)
	if p.err != nil {
		return x
	}
	z := tensor.Attention(q, k, v, tensor.AttentionOptions{Mask: mask, Causal: l.Causal})
	return p.Layer("out", out, z.Permute(0, 2, 1, 3).Reshape(x.Dim(0), x.Dim(1), q.Dim(1)*width))
}

// String says how many heads there are.
func (l Attention) String() string {
	causal := ""
	if l.Causal {
		causal = "causal"
	}
	return joined(causal, fmt.Sprintf("attention of %d heads", or(l.Heads, 1)))
}

// Transformer is a block: attention, and two dense layers for each step, each added to what it is made of.
// Normalization of layers is in front of both, or with After behind the sums.
type Transformer struct {
	Heads   int        // as those of [Attention]; 0 is 1
	Hidden  int        // how wide the layer in between is; 0 is four times the width of x
	Act     Activation // in between; "" is GELU
	Dropout float64    // of what is added; 0 is none
	Causal  bool       // as that of [Attention]; false is to all steps
	After   bool       // normalization is behind the sums; false is in front of both parts
	// Divided has members of a group divide the heads, as those of [Attention], and the layer in between; false is
	// that each computes all
	Divided bool
}

// Apply returns a tensor of x's shape. The names of its parts are "attention", "norm1", "norm2", "wide",
// "narrow", "dropout1" and "dropout2".
func (l Transformer) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	if l.Hidden < 0 || x.Rank() != 3 {
		return p.Fail(x, "%d hidden for sequences %v", l.Hidden, x.Shape())
	}
	hidden := or(l.Hidden, 4*x.Dim(2))
	wide, narrow := Whole, Whole
	if l.Divided {
		wide, narrow = Columns, Rows
	}
	part := func(x *tensor.Tensor, number string, f func(x *tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
		y := x
		if !l.After {
			y = p.Layer("norm"+number, LayerNorm{}, y)
		}
		y = x.Add(p.Layer("dropout"+number, Dropout{Rate: l.Dropout}, f(y)))
		if l.After {
			y = p.Layer("norm"+number, LayerNorm{}, y)
		}
		return y
	}
	x = part(x, "1", func(x *tensor.Tensor) *tensor.Tensor {
		return p.Layer("attention", Attention{Heads: l.Heads, Causal: l.Causal, Divided: l.Divided}, x)
	})
	return part(x, "2", func(x *tensor.Tensor) *tensor.Tensor {
		h := p.Layer("wide", Dense{Out: hidden, Act: or(l.Act, GELU), Divided: wide}, x)
		return p.Layer("narrow", Dense{Out: x.Dim(2), Divided: narrow}, h)
	})
}

// String says how many heads there are, and how wide it is.
func (l Transformer) String() string {
	if l.Hidden == 0 {
		return fmt.Sprintf("transformer of %d heads", or(l.Heads, 1))
	}
	return fmt.Sprintf("transformer of %d heads, %d wide", or(l.Heads, 1), l.Hidden)
}
