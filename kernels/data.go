package kernels

// Data for test cases. It is the same in every run, and contains values on which kernels often fail.

import (
	"math"
	"math/rand/v2"
)

// Lengths at which elementwise kernels are tested: around the sizes of warps and groups,
// and beyond 2^16. The short list is for types that differ from f32 only in loads and stores.
var (
	hardSizes  = []int{0, 1, 2, 31, 32, 33, 255, 256, 257, 1000, 65537}
	shortSizes = []int{0, 1, 257}
)

func sizesFor(dtype string) []int {
	if dtype == "f32" {
		return hardSizes
	}
	return shortSizes
}

// constant returns a function that returns n times v, at least once, as a buffer has at least
// one element.
func constant(n int, v float64) func() []float64 {
	return func() []float64 {
		x := make([]float64, max(n, 1))
		for i := range x {
			x[i] = v
		}
		return x
	}
}

// Uniform returns a function for [Arg.Fill] that generates n random numbers of an element type, at
// least one, the same for the same seed. Floating types: uniformly distributed from lo to hi. Integer
// types: whole numbers from the whole range of the type, whatever lo and hi are.
func Uniform(dtype string, n int, seed uint64, lo, hi float64) func() []float64 {
	return func() []float64 {
		r := rand.New(rand.NewPCG(seed, 20260101))
		x := make([]float64, max(n, 1))
		for i := range x {
			if IsFloat(dtype) {
				x[i] = lo + (hi-lo)*r.Float64()
			} else {
				x[i] = anyInteger(dtype, r)
			}
		}
		return x
	}
}

// anyInteger returns a random number of an integer type that float64 represents exactly; often
// the smallest or the largest of them, or a number near 0.
func anyInteger(dtype string, r *rand.Rand) float64 {
	lo, hi := rangeOf(dtype)
	switch r.IntN(8) {
	case 0:
		return lo
	case 1:
		return hi
	case 2:
		return math.Trunc(max(lo, -3) + 6*r.Float64())
	}
	return math.Trunc(lo + (hi-lo)*r.Float64())
}

// rangeOf returns the smallest and the largest number of an integer type. For 64-bit types hi is
// the largest that float64 represents exactly.
func rangeOf(dtype string) (lo, hi float64) {
	bits := map[string]int{"i8": 7, "i16": 15, "i32": 31, "i64": 63, "u8": 8, "u16": 16, "u32": 32, "u64": 64}[dtype]
	hi = math.Ldexp(1, bits) - 1
	if bits > 53 {
		hi = math.Ldexp(1, bits) - math.Ldexp(1, bits-53)
	}
	if dtype[0] == 'i' {
		lo = -math.Ldexp(1, bits)
	}
	return lo, hi
}

// Special returns the values of a floating type on which kernels fail most often: zeros, infinities,
// NaN, the largest numbers, the smallest normal and denormal ones, and a few small numbers.
func Special(dtype string) []float64 {
	big, small, tiny := math.MaxFloat32, 0x1p-126, 0x1p-149
	switch dtype {
	case "f64":
		big, small, tiny = math.MaxFloat64, 0x1p-1022, 0x1p-1074
	case "f16":
		big, small, tiny = 65504, 0x1p-14, 0x1p-24
	case "bf16":
		big, tiny = 0x1.fep127, 0x1p-133
	}
	return []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(),
		big, -big, small, -small, tiny, -3 * tiny, 0.5, -2, 3}
}

// pairs returns every pair of special values: a has the first of each pair, b the second.
func pairs(dtype string) (a, b []float64) {
	s := Special(dtype)
	for _, x := range s {
		for _, y := range s {
			a, b = append(a, x), append(b, y)
		}
	}
	return a, b
}

func numbers(x []float64) func() []float64 {
	return func() []float64 { return append([]float64(nil), x...) }
}

// mixed returns other data with the value v at some places.
func mixed(data func() []float64, v float64, places ...int) func() []float64 {
	return func() []float64 {
		x := data()
		for _, i := range places {
			x[i] = v
		}
		return x
	}
}

// IsFloat reports whether an element type is a floating-point type: f32, f64, f16 or bf16.
func IsFloat(dtype string) bool { return dtype[0] == 'f' || dtype[0] == 'b' }

// scalarOf returns the type in which a kernel for elements of a type takes its scalar arguments.
func scalarOf(dtype string) string {
	switch dtype {
	case "f16", "bf16":
		return "f32"
	case "i8", "i16":
		return "i32"
	case "u8", "u16":
		return "u32"
	}
	return dtype
}
