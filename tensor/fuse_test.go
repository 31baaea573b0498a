package tensor

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unfusedOf returns the elements of tensors as they are without fusion.
func unfusedOf(t *testing.T, ts ...*Tensor) (list [][]float32) {
	t.Helper()
	e := ts[0].scope.engine
	e.fuse = false
	defer func() { e.fuse = true }()
	for _, x := range ts {
		list = append(list, values[float32](t, x.Copy()))
	}
	return list
}

// The gradient of a layer's bias is summed by the kernel that stores the gradient behind its activation, which
// a product reads, though both gradients are parts of one tensor. Lengths are such that columns and rows are
// reduced in parts.
func TestReducedWhereItIsStored(t *testing.T) {
	for _, shape := range [][]int{{3, 5}, {64, 128}, {1000, 96}, {2, 70000}} {
		s := scope(t)
		x, g := gaussian(s, 1, 1, shape...), gaussian(s, 2, 1, shape...)
		w := gaussian(s, 3, 1, 4, shape[0])
		require.NoError(t, Eval(t.Context(), x, g, w))
		make := func() []*Tensor {
			r := Where(x.Gt(0), g, 0)
			return []*Tensor{Concat(0, w.MatMul(r).Flatten(), r.Sum(0)), r.Mul(2).Sum(1), r}
		}
		assert.Len(t, tasks(t, make()[:1]...), 2, "%v", shape)
		plain, fused := unfusedOf(t, make()...), make()
		require.NoError(t, Eval(t.Context(), fused...))
		for i, want := range plain {
			for j, v := range values[float32](t, fused[i]) {
				require.InDelta(t, want[j], v, 1e-4*(1+math.Abs(float64(want[j])))*math.Sqrt(float64(slices.Max(shape))),
					"%v: result %d, element %d", shape, i, j)
			}
		}
	}
}

// What two kernels alone read is not stored by the kernel in place of both; what is asked for, or read by a
// third one, is.
func TestNothingIsStoredForOneKernel(t *testing.T) {
	s := scope(t)
	x, y := gaussian(s, 1, 1, 64, 10), gaussian(s, 2, 1, 64, 10)
	require.NoError(t, Eval(t.Context(), x, y))
	loss := func() (e, sum, g *Tensor) {
		z := x.Sub(x.Max(-1).Unsqueeze(-1))
		e = z.Exp()
		all := e.Sum(-1).Unsqueeze(-1)
		return e, z.Sub(all.Log()).Mul(y).Sum(-1), e.Div(all).Sub(y)
	}
	_, sum, g := loss()
	p, err := Explain(sum, g)
	require.NoError(t, err)
	require.Len(t, p.Tasks, 1)
	assert.ElementsMatch(t, []string{"f32[64]", "f32[64 10]"}, p.Tasks[0].Results)
	want := unfusedOf(t, sum, g)
	e, sum, g := loss()
	assert.Len(t, tasks(t, e, sum, g), 1)
	require.NoError(t, Eval(t.Context(), e, sum, g))
	for i, x := range []*Tensor{sum, g} {
		for j, v := range values[float32](t, x) {
			require.InDelta(t, want[i][j], v, 1e-5)
		}
	}
	e, sum, g = loss()
	p, err = Explain(sum, g, e.MatMul(y.T()))
	require.NoError(t, err)
	assert.Len(t, p.Tasks, 2)
	assert.Contains(t, p.Tasks[0].Results, "f32[64]")
	assert.Len(t, p.Tasks[0].Results, 3, "with what the product reads")
}

// Small loops of the same length are one kernel, also where they share nothing, unless one needs the other by
// another task.
func TestSmallLoopsAreOneKernel(t *testing.T) {
	s := scope(t)
	x, y, m := gaussian(s, 1, 1, 7), gaussian(s, 2, 1, 7), gaussian(s, 3, 1, 7, 7)
	require.NoError(t, Eval(t.Context(), x, y, m))
	assert.Len(t, tasks(t, x.Exp(), y.Sin()), 1)
	assert.Len(t, tasks(t, x.Sum(0), y.Max(0)), 1)
	between := x.Exp().Reshape(1, 7).MatMul(m).Reshape(7)
	assert.Len(t, tasks(t, between.Sin(), x.Exp()), 3)
	large := gaussian(s, 1, 1, manyTimes.Default)
	require.NoError(t, Eval(t.Context(), large))
	assert.Len(t, tasks(t, large.Exp(), Iota(s, F32, manyTimes.Default).Sin()), 2)
}

// What needs no argument is computed once for all calls, unless it is a result or large.
func TestConstantsAreComputedOnce(t *testing.T) {
	s := scope(t)
	x := gaussian(s, 1, 1, 5, 10)
	require.NoError(t, Eval(t.Context(), x))
	f := Compile(s, func(a ...*Tensor) []*Tensor {
		i := Iota(s, F32, 10).Sin()
		return []*Tensor{a[0].Mul(i).Sum(-1), a[0].MatMul(i.Reshape(10, 1))}
	})
	defer f.Close()
	p, err := f.Plan(t.Context(), x)
	require.NoError(t, err)
	assert.Len(t, p.Tasks, 2)
	for call := range 4 {
		out, err := f.Call(t.Context(), x)
		require.NoError(t, err)
		product, sums, rows := values[float32](t, out[1]), values[float32](t, out[0]), values[float32](t, x)
		for r := range 5 {
			want := 0.0
			for j := range 10 {
				want += float64(rows[10*r+j]) * math.Sin(float64(j))
			}
			require.InDelta(t, want, sums[r], 1e-5, "call %d", call)
			require.InDelta(t, want, product[r], 1e-5, "call %d", call)
		}
		x = x.Add(1)
		require.NoError(t, Eval(t.Context(), x))
	}
	whole := Compile(s, func(a ...*Tensor) []*Tensor { return []*Tensor{Iota(s, F32, 10).Exp(), a[0].Add(1)} })
	defer whole.Close()
	first, err := whole.Call(t.Context(), x)
	require.NoError(t, err)
	kept := values[float32](t, first[0])
	_, err = Compile(s, func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Mul(0)} }).CallDonating(t.Context(),
		[]bool{true}, first[0])
	require.NoError(t, err)
	for range 2 {
		again, err := whole.Call(t.Context(), x)
		require.NoError(t, err)
		assert.Equal(t, kept, values[float32](t, again[0]), "a result is the caller's to overwrite")
	}
}
