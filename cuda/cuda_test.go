package cuda

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tests/sim"
)

func TestNotInThisBuild(t *testing.T) {
	if table() != nil {
		t.Skip("this build has the shim")
	}
	assert.Contains(t, missing, "not in this build: ")
	for _, name := range []string{"cuda", "sim-cuda"} {
		sim.NotInThisBuild(t, name, missing)
	}
}

// On a machine without the libraries, the reason lists the searched files, and there is a remedy.
func TestMissingLibraries(t *testing.T) {
	if table() == nil {
		t.Skip(missing)
	}
	none := &driver.Config{CUDALibrary: "/no/such/libcuda.so", NVRTCLibrary: "/no/such/libnvrtc.so",
		SimDir: "/no/such/dir"}
	t.Setenv("CUDA_HOME", "/no/such/toolkit")
	p := sim.Registered(t, "cuda").Probe(context.Background(), none)
	assert.Contains(t, p.Remedy, "install the NVIDIA driver")
	assert.Contains(t, p.Remedy, "CUDA_VISIBLE_DEVICES")
	assert.Contains(t, p.Remedy, " (CUDA_HOME is set to /no/such/toolkit, which does not exist)")
	for name, remedy := range map[string]string{"cuda": "CONCORD_CUDA_LIBRARY", "sim-cuda": "make sim"} {
		b := sim.Registered(t, name)
		p := b.Probe(context.Background(), none)
		assert.Equal(t, driver.Unavailable, p.State)
		assert.Empty(t, p.Devices)
		assert.Contains(t, p.Reason, "/no/such/")
		assert.Contains(t, p.Reason, remedy)
		require.Len(t, p.Tried, 2, "the driver and the compiler")
		_, err := b.Open(context.Background(), 0, none)
		assert.ErrorIs(t, err, driver.ErrNoDevice)
		assert.ErrorContains(t, err, remedy)
	}
}
