package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

func TestParseEnv(t *testing.T) {
	c, err := ParseEnv([]string{"PATH=/bin", "CONCORD_DEBUG=2", "CONCORD_DEVICE=cuda:1", "CONCORD_MEMORY_POOL=0",
		"CONCORD_MEMORY_LIMIT=2G", "CONCORD_CACHE_DIR=off", "CONCORD_CACHE_SIZE=1M", "CONCORD_FAKE_DEVICES=",
		"CONCORD_FALLBACK=Require", "CONCORD_REQUIRE=cuda, opencl", "CONCORD_PROBE_CACHE=0", "CONCORD_PROBE_TIMEOUT=250ms",
		"CONCORD_CPU_THREADS=3", "CONCORD_FUSION=0", "CONCORD_OPENCL_LIBRARY=/x.so", "CONCORD_NO_SUCH=1"})
	require.NoError(t, err)
	require.NotNil(t, c.FakeDevices, "empty but set is not unset")
	assert.Equal(t, driver.Config{Debug: 2, Device: "cuda:1", NoMemoryPool: true, MemoryLimit: 2 << 30, CacheDir: "off",
		CacheSize: 1 << 20, FakeDevices: c.FakeDevices, Fallback: driver.Require, Required: []string{"cuda", "opencl"},
		NoProbeCache: true, ProbeTimeout: 250 * time.Millisecond, CPUThreads: 3, NoFusion: true, OpenCLLibrary: "/x.so"}, c)
	c, err = ParseEnv(nil)
	require.NoError(t, err)
	assert.Equal(t, driver.Config{}, c, "the zero value is the default")
}

func TestRequires(t *testing.T) {
	c, err := ParseEnv([]string{"CONCORD_REQUIRE=Host_dev2,cuda"})
	require.NoError(t, err, "a backend of another module")
	assert.Equal(t, []string{"host_dev2", "cuda"}, c.Required)
	_, err = Requires(c, "cpu")
	assert.ErrorIs(t, err, driver.ErrUnknownBackend, "it is not in this program")
	assert.ErrorContains(t, err, "host_dev2")
	c.Backends = []driver.Backend{driver.Missing("host_dev2", driver.Unavailable, "")}
	for backend, want := range map[string]bool{"host_dev2": true, "cuda": true, "cpu": false} {
		got, err := Requires(c, backend)
		require.NoError(t, err)
		assert.Equal(t, want, got, backend)
	}
}

func TestParseEnvNamesTheVariable(t *testing.T) {
	for _, entry := range []string{"CONCORD_DEBUG=3", "CONCORD_DEBUG=x", "CONCORD_MEMORY_POOL=yes",
		"CONCORD_MEMORY_LIMIT=1T",
		"CONCORD_MEMORY_LIMIT=-1", "CONCORD_MEMORY_LIMIT=99999999999G", "CONCORD_CACHE_SIZE=0", "CONCORD_STRICT=2",
		"CONCORD_FALLBACK=never", "CONCORD_REQUIRE=cuda:0", "CONCORD_REQUIRE=cuda;rocm", "CONCORD_REQUIRE=cpu,-x",
		"CONCORD_REQUIRE=42", "CONCORD_PROBE_CACHE=on", "CONCORD_PROBE_TIMEOUT=5",
		"CONCORD_PROBE_TIMEOUT=-1s", "CONCORD_CPU_THREADS=0"} {
		_, err := ParseEnv([]string{entry})
		assert.ErrorIs(t, err, driver.ErrInvalidArgument, entry)
		assert.ErrorContains(t, err, entry)
	}
	_, err := ParseEnv([]string{"CONCORD_STRICT=1", "CONCORD_NO_SUCH=1", "CONCORD_CPU_THREAD=1"})
	assert.ErrorContains(t, err, "CONCORD_NO_SUCH, CONCORD_CPU_THREAD (CONCORD_CPU_THREADS?): not a variable")
}

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{"CONCORD_DEVIEC": "CONCORD_DEVICE", "CONCORD_TRAEC": "CONCORD_TRACE",
		"CONCORD_CACHEDIR":  "CONCORD_CACHE_DIR",
		"CONCORD_FALLBACKS": "CONCORD_FALLBACK", "CONCORD_device": "", "CONCORD_STRESS": "", "CONCORD_SUITES": "",
		"CONCORD_SIM_FAULT": "", "CONCORD_SIM_ARCH": "",
		"CONCORD_": "", "CONCORD_TEST_COMMAND": "", "CONCORD_HIP_LIBARY": "CONCORD_HIP_LIBRARY"} {
		assert.Equal(t, want, Nearest(name), name)
	}
	for a, bs := range map[string]map[string]int{
		"": {"": 0, "abc": 3}, "abc": {"abc": 0, "": 3, "acb": 2, "xabc": 1, "ab": 1, "axc": 1, "cab": 2}} {
		for b, want := range bs {
			assert.Equal(t, want, distance(a, b), "%q %q", a, b)
			assert.Equal(t, want, distance(b, a), "%q %q", b, a)
		}
	}
	for _, v := range variables {
		assert.Equal(t, v.Name, Nearest(v.Name+"S"))
	}
}

func TestNearestOf(t *testing.T) {
	for name, want := range map[string]string{"gemn": "gemm", "gem": "gemm", "soft": "", "softmx": "softmax", "": "",
		"gemm f23": "gemm f32"} {
		assert.Equal(t, want, NearestOf(name, []string{"gemm", "gemm f32", "softmax"}), name)
	}
	assert.Empty(t, NearestOf("gemm", nil))
}

func TestMergeAndStrict(t *testing.T) {
	env := driver.Config{Device: "cuda", Debug: 1, MemoryLimit: 10}
	got := Merge(driver.Config{Device: "cpu"}, env)
	assert.Equal(t, driver.Config{Device: "cpu", Debug: 1, MemoryLimit: 10}, got)
	strict, err := ParseEnv([]string{"CONCORD_STRICT=1", "CONCORD_FALLBACK=prefer"})
	require.NoError(t, err)
	assert.Equal(t, driver.Require, strict.Fallback)
	assert.Equal(t, driver.Require, Merge(driver.Config{Fallback: driver.Prefer}, strict).Fallback,
		"code cannot loosen it")
	for _, c := range []driver.Config{{Fallback: "x"}, {MemoryLimit: -1}, {CPUThreads: -1}} {
		assert.ErrorIs(t, Check(&c), driver.ErrInvalidArgument)
	}
}

func TestSimulatedBackends(t *testing.T) {
	c, err := ParseEnv([]string{"CONCORD_REQUIRE=sim-cuda,sim-rocm,cpu", "CONCORD_SIM_DIR=/sim"})
	require.NoError(t, err)
	assert.Equal(t, []string{"sim-cuda", "sim-rocm", "cpu"}, c.Required)
	assert.Equal(t, "/sim", Merge(driver.Config{}, c).SimDir)
	assert.Equal(t, "/mine", Merge(driver.Config{SimDir: "/mine"}, c).SimDir)
}
