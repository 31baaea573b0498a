package roof_test

import (
	"context"
	"fmt"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/profile"
	"github.com/concord-compute/concord/runtime/roof"
)

func Example() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "cpu:reference") // which knows kernels of the catalog alone
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	r, err := roof.Of(ctx, dev)
	if err != nil {
		fmt.Println(err)
		return
	}
	least, bound := r.Limit(0, 1e6) // of a kernel that moves a megabyte
	fmt.Println(least > 0, bound == profile.MemoryBound, r.GFLOPS)
	// Output:
	// true true 0
}
