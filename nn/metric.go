package nn

// Metrics, from sums over batches.

import (
	"math"

	"github.com/concord-compute/concord/tensor"
)

// Metric is a number that says how well a network does, computed from sums over examples.
type Metric interface {
	// Sums returns what a batch adds to the sums: tensors whose shapes do not depend on the batch. p are the
	// network's results, of [SigmoidCrossEntropy] their sigmoids; t are the targets.
	Sums(p, t *tensor.Tensor) []*tensor.Tensor
	// Value returns the metric of all examples, from the elements of all sums in order.
	Value(sums []float64) float64
	String() string
}

type (
	// Accuracy is the fraction of rows whose largest element, the first of equals, is at the label, which it is not where
	// one is NaN. With one result for each target it is the fraction of results on the same side of 0.5 as the target.
	Accuracy struct{}
	// PrecisionScore is the fraction of positive results that are right: of results above 0.5, or the mean over
	// classes of results that are the largest of their row.
	PrecisionScore struct{}
	// RecallScore is the fraction of positive targets that are found; see PrecisionScore.
	RecallScore struct{}
	// F1Score is the harmonic mean of both, of each class; see PrecisionScore.
	F1Score struct{}
	// MeanAbsolute is Σ|p-t|/n.
	MeanAbsolute struct{}
	// RootMeanSquare is √(Σ(p-t)²/n).
	RootMeanSquare struct{}
	// R2 is 1 - Σ(p-t)²/Σ(t-mean)²; of targets that are all equal it is 1 if there is no difference, else 0.
	R2 struct{}
)

// sums returns the type of sums over p, which counts far more examples than half can.
func sums(p *tensor.Tensor) tensor.Type { return p.Type().Computed() }

// count is a number of the type of sums.
func count(p *tensor.Tensor, n int) *tensor.Tensor { return tensor.Full(p.Scope(), sums(p), n) }

// apart returns p - t, and t, in the type of sums.
func apart(p, t *tensor.Tensor) (d, target *tensor.Tensor) {
	t = t.Cast(sums(p))
	return p.Cast(sums(p)).Sub(t), t
}

// binary reports whether each target has one result of its own.
func binary(p, t *tensor.Tensor) bool { return p.Len() == t.Len() && (p.Rank() < 2 || p.Dim(-1) == 1) }

// decided returns the classes that results and targets say.
func decided(p, t *tensor.Tensor) (says, is *tensor.Tensor) {
	if binary(p, t) {
		return p.Gt(0.5), t.Cast(p.Type()).Gt(0.5)
	}
	if t.Rank() == p.Rank() {
		t = t.ArgMax(-1)
	}
	return p.ArgMax(-1), t.Cast(tensor.I64)
}

// Sums returns how many rows are right, and how many there are.
func (Accuracy) Sums(p, t *tensor.Tensor) []*tensor.Tensor {
	if !binary(p, t) && t.Rank() < p.Rank() {
		// The place of the largest element by reductions of the row, which the kernel of the loss can compute too.
		classes := p.Dim(-1)
		says := tensor.Where(p.Eq(p.Max(-1).Unsqueeze(-1)), tensor.Iota(p.Scope(), tensor.I64, classes), classes).Min(-1)
		return []*tensor.Tensor{says.Eq(t.Cast(tensor.I64)).Cast(sums(p)).Sum(), count(p, says.Len())}
	}
	says, is := decided(p, t)
	return []*tensor.Tensor{says.Eq(is).Cast(sums(p)).Sum(), count(p, says.Len())}
}

// Value returns the fraction.
func (Accuracy) Value(sums []float64) float64 { return ratio(sums[0], sums[1]) }

// String names the metric.
func (Accuracy) String() string { return "accuracy" }

// ratio is a/b, and 0 where b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// hits returns for each class how many results are right, say it, and are it.
func hits(p, t *tensor.Tensor) []*tensor.Tensor {
	says, is := decided(p, t)
	if says.Type() == tensor.Bool {
		says, is = says.Cast(sums(p)).Reshape(-1, 1), is.Cast(sums(p)).Reshape(-1, 1)
	} else {
		n := p.Dim(-1)
		says, is = says.OneHot(n, sums(p)).Reshape(-1, n), is.OneHot(n, sums(p)).Reshape(-1, n)
	}
	return []*tensor.Tensor{says.Mul(is).Sum(0), says.Sum(0), is.Sum(0)}
}

// mean is that of f over classes, from the sums of hits.
func mean(sums []float64, f func(right, says, is float64) float64) float64 {
	n, sum := len(sums)/3, 0.0
	for i := range n {
		sum += f(sums[i], sums[n+i], sums[2*n+i])
	}
	return sum / float64(n)
}

// Sums returns the numbers of each class.
func (PrecisionScore) Sums(p, t *tensor.Tensor) []*tensor.Tensor { return hits(p, t) }

// Value returns the mean fraction.
func (PrecisionScore) Value(sums []float64) float64 {
	return mean(sums, func(right, says, _ float64) float64 { return ratio(right, says) })
}

// String names the metric.
func (PrecisionScore) String() string { return "precision" }

// Sums returns the numbers of each class.
func (RecallScore) Sums(p, t *tensor.Tensor) []*tensor.Tensor { return hits(p, t) }

// Value returns the mean fraction.
func (RecallScore) Value(sums []float64) float64 {
	return mean(sums, func(right, _, is float64) float64 { return ratio(right, is) })
}

// String names the metric.
func (RecallScore) String() string { return "recall" }

// Sums returns the numbers of each class.
func (F1Score) Sums(p, t *tensor.Tensor) []*tensor.Tensor { return hits(p, t) }

// Value returns the mean.
func (F1Score) Value(sums []float64) float64 {
	return mean(sums, func(right, says, is float64) float64 { return ratio(2*right, says+is) })
}

// String names the metric.
func (F1Score) String() string { return "f1" }

// Sums returns the sum of the differences and their number.
func (MeanAbsolute) Sums(p, t *tensor.Tensor) []*tensor.Tensor {
	d, _ := apart(p, t)
	return []*tensor.Tensor{d.Abs().Sum(), count(p, p.Len())}
}

// Value returns the mean.
func (MeanAbsolute) Value(sums []float64) float64 { return ratio(sums[0], sums[1]) }

// String names the metric.
func (MeanAbsolute) String() string { return "mae" }

// Sums returns the sum of the squares and their number.
func (RootMeanSquare) Sums(p, t *tensor.Tensor) []*tensor.Tensor {
	d, _ := apart(p, t)
	return []*tensor.Tensor{d.Square().Sum(), count(p, p.Len())}
}

// Value returns the root of the mean.
func (RootMeanSquare) Value(sums []float64) float64 { return math.Sqrt(ratio(sums[0], sums[1])) }

// String names the metric.
func (RootMeanSquare) String() string { return "rmse" }

// Sums returns the sums of the squares of differences, of the targets, and of their squares, and their number.
func (R2) Sums(p, t *tensor.Tensor) []*tensor.Tensor {
	d, t := apart(p, t)
	return []*tensor.Tensor{d.Square().Sum(), t.Sum(), t.Square().Sum(), count(p, p.Len())}
}

// Value returns the coefficient.
func (R2) Value(s []float64) float64 {
	around := s[2] - ratio(s[1]*s[1], s[3])
	if around <= s[2]*1e-7 { // targets that differ by rounding alone
		if s[0] == 0 {
			return 1
		}
		return 0
	}
	return 1 - s[0]/around
}

// String names the metric.
func (R2) String() string { return "r2" }
