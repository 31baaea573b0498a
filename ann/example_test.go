package ann_test

import (
	"context"
	"fmt"
	"log"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
)

// The nearest of three points, and the nearest one with an odd id.
func Example() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	ix, err := ann.NewFlat(dev, 2, ann.Euclidean, ann.FlatOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()
	if err := ix.Add(ctx, []int64{10, 11, 12}, []float32{0, 0, 3, 4, 6, 8}); err != nil {
		log.Fatal(err)
	}
	found, err := ix.Search(ctx, nil, []float32{0, 0}, 2, nil)
	fmt.Println(found, err)
	odd := ann.Predicate(func(id int64) bool { return id%2 == 1 })
	found, err = ix.Search(ctx, found[:0], []float32{0, 0}, 2, odd)
	fmt.Println(found, err)
	// Output:
	// [{10 0} {11 5}] <nil>
	// [{11 5}] <nil>
}
