package kernels

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/half"
)

// TestNearestCasesAreDecided checks that in no case two distances that are not equal are so close that
// the error that a device is allowed could change their order.
func TestNearestCasesAreDecided(t *testing.T) {
	seen := 0
	for _, c := range Cases("nearest") {
		if c.Bound == nil || c.Args[2].Dir == InOut {
			continue
		}
		queries, vectors := rounded(c.DType, c.Args[0].Fill()), rounded(c.DType, c.Args[1].Fill())
		nq, nv, dim := int(c.Args[4].V), int(c.Args[5].V), int(c.Args[6].V)
		k, parts := int(c.Args[7].V), int(c.Args[8].V)
		bound := c.Bound(2, nil, []float64{0})[0]
		each := (nv + parts - 1) / parts
		for q := range nq {
			for first := 0; first < nv; first += each {
				var d []float64
				for v := first; v < min(first+each, nv); v++ {
					if x := refDistance("cosine", queries[q*dim:(q+1)*dim], vectors[v*dim:(v+1)*dim]); x == x {
						d = append(d, x)
					}
				}
				slices.Sort(d)
				for i := 1; i < min(len(d), k+1); i++ {
					gap := d[i] - d[i-1]
					assert.True(t, gap == 0 || gap > 2*bound, "%s: query %d: distances %v and %v", c.Name(), q, d[i-1], d[i])
				}
				seen++
			}
		}
	}
	assert.NotZero(t, seen)
}

// rounded rounds numbers to an element type.
func rounded(t string, x []float64) []float64 {
	for i, v := range x {
		switch t {
		case "f32":
			x[i] = float64(float32(v))
		case "f16":
			x[i] = half.ToFloat16(v).Float64()
		case "bf16":
			x[i] = half.ToBFloat16(v).Float64()
		}
	}
	return x
}

func TestNearestParts(t *testing.T) {
	for _, c := range [][3]int{{0, 132, 1}, {1, 132, 1}, {1 << 20, 132, 528}, {4096, 132, 4}, {1 << 20, 0, 1},
		{math.MaxUint32, 2, 8}} {
		require.Equal(t, c[2], NearestParts(c[0], c[1]), c)
	}
}
