package kernels

// Arithmetic of error bounds. ε is the unit roundoff u = 2^-p of the arithmetic:
// a correctly rounded operation errs by at most u·|result|. For some functions OpenCL allows larger
// errors, in units in the last place (ulp); one ulp is at most 2u·|result|.

import "math"

// Errors of OpenCL's single precision operations, in u. In double precision exp, tanh and erfc
// have the same errors, and division is correctly rounded.
const (
	errDiv  = 5  // 2.5 ulp
	errExp  = 6  // 3 ulp
	errTanh = 10 // 5 ulp
	errErfc = 32 // 16 ulp
)

// Roundoff returns the unit roundoff u of the arithmetic that elements of a type are computed in:
// 2^-24 for all types but f64. For f64 it returns 2u = 2^-52, because the reference, which is
// computed in double precision too, may err as much as the device.
func Roundoff(dtype string) float64 {
	if dtype == "f64" {
		return 0x1p-52
	}
	return 0x1p-24
}

// Smallest returns the smallest positive normal number of the arithmetic that elements of a type
// are computed in. A device may replace smaller numbers by 0.
func Smallest(dtype string) float64 {
	if dtype == "f64" {
		return 0x1p-1022
	}
	return 0x1p-126
}

// Stored returns the bound of a result after it is stored as dtype. ref is the reference's result
// and e the bound before. For f32 and f64 that is e. For half and bfloat16 it is e and one unit in the last
// place, because device and reference both round, possibly to two neighbouring numbers. If e is 0, they round
// the same number, and the bound is 0. It is also 0 if ref is NaN or infinite.
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

// relative returns a bound of c·u·|ref| per element, plus what flushing denormals may change:
// scale(in, i) times the smallest normal number, or nothing if scale is nil.
func relative(dtype string, c float64, scale func(in [][]float64, i int) float64) func(int, [][]float64,
	[]float64) []float64 {
	u, tiny := Roundoff(dtype), Smallest(dtype)
	return eachOf(math.MaxInt, func(in [][]float64, i int, r float64) float64 {
		e := c * u * math.Abs(r)
		if scale != nil {
			e += tiny * scale(in, i)
		}
		return Stored(dtype, r, e)
	})
}

// eachOf returns a bound that f computes for each of the first n elements of a result. Others must not change: where a
// result has no elements, the kernel must not change the one element of the buffer.
func eachOf(n int, f func(in [][]float64, i int, r float64) float64) func(int, [][]float64, []float64) []float64 {
	return func(_ int, in [][]float64, ref []float64) []float64 {
		b := make([]float64, len(ref))
		for i, r := range ref[:min(n, len(ref))] {
			b[i] = f(in, i, r)
		}
		return b
	}
}

// additions bounds the number of additions in which one of n elements of a sum takes part, if a group of that
// many items adds them up, 0 being the usual one: each item adds every group-th element, and a tree of depth
// log₂ group the items' sums. Groups larger than 128 have the bound of 128, since a native implementation does
// not know the group; those of the CPU add their parts in pairs, which is within it.
func additions(n, group int) int {
	if group == 0 {
		group = Group
	}
	return min(n, 24+n/min(group, 128))
}

const additionsFormula = "d = min(n, 24 + n/min(GROUP, 128))"

// denormal reports whether a device may replace x by 0.
func denormal(dtype string, x float64) bool { return x != 0 && math.Abs(x) < Smallest(dtype) }
