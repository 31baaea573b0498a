package rocm

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tests/sim"
)

func TestNotInThisBuild(t *testing.T) {
	if table() != nil {
		t.Skip("this build has the shim")
	}
	assert.Contains(t, missing, "not in this build: ")
	for _, name := range []string{"rocm", "sim-rocm"} {
		sim.NotInThisBuild(t, name, missing)
	}
}

// On a machine without the libraries, the reason lists the searched files, and there is a remedy.
func TestMissingLibraries(t *testing.T) {
	if table() == nil {
		t.Skip(missing)
	}
	none := &driver.Config{HIPLibrary: "/no/such/libamdhip64.so", SimDir: "/no/such/dir"}
	t.Setenv("ROCM_PATH", "/no/such/toolkit")
	p := sim.Registered(t, "rocm").Probe(context.Background(), none)
	assert.Contains(t, p.Remedy, "install the ROCm runtime")
	assert.Contains(t, p.Remedy, " (ROCM_PATH is set to /no/such/toolkit, which does not exist)")
	for name, remedy := range map[string]string{"rocm": "CONCORD_HIP_LIBRARY", "sim-rocm": "make sim"} {
		b := sim.Registered(t, name)
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

// On a machine without an AMD GPU no library is opened, because HIP's LLVM conflicts with others in
// the same process.
func TestNoGPU(t *testing.T) {
	if _, err := os.Stat(kfd); err == nil || table() == nil {
		t.Skip("needs the shim, and no GPU")
	}
	b := sim.Registered(t, "rocm")
	p := b.Probe(context.Background(), &driver.Config{})
	assert.Equal(t, driver.Unavailable, p.State)
	assert.Contains(t, p.Remedy, "there is no AMD GPU, or its driver is not loaded")
	assert.Regexp(t, "^no AMD GPU: /dev/kfd does not exist; .*CONCORD_HIP_LIBRARY", p.Reason)
	assert.Equal(t, []string{"/dev/kfd does not exist: no library was opened"}, p.Tried)
	_, err := b.Open(context.Background(), 0, &driver.Config{})
	assert.ErrorIs(t, err, driver.ErrNoDevice)
	assert.ErrorContains(t, err, "/dev/kfd")
}

// If the configuration names HIP's library and there is no GPU, the probe has a reason and no
// devices.
func TestNoDevice(t *testing.T) {
	b, cfg := sim.Registered(t, "rocm"), &driver.Config{HIPLibrary: "libamdhip64.so.5"}
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
