package ann

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// exactAngle returns the angle of two vectors and 1 minus its cosine, with 400 bits in between.
func exactAngle(a, b []float32) (angle, d float64) {
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(x) }
	sum := func(x, y []float32) *big.Float {
		s := number(0)
		for i := range x {
			s.Add(s, new(big.Float).SetPrec(400).Mul(number(float64(x[i])), number(float64(y[i]))))
		}
		return s
	}
	square := new(big.Float).SetPrec(400).Mul(sum(a, a), sum(b, b))
	if square.Sign() == 0 {
		return math.Pi / 2, 1
	}
	far := number(1)
	far.Sub(far, new(big.Float).SetPrec(400).Quo(sum(a, b), square.Sqrt(square)))
	d, _ = far.Float64()
	return 2 * math.Asin(math.Sqrt(min(d/2, 1))), d
}

// TestDirections compares vectors of any length that a float has, and in nearly the same direction, with a
// computation of 400 bits.
func TestDirections(t *testing.T) {
	const n, dim = 120, 9
	sizes := [][2]float64{{1e20, 1e20}, {1e-36, 1e-36}, {1e-30, 1e30}, {1, 1}, {3e37, 1}, {1e-20, 1e-20}, {1, 3e37}}
	if testing.Short() {
		sizes = sizes[:3]
	}
	for _, name := range devices {
		for _, m := range []Metric{Cosine, Angular} {
			for _, size := range sizes {
				r := rand.New(rand.NewPCG(91, 92))
				query, vectors := make([]float32, dim), make([]float32, n*dim)
				for i := range query {
					query[i] = float32(r.NormFloat64() * size[0])
				}
				for i := range vectors {
					vectors[i] = float32(r.NormFloat64() * size[1])
					if v := i / dim; v%2 == 0 { // in nearly the same direction, more so from one to the next
						vectors[i] = float32(float64(query[i%dim]) / size[0] * size[1] * (1 + float64(1+v%5)*0.1) * (1 +
							math.Pow(2, -float64(v)/4)*r.NormFloat64()))
					}
				}
				clear(vectors[7*dim : 8*dim])
				what := fmt.Sprintf("%s, %v, %v", name, m, size)
				indexes := map[string]Index{"flat": flat(t, open(t, name), dim, m, FlatOptions{})}
				if name != "opencl:0" {
					indexes["hnsw"] = hnsw(t, open(t, name), dim, m, HNSWOptions{})
					indexes["ivf"] = ivf(t, open(t, name), dim, m, IVFOptions{Lists: 2, Probes: 2})
				}
				for kind, ix := range indexes {
					require.NoError(t, ix.Add(t.Context(), counted(n), vectors))
					got, err := ix.Search(t.Context(), nil, query, n-1, nil)
					require.NoError(t, err)
					last := 0.0
					for _, f := range got {
						v := vectors[f.ID*dim : (f.ID+1)*dim]
						angle, d := exactAngle(query, v)
						want, within := d, 1e-6*d+3e-7*math.Sqrt(d)+1e-13 // directions are floats on some devices
						if d > 0x1p-10 {                                  // then 1 - cosine has digits enough
							within = 3e-7
						}
						if m.kind == angular {
							want, within = angle, 1e-5
						}
						require.InDelta(t, want, f.Distance, within, "%s %s: vector %d", what, kind, f.ID)
						require.GreaterOrEqual(t, f.Distance, last)
						last = f.Distance
						judged, err := m.Distance(query, v)
						require.NoError(t, err)
						require.InDelta(t, want, judged, 1e-7*math.Max(want, 1e-7), "%s: the judge on vector %d", what, f.ID)
					}
				}
			}
		}
	}
	for _, p := range []Precision{FP16, INT8, INT8Scaled} { // equal vectors are at no angle
		for _, name := range devices {
			f := flat(t, open(t, name), 5, Angular, FlatOptions{Precision: p})
			v := []float32{0.3, -0.7, 0.11, 0.9, 0.02}
			require.NoError(t, f.Add(t.Context(), []int64{1}, v))
			assert.InDelta(t, 0, find(t, f, v, nil)[0].Distance, 1e-6, "%v on %s", p, name)
		}
	}
}
