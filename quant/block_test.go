package quant

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLoops compares the loops that are attached to descriptions with what follows from these.
func TestLoops(t *testing.T) {
	loops := 0
	for _, f := range Formats() {
		b := f.codec().block
		if b == nil || b.loop == nil {
			continue
		}
		loops++
		data := make([]byte, 8*b.bytes)
		for i := range data {
			data[i] = byte(rand.IntN(256))
		}
		for at := b.scale; at < len(data); at += b.bytes {
			data[at+1] &= 0xbf // finite
		}
		fast, want := make([]float32, 8*b.numbers), make([]float32, 8*b.numbers)
		b.decode(Layout{}, fast, codes{data: data})
		slow := *b
		slow.loop = nil
		slow.decode(Layout{}, want, codes{data: data})
		assert.Equal(t, want, fast, f)
	}
	assert.Equal(t, 3, loops)
}

// TestZerosAfterNumbers encodes a block of zeros behind one of numbers, whose codes it must not keep.
func TestZerosAfterNumbers(t *testing.T) {
	for _, f := range []Format{TQ20, Q40, Q80, Q4K, Q6K, Q50, Q5K} {
		x := make([]float32, 512)
		for i := range x[:256] {
			x[i] = float32(i) - 100
		}
		both, err := New(Layout{Format: f, Rows: 1, Cols: 512})
		require.NoError(t, err)
		require.NoError(t, encodeBy(plain, both, x))
		alone, err := New(Layout{Format: f, Rows: 1, Cols: 256})
		require.NoError(t, err)
		require.NoError(t, encodeBy(plain, alone, x[256:]))
		assert.Equal(t, alone.Data, both.Data[len(alone.Data):], f)
	}
}
