package nn

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// The batch is limited by the number of examples and by memory: what is planned for it takes no more than the half.
func TestRecommendedBatch(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	c := plain(1, 7)
	for n, want := range map[int]int{1: 1, 63: 1, 64: 2, 1000: 16, 40000: 1024} {
		got, err := RecommendedBatch(t.Context(), small(t, s), c, line(s, n))
		require.NoError(t, err)
		assert.Equal(t, want, got, "%d examples", n)
	}
	// The number of examples permits 512. A layer keeps a 512th of the free memory for each example, so that half
	// of the memory has no room for more than 256.
	d := Data{X: tensor.Zeros(s, tensor.F64, 16384, 3), Y: tensor.Zeros(s, tensor.F64, 16384, 1)}
	require.NoError(t, tensor.Eval(t.Context(), d.X, d.Y))
	info := s.Device().Info()
	m := build(t, s, Dense{Out: 1}, wide{int(info.FreeMemory / 512 / 8)}, Dense{Out: 1})
	before := s.Device().Stats().Live
	for _, accumulate := range []int{1, 2} {
		c.Accumulate = accumulate
		got, err := RecommendedBatch(t.Context(), m, c, d)
		require.NoError(t, err)
		assert.LessOrEqual(t, got, 256, "accumulating %d", accumulate)
		assert.Greater(t, got, 8, "accumulating %d", accumulate)
	}
	assert.Equal(t, before, s.Device().Stats().Live, "it keeps no memory")
	c.Epochs = -1
	_, err := RecommendedBatch(t.Context(), m, c, d)
	assert.ErrorIs(t, err, ErrConfig)
}

// wide makes a long row of each, whose elements are all kept for the gradient.
type wide struct{ n int }

func (l wide) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	x = x.Mul(p.Param("weight", XavierUniform, 1, l.n)).Tanh()
	return x.MatMul(tensor.Ones(x.Scope(), x.Type(), l.n, 1))
}
func (l wide) String() string { return fmt.Sprintf("wide %d", l.n) }

func TestAutoPrecision(t *testing.T) {
	for _, x := range []struct {
		info runtime.Info
		typ  tensor.Type
		want Mode
	}{
		{runtime.Info{SupportsBF16: true, SupportsFP16: true, FastFP16: true}, tensor.F32, BF16},
		{runtime.Info{SupportsFP16: true, FastFP16: true}, tensor.F32, F16},
		{runtime.Info{SupportsFP16: true}, tensor.F32, Full}, {runtime.Info{SupportsBF16: true}, tensor.F64, Full},
	} {
		assert.Equal(t, x.want, Auto.on(&x.info, x.typ))
		assert.Equal(t, F16, F16.on(&x.info, x.typ))
	}
	s := scopeOn(t, "cpu:0")
	c := plain(1, 4)
	c.MixedPrecision = Auto
	tr, err := NewTrainer(small(t, s), c)
	require.NoError(t, err)
	assert.Equal(t, Full, tr.MixedPrecision())
	assert.Contains(t, tr.same(), "precision: ")
}
