//go:build cgo && rocm && linux

package smi

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/telemetry"
)

// build compiles the fake library.
func build(t *testing.T, flags ...string) *driver.Config {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler here")
	}
	path := filepath.Join(t.TempDir(), "librocm_smi64.so.6")
	args := append([]string{"-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", path, "testdata/fake.c"},
		flags...)
	out, err := exec.Command(cc, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return &driver.Config{ROCmSMILibrary: path}
}

const (
	one   = 2000000001
	other = 2000000002
)

// first returns the values of device 0 that all versions of the library report.
func first() telemetry.Sample {
	return telemetry.Sample{
		Backend: "rocm", Name: "Fake Instinct 0", UUID: "GPU-1234abcd00000000", PCI: "0000:c0:03.1",
		Busy: new(90.0), MemoryBusy: new(30.0),
		MemoryUsed: new(int64(1) << 30), MemoryFree: new(int64(63) << 30), MemoryTotal: new(int64(64) << 30),
		Temperature: new(41.5), Power: new(123.5), PowerLimit: new(300.0), Fan: new(20.0),
		Clock: new(1502.0), MaxClock: new(1700.0), MemoryClock: new(1600.0), MaxMemoryClock: new(1600.0),
		ECC: new(true), ECCCorrected: new(int64(50)), ECCUncorrected: new(int64(5)),
	}
}

func TestSample(t *testing.T) {
	cfg := build(t, "-DVERSION=6")
	list, err := newReader().Sample(t.Context(), cfg)
	require.NoError(t, err)
	require.Len(t, list, 3)
	for i := range list {
		assert.Equal(t, i, list[i].Index)
		assert.False(t, list[i].Time.IsZero())
	}
	want := first()
	want.Time = list[0].Time
	want.Throttle = []string{"power cap", "hotspot temperature"}
	want.Processes = []telemetry.Process{{PID: one, MemoryUsed: new(int64(1))}, {PID: other, MemoryUsed: new(int64(2))}}
	assert.Equal(t, want, list[0])

	assert.Equal(t, telemetry.Sample{
		Backend: "rocm", Index: 1, Time: list[1].Time, Name: "Fake Instinct 1", UUID: "GPU-1234abcd00000001",
		PCI:        "0001:c1:03.1",
		Busy:       new(91.0), // that of the memory controller is out of range, so it is unknown
		MemoryUsed: new(int64(2) << 30), MemoryFree: new(int64(62) << 30), MemoryTotal: new(int64(64) << 30),
		Temperature: new(-2.0), Power: new(456.0), PowerLimit: new(300.0),
		Clock: new(1502.0), MaxClock: new(1700.0), MaxMemoryClock: new(1600.0),
		ECC: new(false), Throttle: []string{},
		Processes: []telemetry.Process{{PID: other, MemoryUsed: new(int64(1002))}},
	}, list[1])

	assert.Equal(t, telemetry.Sample{Backend: "rocm", Index: 2, Time: list[2].Time, Processes: []telemetry.Process{}},
		list[2],
		"a device that tells nothing")
}

// A library of ROCm 5 has fewer functions, another layout of clocks and a shorter
// table of metrics.
func TestOlder(t *testing.T) {
	list, err := newReader().Sample(t.Context(), build(t, "-DVERSION=5"))
	require.NoError(t, err)
	require.Len(t, list, 3)
	want := first()
	want.Time = list[0].Time
	want.Throttle = []string{"throttled"}
	// its memory is on two devices
	want.Processes = []telemetry.Process{{PID: one, MemoryUsed: new(int64(100))}, {PID: other}}
	assert.Equal(t, want, list[0])
	assert.Nil(t, list[1].Power, "no function for it")
	assert.Equal(t, new(1502.0), list[1].Clock)
	assert.Equal(t, []string{}, list[1].Throttle)
}

func TestInitFails(t *testing.T) {
	list, err := newReader().Sample(t.Context(), build(t, "-DVERSION=6", "-DINIT=8"))
	assert.Empty(t, list)
	require.ErrorIs(t, err, driver.ErrNoDevice)
	assert.ErrorContains(t, err, "init of ROCm SMI")
	var op *driver.OpError
	require.ErrorAs(t, err, &op)
	assert.Equal(t, 8, op.Code)
}

// Several goroutines may call Sample at once; the library is called by one at a time.
func TestConcurrent(t *testing.T) {
	cfg := build(t, "-DVERSION=6")
	r := newReader()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			list, err := r.Sample(t.Context(), cfg)
			assert.NoError(t, err)
			assert.Len(t, list, 3)
		})
	}
	wg.Wait()
}

func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newReader().Sample(ctx, build(t, "-DVERSION=6"))
	require.ErrorIs(t, err, context.Canceled)
}

// The library is missing, is another library, or is the real one on a machine without a device.
func TestLibrary(t *testing.T) {
	_, err := newReader().Sample(t.Context(), &driver.Config{ROCmSMILibrary: "/no/such/librocm_smi64.so"})
	require.ErrorIs(t, err, driver.ErrNoDevice)
	assert.ErrorContains(t, err, "/no/such/librocm_smi64.so")
	_, err = newReader().Sample(t.Context(), &driver.Config{ROCmSMILibrary: "libc.so.6"})
	require.ErrorIs(t, err, driver.ErrNoDevice)
	assert.ErrorContains(t, err, "no rsmi_init in it")
	for _, name := range append([]string{""}, names...) {
		r := newReader()
		for range 2 {
			if _, err := r.Sample(t.Context(), &driver.Config{ROCmSMILibrary: name}); err != nil {
				require.ErrorIs(t, err, driver.ErrNoDevice)
				t.Logf("%q: %v", name, err)
			}
		}
	}
	if _, err := os.Stat(kernelDriver); err != nil {
		_, err := newReader().Sample(t.Context(), &driver.Config{})
		assert.ErrorContains(t, err, "amdgpu driver is not loaded")
	}
}

func TestWords(t *testing.T) {
	assert.Equal(t, []string{}, words(0))
	assert.Equal(t, []string{"power cap"}, words(0xff))
	assert.Equal(t, []string{"current limit", "temperature", "regulator temperature"},
		words(1<<16|1<<22|1<<32|1<<35|1<<38|1<<44))
	assert.Equal(t, []string{"reliability limit", "unknown reason 0x8000000000000100"}, words(1<<57|1<<8|1<<63))
}
