package main

// Training steps of package nn beside PyTorch's. A call is an epoch of some steps, whose examples ours gathers
// in a random order, and reads the loss of at the end; PyTorch makes as many steps with one batch that it has
// at hand.

import (
	"errors"

	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/tensor"
)

// networkRow is a network, the work of the products of a step forward and back, and the call of peers.py that
// builds the same.
type networkRow struct {
	what, call string
	batch      int
	steps      int
	work       float64 // of a step
	in, labels []int   // of an example
	layers     []nn.Layer
}

func networkRows() []networkRow {
	const three, side, steps, width, units = 3, 28, 64, 64, 128
	const places, deep, hidden = 256, 256, 1024
	window := []int{three, three}
	return []networkRow{
		{"MLP 784-512-256-10", "network_mlp", 128, 63, 3 * 2 * 128 * (784*512 + 512*256 + 256*10), []int{side * side}, nil,
			[]nn.Layer{nn.Dense{Out: 512, Act: nn.ReLU}, nn.Dense{Out: 256, Act: nn.ReLU}, nn.Dense{Out: 10}}},
		{"CNN 32, 64, pool, 128, 10", "network_cnn", 128, 8, 3 * 2 * 128 * (26*26*32*9 + 24*24*64*32*9 + 9216*128 + 1280),
			[]int{1, side, side}, nil,
			[]nn.Layer{nn.Conv{Filters: 32, Size: window, Act: nn.ReLU}, nn.Conv{Filters: 64, Size: window, Act: nn.ReLU},
				nn.MaxPool{Size: []int{2, 2}}, nn.Flatten{},
				nn.Dense{Out: 128, Act: nn.ReLU}, nn.Dense{Out: 10}}},
		{"LSTM 128, 8×64 steps", "network_lstm", 8, 32, 3 * 2 * 8 * steps * 4 * units * (width + units), []int{steps, width},
			nil,
			[]nn.Layer{nn.LSTM{Units: units}, nn.Dense{Out: 10}}},
		{"transformer block 4×64, 8×256", "network_transformer", 8, 8,
			3 * 2 * 8 * places * (4*deep*deep + 2*deep*hidden + 2*places*deep), []int{places, deep}, []int{places},
			[]nn.Layer{nn.Transformer{Heads: 4, Hidden: hidden, Act: nn.GELUErf}, nn.Dense{Out: 10}}},
	}
}

func (b *bench) networks() error {
	for _, r := range networkRows() {
		if b.wanted(r.what) {
			if err := b.network(&r); err != nil {
				return err
			}
		}
	}
	return nil
}

var errEpoch = errors.New("an epoch is over")

func (b *bench) network(r *networkRow) error {
	s := tensor.NewScope(b.whole)
	defer s.Close()
	n := r.batch * r.steps
	d := nn.Data{X: tensor.Uniform(s, tensor.F32, 1, 0, 1, append([]int{n}, r.in...)...),
		Y: tensor.RandInt(s, tensor.I64, 2, 0, 10, append([]int{n}, r.labels...)...)}
	if err := tensor.Eval(b.ctx, d.X, d.Y); err != nil {
		return err
	}
	m, err := nn.Build(b.ctx, s, 1, nn.Spec{Type: tensor.F32, Shape: r.in}, r.layers...)
	if err != nil {
		return err
	}
	c := nn.Config{Loss: nn.CrossEntropy{}, BatchSize: r.batch, Epochs: 1 << 40, Split: new(0.0), Patience: new(0),
		Metrics: []nn.Metric{}}
	c.OnEpoch = func(*nn.History) error { return errEpoch }
	t, err := nn.NewTrainer(m, c)
	if err != nil {
		return err
	}
	peer, err := b.peer("torch and BLAS", map[string]any{"batch": r.batch, "steps": r.steps}, r.call, r.call+"_each")
	if err != nil {
		return err
	}
	return b.compare(subject{what: r.what, work: r.work * float64(r.steps), unit: gflops, name: "nn", run: func() error {
		if _, err := t.Fit(b.ctx, d); !errors.Is(err, errEpoch) {
			return err
		}
		return nil
	}}, peer)
}
