package tensor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestProductDerivatives: of random products with zeros, over each axis, the derivatives up to the third are products
// of the other elements.
func TestProductDerivatives(t *testing.T) {
	r := rand.New(rand.NewPCG(34, 1))
	for _, s := range []*Scope{scope(t), unfused(t)} {
		for _, n := range []int{1, 2, 3, 5, 8} {
			for zeros := range min(n, 3) + 1 {
				x := make([]float64, n)
				for i := range x {
					x[i] = math.Round(r.NormFloat64()*8)/4 + 0.125
				}
				for _, i := range r.Perm(n)[:zeros] {
					x[i] = math.Copysign(0, float64(r.IntN(2))-0.5)
				}
				// without returns the product of the elements but those at some places, or 0 if two of these are the
				// same.
				without := func(places ...int) float64 {
					p := 1.0
					for i, v := range x {
						if !slices.Contains(places, i) {
							p *= v
						}
					}
					slices.Sort(places)
					if len(slices.Compact(slices.Clone(places))) < len(places) {
						return 0
					}
					return p
				}
				in := s.Scope()
				// Each row of another axis has the same elements, so that the product of rows is one by one.
				a := From(in, x, n, 1).Expand(n, 2).Copy()
				g := Grad(a.Prod(0).Sum(), a)[0]
				got := values[float64](t, g)
				for i := range n {
					h := Grad(g.Narrow(0, i, 1).Sum(), a)[0]
					second := values[float64](t, h)
					j := r.IntN(n)
					third := values[float64](t, Grad(h.Narrow(0, j, 1).Sum(), a)[0])
					for k := range n {
						for col := range 2 {
							require.InDelta(t, without(i), got[2*i+col], 1e-9, "%v by %d", x, i)
							require.InDelta(t, without(i, k), second[2*k+col], 1e-9, "%v by %d and %d", x, i, k)
							require.InDelta(t, without(i, j, k), third[2*k+col], 1e-9, "%v by %d, %d and %d", x, i,
								j, k)
						}
					}
				}
				require.NoError(t, in.Close())
			}
		}
	}
	s := scope(t)
	long := Full(s, F32, 1.0001, 70001)
	g := values[float32](t, Grad(long.Prod(), long)[0])
	assert.InEpsilonSlice(t, slices.Repeat([]float32{float32(math.Pow(float64(float32(1.0001)), 70000))}, 70001), g,
		1e-2, "whose rounding errors add up")
	half := Full(s, F16, 300, 2, 2) // whose products are no halves
	assert.Equal(t, slices.Repeat([]float32{300}, 4), values[float32](t, Grad(half.Prod(1).Mul(1).Sum(),
		half)[0].Cast(F32)))
}

// TestPowerDerivatives: the derivatives of powers at 0, up to the fourth, are those of polynomials.
func TestPowerDerivatives(t *testing.T) {
	for _, s := range []*Scope{scope(t), unfused(t)} {
		for name, power := range map[string]func(x *Tensor, k float64) *Tensor{
			"number": func(x *Tensor, k float64) *Tensor { return x.Pow(k) },
			"tensor": func(x *Tensor, k float64) *Tensor { return x.Pow(From(s, []float64{k})) },
		} {
			for k := range 5 {
				points := []float64{0, math.Copysign(0, -1), 2, -1}
				x := From(s, points)
				y, factor := power(x, float64(k)), 1.0
				for order := range 5 {
					got := values[float64](t, y)
					for i, p := range points {
						want := 0.0
						if factor != 0 {
							want = factor * math.Pow(p, float64(k-order))
						}
						assert.InDelta(t, want, got[i], 1e-12, "%s: derivative %d of x^%d at %v", name, order, k, p)
					}
					factor *= float64(k - order)
					y = Grad(y.Sum(), x)[0]
				}
			}
		}
	}
}
