package tune_test

import (
	"fmt"
	"log"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/tune"
)

// The x axis of the launch runs over the columns.
func ExampleLaunchParams2D() {
	info := runtime.Info{MaxGroupSize: 1024, LocalMemory: 48 << 10}
	b, rows, cols, err := tune.LaunchParams2D(info, 1024, 1000)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(b, rows, cols, runtime.Items(cols*b, rows*b).InGroups(b, b))
	// Output:
	// 32 32 32 1024x1024 in 32x32
}

func ExampleAccessPattern() {
	fmt.Println(tune.AccessPattern([]int64{0, 64, 128, 192}))
	// Output:
	// strided 64
}
