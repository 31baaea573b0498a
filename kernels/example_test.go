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

// A result is compared with a more exact one, and may differ from each element by its bound.
func ExampleJudge() {
	exact := kernels.Encode("f32", []float64{1, 2, 3})
	result := kernels.Encode("f32", []float64{1, 2.25, 3.5})
	fmt.Println(kernels.Judge("f32", exact, result, []float64{0.5, 0.5, 0.5}).OK)
	fmt.Println(kernels.Judge("f32", exact, result, []float64{0, 0.5, 0.25}))
	// Output:
	// true
	// element 2: got 3.5, want 3 ± 0.25
}
