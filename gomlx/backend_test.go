package gomlx_test

// GoMLX's own tests of backends, on the devices of this machine.

import (
	"os"
	"strings"
	"testing"

	"github.com/gomlx/compute/support/backendtest"

	"github.com/concord-compute/concord/gomlx"
	"github.com/concord-compute/concord/runtime"
)

// onDevices runs a test on the CPU, and on OpenCL's first device and the simulated CUDA if they are there.
func onDevices(t *testing.T, test func(t *testing.T, b *gomlx.Backend)) {
	names := []string{"cpu:0"}
	list, err := runtime.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []string{"opencl:0", "sim-cuda:0"} {
		found := false
		for _, d := range list {
			found = found || d.ID == wanted
		}
		if found {
			names = append(names, wanted)
		} else if backend := strings.TrimSuffix(wanted, ":0"); strings.Contains(os.Getenv("CONCORD_REQUIRE"), backend) {
			t.Errorf("no %s, which is required", wanted)
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			b, err := gomlx.New(name)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Finalize()
			test(t, b)
		})
	}
}

func TestConformance(t *testing.T) {
	onDevices(t, func(t *testing.T, b *gomlx.Backend) { backendtest.RunAll(t, b, nil) })
}
