package nn

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/tensor"
)

// TestTernary: weights are rounded as package quant does it, and gradients pass as if they were not.
func TestTernary(t *testing.T) {
	s := scopeOn(t, "cpu:0")
	numbers := []float32{-2, -0.5, -0.49, 0, 0.5, 0.49, 1.52, 2, 1, -1, 1, 1}
	scale, err := quant.Scale(quant.AbsMean, numbers)
	require.NoError(t, err)
	want := make([]float32, len(numbers))
	require.NoError(t, quant.Ternary(want, numbers, scale))
	w := tensor.From(s, numbers, 4, 3)
	y := ternary(w)
	got, err := tensor.Read[float32](t.Context(), y)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	g, err := tensor.Read[float32](t.Context(), tensor.Grad(y.Mul(tensor.From(s, []float32{1, 2, 3})).Sum(), w)[0])
	require.NoError(t, err)
	assert.Equal(t, []float32{1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}, g)

	m, err := PackTernary(t.Context(), w)
	require.NoError(t, err)
	back := make([]float32, len(numbers))
	require.NoError(t, quant.Decode(back, m))
	for i := range 4 {
		for j := range 3 {
			assert.Equal(t, want[i*3+j], back[j*4+i])
		}
	}
	for _, bad := range []*tensor.Tensor{nil, tensor.Zeros(s, tensor.F32, 3), tensor.Zeros(s, tensor.I32, 3, 3),
		tensor.Zeros(s, tensor.F32, 0, 3), tensor.Full(s, tensor.F32, math.NaN(), 2, 2)} {
		_, err := PackTernary(t.Context(), bad)
		assert.ErrorIs(t, err, ErrData)
	}
}

// TestPacked: a packed layer computes what the layer does that learned its weights, but for the rounding of x,
// is no part of what a network learns, and says what is wrong.
func TestPacked(t *testing.T) {
	ctx, s := t.Context(), scopeOn(t, "cpu:0")
	in := Spec{Type: tensor.F32, Shape: []int{3}}
	m, err := Build(ctx, s, 1, in, Dense{Out: 4, Act: ReLU, Ternary: true}, Dense{Out: 2, NoBias: true, Ternary: true})
	require.NoError(t, err)
	bias := tensor.From(s, []float32{1, -1, 0.5, 0})
	require.NoError(t, m.SetValues(ctx, map[string]*tensor.Tensor{"0.bias": bias}))
	packed := func(name string) *tensor.Ternary {
		matrix, err := PackTernary(ctx, m.Value(name))
		require.NoError(t, err)
		w, err := tensor.NewTernary(s, matrix)
		require.NoError(t, err)
		return w
	}
	small, err := Build(ctx, s, 1, in, Packed{Weight: packed("0.weight"), Act: ReLU},
		Packed{Weight: packed("1.weight"), NoBias: true})
	require.NoError(t, err)
	assert.Equal(t, 4, small.Count(), "only a bias")
	assert.Contains(t, small.Summary(), "packed ternary [4 3] relu")
	require.NoError(t, small.SetValues(ctx, map[string]*tensor.Tensor{"0.bias": bias}))
	x := tensor.From(s, []float32{1, -2, 3, 0.1, 0, -0.2}, 2, 3)
	var results [2][]float32
	for i, m := range []*Model{m, small} {
		y, err := m.Predict(ctx, x, nil)
		require.NoError(t, err)
		results[i], err = tensor.Read[float32](ctx, y)
		require.NoError(t, err)
	}
	assert.InDeltaSlice(t, results[0], results[1], 0.1)
	for _, bad := range []Packed{{}, {Weight: packed("1.weight")}} {
		_, err := Build(ctx, s, 1, in, bad)
		assert.Error(t, err)
	}
}

// TestTernaryDigits trains the network of the specification with ternary weights, packs them, and recognizes
// the digits of the test by products with packed weights: their accuracy is at least 0.93, with at most a
// fourteenth of the bytes of the weights.
func TestTernaryDigits(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute on a busy machine")
	}
	ctx, s := t.Context(), scopeOn(t, "cpu:0")
	m, err := Build(ctx, s, 1, Spec{Type: tensor.U8, Shape: []int{784}}, Scale{Factor: 1.0 / 255},
		Dense{Out: 512, Act: ReLU, Ternary: true},
		Dense{Out: 256, Act: ReLU, Ternary: true}, Dense{Out: 10, Ternary: true})
	require.NoError(t, err)
	c := Config{Loss: CrossEntropy{}, BatchSize: 128, Epochs: 5, Seed: 1, Log: t.Output(), Split: new(0.0)}
	tr, err := NewTrainer(m, c)
	require.NoError(t, err)
	all := digits(t, s, 10000, 784)
	_, err = tr.Fit(ctx, all.narrow(0, 8000))
	require.NoError(t, err)
	test := all.narrow(8000, 2000)
	right := func(logits *tensor.Tensor) float64 {
		ok, err := tensor.Read[float32](ctx, logits.ArgMax(-1).Eq(test.Y.Cast(tensor.I64)).Cast(tensor.F32).Mean())
		require.NoError(t, err)
		return float64(ok[0])
	}
	logits, err := m.Predict(ctx, test.X, nil)
	require.NoError(t, err)
	before := right(logits)

	layers, biases, bytes, weights := []Layer{Scale{Factor: 1.0 / 255}}, map[string]*tensor.Tensor{}, 0, 0
	for _, name := range []string{"1", "2", "3"} {
		w := m.Value(name + ".weight")
		require.NotNil(t, w, "%v", m.Params())
		matrix, err := PackTernary(ctx, w)
		require.NoError(t, err)
		bytes, weights = bytes+len(matrix.Data), weights+4*w.Len()
		packed, err := tensor.NewTernary(s, matrix)
		require.NoError(t, err)
		layers, biases[name+".bias"] = append(layers, Packed{Weight: packed, Act: ReLU}), m.Value(name+".bias")
	}
	layers[3] = Packed{Weight: layers[3].(Packed).Weight}
	small, err := Build(ctx, s, 1, m.In, layers...)
	require.NoError(t, err)
	require.NoError(t, small.SetValues(ctx, biases))
	logits, err = small.Predict(ctx, test.X, nil)
	require.NoError(t, err)
	after := right(logits)
	t.Logf("accuracy %.4f, with packed weights %.4f; %d bytes of weights instead of %d", before, after, bytes, weights)
	assert.GreaterOrEqual(t, after, 0.93)
	assert.InDelta(t, before, after, 0.01)
	assert.LessOrEqual(t, 14*bytes, weights)
}
