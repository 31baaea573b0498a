package nn_test

import (
	"context"
	"fmt"
	"log"

	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// Three members, here of one device, learn a line together: each computes a part of every batch of 8 examples. With
// several devices cluster.Open(ctx, "cuda:*") takes the place of Virtual.
func ExampleTrainer_Fit_group() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	g, err := cluster.Virtual(dev, 3)
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	found := make([][]float32, g.Size())
	err = g.Do(ctx, func(ctx context.Context, m *cluster.Member) error {
		s := tensor.NewMemberScope(m)
		defer s.Close()
		model, err := nn.Build(ctx, s, 1, nn.Spec{Type: tensor.F32, Shape: []int{1}}, nn.Dense{Out: 1})
		if err != nil {
			return err
		}
		x := tensor.Iota(s, tensor.F32, 40, 1).Div(40)
		c := nn.Config{BatchSize: 8, Epochs: 200, LearningRate: 0.05, Split: new(0.0), Patience: new(0)}
		t, err := nn.NewTrainer(model, c)
		if err != nil {
			return err
		}
		if _, err := t.Fit(ctx, nn.Data{X: x, Y: x.Mul(2).Add(1)}); err != nil {
			return err
		}
		found[m.Rank()], err = tensor.Read[float32](ctx, model.Value("0.weight").Flatten())
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, w := range found {
		fmt.Printf("%.2f\n", w[0])
	}
	// Output:
	// 2.00
	// 2.00
	// 2.00
}
