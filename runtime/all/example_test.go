package all_test

import (
	"fmt"

	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/driver"
)

// Every backend is registered, whether or not this build and this machine have it.
// Session.Discover says which devices there are, and why others are missing.
func Example() {
	for _, b := range driver.Backends() {
		if !driver.IsSimulated(b.Name()) {
			fmt.Println(b.Name())
		}
	}
	// Output:
	// cuda
	// rocm
	// metal
	// opencl
	// vulkan
	// cpu
}
