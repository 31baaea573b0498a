package driver_test

import (
	"errors"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

// A backend returns an OpError with one of the sentinels, so that programs can test
// for the kind of failure and people read where it happened.
func ExampleOpError() {
	err := error(&driver.OpError{Backend: "npu", Device: "npu:0", Op: "alloc 8.0 GiB", Code: 2,
		Err: driver.ErrOutOfMemory})
	fmt.Println(err)
	fmt.Println(errors.Is(err, driver.ErrOutOfMemory))
	// Output:
	// npu:0: alloc 8.0 GiB: out of device memory (code 2)
	// true
}

func ExampleParseType() {
	t, err := driver.ParseType("bf16")
	fmt.Println(t, t.Size(), t.Kind(), err)
	// Output:
	// bf16 2 ushort <nil>
}
