package tree

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHalfBits converts between numbers and the bits of halves, in both directions.
func TestHalfBits(t *testing.T) {
	for b := range 1 << 16 {
		h := uint16(b)
		if f := halfValue(h); f == f {
			require.Equal(t, h, halfBits(f), "%g", f)
		} else {
			require.Equal(t, h|0x200, halfBits(f), "a NaN becomes quiet and keeps the rest: %x", h)
		}
	}
	for f, want := range map[float64]uint16{2: 0x4000, 1 + 0x1p-11: 0x3c00, 1 + 0x3p-11: 0x3c02, 1 + 0x1p-11 +
		0x1p-40: 0x3c01,
		65519.9: 0x7bff, 65520: 0x7c00, -1e9: 0xfc00, 0x1p-25: 0, 0x1.8p-24: 2, 0x1.ff8p-15: 0x03ff, 0x1.ffep-15: 0x0400} {
		assert.Equal(t, want, halfBits(f), "%g", f)
	}
}
