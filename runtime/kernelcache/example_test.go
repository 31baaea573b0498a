package kernelcache_test

import (
	"bytes"
	"context"
	"fmt"
	"testing/fstest"

	"github.com/concord-compute/concord/runtime/kernelcache"
)

// A cache is filled in one place and shipped with a program to another. A program would have the
// bundle built in: go:embed provides the file system.
func Example_bundle() {
	key := kernelcache.KeyOf(kernelcache.F("backend", "cpu"), kernelcache.F("text", "kernel void k() {}"))
	compile := func(context.Context) (kernelcache.Entry, error) {
		fmt.Println("compiling")
		return kernelcache.Entry{Binary: []byte("code"), Label: "k.cl"}, nil
	}
	ctx := context.Background()

	here := kernelcache.Open(kernelcache.Options{})
	_, hit, _ := here.Get(ctx, key, compile)
	fmt.Println(hit)
	var bundle bytes.Buffer
	moved, err := here.Export(&bundle, nil)
	fmt.Println(moved.Entries, err)

	there := kernelcache.Open(kernelcache.Options{Bundles: fstest.MapFS{"kernels.bundle": {Data: bundle.Bytes()}}})
	e, hit, _ := there.Get(ctx, key, compile)
	fmt.Println(hit, e.Label, e.Imported)
	// Output:
	// compiling
	// compiled
	// 1 <nil>
	// bundle k.cl true
}
