package driver

// Element types of buffers, and the two 16-bit floating formats that Go lacks.

import (
	"fmt"
	"math"

	"github.com/concord-compute/concord/source"
)

// Type is the element type of a buffer.
type Type uint8

// The element types. The zero value is no type.
const (
	NoType Type = iota
	F32
	F64
	F16
	BF16
	I8
	I16
	I32
	I64
	U8
	U16
	U32
	U64
)

// Types lists every element type.
var Types = []Type{F32, F64, F16, BF16, I8, I16, I32, I64, U8, U16, U32, U64}

var typeTable = [...]struct {
	name string
	size int
	kind source.Kind
}{
	NoType: {"none", 0, source.Void},
	F32:    {"f32", 4, source.Float}, F64: {"f64", 8, source.Double},
	F16: {"f16", 2, source.Half}, BF16: {"bf16", 2, source.UShort},
	I8: {"i8", 1, source.Char}, I16: {"i16", 2, source.Short},
	I32: {"i32", 4, source.Int}, I64: {"i64", 8, source.Long},
	U8: {"u8", 1, source.UChar}, U16: {"u16", 2, source.UShort},
	U32: {"u32", 4, source.UInt}, U64: {"u64", 8, source.ULong},
}

// String returns the short name: "f32", "bf16", "u8".
func (t Type) String() string {
	if int(t) >= len(typeTable) {
		return fmt.Sprintf("Type(%d)", t)
	}
	return typeTable[t].name
}

// Size returns the bytes of one element.
func (t Type) Size() int {
	if int(t) >= len(typeTable) {
		return 0
	}
	return typeTable[t].size
}

// Kind returns the type of kernel parameter that points to such elements.
// bfloat16 has no type in OpenCL C: kernels see it as ushort.
func (t Type) Kind() source.Kind {
	if int(t) >= len(typeTable) {
		return source.Void
	}
	return typeTable[t].kind
}

// ParseType returns the type with that short name.
func ParseType(name string) (Type, error) {
	for _, t := range Types {
		if typeTable[t].name == name {
			return t, nil
		}
	}
	return NoType, fmt.Errorf("element type %q is not one of %v: %w", name, Types, ErrInvalidArgument)
}

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
	// Rounding twice (to binary32, then to binary16) can differ from rounding
	// once. Binary32 rounded to odd keeps what the second rounding needs.
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
		out++ // may carry into the exponent, which is what rounding up means
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
