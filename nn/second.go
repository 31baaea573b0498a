package nn

// Optimizers of the second order, which need the loss of all examples at once: L-BFGS and Newton's method. They
// are few vectors or a small matrix on the host around gradients and products with the Hessian on the device.

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/concord-compute/concord/tensor"
)

// LBFGS minimizes the loss of all examples by the two-loop recursion over the last Memory changes of parameters
// and gradients, with a line search that halves steps until the loss falls enough.
type LBFGS struct {
	Memory int // changes; 0 is 20
}

// Newton minimizes the loss of all examples by solving (H + Damping·1)·d = g with the Hessian H, in full. A
// model of more than Limit parameters is refused with [ErrConfig].
type Newton struct {
	Damping *float64 // not negative; nil is 1e-4
	Limit   int      // the most parameters; 0 is 512
}

// objective is the loss of all examples as a function of the parameters. Running statistics stay as they are,
// and nothing may be random.
type objective struct {
	m       *Model
	scope   *tensor.Scope
	d       Data
	loss    *tensor.Func // params, examples... -> loss, gradient
	times   *tensor.Func // params, vector, examples... -> product of the Hessian with the vector
	mistake error
}

func newObjective(ctx context.Context, m *Model, l Loss, d Data) (*objective, error) {
	if m.split {
		return nil, fmt.Errorf("%w: steps of second order for a network that members divide", ErrConfig)
	}
	t, err := NewTrainer(m, Config{Split: new(0.0), Loss: l, Metrics: []Metric{}})
	if err != nil {
		return nil, err
	}
	if err := t.fits(ctx, d, 0); err != nil {
		t.Close()
		return nil, err
	}
	o := &objective{m: m, scope: t.scope, d: d}
	gradient := func(params *tensor.Tensor, examples []*tensor.Tensor) (loss, grad *tensor.Tensor) {
		p := m.pass(params, m.values.states, nil)
		p.Training = true
		loss, _, _, o.mistake = t.forward(p, t.batch(examples))
		if o.mistake != nil {
			return nil, nil
		}
		return loss, together(p.scope, m.typ, m.gradients(p, loss))
	}
	o.loss = tensor.Compile(t.scope, func(a ...*tensor.Tensor) []*tensor.Tensor {
		loss, grad := gradient(a[0], a[1:])
		if loss == nil {
			return nil
		}
		return []*tensor.Tensor{loss, grad}
	})
	o.times = tensor.Compile(t.scope, func(a ...*tensor.Tensor) []*tensor.Tensor {
		loss, grad := gradient(a[0], a[2:])
		if loss == nil {
			return nil
		}
		return tensor.Grad(grad.Mul(a[1]).Sum(), a[0])
	})
	return o, nil
}

// call calls a function of parameters and vectors, and reads its results.
func (o *objective) call(ctx context.Context, f *tensor.Func, vectors ...[]float64) (out [][]float64, err error) {
	work := o.scope.Scope()
	defer work.Close()
	var args []*tensor.Tensor
	for _, v := range vectors {
		args = append(args, tensor.From(work, v, len(v)).Cast(o.m.typ))
	}
	results, err := f.Call(ctx, append(args, o.d.args(tensor.Iota(work, tensor.U32, o.d.X.Dim(0)))...)...)
	if o.mistake != nil {
		return nil, o.mistake
	}
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		list, err := tensor.Read[float64](ctx, r.Cast(tensor.F64))
		if err != nil {
			return nil, err
		}
		out = append(out, list)
	}
	return out, nil
}

// at returns the loss and its gradient.
func (o *objective) at(ctx context.Context, w []float64) (float64, []float64, error) {
	out, err := o.call(ctx, o.loss, w)
	if err != nil {
		return 0, nil, err
	}
	return out[0][0], out[1], nil
}

// begin returns the model's parameters, the loss and its gradient.
func (o *objective) begin(ctx context.Context) (w []float64, loss float64, g []float64, err error) {
	if w, err = tensor.Read[float64](ctx, o.m.values.params.Cast(tensor.F64)); err != nil {
		return nil, 0, nil, err
	}
	loss, g, err = o.at(ctx, w)
	if err == nil && (math.IsNaN(loss) || math.IsInf(loss, 0) || !isFinite(g)) {
		err = fmt.Errorf("%w: the loss or its gradient before the first step", ErrNumerical)
	}
	return w, loss, g, err
}

// end gives the model parameters.
func (o *objective) end(ctx context.Context, w []float64) error {
	work := o.scope.Scope()
	defer work.Close()
	return o.m.set(ctx, tensor.From(work, w, len(w)).Cast(o.m.typ), o.m.values.states)
}

// Minimize makes up to some steps, and returns the loss before the first and after each. It makes fewer where
// no step makes the loss less. The model has the parameters of the last one.
func (l LBFGS) Minimize(ctx context.Context, m *Model, loss Loss, d Data, steps int) ([]float64, error) {
	memory := or(l.Memory, 20)
	if memory < 1 || steps < 1 {
		return nil, fmt.Errorf("%w: L-BFGS with a memory of %d and %d steps", ErrConfig, memory, steps)
	}
	o, err := newObjective(ctx, m, loss, d)
	if err != nil {
		return nil, err
	}
	defer o.scope.Close()
	w, f, g, err := o.begin(ctx)
	if err != nil {
		return nil, err
	}
	losses := []float64{f}
	var past []pair2
	for range steps {
		way := direction(g, past)
		slope := dot(way, g)
		if !(slope < 0) { // which rounding can do
			past, way = nil, scaled(g, -1)
			slope = dot(way, g)
		}
		step := 1.0
		if len(past) == 0 {
			step = min(1, 1/math.Sqrt(-slope))
		}
		moved := false
		for range 40 {
			next := plus(w, step, way)
			fn, gn, err := o.at(ctx, next)
			if err != nil {
				return losses, errors.Join(err, o.end(context.WithoutCancel(ctx), w))
			}
			if fn <= f+1e-4*step*slope && fn < f && isFinite(gn) {
				s, y := scaled(way, step), plus(gn, -1, g)
				if sy := dot(s, y); sy > 1e-12*dot(y, y) {
					past = append(past, pair2{s, y, 1 / sy})
					past = past[max(len(past)-memory, 0):]
				}
				w, f, g, moved = next, fn, gn, true
				break
			}
			step /= 2
		}
		if !moved {
			break
		}
		losses = append(losses, f)
	}
	return losses, o.end(ctx, w)
}

// pair2 is a change of parameters s, that of gradients y, and 1/(s·y).
type pair2 struct {
	s, y []float64
	rho  float64
}

// direction returns the product of the inverse Hessian that the past suggests with -g.
func direction(g []float64, past []pair2) []float64 {
	q, a := scaled(g, -1), make([]float64, len(past))
	for i := len(past) - 1; i >= 0; i-- {
		a[i] = past[i].rho * dot(past[i].s, q)
		q = plus(q, -a[i], past[i].y)
	}
	if n := len(past); n > 0 {
		q = scaled(q, 1/(past[n-1].rho*dot(past[n-1].y, past[n-1].y)))
	}
	for i, p := range past {
		q = plus(q, a[i]-p.rho*dot(p.y, q), p.s)
	}
	return q
}

// Minimize makes some steps, and returns the loss before the first and after each. The model has the parameters
// of the last one.
func (n Newton) Minimize(ctx context.Context, m *Model, loss Loss, d Data, steps int) ([]float64, error) {
	damping, limit := given(n.Damping, 1e-4), or(n.Limit, 512)
	if !(damping >= 0) || steps < 1 {
		return nil, fmt.Errorf("%w: Newton's method with a damping of %v and %d steps", ErrConfig, damping, steps)
	}
	if m.Count() > limit {
		return nil, fmt.Errorf("%w: Newton's method for %d parameters, at most %d", ErrConfig, m.Count(), limit)
	}
	o, err := newObjective(ctx, m, loss, d)
	if err != nil {
		return nil, err
	}
	defer o.scope.Close()
	w, f, g, err := o.begin(ctx)
	if err != nil {
		return nil, err
	}
	losses := []float64{f}
	for range steps {
		rows := make([][]float64, len(w))
		for i := range rows {
			one := make([]float64, len(w))
			one[i] = 1
			out, err := o.call(ctx, o.times, w, one)
			if err != nil {
				return losses, err
			}
			rows[i] = out[0]
			rows[i][i] += damping
		}
		delta, ok := solve(rows, g)
		if !ok {
			return losses, fmt.Errorf("%w: the Hessian has no inverse", ErrNumerical)
		}
		next := plus(w, -1, delta)
		fn, gn, err := o.at(ctx, next)
		if err != nil {
			return losses, err
		}
		if math.IsNaN(fn) || math.IsInf(fn, 0) || !isFinite(gn) {
			return losses, fmt.Errorf("%w: the loss after step %d", ErrNumerical, len(losses))
		}
		w, f, g = next, fn, gn
		losses = append(losses, f)
		if err := o.end(ctx, w); err != nil {
			return losses, err
		}
	}
	return losses, nil
}

// solve returns x with a·x = b, by elimination with the largest pivots. It overwrites a.
func solve(a [][]float64, b []float64) ([]float64, bool) {
	x := scaled(b, 1)
	for i := range a {
		top := i
		for r := i + 1; r < len(a); r++ {
			if math.Abs(a[r][i]) > math.Abs(a[top][i]) {
				top = r
			}
		}
		a[i], a[top], x[i], x[top] = a[top], a[i], x[top], x[i]
		if a[i][i] == 0 || math.IsNaN(a[i][i]) {
			return nil, false
		}
		for r := i + 1; r < len(a); r++ {
			k := a[r][i] / a[i][i]
			for c := i; c < len(a); c++ {
				a[r][c] -= k * a[i][c]
			}
			x[r] -= k * x[i]
		}
	}
	for i := len(a) - 1; i >= 0; i-- {
		for c := i + 1; c < len(a); c++ {
			x[i] -= a[i][c] * x[c]
		}
		x[i] /= a[i][i]
	}
	return x, isFinite(x)
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// plus returns a + k·b.
func plus(a []float64, k float64, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] + k*b[i]
	}
	return out
}

func scaled(a []float64, k float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = k * a[i]
	}
	return out
}

func isFinite(a []float64) bool {
	for _, x := range a {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}
