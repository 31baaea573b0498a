package ann_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/cluster"
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

// An index in two shards, which are saved, and opened again by a group of three members.
func ExampleNewSharded() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	g, err := cluster.Virtual(dev, 2) // or cluster.Open(ctx, "cuda:*")
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	ix, err := ann.NewSharded(ctx, g, "hnsw", 2, "euclidean", ann.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()
	if err := ix.Add(ctx, []int64{10, 11, 12, 13}, []float32{0, 0, 3, 4, 6, 8, 9, 12}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(ix.Search(ctx, nil, []float32{0, 0}, 3, nil))
	dir, err := os.MkdirTemp("", "shards")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := ann.Save(ctx, dir, ix); err != nil {
		log.Fatal(err)
	}
	three, err := cluster.Virtual(dev, 3)
	if err != nil {
		log.Fatal(err)
	}
	defer three.Close()
	again, err := ann.OpenSharded(ctx, three, dir)
	if err != nil {
		log.Fatal(err)
	}
	defer again.Close()
	fmt.Println(again.Search(ctx, nil, []float32{9, 12}, 1, nil))
	fmt.Println(again.Info())
	// Output:
	// [{10 0} {11 5} {12 10}] <nil>
	// [{13 0}] <nil>
	// hnsw of 4 vectors of 2 components, euclidean, fp32 on cpu:0,cpu:0, m 16, ef-construction 200, in 2 shards
}
