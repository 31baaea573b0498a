package tensor

// Helpers of tests: gradients by finite differences.

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// gradients compares the gradients of f with differences of its results: the sum of f's result, weighted by
// numbers that are all different, is a function of each element of args, which are of F64.
func gradients(t *testing.T, f func(args ...*Tensor) *Tensor, args ...*Tensor) {
	t.Helper()
	loss := func(args ...*Tensor) *Tensor {
		y := f(args...)
		require.NoError(t, y.Err())
		return y.Mul(Iota(y.scope, F64, y.shape...).Mul(0.37).Sin().Add(1.3)).Sum()
	}
	got := Grad(loss(args...), args...)
	require.NoError(t, Eval(t.Context(), got...))
	const h = 1e-4
	for k, a := range args {
		require.True(t, slices.Equal(a.shape, got[k].shape), "%v and %v", a.shape, got[k].shape)
		data, d := values[float64](t, a), values[float64](t, got[k])
		for i := range data {
			var at [2]float64
			for side, step := range []float64{h, -h} {
				moved := slices.Clone(data)
				moved[i] += step
				with := slices.Clone(args)
				with[k] = From(a.scope, moved, a.Shape()...)
				at[side] = values[float64](t, loss(with...))[0]
			}
			want := (at[0] - at[1]) / (2 * h)
			require.InDelta(t, want, d[i], 1e-6*(1+math.Abs(want)), "argument %d, element %d", k, i)
		}
	}
}
