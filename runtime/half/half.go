// Package half has the two 16-bit floating-point formats that Go lacks: [Float16],
// which is half in kernels, and [BFloat16], which kernels see as ushort.
//
// Conversions to them round once, to nearest, ties to even; conversions from them are exact. A
// []Float16 has the memory layout that devices expect, so that it can be uploaded as it is.
package half

import "math"

// Float16 is an IEEE 754 binary16 number, as its bits.
type Float16 uint16

// BFloat16 is the upper half of an IEEE 754 binary32 number, as its bits.
type BFloat16 uint16

// ToFloat16 rounds to nearest, ties to even. Numbers above 65504 after rounding
// become infinite, subnormals are kept, a NaN stays a NaN.
func ToFloat16(x float64) Float16 {
	if f := float32(x); float64(f) == x || x != x {
		return float16FromBits(math.Float32bits(f))
	}
	// Rounding twice (to binary32, then to binary16) can differ from rounding once. Binary32
	// rounded to odd keeps the information that the second rounding needs.
	return float16FromBits(math.Float32bits(roundToOdd(x)))
}

// roundToOdd rounds an inexact float64 to the neighbouring float32 whose last
// bit is 1 (Boldo and Melquiond, 2008).
func roundToOdd(x float64) float32 {
	f := float32(x)
	b := math.Float32bits(f)
	if b&1 == 1 || math.IsInf(float64(f), 0) {
		return f
	}
	if math.Abs(float64(f)) > math.Abs(x) {
		b--
	} else {
		b++
	}
	return math.Float32frombits(b)
}

func float16FromBits(b uint32) Float16 {
	sign := uint16(b>>16) & 0x8000
	exp := int(b>>23) & 0xff
	man := b & 0x7fffff
	switch {
	case exp == 0xff && man != 0:
		return Float16(sign | 0x7e00 | uint16(man>>13))
	case exp > 142: // 2^16 and above, infinity included
		return Float16(sign | 0x7c00)
	case exp < 102: // below half of the smallest subnormal
		return Float16(sign)
	}
	shift := uint(13)
	out := uint32(exp-112) << 10
	if exp < 113 { // subnormal: the implicit bit becomes explicit
		man |= 0x800000
		shift = uint(126 - exp)
		out = 0
	}
	out += man >> shift
	rest, half := man&(1<<shift-1), uint32(1)<<(shift-1)
	if rest > half || rest == half && out&1 == 1 {
		out++ // may carry into the exponent, which is correct
	}
	return Float16(sign | uint16(out))
}

// Float64 returns the exact value.
func (h Float16) Float64() float64 {
	sign := 1.0
	if h&0x8000 != 0 {
		sign = -1
	}
	exp, man := int(h>>10)&0x1f, float64(h&0x3ff)
	switch exp {
	case 0:
		return math.Copysign(math.Ldexp(man, -24), sign)
	case 31:
		if man != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+man, exp-25)
}

// Float32 returns the exact value.
func (h Float16) Float32() float32 { return float32(h.Float64()) }

// ToBFloat16 rounds to nearest, ties to even. A NaN stays a NaN.
func ToBFloat16(x float64) BFloat16 {
	f := float32(x)
	if float64(f) != x && x == x {
		f = roundToOdd(x)
	}
	b := math.Float32bits(f)
	if f != f {
		return BFloat16(b>>16 | 0x40)
	}
	return BFloat16((b + 0x7fff + b>>16&1) >> 16)
}

// Float32 returns the exact value.
func (h BFloat16) Float32() float32 { return math.Float32frombits(uint32(h) << 16) }

// Float64 returns the exact value.
func (h BFloat16) Float64() float64 { return float64(h.Float32()) }
