package cluster

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// TestEven has the guide's example, and a remainder.
func TestEven(t *testing.T) {
	p, err := Even(1_000_000, 4)
	require.NoError(t, err)
	assert.Equal(t, Placement{{0, 250_000}, {250_000, 250_000}, {500_000, 250_000}, {750_000, 250_000}}, p)
	p, err = Even(11, 4)
	require.NoError(t, err)
	assert.Equal(t, Placement{{0, 2}, {2, 2}, {4, 2}, {6, 5}}, p)
	for _, c := range [][2]int{{-1, 2}, {3, 0}} {
		_, err = Even(c[0], c[1])
		assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	}
}

// TestWeighted divides by random weights: every row has one member, in order, and no member is a row away from
// its share.
func TestWeighted(t *testing.T) {
	all, err := Weighted(math.MaxInt, []float64{1, 0})
	require.NoError(t, err)
	require.Equal(t, math.MaxInt, all[0].Count)
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		weights, sum := make([]float64, 1+r.IntN(9)), 0.0
		for i := range weights {
			if i == 0 || r.IntN(4) > 0 {
				weights[i] = math.Exp(20 * r.NormFloat64())
			}
			sum += weights[i]
		}
		rows := r.IntN(1 << r.IntN(40))
		p, err := Weighted(rows, weights)
		require.NoError(t, err)
		require.NoError(t, p.Check())
		require.Equal(t, rows, p.Rows())
		for i, part := range p {
			require.InDelta(t, float64(rows)*weights[i]/sum, part.Count, 1.001, "%v of %v", p, weights)
			if part.Count > 0 {
				require.Equal(t, i, p.Of(part.First))
				require.Equal(t, i, p.Of(part.End()-1))
			}
		}
	}
	p, err := Weighted(5, []float64{1, 1, 0, 1})
	require.NoError(t, err)
	assert.Equal(t, Placement{{0, 2}, {2, 2}, {4, 0}, {4, 1}}, p)
	for _, weights := range [][]float64{{1}, {0, 2}, {1, 1e-30}, {1, 2, 3}} {
		p, err := Weighted(math.MaxInt, weights)
		require.NoError(t, err)
		require.NoError(t, p.Check(), "%v", weights)
		assert.Equal(t, math.MaxInt, p.Rows())
	}
	for _, weights := range [][]float64{nil, {0, 0}, {1, -1}, {math.NaN()}, {math.Inf(1), 1}} {
		_, err := Weighted(3, weights)
		assert.ErrorIs(t, err, runtime.ErrInvalidArgument, "%v", weights)
	}
	_, err = Weighted(-3, []float64{1})
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
}

func TestCheck(t *testing.T) {
	assert.NoError(t, Placement{{0, 2}, {2, 0}, {2, 3}}.Check())
	for _, p := range []Placement{{{1, 2}}, {{0, 2}, {3, 1}}, {{0, 2}, {1, 1}}, {{0, -1}},
		{{0, math.MaxInt}, {math.MaxInt, 1}}} {
		assert.ErrorIs(t, p.Check(), runtime.ErrInvalidArgument, "%v", p)
	}
}
