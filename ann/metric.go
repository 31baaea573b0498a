package ann

// The metrics: their names, their definitions in float64, and the functions that programs register.

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/concord-compute/concord/runtime"
)

// Metric is a measure of distance between two vectors; the smaller, the nearer. The zero Metric is none, which
// is [runtime.ErrInvalidArgument] wherever one is needed. [ParseMetric] returns one by its name, [Minkowski]
// those with a parameter, [Register] adds one.
type Metric struct {
	kind kind
	p    float64                      // of minkowski
	name string                       // of a registered function
	f    func(a, b []float32) float64 // the registered function
}

type kind uint8

const (
	none kind = iota
	euclidean
	l2sq
	cosine
	manhattan
	chebyshev
	minkowski
	hamming
	jaccard
	angular
	canberra
	custom
)

// kindNames are the names of the kinds, but for custom.
var kindNames = [...]string{"no metric", "euclidean", "l2sq", "cosine", "manhattan", "chebyshev", "minkowski",
	"hamming", "jaccard", "angular", "canberra"}

// The metrics without a parameter.
var (
	Euclidean = Metric{kind: euclidean} // √Σ(x-y)²
	L2Squared = Metric{kind: l2sq}      // Σ(x-y)²
	Cosine    = Metric{kind: cosine}    // 1 - x·y/(‖x‖‖y‖), the quotient in [-1, 1]; 1 if a norm is 0
	Manhattan = Metric{kind: manhattan} // Σ|x-y|
	Chebyshev = Metric{kind: chebyshev} // max|x-y|
	Hamming   = Metric{kind: hamming}   // the number of components with |x-y| > 1e-5
	Jaccard   = Metric{kind: jaccard}   // 1 - |A∩B|/|A∪B| of the sets of components above 0.5; 0 if both are empty
	// Angular is the angle in radians; π/2 if a norm is 0. What searches return is off by up to 5e-4 near π, where
	// floats of 1 minus the cosine are coarse
	Angular  = Metric{kind: angular}
	Canberra = Metric{kind: canberra} // Σ|x-y|/(|x|+|y|), where 0/0 counts 0
)

// Minkowski returns the metric (Σ|x-y|^p)^(1/p). A p that is not a positive, finite number is
// [runtime.ErrInvalidArgument].
func Minkowski(p float64) (Metric, error) {
	if !(p > 0) || math.IsInf(p, 0) {
		return Metric{}, fmt.Errorf("ann: minkowski(%v): the exponent has to be positive and finite: %w", p,
			runtime.ErrInvalidArgument)
	}
	return Metric{kind: minkowski, p: p}, nil
}

// registered has the functions of Register by their names in lower case.
var registered = struct {
	sync.RWMutex
	m map[string]func(a, b []float32) float64
}{m: map[string]func(a, b []float32) float64{}}

// Register adds a metric of the program, which [ParseMetric] then knows as "custom:" and the name, in any case.
// f has to be symmetric and may be called from any goroutine; the vectors that it gets are of equal length and
// must not be changed or kept. If it panics, the call that compared vectors returns a [*PanicError]. Only a
// device whose memory the host sees can search by it: the CPU. A name that is empty or taken is
// [runtime.ErrInvalidArgument].
func Register(name string, f func(a, b []float32) float64) error {
	key := strings.ToLower(strings.TrimSpace(name))
	registered.Lock()
	defer registered.Unlock()
	if _, taken := registered.m[key]; taken || key == "" || f == nil {
		return fmt.Errorf("ann: register metric %q: the name is empty or taken, or there is no function: %w", name,
			runtime.ErrInvalidArgument)
	}
	registered.m[key] = f
	return nil
}

// ParseMetric returns the metric of a name, in any case: euclidean, l2sq or squared_euclidean, cosine,
// manhattan, chebyshev, minkowski(p) as in "minkowski(3)", hamming, jaccard, angular, canberra, or custom:NAME
// of [Register]. Any other name is [runtime.ErrInvalidArgument].
func ParseMetric(name string) (Metric, error) {
	s := strings.ToLower(strings.TrimSpace(name))
	if key, ok := strings.CutPrefix(s, "custom:"); ok {
		registered.RLock()
		defer registered.RUnlock()
		if f, ok := registered.m[key]; ok {
			return Metric{kind: custom, name: key, f: f}, nil
		}
		return Metric{}, fmt.Errorf("ann: no metric %q is registered: %w", key, runtime.ErrInvalidArgument)
	}
	if text, ok := strings.CutPrefix(s, "minkowski("); ok {
		if text, ok = strings.CutSuffix(text, ")"); ok {
			if p, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
				return Minkowski(p)
			}
		}
	}
	if s == "squared_euclidean" {
		return L2Squared, nil
	}
	for i, n := range kindNames {
		if s == n && kind(i) != minkowski && kind(i) != none {
			return Metric{kind: kind(i)}, nil
		}
	}
	return Metric{}, fmt.Errorf("ann: metric %q is none of %s, custom:NAME: %w", name,
		strings.Replace(strings.Join(kindNames[1:], ", "), "minkowski", "minkowski(p)", 1), runtime.ErrInvalidArgument)
}

// String returns the name that [ParseMetric] reads.
func (m Metric) String() string {
	switch m.kind {
	case custom:
		return "custom:" + m.name
	case minkowski:
		return fmt.Sprintf("minkowski(%v)", m.p)
	}
	return kindNames[m.kind]
}

// Distance returns the distance of two vectors, computed in float64. Different lengths are
// [runtime.ErrDimension], vectors without components [runtime.ErrInvalidArgument].
func (m Metric) Distance(a, b []float32) (d float64, err error) {
	defer catch(&err)
	switch {
	case m.kind == none:
		return 0, m.check()
	case len(a) != len(b):
		return 0, fmt.Errorf("ann: %v of %d and %d components: %w", m, len(a), len(b), runtime.ErrDimension)
	case len(a) == 0:
		return 0, fmt.Errorf("ann: %v of vectors without components: %w", m, runtime.ErrInvalidArgument)
	}
	return m.distance(a, b), nil
}

func (m Metric) check() error {
	if m.kind == none {
		return fmt.Errorf("ann: the metric is the zero Metric: %w", runtime.ErrInvalidArgument)
	}
	return nil
}

func (m Metric) distance(a, b []float32) float64 {
	switch m.kind {
	case custom:
		defer guarded("metric " + m.name)
		return m.f(a, b)
	case euclidean:
		return math.Sqrt(fold(a, b, square))
	case l2sq:
		return fold(a, b, square)
	case manhattan:
		return fold(a, b, func(x, y float64) float64 { return math.Abs(x - y) })
	case chebyshev:
		return largest(a, b)
	case minkowski:
		most := largest(a, b)
		if most == 0 || math.IsInf(most, 1) {
			return most
		}
		return most * math.Pow(fold(a, b, func(x, y float64) float64 { return math.Pow(math.Abs(x-y)/most, m.p) }), 1/m.p)
	case hamming:
		return fold(a, b, func(x, y float64) float64 { return indicator(math.Abs(x-y) > apart) })
	case jaccard:
		union := fold(a, b, func(x, y float64) float64 { return indicator(x > 0.5 || y > 0.5) })
		if union == 0 {
			return 0
		}
		return 1 - fold(a, b, func(x, y float64) float64 { return indicator(x > 0.5 && y > 0.5) })/union
	case canberra:
		return fold(a, b, func(x, y float64) float64 {
			if x == 0 && y == 0 {
				return 0
			}
			return math.Abs(x-y) / (math.Abs(x) + math.Abs(y))
		})
	}
	u, v, similarity := norm(a), norm(b), 0.0
	if u != 0 && v != 0 {
		similarity = max(fold(a, b, func(x, y float64) float64 { return x * y })/u/v, -1)
	}
	d := 1 - similarity
	if similarity > 0.5 { // where that loses digits
		d = fold(a, b, func(x, y float64) float64 { return square(x/u, y/v) }) / 2
	}
	if m.kind == angular && similarity < -0.5 { // where the sine of half the angle says little
		opposite := fold(a, b, func(x, y float64) float64 { return square(x/u, -y/v) }) / 2
		return math.Pi - angle(opposite)
	}
	if m.kind == angular {
		return angle(d)
	}
	return d
}

// angle returns the angle of two directions whose cosine is 1 - d.
func angle(d float64) float64 { return 2 * math.Asin(math.Sqrt(min(d/2, 1))) }

// same reports whether two vectors, whose distance is that of a vector from itself, are at the same distance
// from every other one, but for rounding: that they are equal, or for cosine in the same direction.
func (m Metric) same(a, b []float32) bool {
	switch {
	case m.kind == jaccard:
		return true
	case m.onNearest() != "cosine":
		return slices.Equal(a, b)
	}
	u, v := norm(a), norm(b)
	for i, x := range a {
		if math.Abs(float64(x)/u-float64(b[i])/v) > 1e-7 {
			return false
		}
	}
	return u > 0 && v > 0 || u == v
}

// norm returns the length of a vector of floats, whose squares are in the range of float64.
func norm(a []float32) float64 {
	square := 0.0
	for _, x := range a {
		square += float64(x) * float64(x)
	}
	return math.Sqrt(square)
}

// apart is the difference above which two components count for hamming.
const apart = 1e-5

func fold(a, b []float32, term func(x, y float64) float64) (sum float64) {
	for i, x := range a {
		sum += term(float64(x), float64(b[i]))
	}
	return sum
}

func square(x, y float64) float64 { return (x - y) * (x - y) }

func largest(a, b []float32) (most float64) {
	for i, x := range a {
		most = max(most, math.Abs(float64(x)-float64(b[i]))) // NaN if any is
	}
	return most
}

func indicator(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// onNearest returns the definition METRIC of the kernel nearest by whose order vectors are found, or "".
func (m Metric) onNearest() string {
	switch m.kind {
	case euclidean, l2sq:
		return "l2"
	case cosine, angular:
		return "cosine"
	}
	return ""
}

// finish returns the distance in the metric's unit for what a kernel computed on stored components; unit is the
// square of the number that a stored 1 stands for.
func (m Metric) finish(d float32, unit float64) float64 {
	switch m.kind {
	case euclidean:
		return math.Sqrt(float64(d) * unit)
	case l2sq:
		return float64(d) * unit
	case angular:
		return angle(float64(d))
	}
	return float64(d)
}
