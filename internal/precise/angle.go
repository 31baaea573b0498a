package precise

// Sine, cosine and tangent: what is left of x beside a multiple of π/2 is computed in twice the digits.

import (
	"math"
	"math/big"
)

// quarter is π/2, with a third part.
var (
	quarter     = pair{math.Pi / 2, 6.123233995736766e-17}
	quarterRest = -1.4973849048591698e-33
)

// twoOverPi is 2/π times 2^fraction, enough digits for every float64.
const fraction = 1216

var twoOverPi, _ = new(big.Int).SetString(
	"a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921cfe1d"+
		"eb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b"+
		"5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b"+
		"6bab", 16)

// rest subtracts the multiple n·π/2 nearest to x from x. It returns n modulo 4, and the difference.
func rest(x float64) (n int, r pair) {
	if math.Abs(x) >= 1<<29 {
		return restOfLarge(x)
	}
	j := math.RoundToEven(x * (2 / math.Pi))
	p := j * quarter.lo
	s := sum(math.FMA(-j, quarter.hi, x), -p) // the first difference is exact
	return int(int64(j) & 3), normal(s.hi, s.lo-math.FMA(j, quarter.lo, -p)-j*quarterRest)
}

// restOfLarge is rest of whole numbers.
func restOfLarge(x float64) (n int, r pair) {
	m, exponent := math.Frexp(math.Abs(x))
	product := new(big.Int).SetUint64(uint64(m * (1 << 53)))
	product.Mul(product, twoOverPi)
	digits := uint(fraction - (exponent - 53)) // of the product, behind its point
	nearest := new(big.Int).Lsh(big.NewInt(1), digits-1)
	nearest.Rsh(nearest.Add(nearest, product), digits)
	n = int(nearest.Uint64() & 3)
	left := new(big.Float).SetInt(product.Sub(product, nearest.Lsh(nearest, digits)))
	left.SetMantExp(left, -int(digits))
	r.hi, _ = left.Float64()
	r.lo, _ = left.Sub(left, big.NewFloat(r.hi)).Float64()
	if r = r.mul(quarter); x < 0 {
		return -n & 3, pair{-r.hi, -r.lo}
	}
	return n, r
}

// direct reports whether package math is right about x: nothing is subtracted from it, or it has no sine.
func direct(x float64) bool { return !(math.Abs(x) > 0.75) || math.IsInf(x, 0) }

// Sin returns the sine of x radians.
func Sin(x float64) float64 {
	if direct(x) {
		return math.Sin(x)
	}
	n, r := rest(x)
	return turned(n, r)
}

// Cos returns the cosine of x radians.
func Cos(x float64) float64 {
	if direct(x) {
		return math.Cos(x)
	}
	n, r := rest(x)
	return turned(n+1, r)
}

// turned returns the sine of n·π/2 + r.
func turned(n int, r pair) float64 {
	s, c := math.Sin(r.hi), math.Cos(r.hi)
	y := s + r.lo*c
	if n&1 != 0 {
		y = c - r.lo*s
	}
	if n&2 != 0 {
		return -y
	}
	return y
}

// Tan returns the tangent of x radians.
func Tan(x float64) float64 {
	if direct(x) {
		return math.Tan(x)
	}
	n, r := rest(x)
	t := math.Tan(r.hi)
	if t += r.lo * (1 + t*t); n&1 != 0 {
		return -1 / t
	}
	return t
}
