package gomlx_test

// GoMLX's own training loop trains small networks here and on its Go backend.

import (
	"iter"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/concord-compute/concord/gomlx"
)

const batchSize = 32

// points are random points of several dimensions, whose label is the side of a plane on which they lie.
type points struct{ dims []int }

func (p points) Name() string { return "points" }

// draw returns a batch of points and labels.
func (p points) draw(random *rand.Rand) (x, y []float32) {
	n := 1
	for _, d := range p.dims {
		n *= d
	}
	x, y = make([]float32, batchSize*n), make([]float32, batchSize)
	for i := range y {
		var side float64
		for j := range n {
			v := random.NormFloat64()
			x[i*n+j] = float32(v)
			side += v * math.Sin(float64(j))
		}
		if side > 0 {
			y[i] = 1
		}
	}
	return x, y
}

// batch returns points and labels as GoMLX takes them.
func (p points) batch(x, y []float32) train.Batch {
	return train.Batch{
		Inputs: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(x, append([]int{batchSize}, p.dims...)...)},
		Labels: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(y, batchSize, 1)},
	}
}

// Iter returns the same batches every time.
func (p points) Iter() iter.Seq2[train.Batch, error] {
	return func(yield func(train.Batch, error) bool) {
		random := rand.New(rand.NewPCG(1, 2))
		for yield(p.batch(p.draw(random)), nil) {
		}
	}
}

// weights are random numbers that are the same on every backend.
func weights(scope *model.Scope, g *graph.Graph, name string, dims ...int) *graph.Node {
	random := rand.New(rand.NewPCG(3, uint64(len(name))))
	n := 1
	for _, d := range dims {
		n *= d
	}
	w := make([]float32, n)
	for i := range w {
		w[i] = float32(random.NormFloat64() / math.Sqrt(float64(n)/float64(dims[len(dims)-1])))
	}
	return scope.VariableWithValue(name, tensors.FromFlatDataAndDimensions(w, dims...)).NodeValue(g)
}

// perceptron has one hidden layer.
func perceptron(scope *model.Scope, _ any, inputs []*graph.Node) []*graph.Node {
	x := inputs[0]
	g := x.Graph()
	h := graph.Tanh(graph.MatMul(x, weights(scope, g, "hidden", 16, 32)))
	return []*graph.Node{graph.MatMul(h, weights(scope, g, "output", 32, 1))}
}

// convolutional has a convolution and a pooling.
func convolutional(scope *model.Scope, _ any, inputs []*graph.Node) []*graph.Node {
	x := inputs[0]
	g := x.Graph()
	h := graph.Convolve(x, weights(scope, g, "kernel", 3, 3, 1, 8)).PadSame().Done()
	h = graph.MaxPool(graph.Max(h, graph.ZerosLike(h))).Window(2).Done()
	return []*graph.Node{graph.MatMul(graph.Reshape(h, batchSize, -1), weights(scope, g, "output", 4*4*8, 1))}
}

// losses returns the losses of training steps.
func losses(t *testing.T, b compute.Backend, f train.ModelFn, ds train.Dataset, steps int) []float64 {
	t.Helper()
	trainer := train.NewTrainer(b, model.NewStore(), f, loss.BinaryCrossentropyLogits,
		optimizer.Adam().LearningRate(0.01).Done(), nil, nil)
	loop := train.NewLoop(trainer)
	var list []float64
	loop.OnStep("losses", 0, func(_ *train.Loop, metrics []*tensors.Tensor) error {
		list = append(list, float64(metrics[0].Value().(float32)))
		return nil
	})
	if _, err := loop.RunSteps(ds, steps); err != nil {
		t.Fatalf("%+v", err)
	}
	return list
}

func TestTraining(t *testing.T) {
	peer, err := gobackend.New("")
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Finalize()
	cases := []struct {
		name  string
		f     train.ModelFn
		data  points
		steps int // few where a simulated device takes a second for one
	}{
		{"perceptron", perceptron, points{[]int{16}}, 100},
		{"convolutional", convolutional, points{[]int{8, 8, 1}}, 25},
	}
	want := map[string][]float64{}
	for _, c := range cases {
		want[c.name] = losses(t, peer, c.f, c.data, c.steps)
	}
	onDevices(t, func(t *testing.T, b *gomlx.Backend) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				got := losses(t, b, c.f, c.data, c.steps)
				if first, last := got[0], got[c.steps-1]; !(last < 0.95*first) {
					t.Errorf("the loss went from %g to %g", first, last)
				}
				for i, w := range want[c.name] {
					if d := math.Abs(got[i] - w); !(d <= 1e-3*(1+math.Abs(w))) {
						t.Fatalf("step %d: the loss is %g, and %g of the Go backend", i, got[i], w)
					}
				}
				t.Logf("losses %.4f %.4f %.4f", got[0], got[c.steps/2], got[c.steps-1])
			})
		}
	})
}
