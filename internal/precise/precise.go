// Package precise has functions of float64 that are right to a few units in the last place (ulp) for every
// argument, by which others are judged. The standard library's are not everywhere: on some processors its Log
// takes all denormal numbers for one and its Exp is infinite below the largest number, its Sinh and Cosh
// overflow early, its Sin, Cos and Tan lose digits near multiples of π/2, and its Pow near the ends of the
// range.
//
// The largest errors, in ulp of the exact result, and of the smallest denormal number where the result is one:
//
//	Log, Log2, Exp, Expm1, Sin, Cos, Atan2  1
//	Pow                                     1, and exact results are exact
//	Tan, Sinh, Cosh, Sigmoid                2
//	GELU                                    5, and 24 below 2^-1022
//
// Of functions that package math has right, the tests of this package check the errors, too: 0 of Sqrt and Mod,
// 1 of Exp2, Log1p, Tanh, Atan and Erf, and 4 of Erfc. Special cases are those of package math. All functions
// may be called from any goroutine.
package precise

import "math"

// Log returns the natural logarithm of x.
func Log(x float64) float64 {
	if x > 0 && x < 0x1p-1022 {
		return math.Log(x*0x1p54) - 54*math.Ln2
	}
	return math.Log(x)
}

// Log2 returns the binary logarithm of x. Near 1 math.Log2 subtracts two numbers of nearly the same size.
func Log2(x float64) float64 {
	if x > 0.5 && x < 2 && x != 1 {
		return math.Log1p(x-1) / math.Ln2
	}
	return math.Log2(x)
}

// large is where functions of e^x are taken for large, and beyond its successor it is infinite.
const large = 709

// Exp returns e^x.
func Exp(x float64) float64 {
	if x > large && x < large+1 {
		return math.Ldexp(exponential(pair{x, 0}))
	}
	return math.Exp(x)
}

// Expm1 returns e^x - 1.
func Expm1(x float64) float64 {
	if x > large {
		return Exp(x)
	}
	return math.Expm1(x)
}

// Sinh returns the hyperbolic sine of x.
func Sinh(x float64) float64 {
	if math.Abs(x) > large {
		return math.Copysign(Cosh(x), x)
	}
	return math.Sinh(x)
}

// Cosh returns the hyperbolic cosine of x.
func Cosh(x float64) float64 {
	if x = math.Abs(x); x > large && x < large+2 {
		m, k := exponential(pair{x, 0})
		return math.Ldexp(m, k-1)
	}
	return math.Cosh(x)
}

// Pow returns x^y.
func Pow(x, y float64) float64 {
	z, a := math.Pow(x, y), math.Abs(x)
	if z != z || a == 0 || a == 1 || y == 0 || math.IsInf(a, 0) || math.IsInf(y, 0) {
		return z
	}
	l := logarithm(a)
	if p := y * l.hi; math.Abs(p) > 750 {
		z = math.Exp(p) // zero or infinite
	} else {
		z = math.Ldexp(exponential(l.mul(pair{y, 0})))
	}
	if x < 0 && math.Abs(math.Mod(y, 2)) == 1 {
		return -z
	}
	return z
}

// Atan2 is math.Atan2, with the sign of y also where y/x underflows.
func Atan2(y, x float64) float64 { return math.Copysign(math.Atan2(y, x), y) }

// Sigmoid returns 1/(1 + e^-x).
func Sigmoid(x float64) float64 {
	if x < 0 {
		e := math.Exp(x)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-x))
}

// GELU returns x·Φ(x), where Φ(x) = erfc(z)/2 is the standard normal distribution and z = -x/√2. The digits of
// z that a float64 lacks are added by erfc's slope.
func GELU(x float64) float64 {
	const half, rest = math.Sqrt2 / 2, -4.833646656726457e-17 // of √½
	z := -x * half
	c := math.Erfc(z)
	if math.Abs(x) < 40 {
		c += (math.FMA(x, half, z) + x*rest) * (2 / math.Sqrt(math.Pi)) * math.Exp(-z*z)
	}
	return x * (0.5 * c)
}
