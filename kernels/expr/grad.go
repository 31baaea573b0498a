package expr

// Gradients of expressions, which are expressions too.

import (
	"math"
	"slices"
)

// Gradient returns the derivatives of y with respect to other expressions, times dy, an expression of y's type: one
// step of reverse accumulation, so that Gradient of its results gives higher derivatives. Each of wrt is an input, a
// parameter or another expression that y contains; the derivative with respect to one that y does not contain is 0.
//
// Where a function has no derivative, the mean of the derivatives from both sides is chosen: 0 for |x| and for
// CopySign of x at 0, and half of the gradient for each of two equal operands of Min and Max. That is right for
// the first derivative of a smooth function that is composed of them, but not for its second: compose it by
// [Expr.Select], with one condition in all places. Of [Expr.Relu], [Expr.AtLeast] and [Expr.AtMost] these
// methods tell. Floor and operations whose results are integers or Bools have the derivative 0. A mistake in an
// expression passes to the results.
//
// Reductions have derivatives for each element of the row; of [Smallest] and [Largest] all elements that are equal to
// the result share it. The first and the second derivatives of [Product] are right also where elements are 0. Where y
// contains a reduction, the gradient with respect to a value that is the same for the whole row is the sum over the
// row.
//
// An input or a parameter is recognized by its slot, any other expression of wrt only by being the same *Expr.
// At a NaN, the gradients of [Abs], [Min], [Max] and [CopySign] are those of one side, and all others are NaN.
func Gradient(y, dy *Expr, wrt ...*Expr) []*Expr {
	fail := func(e *Expr) []*Expr { return slices.Repeat([]*Expr{e}, len(wrt)) }
	for _, e := range append([]*Expr{y, dy}, wrt...) {
		if e == nil {
			return fail(wrong("the gradient of or by a nil expression"))
		}
		if e.err != nil {
			return fail(e)
		}
	}
	if !y.typ.IsFloat() || dy.typ != y.typ {
		return fail(wrong("the gradient of a %v by a %v: both are of one floating type", y.typ, dy.typ))
	}
	order := ordered(y)
	uniform, reduced := map[*Expr]bool{}, false // values that are the same for a whole row
	for _, e := range order {
		uniform[e] = e.op != opInput && e.op != opIndex && e.op != opRandom
		for _, a := range e.args[:ops[e.op].arity] {
			uniform[e] = uniform[e] && uniform[a]
		}
		uniform[e] = uniform[e] || e.op.reduces()
		reduced = reduced || e.op.reduces() || e.op.named()
	}
	adjoint := map[*Expr]*Expr{y: dy}
	for _, e := range slices.Backward(order) {
		g := adjoint[e]
		if g == nil || !e.typ.IsFloat() {
			continue
		}
		for j, d := range derivatives(e, g) {
			a := e.args[j]
			if d == nil || !a.typ.IsFloat() {
				continue
			}
			if reduced && uniform[a] && (!uniform[e] || e.op.reduces()) && a.op != opConst {
				d = d.Sum()
			}
			if had := adjoint[a]; had != nil {
				d = had.Add(d)
			}
			adjoint[a] = d
		}
	}
	results := make([]*Expr, len(wrt))
	for i, x := range wrt {
		for _, e := range order {
			g := adjoint[e]
			same := e == x || e.op == x.op && (e.op == opInput || e.op == opParam) && e.slot == x.slot &&
				e.elem == x.elem && e.typ == x.typ
			if g == nil || !same {
				continue
			}
			if had := results[i]; had != nil {
				g = had.Add(g)
			}
			results[i] = g
		}
		if results[i] == nil {
			results[i] = x.Number(0)
		}
	}
	return results
}

// ordered lists y and all expressions that it is made of, operands first.
func ordered(y *Expr) []*Expr {
	var list []*Expr
	done := map[*Expr]bool{}
	stack := []*Expr{y}
	for len(stack) > 0 {
		e := stack[len(stack)-1]
		ready := true
		for _, a := range e.args[:ops[e.op].arity] {
			if !done[a] {
				stack, ready = append(stack, a), false
			}
		}
		if ready {
			stack = stack[:len(stack)-1]
			if !done[e] {
				done[e] = true
				list = append(list, e)
			}
		}
	}
	return list
}

// rule chooses among derivatives of an operation.
type rule uint8

const (
	_         rule = iota
	toSecond       // of Min and Max: the second of equal operands has the gradient; by default each has half
	nonzero        // of Product: no element is 0
	roundOnce      // of Cast to F32: an output of 16 bits rounds the operand itself
)

// by returns e, which is new, with a rule for its derivatives.
func (e *Expr) by(r rule) *Expr {
	e.rule = r
	return e
}

// derivatives returns the part of the gradient g of e that goes to each operand of e; nil stands for zero.
func derivatives(e, g *Expr) (d [3]*Expr) {
	x, y := e.args[0], e.args[1]
	n := func(v float64) *Expr { return e.Number(v) }
	square := func(v *Expr) *Expr { return v.Mul(v) }
	switch e.op {
	case Neg:
		d[0] = g.Neg()
	case Abs:
		d[0] = x.Eq(n(0)).Select(n(0), g.Mul(Apply(CopySign, n(1), x)))
	case Sqrt:
		d[0] = g.Mul(n(0.5)).Div(e)
	case Rsqrt:
		d[0] = g.Mul(n(-0.5)).Mul(e).Div(x)
	case Exp:
		d[0] = g.Mul(e)
	case Exp2:
		d[0] = g.Mul(e).Mul(n(math.Ln2))
	case Expm1:
		d[0] = g.Mul(e.Add(n(1)))
	case Log:
		d[0] = g.Div(x)
	case Log2:
		d[0] = g.Div(x.Mul(n(math.Ln2)))
	case Log1p:
		d[0] = g.Div(x.Add(n(1)))
	case Sin:
		d[0] = g.Mul(Apply(Cos, x))
	case Cos:
		d[0] = g.Mul(Apply(Sin, x)).Neg()
	case Tan:
		d[0] = g.Mul(square(e).Add(n(1)))
	case Sinh:
		d[0] = g.Mul(Apply(Cosh, x))
	case Cosh:
		d[0] = g.Mul(Apply(Sinh, x))
	case Tanh:
		d[0] = g.Mul(n(1).Sub(square(e)))
	case Asin:
		d[0] = g.Div(Apply(Sqrt, n(1).Sub(x).Mul(n(1).Add(x))))
	case Acos:
		d[0] = g.Div(Apply(Sqrt, n(1).Sub(x).Mul(n(1).Add(x)))).Neg()
	case Asinh:
		d[0] = g.Div(Apply(Sqrt, square(x).Add(n(1))))
	case Acosh:
		d[0] = g.Div(Apply(Sqrt, x.Sub(n(1)).Mul(x.Add(n(1)))))
	case Atanh:
		d[0] = g.Div(n(1).Sub(x).Mul(n(1).Add(x)))
	case Atan:
		d[0] = g.Div(square(x).Add(n(1)))
	case Erf:
		d[0] = g.Mul(n(2 / math.Sqrt(math.Pi))).Mul(square(x).Neg().Exp())
	case Erfc:
		d[0] = g.Mul(n(-2 / math.Sqrt(math.Pi))).Mul(square(x).Neg().Exp())
	case Sigmoid:
		d[0] = g.Mul(e).Mul(n(1).Sub(e))
	case GELU: // Φ(x) + x·φ(x)
		below := Apply(Erfc, x.Mul(n(-math.Sqrt2/2))).Mul(n(0.5))
		density := square(x).Mul(n(-0.5)).Exp().Mul(n(1 / math.Sqrt(2*math.Pi)))
		d[0] = g.Mul(below.Add(x.Mul(density)))
	case Add:
		d[0], d[1] = g, g
	case Sub:
		d[0], d[1] = g, g.Neg()
	case Mul:
		d[0], d[1] = g.Mul(y), g.Mul(x)
	case Div:
		d[0], d[1] = g.Div(y), g.Mul(e).Div(y).Neg()
	case Rem: // x - trunc(x/y)·y
		d[0], d[1] = g, g.Mul(Apply(Round, x.Sub(e).Div(y))).Neg()
	case Min, Max:
		if e.rule == toSecond && y.op == opConst { // the result is on the same side of it
			x = e
		}
		first := x.Lt(y)
		if e.op == Max {
			first = y.Lt(x)
		}
		first = Apply(Or, first, Apply(IsNaN, x))
		if d[0], d[1] = first.Select(g, n(0)), first.Select(n(0), g); e.rule != toSecond {
			same, half := x.Eq(y), g.Mul(n(0.5))
			d[0], d[1] = same.Select(half, d[0]), same.Select(half, d[1])
		}
	case Pow: // where x is not positive, x^y has no derivative with respect to y
		d[0] = powerBy(g, x, y)
		d[1] = n(0).Lt(x).Select(g.Mul(e).Mul(n(0).Lt(x).Select(x, n(1)).Log()), n(0))
	case Atan2: // of x by y
		r := square(x).Add(square(y))
		d[0], d[1] = g.Mul(y).Div(r), g.Mul(x).Div(r).Neg()
	case CopySign:
		same := Apply(CopySign, n(1), x).Eq(Apply(CopySign, n(1), y))
		d[0] = x.Eq(n(0)).Select(n(0), same.Select(g, g.Neg()))
	case Select:
		d[1], d[2] = x.Select(g, n(0)), x.Select(n(0), g)
	case FMA:
		d[0], d[1], d[2] = g.Mul(y), g.Mul(x), g
	case Cast, opOdd:
		d[0] = g.Cast(x.typ)
	case Sum:
		d[0] = g
	case Product:
		if e.rule == nonzero {
			d[0] = g.Mul(e).Div(x)
		} else {
			d[0] = g.Mul(others(x))
		}
	case Smallest, Largest:
		same := x.Eq(e)
		d[0] = same.Select(g.Div(same.Select(n(1), n(0)).Sum()), n(0))
	case Softmax:
		d[0] = e.Mul(g.Sub(e.Mul(g).Sum()))
	case Normalize, RMSNormalize:
		d = derivativesOfNamed(e, g)
	}
	return d
}

// powerBy returns the part of the gradient g of x^y that goes to x. A constant y is counted down, so that whole
// powers end in a constant: with x^0 and x^-1 higher derivatives at 0 would be products of 0 and ∞.
func powerBy(g, x, y *Expr) *Expr {
	if y.op != opConst {
		// Where y is 0 the derivative is 0, which x^-1 and its derivatives must not make NaN: near 0, and of a NaN, they
		// are those of 1. Elsewhere they stay, since the derivative of the result by y is x^-1.
		away := x.Number(1e-6).Le(Apply(Abs, x))
		safe := y.Eq(y.Number(0)).Select(away.Select(x, x.Number(1)), x)
		return g.Mul(y).Mul(safe.Pow(y.Sub(y.Number(1))))
	}
	switch k := constant(&node{typ: y.typ, bits: y.bits}).Float; k {
	case 0:
		return nil
	case 1:
		return g
	case 2:
		return g.Mul(y).Mul(x)
	default:
		return g.Mul(y).Mul(x.Pow(x.Number(k - 1)))
	}
}

// others returns for each element of a row the product of all others, so that its first derivatives are right where
// elements are 0, too: that of the others that are not 0, times what stands for that of the others that are. Of one
// it is their sum, whose value is 0 and whose derivative is 1; of more, the first derivatives are 0.
func others(x *Expr) *Expr {
	n := func(v float64) *Expr { return x.Number(v) }
	zero := x.Eq(n(0))
	some, none := zero.Select(n(1), x), zero.Select(x, n(0))
	product, zeros, sum := some.Product().by(nonzero), zero.Select(n(1), n(0)).Sum(), none.Sum()
	choose := func(if0, if1, if2 *Expr) *Expr { // by the number of zeros
		return zeros.Eq(n(0)).Select(if0, zeros.Eq(n(1)).Select(if1, zeros.Eq(n(2)).Select(if2, n(0))))
	}
	return product.Mul(zero.Select(choose(n(0), n(1), sum.Sub(none)), choose(n(1), sum, n(0)).Div(some)))
}

// Work is the amount of work of a launch.
type Work struct {
	Operations float64 // each arithmetic operation or function of one element, or of one row, counts as one
	// bytes that are read or written: each element of an operand counts once, even if a step of 0 repeats it or
	// reductions read it again
	Bytes float64
}

// Work returns the amount of work of a launch with that layout, which [Map.Layout] returned.
func (m *Map) Work(l *Layout) Work {
	var w Work
	n, rows := float64(l.Len()), 0
	if m.Reduces() {
		rows, _ = l.rows()
	}
	for i := range m.nodes {
		switch m.nodes[i].op {
		case opInput, opParam, opConst, opIndex, opLength, Select, Cast, Bits, opOdd:
		case FMA:
			w.Operations += 2 * n
		case opRandom:
			w.Operations += 80 * n // ten rounds of eight
		default:
			if m.Reduces() && m.uniform[i] && !m.nodes[i].op.reduces() {
				w.Operations += float64(rows)
			} else {
				w.Operations += n
			}
		}
	}
	for k := range l.Operands {
		elements := n
		if m.oncePerRow(k) {
			elements = float64(rows)
		}
		dims, _ := m.own(k, l)
		for j, d := range dims {
			if d > 1 && l.Operands[k].Steps[j] == 0 {
				elements /= float64(d)
			}
		}
		w.Bytes += elements * float64(m.elem(k).Size())
	}
	return w
}
