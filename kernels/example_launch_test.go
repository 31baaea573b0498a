package kernels_test

// Launches of kernels that need several buffers or several launches.

import (
	"context"
	"fmt"
	"math"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// launch queues a kernel of the catalog, with results of the given sizes, on the device's stream.
func launch(dev *runtime.Device, family, kernel string, sizes []int, args ...any) {
	unit := must(kernels.Unit(family, dev.Features()))
	program := must(dev.Program(context.Background(), unit)) // equal programs are compiled once
	defer program.Close()
	k := must(program.Kernel(kernel))
	items, group, err := kernels.Geometry(unit, kernel, sizes...)
	if err == nil {
		err = dev.Stream().Launch(k, runtime.Grid{Items: items, Group: group}, args...)
	}
	if err != nil {
		panic(err)
	}
}

// The two nearest of five points for each of two queries. The points are searched in two parts, as a GPU does with
// more of them, and the lists of both parts are merged.
func Example_nearest() {
	ctx := context.Background()
	dev := must(runtime.Open(ctx, "cpu:0"))
	defer dev.Close()
	const queries, points, dim, k, parts = 2, 5, 2, 2, 2
	q := must(runtime.Upload(ctx, dev, []float32{0, 0, 9, 9}))
	p := must(runtime.Upload(ctx, dev, []float32{5, 5, 1, 0, 8, 9, 0, 3, 9, 7}))
	some, somePlaces := must(runtime.Alloc[float32](dev, queries*parts*k)),
		must(runtime.Alloc[uint32](dev, queries*parts*k))
	best, places := must(runtime.Alloc[float32](dev, queries*k)), must(runtime.Alloc[uint32](dev, queries*k))

	launch(dev, "nearest", "nearest", []int{parts, queries}, q, p, some, somePlaces,
		uint32(queries), uint32(points), uint32(dim), uint32(k), uint32(parts))
	launch(dev, "nearest", "nearest_merge", []int{queries}, some, somePlaces, best, places,
		uint32(queries), uint32(parts), uint32(k))

	distances, at := make([]float32, queries*k), make([]uint32, queries*k)
	if err := runtime.Read(ctx, best, distances); err != nil {
		panic(err)
	}
	if err := runtime.Read(ctx, places, at); err != nil {
		panic(err)
	}
	for i := range queries {
		fmt.Println("points", at[i*k:(i+1)*k], "at squared distances", distances[i*k:(i+1)*k])
	}
	// Output:
	// points [1 3] at squared distances [1 9]
	// points [2 4] at squared distances [1 4]
}

// A row of 3000 keys is longer than one group sorts: sort_blocks sorts blocks of it, and each sort_merge merges
// pairs of sorted runs. The values move with the keys; here they are the keys' places before.
func Example_sortPairs() {
	ctx := context.Background()
	dev := must(runtime.Open(ctx, "cpu:0"))
	defer dev.Close()
	const n = 3000
	keys, places := make([]float32, n), make([]uint32, n)
	for i := range n {
		keys[i], places[i] = float32(i*7%n), uint32(i)
	}
	keys[1000] = float32(math.NaN()) // was 1000, and comes last
	from := [2]*runtime.Buffer{must(runtime.Upload(ctx, dev, keys)), must(runtime.Upload(ctx, dev, places))}
	to := [2]*runtime.Buffer{must(runtime.Alloc[float32](dev, n)), must(runtime.Alloc[uint32](dev, n))}

	launch(dev, "sort_pairs", "sort_blocks", []int{1, n}, from[0], from[1], to[0], to[1], uint32(1), uint32(n))
	for width := kernels.SortBlock; width < n; width *= 2 {
		from, to = to, from
		launch(dev, "sort_pairs", "sort_merge", []int{1, n}, from[0], from[1], to[0], to[1], uint32(1), uint32(n),
			uint32(width))
	}

	if err := runtime.Read(ctx, to[0], keys); err != nil {
		panic(err)
	}
	if err := runtime.Read(ctx, to[1], places); err != nil {
		panic(err)
	}
	fmt.Println(keys[:3], places[:3])
	fmt.Println(keys[998:1002], keys[n-1], places[n-1])
	// Output:
	// [0 1 2] [0 2143 1286]
	// [998 999 1001 1002] NaN 1000
}
