package cpu

// Functions that the Go implementations of the catalog share: reading buffers of half and bfloat16
// as float32, a piece at a time, and sums with small rounding errors.

import (
	"math"
	"sync"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/half"
)

// number is the constraint of the types in which floating kernels compute; element includes integers.
type number interface{ float32 | float64 }

type element interface {
	number | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// view is a buffer: as a slice of F, or as the bits of its elements for the 16-bit floating types.
type view[F element] struct {
	full []F
	bits []uint16
	bf16 bool
}

// viewOf returns argument i as a buffer of the element type t, whose elements are read as F.
func viewOf[F element](c *call, i int, t string) view[F] {
	switch t {
	case "f16", "bf16":
		return view[F]{bits: c.U16(i), bf16: t == "bf16"}
	}
	return view[F]{full: kernels.Elements[F](&c.Call, i)}
}

// read returns elements lo to hi: a part of the buffer itself, or a converted copy in scratch,
// which must be long enough.
func (v *view[F]) read(lo, hi int, scratch []F) []F {
	if v.bits == nil {
		return v.full[lo:hi]
	}
	scratch = scratch[:hi-lo]
	if v.bf16 {
		for i, b := range v.bits[lo:hi] {
			scratch[i] = F(math.Float32frombits(uint32(b) << 16))
		}
		return scratch
	}
	table := halves()
	for i, b := range v.bits[lo:hi] {
		scratch[i] = F(table[b])
	}
	return scratch
}

// target returns the slice in which to compute elements lo to hi: a part of the buffer itself, or
// scratch. write then copies them to the buffer, if necessary.
func (v *view[F]) target(lo, hi int, scratch []F) []F {
	if v.bits == nil {
		return v.full[lo:hi]
	}
	return scratch[:hi-lo]
}

func (v *view[F]) write(lo int, x []F) {
	switch {
	case v.bits == nil:
	case v.bf16:
		for i, f := range x {
			v.bits[lo+i] = uint16(half.ToBFloat16(float64(f)))
		}
	default:
		for i, f := range x {
			v.bits[lo+i] = uint16(half.ToFloat16(float64(f)))
		}
	}
}

// at reads and set writes a single element.
func (v *view[F]) at(i int) F {
	if v.bits == nil {
		return v.full[i]
	}
	var one [1]F
	return v.read(i, i+1, one[:])[0]
}

func (v *view[F]) set(i int, x F) {
	if v.bits == nil {
		v.full[i] = x
		return
	}
	v.write(i, []F{x})
}

// halves is a table of the float32 value of each half.
var halves = sync.OnceValue(func() *[1 << 16]float32 {
	t := new([1 << 16]float32)
	for i := range t {
		t[i] = half.Float16(i).Float32()
	}
	return t
})

// typed selects the implementation for the element type: f64 for f64, and f32 for f32,
// f16 and bf16.
func typed(f32, f64 func(c *call, t string) error) goFunc {
	return func(c *call) error {
		t := c.Type("T")
		if t == "f64" {
			return f64(c, t)
		}
		return f32(c, t)
	}
}

// typedAll selects the implementation for any element type from those for each type of Go.
func typedAll(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64 goFunc) goFunc {
	by := map[string]goFunc{"f32": f32, "f16": f32, "bf16": f32, "f64": f64, "i8": i8, "i16": i16, "i32": i32, "i64": i64,
		"u8": u8, "u16": u16, "u32": u32, "u64": u64}
	return func(c *call) error { return by[c.Type("T")](c) }
}

// sumOf adds the sums of both halves of x, recursively down to 128 numbers, which it adds in eight
// lanes: no number takes part in more than 19 + log₂(n/128) additions.
func sumOf[F element](x []F) F {
	if len(x) > 128 {
		half := (len(x)/2 + 7) &^ 7
		return sumOf(x[:half]) + sumOf(x[half:])
	}
	var s [8]F
	for len(x) >= 8 {
		y := x[:8:8]
		s[0] += y[0]
		s[1] += y[1]
		s[2] += y[2]
		s[3] += y[3]
		s[4] += y[4]
		s[5] += y[5]
		s[6] += y[6]
		s[7] += y[7]
		x = x[8:]
	}
	for i, v := range x {
		s[i] += v
	}
	return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
}
