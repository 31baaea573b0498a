package tensor

// Pooling: the maximum or the average of windows.
//
// Windows are reduced one dimension after the other, the last one first, each as operations on slices that have
// one place of all windows, which the planner puts into one kernel. Long windows that do not overlap are rows
// of a reduction, and long ones that overlap are made of shorter ones.

import (
	"math"
	"slices"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
)

// PoolOptions are the sizes of windows besides their lengths. Each list has a number for each dimension that is pooled.
type PoolOptions struct {
	Stride   []int    // distance of neighbouring windows; nil is that of windows which lie side by side
	Pad      [][2]int // margins in front of and behind the elements; nil is none
	Dilation []int    // distance of neighbouring elements of a window; nil is 1
	CountPad bool     // averages count elements of the margins, which are 0; false is that they do not
}

// MaxPool returns the maxima of windows in the last dimensions of t, of which size has the windows' lengths. A
// dimension of the result has
//
//	(length + pad before + pad behind - dilation·(size - 1) - 1) / stride + 1
//
// elements, or none if the window is longer. Elements of the margins are less than all others: -∞, or the
// lowest integer. A NaN makes its windows NaN. The gradient of a window goes to its first maximum, with the
// last dimension changing fastest, or to its first NaN.
func (t *Tensor) MaxPool(size []int, o PoolOptions) *Tensor {
	const name = "max pool"
	axes, bad := o.slides(name, t, size)
	if bad != nil {
		return bad
	}
	if t.typ == Bool {
		return failf(t.scope, name, ErrType, "%v", t.typ)
	}
	x := t.Pad(lowest(t.typ), o.margins(len(t.shape), size)...)
	for _, s := range slices.Backward(axes) {
		x = s.max(x)
	}
	return x
}

// AvgPool returns the averages of windows in the last dimensions of t, with sizes as MaxPool's. Elements of the
// margins are not counted, unless the options say so; a window without others has the average 0. Integers are
// averaged in F64.
func (t *Tensor) AvgPool(size []int, o PoolOptions) *Tensor {
	axes, bad := o.slides("avg pool", t, size)
	if bad != nil {
		return bad
	}
	typ := t.typ
	if !IsFloat(typ) {
		typ = F64
	}
	x := t.Cast(typ.Computed()).Pad(0, o.margins(len(t.shape), size)...)
	counted := o.Pad != nil && !o.CountPad
	counts := Full(t.scope, x.typ, count(size))
	if counted {
		counts = Ones(t.scope, x.typ)
	}
	for _, s := range slices.Backward(axes) {
		x = s.sum(x)
		if counted {
			c := s.counts(x, o.Pad[s.axis-len(t.shape)+len(size)][0], t.shape[s.axis])
			counts = counts.Mul(c.Reshape(append([]int{-1}, slices.Repeat([]int{1}, len(x.shape)-s.axis-1)...)...))
		}
	}
	return x.Div(counts).Cast(typ)
}

// GlobalMaxPool returns the maxima over all dimensions from the third on, which stay with length 1. The
// gradient goes to the first maximum, or the first NaN.
func (t *Tensor) GlobalMaxPool() *Tensor {
	x, shape, bad := t.global("global max pool")
	if bad != nil {
		return bad
	}
	return x.MaxPool(x.shape[2:], PoolOptions{}).Reshape(shape...)
}

// GlobalAvgPool returns the averages over all dimensions from the third on, which stay with length 1.
func (t *Tensor) GlobalAvgPool() *Tensor {
	x, shape, bad := t.global("global avg pool")
	if bad != nil {
		return bad
	}
	return x.Mean(2).Reshape(shape...)
}

// global returns t with all dimensions from the third on as one, and the shape of the result of reducing them.
func (t *Tensor) global(name string) (x *Tensor, shape []int, bad *Tensor) {
	if bad := check(name, t); bad != nil {
		return nil, nil, bad
	}
	if len(t.shape) < 3 {
		return nil, nil, failf(t.scope, name, ErrShape, "%v has no third dimension", t.shape)
	}
	n := count(t.shape[2:])
	if n == 0 {
		return nil, nil, failf(t.scope, name, ErrShape, "no element to pool in %v", t.shape)
	}
	return t.Reshape(t.shape[0], t.shape[1], n),
		append(slices.Clone(t.shape[:2]), slices.Repeat([]int{1}, len(t.shape)-2)...), nil
}

// counts returns how many of the n elements behind a margin the windows have that result in x, at least 1.
func (s slide) counts(x *Tensor, margin, n int) *Tensor {
	number := func(i int) *expr.Expr { return expr.Int(I64, int64(i)) }
	first := expr.Index().Mul(number(s.stride)).Sub(number(margin))
	before := func(end int) *expr.Expr { // how many elements of a window lie in front of an element
		return number(end + s.dilation - 1).Sub(first).Max(number(0)).Min(number(s.size * s.dilation)).Div(number(s.dilation))
	}
	e := before(n).Sub(before(0)).Max(number(1)).Cast(x.typ)
	return &Tensor{scope: x.scope, typ: x.typ, shape: []int{x.shape[s.axis]}, op: &mapOp{name: "counts", e: e}}
}

// lowest returns the number that no other one is less than.
func lowest(t Type) any {
	switch {
	case IsFloat(t):
		return math.Inf(-1)
	case isSigned(t):
		return int64(-1) << (8*size(t) - 1)
	}
	return 0
}

// slides returns the windows of the last dimensions of t.
func (o PoolOptions) slides(name string, t *Tensor, size []int) ([]slide, *Tensor) {
	if bad := check(name, t); bad != nil {
		return nil, bad
	}
	dims := len(size)
	lengths, ok := sizesOf(size, dims, 1, 1)
	stride, one := sizesOf(o.Stride, dims, 0, 1)
	dilation, two := sizesOf(o.Dilation, dims, 1, 1)
	if !ok || !one || !two || dims == 0 || dims > len(t.shape) || o.Pad != nil && len(o.Pad) != dims {
		return nil, failf(t.scope, name, ErrShape, "windows %v with %+v of shape %v", size, o, t.shape)
	}
	var list []slide
	for i, n := range lengths {
		axis, step := len(t.shape)-dims+i, stride[i]
		if step == 0 {
			step = n
		}
		if o.Pad != nil && (min(o.Pad[i][0], o.Pad[i][1]) < 0 || max(o.Pad[i][0], o.Pad[i][1]) > math.MaxInt32/4 ||
			t.shape[axis]+n*dilation[i] > math.MaxInt32/4) {
			return nil, failf(t.scope, name, ErrShape, "windows %v with %+v of shape %v", size, o, t.shape)
		}
		list = append(list, slide{axis, n, step, dilation[i]})
	}
	return list, nil
}

// margins returns the padding of all dimensions of a tensor.
func (o PoolOptions) margins(rank int, size []int) [][2]int {
	return append(make([][2]int, rank-len(size)), o.Pad...)
}

// out returns how many windows fit into n elements.
func (s slide) out(n int) int { return kernels.ConvOut(n, s.size, s.stride, 0, 0, s.dilation) }

// mostTaps is the length of the longest windows that are reduced as slices.
const mostTaps = 12

// tap returns place j of the windows of x.
func (s slide) tap(x *Tensor, j int) *Tensor {
	out := s.out(x.shape[s.axis])
	ranges := slices.Repeat([]Range{All}, s.axis+1)
	ranges[s.axis] = Range{j * s.dilation, j*s.dilation + (out-1)*s.stride + 1, s.stride}
	if out == 0 {
		ranges[s.axis] = Range{}
	}
	return x.Slice(ranges...)
}

// reduce combines the elements of windows, or reduces rows of them.
func (s slide) reduce(x *Tensor, combine func(a, b *Tensor) *Tensor, rows func(x *Tensor) *Tensor) *Tensor {
	switch out := s.out(x.shape[s.axis]); {
	case s.size == 1 || out == 0:
		return s.tap(x, 0)
	case s.size <= mostTaps:
		y := s.tap(x, 0)
		for j := 1; j < s.size; j++ {
			y = combine(y, s.tap(x, j))
		}
		return y
	case s.stride >= s.size || out == 1:
		return rows(x.Windows(s.axis, s.size, s.stride, s.dilation))
	}
	// Windows of a length that is a power of two are made of two halves, and others of those.
	var y *Tensor
	for have, length := 0, 1; ; length *= 2 {
		n := x.shape[s.axis]
		if s.size&length != 0 {
			part := x.Narrow(s.axis, have*s.dilation, n-have*s.dilation)
			part = slide{s.axis, 1, s.stride, 1}.tap(part, 0).Narrow(s.axis, 0, s.out(n+(length-1)*s.dilation))
			if y != nil {
				part = combine(y, part)
			}
			y = part
			if have += length; have == s.size {
				return y
			}
		}
		x = combine(x.Narrow(s.axis, 0, n-length*s.dilation), x.Narrow(s.axis, length*s.dilation, n-length*s.dilation))
	}
}

// sum returns the sums of windows.
func (s slide) sum(x *Tensor) *Tensor {
	y := s.reduce(x, func(a, b *Tensor) *Tensor { return a.Add(b) }, func(x *Tensor) *Tensor { return x.Sum(s.axis + 1) })
	return WithGradient(y, []*Tensor{x}, func(g *Tensor) []*Tensor {
		return []*Tensor{s.gather(x.shape[s.axis], g.shape[s.axis], func(before, behind int) func(j int) *Tensor {
			wide := g.padAxis(s.axis, before, behind)
			return func(int) *Tensor { return wide }
		})}
	})
}

// max returns the maxima of windows.
func (s slide) max(x *Tensor) *Tensor {
	y := s.reduce(x, func(a, b *Tensor) *Tensor { return a.Maximum(b) }, func(x *Tensor) *Tensor {
		return x.Max(s.axis + 1)
	})
	if y.err != nil || !IsFloat(x.typ) {
		return y
	}
	return WithGradient(y, []*Tensor{x}, func(g *Tensor) []*Tensor {
		first := s.first(x, y)
		return []*Tensor{s.gather(x.shape[s.axis], g.shape[s.axis], func(before, behind int) func(j int) *Tensor {
			wide, at := g.padAxis(s.axis, before, behind), first.padAxis(s.axis, before, behind)
			return func(j int) *Tensor { return Where(at.Eq(j), wide, 0) }
		})}
	})
}

// first returns the places in the windows of x of the first elements that are equal to y, the maxima of the windows.
func (s slide) first(x, y *Tensor) *Tensor {
	same := func(x, y *Tensor) *Tensor { return x.Eq(y).Or(x.IsNaN()) }
	if s.size > mostTaps {
		places := Iota(x.scope, I32, append([]int{s.size}, slices.Repeat([]int{1}, len(x.shape)-s.axis-1)...)...)
		return Where(same(x.Windows(s.axis, s.size, s.stride, s.dilation), y.Unsqueeze(s.axis+1)), places,
			s.size).Min(s.axis + 1)
	}
	at := Full(x.scope, U8, s.size-1, y.shape...)
	for j := s.size - 2; j >= 0; j-- {
		at = Where(same(s.tap(x, j), y), Full(x.scope, U8, j), at)
	}
	return at
}
