package rates

// Searches of the nearest vectors, and steps of trainings.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"sync"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// found is how many vectors a query asks for.
const found = 10

func nearest(s sizes) (list []job) {
	for _, precision := range s.precisions {
		for _, queries := range s.queries {
			n, q, dim := float64(s.vectors), float64(queries), float64(s.dim)
			width, call := map[ann.Precision]float64{ann.FP32: 4, ann.FP16: 2, ann.INT8Scaled: 1}[precision], "nearest"
			roof := fullRoof
			switch {
			case precision == ann.INT8Scaled:
				call = "" // PyTorch has no such product on all devices
				fallthrough
			case precision == ann.FP16:
				if roof = memoryRoof; queries > 16 { // matrix units may multiply
					roof = noRoof
				}
			}
			list = append(list, job{area: "nearest", unit: perSecond,
				name:  fmt.Sprintf("nearest %s %dx%d by %d", precision, s.vectors, s.dim, queries),
				flops: 2 * n * q * dim, bytes: n * dim * width, count: q, roof: roof,
				call: call, args: map[string]any{"vectors": s.vectors, "dim": s.dim, "queries": queries, "k": found,
					"half": precision == ann.FP16},
				setUp: func(ctx context.Context, p *place) (*work, error) {
					return p.search(ctx, s.vectors, s.dim, queries, precision)
				}})
		}
	}
	return list
}

func (p *place) search(ctx context.Context, n, dim, queries int, precision ann.Precision) (*work, error) {
	ix, err := ann.NewFlat(p.dev, dim, ann.L2Squared, ann.FlatOptions{Precision: precision})
	if err != nil {
		return nil, err
	}
	p.keep(ix)
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(i)
	}
	if err := ix.Add(ctx, ids, many(n*dim)); err != nil {
		return nil, err
	}
	q := many(queries * dim)
	if queries == 1 {
		var results []ann.Result
		return &work{run: func(ctx context.Context) (err error) {
			results, err = ix.Search(ctx, results[:0], q, found, nil)
			return err
		}}, nil
	}
	return &work{run: func(ctx context.Context) error {
		_, err := ix.SearchBatch(ctx, q, found, nil)
		return err
	}}, nil
}

// many returns n random numbers from ½ to 1½, made by all processors.
func many(n int) []float32 {
	x := make([]float32, n)
	part := n/goruntime.GOMAXPROCS(0) + 1
	var all sync.WaitGroup
	for at := 0; at < n; at += part {
		all.Go(func() { copy(x[at:], numbers(min(part, n-at))) })
	}
	all.Wait()
	return x
}

func networks(s sizes) (list []job) {
	const side = 28
	window := []int{3, 3}
	dense := func(out int, act nn.Activation) nn.Layer { return nn.Dense{Out: out, Act: act} }
	if t := s.mlp; t.batch > 0 {
		list = append(list, network("MLP 784-512-256-10", "mlp", t,
			[2]float64{784 * 512, 512*256 + 256*10}, []int{side * side},
			dense(512, nn.ReLU), dense(256, nn.ReLU), dense(10, nn.Linear)))
	}
	if t := s.cnn; t.batch > 0 {
		list = append(list, network("CNN 32-64-pool-128-10", "cnn", t,
			[2]float64{26 * 26 * 32 * 9, 24*24*64*32*9 + 9216*128 + 1280}, []int{1, side, side},
			nn.Conv{Filters: 32, Size: window, Act: nn.ReLU}, nn.Conv{Filters: 64, Size: window, Act: nn.ReLU},
			nn.MaxPool{Size: []int{2, 2}}, nn.Flatten{},
			dense(128, nn.ReLU), dense(10, nn.Linear)))
	}
	return list
}

// network is the job of training one. The products of its first layer, and those of the others, multiply so many pairs
// for an example: twice as many backward, but for the first layer, whose input needs no gradient.
func network(name, call string, t training, pairs [2]float64, in []int, layers ...nn.Layer) job {
	return job{area: "training", name: fmt.Sprintf("%s batch %d", name, t.batch), unit: perSecond,
		flops: float64(t.batch*t.steps) * (4*pairs[0] + 6*pairs[1]), count: float64(t.steps),
		call: call, args: map[string]any{"batch": t.batch, "steps": t.steps},
		setUp: func(ctx context.Context, p *place) (*work, error) { return p.training(ctx, t, in, layers) }}
}

// errEpoch ends a training after each epoch.
var errEpoch = errors.New("an epoch is over")

// training is work of one epoch, whose steps gather their examples in random order, with the cross entropy and Adam.
func (p *place) training(ctx context.Context, t training, in []int, layers []nn.Layer) (*work, error) {
	n := t.batch * t.steps
	shape := append([]int{n}, in...)
	x, err := p.buffer(ctx, runtime.F32, product(shape))
	if err != nil {
		return nil, err
	}
	labels := make([]int64, n)
	for i := range labels {
		labels[i] = rand.Int64N(10)
	}
	m, err := nn.Build(ctx, p.scope, 1, nn.Spec{Type: tensor.F32, Shape: in}, layers...)
	if err != nil {
		return nil, err
	}
	c := nn.Config{Loss: nn.CrossEntropy{}, BatchSize: t.batch, Epochs: 1 << 40, Split: new(0.0), Patience: new(0),
		Metrics: []nn.Metric{}}
	c.OnEpoch = func(*nn.History) error { return errEpoch }
	trainer, err := nn.NewTrainer(m, c)
	if err != nil {
		return nil, err
	}
	data := nn.Data{X: tensor.Wrap(p.scope, x, tensor.F32, shape...), Y: tensor.From(p.scope, labels)}
	return &work{run: func(ctx context.Context) error {
		if _, err := trainer.Fit(ctx, data); !errors.Is(err, errEpoch) {
			return err
		}
		return nil
	}}, nil
}
