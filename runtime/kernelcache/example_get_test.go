package kernelcache_test

import (
	"context"
	"fmt"

	"github.com/concord-compute/concord/runtime/kernelcache"
)

// The compiler is called once for a key, however often the program is requested.
func ExampleCache_Get() {
	cache := kernelcache.Open(kernelcache.Options{}) // in memory; Options.Dir adds the disk
	defer cache.Close()
	key := kernelcache.KeyOf(
		kernelcache.F("backend", "npu"),
		kernelcache.F("compiler", "npucc 1.2", "-O2"),
		kernelcache.F("text", "kernel void k() {}"))
	for range 2 {
		entry, hit, err := cache.Get(context.Background(), key, func(context.Context) (kernelcache.Entry, error) {
			return kernelcache.Entry{Binary: []byte("machine code"), Label: "npu:0 k.cl"}, nil
		})
		fmt.Println(hit, entry.Label, err)
	}
	// Output:
	// compiled npu:0 k.cl <nil>
	// memory npu:0 k.cl <nil>
}
