// Command 12-groups has two members of a group compute together, and moves work away from a device that is lost. The
// members are shares of one device; with cluster.Open(ctx, "cuda:*") they are several.
package main

import (
	"context"
	"fmt"
	"log"

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
