package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// session returns a session over backends, without disk or environment.
func session(t *testing.T, cfg Config, backends ...driver.Backend) *Session {
	t.Helper()
	cfg.Backends, cfg.CacheDir = backends, "off"
	s, err := New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func cpuBackend() *nullBackend { return &nullBackend{name: "cpu", kind: driver.CPU, devices: 1} }

func TestDiscoverListsEveryBackend(t *testing.T) {
	s := session(t, Config{ProbeTimeout: 50 * time.Millisecond},
		&nullBackend{name: "cuda", devices: 2},
		&nullBackend{name: "rocm", probe: func(context.Context) Probe { panic("driver bug") }},
		&nullBackend{name: "opencl", probe: func(ctx context.Context) Probe { time.Sleep(time.Second); return Probe{} }},
		cpuBackend())
	start := time.Now()
	probes, err := s.Discover(t.Context())
	require.NoError(t, err)
	assert.Less(t, time.Since(start), 900*time.Millisecond, "a probe that hangs is left behind")
	require.Len(t, probes, 6)
	for i, want := range []struct {
		backend string
		state   driver.State
		reason  string
	}{
		{"cuda", driver.Available, ""},
		{"rocm", driver.Unavailable, "probe panicked: driver bug"},
		{"metal", driver.Disabled, "not imported"},
		{"opencl", driver.Unavailable, "timed out"},
		{"vulkan", driver.Disabled, "not imported"},
		{"cpu", driver.Available, ""},
	} {
		assert.Equal(t, want.backend, probes[i].Backend)
		assert.Equal(t, want.state, probes[i].State, want.backend)
		assert.Contains(t, probes[i].Reason, want.reason)
		assert.NotNil(t, probes[i].Devices, "an empty list, not null, in JSON")
	}
	list, err := s.Devices(t.Context())
	require.NoError(t, err)
	for i, d := range list {
		assert.Equal(t, i, d.Index)
	}
	assert.True(t, s.GPUAvailable(t.Context()))
	line, err := s.Summary(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Available GPU backends: CUDA 1.2", line)
	assert.NoError(t, s.Preflight(t.Context()))
}

func TestDiscoverIsKept(t *testing.T) {
	var probed atomic.Int64
	b := cpuBackend()
	b.probe = func(context.Context) Probe {
		probed.Add(1)
		return Probe{State: driver.Available, Devices: []Info{b.info(0)}}
	}
	s := session(t, Config{}, b)
	for range 3 {
		_, err := s.Discover(t.Context())
		require.NoError(t, err)
	}
	assert.EqualValues(t, 1, probed.Load())
	_, err := s.Rediscover(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 2, probed.Load())
	fresh := session(t, Config{NoProbeCache: true}, b)
	for range 2 {
		_, err = fresh.Discover(t.Context())
		require.NoError(t, err)
	}
	assert.EqualValues(t, 4, probed.Load())
}

func TestPreflightNamesReasonsAndRemedies(t *testing.T) {
	s := session(t, Config{}, cpuBackend(),
		&nullBackend{name: "cuda", probe: func(context.Context) Probe {
			return Probe{State: driver.Unavailable, Reason: "libcuda.so.1 not found",
				Remedy: "install the NVIDIA driver; is the GPU hidden by CUDA_VISIBLE_DEVICES?"}
		}})
	err := s.Preflight(t.Context())
	require.ErrorIs(t, err, ErrNoDevice)
	assert.True(t, strings.HasPrefix(err.Error(), "No GPU backend detected.\n"))
	assert.Contains(t, err.Error(), "cuda: libcuda.so.1 not found")
	assert.Contains(t, err.Error(), "install the NVIDIA driver")
	assert.Contains(t, err.Error(), "CUDA_VISIBLE_DEVICES")
	line, err := s.Summary(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "No GPU backends available", line)
}

func TestFakes(t *testing.T) {
	for value, want := range map[string]string{
		"":               "No GPU backends available",
		"none":           "No GPU backends available",
		"cuda":           "Available GPU backends: CUDA (fake)",
		"Metal":          "Available GPU backends: Metal (fake)",
		"rocm,cuda":      "Available GPU backends: CUDA (fake), ROCm (fake)",
		"xxwgpuyyopencl": "Available GPU backends: OpenCL (fake), WebGPU (fake)",
	} {
		s := session(t, Config{FakeDevices: &value}, cpuBackend(), &nullBackend{name: "cuda", devices: 8})
		line, err := s.Summary(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, line, "%q", value)
		assert.False(t, s.GPUAvailable(t.Context()), "a fake is no GPU")
		assert.ErrorIs(t, s.Preflight(t.Context()), ErrNoDevice)
		d, err := s.Open(t.Context(), "auto")
		require.NoError(t, err)
		assert.Equal(t, "cpu:0", d.String(), "a fake is never chosen")
	}
	value := "cuda:3,rocm"
	s := session(t, Config{FakeDevices: &value}, cpuBackend())
	list, err := s.Devices(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 5)
	for _, d := range list[:4] {
		assert.True(t, d.Fake)
		assert.True(t, strings.HasPrefix(d.Name, "fake "))
		assert.Empty(t, d.DriverVersion)
	}
	_, err = s.Open(t.Context(), "cuda:2")
	assert.ErrorIs(t, err, driver.ErrFakeDevice)
	assert.ErrorIs(t, err, ErrNoDevice)
	_, err = s.Open(t.Context(), "cuda:3")
	assert.ErrorIs(t, err, ErrDeviceIndex)

	strict := session(t, Config{FakeDevices: &value, Strict: true}, cpuBackend())
	_, err = strict.Discover(t.Context())
	assert.ErrorIs(t, err, driver.ErrFakeDevice)
}

func TestOpenByName(t *testing.T) {
	cl := &nullBackend{name: "opencl", kind: driver.CPU, devices: 2}
	s := session(t, Config{}, cl, cpuBackend())
	for name, want := range map[string]string{
		"auto": "cpu:0", "": "cpu:0", "cpu": "cpu:0", "CPU:0": "cpu:0", "opencl": "opencl:0", "opencl:1": "opencl:1",
		"1": "opencl:1", "2": "cpu:0",
	} {
		d, err := s.Open(t.Context(), name)
		require.NoError(t, err, name)
		assert.Equal(t, want, d.String(), name)
		require.NoError(t, d.Close())
	}
	for name, want := range map[string]error{
		"directx": driver.ErrUnknownBackend, "cuda": ErrNoDevice, "hip:0": ErrNoDevice, "opencl:2": ErrDeviceIndex,
		"opencl:x": ErrDeviceIndex, "3": ErrDeviceIndex, "-1": ErrDeviceIndex, "sim-cuda:0": driver.ErrUnknownBackend,
	} {
		_, err := s.Open(t.Context(), name)
		assert.ErrorIs(t, err, want, name)
	}
	_, err := s.Open(t.Context(), "directx")
	assert.ErrorContains(t, err, "cuda, rocm, metal, opencl, vulkan, cpu", "the valid names are listed")
	_, err = s.Open(t.Context(), "opencl:7")
	assert.ErrorContains(t, err, "there are opencl:0, opencl:1")
}

func TestAutomaticChoice(t *testing.T) {
	gpu := &nullBackend{name: "opencl", devices: 1}
	s := session(t, Config{}, gpu, cpuBackend())
	d, err := s.Open(t.Context(), "auto")
	require.NoError(t, err)
	assert.Equal(t, "opencl:0", d.String(), "a real GPU comes first")

	named := session(t, Config{Device: "cpu"}, gpu, cpuBackend())
	d, err = named.Open(t.Context(), "auto")
	require.NoError(t, err)
	assert.Equal(t, "cpu:0", d.String(), "the configured device")
	require.NoError(t, named.SetActiveDevice(t.Context(), 0))
	d, err = named.Open(t.Context(), "auto")
	require.NoError(t, err)
	assert.Equal(t, "opencl:0", d.String(), "the active device wins")
	for _, i := range []int{-1, 2} {
		assert.ErrorIs(t, named.SetActiveDevice(t.Context(), i), ErrDeviceIndex)
	}
	missing := session(t, Config{Device: "cuda:1"}, gpu, cpuBackend())
	_, err = missing.Open(t.Context(), "auto")
	assert.ErrorIs(t, err, ErrNoDevice, "a named device is never replaced silently")
	none := session(t, Config{}, &nullBackend{name: "opencl", kind: driver.CPU, devices: 1})
	_, err = none.Open(t.Context(), "auto")
	assert.ErrorIs(t, err, ErrNoDevice)
}

func TestFallbackPolicies(t *testing.T) {
	broken := &nullBackend{name: "cuda", devices: 1, openErr: fmt.Errorf("no room for a context: %w", ErrOutOfMemory)}
	for _, policy := range []driver.Fallback{"", driver.Prefer} {
		s := session(t, Config{Fallback: policy}, broken, cpuBackend())
		d, err := s.Open(t.Context(), "cuda:0")
		require.NoError(t, err)
		assert.Equal(t, "cpu:0", d.String())
		assert.ErrorIs(t, d.Fallback(), ErrOutOfMemory, "the reason is visible")
		assert.EqualValues(t, 1, s.Fallbacks(), "and counted")
		k := kernel(t, d, "axpy")
		x := buffer(t, d, F32, 1)
		rec, err := d.Run(t.Context(), k, Items(1), float32(1), x, x, 1)
		require.NoError(t, err)
		assert.True(t, rec.Fallback, "and in the record")
		assert.Contains(t, rec.FallbackReason, "no room for a context")
		own, err := d.NewStream()
		require.NoError(t, err)
		rec, err = own.Run(t.Context(), k, Items(1), float32(1), x, x, 1)
		require.NoError(t, err)
		assert.True(t, rec.Fallback)
	}
	s := session(t, Config{Fallback: Require}, broken, cpuBackend())
	_, err := s.Open(t.Context(), "cuda:0")
	assert.ErrorIs(t, err, ErrOutOfMemory)
	assert.Zero(t, s.Fallbacks())

	invalid := &nullBackend{name: "cuda", devices: 1, openErr: ErrInvalidArgument}
	s = session(t, Config{}, invalid, cpuBackend())
	_, err = s.Open(t.Context(), "cuda:0")
	assert.ErrorIs(t, err, ErrInvalidArgument, "an error that no other device would cure")

	cpu := cpuBackend()
	cpu.openErr = fmt.Errorf("no cpu: %w", ErrUnsupported)
	s = session(t, Config{}, broken, cpu)
	_, err = s.Open(t.Context(), "cuda:0")
	assert.ErrorIs(t, err, driver.ErrAllBackendsExhausted)
	assert.ErrorIs(t, err, ErrOutOfMemory, "both causes are told")
	assert.ErrorIs(t, err, ErrUnsupported)
}

// TestOpenNothing checks that Open returns an error if a backend returns neither a device or stream nor an error.
func TestOpenNothing(t *testing.T) {
	for _, what := range []string{"open", "stream"} {
		s := session(t, Config{Fallback: Require}, &nullBackend{name: "npu", devices: 1, nothing: what})
		_, err := s.Open(t.Context(), "npu:0")
		require.ErrorIs(t, err, ErrUnsupported, what)
		assert.ErrorContains(t, err, "npu:0: ", what)
		assert.ErrorContains(t, err, "nor an error", what)
	}
	b := cpuBackend()
	d, err := session(t, Config{}, b).Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	b.nothing = "stream"
	_, err = d.NewStream()
	require.ErrorIs(t, err, ErrUnsupported)
	require.NoError(t, d.Close())
}

func TestOpenShares(t *testing.T) {
	s := session(t, Config{}, cpuBackend())
	a, err := s.Open(t.Context(), "cpu")
	require.NoError(t, err)
	b, err := s.Open(t.Context(), "cpu")
	require.NoError(t, err)
	buf := buffer(t, a, F32, 4)
	require.NoError(t, a.Close())
	require.NoError(t, a.Close(), "closing one handle twice does not close the other")
	require.NoError(t, Write(t.Context(), buf, []float32{1, 2}))
	require.NoError(t, b.Close())
	assert.ErrorIs(t, Write(t.Context(), buf, []float32{1, 2}), ErrClosed)
}

// A device opened after Session.Close is not disturbed by handles from before.
func TestStaleHandle(t *testing.T) {
	s := session(t, Config{}, cpuBackend())
	a, err := s.Open(t.Context(), "cpu")
	require.NoError(t, err)
	require.NoError(t, s.Close())
	b, err := s.Open(t.Context(), "cpu")
	require.NoError(t, err)
	require.NoError(t, a.Close())
	c, err := s.Open(t.Context(), "cpu")
	require.NoError(t, err)
	assert.Same(t, b.core, c.core)
	_, err = a.Alloc(F32, 1)
	assert.ErrorIs(t, err, ErrClosed)
	require.NoError(t, s.Close())
	_, err = b.NewStream()
	assert.ErrorIs(t, err, ErrClosed)
}

func TestCancelledDiscovery(t *testing.T) {
	s := session(t, Config{}, cpuBackend())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Discover(ctx)
	assert.True(t, errors.Is(err, context.Canceled))
	_, err = s.Discover(t.Context())
	assert.NoError(t, err, "a cancelled search leaves nothing behind")
}

// A remedy is the backend's own, whatever words are in its reason, or that of discovery.
func TestRemedies(t *testing.T) {
	s := session(t, Config{ProbeTimeout: 20 * time.Millisecond},
		&nullBackend{name: "abacus", probe: func(context.Context) Probe {
			return Probe{State: driver.Unavailable, Reason: "no permission to count", Remedy: "ask the teacher"}
		}},
		&nullBackend{name: "stuck", probe: func(ctx context.Context) Probe {
			time.Sleep(200 * time.Millisecond)
			return Probe{}
		}},
		&nullBackend{name: "plain", devices: 1, probe: func(context.Context) Probe {
			return Probe{State: driver.Available, Devices: []Info{{ID: "plain:0", Backend: "plain"}}, Remedy: "none is needed"}
		}}, cpuBackend())
	probes, err := s.Discover(t.Context())
	require.NoError(t, err)
	got := map[string]string{}
	for _, p := range probes {
		got[p.Backend] = p.Remedy
	}
	assert.Equal(t, "ask the teacher", got["abacus"])
	assert.Contains(t, got["stuck"], "allow more with CONCORD_PROBE_TIMEOUT")
	assert.Contains(t, got["metal"], "add a blank import of metal or of runtime/all")
	assert.Empty(t, got["plain"])

	none := ""
	s = session(t, Config{FakeDevices: &none}, cpuBackend())
	assert.ErrorContains(t, s.Preflight(t.Context()), "rocm: unset CONCORD_FAKE_DEVICES, or name the backend there")
}

// A backend of a third party is treated as it describes itself, as Concord's own are.
func TestThirdPartysBackend(t *testing.T) {
	abacus := &nullBackend{name: "abacus", devices: 2, describe: driver.Description{
		Title: "Abacus", Aliases: []string{"soroban"}, Preference: 9}}
	plain := &nullBackend{name: "plain", devices: 1}
	portable := &nullBackend{name: "beads", devices: 1, describe: driver.Description{Title: "ABeads", Portable: true}}
	opencl := &nullBackend{name: "opencl", devices: 1}
	s := session(t, Config{}, abacus, opencl, portable, plain, cpuBackend())
	line, err := s.Summary(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Available GPU backends: Abacus 1.2, plain 1.2, ABeads 1.2, OpenCL 1.2", line)
	d, err := s.Open(t.Context(), "Soroban:1")
	require.NoError(t, err)
	assert.Equal(t, "abacus:1", d.String())
	_, err = s.Open(t.Context(), "directx")
	assert.ErrorContains(t, err, "cpu, abacus, beads, plain, hip (which is rocm), soroban (which is abacus); simulated")

	value := "opencl soroban:3"
	s = session(t, Config{FakeDevices: &value}, cpuBackend(), opencl, abacus)
	line, err = s.Summary(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "Available GPU backends: Abacus (fake), OpenCL (fake)", line)
	list, err := s.Devices(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 5)
	assert.Equal(t, "abacus:2", list[2].ID, "in the order of preference")
	assert.Equal(t, "opencl:0", list[3].ID)

	hip := &nullBackend{name: "hip", devices: 1}
	s = session(t, Config{}, hip, &nullBackend{name: "rocm", devices: 1})
	d, err = s.Open(t.Context(), "hip:0")
	require.NoError(t, err)
	assert.Equal(t, "hip:0", d.String(), "a name comes before an alias")
}

// The stand-in for other devices is the backend of the host's processor, whatever its name.
func TestHostByDescription(t *testing.T) {
	host := &nullBackend{name: "abacus", devices: 2, kind: driver.CPU, describe: driver.Description{Host: true}}
	opencl := &nullBackend{name: "opencl", kind: driver.CPU, devices: 1}
	broken := &nullBackend{name: "cuda", devices: 1, openErr: ErrOutOfMemory}
	none := ""
	for _, cfg := range []Config{{}, {FakeDevices: &none}} {
		s := session(t, cfg, broken, opencl, host)
		d, err := s.Open(t.Context(), "auto")
		require.NoError(t, err)
		assert.Equal(t, "abacus:0", d.String())
	}
	host.openErr = ErrUnsupported
	s := session(t, Config{}, host, &nullBackend{name: "plain", devices: 1})
	_, err := s.Open(t.Context(), "abacus:1")
	assert.ErrorIs(t, err, ErrUnsupported, "nothing stands in for the host")
	assert.NotErrorIs(t, err, driver.ErrAllBackendsExhausted)
	assert.Zero(t, s.Fallbacks())
}
