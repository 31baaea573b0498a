package tensor

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCumSum(t *testing.T) {
	s := scope(t)
	r := rand.New(rand.NewPCG(11, 12))
	for _, c := range []struct {
		shape []int
		axis  int
	}{{[]int{1}, 0}, {[]int{9}, -1}, {[]int{3, 4}, 0}, {[]int{3, 4}, 1}, {[]int{0, 4}, 0}, {[]int{4, 0}, 1},
		{[]int{2, 3000, 2}, 1}, {[]int{100000}, 0}, {[]int{2, 20000}, 1},
		{[]int{1, 2, 1, 2, 1, 7, 1, 2}, 5}} {
		x := make([]float64, count(c.shape))
		for i := range x {
			x[i] = float64(r.IntN(9) - 4)
		}
		a := From(s, x, c.shape...)
		d, _ := a.axis(c.axis)
		want := make([]float64, len(x))
		each(c.shape, func(at []int) {
			i := flat(c.shape, at)
			want[i] = x[i]
			if at[d] > 0 {
				at[d]--
				want[i] += want[flat(c.shape, at)]
				at[d]++
			}
		})
		for _, typ := range []Type{F64, F32, I32, I8} {
			y := a.Cast(typ).CumSum(c.axis)
			require.Equal(t, c.shape, y.Shape())
			assert.Equal(t, want, values[float64](t, y.Cast(F64)), "%v %v", c, typ)
		}
		if len(x) < 100 {
			gradients(t, func(args ...*Tensor) *Tensor { return args[0].Square().CumSum(c.axis) }, a)
		}
	}
	assert.Equal(t, []int64{1, 1, 2}, values[int64](t, From(s, []bool{true, false, true}).CumSum(0)))
	assert.Equal(t, []uint64{255, 510}, values[uint64](t, From(s, []uint8{255, 255}).CumSum(0)))
	ones := values[float32](t, Ones(s, F16, 3000).CumSum(0).Cast(F32))
	assert.Equal(t, float32(3000), ones[2999], "half is added in F32")
	inf := values[float32](t, From(s, []float32{1, float32(math.Inf(1)), 2}).CumSum(0))
	assert.Equal(t, []float32{1, float32(math.Inf(1)), float32(math.Inf(1))}, inf)
	assert.ErrorIs(t, From(s, []float32{1, 2}).CumSum(1).Err(), ErrShape)
	long := Iota(s, F32, 20000) // in two parts
	assert.Equal(t, []float32{20000, 19999}, values[float32](t, Grad(long.CumSum(0).Sum(), long)[0].Narrow(0, 0, 2)))
}
