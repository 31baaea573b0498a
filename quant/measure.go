package quant

// What quantization cost.

import (
	"fmt"
	"math"

	"github.com/concord-compute/concord/runtime/driver"
)

// Quality compares numbers with what they became.
type Quality struct {
	SNR      float64 // 10·log10(Σx² / Σ(x - y)²) in dB; +Inf if nothing changed
	MaxError float64 // the largest |x - y|
	At       int     // the place of it, the first of several
	Signal   float64 // Σx²
	Noise    float64 // Σ(x - y)²
}

// Measure compares x with y, which are of the same length, in float64. Numbers that are not finite are
// driver.ErrNumerical.
func Measure(x, y []float32) (Quality, error) {
	if len(x) != len(y) {
		return Quality{}, fmt.Errorf("quant: measure: %d numbers and %d: %w", len(x), len(y), driver.ErrDimension)
	}
	var q Quality
	for i, v := range x {
		d := math.Abs(float64(v) - float64(y[i]))
		q.Signal += float64(float64(v) * float64(v))
		q.Noise += float64(d * d)
		if d > q.MaxError {
			q.MaxError, q.At = d, i
		}
	}
	if s := q.Signal + q.Noise; s-s != 0 {
		return Quality{}, fmt.Errorf("quant: measure: numbers that are not finite: %w", driver.ErrNumerical)
	}
	q.SNR = snr(q.Signal, q.Noise)
	return q, nil
}

// Add joins the quality of other numbers to q. At stays that of the larger error, in its own numbers.
func (q *Quality) Add(other Quality) {
	q.Signal += other.Signal
	q.Noise += other.Noise
	if other.MaxError > q.MaxError {
		q.MaxError, q.At = other.MaxError, other.At
	}
	q.SNR = snr(q.Signal, q.Noise)
}

func snr(signal, noise float64) float64 {
	if noise == 0 {
		return math.Inf(1)
	}
	return 10 * math.Log10(signal/noise)
}
