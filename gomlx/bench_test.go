package gomlx_test

// Rates beside GoMLX's Go backend, which go test -bench . measures in turn.

import (
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"
)

// onBoth runs a benchmark on the CPU here and on the Go backend.
func onBoth(b *testing.B, f func(b *testing.B, on compute.Backend)) {
	for _, name := range []string{"concord:cpu:0", "go"} {
		b.Run(name, func(b *testing.B) {
			on, err := compute.NewWithConfig(name)
			if err != nil {
				b.Fatal(err)
			}
			defer on.Finalize()
			f(b, on)
		})
	}
}

func BenchmarkOperations(b *testing.B) {
	chain := func(x *graph.Node) *graph.Node {
		for range 4 {
			x = graph.Tanh(graph.AddScalar(x, 0.5))
		}
		return x
	}
	for _, c := range []struct {
		name string
		dims []int
		f    func(x *graph.Node) *graph.Node
	}{
		{"matmul", []int{1024, 1024}, func(x *graph.Node) *graph.Node { return graph.MatMul(x, x) }},
		{"add", []int{1 << 24}, func(x *graph.Node) *graph.Node { return graph.Add(x, x) }},
		{"chain", []int{1 << 20}, chain},
		{"sum", []int{1 << 24}, graph.ReduceAllSum},
	} {
		b.Run(c.name, func(b *testing.B) {
			onBoth(b, func(b *testing.B, on compute.Backend) {
				exec := graph.MustNewExec(on, c.f)
				x := tensors.FromShape(shapes.Make(dtypes.Float32, c.dims...))
				for b.Loop() {
					y := exec.MustCall(x)[0]
					y.MustConstFlatData(func(any) {}) // waits
					y.MustFinalizeAll()
				}
			})
		})
	}
}

// repeated is a data set of one batch, so that making numbers takes no time.
type repeated struct {
	points
	x, y []float32
}

func (r repeated) Iter() iter.Seq2[train.Batch, error] {
	return func(yield func(train.Batch, error) bool) {
		for yield(r.batch(r.x, r.y), nil) {
		}
	}
}

func BenchmarkTraining(b *testing.B) {
	wide := func(scope *model.Scope, _ any, inputs []*graph.Node) []*graph.Node {
		x := inputs[0]
		for _, layer := range []struct {
			name    string
			in, out int
		}{{"first", 784, 512}, {"second", 512, 512}} {
			x = graph.Tanh(graph.MatMul(x, weights(scope, x.Graph(), layer.name, layer.in, layer.out)))
		}
		return []*graph.Node{graph.MatMul(x, weights(scope, x.Graph(), "output", 512, 1))}
	}
	deep := func(scope *model.Scope, _ any, inputs []*graph.Node) []*graph.Node {
		x := inputs[0]
		for _, layer := range []struct {
			name    string
			in, out int
		}{{"first", 1, 16}, {"second", 16, 32}} {
			x = graph.Convolve(x, weights(scope, x.Graph(), layer.name, 3, 3, layer.in, layer.out)).PadSame().Done()
			x = graph.MaxPool(graph.Max(x, graph.ZerosLike(x))).Window(2).Done()
		}
		return []*graph.Node{graph.MatMul(graph.Reshape(x, batchSize, -1), weights(scope, x.Graph(), "output", 7*7*32, 1))}
	}
	for _, c := range []struct {
		name string
		f    train.ModelFn
		data points
	}{
		{"perceptron", wide, points{[]int{784}}},
		{"convolutional", deep, points{[]int{28, 28, 1}}},
	} {
		random := rand.New(rand.NewPCG(1, 2))
		data := repeated{points: c.data}
		data.x, data.y = c.data.draw(random)
		b.Run(c.name, func(b *testing.B) {
			onBoth(b, func(b *testing.B, on compute.Backend) {
				trainer := train.NewTrainer(on, model.NewStore(), c.f, loss.BinaryCrossentropyLogits, optimizer.Adam().Done(), nil,
					nil)
				loop := train.NewLoop(trainer)
				for b.Loop() {
					if _, err := loop.RunSteps(data, 1); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
