package tensor_test

import (
	"context"
	"fmt"
	"log"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// Two members, here of one device, have rows of their own, and compute a gradient of the loss of all rows.
func ExampleNewMemberScope() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	g, err := cluster.Virtual(dev, 2)
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	gradients := make([][]float32, g.Size())
	err = g.Do(ctx, func(ctx context.Context, m *cluster.Member) error {
		s := tensor.NewMemberScope(m)
		defer s.Close()
		rows := [][]float32{{1, 2, 3, 4}, {5, 6, 7, 8}}
		x := tensor.From(s, rows[s.Rank()], 2, 2)
		w := tensor.From(s, []float32{0.5, -1}, 2, 1)
		loss := x.MatMul(w).Square().Mean()
		gradient := tensor.Grad(loss, w)[0].AllReduce(cluster.Mean)
		numbers, err := tensor.Read[float32](ctx, gradient)
		gradients[m.Rank()] = numbers
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(gradients)
	// Output: [[-29 -35] [-29 -35]]
}
