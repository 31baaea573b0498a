// Command 12-groups has two members of a group compute together, train a network of which each has a part, and
// predict by one of which each has some layers; and it moves work away from a device that is lost. The members are
// shares of one device; with cluster.Open(ctx, "cuda:*") they are several.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all" // every device
	"github.com/concord-compute/concord/runtime/cluster"
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
	if err := together(ctx, dev); err != nil {
		return err
	}
	if err := large(ctx, dev); err != nil {
		return err
	}
	return somewhere(ctx, dev.String())
}

// together computes the mean of what two members have.
func together(ctx context.Context, dev *runtime.Device) error {
	part := [][]float32{{1, 10}, {3, 30}}
	g, err := cluster.Virtual(dev, 2) // of several devices: cluster.Open(ctx, "cuda:0", "opencl:0")
	if err != nil {
		return err
	}
	defer g.Close()
	means := make([][]float32, g.Size())
	err = g.Do(ctx, func(ctx context.Context, m *cluster.Member) error {
		s := tensor.NewMemberScope(m)
		defer s.Close()
		x := tensor.From(s, part[m.Rank()])        // each member has its own data
		mean := x.Square().AllReduce(cluster.Mean) // the same bits at all members, in every run
		got, err := numbers(ctx, mean)
		means[m.Rank()] = got
		return err
	})
	if err != nil {
		return err
	}
	fmt.Printf("%v: the members have %v\n", dev, means)
	return nil
}

func numbers(ctx context.Context, t *tensor.Tensor) ([]float32, error) {
	return tensor.Read[float32](ctx, t)
}

// large trains a network of which each member has half, and gives its file to one of which each has a layer.
func large(ctx context.Context, dev *runtime.Device) error {
	dir, err := os.MkdirTemp("", "groups")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "network")
	g, err := cluster.Virtual(dev, 2)
	if err != nil {
		return err
	}
	defer g.Close()
	halves, layers := make([]int, g.Size()), make([]int, g.Size())
	in := nn.Spec{Type: tensor.F32, Shape: []int{8}}
	err = g.Do(ctx, func(ctx context.Context, m *cluster.Member) error {
		s := tensor.NewMemberScope(m)
		defer s.Close()
		model, err := nn.Build(ctx, s, 1, in, // 64 columns, and as many rows: 32 of each for every member
			nn.Dense{Out: 64, Act: nn.ReLU, Divided: nn.Columns}, nn.Dense{Out: 1, Divided: nn.Rows})
		if err != nil {
			return err
		}
		t, err := nn.NewTrainer(model, nn.Config{Epochs: 5})
		if err != nil {
			return err
		}
		x := tensor.Normal(s, tensor.F32, 1, 0, 1, 128, 8)
		if _, err := t.Fit(ctx, nn.Data{X: x, Y: x.Sum(1).Reshape(128, 1)}); err != nil {
			return err
		}
		if err := model.Save(ctx, path); err != nil { // the whole network, by rank 0
			return err
		}
		halves[m.Rank()] = model.Count()
		if err := m.Barrier(ctx, nil); err != nil { // the file is there
			return err
		}
		const parts = 4 // of the examples: one member computes a part while the other one computes the next
		staged, err := nn.BuildStages(ctx, s, 1, parts, in, nn.Dense{Out: 64, Act: nn.ReLU}, nn.Dense{Out: 1})
		if err != nil {
			return err
		}
		if err := staged.Load(ctx, path); err != nil {
			return err
		}
		layers[m.Rank()] = staged.Count()
		y, err := staged.Predict(ctx, x, nil)
		if err != nil {
			return err
		}
		_, err = numbers(ctx, y)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Printf("%v: of 641 parameters the members have %v of each layer, or %v of whole ones\n", dev, halves, layers)
	return nil
}

// somewhere does a unit of work on a device, or on the CPU if the device is lost.
func somewhere(ctx context.Context, name string) error {
	r, err := cluster.NewRunner(ctx, name) // the CPU is the last one
	if err != nil {
		return err
	}
	defer r.Close()
	var sum float64
	err = r.Run(ctx, "sum", func(ctx context.Context, dev *runtime.Device) error {
		s := tensor.NewScope(dev)
		defer s.Close()
		var err error
		sum, err = tensor.Number(ctx, tensor.From(s, []float32{1, 2, 3}).Sum())
		return err
	})
	if err != nil {
		return err
	}
	fmt.Printf("%v: the sum is %v, after %d fallbacks\n", name, sum, r.Stats().Fallbacks)
	return nil
}
