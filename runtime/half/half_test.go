package half

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFloat16 tests every bit pattern, and every midpoint between neighbours, where rounding to
// even matters.
func TestFloat16(t *testing.T) {
	for b := range 1 << 16 {
		h := Float16(b)
		x := h.Float64()
		if math.IsNaN(x) {
			assert.True(t, math.IsNaN(ToFloat16(x).Float64()))
			continue
		}
		if got := ToFloat16(x); got != h {
			t.Fatalf("%#04x is %v, which comes back as %#04x", b, x, got)
		}
		next := Float16(b + 1).Float64()
		if b&0x7fff >= 0x7bff {
			continue
		}
		mid, even := (x+next)/2, h
		if b&1 == 1 {
			even++
		}
		if got := ToFloat16(mid); got != even {
			t.Fatalf("midpoint %v of %#04x rounds to %#04x, not to the even %#04x", mid, b, got, even)
		}
		above := mid + (next-mid)*1e-9 // lost by rounding to float32 first
		if got := ToFloat16(above); got != h+1 {
			t.Fatalf("%v just above the midpoint of %#04x rounds to %#04x", above, b, got)
		}
	}
	for x, want := range map[float64]Float16{65504: 0x7bff, 65519.99: 0x7bff, 65520: 0x7c00, 1e300: 0x7c00,
		math.Inf(-1):       0xfc00,
		math.Ldexp(1, -25): 0, math.Ldexp(1.0001, -25): 1, math.Copysign(0, -1): 0x8000, 1e-300: 0, 5e-324: 0} {
		assert.Equal(t, want, ToFloat16(x), "%v", x)
	}
}

func TestBFloat16(t *testing.T) {
	for b := range 1 << 16 {
		h := BFloat16(b)
		x := h.Float64()
		if math.IsNaN(x) {
			assert.True(t, math.IsNaN(ToBFloat16(x).Float64()))
			continue
		}
		if got := ToBFloat16(x); got != h {
			t.Fatalf("%#04x is %v, which comes back as %#04x", b, x, got)
		}
	}
	one := 1.0
	ulp := math.Ldexp(1, -7)
	assert.Equal(t, ToBFloat16(one), ToBFloat16(one+ulp/2), "ties to even")
	assert.Equal(t, BFloat16(0x3f81), ToBFloat16(one+ulp/2*(1+1e-12)), "rounded once")
	assert.Equal(t, BFloat16(0x3f82), ToBFloat16(one+1.5*ulp))
	assert.Equal(t, BFloat16(0x7f80), ToBFloat16(math.MaxFloat64))
}

// smallFloat is a floating-point format of 16 bits: the number of significant bits, including the
// leading one, and the bias of the exponent.
type smallFloat struct{ digits, bias int }

var binary16, bfloat = smallFloat{11, 15}, smallFloat{8, 127}

// number returns the exact value of bits.
func (f smallFloat) number(bits uint16) float64 {
	one := 1 << (f.digits - 1)
	exp, fraction := int(bits&0x7fff)/one, int(bits)&(one-1)
	x := math.Ldexp(float64(fraction+one), exp-f.bias-f.digits+1)
	switch {
	case exp == 0:
		x = math.Ldexp(float64(fraction), 2-f.bias-f.digits)
	case exp == 2*f.bias+1 && fraction != 0:
		return math.NaN()
	case exp == 2*f.bias+1:
		x = math.Inf(1)
	}
	if bits>>15 == 1 {
		x = -x
	}
	return x
}

// bits rounds to nearest, ties to even.
func (f smallFloat) bits(x float64) uint16 {
	sign, one := uint16(0), 1<<(f.digits-1)
	if math.Signbit(x) {
		sign = 1 << 15
	}
	infinity := (2*f.bias + 1) * one
	switch {
	case x != x:
		return sign | uint16(infinity+one/2)
	case math.IsInf(x, 0):
		return sign | uint16(infinity)
	}
	exp := max(math.Ilogb(math.Abs(x)), 1-f.bias)
	units := math.RoundToEven(math.Ldexp(math.Abs(x), f.digits-1-exp))
	return sign | uint16(min((exp+f.bias-1)*one+int(units), infinity))
}

// TestSmallFloats compares the conversions with other implementations, written from the definition
// of the formats.
func TestSmallFloats(t *testing.T) {
	bits := func(x float64) []uint16 {
		return []uint16{uint16(ToFloat16(x)), uint16(ToBFloat16(x))}
	}
	compare := func(x float64) {
		got, want := []uint16{binary16.bits(x), bfloat.bits(x)}, bits(x)
		if x == x {
			require.Equal(t, want, got, "%v", x)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 1 << 16 {
		h, b := Float16(i).Float64(), BFloat16(i).Float64()
		if h != h || b != b {
			require.Equal(t, math.IsNaN(h), math.IsNaN(binary16.number(uint16(i))))
			require.Equal(t, math.IsNaN(b), math.IsNaN(bfloat.number(uint16(i))))
			continue
		}
		require.Equal(t, math.Float64bits(h), math.Float64bits(binary16.number(uint16(i))), "%#x", i)
		require.Equal(t, math.Float64bits(b), math.Float64bits(bfloat.number(uint16(i))), "%#x", i)
		for _, x := range []float64{h, b} { // and numbers close to the midpoint of two neighbours
			for _, y := range []float64{x, math.Nextafter(x, 9), x * (1 + 0x1p-11), x * (1 + 0x1p-11 + 0x1p-40),
				x * (1 + 0x1p-8), x + 0x1p-25} {
				compare(y)
			}
		}
		compare(math.Float64frombits(r.Uint64()))
	}
	assert.True(t, math.IsNaN(binary16.number(binary16.bits(math.NaN()))))
	assert.True(t, math.IsNaN(bfloat.number(bfloat.bits(math.NaN()))))
}
