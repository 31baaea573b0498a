package nn

// Settings: zero is one of its own where a field is a pointer, and the default where it is not set.

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/tensor"
)

func TestOptimizersTakeZeros(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	zero, half := new(0.0), new(0.5)
	for _, c := range []struct {
		o    Optimizer
		want []float64 // of w = 1 and g = 2, -4 after two steps of a rate of 0.1
	}{
		{Momentum{Mu: zero}, []float64{0.6, 1.8}}, {Nesterov{Mu: zero}, []float64{0.6, 1.8}},
		{Adagrad{Eps: zero}, []float64{0.9 - 0.1/1.4142135623730951, 1.1 + 0.1/1.4142135623730951}},
		{RMSprop{Rho: zero, Eps: zero}, []float64{0.8, 1.2}},
		{Adam{Beta1: zero, Beta2: zero, Eps: half}, []float64{1 - 0.2*2/2.5, 1 + 0.2*4/4.5}},
		{AdaMax{Beta1: zero, Beta2: zero, Eps: zero}, []float64{0.8, 1.2}},
		{Nadam{Beta1: zero, Beta2: zero, Eps: zero}, []float64{0.8, 1.2}},
		{AMSGrad{Beta1: zero, Beta2: zero, Eps: half}, []float64{1 - 0.2*2/2.5, 1 + 0.2*4/4.5}},
		{Adadelta{Rho: zero, Eps: new(1.0)}, []float64{0.8051, 1.2049}},
	} {
		w, g := tensor.From(s, []float64{1, 1}), tensor.From(s, []float64{2, -4})
		states := make([]*tensor.Tensor, len(c.o.States()))
		for i := range states {
			states[i] = tensor.Zeros(s, tensor.F64, 2)
		}
		for step := range 2 {
			w, states = c.o.Update(w, g, states, tensor.Full(s, tensor.F64, 0.1, 1), tensor.Full(s, tensor.F64, step+1, 1))
		}
		got, err := tensor.Read[float64](t.Context(), w)
		require.NoError(t, err)
		if _, ok := c.o.(Adadelta); ok {
			// s = g², d = √((u+1)/(g²+1))·g and u = d², of the step before.
			for i, g := range []float64{2, -4} {
				d := g / math.Sqrt(g*g+1)
				c.want[i] = 1 - 0.1*d - 0.1*math.Sqrt((d*d+1)/(g*g+1))*g
			}
		}
		assert.InDeltaSlice(t, c.want, got, 1e-12, "%v", c.o)
	}
	for _, o := range []Optimizer{Momentum{Mu: new(1.0)}, Adam{Beta2: new(-0.1)}, RMSprop{Eps: new(-1.0)},
		AdaBound{Final: -1}} {
		assert.ErrorIs(t, checkOptimizer(o), ErrConfig, "%v", o)
	}
}

func TestLayersTakeZeros(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	ones, zeros := tensor.Ones(s, tensor.F64, 3), tensor.Zeros(s, tensor.F64, 3)
	p := NewPass(map[string]*tensor.Tensor{"weight": ones, "bias": zeros, "running_mean": zeros, "running_var": ones,
		"slope": zeros}, nil)
	p.Training = true
	read := func(x *tensor.Tensor) []float64 {
		list, err := tensor.Read[float64](t.Context(), x)
		require.NoError(t, err)
		return list
	}
	x := tensor.From(s, []float64{1, 2, 6, -2, 4, 1, 7, 1, 1}, 3, 3)
	read(BatchNorm{Momentum: new(0.0)}.Apply(p, x))
	assert.Equal(t, []float64{0, 0, 0}, read(p.States()["running_mean"]), "the averages stay")
	assert.Equal(t, []float64{1, 1, 1}, read(p.States()["running_var"]))
	// Differences so small that the default would make them nearly nothing.
	for _, l := range []Layer{LayerNorm{Eps: new(0.0)}, GroupNorm{Eps: new(0.0)}} {
		assert.InDeltaSlice(t, []float64{-0.925820099772551, -0.462910049886276, 1.388730149658827},
			read(l.Apply(p, x.Mul(1e-6)))[:3], 1e-9, "%v", l)
	}
	assert.InDelta(t, 1/math.Sqrt(41./3), read(RMSNorm{Eps: new(0.0)}.Apply(p, x.Mul(1e-6)))[0], 1e-9)
	assert.Equal(t, read(x), read(Scale{}.Apply(p, x)), "a factor of 1")
	first := build(t, s, PReLU{Start: new(0.0)})
	assert.Equal(t, []float64{0, 0, 0}, all(t, first))
}

func TestUnsetIsTheDefault(t *testing.T) {
	full := Config{}.filled()
	assert.Equal(t, 0.2, *full.Split)
	assert.Equal(t, 10, *full.Patience)
	assert.Equal(t, 1e-4, *full.MinDelta)
	require.NoError(t, full.check())
	full.Loss, full.Optimizer = nil, nil
	assert.Equal(t, Config{}.filled(), full.filled())
	none := Config{Split: new(0.0), Patience: new(0), MinDelta: new(0.0)}.filled()
	assert.Zero(t, *none.Split+*none.MinDelta+float64(*none.Patience))
	assert.Equal(t, "adam beta1=0.9 beta2=0.999 eps=1e-08", Adam{}.String())
	assert.Equal(t, "adam beta1=0 beta2=0.999 eps=1e-08", Adam{Beta1: new(0.0)}.String())
	assert.Equal(t, Plateau{Factor: 0.1, Patience: 10}.String(), Plateau{}.String())
	assert.Equal(t, "dense 3", Dense{Out: 3}.String())
	assert.Equal(t, Dense{Out: 3}.String(), Dense{Out: 3, Act: Linear}.String())
	layers, err := LayersFromJSON([]byte(`[{"layer":"layer_norm","eps":0},{"layer":"linear"}]`))
	require.NoError(t, err)
	assert.Equal(t, []Layer{LayerNorm{Eps: new(0.0)}, Linear}, layers)
	_, err = LayersFromJSON([]byte(`[{"layer":"layer_norm","eps":"small"}]`))
	assert.ErrorContains(t, err, `"small" is no number`)
}

// TestCheckpointsNameTheSettings pins what checkpoints say of a training, which Resume compares: files that are there
// stay readable.
func TestCheckpointsNameTheSettings(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	tr, err := NewTrainer(build(t, s, Dense{Out: 1}), Config{})
	require.NoError(t, err)
	assert.Equal(t, []string{"batch size: 32", "accumulate: 1", "loss: mse",
		"optimizer: adam beta1=0.9 beta2=0.999 eps=1e-08",
		"learning rate: 0.001", "schedule: <nil>", "clip norm: 0", "clip value: 0", "l1: 0", "l2: 0", "weight decay: 0",
		"decoupled weight decay: 0", "precision: ", "split: 0.2", "shuffle: true", "seed: 0", "metrics: []"}, tr.same())
	assert.Equal(t, "precision", PrecisionScore{}.String())
}
