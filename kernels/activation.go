package kernels

// The family activation and its cases, with the error of each formula.

import (
	"fmt"
	"math"

	"github.com/concord-compute/concord/internal/precise"
)

func init() {
	outline(Family{
		ID: "activation", Doc: "relu, sigmoid, tanh, gelu (exact and tanh form), swish",
		Kernels: []string{"relu", "sigmoid", "tanh_act", "gelu", "gelu_tanh", "swish"},
		Types:   floatTypes, Defines: []string{"T"},
		Arguments: elementwise(2, 0, 1), Reference: refActivation, Bound: knows(activationLaunch), Rows: elementRows(2, 0, 1),
		Cases: func(f *Family) (list []Case) {
			for _, t := range f.Types {
				for _, k := range f.Kernels {
					for _, n := range sizesFor(t) {
						list = append(list, activationCase(f, k, t, fmt.Sprintf("n=%d", n), n, Uniform(t, n, 23, -8, 8)))
					}
					x := append(Special(t), 20, -20, 88, -88, 90, -90, 104, -104, 1e-3, -1e-3, 15, -15)
					list = append(list, activationCase(f, k, t, "special values", len(x), numbers(x)))
				}
			}
			return list
		},
	})
}

func activationCase(f *Family, k, t, shape string, n int, data func() []float64) Case {
	c := f.Case(k, t, shape, n).with(in(t, n, data), out(t, n), ulongArg(n))
	if k == "relu" {
		return c.within("0, or the smallest normal where a denormal may be flushed", "nothing is rounded",
			eachOf(n, func(in [][]float64, i int, r float64) float64 {
				if denormal(t, r) || denormal(t, in[0][i]) {
					return Smallest(t)
				}
				return 0
			}))
	}
	e := activationErrors[k]
	u, tiny := Roundoff(t), Smallest(t)
	return c.within(e.formula, e.why, eachOf(n, func(in [][]float64, i int, y float64) float64 {
		x := in[0][i]
		abs := (1 + math.Abs(x)) * tiny // a flushed denormal may be multiplied by x
		if y != 0 {
			abs += e.of(x) * u * math.Abs(y)
		}
		return Stored(t, y, abs)
	}))
}

// activationError is the relative error of an activation of x, as a multiple of ε.
type activationError struct {
	formula, why string
	of           func(x float64) float64
}

var logisticError = activationError{"14ε·|y|",
	"exp errs by 3 ulp = 6ε, which adding 1 does not increase; the sum adds ε; the division errs by 2.5 ulp = 5ε; the " +
		"reference rounds once",
	func(float64) float64 { return errExp + 1 + errDiv + 1 + 1 }}

// activationErrors has no entry for relu, which does not round.
var activationErrors = map[string]activationError{
	"sigmoid": logisticError,
	"swish":   logisticError,
	"tanh_act": {"11ε·|y|", "tanh errs by 5 ulp = 10ε; the reference rounds once",
		func(float64) float64 { return errTanh + 1 }},
	"gelu": {"ε·|y|·(35 + 4(z² + 1)), z = max(-x/√2, 0)",
		"erfc errs by 16 ulp = 32ε; z is rounded twice, which changes erfc(z) by up to 2(z²+1) times as much; two products " +
			"and the reference round once each",
		func(x float64) float64 {
			z := max(-x/math.Sqrt2, 0)
			return errErfc + 3 + 4*(z*z+1)
		}},
	"gelu_tanh": {"ε·|y|·(13 + 8|w|), w = 2u where e^-2u > 1, else 1",
		"w = 2u is computed with seven roundings, and a relative error of w changes e^w by |w| times as much; exp errs by " +
			"3 ulp = 6ε, the " +
			"division by 2.5 ulp = 5ε; the sum and the reference round once each",
		func(x float64) float64 {
			w := 2 * math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
			return errExp + errDiv + 2 + 8*max(-w, 1)
		}},
}

// refActivations are the formulas, in forms without cancellation.
var refActivations = map[string]func(x float64) float64{
	"relu": func(x float64) float64 {
		if x < 0 {
			return 0
		}
		return x
	},
	"sigmoid":  precise.Sigmoid,
	"tanh_act": math.Tanh,
	"gelu":     precise.GELU,
	// x/2·(1 + tanh u), and 1 + tanh u = 2/(1 + e^-2u)
	"gelu_tanh": func(x float64) float64 {
		u := math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
		return x * precise.Sigmoid(2*u)
	},
	"swish": func(x float64) float64 { return x * precise.Sigmoid(x) },
}

func refActivation(c *Call) error {
	t, f, n := c.Type("T"), refActivations[c.Kernel], int(c.Int(2))
	get, set := c.Get(0, t), c.Set(1, t)
	for i := range n {
		set(i, f(get(i)))
	}
	return nil
}
