package nn

// Failures and extreme settings: what they leave behind, and checkpoints that say nonsense.

import (
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// odd are parts that give the numbers of a test.
type (
	oddRate   struct{ rate float64 }
	oddMetric struct{ value float64 }
	oddLoss   struct{}
)

func (s oddRate) Rate(float64, int, []float64) float64 { return s.rate }
func (s oddRate) PerStep() bool                        { return true }
func (s oddRate) String() string                       { return "odd rate" }
func (s oddRate) Check() error                         { return nil }

func (m oddMetric) Sums(p, t *tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{count(p, 1)} }
func (m oddMetric) Value([]float64) float64                   { return m.value }
func (m oddMetric) String() string                            { return "odd" }

// Of is 0 where p and t are equal, with a gradient that is not finite.
func (oddLoss) Of(p, t *tensor.Tensor) (*tensor.Tensor, error) {
	return p.Sub(t).Square().Sqrt().Mean(), nil
}
func (oddLoss) String() string { return "odd loss" }

func TestExtremeSettings(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	d := line(s, 10)
	want := func() []float64 {
		m := small(t, s)
		fit(t, m, plain(3, 10), d)
		return all(t, m)
	}()
	for _, batch := range []int{11, math.MaxInt - 1, math.MaxInt} {
		m := small(t, s)
		fit(t, m, plain(3, batch), d)
		assert.Equal(t, want, all(t, m), "a batch of %d", batch)
	}
	c := plain(3, 3)
	c.Accumulate = math.MaxInt
	assert.Less(t, fit(t, small(t, s), c, d).TrainLoss[2], 5.0)

	for _, rate := range []float64{math.NaN(), math.Inf(1), -1} {
		c := plain(1, 5)
		c.Schedule = oddRate{rate}
		m := small(t, s)
		before := all(t, m)
		tr, err := NewTrainer(m, c)
		require.NoError(t, err)
		_, err = tr.Fit(t.Context(), d)
		assert.ErrorIs(t, err, ErrConfig, "%v", rate)
		assert.Equal(t, before, all(t, m))
	}
	_, err := Huber{Delta: math.Inf(1)}.Of(d.X, d.X)
	assert.ErrorIs(t, err, ErrConfig)
}

// A part of a step that is not finite leaves running statistics as they were before the first part.
func TestNotFiniteInAPartOfAStep(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	d := line(s, 12)
	place := tensor.Iota(s, tensor.I32, 12).Reshape(12, 1)
	d.X = tensor.Where(place.Eq(9), math.NaN(), d.X).Copy() // in the second part of the second step
	c := plain(1, 3)
	c.InOrder = true
	c.BatchSize, c.Accumulate = 2, 3
	one := small(t, s)
	fit(t, one, c, d.narrow(0, 6))
	m := small(t, s)
	tr, err := NewTrainer(m, c)
	require.NoError(t, err)
	_, err = tr.Fit(t.Context(), d)
	require.ErrorIs(t, err, ErrNumerical)
	assert.Equal(t, all(t, one), all(t, m))
}

// Data for validation is looked at before the first step, and its loss has to be a number.
func TestValidationThatDoesNotFit(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	d := line(s, 10)
	for name, x := range map[string]struct {
		y     *tensor.Tensor
		err   error
		epoch int
	}{"shape": {d.Y.Narrow(1, 0, 1).Copy(), ErrData, 0}, "loss": {d.Y.Div(0), ErrNumerical, 2}} {
		c := plain(2, 5)
		c.Validation = &Data{X: d.X, Y: x.y}
		c.Checkpoint = filepath.Join(t.TempDir(), "checkpoint")
		m := small(t, s)
		tr, err := NewTrainer(m, c)
		require.NoError(t, err)
		h, err := tr.Fit(t.Context(), d)
		assert.ErrorIs(t, err, x.err, name)
		assert.Equal(t, x.epoch, tr.at.Batch, name)
		if h != nil {
			assert.Empty(t, h.ValLoss)
			assert.Empty(t, h.TrainLoss)
		}
	}
}

// Evaluation does not divide data.
func TestEvaluateFewExamples(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	c := plain(1, 5)
	c.Split = new(0.9)
	tr, err := NewTrainer(small(t, s), c)
	require.NoError(t, err)
	loss, _, err := tr.Evaluate(t.Context(), line(s, 5))
	require.NoError(t, err)
	assert.Positive(t, loss)
	_, _, err = tr.Evaluate(t.Context(), line(s, 5).narrow(0, 0))
	assert.ErrorIs(t, err, ErrData)
}

// With F16, steps are skipped as long as a smaller scale may help, and counted.
func TestSkippingEnds(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	d := Data{X: tensor.Ones(s, tensor.F32, 64, 3), Y: tensor.Zeros(s, tensor.F32, 64, 2)}
	m, err := Build(t.Context(), s, 5, Spec{Type: tensor.F32, Shape: []int{3}}, Dense{Out: 2, Init: Zeros})
	require.NoError(t, err)
	c := plain(20, 2)
	c.MixedPrecision, c.Loss = F16, oddLoss{}
	tr, err := NewTrainer(m, c)
	require.NoError(t, err)
	h, err := tr.Fit(t.Context(), d)
	require.ErrorIs(t, err, ErrNumerical)
	assert.Equal(t, []int{32, 32, 32, 32}, h.Skipped, "and more in the fifth epoch, until the reciprocal of the scale "+
		"is infinite")
}

// The scale of a long training without an infinite gradient stays finite.
func TestScaleEndsToGrow(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	ok := tensor.From(s, []bool{true})
	for _, c := range [][2]float32{{65536, 131072}, {1 << 23, 1 << 24}, {1 << 24, 1 << 24}, {math.MaxFloat32, 1 << 24}} {
		next, err := tensor.Read[float32](t.Context(), rescaled(tensor.From(s, []float32{c[0], 1999}), ok))
		require.NoError(t, err)
		assert.Equal(t, []float32{c[1], 0}, next)
	}
}

// A cosine does not depend on how long the rows are.
func TestCosineOfShortAndLongRows(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	for _, size := range []float64{1e-12, 1, 1e12} {
		p := tensor.From(s, []float32{3, 4}, 1, 2).Mul(size)
		y := tensor.From(s, []float32{4, 3}, 1, 2).Mul(size)
		loss, err := CosineSimilarity{}.Of(p, y)
		require.NoError(t, err)
		x, err := tensor.Number(t.Context(), loss)
		require.NoError(t, err)
		assert.InDelta(t, 0.04, x, 1e-6, "%v", size)
		g, err := tensor.Read[float32](t.Context(), tensor.Grad(loss, p)[0].Mul(size))
		require.NoError(t, err)
		assert.InDeltaSlice(t, []float32{-0.0448, 0.0336}, g, 1e-6, "%v", size)
	}
}

// Where L-BFGS ends with an error, the model has the parameters of the last loss; and it looks at labels.
func TestSecondOrderFailures(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	d := line(s, 40)
	m := build(t, s, Dense{Out: 8, Act: Tanh}, Dense{Out: 2})
	ctx := &endingContext{Context: t.Context(), left: 40}
	losses, err := LBFGS{}.Minimize(ctx, m, MSE{}, d, 1000)
	require.ErrorIs(t, err, context.Canceled)
	require.Greater(t, len(losses), 3)
	tr, err := NewTrainer(m, plain(1, 40))
	require.NoError(t, err)
	loss, _, err := tr.Evaluate(t.Context(), d)
	require.NoError(t, err)
	assert.InDelta(t, losses[len(losses)-1], loss, 1e-12)

	labels := tensor.Full(s, tensor.I32, 2, 40)
	_, err = Newton{}.Minimize(t.Context(), build(t, s, Dense{Out: 2}), CrossEntropy{}, Data{X: d.X, Y: labels}, 1)
	assert.ErrorIs(t, err, ErrData)
}

// endingContext ends after Err was asked for some times.
type endingContext struct {
	context.Context
	left int
}

func (c *endingContext) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// A training whose time is over goes on with more of it, also without early stopping.
func TestResumeAfterTheTimeIsOver(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	d, path := line(s, 20), filepath.Join(t.TempDir(), "checkpoint")
	c := plain(3, 10)
	c.MaxTime, c.Checkpoint = 1, path
	assert.Equal(t, 1, fit(t, small(t, s), c, d).Epochs())
	c.MaxTime = time.Hour
	tr, err := NewTrainer(small(t, s), c)
	require.NoError(t, err)
	require.NoError(t, tr.Resume(t.Context(), path))
	h, err := tr.Fit(t.Context(), d)
	require.NoError(t, err)
	assert.Equal(t, 3, h.Epochs())
	assert.Empty(t, h.Stopped)
}

// Early stopping may begin with a checkpoint of a training without it, which has no best values.
func TestResumeWithPatience(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	d, path := line(s, 20), filepath.Join(t.TempDir(), "checkpoint")
	c := plain(2, 10)
	c.Checkpoint = path
	fit(t, small(t, s), c, d)
	c.Epochs, c.Patience, c.MinDelta = 20, new(2), new(100.0)
	m := small(t, s)
	tr, err := NewTrainer(m, c)
	require.NoError(t, err)
	require.NoError(t, tr.Resume(t.Context(), path))
	h, err := tr.Fit(t.Context(), d)
	require.NoError(t, err)
	assert.Equal(t, 2, h.BestEpoch, "the first from there on")
	assert.Equal(t, 5, h.Epochs())
}

// A metric that is no number does not keep a checkpoint from being written.
func TestCheckpointOfAnyMetric(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	d, path := line(s, 20), filepath.Join(t.TempDir(), "checkpoint")
	c := plain(2, 10)
	c.Checkpoint, c.Metrics = path, []Metric{oddMetric{math.Inf(1)}, R2{}}
	want := fit(t, small(t, s), c, d)
	tr, err := NewTrainer(small(t, s), c)
	require.NoError(t, err)
	require.NoError(t, tr.Resume(t.Context(), path))
	assert.Equal(t, want.TrainMetrics["r2"], tr.History().TrainMetrics["r2"])
	assert.True(t, math.IsNaN(tr.History().TrainMetrics["odd"][1]))

	h, err := LoadHistory(path)
	require.NoError(t, err)
	assert.Equal(t, want.TrainLoss, h.TrainLoss)
	assert.Equal(t, want.TrainMetrics["r2"], h.TrainMetrics["r2"])
	assert.True(t, math.IsNaN(h.TrainMetrics["odd"][1]))
	require.NoError(t, tr.model.Save(t.Context(), path))
	_, err = LoadHistory(path)
	assert.ErrorIs(t, err, ErrData, "it is a model alone")
	require.NoError(t, os.WriteFile(path, []byte("no tensors"), 0o600))
	_, err = LoadHistory(path)
	assert.ErrorIs(t, err, runtime.ErrFormat)
	_, err = LoadHistory(path + " that is not there")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// A file that contradicts itself is refused, and the trainer goes on as it was.
func TestCheckpointsOfNonsense(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	d := line(s, 40)
	c := plain(3, 4)
	c.Split, c.Patience, c.Metrics = new(0.2), new(1), []Metric{R2{}}
	path := filepath.Join(t.TempDir(), "checkpoint")
	c.Checkpoint = path
	want := fit(t, small(t, s), c, d)
	c.Checkpoint = ""
	ts, metadata, err := tensor.Load(s, path)
	require.NoError(t, err)
	text := metadata[metadataKey]
	short := tensor.Ones(s, tensor.F64, 3)
	for name, bad := range map[string]struct {
		old, new string
		tensor   string // that is replaced by a short one, or with ! in front left out
	}{
		"no network": {`"Network":["0: dense 8 tanh","1: batch norm","2: dropout 0.1","3: dense 2"]`, `"Network":[]`, ""},
		"batch":      {`"Batch":0`, `"Batch":-3`, ""},
		"steps":      {`"Steps":`, `"Steps":-`, ""}, "epoch": {`"Epoch":3`, `"Epoch":4`, ""},
		"losses":     {`"TrainLoss":[`, `"TrainLoss":[],"Other":[`, ""},
		"best epoch": {`"BestEpoch":`, `"BestEpoch":7`, ""}, "version": {`"Version":1`, `"Version":2`, ""},
		"no best": {"", "", "!best.params"}, "no states": {"", "", "!best.states"},
		"best": {"", "", "best.params"}, "optimizer": {"", "", "optimizer.m"}, "no optimizer": {"", "", "!optimizer.m"},
		"no metric": {`"TrainMetrics":{"r2":`, `"TrainMetrics":{"r3":`, ""}, "no metric of validation": {
			`"ValMetrics":{"r2":`, `"ValMetrics":{"r3":`, ""},
	} {
		require.Contains(t, text, bad.old, name)
		altered := maps.Clone(ts)
		if key, ok := strings.CutPrefix(bad.tensor, "!"); ok {
			delete(altered, TrainingPrefix+key)
		} else if key != "" {
			altered[TrainingPrefix+key] = short
		}
		file := filepath.Join(t.TempDir(), "altered")
		require.NoError(t, tensor.Save(t.Context(), file, altered,
			map[string]string{metadataKey: strings.Replace(text, bad.old, bad.new, 1)}))
		c := c
		c.Epochs = 5
		tr, err := NewTrainer(small(t, s), c)
		require.NoError(t, err)
		live := s.Device().Stats().Live
		if err = tr.Resume(t.Context(), file); err == nil {
			_, err = tr.Fit(t.Context(), d)
		} else {
			assert.Equal(t, live, s.Device().Stats().Live, name)
			assert.Zero(t, tr.at, name)
		}
		if assert.Error(t, err, name) {
			assert.True(t, strings.HasPrefix(err.Error(), "nn: "), "%s: %v", name, err)
		}
	}
	tr, err := NewTrainer(small(t, s), c)
	require.NoError(t, err)
	require.NoError(t, tr.Resume(t.Context(), path))
	assert.Equal(t, want.TrainLoss, tr.History().TrainLoss)
}

// Checkpoints and resuming keep no memory.
func TestCheckpointsKeepNoMemory(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	path := filepath.Join(t.TempDir(), "checkpoint")
	c := plain(2, 4)
	c.Split, c.Patience, c.Checkpoint = new(0.2), new(1), path
	d := line(s, 40)
	tr, err := NewTrainer(small(t, s), c)
	require.NoError(t, err)
	_, err = tr.Fit(t.Context(), d)
	require.NoError(t, err)
	var live []int64
	for range 4 {
		require.NoError(t, tr.Resume(t.Context(), path))
		_, err := tr.Fit(t.Context(), d)
		require.NoError(t, err)
		require.NoError(t, tr.Save(t.Context(), path))
		require.NoError(t, tr.model.Save(t.Context(), path+" of the model"))
		require.NoError(t, tr.model.Load(t.Context(), path))
		live = append(live, s.Device().Stats().Live)
	}
	assert.Equal(t, live[1], live[3])
}

// A training that is interrupted at any place, and goes on in the same trainer or in another one with its
// checkpoint, has the bytes of one that is not.
func TestInterruptionsAnywhere(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	x := tensor.RandInt(s, tensor.I32, 1, 0, 7, 30, 5)
	words := Data{X: x, Y: tensor.RandInt(s, tensor.U8, 2, 0, 3, 30), Lengths: tensor.RandInt(s, tensor.I32, 3, 1, 6, 30)}
	if err := tensor.Eval(t.Context(), words.X, words.Y, words.Lengths); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		d      Data
		in     Spec
		layers []Layer
		set    func(c *Config)
	}{
		"embedding": {words, Spec{Type: tensor.I32, Shape: []int{5}},
			[]Layer{Embedding{Count: 7, Width: 4}, Dropout{Rate: 0.2}, LSTM{Units: 3}, Dense{Out: 3}}, func(c *Config) {
				c.Loss, c.MixedPrecision, c.Schedule = CrossEntropy{}, F16, OneCycle{Max: 0.2, Total: 30, Start: 0.3}
			}},
		"accumulated": {line(s, 30), Spec{Type: tensor.F64, Shape: []int{3}},
			[]Layer{Dense{Out: 8, Act: Tanh}, BatchNorm{}, Dropout{Rate: 0.3}, Dense{Out: 2}}, func(c *Config) {
				c.Accumulate, c.Schedule, c.Optimizer, c.Metrics = 2, Plateau{Factor: 0.5, Patience: 1}, AMSGrad{},
					[]Metric{R2{}, MeanAbsolute{}}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			c := plain(4, 4)
			c.Split, c.Patience, c.MinDelta = new(0.2), new(2), new(0.0)
			x.set(&c)
			made := func(seed uint64) *Trainer {
				m, err := Build(t.Context(), s, seed, x.in, x.layers...)
				require.NoError(t, err)
				tr, err := NewTrainer(m, c)
				require.NoError(t, err)
				return tr
			}
			values := func(tr *Trainer) []float64 {
				m := tr.model
				list, err := tensor.Read[float64](t.Context(), tensor.Concat(0, m.values.params, m.values.states).Cast(tensor.F64))
				require.NoError(t, err)
				return list
			}
			through := made(5)
			want, err := through.Fit(t.Context(), x.d)
			require.NoError(t, err)
			r := rand.New(rand.NewPCG(1, 2))
			path := filepath.Join(t.TempDir(), "checkpoint")
			for range 4 {
				tr, stops := made(5), 0
				for {
					_, err := tr.Fit(&endingContext{t.Context(), r.IntN(60)}, x.d)
					if err == nil {
						break
					}
					require.ErrorIs(t, err, context.Canceled)
					if stops++; tr.vars != nil && r.IntN(2) == 0 {
						require.NoError(t, tr.Save(t.Context(), path))
						tr = made(6)
						require.NoError(t, tr.Resume(t.Context(), path))
					}
				}
				require.Positive(t, stops)
				got := tr.History()
				require.Equal(t, values(through), values(tr))
				require.Equal(t, [][]float64{want.TrainLoss, want.ValLoss, want.LearningRate},
					[][]float64{got.TrainLoss, got.ValLoss, got.LearningRate})
				require.Equal(t, []any{want.TrainMetrics, want.ValMetrics, want.Skipped, want.BestEpoch, want.BestValLoss},
					[]any{got.TrainMetrics, got.ValMetrics, got.Skipped, got.BestEpoch, got.BestValLoss})
			}
		})
	}
}

// noise replaces results by random numbers, of which distinct counts the different ones, one for each example.
type (
	noise    struct{}
	distinct struct{ examples int }
)

func (noise) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	seed, ok := p.Seed()
	if !ok {
		return x
	}
	return x.Mul(0).Add(tensor.Uniform(x.Scope(), x.Type(), seed, 0, 1, 1, 1))
}
func (noise) String() string { return "noise" }

func (m distinct) Sums(p, t *tensor.Tensor) []*tensor.Tensor {
	return []*tensor.Tensor{t.Flatten().OneHot(m.examples, p.Type()).Mul(p).Sum(0)}
}
func (m distinct) Value(sums []float64) float64 {
	seen := map[float64]bool{}
	for _, x := range sums {
		seen[x] = true
	}
	return float64(len(seen))
}
func (m distinct) String() string { return "distinct" }

// All batches of a step have random numbers of their own.
func TestSeedsOfManyBatches(t *testing.T) {
	const n = 300
	s := scopeOn(t, "cpu:0")
	m, err := Build(t.Context(), s, 1, Spec{Type: tensor.F64, Shape: []int{1}}, noise{})
	require.NoError(t, err)
	c := plain(1, 1)
	c.Accumulate, c.Metrics = n, []Metric{distinct{n}}
	h := fit(t, m, c, Data{X: tensor.Zeros(s, tensor.F64, n, 1), Y: tensor.Iota(s, tensor.I32, n).Reshape(n, 1)})
	assert.Equal(t, float64(n), h.TrainMetrics["distinct"][0])
}

// TestLoadOfAnotherNetwork: layers with the same parameters may compute something else.
func TestLoadOfAnotherNetwork(t *testing.T) {
	s, path := scopeOn(t, "cpu:0"), filepath.Join(t.TempDir(), "m.safetensors")
	build := func(act Activation) *Model {
		m, err := Build(t.Context(), s, 1, Spec{Type: tensor.F32, Shape: []int{3}}, Dense{Out: 4, Act: act}, Dense{Out: 2})
		require.NoError(t, err)
		return m
	}
	require.NoError(t, build(ReLU).Save(t.Context(), path))
	require.NoError(t, build(ReLU).Load(t.Context(), path))
	err := build(Tanh).Load(t.Context(), path)
	assert.ErrorIs(t, err, ErrData)
	assert.ErrorContains(t, err, "relu")
	// A file that says nothing of layers, as those of other programs, is taken by its names and shapes.
	ts, _, err := tensor.Load(s, path)
	require.NoError(t, err)
	require.NoError(t, tensor.Save(t.Context(), path, ts, nil))
	require.NoError(t, build(Tanh).Load(t.Context(), path))
}
