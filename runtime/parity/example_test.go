package parity_test

import (
	"context"
	"fmt"
	"log"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/parity"
)

// The cases of saxpy in float32 on cpu:0, each judged by cpu:reference.
func ExampleRun() {
	results, err := parity.Run(context.Background(), parity.Options{
		Devices: []string{"cpu:0"},
		Kernels: []string{"saxpy"},
		Keep:    func(c *kernels.Case) bool { return c.DType == "f32" },
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		if r.Verdict == parity.Fail {
			fmt.Println(r.Device, r.Kernel, r.Shape, r.Reason)
		}
	}
	fmt.Println("ran:", len(results) > 0)
	// Output:
	// ran: true
}
