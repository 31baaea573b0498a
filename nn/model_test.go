package nn

// Predictions: from several goroutines, their memory, and what does not fit.

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/tensor"
)

func TestPredictIsConcurrent(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	m := build(t, s, Dense{Out: 2})
	says := func(x float64) []float64 {
		in := s.Scope()
		defer in.Close()
		y, err := m.Predict(t.Context(), tensor.Full(in, tensor.F64, x, 5, 3), nil)
		if !assert.NoError(t, err) {
			return nil
		}
		list, err := tensor.Read[float64](t.Context(), y)
		assert.NoError(t, err)
		return list
	}
	unit := says(1)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 50 {
				x := float64(i + 1)
				for j, y := range says(x) {
					if !assert.InDelta(t, x*unit[j], y, 1e-12) {
						return
					}
				}
			}
		})
	}
	group.Wait()
}

// A result ends with the scope of the examples.
func TestPredictKeepsNoMemory(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	m := build(t, s, Dense{Out: 2})
	var live []int64
	for range 4 {
		in := s.Scope()
		_, err := m.Predict(t.Context(), tensor.Ones(in, tensor.F64, 5, 3), nil)
		require.NoError(t, err)
		require.NoError(t, in.Close())
		live = append(live, s.Device().Stats().Live)
	}
	assert.Equal(t, live[1], live[3])
}

func TestPredictRefuses(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	m, err := Build(t.Context(), s, 1, Spec{Type: tensor.F32, Shape: []int{4, 3}}, LSTM{Units: 2}, Softmax)
	require.NoError(t, err)
	x := tensor.Ones(s, tensor.F32, 5, 4, 3)
	for _, lengths := range []*tensor.Tensor{tensor.Ones(s, tensor.F32, 5), tensor.Ones(s, tensor.I32, 4),
		tensor.Ones(s, tensor.I32, 5, 1), tensor.Ones(s, tensor.I32)} {
		_, err := m.Predict(t.Context(), x, lengths)
		assert.ErrorIs(t, err, ErrData, "%v%v", lengths.Type(), lengths.Shape())
	}
	_, err = m.Predict(t.Context(), x, tensor.Ones(s, tensor.U8, 5))
	assert.NoError(t, err)
	// whose parameter has as many elements as there are examples
	one, err := Build(t.Context(), s, 1, Spec{Type: tensor.F32}, LayerNorm{})
	require.NoError(t, err)
	_, err = one.Predict(t.Context(), tensor.Ones(s, tensor.F32, 2), nil)
	assert.ErrorIs(t, err, ErrConfig)
	assert.ErrorContains(t, err, `"0.weight"`)
}

// total puts all examples together.
type total struct{}

func (total) Apply(_ *Pass, x *tensor.Tensor) *tensor.Tensor { return x.Sum() }
func (total) String() string                                 { return "total" }

func TestResultsHaveExamples(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	_, err := Build(t.Context(), s, 1, Spec{Type: tensor.F64, Shape: []int{3}}, total{})
	assert.ErrorIs(t, err, ErrConfig)
	_, err = CrossEntropy{}.Of(tensor.Ones(s, tensor.F64), tensor.Ones(s, tensor.F64, 1))
	assert.ErrorIs(t, err, ErrData)
}
