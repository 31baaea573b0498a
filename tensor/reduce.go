package tensor

// Reductions over dimensions.

import (
	"math"
	"slices"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
)

// reduceOp reduces the last dimension of its arg.
type reduceOp struct {
	name  string
	op    expr.Op
	parts *Tensor // reductions of parts of the rows, which are reduced in place of the rows themselves; nil for most
}

func (o *reduceOp) String() string { return o.name }

// locates reports whether the result is the place of an element in its row.
func (o *reduceOp) locates() bool { return o.op == expr.ArgLargest || o.op == expr.ArgSmallest }

func (o *reduceOp) grad(t, g *Tensor) []*Tensor {
	a := t.args[0]
	if !IsFloat(t.typ) {
		return []*Tensor{nil}
	}
	wide := t.typ.Computed()
	return []*Tensor{o.derivative(a.Cast(wide), t.Cast(wide), g.Cast(wide)).Cast(a.typ)}
}

// derivative returns the gradient of a, whose last dimension is reduced to t, for the gradient g of t.
func (o *reduceOp) derivative(a, t, g *Tensor) *Tensor {
	wide := func(x *Tensor) *Tensor { return x.Unsqueeze(-1).expand(a.shape) }
	switch o.op {
	case expr.Sum:
		return wide(g)
	case expr.Product:
		rows := a.Reshape(-1, a.shape[len(a.shape)-1])
		return rows.others().Reshape(a.shape...).Mul(wide(g))
	}
	return a.ties(t, g, []int{len(a.shape) - 1})
}

// ties returns the gradient of t for the gradient g of its extremes y over some axes: all elements that are equal to an
// extreme share its gradient.
func (t *Tensor) ties(y, g *Tensor, axes []int) *Tensor {
	wide := t.typ.Computed()
	share := t.Eq(y.keep(t, axes)).Cast(wide)
	return g.Cast(wide).keep(t, axes).Mul(share).Div(share.Sum(axes...).keep(t, axes)).Cast(t.typ)
}

// others returns for each element of a row of t, of two dimensions, the product of all others. It makes products of
// the elements of both halves of the rows, of their halves, and so on: without a division, so that the derivatives of
// any order are right where elements are 0.
func (t *Tensor) others() *Tensor {
	rows, n := t.shape[0], t.shape[1]
	if n == 1 {
		return Ones(t.scope, t.typ, rows, 1)
	}
	half := (n + 1) / 2
	halves := t.Pad(1, [2]int{}, [2]int{0, 2*half - n}).Reshape(rows, 2, half)
	beyond := halves.Index(1, 0).Mul(halves.Index(1, 1)).others()
	return halves.Flip(1).Mul(beyond.Unsqueeze(1)).Reshape(rows, 2*half).Narrow(1, 0, n)
}

// reduceAxes reduces dimensions, counted from the front, and drops them. The result has type to: that of the elements,
// or the one that they are added up in, Computed, which also what lies between the steps of a reduction has.
func (t *Tensor) reduceAxes(name string, op expr.Op, axes []int, to Type) *Tensor {
	if t.err != nil || len(axes) == 0 {
		return t.Cast(to)
	}
	x, steps, all := t, 0, slices.Sorted(slices.Values(axes))
	for axes := all; len(axes) > 0; steps++ {
		// Neighbours are reduced together, as one dimension, the last ones first.
		last := axes[len(axes)-1]
		first := last
		for axes = axes[:len(axes)-1]; len(axes) > 0 && axes[len(axes)-1] == first-1; axes = axes[:len(axes)-1] {
			first--
		}
		typ := to
		if len(axes) > 0 { // more steps follow
			typ = t.typ.Computed()
		}
		x = x.reduceRange(name, op, first, last, typ)
	}
	// Each step would divide the gradient among those that are equal in it, but all that are equal to the result have
	// equal parts.
	if steps > 1 && (op == expr.Largest || op == expr.Smallest) && IsFloat(t.typ) {
		y := x
		x = WithGradient(y, []*Tensor{t}, func(g *Tensor) []*Tensor { return []*Tensor{t.ties(y, g, all)} })
	}
	return x
}

// reduceRange reduces the dimensions from first to last, and drops them.
func (t *Tensor) reduceRange(name string, op expr.Op, first, last int, to Type) *Tensor {
	n := count(t.shape[first : last+1])
	var order []int
	for j := range t.shape {
		if j < first || j > last {
			order = append(order, j)
		}
	}
	var kept []int
	for _, j := range order {
		kept = append(kept, t.shape[j])
	}
	order = append(order, counts(first, last+1)...)
	if n == 0 || count(kept) == 0 {
		return filled(t.scope, to, kept, identity(op, to))
	}
	rows := t.Permute(order...).Reshape(append(slices.Clone(kept), n)...)
	if rows.err != nil {
		return rows
	}
	o := &reduceOp{name: name, op: op}
	if parts := rows.parts(last < len(t.shape)-1); parts > 1 && !o.locates() {
		part := rows.Reshape(append(slices.Clone(kept), parts, n/parts)...)
		o.parts = made(&reduceOp{name: name, op: op}, t.typ.Computed(), append(slices.Clone(kept), parts), part)
	}
	return made(o, to, kept, rows)
}

// parts returns into how many parts the rows of t, in the last dimension, are divided before they are reduced; 1 on the
// CPU. On other devices a row is the work of one group, or of one item where columns says that rows lie side by side,
// and few long rows would use little of the device. The number depends on the shape alone, and so do results.
func (t *Tensor) parts(columns bool) int {
	last := len(t.shape) - 1
	n, rows := t.shape[last], count(t.shape[:last])
	if !t.scope.engine.inGroups() {
		return 1
	}
	parts := kernels.ReduceParts(rows, n, 1)
	if columns {
		parts = min(n/64, 512*kernels.Group/rows, 4096)
	}
	for parts > 1 && n%parts != 0 {
		parts--
	}
	return parts
}

// identity returns the reduction of no elements.
func identity(op expr.Op, t Type) *expr.Expr {
	switch {
	case op == expr.All:
		return expr.Int(Bool, 1)
	case op == expr.Any:
		return zero(Bool)
	case op == expr.Product:
		return zero(t).Number(1)
	case op == expr.Largest && IsFloat(t):
		return expr.Float(t.Computed(), math.Inf(-1))
	case op == expr.Smallest && IsFloat(t):
		return expr.Float(t.Computed(), math.Inf(1))
	}
	return zero(t)
}

// reduce reduces the given dimensions, or all.
func (t *Tensor) reduce(name string, op expr.Op, axes []int) *Tensor {
	if bad := check(name, t); bad != nil {
		return bad
	}
	list, err := t.axes(axes)
	if err != nil {
		return fail(t.scope, name, err)
	}
	return t.reduceAxes(name, op, list, t.typ)
}

// keep returns a reduction of the given dimensions of t, or of all, with these dimensions of length 1.
func (t *Tensor) keep(of *Tensor, axes []int) *Tensor {
	if t.err != nil || of.err != nil {
		return t
	}
	list, err := of.axes(axes)
	if err != nil {
		return fail(t.scope, "keep dims", err)
	}
	shape := slices.Clone(of.shape)
	for _, i := range list {
		shape[i] = 1
	}
	return t.Reshape(shape...)
}

// KeepDims returns the result r of a reduction of t over the given axes, or all, with these axes of length 1, so that
// it stretches to t's shape.
func (t *Tensor) KeepDims(r *Tensor, axes ...int) *Tensor {
	if bad := check("keep dims", t, r); bad != nil {
		return bad
	}
	return r.keep(t, axes)
}

// The reductions below are over the given axes, of which negative ones count from the end, or over all if none are
// given. The result lacks these axes; KeepDims gives them length 1.

// Sum returns the sum; of integers in 64 bits, of Bools how many are true, as NumPy does. Of no elements it is 0.
func (t *Tensor) Sum(axes ...int) *Tensor { return t.wide().reduce("sum", expr.Sum, axes) }

// Prod returns the product; of integers in 64 bits. Of no elements it is 1.
func (t *Tensor) Prod(axes ...int) *Tensor { return t.wide().reduce("prod", expr.Product, axes) }

// wide returns integers in 64 bits.
func (t *Tensor) wide() *Tensor {
	if t.err != nil || IsFloat(t.typ) {
		return t
	}
	if t.typ == U8 || t.typ == U16 || t.typ == U32 || t.typ == U64 {
		return t.Cast(U64)
	}
	return t.Cast(I64)
}

// accumulated returns t in the type of its accumulator, integers in F64, and the type that results of t have: what is
// computed of sums is rounded to it once, at the end, so that a sum of half that is beyond its largest number has a
// mean.
func (t *Tensor) accumulated() (x *Tensor, typ Type) {
	switch {
	case t.err != nil:
		return t, t.typ
	case !IsFloat(t.typ):
		return t.Cast(F64), F64
	}
	return t.Cast(t.typ.Computed()), t.typ
}

// Mean returns the mean, of integers in F64; of no elements it is NaN.
func (t *Tensor) Mean(axes ...int) *Tensor {
	x, typ := t.accumulated()
	return x.Sum(axes...).Div(float64(t.counted(axes))).Cast(typ)
}

// counted returns how many elements are reduced to one.
func (t *Tensor) counted(axes []int) int {
	list, err := t.axes(axes)
	if err != nil {
		return 0
	}
	n := 1
	for _, i := range list {
		n *= t.shape[i]
	}
	return n
}

// Var returns the variance: the sum of the squares of the distances from the mean, divided by the number of elements
// less correction. That is 0 for the variance of a population, and 1 for an estimate by a sample.
func (t *Tensor) Var(correction int, axes ...int) *Tensor {
	x, typ := t.accumulated()
	d := x.Sub(x.Mean(axes...).keep(x, axes))
	return d.Square().Sum(axes...).Div(float64(max(t.counted(axes)-correction, 0))).Cast(typ)
}

// Std returns the square root of Var. The gradient of that of equal elements is 0.
func (t *Tensor) Std(correction int, axes ...int) *Tensor {
	x, typ := t.accumulated()
	return x.Var(correction, axes...).unless0((*Tensor).Sqrt).Cast(typ)
}

// unless0 returns a function of t where t is not 0, and 0 with the gradient 0 elsewhere: the derivative of a root at
// 0 is infinite, and what is below it there has the derivative 0.
func (t *Tensor) unless0(f func(t *Tensor) *Tensor) *Tensor {
	none := t.Eq(0)
	return Where(none, 0, f(Where(none, 1, t)))
}

// Max returns the maximum, NaN if an element is. Of no elements there is none, which is an error.
func (t *Tensor) Max(axes ...int) *Tensor { return t.extreme("max", expr.Largest, axes) }

// Min returns the minimum, NaN if an element is. Of no elements there is none, which is an error.
func (t *Tensor) Min(axes ...int) *Tensor { return t.extreme("min", expr.Smallest, axes) }

func (t *Tensor) extreme(name string, op expr.Op, axes []int) *Tensor {
	if bad := check(name, t); bad != nil {
		return bad
	}
	if t.counted(axes) == 0 && t.Len() == 0 {
		if list, err := t.axes(axes); err == nil {
			return failf(t.scope, name, ErrShape, "no element in axes %v of %v", list, t.shape)
		}
	}
	if t.typ == Bool {
		return t.Cast(U8).reduce(name, op, axes).Cast(Bool)
	}
	return t.reduce(name, op, axes)
}

// All returns whether all elements are true, that is, not 0.
func (t *Tensor) All(axes ...int) *Tensor { return t.Cast(Bool).reduce("all", expr.All, axes) }

// Any returns whether an element is true, that is, not 0.
func (t *Tensor) Any(axes ...int) *Tensor { return t.Cast(Bool).reduce("any", expr.Any, axes) }

// Norm returns (Σ|t|^p)^(1/p); with p = +∞ the largest |t|. The gradient of the norm of zeros is 0 with positive p.
func (t *Tensor) Norm(p float64, axes ...int) *Tensor {
	x, typ := t.accumulated()
	switch {
	case math.IsInf(p, 1):
		x = x.Abs().extreme("norm", expr.Largest, axes)
	case p == 1:
		x = x.Abs().Sum(axes...)
	case p == 2:
		x = x.Square().Sum(axes...).unless0((*Tensor).Sqrt)
	case p > 0:
		x = x.Abs().Pow(p).Sum(axes...).unless0(func(s *Tensor) *Tensor { return s.Pow(1 / p) })
	default:
		x = x.Abs().Pow(p).Sum(axes...).Pow(1 / p)
	}
	return x.Cast(typ)
}

// peak returns the maximum, or -∞ of no elements.
func (t *Tensor) peak(axes ...int) *Tensor {
	if t.err == nil && t.Len() == 0 && t.counted(axes) == 0 {
		return t.Sum(axes...).Sub(math.Inf(1))
	}
	return t.Max(axes...)
}

// LogSumExp returns ln Σ e^t, computed from the distances to the maximum, so that nothing overflows. Of no elements it
// is -∞.
func (t *Tensor) LogSumExp(axes ...int) *Tensor {
	x, typ := t.accumulated()
	m := x.peak(axes...).StopGradient()
	m = Where(m.Abs().Eq(math.Inf(1)), 0, m)
	return x.Sub(m.keep(x, axes)).Exp().Sum(axes...).Log().Add(m).Cast(typ).called("log sum exp", t)
}

// Softmax returns e^t divided by its sum over an axis. A row with NaN or +∞, or of -∞ alone, becomes NaN.
func (t *Tensor) Softmax(axis int) *Tensor {
	x, typ := t.accumulated()
	e := x.Sub(x.peak(axis).StopGradient().keep(x, []int{axis})).Exp()
	// a quotient for each row, since products are faster
	y := e.Mul(e.Sum(axis).Reciprocal().keep(x, []int{axis})).completing(expr.Softmax)
	return y.Cast(typ).called("softmax", t)
}

// LogSoftmax returns the logarithm of Softmax, t - LogSumExp(t).
func (t *Tensor) LogSoftmax(axis int) *Tensor {
	x, typ := t.accumulated()
	d := x.Sub(x.peak(axis).StopGradient().keep(x, []int{axis}))
	return d.Sub(d.Exp().Sum(axis).Log().keep(x, []int{axis})).Cast(typ).called("log softmax", t)
}
