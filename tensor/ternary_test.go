package tensor

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/runtime/driver"
)

// TestMatMulTernary compares products with their definition, for rows of any length and in compiled functions.
func TestMatMulTernary(t *testing.T) {
	s, r := scope(t), rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		cols, rows int
		shape      []int
	}{{1, 1, nil}, {3, 5, []int{2}}, {40, 7, []int{2, 3}}, {256, 3, []int{4}}, {300, 65, []int{9}}, {5, 2, []int{0}}} {
		x, w := make([]float32, count(c.shape)*c.cols), make([]float32, c.rows*c.cols)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		for i := range w {
			w[i] = 0.75 * float32(r.IntN(3)-1)
		}
		m, err := quant.Pack(quant.Layout{Format: quant.TQ20, Rows: c.rows, Cols: c.cols}, w)
		require.NoError(t, err)
		packed, err := NewTernary(s, m)
		require.NoError(t, err)
		rows, cols := packed.Shape()
		require.Equal(t, []int{c.rows, c.cols}, []int{rows, cols})

		n := count(c.shape)
		q, scales, want := make([]int8, len(x)), make([]float32, n), make([]float32, n*c.rows)
		if n > 0 {
			require.NoError(t, quant.Activations(q, scales, nil, x, c.cols))
		}
		for i := range n {
			for j := range c.rows {
				sum := 0
				for k := range c.cols {
					sum += int(q[i*c.cols+k]) * int(w[j*c.cols+k]/0.75)
				}
				want[i*c.rows+j] = float32(float64(sum) / float64(scales[i]) * 0.75)
			}
		}
		in := From(s, x, append(c.shape, c.cols)...)
		y := in.MatMulTernary(packed)
		assert.Equal(t, append(append([]int{}, c.shape...), c.rows), y.Shape())
		same := func(got []float32) {
			require.Len(t, got, len(want))
			for i := range got {
				assert.InDelta(t, want[i], got[i], 1e-6*math.Abs(float64(want[i])), "the integers are exact")
			}
		}
		same(values[float32](t, y))
		f := Compile(s, func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Neg().MatMulTernary(packed).Neg()} })
		for range 3 {
			out, err := f.Call(t.Context(), in)
			require.NoError(t, err)
			same(values[float32](t, out[0]))
		}
	}

	m, err := quant.Pack(quant.Layout{Format: quant.TQ20, Rows: 2, Cols: 3}, []float32{1, 0, -1, 1, 1, 1})
	require.NoError(t, err)
	w, err := NewTernary(s, m)
	require.NoError(t, err)
	assert.Equal(t, "ternary [2 3]", w.String())
	x := From(s, []float32{1, 2, 3, 4, float32(math.NaN()), 5}, 2, 3)
	y := values[float32](t, x.T().Copy().T().MatMulTernary(w)) // whatever the order in memory
	assert.InDeltaSlice(t, []float32{-2, 6}, y[:2], 0.03)
	assert.True(t, math.IsNaN(float64(y[2])) && math.IsNaN(float64(y[3])))
	assert.Equal(t, make([]float32, 6), values[float32](t, Grad(x.MatMulTernary(w).Sum(), x)[0].Flatten()))
	for _, bad := range []*Tensor{x.T().MatMulTernary(w), x.Reshape(6).MatMulTernary(w),
		Full(s, F32, 1).MatMulTernary(w)} {
		assert.ErrorIs(t, bad.Err(), ErrShape)
	}
	assert.ErrorIs(t, x.MatMulTernary(nil).Err(), ErrType)
	eight, err := quant.Pack(quant.Layout{Format: quant.Q80, Rows: 1, Cols: 2}, []float32{1, 0.3})
	require.NoError(t, err)
	_, err = NewTernary(s, eight)
	assert.ErrorIs(t, err, driver.ErrUnsupported)
	in := s.Scope()
	require.NoError(t, in.Close())
	_, err = NewTernary(in, m)
	assert.ErrorIs(t, err, ErrScope)
}
