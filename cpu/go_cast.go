package cpu

// cast in Go. Every element is converted to one of three wide types, which represents it
// exactly, and then to its new type.

import (
	"math"
	"math/bits"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/half"
)

func init() { native("cast", "cast", goCast) }

// wide is the constraint of the wide types.
type wide interface{ float64 | int64 | uint64 }

type integerElem interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

func goCast(c *call) error {
	from := c.Type("FROM")
	switch from {
	case "f32":
		return castFrom(c, widen[float32, float64](c))
	case "f64":
		return castFrom(c, widen[float64, float64](c))
	case "f16", "bf16":
		v := viewOf[float64](c, 0, from)
		return castFrom(c, func(dst []float64, lo int) { v.read(lo, lo+len(dst), dst) })
	case "i8":
		return castFrom(c, widen[int8, int64](c))
	case "i16":
		return castFrom(c, widen[int16, int64](c))
	case "i32":
		return castFrom(c, widen[int32, int64](c))
	case "i64":
		return castFrom(c, widen[int64, int64](c))
	case "u8":
		return castFrom(c, widen[uint8, uint64](c))
	case "u16":
		return castFrom(c, widen[uint16, uint64](c))
	case "u32":
		return castFrom(c, widen[uint32, uint64](c))
	}
	return castFrom(c, widen[uint64, uint64](c))
}

// widen returns a function that fills dst with elements from index lo on.
func widen[E integerElem | number, W wide](c *call) func(dst []W, lo int) {
	in := kernels.Elements[E](&c.Call, 0)
	return func(dst []W, lo int) {
		for i, x := range in[lo : lo+len(dst)] {
			dst[i] = W(x)
		}
	}
}

func castFrom[W wide](c *call, read func(dst []W, lo int)) error {
	write := castTo[W](c)
	return pieces(c, int(c.Int(2)), func(lo, hi int) {
		var scratch [piece]W
		x := scratch[:hi-lo]
		read(x, lo)
		write(lo, x)
	})
}

// castTo returns a function that converts elements to the new type and writes them from index lo on.
func castTo[W wide](c *call) func(lo int, x []W) {
	switch to := c.Type("TO"); to {
	case "f32":
		return narrow(c, func(x W) float32 { return float32(x) })
	case "f64":
		return narrow(c, func(x W) float64 { return float64(x) })
	case "f16":
		return narrow(c, func(x W) uint16 { return uint16(half.ToFloat16(toOdd(x))) })
	case "bf16":
		return narrow(c, func(x W) uint16 { return uint16(half.ToBFloat16(toOdd(x))) })
	case "i8":
		return narrow(c, saturate[W, int8])
	case "i16":
		return narrow(c, saturate[W, int16])
	case "i32":
		return narrow(c, saturate[W, int32])
	case "i64":
		return narrow(c, saturate[W, int64])
	case "u8":
		return narrow(c, saturate[W, uint8])
	case "u16":
		return narrow(c, saturate[W, uint16])
	case "u32":
		return narrow(c, saturate[W, uint32])
	}
	return narrow(c, saturate[W, uint64])
}

func narrow[W wide, E kernels.Elem](c *call, f func(W) E) func(lo int, x []W) {
	out := kernels.Elements[E](&c.Call, 1)
	return func(lo int, x []W) {
		for i, v := range x {
			out[lo+i] = f(v)
		}
	}
}

// toOdd returns x as a float64. An integer of more than 53 bits is rounded to odd: if bits that
// are not 0 are cut off, the last bit is set, so that the next rounding is correct.
func toOdd[W wide](x W) float64 {
	switch x := any(x).(type) {
	case float64:
		return x
	case int64:
		if x < 0 {
			return -oddFloat(uint64(-x))
		}
		return oddFloat(uint64(x))
	case uint64:
		return oddFloat(x)
	}
	return 0
}

func oddFloat(x uint64) float64 {
	drop := max(bits.Len64(x)-53, 0)
	if lost := x & (1<<drop - 1); lost != 0 {
		x = x&^lost | 1<<drop
	}
	return float64(x)
}

// saturate returns x without its fraction, or the nearest integer of type I if that is out of range, or
// 0 for NaN.
func saturate[W wide, I integerElem](x W) I {
	low, high := limits[I]()
	switch x := any(x).(type) {
	case float64:
		// float64(high) rounds up to 2^63 or 2^64, the first numbers out of range.
		switch {
		case x != x:
			return 0
		case x <= float64(low):
			return I(low)
		case x >= float64(high):
			return I(high)
		case x < 0:
			return I(int64(x))
		}
		return I(uint64(x))
	case int64:
		switch {
		case x < low:
			return I(low)
		case x > 0 && uint64(x) > high:
			return I(high)
		}
		return I(x)
	case uint64:
		return I(min(x, high))
	}
	return 0
}

func limits[I integerElem]() (low int64, high uint64) {
	var zero I
	switch any(zero).(type) {
	case int8:
		return math.MinInt8, math.MaxInt8
	case int16:
		return math.MinInt16, math.MaxInt16
	case int32:
		return math.MinInt32, math.MaxInt32
	case int64:
		return math.MinInt64, math.MaxInt64
	case uint8:
		return 0, math.MaxUint8
	case uint16:
		return 0, math.MaxUint16
	case uint32:
		return 0, math.MaxUint32
	}
	return 0, math.MaxUint64
}
