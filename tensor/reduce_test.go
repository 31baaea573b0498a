package tensor

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Few long rows are reduced in two steps on devices other than the CPU, with the same results and gradients.
func TestDividedReductions(t *testing.T) {
	whole, divided := scope(t), scope(t)
	divided.engine.groups = true
	r := rand.New(rand.NewPCG(19, 20))
	data := make([]float64, 1<<18)
	for i := range data {
		data[i] = float64(r.IntN(1000)) // sums are exact, and several elements are the largest
	}
	x := func(s *Scope, shape ...int) *Tensor { return From(s, data[:count(shape)], shape...) }
	for name, c := range map[string]struct {
		shape []int
		f     func(x *Tensor) *Tensor
		tasks int // of the divided form
	}{
		"sum":            {[]int{1 << 18}, func(x *Tensor) *Tensor { return x.Sum() }, 2},
		"of few rows":    {[]int{2, 2, 1 << 16}, func(x *Tensor) *Tensor { return x.Mul(2).Sum(-1).Add(1) }, 2},
		"of columns":     {[]int{1 << 16, 4}, func(x *Tensor) *Tensor { return x.Sum(0) }, 2},
		"of all columns": {[]int{3, 1 << 14, 5}, func(x *Tensor) *Tensor { return x.Max(0, 1) }, 2},
		"of short rows":  {[]int{1 << 8, 1 << 10}, func(x *Tensor) *Tensor { return x.Sum(1) }, 1},
		"of a prime":     {[]int{262139}, func(x *Tensor) *Tensor { return x.Sum() }, 1},
		"f16":            {[]int{1 << 17}, func(x *Tensor) *Tensor { return x.Div(1e4).Cast(F16).Sum() }, 2},
		"softmax":        {[]int{2, 1 << 17}, func(x *Tensor) *Tensor { return x.Div(1000).Softmax(1) }, 5},
		"any":            {[]int{1 << 18}, func(x *Tensor) *Tensor { return x.Eq(999).Any() }, 2},
	} {
		a, b := x(whole, c.shape...), x(divided, c.shape...)
		want, got := c.f(a), c.f(b)
		assert.Len(t, tasks(t, got), c.tasks, name)
		assert.InDeltaSlice(t, values[float64](t, want.Cast(F64)), values[float64](t, got.Cast(F64)), 1e-9, name)
		if name == "any" {
			continue
		}
		want, got = Grad(want.Square().Sum(), a)[0], Grad(got.Square().Sum(), b)[0]
		assert.InDeltaSlice(t, values[float64](t, want.Cast(F64)), values[float64](t, got.Cast(F64)), 1e-3, name)
	}
}

// Of no elements, what a sum of exponentials is made of has a value, though a maximum has none.
func TestSoftmaxOfNothing(t *testing.T) {
	s := scope(t)
	x := Zeros(s, F32, 2, 0)
	for _, y := range []*Tensor{x.Softmax(1), x.LogSoftmax(-1), x.Softmax(0)} {
		require.NoError(t, y.Err())
		assert.Equal(t, []int{2, 0}, y.Shape())
		assert.Empty(t, values[float32](t, y))
	}
	low := float32(math.Inf(-1))
	assert.Equal(t, []float32{low, low}, values[float32](t, x.LogSumExp(1)))
	assert.Equal(t, []float32{low}, values[float32](t, x.LogSumExp()))
	assert.ErrorIs(t, x.Softmax(2).Err(), ErrShape)
	assert.ErrorIs(t, x.LogSumExp(2).Err(), ErrShape)
	assert.Empty(t, values[float32](t, Grad(x.Softmax(1).Sum(), x)[0]))
}

// What a device cannot hold is an error before there is memory for it on the host.
func TestReadTooMuch(t *testing.T) {
	s := scope(t)
	for _, n := range []int{1 << 44, 1 << 47} {
		_, err := Read[float32](t.Context(), Zeros(s, F32, n))
		assert.Error(t, err)
	}
}

func TestClosedFunc(t *testing.T) {
	s := scope(t)
	f := Compile(s, func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Exp()} })
	x := Ones(s, F32, 3)
	_, err := f.Call(t.Context(), x)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = f.Call(t.Context(), x)
	assert.ErrorIs(t, err, ErrScope)
	require.NoError(t, f.Close())
	assert.ErrorContains(t, x.Reshape(-1, -1).Err(), "more than one -1")
}
