package cuda

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tests/sim"
)

// python makes an installation of Python below dir with files of the directory nvidia, and returns their paths.
func python(t *testing.T, dir, packages string, files ...string) (paths []string) {
	t.Helper()
	for _, f := range files {
		path := filepath.Join(dir, "lib", "python3.12", packages, "nvidia", f)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		paths = append(paths, path)
	}
	return paths
}

// TestWheels looks for libraries in an environment of Python, in the one that it was made from, and where a link from
// PATH leads.
func TestWheels(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	at := func(name string) string { return filepath.Join(root, name) }
	active := python(t, at("active"), "site-packages",
		"cu13/lib/libnvrtc.so.13", "cu13/lib/libnvrtc-builtins.so.13.0", "cu13/lib/libcublas.so.13")
	env := python(t, at("env"), "site-packages",
		"cuda_nvrtc/lib/libnvrtc.so.12", "cublas/lib/libcublas.so.12", "cublas/lib/libcublasLt.so.12")
	base := python(t, at("base"), "dist-packages", "cuda_nvrtc/lib/libnvrtc.so.11.2")
	for _, dir := range []string{"bin", "env/bin", "base/bin"} {
		require.NoError(t, os.MkdirAll(at(dir), 0o755))
	}
	require.NoError(t, os.WriteFile(at("base/bin/python3.12"), nil, 0o755))
	require.NoError(t, os.Symlink(at("env/bin/python3"), at("bin/python3")))
	require.NoError(t, os.Symlink("../../base/bin/python3.12", at("env/bin/python3")))
	t.Setenv("PATH", at("bin"))
	t.Setenv("VIRTUAL_ENV", at("active"))
	t.Setenv("CONDA_PREFIX", "relative")
	t.Setenv("HOME", at("nobody"))

	_, rtc := libraries(&driver.Config{})
	found := rtc[len(rtc)-3:]
	assert.Equal(t, []string{active[0], env[0], base[0]}, found, "never the builtins")
	names := blas(nil)
	assert.Equal(t, []string{active[2], env[1]}, names[len(names)-2:], "never cublasLt")

	t.Setenv("PATH", at("nowhere"))
	t.Setenv("VIRTUAL_ENV", at("[a-z]ctive"))
	_, rtc = libraries(&driver.Config{})
	assert.NotContains(t, rtc, active[0], "a name is not a pattern")
	assert.NotContains(t, rtc, env[0])
}

// TestSimulatedByName opens a simulated driver under the name of the real backend: its devices stay simulated ones.
func TestSimulatedByName(t *testing.T) {
	if table() == nil {
		sim.Absent(t, "sim-cuda", missing)
	}
	dir := sim.Dir(t, "..", "sim-cuda", "libcuda.so.1")
	cfg := &driver.Config{CUDALibrary: filepath.Join(dir, "libcuda.so.1"), NVRTCLibrary: "/no/such/libnvrtc.so"}
	b := sim.Registered(t, "cuda")
	p := b.Probe(context.Background(), cfg)
	require.Equal(t, driver.Available, p.State, p.Reason)
	for _, d := range p.Devices {
		assert.True(t, d.Simulated)
		assert.False(t, d.IsGPU(), "never a card")
	}
	require.Len(t, p.Libraries, 1)
	real, err := filepath.EvalSymlinks(cfg.CUDALibrary)
	require.NoError(t, err)
	assert.Equal(t, driver.Library{Name: "cuda", Version: p.DriverVersion, Path: real, Simulated: true}, p.Libraries[0])
	info := sim.Open(t, "cuda", 0, cfg).Info()
	assert.True(t, info.Simulated)
	assert.False(t, info.IsGPU())
}

// TestSimulatedCompiled compiles a program once with g++ and once without.
func TestSimulatedCompiled(t *testing.T) {
	d := open(t)
	kept := t.TempDir()
	t.Setenv("CONCORD_SIM_COMPILED", kept)
	const text = `kernel void once(global int *x) { x[get_global_id(0)] = 20261127; }`
	require.NoError(t, sim.Load(t, d, text).Close())
	list, err := os.ReadDir(kept)
	require.NoError(t, err)
	require.Len(t, list, 1)

	moved := filepath.Join(t.TempDir(), "moved")
	require.NoError(t, os.Rename(kept, moved))
	t.Setenv("CONCORD_SIM_COMPILED", moved)
	t.Setenv("PATH", "/no/such/directory")
	require.NoError(t, sim.Load(t, d, text).Close())
	file := filepath.Join(moved, list[0].Name())
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, damaged := range [][]byte{nil, whole[:len(whole)/2], whole[:len(whole)-1], append(whole, 0)} {
		require.NoError(t, os.WriteFile(file, damaged, 0o600))
		_, err := sim.TryLoad(t, d, text)
		assert.ErrorIs(t, err, driver.ErrCompile, "%d of %d bytes", len(damaged), len(whole))
	}
}
