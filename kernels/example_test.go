package kernels_test

import (
	"fmt"
	"log"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

// Definitions select the variant of a family. Device.Program of package runtime builds the unit.
func ExampleUnit() {
	unit, err := kernels.Unit("saxpy", nil, source.Define{Name: "T", Value: "f16"})
	if err != nil {
		log.Fatal(err)
	}
	for _, k := range unit.Kernels() {
		for _, p := range k.Params {
			fmt.Println(k.Name, p.Name, p.Decl)
		}
	}
	// Output:
	// saxpy a float
	// saxpy x global const half *
	// saxpy y global half *
	// saxpy n ulong
}
