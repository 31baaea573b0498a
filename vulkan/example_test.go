package vulkan_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/vulkan"
)

// A program that prefers a GPU with a Vulkan driver and also works without one. It prints the same on every
// device.
func Example() {
	ctx := context.Background()
	dev, err := runtime.Open(ctx, "vulkan:0")
	if errors.Is(err, runtime.ErrNoDevice) { // not in the build, no driver, or no device
		dev, err = runtime.Open(ctx, "cpu:0")
	}
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	x, err := runtime.Alloc[float32](dev, 3)
	if err != nil {
		log.Fatal(err)
	}
	defer x.Close()
	if err := dev.Stream().Fill(x, float32(1.5)); err != nil {
		log.Fatal(err)
	}
	var out [3]float32
	if err := runtime.Read(ctx, x, out[:]); err != nil {
		log.Fatal(err)
	}
	fmt.Println(out)
	// Output:
	// [1.5 1.5 1.5]
}
