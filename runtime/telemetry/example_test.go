package telemetry_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/telemetry"
)

// Vendors number devices in more than one order: a sample belongs to the device with
// the same UUID or PCI address.
func ExampleSample_Of() {
	device := driver.Info{ID: "cuda:0", Backend: "cuda", PCI: "0000:3b:00.0"}
	used := int64(5 << 30)
	for _, s := range []telemetry.Sample{
		{Backend: "cuda", Index: 0, PCI: "0000:af:00.0"},
		{Backend: "cuda", Index: 1, PCI: "0000:3b:00.0", MemoryUsed: &used},
	} {
		if s.Of(&device) && s.MemoryUsed != nil { // nil: the vendor does not tell
			fmt.Println(device.ID, "is sensor", s.Index, "with", driver.FormatBytes(*s.MemoryUsed), "in use")
		}
	}
	// Output:
	// cuda:0 is sensor 1 with 5.0 GiB in use
}

// A build without a vendor's sensors lists a reader that says why it has none.
func ExampleMissing() {
	reader := telemetry.Missing("npu", "not in this build: rebuild with -tags npu")
	_, err := reader.Sample(context.Background(), &driver.Config{})
	fmt.Println(reader.Name(), errors.Is(err, driver.ErrNoDevice))
	// Output:
	// npu true
}
