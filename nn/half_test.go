package nn

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/tensor"
)

// Sums of losses and metrics of half are not rounded to half: only the loss itself is.
func TestSumsOfHalf(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	number := func(x *tensor.Tensor) float64 {
		v, err := tensor.Number(t.Context(), x)
		require.NoError(t, err)
		return v
	}
	const rows = 30000
	labels, even := tensor.Zeros(s, tensor.I64, rows), tensor.Full(s, tensor.F16, 0.1, rows, 10)
	for _, c := range []struct {
		l    Loss
		p, t *tensor.Tensor
		want float64
	}{
		{CrossEntropy{}, even, labels, 2.302585},
		{CategoricalCrossEntropy{}, even, labels, 2.302585},
		{CosineSimilarity{}, tensor.From(s, []float64{300, 0}).Cast(tensor.F16), tensor.From(s, []float64{300, 0}), 0},
		{MSE{}, tensor.Full(s, tensor.F16, 300, 4), tensor.Full(s, tensor.F16, 100, 4), 40000},
	} {
		x, err := c.l.Of(c.p, c.t)
		require.NoError(t, err)
		assert.Equal(t, tensor.F16, x.Type())
		assert.InDelta(t, c.want, number(x), 2e-3, "%v", c.l)
	}
	ones := tensor.Ones(s, tensor.F16, 2049)
	for _, c := range []struct {
		m    Metric
		p, t *tensor.Tensor
		want float64
	}{
		{Accuracy{}, even, labels, 1},
		{Accuracy{}, ones, ones, 1},
		{MeanAbsolute{}, ones.Mul(300), ones, 299},
		{RootMeanSquare{}, ones.Mul(300), ones, 299},
		{RecallScore{}, ones, ones, 1},
	} {
		var sums []float64
		for _, x := range c.m.Sums(c.p, c.t) {
			sums = append(sums, number(x.Reshape()))
		}
		assert.InDelta(t, c.want, c.m.Value(sums), 1e-4, "%v of %v", c.m, sums)
		if n := float64(c.p.Dim(0)); c.p == ones {
			assert.Equal(t, n, sums[len(sums)-1], "%v", c.m)
		}
	}
}
