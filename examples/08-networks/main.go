// Networks: one of two layers learns to tell points inside a ring from those outside, is saved, and is read again.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/tensor"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dev, err := runtime.Open(ctx, "auto")
	if err != nil {
		return err
	}
	defer dev.Close()
	s := tensor.NewScope(dev)
	defer s.Close()

	// 500 points, and for each whether it lies within a distance of 0.7.
	x := tensor.Uniform(s, tensor.F32, 1, -1, 1, 500, 2)
	y := x.Square().Sum(1).Lt(0.49).Cast(tensor.I32)

	layers := []nn.Layer{nn.Dense{Out: 32, Act: nn.ReLU}, nn.Dense{Out: 2}}
	point := nn.Spec{Type: tensor.F32, Shape: []int{2}}
	m, err := nn.Build(ctx, s, 1, point, layers...)
	if err != nil {
		return err
	}
	c := nn.Config{Loss: nn.CrossEntropy{}, LearningRate: 0.01, Epochs: 60}
	t, err := nn.NewTrainer(m, c)
	if err != nil {
		return err
	}
	h, err := t.Fit(ctx, nn.Data{X: x, Y: y})
	if err != nil {
		return err
	}

	dir, err := os.MkdirTemp("", "concord")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "ring.safetensors")
	if err := m.Save(ctx, file); err != nil {
		return err
	}
	again, err := nn.Build(ctx, s, 2, point, layers...)
	if err != nil {
		return err
	}
	if err := again.Load(ctx, file); err != nil {
		return err
	}
	logits, err := again.Predict(ctx, tensor.From(s, []float32{0, 0, 0.2, -0.3, 0.9, 0.9, -0.95, 0}, 4, 2), nil)
	if err != nil {
		return err
	}
	inside, err := tensor.Read[int64](ctx, logits.ArgMax(-1))
	if err != nil {
		return err
	}
	accuracy := h.ValMetrics["accuracy"][h.Epochs()-1]
	fmt.Printf("%v: %d parameters; more than 90 %% are right: %t; the network says %v\n", dev, m.Count(), accuracy > 0.9,
		inside)
	return nil
}
