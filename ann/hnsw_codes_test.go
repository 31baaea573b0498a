package ann

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCodesAfterCopies finds the nearest by codes if equal vectors were there first, which say nothing of how
// far others are from each other.
func TestCodesAfterCopies(t *testing.T) {
	const dim, others, first = 8, 600, 4096
	for _, c := range []struct {
		first, size float32
		each        int
	}{{0, .01, others}, {0, 1000, others}, {1e5, 1, others}, {0, .01, 1}, {1e5, 1, 7}, {-3e38, 3e38, others}} {
		r := rand.New(rand.NewPCG(95, 96))
		// one, since the order of insertion changes the recall
		h := hnsw(t, open(t, "cpu:0"), dim, L2Squared, HNSWOptions{Codes: true, EfConstruction: 60, Threads: 1})
		vectors, copies := make([]float32, (others+40)*dim), slices.Repeat([]float32{c.first}, first*dim)
		for i := range vectors {
			vectors[i] = c.size * (2*r.Float32() - 1)
		}
		require.NoError(t, h.Add(t.Context(), counted(first), copies))
		for i := 0; i < others; i += c.each {
			last := min(i+c.each, others)
			require.NoError(t, h.Add(t.Context(), counted(first + last)[first+i:], vectors[i*dim:last*dim]))
		}
		queries := vectors[others*dim:]
		if c.size > 1e18 { // whose squares are infinite
			for i, x := range h.codes.visible[first*dim:][:others*dim] {
				v := float64(vectors[i]) - float64(h.code.centre[i%dim])
				require.True(t, v == 0 || int8(x) == 0 || math.Signbit(v) == (int8(x) < 0), "%v is coded as %d", v, int8(x))
				require.True(t, math.Abs(v) < 1e37 || int8(x) != 0, "%v is coded as %d", v, int8(x))
			}
			continue
		}
		assert.Greater(t, recallByDistance(t, h, queries, 10), 0.95, "%v, then %v, %d at a time", c.first, c.size, c.each)
	}
}

// TestCompactCodes makes the codes of a file anew if they tell no vectors apart, with nothing removed.
func TestCompactCodes(t *testing.T) {
	const n, dim = 600, 8
	r := rand.New(rand.NewPCG(97, 98))
	h, vectors := hnsw(t, open(t, "cpu:0"), dim, L2Squared, HNSWOptions{Codes: true}), random(r, n, dim)
	require.NoError(t, h.Add(t.Context(), counted(n), vectors))
	h.code.scale = 1000
	clear(h.codes.visible)
	require.NoError(t, h.Compact(t.Context()))
	assert.Less(t, h.code.scale, 1.)
	assert.Greater(t, recallByDistance(t, h, random(r, 40, dim), 10), 0.95)
	state := h.state
	require.NoError(t, h.Compact(t.Context()))
	assert.Equal(t, state, h.state, "nothing to do")
}
