package tune_test

import (
	"fmt"
	"log"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
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

// A product of large matrices, of which each item computes sixteen results.
func ExampleSelectTile() {
	info := runtime.Info{ComputeMajor: 9, MaxGroupSize: 1024, LocalMemory: 48 << 10, SubgroupSize: 32}
	t, err := tune.SelectTile(info, 4096, 4096, 4096, runtime.F32, 16)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(t)
	fmt.Println(t.Grid())
	// Output:
	// 128x128x32, 16 results per item, 1024 groups of 1024 items, 32768 bytes
	// 1048576 in 1024
}

// A kernel that goes through its elements in steps of the grid gets as many items as the device runs at a time.
func ExampleSelectGrid() {
	info := runtime.Info{ComputeUnits: 132, ItemsPerComputeUnit: 2048, MaxGroupSize: 1024, SubgroupSize: 32}
	for _, n := range []int{10_000, 1_000_000_000} {
		g, err := tune.SelectGrid(info, n)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(g)
	}
	// Output:
	// 10240 in 1024
	// 270336 in 1024
}

func ExampleBaseline() {
	b := tune.Baseline{Operation: "vector_add", TargetThroughput: 1e9, Device: "NVIDIA H100",
		Date: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)}
	worse, err := b.CheckRegression("NVIDIA H100", 0.85e9)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(b)
	fmt.Println("worse:", worse)
	// Output:
	// vector_add on NVIDIA H100: 1e+09 per second, 2026-01-31
	// worse: true
}

// A program that is tuned at first use. The process that measures is this program, too: it ends in FirstUse.
func ExampleFirstUse() {
	tune.FirstUse()
	session, err := runtime.New(runtime.Config{Tune: driver.TuneFirst})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	// What the program launches now is tuned beside it, unless it was before.
}
