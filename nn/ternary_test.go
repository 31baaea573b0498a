package nn

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/runtime"
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
	for _, bad := range []*tensor.Tensor{nil, tensor.Zeros(s, tensor.F32, 3), tensor.Zeros(s, tensor.I32, 3, 3), tensor.Zeros(s, tensor.F32, 0, 3), tensor.Full(s, tensor.F32, math.NaN(), 2, 2)} {
		_, err := PackTernary(t.Context(), bad)
		assert.ErrorIs(t, err, ErrData)
	}
}

// TestTernaryDigits trains the network of the specification with ternary weights, packs them, and recognizes the digits of the test by products with
// packed weights: their accuracy is at least 0.93, with at most a fourteenth of the bytes of the weights.
func TestTernaryDigits(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute on a busy machine")
	}
	ctx, s := t.Context(), scopeOn(t, "cpu:0")
	m, err := Build(ctx, s, 1, Spec{Type: tensor.U8, Shape: []int{784}}, Scale{Factor: 1.0 / 255}, Dense{Out: 512, Act: ReLU, Ternary: true},
		Dense{Out: 256, Act: ReLU, Ternary: true}, Dense{Out: 10, Ternary: true})
	require.NoError(t, err)
	c := Defaults()
	c.Loss, c.BatchSize, c.Epochs, c.Seed, c.Log, c.Split = CrossEntropy{}, 128, 5, 1, t.Output(), 0
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

	dev := s.Device()
	x, rows, bytes, weights := test.X.Cast(tensor.F32).Mul(1.0/255), 2000, 0, 0
	var spent time.Duration
	for _, name := range []string{"1", "2", "3"} {
		w := m.Value(name + ".weight")
		require.NotNil(t, w, "%v", m.Params())
		packed, err := PackTernary(ctx, w)
		require.NoError(t, err)
		bytes, weights = bytes+len(packed.Data), weights+4*w.Len()
		p, err := quant.Prepare(ctx, dev, packed)
		require.NoError(t, err)
		numbers, err := tensor.Read[float32](ctx, x)
		require.NoError(t, err)
		in, err := runtime.Upload(ctx, dev, numbers)
		require.NoError(t, err)
		out, err := runtime.Alloc[float32](dev, rows*w.Dim(1))
		require.NoError(t, err)
		start := time.Now()
		require.NoError(t, p.Mul(out, in, rows))
		require.NoError(t, dev.Sync(ctx))
		spent += time.Since(start)
		y := make([]float32, rows*w.Dim(1))
		require.NoError(t, runtime.Read(ctx, out, y))
		x = tensor.From(s, y, rows, w.Dim(1)).Add(m.Value(name + ".bias"))
		if name != "3" {
			x = x.Relu()
		}
		require.NoError(t, p.Close())
		require.NoError(t, in.Close())
		require.NoError(t, out.Close())
	}
	after := right(x)
	t.Logf("accuracy %.4f, with packed weights %.4f; %d bytes of weights instead of %d; products of 2000 images in %v", before, after, bytes, weights, spent)
	assert.GreaterOrEqual(t, after, 0.93)
	assert.InDelta(t, before, after, 0.01)
	assert.LessOrEqual(t, 14*bytes, weights)
}
