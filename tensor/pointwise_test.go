package tensor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// closeTo requires the elements of a tensor to be those of another one but for a part of their magnitude.
func closeTo(t *testing.T, want, got *Tensor, part float64, what string) {
	t.Helper()
	require.NoError(t, got.Err(), what)
	require.Equal(t, want.Shape(), got.Shape(), what)
	x, y := values[float64](t, want.Cast(F64)), values[float64](t, got.Cast(F64))
	for i := range x {
		require.InDelta(t, x[i], y[i], part*(1+max(x[i], -x[i])), "%s: element %d", what, i)
	}
}

// Products of floats with half and bfloat16 have the results of products of floats, and their gradients, in the
// types of the operands.
func TestMatMulOfTwoTypes(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	for _, shapes := range [][2][]int{{{1, 700}, {700, 90}}, {{3, 64}, {64, 5}}, {{17, 33}, {33, 129}},
		{{2, 5, 40}, {2, 40, 31}}, {{2, 5, 40}, {40, 131}}, {{4, 0}, {0, 3}},
		{{40}, {40, 300}}, {{90, 700}, {700}}} {
		for _, types := range [][2]Type{{F32, BF16}, {F16, F32}, {BF16, F16}} {
			what, s := fmt.Sprint(shapes, types), scope(t)
			a, b := someDoubles(s, r, shapes[0]...).Cast(types[0]), someDoubles(s, r, shapes[1]...).Cast(types[1])
			require.NoError(t, Eval(t.Context(), a, b))
			c, want := a.MatMul(b), a.Cast(F32).MatMul(b.Cast(F32))
			assert.Equal(t, F32, c.Type(), what)
			closeTo(t, want, c, 1e-5, what)
			if len(shapes[1]) == 2 {
				closeTo(t, want, a.MatMul(b.T().Copy().T()), 1e-5, what)
			}
			got, exact := Grad(c.Mul(c).Sum(), a, b), Grad(want.Mul(want).Sum(), a, b)
			for i, x := range []*Tensor{a, b} {
				assert.Equal(t, x.Type(), got[i].Type(), what)
				closeTo(t, exact[i], got[i], 2e-2, what)
			}
		}
	}
}

// Filters of one element are products with images whose channels are last in memory, which are not copied.
func TestConvChannelsLast(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 34))
	for dims, side := range [][]int{{19}, {7, 5}, {3, 4, 6}} {
		last := append(append([]int{2}, side...), 6)
		order, back := []int{0, dims + 2}, []int{0}
		for i := range side {
			order, back = append(order, i+1), append(back, i+2)
		}
		back = append(back, 1)
		ones, more := make([]int, len(side)), make([][2]int, len(side))
		for i := range ones {
			ones[i] = 1
			more[i] = [2]int{0, 1}
		}
		for _, o := range []ConvOptions{{}, {Stride: append([]int{2}, ones[1:]...)}, {Pad: more}, {Groups: 2}} {
			for _, typ := range []Type{F32, F64, F16} {
				what, s := fmt.Sprint(last, o, typ), scope(t)
				x, bias := someDoubles(s, r, last...).Cast(typ), someDoubles(s, r, 4).Cast(typ)
				w := someDoubles(s, r, append([]int{4, 6 / max(o.Groups, 1)}, ones...)...).Cast(typ)
				require.NoError(t, Eval(t.Context(), x, w, bias))
				part := map[Type]float64{F32: 1e-5, F64: 1e-13, F16: 2e-3}[typ]
				for _, b := range []*Tensor{nil, bias} {
					y, want := Conv(x.Permute(order...), w, b, o), Conv(x.Permute(order...).Copy(), w, b, o)
					closeTo(t, want, y, part, what)
					if b == nil && o.Pad == nil && o.Stride == nil && o.Groups == 0 && typ == F32 {
						assert.Len(t, tasks(t, Conv(x.Permute(order...), w, nil, o).Permute(back...)), 1, what)
					}
					for i, g := range Grad(y.Mul(y).Sum(), x, w) {
						closeTo(t, Grad(want.Mul(want).Sum(), x, w)[i], g, 10*part, what)
					}
				}
			}
		}
	}
}

// The inverse functions agree with package math on each device, as do their derivatives with formulas; beyond where
// they have a value they are NaN.
func TestInverseFunctions(t *testing.T) {
	points := []float64{-0.999, -0.5, -1e-4, 0, 1e-4, 0.3, 0.999, 1.001, 1.5, 3, 1000}
	everywhere(t, func(t *testing.T, s *Scope) {
		for name, c := range map[string]struct {
			f        func(x *Tensor) *Tensor
			want, by func(x float64) float64
		}{
			"asin":  {(*Tensor).Asin, math.Asin, func(x float64) float64 { return 1 / math.Sqrt(1-x*x) }},
			"acos":  {(*Tensor).Acos, math.Acos, func(x float64) float64 { return -1 / math.Sqrt(1-x*x) }},
			"asinh": {(*Tensor).Asinh, math.Asinh, func(x float64) float64 { return 1 / math.Sqrt(1+x*x) }},
			"acosh": {(*Tensor).Acosh, math.Acosh, func(x float64) float64 { return 1 / math.Sqrt(x*x-1) }},
			"atanh": {(*Tensor).Atanh, math.Atanh, func(x float64) float64 { return 1 / (1 - x*x) }},
		} {
			x := From(s, points)
			y := c.f(x)
			got, slope := values[float64](t, y), values[float64](t, Grad(y.Sum(), x)[0])
			single := values[float32](t, c.f(x.Cast(F32)))
			for i, p := range points {
				want := c.want(p)
				assert.InDelta(t, want, got[i], 1e-12*(1+math.Abs(want)), "%s of %v", name, p)
				assert.InDelta(t, c.want(float64(float32(p))), single[i], 1e-6*(1+math.Abs(want)), "%s of %v", name, p)
				if want == want {
					assert.InEpsilon(t, c.by(p), slope[i], 1e-9, "the derivative of %s at %v", name, p)
				}
			}
		}
		assert.InDelta(t, math.Pi/2, values[float64](t, From(s, []int8{1}).Asin())[0], 1e-12, "integers become F64")
	})
}
