package rocm

import (
	"context"
	"os"
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
	for _, name := range []string{"rocm", "sim-rocm"} {
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
	none := &driver.Config{HIPLibrary: "/no/such/libamdhip64.so", SimDir: "/no/such/dir"}
	t.Setenv("ROCM_PATH", "/no/such/toolkit")
	p := registered(t, "rocm").Probe(context.Background(), none)
	assert.Contains(t, p.Remedy, "install the ROCm runtime")
	assert.Contains(t, p.Remedy, " (ROCM_PATH is set to /no/such/toolkit, which does not exist)")
	for name, remedy := range map[string]string{"rocm": "CONCORD_HIP_LIBRARY", "sim-rocm": "make sim"} {
		b := registered(t, name)
		p := b.Probe(context.Background(), none)
		assert.Equal(t, driver.Unavailable, p.State)
		assert.Empty(t, p.Devices)
		assert.Contains(t, p.Reason, "/no/such/")
		assert.Contains(t, p.Reason, remedy)
		assert.NotEmpty(t, p.Tried)
		_, err := b.Open(context.Background(), 0, none)
		assert.ErrorIs(t, err, driver.ErrNoDevice)
		assert.ErrorContains(t, err, remedy)
		_, err = b.(driver.CrossCompiler).Targets(context.Background(), none)
		assert.ErrorIs(t, err, driver.ErrUnsupported)
		assert.ErrorContains(t, err, "/no/such/")
	}
}

// Where there is no GPU of AMD's no library is opened: HIP's LLVM shares a process
// with no other one.
func TestNoGPU(t *testing.T) {
	if _, err := os.Stat(kfd); err == nil || table() == nil {
		t.Skip("needs the shim, and no GPU")
	}
	b := registered(t, "rocm")
	p := b.Probe(context.Background(), &driver.Config{})
	assert.Equal(t, driver.Unavailable, p.State)
	assert.Contains(t, p.Remedy, "there is no AMD GPU, or its driver is not loaded")
	assert.Regexp(t, "^no AMD GPU: /dev/kfd is not here; .*CONCORD_HIP_LIBRARY", p.Reason)
	assert.Equal(t, []string{"/dev/kfd is not here: no library was opened"}, p.Tried)
	_, err := b.Open(context.Background(), 0, &driver.Config{})
	assert.ErrorIs(t, err, driver.ErrNoDevice)
	assert.ErrorContains(t, err, "/dev/kfd")
}

// With HIP, asked for by name, and without a GPU there is a reason, and nothing to
// open.
func TestNoDevice(t *testing.T) {
	b, cfg := registered(t, "rocm"), &driver.Config{HIPLibrary: "libamdhip64.so.5"}
	p := b.Probe(context.Background(), cfg)
	if p.DriverVersion == "" || p.State == driver.Available {
		t.Skipf("needs HIP and no GPU: %s", p.Reason)
	}
	assert.Equal(t, driver.Unavailable, p.State)
	assert.Contains(t, p.Reason, "hipErrorInvalidDevice")
	assert.Contains(t, p.Reason, "/dev/kfd")
	assert.Regexp(t, `^\d+\.\d+\.\d+$`, p.DriverVersion)
	assert.NotEmpty(t, p.CompilerVersion)
	_, err := b.Open(context.Background(), 0, cfg)
	assert.ErrorIs(t, err, driver.ErrNoDevice)
}
