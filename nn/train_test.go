package nn

// Training: what each setting does, determinism, checkpoints, and failures.

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/tensor"
)

// line is data of F64 that a linear function fits, but for a few wiggles.
func line(s *tensor.Scope, n int) Data {
	xs, ys := make([]float64, 3*n), make([]float64, 2*n)
	for i := range n {
		for j := range 3 {
			xs[3*i+j] = math.Sin(float64(7*i+3*j) * 1.7)
		}
		ys[2*i] = xs[3*i] - 2*xs[3*i+1] + 0.5 + 0.1*math.Cos(float64(i))
		ys[2*i+1] = xs[3*i+2]*xs[3*i] - 0.3
	}
	return Data{X: tensor.From(s, xs, n, 3), Y: tensor.From(s, ys, n, 2)}
}

func build(t testing.TB, s *tensor.Scope, layers ...Layer) *Model {
	m, err := Build(t.Context(), s, 5, Spec{Type: tensor.F64, Shape: []int{3}}, layers...)
	require.NoError(t, err)
	return m
}

func small(t testing.TB, s *tensor.Scope) *Model {
	return build(t, s, Dense{Out: 8, Act: Tanh}, BatchNorm{}, Dropout{Rate: 0.1}, Dense{Out: 2})
}

// plain is a configuration of few epochs without validation.
func plain(epochs, batch int) Config {
	c := Config{Epochs: epochs, BatchSize: batch, Split: new(0.0), Patience: new(0), LearningRate: 0.05}
	return c
}

func fit(t testing.TB, m *Model, c Config, d Data) *History {
	tr, err := NewTrainer(m, c)
	require.NoError(t, err)
	h, err := tr.Fit(t.Context(), d)
	require.NoError(t, err)
	return h
}

// all are the parameters and statistics of a model.
func all(t testing.TB, m *Model) []float64 {
	p, err := tensor.Read[float64](t.Context(), m.values.params)
	require.NoError(t, err)
	if len(m.states) == 0 {
		return p
	}
	s, err := tensor.Read[float64](t.Context(), m.values.states)
	require.NoError(t, err)
	return append(p, s...)
}

func TestTrainingIsDeterministic(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	a, b, other := small(t, s), small(t, s), small(t, s)
	c := plain(4, 7)
	h := fit(t, a, c, line(s, 40))
	assert.Less(t, h.TrainLoss[3], h.TrainLoss[0])
	assert.Equal(t, h.TrainLoss, fit(t, b, c, line(s, 40)).TrainLoss)
	assert.Equal(t, all(t, a), all(t, b))
	c.Seed = 9
	fit(t, other, c, line(s, 40))
	assert.NotEqual(t, all(t, a), all(t, other))
}

// Parts of a batch whose gradients are put together make the step of the whole batch, also where the last one is short.
func TestAccumulationEqualsTheLargeBatch(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	layers := []Layer{Dense{Out: 8, Act: Tanh}, Dense{Out: 2}}
	whole, parts := build(t, s, layers...), build(t, s, layers...)
	c := plain(3, 12)
	c.ClipNorm, c.WeightDecay = 0.5, 0.01
	fit(t, whole, c, line(s, 41))
	c.BatchSize, c.Accumulate = 4, 3
	fit(t, parts, c, line(s, 41))
	a, b := all(t, whole), all(t, parts)
	for i := range a {
		assert.InDelta(t, a[i], b[i], 1e-12)
	}
}

// One step with each setting, against the formulas in Go.
func TestSettingsChangeTheStep(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	d := line(s, 10)
	x, err := tensor.Read[float64](t.Context(), d.X)
	require.NoError(t, err)
	y, err := tensor.Read[float64](t.Context(), d.Y)
	require.NoError(t, err)
	for name, set := range map[string]func(c *Config){
		"none": func(*Config) {}, "l1": func(c *Config) { c.L1 = 0.3 }, "l2": func(c *Config) { c.L2 = 0.2 },
		"norm": func(c *Config) { c.ClipNorm = 0.4 }, "value": func(c *Config) { c.ClipValue = 0.2 },
		"decay":     func(c *Config) { c.WeightDecay = 0.5 },
		"decoupled": func(c *Config) { c.DecoupledWeightDecay = 0.5 }, "norm and decay": func(c *Config) {
			c.ClipNorm, c.WeightDecay = 0.4, 0.5
		},
		"norm with l2": func(c *Config) { c.ClipNorm, c.L2 = 0.4, 0.2 },
	} {
		t.Run(name, func(t *testing.T) {
			m := build(t, s, Dense{Out: 2, NoBias: true})
			w := all(t, m)
			c := plain(1, 10)
			c.Optimizer = SGD{}
			set(&c)
			fit(t, m, c, d)
			g, norm := make([]float64, 6), 0.0
			for i := range 10 {
				for o := range 2 {
					e := -y[2*i+o]
					for j := range 3 {
						e += x[3*i+j] * w[2*j+o]
					}
					for j := range 3 {
						g[2*j+o] += 2 * e * x[3*i+j] / 20
					}
				}
			}
			for i := range g {
				g[i] += c.L1*math.Copysign(1, w[i]) + 2*c.L2*w[i]
				norm += g[i] * g[i]
			}
			got := all(t, m)
			for i := range g {
				if norm = math.Abs(norm); c.ClipNorm > 0 && math.Sqrt(norm) > c.ClipNorm {
					g[i] *= c.ClipNorm / math.Sqrt(norm)
				}
				if c.ClipValue > 0 {
					g[i] = min(max(g[i], -c.ClipValue), c.ClipValue)
				}
				g[i] += c.WeightDecay * w[i]
				assert.InDelta(t, w[i]-c.LearningRate*g[i]-c.LearningRate*c.DecoupledWeightDecay*w[i], got[i], 1e-12)
			}
		})
	}
}

// A training that was interrupted, saved and resumed by another trainer has the bytes of one that was not.
func TestResumeHasTheSameBytes(t *testing.T) {
	for _, accumulate := range []int{1, 2} {
		s := scopeOn(t, "cpu:0")
		d := line(s, 50)
		c := plain(6, 4)
		c.Accumulate, c.Split, c.Patience, c.Schedule = accumulate, new(0.2), new(5), Cyclic{Max: 0.1, StepUp: 5}
		through := small(t, s)
		want := fit(t, through, c, d)

		path := filepath.Join(t.TempDir(), "checkpoint.safetensors")
		m := small(t, s)
		ctx, stop := context.WithCancel(t.Context())
		c.Progress = func(p Progress) {
			if p.Epoch == 2 {
				stop()
			}
		}
		c.Epochs = 6
		first, err := NewTrainer(m, c)
		require.NoError(t, err)
		_, err = first.Fit(ctx, d)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, first.Save(t.Context(), path))
		assert.Equal(t, 2, first.at.Epoch)
		assert.Positive(t, first.at.Batch)

		c.Progress = nil
		again, err := Build(t.Context(), s, 77, m.In, m.net.(Sequence)...)
		require.NoError(t, err)
		second, err := NewTrainer(again, c)
		require.NoError(t, err)
		require.NoError(t, second.Resume(t.Context(), path))
		h, err := second.Fit(t.Context(), d)
		require.NoError(t, err)
		assert.Equal(t, all(t, through), all(t, again))
		assert.Equal(t, want.TrainLoss, h.TrainLoss)
		assert.Equal(t, want.ValLoss, h.ValLoss)
		assert.Equal(t, want.LearningRate, h.LearningRate)
		assert.Equal(t, want.BestEpoch, h.BestEpoch)

		c.LearningRate = 1
		third, err := NewTrainer(small(t, s), c)
		require.NoError(t, err)
		assert.ErrorIs(t, third.Resume(t.Context(), path), ErrConfig)
		other, err := NewTrainer(build(t, s, Dense{Out: 2}), c)
		require.NoError(t, err)
		assert.ErrorIs(t, other.Resume(t.Context(), path), ErrConfig)
		loaded := build(t, s, m.net.(Sequence)...)
		require.NoError(t, loaded.Load(t.Context(), path))
		assert.Equal(t, all(t, m), all(t, loaded))
	}
}

// Early stopping restores parameters and running statistics of the best epoch.
func TestEarlyStoppingRestoresTheBest(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	m := small(t, s)
	c := plain(50, 5)
	c.Split, c.Patience, c.MinDelta, c.LearningRate = new(0.3), new(3), new(0.001), 0.3
	var kept [][]float64
	c.OnEpoch = func(h *History) error {
		kept = append(kept, all(t, m))
		return nil
	}
	h := fit(t, m, c, line(s, 40))
	require.NotEmpty(t, h.Stopped)
	require.Equal(t, h.BestEpoch+3, h.Epochs()-1)
	assert.Equal(t, kept[h.BestEpoch], all(t, m))
	for i, l := range h.ValLoss[h.BestEpoch+1:] {
		assert.GreaterOrEqual(t, l, h.BestValLoss-*c.MinDelta, i)
	}
}

// A step that is not finite changes nothing, nor do those behind it.
func TestNotFinite(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	xs := make([]float64, 60)
	for i := range xs {
		xs[i] = float64(i%7) / 7
	}
	xs[3*12] = math.NaN()
	d := Data{X: tensor.From(s, xs, 20, 3), Y: tensor.Zeros(s, tensor.F64, 20, 2)}
	c := plain(3, 4)
	c.InOrder, c.Optimizer = true, Momentum{}
	before := small(t, s)
	fit(t, before, func() Config { c := c; c.Epochs = 1; return c }(), d.narrow(0, 12))
	m := small(t, s)
	tr, err := NewTrainer(m, c)
	require.NoError(t, err)
	_, err = tr.Fit(t.Context(), d)
	require.ErrorIs(t, err, ErrNumerical)
	assert.ErrorContains(t, err, "step 4, in epoch 1")
	assert.Equal(t, all(t, before), all(t, m))
}

func TestMistakes(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	in := Spec{Type: tensor.F64, Shape: []int{3}}
	for _, l := range []Layer{Dense{}, Dropout{Rate: 1}, Conv{Filters: 2, Size: []int{3}}, Embedding{Count: 3, Width: 2},
		Activation("sine"), Residual{Body: Dense{Out: 2}},
		Residual{}, nil, LSTM{Units: 4}, Attention{Heads: 2}, GroupNorm{Groups: 2}, MaxPool{Size: []int{2}},
		Position{Max: 2}} {
		_, err := Build(t.Context(), s, 1, in, l)
		assert.ErrorIs(t, err, ErrConfig, "%v", l)
	}
	_, err := Build(t.Context(), s, 1, in, Reshape{Shape: []int{2}})
	assert.ErrorIs(t, err, tensor.ErrShape)
	_, err = Build(t.Context(), s, 1, in)
	assert.ErrorIs(t, err, ErrConfig)
	for name, set := range map[string]func(c *Config){
		"Epochs": func(c *Config) { c.Epochs = -1 }, "BatchSize": func(c *Config) { c.BatchSize = -1 },
		"Patience":     func(c *Config) { c.Patience = new(-1) },
		"LearningRate": func(c *Config) { c.LearningRate = math.NaN() }, "adam": func(c *Config) {
			c.Optimizer = Adam{Beta1: new(1.0)}
		},
		"Split": func(c *Config) { c.Split = new(1.0) }, "cosine": func(c *Config) { c.Schedule = Cosine{} },
		"metric":     func(c *Config) { c.Metrics = []Metric{F1Score{}, F1Score{}} },
		"Accumulate": func(c *Config) { c.Accumulate = -1 }, "L1": func(c *Config) { c.L1 = -1 },
	} {
		var c Config
		set(&c)
		_, err := NewTrainer(small(t, s), c)
		assert.ErrorIs(t, err, ErrConfig, name)
		assert.ErrorContains(t, err, name)
	}
	d := line(s, 10)
	labels := Data{X: d.X, Y: tensor.From(s, []int32{0, 1, 1, 0, 2, 0, 1, 0, 0, 1})}
	for name, bad := range map[string]struct {
		d    Data
		loss Loss
		err  error
	}{
		"other examples": {Data{X: d.Y, Y: d.Y}, MSE{}, ErrData}, "no targets": {Data{X: d.X}, MSE{}, ErrData},
		"fewer targets":    {Data{X: d.X, Y: d.Y.Narrow(0, 0, 9)}, MSE{}, ErrData},
		"rows for numbers": {Data{X: d.X, Y: d.Y.Narrow(1, 0, 1)}, MSE{}, ErrData},
		"label 4 is 2":     {labels, CrossEntropy{}, ErrData},
		"weights":          {labels, CrossEntropy{Weights: []float64{1}}, ErrConfig},
		"huber":            {d, Huber{Delta: -1}, ErrConfig},
		"quantile":         {d, Quantile{Q: 1}, ErrConfig},
	} {
		c := plain(1, 4)
		c.Loss = bad.loss
		tr, err := NewTrainer(small(t, s), c)
		require.NoError(t, err)
		_, err = tr.Fit(t.Context(), bad.d)
		assert.ErrorIs(t, err, bad.err, name)
	}
	// Errors say what is wrong and what is allowed.
	for says, f := range map[string]func(c *Config) Data{
		"10 examples and targets of shape [9": func(*Config) Data { return Data{X: d.X, Y: d.Y.Narrow(0, 0, 9)} },
		"of an integer type and of shape [1]": func(c *Config) Data {
			c.Loss = CrossEntropy{}
			return Data{X: d.X, Y: labels.Y.Cast(tensor.F32)}
		},
		"label 7 is 2": func(c *Config) Data { // among those for validation
			c.Loss, c.Split = CrossEntropy{}, new(0.4)
			return Data{X: d.X, Y: tensor.From(s, []int32{0, 1, 1, 0, 1, 0, 1, 2, 0, 1})}
		},
		"it has to be a fraction":    func(c *Config) Data { c.Split = new(2.0); return d },
		`"f16"`:                      func(c *Config) Data { c.MixedPrecision = "f8"; return d },
		"BatchSize is -1; it has to": func(c *Config) Data { c.BatchSize = -1; return d },
	} {
		c := plain(1, 10)
		data := f(&c)
		tr, err := NewTrainer(small(t, s), c)
		if err == nil {
			_, err = tr.Fit(t.Context(), data)
		}
		assert.ErrorContains(t, err, says)
	}
	_, err = Build(t.Context(), s, 1, in, Activation("relue"))
	assert.ErrorContains(t, err, "relu ")
}

func TestSchedules(t *testing.T) {
	for _, x := range []struct {
		s      Schedule
		t      int
		losses []float64
		want   float64
	}{
		{StepDecay{Size: 3, Gamma: 0.5}, 2, nil, 1}, {StepDecay{Size: 3, Gamma: 0.5}, 7, nil, 0.25},
		{Exponential{Gamma: 0.9}, 2, nil, 0.81},
		{Cosine{Period: 4, Min: 0.2}, 2, nil, 0.6}, {Cosine{Period: 4, Min: 0.2}, 4, nil, 1},
		{Polynomial{Total: 10, Power: 2, End: 0.1}, 5, nil, 0.325},
		{Polynomial{Total: 10, Power: 2, End: 0.1}, 50, nil, 0.1}, {Cyclic{Max: 3, StepUp: 4}, 4, nil, 3},
		{Cyclic{Max: 3, StepUp: 4}, 10, nil, 2},
		{OneCycle{Max: 3, Total: 10, Start: 0.4}, 2, nil, 2}, {OneCycle{Max: 3, Total: 10, Start: 0.4}, 7, nil, 2},
		{OneCycle{Max: 3, Total: 10, Start: 0.4, Cosine: true}, 7, nil, 2},
		{OneCycle{Max: 3, Total: 10, Start: 0.4}, 20, nil, 1},
		{Plateau{Factor: 0.5, Patience: 2, Min: 0.3}, 0, []float64{3, 2, 2}, 1},
		{Plateau{Factor: 0.5, Patience: 2, Min: 0.3}, 0, []float64{3, 2, 2, 2}, 0.5},
		{Plateau{Factor: 0.5, Patience: 2, Min: 0.3}, 0, []float64{3, 2, 2, 2, 2, 2, 2, 2}, 0.3},
	} {
		require.NoError(t, x.s.Check())
		assert.InDelta(t, x.want, x.s.Rate(1, x.t, x.losses), 1e-12, "%v at %d", x.s, x.t)
	}
}

func TestMetrics(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	values := func(m Metric, p, y *tensor.Tensor) float64 {
		var sums []float64
		for _, x := range m.Sums(p, y) {
			part, err := tensor.Read[float64](t.Context(), x.Cast(tensor.F64).Flatten())
			require.NoError(t, err)
			sums = append(sums, part...)
		}
		return m.Value(sums)
	}
	p := tensor.From(s, []float64{0.9, 0.2, 0.6, 0.4}, 4, 1)
	y := tensor.From(s, []float64{1, 0, 0, 1}, 4, 1)
	for m, want := range map[Metric]float64{Accuracy{}: 0.5, PrecisionScore{}: 0.5, RecallScore{}: 0.5, F1Score{}: 0.5,
		MeanAbsolute{}: 0.375, RootMeanSquare{}: math.Sqrt(0.77 / 4), R2{}: 1 - 0.77} {
		assert.InDelta(t, want, values(m, p, y), 1e-12, "%v", m)
	}
	logits := tensor.From(s, []float64{2, 1, 0, 1, 1, 0, 0, 1, 3, 0, 5, 1}, 4, 3)
	labels := tensor.From(s, []int32{0, 1, 2, 1})
	assert.InDelta(t, 0.75, values(Accuracy{}, logits, labels), 1e-12, "the first of equals is the larger one")
	assert.InDelta(t, (0.5+1+1)/3, values(PrecisionScore{}, logits, labels), 1e-12)
	assert.InDelta(t, (1+0.5+1)/3, values(RecallScore{}, logits, labels), 1e-12)
	assert.Equal(t, 0.0, values(R2{}, p, tensor.Ones(s, tensor.F64, 4, 1)))
	assert.Equal(t, 1.0, values(R2{}, tensor.Ones(s, tensor.F64, 4, 1), tensor.Ones(s, tensor.F64, 4, 1)))
}

func TestBuild(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	m := small(t, s)
	assert.Equal(t, 3*8+8+8+8+8*2+2, m.Count())
	assert.Contains(t, m.Summary(), "batch norm")
	assert.Contains(t, m.Summary(), "66 parameters of type f64, 16 running statistics")
	w, err := tensor.Read[float64](t.Context(), m.Value("0.weight"))
	require.NoError(t, err)
	for _, x := range w {
		assert.LessOrEqual(t, math.Abs(x), math.Sqrt(6.0/11))
	}
	assert.NotEqual(t, w[0], w[1])
	assert.Equal(t, all(t, m), all(t, small(t, s)), "the same seed")
	require.NoError(t, m.SetValues(t.Context(), map[string]*tensor.Tensor{"3.bias": tensor.From(s, []float64{4, 5})}))
	b, err := tensor.Read[float64](t.Context(), m.Value("3.bias"))
	require.NoError(t, err)
	assert.Equal(t, []float64{4, 5}, b)
	assert.ErrorIs(t, m.SetValues(t.Context(), map[string]*tensor.Tensor{"4.bias": tensor.From(s, []float64{4, 5})}),
		ErrData)
	y, err := m.Predict(t.Context(), tensor.Zeros(s, tensor.F64, 5, 3), nil)
	require.NoError(t, err)
	assert.Equal(t, []int{5, 2}, y.Shape())
}

// Memory of the device does not grow from epoch to epoch.
func TestMemoryStaysTheSame(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	c := plain(12, 6)
	c.Split, c.Patience, c.MinDelta, c.Schedule = new(0.2), new(100), new(0.0), Cyclic{Max: 0.1, StepUp: 5}
	var live []int64
	c.OnEpoch = func(*History) error {
		live = append(live, s.Device().Stats().Live)
		return nil
	}
	fit(t, small(t, s), c, line(s, 45))
	for _, n := range live[3:] {
		assert.Equal(t, live[2], n)
	}
}

// Values may come from any scope, and do not end with it.
func TestValuesOfAnyScope(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	m := build(t, s, Dense{Out: 2})
	deep := s.Scope().Scope().Scope().Scope().Scope()
	require.NoError(t, m.SetValues(t.Context(), map[string]*tensor.Tensor{
		"0.weight": tensor.Ones(deep, tensor.F64, 2, 3).T()}))
	require.NoError(t, deep.Close())
	assert.Equal(t, []float64{1, 1, 1, 1, 1, 1, 0, 0}, all(t, m))
}

// A batch of one example may be the only one, or the first after those that are queued together.
func TestOneExampleIsLeft(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	for _, n := range []int{1, 2, between + 1, 2*between + 1} {
		h := fit(t, small(t, s), plain(2, 1), line(s, n))
		assert.Equal(t, 2, h.Epochs(), "%d examples", n)
	}
	c := plain(1, 4)
	c.Accumulate = 2
	fit(t, small(t, s), c, line(s, 4*between+1))
	m, err := Build(t.Context(), s, 1, Spec{Type: tensor.F64, Shape: []int{1}}, Dense{Out: 1, NoBias: true})
	require.NoError(t, err)
	x := tensor.From(s, []float64{1, 2, 3}, 3, 1)
	_, err = LBFGS{}.Minimize(t.Context(), m, MSE{}, Data{X: x, Y: x.Mul(3)}, 20)
	require.NoError(t, err)
	assert.InDelta(t, 3, all(t, m)[0], 1e-6, "one parameter")
}

// With F16 a step of several batches is that of one large batch, but for rounding, and it is skipped as a whole.
func TestF16Accumulates(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	d := line(s, 40)
	d = Data{X: d.X.Cast(tensor.F32), Y: d.Y.Cast(tensor.F32)}
	train := func(batch, accumulate int, d Data) (*History, *Trainer) {
		m, err := Build(t.Context(), s, 5, Spec{Type: tensor.F32, Shape: []int{3}}, Dense{Out: 8, Act: Tanh}, Dense{Out: 2})
		require.NoError(t, err)
		c := plain(20, batch)
		c.MixedPrecision, c.Accumulate, c.InOrder = F16, accumulate, true
		tr, err := NewTrainer(m, c)
		require.NoError(t, err)
		h, err := tr.Fit(t.Context(), d)
		require.NoError(t, err)
		return h, tr
	}
	large, _ := train(8, 1, d)
	parts, _ := train(4, 2, d)
	assert.InDelta(t, large.TrainLoss[19], parts.TrainLoss[19], 0.02)

	// The second batch of the first step has gradients that are infinite until the scale is small enough.
	loud := Data{X: d.X, Y: tensor.Where(tensor.Iota(s, tensor.I32, 40).Reshape(40, 1).Eq(5), d.Y.Mul(3e4), d.Y)}
	h, tr := train(4, 2, loud)
	made, err := tensor.Number(t.Context(), tr.vars[atCount])
	require.NoError(t, err)
	skipped := 0
	for _, n := range h.Skipped {
		skipped += n
	}
	assert.Positive(t, h.Skipped[0])
	assert.Equal(t, 100, int(made)+skipped)
	scale, err := tensor.Read[float32](t.Context(), tr.vars[atScale])
	require.NoError(t, err)
	assert.Equal(t, math.Exp2(float64(-skipped))*65536, float64(scale[0]), "half after each skipped step")
	sums, err := tr.read(t.Context(), tr.zero)
	require.NoError(t, err)
	assert.Zero(t, sums[sumBad])

	// A step that is skipped changes no statistics, and its loss counts.
	m, err := Build(t.Context(), s, 5, Spec{Type: tensor.F32, Shape: []int{3}}, Dense{Out: 8, Act: Tanh}, BatchNorm{},
		Dense{Out: 2})
	require.NoError(t, err)
	before, err := tensor.Read[float32](t.Context(), tensor.Concat(0, m.values.params, m.values.states))
	require.NoError(t, err)
	c := plain(1, 4)
	c.MixedPrecision, c.Accumulate, c.InOrder, c.Split = F16, 2, true, new(0.0)
	tr, err = NewTrainer(m, c)
	require.NoError(t, err)
	one := Data{X: d.X, Y: d.Y.Mul(1e5)}.narrow(0, 8)
	require.NoError(t, tr.begin(t.Context(), one, one.narrow(0, 0)))
	require.NoError(t, tr.batches(t.Context(), one, tr.order(8), 2))
	after, err := tensor.Read[float32](t.Context(), tensor.Concat(0, tr.vars[atParams], tr.vars[atStates]))
	require.NoError(t, err)
	assert.Equal(t, before, after)
	sums, err = tr.read(t.Context(), tr.vars[atSums])
	require.NoError(t, err)
	assert.Equal(t, []float64{8, 0, 1}, sums[sumExamples:sumsBefore])
	assert.InEpsilon(t, 8*math.Pow(1e5, 2), sums[sumLoss], 2)

	// So an epoch whose steps are all skipped has a loss, and a checkpoint.
	for _, accumulate := range []int{1, 2} {
		c.Accumulate, c.Checkpoint = accumulate, filepath.Join(t.TempDir(), "checkpoint")
		c.BatchSize = 8 / accumulate
		h := fit(t, m, c, one)
		assert.Equal(t, []int{1}, h.Skipped)
		assert.True(t, isFinite(h.TrainLoss))
	}
}

// Products of less precision learn about the same. With F16 a step whose gradient is infinite is skipped, and
// the loss is scaled by less.
func TestPrecision(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	d := line(s, 40)
	d = Data{X: d.X.Cast(tensor.F32), Y: d.Y.Cast(tensor.F32)}
	train := func(p Mode, d Data) (*History, *Trainer) {
		m, err := Build(t.Context(), s, 5, Spec{Type: tensor.F32, Shape: []int{3}}, Dense{Out: 8, Act: Tanh}, Dense{Out: 2})
		require.NoError(t, err)
		c := plain(20, 8)
		c.MixedPrecision = p
		tr, err := NewTrainer(m, c)
		require.NoError(t, err)
		h, err := tr.Fit(t.Context(), d)
		require.NoError(t, err)
		return h, tr
	}
	full, _ := train(Full, d)
	for _, p := range []Mode{F16, BF16} {
		low, tr := train(p, d)
		assert.NotEqual(t, full.TrainLoss, low.TrainLoss, "it is used")
		assert.InDelta(t, full.TrainLoss[19], low.TrainLoss[19], 0.02)
		made, err := tensor.Number(t.Context(), tr.vars[atCount])
		require.NoError(t, err)
		if p == BF16 {
			assert.Equal(t, 100.0, made)
			continue
		}
		scale, err := tensor.Read[float32](t.Context(), tr.vars[atScale])
		require.NoError(t, err)
		assert.Positive(t, scale[0])

		_, tr = train(p, Data{X: d.X, Y: d.Y.Mul(1000)}) // gradients beyond 65504 when scaled
		fewer, err := tensor.Number(t.Context(), tr.vars[atCount])
		require.NoError(t, err)
		smaller, err := tensor.Read[float32](t.Context(), tr.vars[atScale])
		require.NoError(t, err)
		assert.Less(t, fewer, 100.0)
		assert.Greater(t, fewer, 50.0)
		assert.Equal(t, math.Exp2(fewer-100)*65536, float64(smaller[0]), "half after each skipped step")
	}
	c := plain(1, 4)
	c.MixedPrecision = "f8"
	_, err := NewTrainer(small(t, s), c)
	assert.ErrorIs(t, err, ErrConfig)
}
