package nn

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// lineOf makes the network and the data of the tests of Train.
func lineOf(ctx context.Context, s *tensor.Scope) (*Model, Data, error) {
	m, err := Build(ctx, s, 5, Spec{Type: tensor.F64, Shape: []int{3}}, Dense{Out: 8, Act: Tanh}, BatchNorm{},
		Dropout{Rate: 0.1}, Dense{Out: 2})
	return m, line(s, 60), err
}

// saved are the values in a checkpoint.
func saved(t *testing.T, path string) []float64 {
	s := scopeOn(t, "cpu:0")
	m := small(t, s)
	require.NoError(t, m.Load(t.Context(), path))
	return all(t, m)
}

// TestTrainFailover gives up the device of a member in the middle of a training: it goes on from the checkpoint, on
// fewer members or on the CPU, and ends with the values of one that was not disturbed. With the policy "require" it
// ends with the error, and goes on from the file in another call.
func TestTrainFailover(t *testing.T) {
	scopeOn(t, "opencl:0") // or skip
	undisturbed := filepath.Join(t.TempDir(), "undisturbed")
	c := plain(6, 7)
	c.Checkpoint = undisturbed
	s := scopeOn(t, "cpu:0")
	m, d, err := lineOf(t.Context(), s)
	require.NoError(t, err)
	want := fit(t, m, c, d)
	for _, test := range []struct {
		names  []string
		strict bool // the policy is "require"
		every  int  // epochs between checkpoints

		weights []float64
	}{
		{names: []string{"opencl:0"}, every: 2},
		{names: []string{"opencl:0"}, every: 4}, // without one: it begins anew
		{names: []string{"cpu:0", "opencl:0"}, every: 1},
		{names: []string{"cpu:0", "opencl:0"}, every: 1, strict: true},
		{names: []string{"cpu:0", "opencl:0", "cpu:reference"}, every: 1, weights: []float64{1, 2, 3}},
	} {
		var config runtime.Config
		if test.strict {
			config.Fallback = runtime.Require
		}
		session, err := runtime.New(config)
		require.NoError(t, err)
		r, err := cluster.Failover{Session: session}.NewRunner(t.Context(), test.names...)
		require.NoError(t, err)
		var lost atomic.Pointer[runtime.Device]
		c := plain(6, 7)
		c.Checkpoint, c.CheckpointEvery = filepath.Join(t.TempDir(), "training"), test.every
		c.Weights = test.weights
		var told atomic.Int64
		c.OnEpoch = func(h *History) error {
			told.Add(1)
			if dev := lost.Load(); h.Epochs() == 3 && dev != nil {
				_ = dev.Abandon(errors.New("planted"))
			}
			return nil
		}
		build := func(ctx context.Context, s *tensor.Scope) (*Model, Data, error) {
			if s.Device().String() == "opencl:0" {
				lost.CompareAndSwap(nil, s.Device())
			}
			return lineOf(ctx, s)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // it compiles
		got, err := Train(ctx, r, cluster.Options{}, c, build)
		if test.strict {
			require.ErrorIs(t, err, runtime.ErrDeviceLost)
			assert.ErrorContains(t, err, "planted")
			assert.Zero(t, r.Stats().Fallbacks)
			require.NoError(t, r.Resume("opencl:0"))
			got, err = Train(ctx, r, cluster.Options{}, c, build)
			require.NoError(t, err)
		} else {
			require.NoError(t, err)
			assert.Equal(t, cluster.RunnerStats{Units: 1, Fallbacks: 1}, r.Stats())
			assert.EqualValues(t, 1, session.Fallbacks())
			if len(test.names) == 1 { // three epochs, and those behind the last checkpoint
				assert.EqualValues(t, 3+6-3/test.every*test.every, told.Load())
			}
		}
		cancel()
		values := saved(t, undisturbed)
		for i, x := range saved(t, c.Checkpoint) {
			require.InDelta(t, values[i], x, 1e-9, "%v, value %d", test, i)
		}
		require.Len(t, got.TrainLoss, len(want.TrainLoss))
		for i, x := range got.TrainLoss {
			require.InDelta(t, want.TrainLoss[i], x, 1e-9)
		}
		again, err := Train(t.Context(), r, cluster.Options{}, c, build) // which is over
		require.NoError(t, err)
		assert.True(t, slices.Equal(got.TrainLoss, again.TrainLoss))
		require.NoError(t, r.Close())
		require.NoError(t, session.Close())
	}
}

// TestTrainWeights has devices of a Runner that are not all there: each keeps its own weight.
func TestTrainWeights(t *testing.T) {
	g, named := virtual(t, 2), []string{"opencl:7", "cpu:0", "opencl:8"}
	assert.Equal(t, []float64{3, 3}, weighted(g, named, []float64{1, 3, 2}))
	assert.Nil(t, weighted(g, named, []float64{1, 0, 2}), "all are 0")
	assert.Nil(t, weighted(g, named, nil))
	assert.Nil(t, weighted(g, named[:1], []float64{1}), "a device that was not named")
}

// TestTrainRefuses has what no device is to blame for: it is returned at once.
func TestTrainRefuses(t *testing.T) {
	r, err := cluster.NewRunner(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer func() { assert.NoError(t, r.Close()) }()
	_, err = Train(t.Context(), r, cluster.Options{}, plain(1, 7), lineOf)
	assert.ErrorIs(t, err, ErrConfig)
	c := plain(1, 7)
	c.Checkpoint = filepath.Join(t.TempDir(), "training")
	_, err = Train(t.Context(), r, cluster.Options{}, c, nil)
	assert.ErrorIs(t, err, ErrConfig)
	c.Weights = []float64{1, 2}
	_, err = Train(t.Context(), r, cluster.Options{}, c, lineOf)
	assert.ErrorIs(t, err, ErrConfig)
	c.Weights, c.LearningRate = nil, math.Inf(1)
	_, err = Train(t.Context(), r, cluster.Options{}, c, lineOf)
	assert.ErrorIs(t, err, ErrConfig)
	assert.Equal(t, cluster.RunnerStats{}, r.Stats())
}
