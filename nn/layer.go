package nn

// Layers: dense ones, embeddings, dropout, and those that put others together.

import (
	"fmt"
	"strconv"

	"github.com/concord-compute/concord/tensor"
)

// Sequence applies layers one after the other. Their names are their numbers.
type Sequence []Layer

// Apply returns the results of the last layer.
func (l Sequence) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	for i, part := range l {
		x = p.Layer(strconv.Itoa(i), part, x)
	}
	return x
}

// String says how many layers there are.
func (l Sequence) String() string { return fmt.Sprintf("%d layers", len(l)) }

// Dense multiplies rows by a matrix: x·weight + bias, of the last dimension of x.
type Dense struct {
	Out    int        // results of a row; required
	Act    Activation // behind it; "" is Linear
	Init   Init       // of the matrix; nil is HeUniform in front of ReLU and LeakyReLU, XavierUniform otherwise
	NoBias bool       // nothing is added; false is that "bias" is
	// false is that the matrix is "weight"; else the matrix has but -s, 0 and s, where s is the mean magnitude of
	// "weight", from which it is rounded; see [PackTernary] and [Packed]
	Ternary bool
	// Divided says which part of the matrix a member of a group has, in training and in predictions: a layer with
	// Columns comes first, and one with Rows last; between the two stand only [Dropout] and activations of single
	// elements, as behind the columns. All members have what comes before and after. Fewer columns than members,
	// Ternary and everything else between the two are refused. Without a group the layer is like others. "" is Whole
	Divided Division
}

// Apply returns a tensor of x's shape, but for the last dimension, which is Out. Its parameters are "weight"
// [in, Out] and "bias" [Out].
func (l Dense) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	if l.Out < 1 || x.Rank() < 2 {
		return p.Fail(x, "%d outputs for rows of shape %v", l.Out, x.Shape())
	}
	if l.Divided != Whole {
		return l.divided(p, x)
	}
	w := p.Param("weight", forAct(l.Init, l.Act), x.Dim(-1), l.Out)
	if l.Ternary {
		w = ternary(w)
	}
	y := p.MatMul(x, w)
	if !l.NoBias {
		y = y.Add(p.Param("bias", Zeros, l.Out))
	}
	return l.Act.Apply(p, y)
}

// String says how many outputs the layer has.
func (l Dense) String() string {
	if l.Ternary {
		return fmt.Sprintf("ternary dense %d%s", l.Out, l.Act.and())
	}
	return fmt.Sprintf("dense %d%s", l.Out, l.Act.and())
}

// Embedding returns a learned row for each integer from 0 to Count-1. As of [tensor.Tensor.Take], negative ones
// count from the end, and others are rows of zeros.
type Embedding struct {
	Count int  // rows; required
	Width int  // numbers of a row; required
	Init  Init // nil is Gaussian(1)
	// Divided has each member of a group hold a part of the rows, at least one; false is that each has all. Without a
	// group it changes nothing
	Divided bool
}

// Apply returns the rows, along a new last dimension. Its parameter is "weight" [Count, Width].
func (l Embedding) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	if l.Count < 1 || l.Width < 1 {
		return p.Fail(x, "%d rows of %d", l.Count, l.Width)
	}
	if tensor.IsFloat(x.Type()) {
		return p.Fail(x, "inputs of type %v and not integers", x.Type())
	}
	init := l.Init
	if init == nil {
		init = Gaussian(1)
	}
	if l.Divided {
		return l.divided(p, init, x)
	}
	return tensor.Embedding(p.Param("weight", init, l.Count, l.Width), x)
}

// String says how large the table is.
func (l Embedding) String() string { return fmt.Sprintf("embedding %d×%d", l.Count, l.Width) }

// Position adds a learned row to each step of sequences [examples, steps, width] of up to Max steps.
type Position struct {
	Max int // steps; required
}

// Apply returns the sums. Its parameter is "weight" [Max, width].
func (l Position) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	if x.Rank() != 3 || x.Dim(1) > l.Max {
		return p.Fail(x, "sequences %v, at most %d steps", x.Shape(), l.Max)
	}
	return x.Add(p.Param("weight", Gaussian(0.02), l.Max, x.Dim(2)).Narrow(0, 0, x.Dim(1)))
}

// String says how many positions there are.
func (l Position) String() string { return fmt.Sprintf("position %d", l.Max) }

// Dropout replaces elements by 0 with probability Rate in training, and divides the others by 1 - Rate.
// Gradients have the same mask. In a group it is the member's part of one mask of the whole batch, but each member has
// its own where the first dimension is not a multiple of its rows.
type Dropout struct {
	Rate float64 // less than 1; 0 is none
}

// Apply returns x, in training without some of its elements.
func (l Dropout) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	if !(l.Rate >= 0 && l.Rate < 1) {
		return p.Fail(x, "a rate of %v", l.Rate)
	}
	if !p.Training || l.Rate == 0 {
		return x
	}
	seed, ok := p.Seed()
	if !ok {
		return p.Fail(x, "dropout in training needs a seed")
	}
	if p.cut != nil { // the member's columns of the mask of all of them
		shape := x.Shape()
		shape[len(shape)-1] = p.cut.all
		mask := tensor.Bernoulli(x.Scope(), seed, 1-l.Rate, shape...).Narrow(-1, p.cut.part.First, p.cut.part.Count)
		return tensor.Where(mask, x.Mul(1/(1-l.Rate)), 0)
	}
	s := p.share
	rows := max(s.rows, 1)                    // that there are
	if s.rows < s.all && x.Dim(0)%rows == 0 { // the member's rows of the mask of the whole batch
		shape, n := x.Shape(), x.Dim(0)/rows
		shape[0] = s.all * n
		mask := tensor.Bernoulli(x.Scope(), seed, 1-l.Rate, shape...).Narrow(0, min(s.first, s.all-rows)*n, x.Dim(0))
		return tensor.Where(mask, x.Mul(1/(1-l.Rate)), 0)
	}
	if s.rows < s.all { // no rows of the batch, but not the same mask for all members
		seed = seed.Add(uint64(p.scope.Rank()) << 32)
	}
	return x.Dropout(l.Rate, seed)
}

// String says how often elements are replaced.
func (l Dropout) String() string { return fmt.Sprintf("dropout %v", l.Rate) }

// Flatten makes one dimension of those behind the first.
type Flatten struct{}

// Apply returns rows.
func (Flatten) Apply(_ *Pass, x *tensor.Tensor) *tensor.Tensor { return x.Reshape(x.Dim(0), -1) }

// String names the layer.
func (Flatten) String() string { return "flatten" }

// Reshape gives examples another shape.
type Reshape struct {
	Shape []int // of an example; required
}

// Apply returns x with another shape behind the first dimension.
func (l Reshape) Apply(_ *Pass, x *tensor.Tensor) *tensor.Tensor {
	return x.Reshape(append([]int{x.Dim(0)}, l.Shape...)...)
}

// String has the shape.
func (l Reshape) String() string { return fmt.Sprintf("reshape %v", l.Shape) }

// Scale returns numbers of the network's type from others, such as pixels: x·Factor + Offset.
type Scale struct {
	Factor float64 // 0 is 1
	Offset float64 // 0 is none
}

// Apply returns the scaled numbers.
func (l Scale) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	return x.Cast(p.Type()).Mul(or(l.Factor, 1)).Add(l.Offset)
}

// String has both numbers.
func (l Scale) String() string { return fmt.Sprintf("scale %.4g%+.4g", or(l.Factor, 1), l.Offset) }

// Residual adds what a layer makes of x to x, or to what Shortcut makes of it.
type Residual struct {
	Body     Layer // required
	Shortcut Layer // nil is x as it is
}

// Apply returns the sum. The names of its parts are "body" and "shortcut".
func (l Residual) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	y := p.Layer("body", l.Body, x)
	if l.Shortcut != nil {
		x = p.Layer("shortcut", l.Shortcut, x)
	}
	if p.err == nil && fmt.Sprint(x.Shape()) != fmt.Sprint(y.Shape()) {
		return p.Fail(x, "%v and %v are not added", x.Shape(), y.Shape())
	}
	return x.Add(y)
}

// String names the layer.
func (l Residual) String() string { return "residual" }
