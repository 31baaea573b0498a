// Tensors: a network with one hidden layer learns the exclusive or. The step that trains it is described once, with its
// gradients, and compiled: then it is a few kernels in planned memory.
package main

import (
	"context"
	"fmt"
	"log"

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

	x := tensor.From(s, []float32{0, 0, 0, 1, 1, 0, 1, 1}, 4, 2)
	want := tensor.From(s, []float32{0, 1, 1, 0}, 4, 1)

	// What is learned: two matrices and two rows.
	w1 := tensor.From(s, []float32{0.5, -0.6, 0.7, 0.4, -0.3, 0.8, 0.9, -0.5}, 2, 4)
	b1 := tensor.From(s, []float32{0.1, -0.1, 0.2, -0.2})
	w2 := tensor.From(s, []float32{0.6, -0.7, 0.5, 0.4}, 4, 1)
	b2 := tensor.Zeros(s, tensor.F32, 1)

	network := func(w1, b1, w2, b2 *tensor.Tensor) *tensor.Tensor {
		return x.MatMul(w1).Add(b1).Tanh().MatMul(w2).Add(b2).Sigmoid()
	}
	step := tensor.Compile(s, func(w ...*tensor.Tensor) []*tensor.Tensor {
		loss := network(w[0], w[1], w[2], w[3]).Sub(want).Square().Sum()
		next := []*tensor.Tensor{loss}
		for i, g := range tensor.Grad(loss, w...) {
			next = append(next, w[i].Sub(g.Mul(0.5)))
		}
		return next
	})

	w := []*tensor.Tensor{w1, b1, w2, b2}
	var first, last float64
	for i := range 500 {
		out, err := step.Call(ctx, w...)
		if err != nil {
			return err
		}
		if w = out[1:]; i == 0 {
			if first, err = tensor.Number(ctx, out[0]); err != nil {
				return err
			}
		} else if i == 499 {
			if last, err = tensor.Number(ctx, out[0]); err != nil {
				return err
			}
		}
	}
	says, err := tensor.Read[float32](ctx, network(w[0], w[1], w[2], w[3]).Round().Flatten())
	if err != nil {
		return err
	}
	fmt.Printf("%v: the loss fell: %t; the network says %v\n", dev, last < first/20, says)
	return nil
}
