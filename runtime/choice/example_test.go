package choice_test

import (
	"fmt"
	"log"

	"github.com/concord-compute/concord/runtime/choice"
)

// The package that multiplies matrices registers how many columns of the left matrix it multiplies at a time.
var depth = choice.New(choice.Choice{
	Name: "example.gemm.depth", Doc: "columns of the left matrix that are multiplied at a time",
	Why:     "512 floats of 16 rows are as much as the first-level cache has",
	Default: 512, Values: []int{128, 256, 512, 1024}, Rounds: true,
})

func ExampleNew() {
	measured, err := choice.NewSet(map[string]int{"example.gemm.depth": 256})
	if err != nil {
		log.Fatal(err)
	}
	var usual *choice.Set
	fmt.Println(depth)
	fmt.Println(usual.Of(depth), measured.Of(depth))

	_, err = choice.NewSet(map[string]int{"example.gemm.depth": 4096})
	fmt.Println(err)
	// Output:
	// example.gemm.depth = 512 (128 to 1024)
	// 512 256
	// example.gemm.depth is 4096, and not 128 to 1024: invalid choice
}
