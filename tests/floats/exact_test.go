package floats

import (
	"math"
	"math/big"

	"github.com/concord-compute/concord/runtime"
)

// format is a floating-point type with one rounding per operation. Values are passed as float64,
// which holds every value of each format.
type format struct {
	scalar string // in OpenCL C
	suffix string // of its literals
	round  func(float64) float64
	bits   func(float64) uint64
	fma    func(x, y, z float64) float64
	tiny   []float64 // the smallest denormal, the smallest normal, and the largest number
}

var formats = []format{
	{"float", "f", func(x float64) float64 { return float64(float32(x)) },
		func(x float64) uint64 { return uint64(math.Float32bits(float32(x))) },
		func(x, y, z float64) float64 { return narrowFMA(x, y, z, toFloat) },
		[]float64{math.SmallestNonzeroFloat32, 0x1p-126, math.MaxFloat32}},
	{"double", "", func(x float64) float64 { return x }, math.Float64bits, math.FMA,
		[]float64{math.SmallestNonzeroFloat64, 0x1p-1022, math.MaxFloat64}},
	{"half", "h", toHalf,
		func(x float64) uint64 { return uint64(runtime.ToFloat16(x)) },
		func(x, y, z float64) float64 {
			return narrowFMA(x, y, z, func(s *big.Float) float64 { return toHalf(odd(s)) })
		},
		[]float64{0x1p-24, 0x1p-14, 65504}},
}

func toHalf(x float64) float64 { return runtime.ToFloat16(x).Float64() }

func toFloat(s *big.Float) float64 {
	f, _ := s.Float32()
	return float64(f)
}

// odd converts s to a float64 whose last bit is set if bits were cut off (round to odd), so that a
// second rounding to far fewer bits is correct.
func odd(s *big.Float) float64 {
	cut := new(big.Float).SetMode(big.ToZero).SetPrec(53).Set(s)
	f, _ := cut.Float64()
	if cut.Cmp(s) != 0 {
		f = math.Float64frombits(math.Float64bits(f) | 1)
	}
	return f
}

// narrowFMA returns x * y + z for a format whose products float64 holds exactly. So its sum is
// zero, infinite or NaN exactly if the sum in float64 is.
func narrowFMA(x, y, z float64, round func(*big.Float) float64) float64 {
	s := math.FMA(x, y, z)
	if s == 0 || math.IsInf(x, 0) || math.IsInf(y, 0) || math.IsInf(z, 0) || s != s {
		return s
	}
	exact := new(big.Float).SetPrec(1000).SetFloat64(float64(x * y))
	return round(exact.Add(exact, big.NewFloat(z)))
}

// The operations. Each ends with a conversion, so that Go does not fuse two of them.
func (f *format) add(x, y float64) float64 { return f.round(float64(x + y)) }
func (f *format) mul(x, y float64) float64 { return f.round(float64(x * y)) }
func (f *format) div(x, y float64) float64 { return f.round(float64(x / y)) }

// values returns the values of each argument; all combinations of them are tried.
func (f *format) values() []float64 {
	v := []float64{0, 1, 2.5, math.Inf(1)}
	v = append(v, f.tiny...)
	for _, x := range v {
		v = append(v, -x)
	}
	return append(v, math.NaN())
}

// tinyNumber reports whether a device may have treated x as zero.
func (f *format) tinyNumber(x float64) bool { return x != 0 && math.Abs(x) < f.tiny[1] }
