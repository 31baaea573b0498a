package cluster_test

import (
	"fmt"

	"github.com/concord-compute/concord/runtime/cluster"
)

// Ten rows are divided between a device and one that is three times as fast.
func ExampleWeighted() {
	p, err := cluster.Weighted(10, []float64{1, 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, part := range p {
		fmt.Printf("device %d: rows %d to %d\n", i, part.First, part.End()-1)
	}
	fmt.Println("row 4 is on device", p.Of(4))
	// Output:
	// device 0: rows 0 to 2
	// device 1: rows 3 to 9
	// row 4 is on device 1
}
