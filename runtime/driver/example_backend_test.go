package driver_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// npu is the beginning of a backend: it looks for its library and says what is missing.
type npu struct{}

func (npu) Name() string { return "npu" }

func (npu) Probe(context.Context, *driver.Config) driver.Probe {
	return driver.Probe{Backend: "npu", State: driver.Unavailable,
		Reason: "libnpu.so.1 was not found", Remedy: "install the vendor's driver"}
}

func (npu) Open(context.Context, int, *driver.Config) (driver.Device, error) {
	return nil, &driver.OpError{Backend: "npu", Op: "open", Err: driver.ErrNoDevice}
}

// A backend's package calls Register in an init function. A session can also be given
// its backends, which tests do.
func ExampleBackend() {
	ctx := context.Background()
	session, err := runtime.New(runtime.Config{Backends: []driver.Backend{npu{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	probes, err := session.Discover(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range probes {
		if p.Backend == "npu" { // Concord's own backends are listed, too
			fmt.Printf("%s: %s; to fix it, %s\n", p.Backend, p.Reason, p.Remedy)
		}
	}
	_, err = session.Open(ctx, "npu:0")
	fmt.Println(errors.Is(err, runtime.ErrNoDevice))
	// Output:
	// npu: libnpu.so.1 was not found; to fix it, install the vendor's driver
	// true
}
