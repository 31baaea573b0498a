package ann

import (
	"math"
	"testing"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// TestMetrics has distances that were computed by hand.
func TestMetrics(t *testing.T) {
	huge := float32(1e30)
	for _, c := range []struct {
		metric string
		a, b   []float32
		want   float64
	}{
		{"euclidean", []float32{0, 0}, []float32{3, 4}, 5},
		{"l2sq", []float32{0, 0}, []float32{3, 4}, 25},
		{"Squared_Euclidean", []float32{1}, []float32{-1}, 4},
		{"cosine", []float32{1, 0}, []float32{0, 2}, 1},
		{"cosine", []float32{1, 1}, []float32{-2, -2}, 2},
		{"cosine", []float32{0, 0}, []float32{1, 1}, 1},
		{"cosine", []float32{0, 0}, []float32{0, 0}, 1},
		{"angular", []float32{1, 0}, []float32{0, 2}, math.Pi / 2},
		{"angular", []float32{0, 0}, []float32{0, 2}, math.Pi / 2},
		{"angular", []float32{1, 2}, []float32{-1, -2}, math.Pi},
		{"manhattan", []float32{1, -1}, []float32{-2, 3}, 7},
		{"chebyshev", []float32{1, -1}, []float32{-2, 3}, 4},
		{"minkowski(1)", []float32{1, -1}, []float32{-2, 3}, 7},
		{"minkowski( 2 )", []float32{0, 0}, []float32{3, 4}, 5},
		{"minkowski(0.5)", []float32{0, 0}, []float32{1, 4}, 9},
		{"minkowski(20)", []float32{huge, 0}, []float32{0, 0}, float64(huge)},
		{"minkowski(3)", []float32{1}, []float32{1}, 0},
		{"minkowski(3)", []float32{float32(math.Inf(1))}, []float32{1}, math.Inf(1)},
		{"hamming", []float32{1, 2, 3}, []float32{1, 2.000001, 4}, 1},
		{"jaccard", []float32{1, 1, 0, 0.5}, []float32{1, 0, 0.6, 0.4}, 1 - 1./3},
		{"jaccard", []float32{0.5}, []float32{0}, 0},
		{"canberra", []float32{0, 1, -1}, []float32{0, 3, 1}, 1.5},
	} {
		m, err := ParseMetric(c.metric)
		require.NoError(t, err)
		got, err := m.Distance(c.a, c.b)
		require.NoError(t, err)
		if got != c.want {
			assert.InEpsilon(t, 1+c.want, 1+got, 1e-14, "%s of %v and %v is %v", c.metric, c.a, c.b, got)
		}
		back, err := ParseMetric(m.String())
		require.NoError(t, err)
		assert.Equal(t, m, back)
	}
	_, err := Euclidean.Distance([]float32{1}, []float32{1, 2})
	assert.ErrorIs(t, err, runtime.ErrDimension)
	_, err = Euclidean.Distance(nil, nil)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)

	f := func(a, b []float32) float64 { return 0 }
	require.NoError(t, Register("Twice", f))
	assert.ErrorIs(t, Register("tWice", f), runtime.ErrInvalidArgument)
	assert.ErrorIs(t, Register("", f), runtime.ErrInvalidArgument)
	assert.ErrorIs(t, Register("none", nil), runtime.ErrInvalidArgument)
	m, err := ParseMetric("CUSTOM:twice")
	require.NoError(t, err)
	assert.Equal(t, "custom:twice", m.String())
}

// TestPrecisions converts components at and beyond the edges of each precision.
func TestPrecisions(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	x := []float32{0, 0.999, 1, -1, 2, -2, 0.5 / 127, 0.999 / 127, -0.999 / 127, nan, inf, -inf}
	var codes []int8
	for _, v := range x {
		codes = append(codes, INT8.scaleOf(nil).code(v))
	}
	assert.Equal(t, []int8{0, 126, 127, -127, 127, -128, 0, 0, 0, 0, 0, 0}, codes)
	c := INT8Scaled.scaleOf([]float32{254, -3, nan, inf})
	assert.Equal(t, 2., c.scale)
	codes = nil
	for _, v := range []float32{1, 3, -1, -5, 254, 300, -300, 0} { // halves to even
		codes = append(codes, c.code(v))
	}
	assert.Equal(t, []int8{0, 2, 0, -2, 127, 127, -127, 0}, codes)

	for _, c := range []struct {
		p      Precision
		corpus []float32
		want   float64
	}{
		{FP32, x, 0}, {FP16, []float32{1, 1 + 1./4096}, 1. / 4096}, {FP16, []float32{70000}, math.Inf(1)},
		{INT8, []float32{0.5 / 127, 1}, 0.5 / 127},
		{INT8, []float32{3}, 2}, {INT8Scaled, []float32{127, 0.5}, 0.5}, {INT8Scaled, []float32{0, nan}, 0},
	} {
		got, err := PrecisionError(c.corpus, c.p)
		require.NoError(t, err)
		if math.IsInf(c.want, 0) {
			assert.Equal(t, c.want, got)
		} else {
			assert.InDelta(t, c.want, got, 1e-7, "%v %v", c.p, c.corpus)
		}
	}
	_, err := PrecisionError(nil, 7)
	assert.ErrorIs(t, err, driver.ErrUnsupportedPrecision)
	for _, p := range []Precision{FP32, FP16, INT8, INT8Scaled} {
		back, err := ParsePrecision(p.String())
		require.NoError(t, err)
		assert.Equal(t, p, back)
	}
	_, err = ParsePrecision("fp8")
	assert.ErrorIs(t, err, driver.ErrUnsupportedPrecision)
}

// TestAnglesNearPi computes angles of vectors in almost opposite directions.
func TestAnglesNearPi(t *testing.T) {
	for _, off := range []float64{1e-2, 1e-4, 1e-6, 1e-9, 1e-15, 0} {
		x := float32(off)
		got, err := Angular.Distance([]float32{3, 0}, []float32{-2, 2 * x})
		require.NoError(t, err)
		assert.InDelta(t, math.Atan(float64(x)), math.Pi-got, 1e-15, "%v", off)
	}
}
