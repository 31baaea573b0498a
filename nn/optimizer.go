package nn

// Optimizers: expressions over all parameters at once.

import (
	"fmt"
	"math"
	"slices"

	"github.com/concord-compute/concord/tensor"
)

// Optimizer says how parameters follow from gradients.
type Optimizer interface {
	// States names the optimizer's states: tensors of the parameters' shape, zeros before the first step.
	States() []string
	// Update returns the next parameters and states, from the parameters w, their gradient, the states, the
	// learning rate and the number of the step, the first of which is 1. rate and step are tensors of one element.
	Update(w, g *tensor.Tensor, states []*tensor.Tensor, rate,
		step *tensor.Tensor) (next *tensor.Tensor, nextStates []*tensor.Tensor)
	// String has the name and all settings.
	String() string
}

// Settings that are nil have the default behind them; new(0.0) is 0. w are the parameters, g is the gradient, t the
// number of the step.
type (
	// SGD is w -= rate·g.
	SGD struct{}
	// Momentum is v = Mu·v + g; w -= rate·v.
	Momentum struct {
		Mu *float64 // at least 0 and less than 1; nil is 0.9
	}
	// Nesterov is v = Mu·v + g; w -= rate·(g + Mu·v). Its setting is that of [Momentum].
	Nesterov Momentum
	// Adagrad is s += g²; w -= rate·g/(√s + Eps).
	Adagrad struct {
		Eps *float64 // not negative; nil is 1e-8
	}
	// Adadelta is s = Rho·s + (1-Rho)·g²; d = √((u+Eps)/(s+Eps))·g; u = Rho·u + (1-Rho)·d²; w -= rate·d. Its usual
	// rate is 1.
	Adadelta struct {
		Rho *float64 // at least 0 and less than 1; nil is 0.95
		Eps *float64 // not negative; nil is 1e-6
	}
	// RMSprop is s = Rho·s + (1-Rho)·g²; w -= rate·g/(√s + Eps).
	RMSprop struct {
		Rho *float64 // at least 0 and less than 1; nil is 0.99
		Eps *float64 // not negative; nil is 1e-8
	}
	// Adam has averages m and v of g and g², m̂ = m/(1-Beta1^t) and v̂ = v/(1-Beta2^t), and is w -= rate·m̂/(√v̂ + Eps).
	Adam struct {
		Beta1 *float64 // at least 0 and less than 1; nil is 0.9
		Beta2 *float64 // at least 0 and less than 1; nil is 0.999
		Eps   *float64 // not negative; nil is 1e-8
	}
	// AdaMax has the average m of g and u = max(Beta2·u, |g|), and is w -= rate/(1-Beta1^t)·m/(u + Eps). Its settings
	// are those of [Adam].
	AdaMax Adam
	// Nadam is Adam with Beta1·m̂ + (1-Beta1)·g/(1-Beta1^t) in place of m̂. Its settings are those of [Adam].
	Nadam Adam
	// AMSGrad is Adam with the largest v so far in place of v. Its settings are those of [Adam].
	AMSGrad Adam
	// AdaBound is w -= r·m with Adam's rate of each element, rate·√(1-Beta2^t)/(1-Beta1^t)/(√v + Eps), limited to
	// [Final·(1 - 1/(Gamma·t+1)), Final·(1 + 1/(Gamma·t))].
	AdaBound struct {
		Beta1 *float64 // as Adam's; nil is 0.9
		Beta2 *float64 // as Adam's; nil is 0.999
		Eps   *float64 // as Adam's; nil is 1e-8
		Final float64  // what the rates tend to, positive; 0 is 0.1
		Gamma float64  // how fast they do, positive; 0 is 1e-3
	}
)

// average returns beta·a + (1-beta)·x.
func average(a, x *tensor.Tensor, beta float64) *tensor.Tensor {
	return a.Mul(beta).Add(x.Mul(1 - beta))
}

// unbias returns 1 - beta^t, without the digits that the subtraction would lose.
func unbias(beta float64, t *tensor.Tensor) *tensor.Tensor {
	if beta == 0 { // which has no logarithm
		return tensor.Ones(t.Scope(), t.Type(), t.Shape()...)
	}
	return t.Mul(math.Log(beta)).Expm1().Neg()
}

// moments returns Adam's averages of g and g².
func moments(g *tensor.Tensor, states []*tensor.Tensor, beta1, beta2 float64) (m, v *tensor.Tensor) {
	return average(states[0], g, beta1), average(states[1], g.Square(), beta2)
}

// States names none.
func (SGD) States() []string { return nil }

// Update returns the next parameters.
func (SGD) Update(w, g *tensor.Tensor, _ []*tensor.Tensor, rate, _ *tensor.Tensor) (*tensor.Tensor, []*tensor.Tensor) {
	return w.Sub(g.Mul(rate)), nil
}

// String has the name.
func (SGD) String() string { return "sgd" }

// States names the velocity.
func (Momentum) States() []string { return []string{"velocity"} }

// Update returns the next parameters and the velocity.
func (o Momentum) Update(w, g *tensor.Tensor, s []*tensor.Tensor, rate,
	_ *tensor.Tensor) (*tensor.Tensor, []*tensor.Tensor) {
	v := s[0].Mul(given(o.Mu, 0.9)).Add(g)
	return w.Sub(v.Mul(rate)), []*tensor.Tensor{v}
}

// String has the name and the settings.
func (o Momentum) String() string { return described("momentum", "mu", given(o.Mu, 0.9)) }

// States names the velocity.
func (Nesterov) States() []string { return []string{"velocity"} }

// Update returns the next parameters and the velocity.
func (o Nesterov) Update(w, g *tensor.Tensor, s []*tensor.Tensor, rate,
	_ *tensor.Tensor) (*tensor.Tensor, []*tensor.Tensor) {
	mu := given(o.Mu, 0.9)
	v := s[0].Mul(mu).Add(g)
	return w.Sub(g.Add(v.Mul(mu)).Mul(rate)), []*tensor.Tensor{v}
}

// String has the name and the settings.
func (o Nesterov) String() string { return described("nesterov", "mu", given(o.Mu, 0.9)) }

// States names the sum of squares.
func (Adagrad) States() []string { return []string{"squares"} }

// Update returns the next parameters and the sum of squares.
func (o Adagrad) Update(w, g *tensor.Tensor, s []*tensor.Tensor, rate,
	_ *tensor.Tensor) (*tensor.Tensor, []*tensor.Tensor) {
	sum := s[0].Add(g.Square())
	return w.Sub(g.Mul(rate).Div(sum.Sqrt().Add(given(o.Eps, 1e-8)))), []*tensor.Tensor{sum}
}

// String has the name and the settings.
func (o Adagrad) String() string { return described("adagrad", "eps", given(o.Eps, 1e-8)) }

// States names the averages of the squares of gradients and of changes.
func (Adadelta) States() []string { return []string{"squares", "changes"} }

// Update returns the next parameters and the averages.
func (o Adadelta) Update(w, g *tensor.Tensor, s []*tensor.Tensor, rate,
	_ *tensor.Tensor) (*tensor.Tensor, []*tensor.Tensor) {
	rho, eps := given(o.Rho, 0.95), given(o.Eps, 1e-6)
	sq := average(s[0], g.Square(), rho)
	d := s[1].Add(eps).Div(sq.Add(eps)).Sqrt().Mul(g)
	return w.Sub(d.Mul(rate)), []*tensor.Tensor{sq, average(s[1], d.Square(), rho)}
}

// String has the name and the settings.
func (o Adadelta) String() string {
	return described("adadelta", "rho", given(o.Rho, 0.95), "eps", given(o.Eps, 1e-6))
}

// States names the average of squares.
func (RMSprop) States() []string { return []string{"squares"} }

// Update returns the next parameters and the average.
func (o RMSprop) Update(w, g *tensor.Tensor, s []*tensor.Tensor, rate,
	_ *tensor.Tensor) (*tensor.Tensor, []*tensor.Tensor) {
	sq := average(s[0], g.Square(), given(o.Rho, 0.99))
	return w.Sub(g.Mul(rate).Div(sq.Sqrt().Add(given(o.Eps, 1e-8)))), []*tensor.Tensor{sq}
}

// String has the name and the settings.
func (o RMSprop) String() string {
	return described("rmsprop", "rho", given(o.Rho, 0.99), "eps", given(o.Eps, 1e-8))
}

// adaptive returns the name and the settings of Adam and its relatives.
func adaptive(name string, o Adam) string {
	return described(name, "beta1", given(o.Beta1, 0.9), "beta2", given(o.Beta2, 0.999), "eps", given(o.Eps, 1e-8))
}

// filled returns the settings with defaults for those that are nil.
func (o Adam) filled() (beta1, beta2, eps float64) {
	return given(o.Beta1, 0.9), given(o.Beta2, 0.999), given(o.Eps, 1e-8)
}

// States names both averages.
func (Adam) States() []string { return []string{"m", "v"} }

// Update returns the next parameters and averages.
func (o Adam) Update(w, g *tensor.Tensor, s []*tensor.Tensor, rate,
	t *tensor.Tensor) (*tensor.Tensor, []*tensor.Tensor) {
	beta1, beta2, eps := o.filled()
	m, v := moments(g, s, beta1, beta2)
	root := v.Mul(unbias(beta2, t).Reciprocal()).Sqrt().Add(eps) // one division for all
	return w.Sub(m.Mul(rate.Div(unbias(beta1, t))).Div(root)), []*tensor.Tensor{m, v}
}

// String has the name and the settings.
func (o Adam) String() string { return adaptive("adam", o) }

// States names the average and the maximum.
func (AdaMax) States() []string { return []string{"m", "u"} }

// Update returns the next parameters, the average and the maximum.
func (o AdaMax) Update(w, g *tensor.Tensor, s []*tensor.Tensor, rate,
	t *tensor.Tensor) (*tensor.Tensor, []*tensor.Tensor) {
	beta1, beta2, eps := Adam(o).filled()
	m, u := average(s[0], g, beta1), s[1].Mul(beta2).Maximum(g.Abs())
	return w.Sub(m.Mul(rate.Div(unbias(beta1, t))).Div(u.Add(eps))), []*tensor.Tensor{m, u}
}

// String has the name and the settings.
func (o AdaMax) String() string { return adaptive("adamax", Adam(o)) }

// States names both averages.
func (Nadam) States() []string { return []string{"m", "v"} }

// Update returns the next parameters and averages.
func (o Nadam) Update(w, g *tensor.Tensor, s []*tensor.Tensor, rate,
	t *tensor.Tensor) (*tensor.Tensor, []*tensor.Tensor) {
	beta1, beta2, eps := Adam(o).filled()
	m, v := moments(g, s, beta1, beta2)
	ahead := average(m, g, beta1).Mul(rate.Div(unbias(beta1, t)))
	return w.Sub(ahead.Div(v.Div(unbias(beta2, t)).Sqrt().Add(eps))), []*tensor.Tensor{m, v}
}

// String has the name and the settings.
func (o Nadam) String() string { return adaptive("nadam", Adam(o)) }

// States names both averages and the largest of the second one.
func (AMSGrad) States() []string { return []string{"m", "v", "largest"} }

// Update returns the next parameters and states.
func (o AMSGrad) Update(w, g *tensor.Tensor, s []*tensor.Tensor, rate,
	t *tensor.Tensor) (*tensor.Tensor, []*tensor.Tensor) {
	beta1, beta2, eps := Adam(o).filled()
	m, v := moments(g, s, beta1, beta2)
	most := s[2].Maximum(v)
	root := most.Div(unbias(beta2, t)).Sqrt().Add(eps)
	return w.Sub(m.Mul(rate.Div(unbias(beta1, t))).Div(root)), []*tensor.Tensor{m, v, most}
}

// String has the name and the settings.
func (o AMSGrad) String() string { return adaptive("amsgrad", Adam(o)) }

// States names both averages.
func (AdaBound) States() []string { return []string{"m", "v"} }

// Update returns the next parameters and averages.
func (o AdaBound) Update(w, g *tensor.Tensor, s []*tensor.Tensor, rate,
	t *tensor.Tensor) (*tensor.Tensor, []*tensor.Tensor) {
	beta1, beta2, eps := Adam{o.Beta1, o.Beta2, o.Eps}.filled()
	final, gamma := or(o.Final, 0.1), or(o.Gamma, 1e-3)
	m, v := moments(g, s, beta1, beta2)
	own := rate.Mul(unbias(beta2, t).Sqrt()).Div(unbias(beta1, t)).Div(v.Sqrt().Add(eps))
	lo := t.Mul(gamma).Add(1).Reciprocal().Neg().Add(1).Mul(final)
	hi := t.Mul(gamma).Reciprocal().Add(1).Mul(final)
	return w.Sub(own.Clamp(lo, hi).Mul(m)), []*tensor.Tensor{m, v}
}

// String has the name and the settings.
func (o AdaBound) String() string {
	return adaptive("adabound", Adam{o.Beta1, o.Beta2, o.Eps}) + described("", "final", or(o.Final, 0.1), "gamma",
		or(o.Gamma, 1e-3))
}

// checkOptimizer returns an error if a setting makes no sense.
func checkOptimizer(o Optimizer) error {
	if o == nil {
		return fmt.Errorf("%w: no optimizer", ErrConfig)
	}
	if v, ok := o.(interface{ valid() bool }); ok && !v.valid() {
		return fmt.Errorf("%w: %v", ErrConfig, o)
	}
	return nil
}

// valid reports whether the settings make sense.
func (o Momentum) valid() bool { return fractions(o.Mu) }
func (o Nesterov) valid() bool { return fractions(o.Mu) }
func (o Adagrad) valid() bool  { return given(o.Eps, 0) >= 0 }
func (o Adadelta) valid() bool { return fractions(o.Rho) && given(o.Eps, 0) >= 0 }
func (o RMSprop) valid() bool  { return fractions(o.Rho) && given(o.Eps, 0) >= 0 }
func (o Adam) valid() bool     { return fractions(o.Beta1, o.Beta2) && given(o.Eps, 0) >= 0 }
func (o AdaMax) valid() bool   { return Adam(o).valid() }
func (o Nadam) valid() bool    { return Adam(o).valid() }
func (o AMSGrad) valid() bool  { return Adam(o).valid() }
func (o AdaBound) valid() bool {
	return Adam{o.Beta1, o.Beta2, o.Eps}.valid() && o.Final >= 0 && o.Gamma >= 0
}

// fractions reports whether all that are set are at least 0 and less than 1.
func fractions(list ...*float64) bool {
	return !slices.ContainsFunc(list, func(x *float64) bool { return !(given(x, 0) >= 0 && given(x, 0) < 1) })
}
