package runtime

import (
	"context"
	"testing"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// simBackend counts its probes, and forgets to say that it is simulated.
func simBackend(probed *int) *nullBackend {
	b := &nullBackend{name: "sim-cuda"}
	b.probe = func(context.Context) Probe {
		*probed++
		return Probe{State: driver.Available, Devices: []Info{b.info(0), b.info(1)}}
	}
	return b
}

func TestSimulatedBackendsAreOpenedByNameAlone(t *testing.T) {
	t.Setenv("CONCORD_SIM_DIR", "")
	probed := 0
	s := session(t, Config{}, cpuBackend(), simBackend(&probed))
	list, err := s.Devices(t.Context())
	require.NoError(t, err)
	assert.Len(t, list, 1)
	auto, err := s.Open(t.Context(), "auto")
	require.NoError(t, err)
	assert.Equal(t, "cpu:0", auto.String())
	assert.False(t, s.GPUAvailable(t.Context()))
	assert.ErrorIs(t, s.Preflight(t.Context()), ErrNoDevice)
	_, err = s.Open(t.Context(), "1")
	assert.ErrorIs(t, err, ErrDeviceIndex)
	assert.Zero(t, probed, "nobody asked for it")

	d, err := s.Open(t.Context(), "SIM-CUDA:1")
	require.NoError(t, err)
	assert.Equal(t, "sim-cuda:1", d.String())
	assert.Equal(t, 1, probed)
	info := d.Info()
	assert.True(t, info.Simulated)
	assert.False(t, info.IsGPU())
	assert.Equal(t, 2, info.Index, "after all that is listed")
	x := buffer(t, d, F32, 1)
	rec, err := d.Run(t.Context(), kernel(t, d, "axpy"), Items(1), float32(1), x, x, 1)
	require.NoError(t, err)
	assert.False(t, rec.GPUExecuted)
	assert.Equal(t, "sim-cuda", rec.Backend)

	list, err = s.Devices(t.Context())
	require.NoError(t, err)
	assert.Len(t, list, 1, "still not listed")
	_, err = s.Open(t.Context(), "sim-cuda:2")
	assert.ErrorIs(t, err, ErrDeviceIndex)
	_, err = s.Open(t.Context(), "sim-rocm:0")
	assert.ErrorIs(t, err, driver.ErrUnknownBackend)

	configured := session(t, Config{Device: "sim-cuda"}, cpuBackend(), simBackend(&probed))
	first, err := configured.DefaultDevice(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "sim-cuda:0", first.ID)
	d, err = configured.Open(t.Context(), "auto")
	require.NoError(t, err)
	assert.Equal(t, "sim-cuda:0", d.String(), "named in the configuration")
}

func TestSimulatedBackendsAreListedWithTheirDirectory(t *testing.T) {
	probed := 0
	s := session(t, Config{SimDir: "build/sim"}, cpuBackend(), simBackend(&probed))
	list, err := s.Devices(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 3)
	assert.Equal(t, "cpu:0", list[0].ID)
	assert.True(t, list[1].Simulated)
	assert.False(t, s.GPUAvailable(t.Context()))
	auto, err := s.Open(t.Context(), "auto")
	require.NoError(t, err)
	assert.Equal(t, "cpu:0", auto.String(), "and never chosen")
	d, err := s.Open(t.Context(), "2")
	require.NoError(t, err)
	assert.Equal(t, "sim-cuda:1", d.String())
	line, err := s.Summary(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "No GPU backends available", line)
	assert.Equal(t, 1, probed)
}
