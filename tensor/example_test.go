package tensor_test

import (
	"context"
	"fmt"
	"log"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// A function, its gradient, and one step downhill.
func Example() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	s := tensor.NewScope(dev)
	defer s.Close()

	x := tensor.From(s, []float32{1, 2, 3, 4}, 2, 2)
	w := tensor.From(s, []float32{0.5, -1}, 2, 1)
	loss := x.MatMul(w).Sub(1).Square().Mean()
	g := tensor.Grad(loss, w)[0]
	next := w.Sub(g.Mul(0.1))

	numbers, err := tensor.Read[float32](ctx, next)
	if err != nil {
		log.Fatal(err)
	}
	before, err := tensor.Number(ctx, loss)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(before, numbers)

	// A mistake stays with the tensor, and says where it was made.
	_, err = tensor.Read[float32](ctx, x.MatMul(x.Reshape(4)).Add(1))
	fmt.Println(err)
	// Output:
	// 9.25 [1.8000001 0.9]
	// matmul: tensor: shapes do not fit: [2 2] by [4] (tensor/example_test.go:41)
}
