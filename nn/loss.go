package nn

// Losses. n is the number of elements, R that of rows, whose elements lie along the last dimension.

import (
	"fmt"
	"math"
	"slices"

	"github.com/concord-compute/concord/tensor"
)

// Loss compares what a network says with what it should say.
type Loss interface {
	// Of returns the mean loss of p, as a tensor of one element, or an error that matches ErrData if p and t do
	// not belong together, or ErrConfig. It is a mean over examples, so that those of parts of a batch, weighted
	// by their sizes, add up to that of the batch.
	Of(p, t *tensor.Tensor) (*tensor.Tensor, error)
	String() string
}

type (
	// MSE is Σ(p-t)²/n.
	MSE struct{}
	// MAE is Σ|p-t|/n.
	MAE struct{}
	// BinaryCrossEntropy is -Σ(t·ln p + (1-t)·ln(1-p))/n, with p limited to [1e-15, 1-1e-15], in F32 1e-7.
	// A p beyond these limits has the gradient 0: for a network that may say 0 or 1, take SigmoidCrossEntropy of
	// its logits.
	BinaryCrossEntropy struct{}
	// SigmoidCrossEntropy is BinaryCrossEntropy of the sigmoid of p, computed so that nothing overflows.
	SigmoidCrossEntropy struct{}
	// CategoricalCrossEntropy is -Σ t·ln p/R, with p limited as BinaryCrossEntropy does. t has p's shape, or it is
	// a label for each row: an integer. A p beyond the limits has the gradient 0, as that of BinaryCrossEntropy
	// has; CrossEntropy of logits has no limits.
	CategoricalCrossEntropy struct {
		Smoothing float64   // the part of t that is spread over all classes, less than 1; 0 is none
		Weights   []float64 // a factor for each class of t; nil is none. The loss is divided by R nevertheless
	}
	// CrossEntropy is CategoricalCrossEntropy of the softmax of p, computed so that nothing overflows. Its settings are
	// those of CategoricalCrossEntropy.
	CrossEntropy CategoricalCrossEntropy
	// Huber is Σ h(p-t)/n with h(d) = d²/2 up to |d| = Delta and Delta·(|d| - Delta/2) beyond.
	Huber struct {
		Delta float64 // positive; 0 is 1
	}
	// Hinge is Σ max(0, 1-t·p)/n.
	Hinge struct{}
	// SquaredHinge is Σ max(0, 1-t·p)²/n.
	SquaredHinge struct{}
	// KLDivergence is Σ t·ln(t/p)/n, with both at least 1e-15, below which they have the gradient 0.
	KLDivergence struct{}
	// Poisson is Σ (p - t·ln p)/n.
	Poisson struct{}
	// CosineSimilarity is Σ (1 - cos(p, t))/R; the cosine with a row of zeros is 0.
	CosineSimilarity struct{}
	// LogCosh is Σ ln cosh(p-t)/n.
	LogCosh struct{}
	// Quantile is Σ q(t-p)/n with q(d) = Q·d from 0 on and ·d below, also for derivatives.
	Quantile struct {
		Q float64 // less than 1; 0 is 0.5
	}
)

// pair returns p and t in the type that p is computed in, if both have one shape and p elements. Sums of losses are not
// rounded to p's type, only their mean is.
func pair(l Loss, p, t *tensor.Tensor) (wide, target *tensor.Tensor, err error) {
	if !slices.Equal(p.Shape(), t.Shape()) {
		return nil, nil, fmt.Errorf("%w: %v of results %v and targets %v", ErrData, l, p.Shape(), t.Shape())
	}
	if p.Len() == 0 {
		return nil, nil, fmt.Errorf("%w: %v of no elements", ErrData, l)
	}
	wide = p.Cast(p.Type().Computed())
	return wide, t.Cast(wide.Type()), nil
}

// each is a loss element by element.
func each(l Loss, p, t *tensor.Tensor, f func(p, t *tensor.Tensor) *tensor.Tensor) (*tensor.Tensor, error) {
	x, t, err := pair(l, p, t)
	if err != nil {
		return nil, err
	}
	return f(x, t).Mean().Cast(p.Type()), nil
}

// clip limits probabilities.
func clip(p *tensor.Tensor) *tensor.Tensor {
	if p.Type() == tensor.F64 {
		return p.Clamp(1e-15, 1-1e-15)
	}
	return p.Clamp(1e-7, 1-1e-7)
}

// from1 returns 1 - x.
func from1(x *tensor.Tensor) *tensor.Tensor { return x.Neg().Add(1) }

// Of returns the loss.
func (l MSE) Of(p, t *tensor.Tensor) (*tensor.Tensor, error) {
	return each(l, p, t, func(p, t *tensor.Tensor) *tensor.Tensor { return p.Sub(t).Square() })
}

// Of returns the loss.
func (l MAE) Of(p, t *tensor.Tensor) (*tensor.Tensor, error) {
	return each(l, p, t, func(p, t *tensor.Tensor) *tensor.Tensor { return p.Sub(t).Abs() })
}

// Of returns the loss.
func (l BinaryCrossEntropy) Of(p, t *tensor.Tensor) (*tensor.Tensor, error) {
	return each(l, p, t, func(p, t *tensor.Tensor) *tensor.Tensor {
		p = clip(p)
		return t.Mul(p.Log()).Add(from1(t).Mul(from1(p).Log())).Neg()
	})
}

// Of returns the loss.
func (l SigmoidCrossEntropy) Of(p, t *tensor.Tensor) (*tensor.Tensor, error) {
	return each(l, p, t, func(p, t *tensor.Tensor) *tensor.Tensor { return p.Softplus().Sub(t.Mul(p)) })
}

// probabilities returns what p says, for metrics.
func (SigmoidCrossEntropy) probabilities(p *tensor.Tensor) *tensor.Tensor { return p.Sigmoid() }

// Of returns the loss.
func (l CategoricalCrossEntropy) Of(p, t *tensor.Tensor) (*tensor.Tensor, error) {
	return categorical(l, p, t, l.Smoothing, l.Weights, func(p *tensor.Tensor) *tensor.Tensor { return clip(p).Log() })
}

// Of returns the loss.
func (l CrossEntropy) Of(p, t *tensor.Tensor) (*tensor.Tensor, error) {
	return categorical(l, p, t, l.Smoothing, l.Weights, func(p *tensor.Tensor) *tensor.Tensor { return p.LogSoftmax(-1) })
}

func categorical(l Loss, p, t *tensor.Tensor, smoothing float64, weights []float64,
	log func(*tensor.Tensor) *tensor.Tensor) (*tensor.Tensor, error) {
	if p.Rank() < 1 {
		return nil, fmt.Errorf("%w: %v of a result without classes", ErrData, l)
	}
	classes := p.Dim(-1)
	switch {
	case !(smoothing >= 0 && smoothing < 1):
		return nil, fmt.Errorf("%w: %v: a smoothing of %v", ErrConfig, l, smoothing)
	case weights != nil && len(weights) != classes:
		return nil, fmt.Errorf("%w: %v: %d weights for %d classes", ErrConfig, l, len(weights), classes)
	case !tensor.IsFloat(t.Type()) && p.Rank() == t.Rank()+1:
		if !slices.Equal(p.Shape()[:t.Rank()], t.Shape()) {
			return nil, fmt.Errorf("%w: %v of results %v and labels %v: labels have the shape %v", ErrData, l, p.Shape(),
				t.Shape(), p.Shape()[:t.Rank()])
		}
		t = t.OneHot(classes, p.Type().Computed())
	case !slices.Equal(p.Shape(), t.Shape()):
		return nil, fmt.Errorf("%w: %v of results %v and targets %v%v: targets are either labels, whole numbers from 0 to "+
			"%d of an integer type and of shape %v, or a probability for each class, of shape %v",
			ErrData, l, p.Shape(), t.Type(), t.Shape(), classes-1, p.Shape()[:p.Rank()-1], p.Shape())
	}
	x, t, err := pair(l, p, t)
	if err != nil {
		return nil, err
	}
	if smoothing > 0 {
		t = t.Mul(1 - smoothing).Add(smoothing / float64(classes))
	}
	if weights != nil {
		t = t.Mul(tensor.From(p.Scope(), weights).Cast(x.Type()))
	}
	// The sum of each row is computed by the kernel that has the row for the gradient.
	return t.Mul(log(x)).Sum(-1).Sum().Mul(-float64(classes) / float64(p.Len())).Cast(p.Type()), nil
}

// Of returns the loss.
func (l Huber) Of(p, t *tensor.Tensor) (*tensor.Tensor, error) {
	delta := or(l.Delta, 1)
	if !(delta > 0) || math.IsInf(delta, 1) {
		return nil, fmt.Errorf("%w: %v", ErrConfig, l)
	}
	return each(l, p, t, func(p, t *tensor.Tensor) *tensor.Tensor {
		d := p.Sub(t)
		far := d.Abs()
		return tensor.Where(far.Le(delta), d.Square().Mul(0.5), far.Sub(delta/2).Mul(delta))
	})
}

// Of returns the loss.
func (l Hinge) Of(p, t *tensor.Tensor) (*tensor.Tensor, error) {
	return each(l, p, t, func(p, t *tensor.Tensor) *tensor.Tensor { return from1(t.Mul(p)).Relu() })
}

// Of returns the loss.
func (l SquaredHinge) Of(p, t *tensor.Tensor) (*tensor.Tensor, error) {
	return each(l, p, t, func(p, t *tensor.Tensor) *tensor.Tensor { return from1(t.Mul(p)).Relu().Square() })
}

// Of returns the loss.
func (l KLDivergence) Of(p, t *tensor.Tensor) (*tensor.Tensor, error) {
	return each(l, p, t, func(p, t *tensor.Tensor) *tensor.Tensor {
		p, t = p.Clamp(1e-15, math.Inf(1)), t.Clamp(1e-15, math.Inf(1))
		return t.Mul(t.Div(p).Log())
	})
}

// Of returns the loss.
func (l Poisson) Of(p, t *tensor.Tensor) (*tensor.Tensor, error) {
	return each(l, p, t, func(p, t *tensor.Tensor) *tensor.Tensor { return p.Sub(t.Mul(p.Log())) })
}

// Of returns the loss.
func (l CosineSimilarity) Of(p, t *tensor.Tensor) (*tensor.Tensor, error) {
	x, t, err := pair(l, p, t)
	if err != nil {
		return nil, err
	}
	pp, tt := x.Square().Sum(-1), t.Square().Sum(-1)
	some := pp.Gt(0).And(tt.Gt(0))
	norm := func(squares *tensor.Tensor) *tensor.Tensor { return tensor.Where(some, squares, 1).Sqrt() }
	cos := x.Mul(t).Sum(-1).Div(norm(pp)).Div(norm(tt))
	return from1(tensor.Where(some, cos, 0)).Mean().Cast(p.Type()), nil
}

// Of returns the loss.
func (l LogCosh) Of(p, t *tensor.Tensor) (*tensor.Tensor, error) {
	return each(l, p, t, func(p, t *tensor.Tensor) *tensor.Tensor {
		d := p.Sub(t)
		d = tensor.Where(d.Gt(0), d, d.Neg()) // |d| with a derivative at 0, so that those of the loss are right there
		return d.Add(d.Mul(-2).Exp().Log1p()).Sub(math.Ln2)
	})
}

// Of returns the loss.
func (l Quantile) Of(p, t *tensor.Tensor) (*tensor.Tensor, error) {
	q := or(l.Q, 0.5)
	if !(q > 0 && q < 1) {
		return nil, fmt.Errorf("%w: %v", ErrConfig, l)
	}
	return each(l, p, t, func(p, t *tensor.Tensor) *tensor.Tensor {
		d := t.Sub(p)
		return tensor.Where(d.Ge(0), d.Mul(q), d.Mul(q-1))
	})
}

// described returns a name and the settings behind it.
func described(name string, settings ...any) string {
	for i := 0; i < len(settings); i += 2 {
		name += fmt.Sprintf(" %v=%v", settings[i], settings[i+1])
	}
	return name
}

// String names the loss.
func (MSE) String() string { return "mse" }

// String names the loss.
func (MAE) String() string { return "mae" }

// String names the loss.
func (BinaryCrossEntropy) String() string { return "binary_cross_entropy" }

// String names the loss.
func (SigmoidCrossEntropy) String() string { return "sigmoid_cross_entropy" }

// String names the loss.
func (l CategoricalCrossEntropy) String() string {
	return described("categorical_cross_entropy", "smoothing", l.Smoothing, "weights", l.Weights)
}

// String names the loss.
func (l CrossEntropy) String() string {
	return described("cross_entropy", "smoothing", l.Smoothing, "weights", l.Weights)
}

// String names the loss.
func (l Huber) String() string { return described("huber", "delta", or(l.Delta, 1)) }

// String names the loss.
func (Hinge) String() string { return "hinge" }

// String names the loss.
func (SquaredHinge) String() string { return "squared_hinge" }

// String names the loss.
func (KLDivergence) String() string { return "kl_divergence" }

// String names the loss.
func (Poisson) String() string { return "poisson" }

// String names the loss.
func (CosineSimilarity) String() string { return "cosine_similarity" }

// String names the loss.
func (LogCosh) String() string { return "log_cosh" }

// String names the loss.
func (l Quantile) String() string { return described("quantile", "q", or(l.Q, 0.5)) }
