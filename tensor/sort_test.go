package tensor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// compare orders numbers, with NaN behind all others.
func compare(a, b float64) int {
	switch {
	case a < b, a == a && b != b:
		return -1
	case a > b, a != a && b == b:
		return 1
	}
	return 0
}

// sameNumbers compares numbers, of which NaN are equal.
func sameNumbers(t *testing.T, want, got []float64, message ...any) {
	t.Helper()
	require.Len(t, got, len(want), message...)
	for i := range want {
		if want[i] != got[i] && (want[i] == want[i] || got[i] == got[i]) {
			require.Equal(t, want, got, message...)
		}
	}
}

func TestSort(t *testing.T) {
	s := scope(t)
	r := rand.New(rand.NewPCG(9, 10))
	for _, c := range []struct {
		shape []int
		axis  int
	}{{[]int{7}, 0}, {[]int{3, 5}, 0}, {[]int{3, 5}, -1}, {[]int{2, 1, 6, 3}, 2}, {[]int{1, 1}, 1}, {[]int{0, 3}, 0},
		{[]int{3, 0}, 1}, {[]int{3000}, 0}, {[]int{1025, 2}, 0},
		{[]int{9000}, 0}, {[]int{1, 2, 1, 2, 1, 3, 1, 2}, 5}} {
		x := make([]float64, count(c.shape))
		for i := range x {
			x[i] = float64(r.IntN(40) - 20)
			if r.IntN(20) == 0 {
				x[i] = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(3)]
			}
		}
		a := From(s, x, c.shape...)
		d, _ := a.axis(c.axis)
		for _, descending := range []bool{false, true} {
			n := c.shape[d]
			order, sorted := make([]int64, len(x)), make([]float64, len(x))
			rest := slices.Delete(slices.Clone(c.shape), d, d+1)
			each(rest, func(at []int) {
				place := func(i int) int { return flat(c.shape, slices.Insert(slices.Clone(at), d, i)) }
				list := make([]int, n)
				for i := range list {
					list[i] = i
				}
				slices.SortStableFunc(list, func(i, j int) int {
					if descending {
						i, j = j, i
					}
					return compare(x[place(i)], x[place(j)])
				})
				for i, from := range list {
					order[place(i)], sorted[place(i)] = int64(from), x[place(from)]
				}
			})
			v, i := a.Sort(c.axis, descending)
			require.NoError(t, Eval(t.Context(), v, i))
			sameNumbers(t, sorted, values[float64](t, v), "%v", c)
			assert.Equal(t, order, values[int64](t, i), "%v", c)
			assert.Equal(t, order, values[int64](t, a.Cast(F16).ArgSort(c.axis, descending)), "%v", c)
			if n > 0 {
				for _, k := range []int{1, (n + 3) / 4, n, 0} {
					v, i := a.TopK(k, c.axis, descending)
					require.Equal(t, k, v.Dim(c.axis))
					assert.Equal(t, v.Shape(), i.Shape())
					if slices.ContainsFunc(x, math.IsNaN) && slices.Contains(x, math.Inf(1)) && descending {
						continue // these are equal to each other
					}
					ranges := slices.Repeat([]Range{All}, d+1)
					ranges[d] = Range{0, k, 1}
					assert.Equal(t, values[int64](t, From(s, order, c.shape...).Slice(ranges...)), values[int64](t, i), "%v k=%d", c,
						k)
					sameNumbers(t, values[float64](t, From(s, sorted, c.shape...).Slice(ranges...)), values[float64](t, v), "%v k=%d",
						c, k)
				}
			}
		}
	}
	v, i := From(s, []bool{true, false, true}).Sort(0, false)
	assert.Equal(t, []bool{false, true, true}, values[bool](t, v))
	assert.Equal(t, []int64{1, 0, 2}, values[int64](t, i))
	v, i = From(s, []uint64{5, math.MaxUint64, 7, 1 << 63, 0, 1, 2, 3}).TopK(2, 0, true)
	assert.Equal(t, []uint64{math.MaxUint64, 1 << 63}, values[uint64](t, v))
	assert.Equal(t, []int64{1, 3}, values[int64](t, i))
	v, i = From(s, []float32{1, float32(math.NaN()), 3, float32(math.Inf(1)), 0, 0, 0, 0}).TopK(2, 0, true)
	assert.Equal(t, []int64{1, 3}, values[int64](t, i))
	assert.True(t, math.IsNaN(float64(values[float32](t, v)[0])))
	_, bad := v.TopK(3, 0, true)
	assert.ErrorIs(t, bad.Err(), ErrShape)
	assert.ErrorIs(t, v.ArgSort(1, true).Err(), ErrShape)
	x := From(s, someNumbers(r, 30), 5, 6)
	for axis := range 2 {
		gradients(t, func(args ...*Tensor) *Tensor {
			v, _ := args[0].Square().Sort(axis, true)
			w, _ := args[0].TopK(1, axis, false)
			return v.Add(w)
		}, x)
	}
}

func TestRandom(t *testing.T) {
	s := scope(t)
	const n = 20000
	// Moments of some distributions, and equal bits for equal seeds, as a number and as a tensor.
	for name, c := range map[string]struct {
		make           func(seed any, shape ...int) *Tensor
		mean, variance float64
	}{
		"uniform f32": {func(seed any, shape ...int) *Tensor { return Uniform(s, F32, seed, -1, 3, shape...) }, 1, 16. / 12},
		"uniform f64": {func(seed any, shape ...int) *Tensor { return Uniform(s, F64, seed, 0, 1, shape...) }, 0.5, 1. / 12},
		"uniform f16": {func(seed any, shape ...int) *Tensor { return Uniform(s, F16, seed, 0, 1, shape...) }, 0.5, 1. / 12},
		"uniform bf16": {func(seed any, shape ...int) *Tensor { return Uniform(s, BF16, seed, 0, 1, shape...) }, 0.5,
			1. / 12},
		"normal f32":  {func(seed any, shape ...int) *Tensor { return Normal(s, F32, seed, 2, 3, shape...) }, 2, 9},
		"normal f64":  {func(seed any, shape ...int) *Tensor { return Normal(s, F64, seed, 0, 1, shape...) }, 0, 1},
		"normal bf16": {func(seed any, shape ...int) *Tensor { return Normal(s, BF16, seed, 0, 1, shape...) }, 0, 1},
		"bernoulli":   {func(seed any, shape ...int) *Tensor { return Bernoulli(s, seed, 0.3, shape...) }, 0.3, 0.21},
		"randint": {func(seed any, shape ...int) *Tensor { return RandInt(s, I8, seed, -10, 11, shape...) }, 0,
			(21.*21 - 1) / 12},
		"randint u64": {func(seed any, shape ...int) *Tensor { return RandInt(s, U64, seed, 7, math.MaxInt64, shape...) },
			1 << 62, 0x1p126 / 12 * 4 / 4},
		"dropout": {func(seed any, shape ...int) *Tensor { return Ones(s, F32, shape...).Dropout(0.25, seed) }, 1,
			1/0.75 - 1},
	} {
		a := c.make(uint64(7), n)
		x := values[float64](t, a.Cast(F64))
		assert.Equal(t, x, values[float64](t, c.make(From(s, []uint64{7}), n).Cast(F64)), name)
		assert.Equal(t, x, values[float64](t, c.make(7, 10, n/10).Cast(F64)), name)
		assert.NotEqual(t, x, values[float64](t, c.make(8, n).Cast(F64)), name)
		mean, square := 0.0, 0.0
		for _, v := range x {
			mean += v / n
		}
		for _, v := range x {
			square += (v - mean) * (v - mean) / n
		}
		deviation := math.Sqrt(c.variance)
		assert.InDelta(t, c.mean, mean, 5*deviation/math.Sqrt(n)+deviation/256, name)
		assert.InDelta(t, 1, square/c.variance, 0.06, name)
		assert.Len(t, values[float64](t, c.make(7, 0, 3).Cast(F64)), 0)
	}
	assert.Less(t, slices.Max(values[float32](t, Uniform(s, F16, 1, 0, 1, n).Cast(F32))), float32(1))
	assert.Less(t, slices.Max(values[float32](t, Uniform(s, BF16, 1, 0, 1, n).Cast(F32))), float32(1))
	assert.True(t, !slices.Contains(values[bool](t, Bernoulli(s, 1, 1, n)), false))
	assert.True(t, !slices.Contains(values[bool](t, Bernoulli(s, 1, 0, n)), true))
	ints := values[int64](t, RandInt(s, I64, 3, 5, 8, n))
	assert.Equal(t, []int64{5, 7}, []int64{slices.Min(ints), slices.Max(ints)})
	p := values[int64](t, Permutation(s, 11, 5000))
	assert.NotEqual(t, p, slices.Sorted(slices.Values(p)))
	for i, v := range slices.Sorted(slices.Values(p)) {
		require.Equal(t, int64(i), v)
	}
	seeds := Seeds(s, 5, 3)
	assert.NotEqual(t, values[float32](t, Uniform(s, F32, seeds.Index(0, 0), 0, 1, 4)),
		values[float32](t, Uniform(s, F32, seeds.Index(0, 1), 0, 1, 4)))
	// The gradient passes by the same mask.
	x := Ones(s, F64, 50)
	y := x.Dropout(0.5, 3)
	g := Grad(y.Sum(), x)[0]
	require.NoError(t, Eval(t.Context(), y, g))
	assert.Equal(t, values[float64](t, y), values[float64](t, g))
	for what, bad := range map[string]*Tensor{
		"rate": x.Dropout(1, 3), "type": Uniform(s, I32, 1, 0, 1, 2), "seed": Uniform(s, F32, -1, 0, 1, 2),
		"seed type": Normal(s, F32, 1.5, 0, 1), "seeds": Bernoulli(s, seeds, 0.5),
		"seed tensor": Bernoulli(s, x.Sum(), 0.5), "empty range": RandInt(s, I8, 1, 3, 3), "range": RandInt(s, I8, 1, 0, 129),
		"shape": Uniform(s, F32, 1, 0, 1, -1), "p": Bernoulli(s, 1, 1.5),
		"integers": Ones(s, I32, 3).Dropout(0.5, 1), "permutation": Permutation(s, 1, -1),
	} {
		assert.Error(t, bad.Err(), what)
		assert.Contains(t, bad.Err().Error(), "sort_test.go", what)
	}
}
