package cuda

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// registered returns the backend of that name.
func registered(t *testing.T, name string) driver.Backend {
	t.Helper()
	i := slices.IndexFunc(driver.Backends(), func(b driver.Backend) bool { return b.Name() == name })
	require.GreaterOrEqual(t, i, 0, "the package registers %s", name)
	return driver.Backends()[i]
}

func TestNotInThisBuild(t *testing.T) {
	if table() != nil {
		t.Skip("this build has the shim")
	}
	for _, name := range []string{"cuda", "sim-cuda"} {
		b := registered(t, name)
		p := b.Probe(context.Background(), &driver.Config{})
		assert.Equal(t, driver.Disabled, p.State)
		assert.Contains(t, p.Reason, "not in this build: ")
		assert.Equal(t, missing, p.Reason)
		assert.Equal(t, missing, p.Remedy)
		_, err := b.Open(context.Background(), 0, &driver.Config{})
		assert.ErrorIs(t, err, driver.ErrNoDevice)
		assert.ErrorContains(t, err, missing)
	}
}

// A machine without the libraries is told which were looked for, and what to do.
func TestMissingLibraries(t *testing.T) {
	if table() == nil {
		t.Skip(missing)
	}
	none := &driver.Config{CUDALibrary: "/no/such/libcuda.so", NVRTCLibrary: "/no/such/libnvrtc.so", SimDir: "/no/such/dir"}
	t.Setenv("CUDA_HOME", "/no/such/toolkit")
	p := registered(t, "cuda").Probe(context.Background(), none)
	assert.Contains(t, p.Remedy, "install the NVIDIA driver")
	assert.Contains(t, p.Remedy, "CUDA_VISIBLE_DEVICES")
	assert.Contains(t, p.Remedy, " (CUDA_HOME is set to /no/such/toolkit, which does not exist)")
	for name, remedy := range map[string]string{"cuda": "CONCORD_CUDA_LIBRARY", "sim-cuda": "make sim"} {
		b := registered(t, name)
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
