package cuda

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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

// new13 returns the directory of the simulated libraries of CUDA 13 and of older ones.
func new13(t *testing.T) (new, old string) {
	t.Helper()
	if table() == nil {
		sim.Absent(t, "sim-cuda", missing)
	}
	old = sim.Dir(t, "..", "sim-cuda", "libcuda.so.1")
	if filepath.Base(old) == "new" {
		old = filepath.Dir(old)
	}
	new = filepath.Join(old, "new")
	if _, err := os.Stat(filepath.Join(new, "libnvrtc.so.13")); err != nil {
		sim.Absent(t, "sim-cuda", err.Error())
	}
	return new, old
}

// compiled compiles a program with an NVRTC that the configuration names.
func compiled(t *testing.T, library string) error {
	t.Helper()
	c := sim.Registered(t, "cuda").(driver.CrossCompiler)
	u := parse(t, c, "sm_90", `kernel void one(global int *x) { x[get_global_id(0)] = 1; }`)
	_, err := c.CompileFor(context.Background(), &driver.Config{NVRTCLibrary: library}, "sm_90", u, nil)
	return err
}

// TestSimulatedBuiltins compiles with an NVRTC that is named by its path: its builtins beside it are found, though the
// loader does not search there, and if they are missing, the error says so.
func TestSimulatedBuiltins(t *testing.T) {
	new, _ := new13(t)
	// A library that was opened stays open, so each case needs a process of its own.
	if os.Getenv("CUDA_TEST_BUILTINS") == "" {
		for name, without := range map[string]bool{"beside": false, "missing": true} {
			dir := t.TempDir()
			for _, file := range []string{"libnvrtc.so.13", "libnvrtc-builtins.so.13.0"} {
				if without && file != "libnvrtc.so.13" {
					continue
				}
				content, err := os.ReadFile(filepath.Join(new, file))
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), content, 0o755))
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSimulatedBuiltins$", "-test.v")
			cmd.Env = append(os.Environ(), "CUDA_TEST_BUILTINS="+name+":"+dir)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s: %s", name, out)
		}
		return
	}
	name, dir, _ := strings.Cut(os.Getenv("CUDA_TEST_BUILTINS"), ":")
	err := compiled(t, filepath.Join(dir, "libnvrtc.so.13"))
	var build *driver.BuildError
	if name == "beside" {
		// NVRTC did its part also where this machine's own assembler is older than the simulated NVRTC.
		if !errors.As(err, &build) || !strings.Contains(build.Log, "Unsupported .version") {
			require.NoError(t, err)
		}
		return
	}
	require.ErrorAs(t, err, &build)
	assert.Contains(t, build.Log, "failed to open libnvrtc-builtins.so.13.0")
	assert.ErrorContains(t, err, "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE")
	assert.ErrorContains(t, err, "nvrtc 13.0 in "+dir+"/libnvrtc.so.13, nvrtc-builtins was not found")
	assert.ErrorContains(t, err, "(code 7)")
	assert.ErrorIs(t, err, driver.ErrLaunch, "no verdict on the program")
}

// TestSimulatedChoice has several versions of NVRTC beside drivers of two versions.
func TestSimulatedChoice(t *testing.T) {
	new, old := new13(t)
	for _, c := range []struct{ driver, want, passed string }{
		{old, "11.8", "libnvrtc.so.13: found, of version 13.0, while the driver is for 12.2"},
		{new, "13.0", ""},
	} {
		env := t.TempDir()
		python(t, env, "site-packages", "cu13/lib/none", "cuda_nvrtc/lib/none")
		packages := filepath.Join(env, "lib", "python3.12", "site-packages", "nvidia")
		for from, to := range map[string]string{filepath.Join(new, "libnvrtc.so.13"): "cu13/lib/libnvrtc.so.13",
			filepath.Join(old, "libnvrtc.so.11.2"): "cuda_nvrtc/lib/libnvrtc.so.11.2"} {
			require.NoError(t, os.Symlink(from, filepath.Join(packages, to)))
		}
		t.Setenv("VIRTUAL_ENV", env)
		t.Setenv("PATH", "/no/such")
		cfg := &driver.Config{CUDALibrary: filepath.Join(c.driver, "libcuda.so.1")}
		p := sim.Registered(t, "cuda").Probe(context.Background(), cfg)
		i := slices.IndexFunc(p.Libraries, func(l driver.Library) bool { return l.Name == "nvrtc" })
		require.GreaterOrEqual(t, i, 0)
		if !p.Libraries[i].Simulated {
			t.Skip("an NVRTC that is installed comes first: " + p.Libraries[i].Path)
		}
		assert.Equal(t, c.want, p.CompilerVersion)
		assert.Contains(t, strings.Join(p.Tried, "\n"), c.passed)
	}
}
