package nn

// Optimizers of the second order on a bowl, whose bottom Newton's method finds in one step, and on a network.

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/tensor"
)

func TestSecondOrder(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	d := line(s, 40)
	bowl := func() *Model { return build(t, s, Dense{Out: 2}) }

	byNewton, err := Newton{Damping: new(1e-12)}.Minimize(t.Context(), bowl(), MSE{}, d, 2)
	require.NoError(t, err)
	bottom := byNewton[1]
	assert.InDelta(t, bottom, byNewton[2], 1e-14, "the bottom after one step")
	assert.Less(t, bottom, byNewton[0]/2)

	byLBFGS, err := LBFGS{}.Minimize(t.Context(), bowl(), MSE{}, d, 60)
	require.NoError(t, err)
	require.LessOrEqual(t, len(byLBFGS), 15)
	assert.InDelta(t, bottom, byLBFGS[len(byLBFGS)-1], 1e-12)
	c := plain(25, 40)
	c.Optimizer, c.LearningRate = SGD{}, 0.3
	h := fit(t, bowl(), c, d)
	assert.Greater(t, h.TrainLoss[24]-bottom, 100*(byLBFGS[5]-bottom))

	deep := build(t, s, Dense{Out: 8, Act: Tanh}, Dense{Out: 2})
	losses, err := LBFGS{Memory: 5}.Minimize(t.Context(), deep, MSE{}, d, 60)
	require.NoError(t, err)
	for i := range losses[1:] {
		assert.Less(t, losses[i+1], losses[i])
	}
	assert.Less(t, losses[len(losses)-1], bottom/2)

	for name, f := range map[string]func() ([]float64, error){
		"limit": func() ([]float64, error) { return Newton{Limit: 7}.Minimize(t.Context(), bowl(), MSE{}, d, 1) },
		"damping": func() ([]float64, error) {
			return Newton{Damping: new(-1.0)}.Minimize(t.Context(), bowl(), MSE{}, d, 1)
		},
		"memory": func() ([]float64, error) { return LBFGS{Memory: -1}.Minimize(t.Context(), bowl(), MSE{}, d, 1) },
		"dropout": func() ([]float64, error) {
			return LBFGS{}.Minimize(t.Context(), build(t, s, Dropout{Rate: 0.5}, Dense{Out: 2}), MSE{}, d, 1)
		},
	} {
		_, err := f()
		assert.ErrorIs(t, err, ErrConfig, name)
	}
	_, err = LBFGS{}.Minimize(t.Context(), bowl(), MSE{}, Data{X: d.X.Div(0), Y: d.Y}, 1)
	assert.ErrorIs(t, err, ErrNumerical)
	_, err = Newton{}.Minimize(t.Context(), bowl(), MSE{}, Data{X: d.X, Y: tensor.Zeros(s, tensor.F64, 40, 3)}, 1)
	assert.ErrorIs(t, err, ErrData)
}
