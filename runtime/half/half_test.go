package half

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestFloat16 goes through every bit pattern, and through every midpoint between
// neighbours, where rounding to even shows.
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
	for x, want := range map[float64]Float16{65504: 0x7bff, 65519.99: 0x7bff, 65520: 0x7c00, 1e300: 0x7c00, math.Inf(-1): 0xfc00,
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
