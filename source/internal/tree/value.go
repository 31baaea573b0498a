package tree

// Values at compile time, and arithmetic with them.

import (
	"cmp"
	"math"
	"strconv"
)

// Value is the value of a scalar expression at compile time. OK reports whether it is known. Bits are those of an
// object of type Kind, to 64 bits: a signed integer is extended by its sign, everything else by zeros. So two
// values are the same object exactly if they are equal.
type Value struct {
	OK   bool
	Kind Kind
	Bits uint64
}

// IntValue returns v as a value of integer kind k, wrapped to its width.
func IntValue(k Kind, v int64) Value {
	switch spare := 64 - 8*KindSize(k); k {
	case Bool:
		if v != 0 {
			v = 1
		}
	case Char, Short, Int:
		v = v << spare >> spare
	case UChar, UShort, UInt:
		v = int64(uint64(v) << spare >> spare)
	}
	return Value{OK: true, Kind: k, Bits: uint64(v)}
}

// FloatValue returns f as a value of floating kind k, rounded to nearest. A NaN keeps its sign and as much of its
// payload as k has room for.
func FloatValue(k Kind, f float64) Value {
	switch k {
	case Half:
		return Value{OK: true, Kind: k, Bits: uint64(halfBits(f))}
	case Float:
		return Value{OK: true, Kind: k, Bits: uint64(math.Float32bits(float32(f)))}
	}
	return Value{OK: true, Kind: k, Bits: math.Float64bits(f)}
}

// BitsValue returns the value of kind k whose object has these bits, of which those that k has no room for are ignored.
func BitsValue(k Kind, bits uint64) Value {
	if IsIntKind(k) {
		return IntValue(k, int64(bits))
	}
	return Value{OK: true, Kind: k, Bits: bits & (^uint64(0) >> (64 - 8*KindSize(k)))}
}

// truth returns the int that is the result of a comparison.
func truth(b bool) Value {
	if b {
		return IntValue(Int, 1)
	}
	return IntValue(Int, 0)
}

// IsFloat reports whether the kind of c is a floating one.
func (c Value) IsFloat() bool { return !IsIntKind(c.Kind) }

// Int returns an integer; one of kind ULong that an int64 cannot hold wraps.
func (c Value) Int() int64 { return int64(c.Bits) }

// Negative reports whether an integer is below zero.
func (c Value) Negative() bool { return c.Kind != ULong && c.Int() < 0 }

// Fits reports whether integer kind k can hold an integer.
func (c Value) Fits(k Kind) bool {
	to := IntValue(k, c.Int())
	return to.Bits == c.Bits && to.Negative() == c.Negative()
}

// String returns an integer in decimal digits, and the number of a floating value.
func (c Value) String() string {
	switch {
	case c.IsFloat():
		return strconv.FormatFloat(c.Float(), 'g', -1, 64)
	case c.Kind == ULong:
		return strconv.FormatUint(c.Bits, 10)
	}
	return strconv.FormatInt(c.Int(), 10)
}

// Float returns a number as float64, which rounds integers beyond 2^53.
func (c Value) Float() float64 {
	switch c.Kind {
	case Half:
		return halfValue(uint16(c.Bits))
	case Float:
		return float64(math.Float32frombits(uint32(c.Bits)))
	case Double:
		return math.Float64frombits(c.Bits)
	case ULong:
		return float64(c.Bits)
	}
	return float64(c.Int())
}

// IsZero reports whether c is known and compares equal to zero.
func (c Value) IsZero() bool {
	return c.OK && (c.IsFloat() && c.Float() == 0 || !c.IsFloat() && c.Bits == 0)
}

// Convert converts c to scalar type t, rounding once.
func (c Value) Convert(t *Type) Value {
	switch k := t.Base; {
	case !c.OK || !t.IsScalar():
		return Value{}
	case c.Kind == k:
		return c
	case k == Bool:
		return IntValue(Bool, truth(!c.IsZero()).Int())
	case IsIntKind(k) && c.IsFloat():
		return floatToInt(c.Float(), k)
	case IsIntKind(k):
		return IntValue(k, c.Int())
	case k == Float && c.Kind == ULong: // by way of double it could round twice
		return Value{OK: true, Kind: k, Bits: uint64(math.Float32bits(float32(c.Bits)))}
	case k == Float && !c.IsFloat():
		return Value{OK: true, Kind: k, Bits: uint64(math.Float32bits(float32(c.Int())))}
	default: // integers that double cannot hold are infinite as half
		return FloatValue(k, c.Float())
	}
}

// floatToInt converts f toward zero. A number that 64 bits cannot hold has no value.
func floatToInt(f float64, k Kind) Value {
	switch {
	case f >= -(1<<63) && f < 1<<63:
		return IntValue(k, int64(f))
	case f >= 1<<63 && f < 1<<64:
		return IntValue(k, int64(uint64(f)))
	}
	return Value{}
}

// compare orders two values of one kind; ordered is false if one is a NaN.
func compare(a, b Value) (order int, ordered bool) {
	switch {
	case a.IsFloat():
		x, y := a.Float(), b.Float()
		return cmp.Compare(x, y), x == x && y == y
	case a.Kind == ULong:
		return cmp.Compare(a.Bits, b.Bits), true
	}
	return cmp.Compare(a.Int(), b.Int()), true
}

// Relation evaluates a comparison of two values of one kind.
func Relation(op string, a, b Value) bool {
	order, ordered := compare(a, b)
	switch op {
	case "<":
		return ordered && order < 0
	case ">":
		return ordered && order > 0
	case "<=":
		return ordered && order <= 0
	case ">=":
		return ordered && order >= 0
	case "==":
		return ordered && order == 0
	}
	return !ordered || order != 0 // !=
}

// Arithmetic evaluates + - * / % & | ^ on two values of one kind, in that kind.
func Arithmetic(op string, a, b Value) Value {
	if a.IsFloat() {
		return floatArithmetic(op, a, b)
	}
	x, y := a.Int(), b.Int()
	switch op {
	case "+":
		x += y
	case "-":
		x -= y
	case "*":
		x *= y
	case "&":
		x &= y
	case "|":
		x |= y
	case "^":
		x ^= y
	case "/", "%":
		switch rem := op == "%"; {
		case y == 0:
			return Value{}
		case a.Kind == ULong && rem:
			x = int64(a.Bits % b.Bits)
		case a.Kind == ULong:
			x = int64(a.Bits / b.Bits)
		case rem: // Go defines the quotient of the least integer and -1, as the renderings do: it wraps
			x %= y
		default:
			x /= y
		}
	default:
		return Value{}
	}
	return IntValue(a.Kind, x)
}

// floatArithmetic computes in double and rounds to the kind of the operands. Since double has more than twice
// their digits, that is the same as rounding once.
func floatArithmetic(op string, a, b Value) Value {
	x, y := a.Float(), b.Float()
	for _, c := range [...]Value{a, b} {
		if f := c.Float(); f != f { // as processors do: the first NaN is the result, as a quiet one
			return FloatValue(c.Kind, f)
		}
	}
	switch op {
	case "+":
		x += y
	case "-":
		x -= y
	case "*":
		x *= y
	case "/":
		x /= y
	default:
		return Value{}
	}
	if x != x {
		x = math.Float64frombits(0x7ff8 << 48)
	}
	return FloatValue(a.Kind, x)
}

// shift shifts a by a count of which only the bits that the width of a needs matter.
func shift(op string, a Value, count int64) Value {
	n := count & int64(8*KindSize(a.Kind)-1)
	switch {
	case op == "<<":
		return IntValue(a.Kind, a.Int()<<n)
	case a.Kind == ULong:
		return IntValue(a.Kind, int64(a.Bits>>n))
	}
	return IntValue(a.Kind, a.Int()>>n)
}

// unaryOf evaluates + - ~ in the kind of a.
func unaryOf(op string, a Value) Value {
	switch {
	case !a.OK || op == "+":
		return a
	case op == "-" && a.IsFloat(): // the sign of a NaN changes, too
		return BitsValue(a.Kind, a.Bits^1<<(8*KindSize(a.Kind)-1))
	case op == "-":
		return IntValue(a.Kind, -a.Int())
	case op == "~" && !a.IsFloat():
		return IntValue(a.Kind, ^a.Int())
	}
	return Value{}
}

// halfBits rounds to half: to nearest, ties to even.
func halfBits(f float64) uint16 {
	sign := uint16(math.Float64bits(f) >> 48 & 0x8000)
	a := math.Abs(f)
	switch {
	case f != f:
		return sign | 0x7e00 | uint16(math.Float64bits(f)>>42&0x3ff)
	case a >= 65520: // half way from the largest half to the next power of two
		return sign | 0x7c00
	case a < 0x1p-14: // in steps of the smallest half
		return sign | uint16(math.RoundToEven(a*0x1p24))
	}
	frac, exp := math.Frexp(a) // frac in [1/2, 1)
	m := uint16(math.RoundToEven(frac * 0x1p11))
	return sign | (uint16(exp+14)<<10 + (m - 0x400))
}

// halfValue returns the number that the bits of a half represent.
func halfValue(h uint16) float64 {
	exp, frac := int(h>>10&31), float64(h&0x3ff)
	f := math.Ldexp(frac, -24)
	switch {
	case exp == 31 && frac != 0:
		return math.Float64frombits(uint64(h&0x8000)<<48 | 0x7ff8<<48 | uint64(h&0x3ff)<<42)
	case exp == 31:
		f = math.Inf(1)
	case exp > 0:
		f = math.Ldexp(frac+0x400, exp-25)
	}
	if h&0x8000 != 0 {
		f = -f
	}
	return f
}
