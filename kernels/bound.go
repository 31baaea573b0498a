package kernels

// Arithmetic of error bounds. ε is the unit roundoff u = 2^-p of the arithmetic:
// one correctly rounded operation errs by at most u·|result|. OpenCL promises more
// for some functions in units in the last place, each of which is at most 2u.

import "math"

// Errors of OpenCL's single precision operations, in u. Double precision has the
// same for exp, tanh and erfc, and divides correctly.
const (
	errDiv  = 5  // 2.5 ulp
	errExp  = 6  // 3 ulp
	errTanh = 10 // 5 ulp
	errErfc = 32 // 16 ulp
)

// Roundoff returns u, the unit roundoff of the arithmetic that a type is computed in. Of double it returns 2u: there
// the reference, which is computed in double, errs as much as the device.
func Roundoff(dtype string) float64 {
	if dtype == "f64" {
		return 0x1p-52
	}
	return 0x1p-24
}

// Smallest returns the smallest normal number of what a type is computed in: a device
// may take anything smaller for 0.
func Smallest(dtype string) float64 {
	if dtype == "f64" {
		return 0x1p-1022
	}
	return 0x1p-126
}

// Stored adds the error of storing a result that is already off by e: nothing for
// types that are computed in themselves, one unit in the last place for half and
// bfloat16, since both sides round and may do so to neighbours. Where the reference
// is not a number that has errors, nothing is allowed.
func Stored(dtype string, ref, e float64) float64 {
	if ref != ref || math.IsInf(ref, 0) {
		return 0
	}
	digits, smallest := 0, 0.0
	switch dtype {
	case "f16":
		digits, smallest = 11, 0x1p-24
	case "bf16":
		digits, smallest = 8, 0x1p-133
	default:
		return e
	}
	if e == 0 {
		return 0
	}
	return e + max(math.Ldexp(1, math.Ilogb(math.Abs(ref)+e)-digits+1), smallest)
}

// relative is a bound of c·u·|ref| per element, plus what flushing may take away:
// scale(i) smallest normals, none when scale is nil.
func relative(dtype string, c float64, scale func(in [][]float64, i int) float64) func(int, [][]float64, []float64) []float64 {
	u, tiny := Roundoff(dtype), Smallest(dtype)
	return func(_ int, in [][]float64, ref []float64) []float64 {
		b := make([]float64, len(ref))
		for i, r := range ref {
			e := c * u * math.Abs(r)
			if scale != nil {
				e += tiny * scale(in, i)
			}
			b[i] = Stored(dtype, r, e)
		}
		return b
	}
}

// denormal tells whether a device may take x for 0.
func denormal(dtype string, x float64) bool { return x != 0 && math.Abs(x) < Smallest(dtype) }
