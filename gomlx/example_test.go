package gomlx_test

// The example of the package's page.

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"

	_ "github.com/concord-compute/concord/gomlx"
)

// A program chooses the backend by name. Here it is the CPU, which every machine has; "concord" alone takes the
// best device.
func Example() {
	backend, err := compute.NewWithConfig("concord:cpu:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer backend.Finalize()

	exec := graph.MustNewExec(backend, func(x, y *graph.Node) *graph.Node {
		return graph.ReduceAllSum(graph.Mul(x, y))
	})
	product := exec.MustCall([]float32{1, 2, 3}, []float32{4, 5, 6})[0]
	fmt.Println(product.Value())
	// Output: 32
}
