package nn

// Real digits: accuracy of the specification's network, and the rate of its step.

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/mnist"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/tensor"
)

// scopeOn opens a device. The test is skipped if it is not the CPU and not here.
func scopeOn(tb testing.TB, device string) *tensor.Scope {
	dev, err := runtime.Open(tb.Context(), device)
	if device != "cpu:0" && (errors.Is(err, runtime.ErrNoDevice) || errors.Is(err, runtime.ErrUnsupported)) {
		tb.Skip(err)
	}
	require.NoError(tb, err)
	s := tensor.NewScope(dev)
	tb.Cleanup(func() {
		assert.NoError(tb, s.Close())
		assert.NoError(tb, dev.Close())
	})
	return s
}

// digits are the first n images and labels.
func digits(tb testing.TB, s *tensor.Scope, n int, shape ...int) Data {
	images, err := mnist.Images()
	require.NoError(tb, err)
	labels, err := mnist.Labels()
	require.NoError(tb, err)
	return Data{X: tensor.From(s, images.Pixels[:n*784], append([]int{n}, shape...)...), Y: tensor.From(s, labels[:n])}
}

// mlp is the network of the specification, for images of bytes.
func mlp(tb testing.TB, s *tensor.Scope) *Model {
	m, err := Build(tb.Context(), s, 1, Spec{Type: tensor.U8, Shape: []int{784}}, Scale{Factor: 1.0 / 255},
		Dense{Out: 512, Act: ReLU}, Dense{Out: 256, Act: ReLU}, Dense{Out: 10})
	require.NoError(tb, err)
	return m
}

// The accuracy of the specification is reached on every device, the simulated ones too where CONCORD_SIM_DIR
// names them (make test-sim).
func TestDigits(t *testing.T) {
	for device, epochs := range map[string]int{"cpu:0": 5, "opencl:0": 3, "sim-cuda:0": 3, "sim-rocm:0": 3} {
		t.Run(device, func(t *testing.T) {
			if device != "cpu:0" && testing.Short() {
				t.Skip("devices that compile take long")
			}
			s := scopeOn(t, device)
			m := mlp(t, s)
			assert.Equal(t, 535818, m.Count())
			c := Config{Loss: CrossEntropy{}, BatchSize: 128, Epochs: epochs, Seed: 1, Log: t.Output()}
			tr, err := NewTrainer(m, c)
			require.NoError(t, err)
			h, err := tr.Fit(t.Context(), digits(t, s, 10000, 784))
			require.NoError(t, err)
			t.Logf("%s%+v", m.Summary(), h)
			assert.GreaterOrEqual(t, h.ValMetrics["accuracy"][epochs-1], 0.95)
		})
	}
}

// cnn is the convolutional network of the specification.
func cnn(tb testing.TB, s *tensor.Scope) *Model {
	three := []int{3, 3}
	m, err := Build(tb.Context(), s, 1, Spec{Type: tensor.U8, Shape: []int{1, 28, 28}}, Scale{Factor: 1.0 / 255},
		Conv{Filters: 32, Size: three, Act: ReLU},
		Conv{Filters: 64, Size: three, Act: ReLU}, MaxPool{Size: []int{2, 2}}, Flatten{}, Dense{Out: 128, Act: ReLU},
		Dense{Out: 10})
	require.NoError(tb, err)
	require.Equal(tb, 1199882, m.Count())
	return m
}

func BenchmarkMLPStep(b *testing.B) {
	s := scopeOn(b, "cpu:0")
	m := mlp(b, s)
	c := Config{Loss: CrossEntropy{}, BatchSize: 128, Split: new(0.0)}
	benchStep(b, m, c, digits(b, s, 2048, 784))
}

// benchStep measures steps one after the other.
func benchStep(b *testing.B, m *Model, c Config, d Data) {
	tr, err := NewTrainer(m, c)
	require.NoError(b, err)
	require.NoError(b, tr.begin(b.Context(), d, d.narrow(0, 0)))
	order := tr.order(d.X.Dim(0))
	n := d.X.Dim(0) / c.BatchSize
	require.NoError(b, tr.batches(b.Context(), d, order, 2)) // which traces and plans
	b.ResetTimer()
	for i := 0; i < b.N; i += n {
		tr.at.Batch = 0
		require.NoError(b, tr.batches(b.Context(), d, order, min(n, b.N-i)))
		_, err := tr.read(b.Context(), tr.vars[atSums])
		require.NoError(b, err)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N*c.BatchSize)/b.Elapsed().Seconds(), "examples/s")
	if testing.Verbose() {
		p,
			err := tr.step.Plan(b.Context(), append(append(tr.list(), tensor.Zeros(m.scope, m.typ),
			tensor.Zeros(m.scope, tensor.U64, 1)), d.args(tensor.Iota(m.scope, tensor.U32, c.BatchSize))...)...)
		require.NoError(b, err)
		b.Logf("%d tasks\n%v", len(p.Tasks), p)
	}
}

func BenchmarkCNNStep(b *testing.B) {
	s := scopeOn(b, "cpu:0")
	m := cnn(b, s)
	c := Config{Loss: CrossEntropy{}, BatchSize: 128, Split: new(0.0)}
	benchStep(b, m, c, digits(b, s, 512, 1, 28, 28))
}

func BenchmarkLSTMStep(b *testing.B) {
	s := scopeOn(b, "cpu:0")
	m, err := Build(b.Context(), s, 1, Spec{Type: tensor.F32, Shape: []int{64, 64}}, LSTM{Units: 128}, Dense{Out: 10})
	require.NoError(b, err)
	c := Config{Loss: CrossEntropy{}, BatchSize: 8, Split: new(0.0)}
	benchStep(b, m, c, Data{X: tensor.Normal(s, tensor.F32, 1, 0, 1, 64, 64, 64),
		Y: tensor.RandInt(s, tensor.U8, 2, 0, 10, 64)})
}

func BenchmarkTransformerStep(b *testing.B) {
	s := scopeOn(b, "cpu:0")
	m, err := Build(b.Context(), s, 1, Spec{Type: tensor.F32, Shape: []int{256, 256}},
		Transformer{Heads: 4, Hidden: 1024, Act: GELUErf}, Dense{Out: 10})
	require.NoError(b, err)
	c := Config{Loss: CrossEntropy{}, BatchSize: 8, Split: new(0.0)}
	benchStep(b, m, c, Data{X: tensor.Normal(s, tensor.F32, 1, 0, 1, 64, 256, 256),
		Y: tensor.RandInt(s, tensor.U8, 2, 0, 10, 64, 256)})
}
