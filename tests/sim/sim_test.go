package sim

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// build builds the libraries in a temporary directory.
func build(t *testing.T) string {
	for _, tool := range []string{"sh", "gcc", "g++"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	command(t, nil, "sh", "build.sh", dir)
	return dir
}

// command runs a program and returns what it printed.
func command(t *testing.T, env []string, name string, args ...string) string {
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", name, out)
	return string(out)
}

// program compiles a program of testdata with flags.
func program(t *testing.T, name string, flags ...string) string {
	out := filepath.Join(t.TempDir(), name)
	args := []string{"-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o", out, filepath.Join("testdata", name+".c")}
	command(t, nil, "gcc", append(args, flags...)...)
	return out
}

// headers returns a directory with the vendor's public headers, if there is one.
func headers(t *testing.T, names ...string) string {
	dirs := []string{"/usr/include", "/usr/local/cuda/include", "/opt/rocm/include"}
	for _, v := range []string{"CUDA_HOME", "CUDA_PATH", "ROCM_PATH"} {
		if home := os.Getenv(v); home != "" {
			dirs = append(dirs, filepath.Join(home, "include"))
		}
	}
	for _, dir := range dirs {
		have := 0
		for _, name := range names {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				have++
			}
		}
		if have == len(names) {
			return dir
		}
	}
	t.Skipf("no directory has %v (set CUDA_HOME or ROCM_PATH)", names)
	return ""
}

// exports reports whether a library exports a function.
func exports(t *testing.T, path, name string) bool {
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	require.NoError(t, err)
	return slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == name && s.Section != elf.SHN_UNDEF })
}

// TestLibraries builds the libraries once and runs all tests of them.
func TestLibraries(t *testing.T) {
	dir := build(t)
	t.Run("selftest", func(t *testing.T) {
		out := command(t, nil, program(t, "selftest", "-ldl"), dir, filepath.Join("testdata", "selftest.cu"))
		assert.Contains(t, out, "said 0 0.5 x\n")
		assert.Contains(t, out, "\nok\n")
	})
	// A program that uses the vendor's own headers and is linked as the vendor's manual says.
	t.Run("driver program", func(t *testing.T) {
		include := headers(t, "cuda.h", "nvrtc.h")
		bin := program(t, "saxpy_driver", "-I"+include, "-L"+dir, "-l:libcuda.so.1", "-l:libnvrtc.so.11.2")
		assert.Equal(t, "ok\n", command(t, []string{"LD_LIBRARY_PATH=" + dir}, bin))
	})
	t.Run("environment", func(t *testing.T) {
		bin := program(t, "devices", "-ldl")
		ask := func(env ...string) string { return command(t, env, bin, filepath.Join(dir, "libcuda.so.1")) }
		assert.Equal(t, "init 0 devices 2 driver 12020 arch 80\n", ask())
		assert.Equal(t, "init 0 devices 5 driver 12020 arch 90\n", ask("CONCORD_SIM_DEVICES=5", "CONCORD_SIM_ARCH=90"))
		assert.Equal(t, "init 0 devices 2 driver 10000 arch 80\n", ask("CONCORD_SIM_FAULT=driver:10000"))
		assert.Equal(t, "init 100 devices -1 driver 12020 arch -1\n", ask("CONCORD_SIM_FAULT=devices:0"))
		assert.Equal(t, "init 3 devices -1 driver 12020 arch -1\n", ask("CONCORD_SIM_FAULT=init:3"))
	})
	t.Run("older driver", func(t *testing.T) {
		for name, old := range map[string]bool{"cuMemAlloc_v2": true, "cuLaunchKernel": true, "cuMemAllocAsync": false,
			"cuGraphLaunch": false} {
			assert.Equal(t, old, exports(t, filepath.Join(dir, "old", "libcuda.so.1"), name), name)
			assert.True(t, exports(t, filepath.Join(dir, "libcuda.so.1"), name), name)
		}
	})
	t.Run("CUDA 13", func(t *testing.T) {
		bin := program(t, "devices", "-ldl")
		path := filepath.Join(dir, "new", "libcuda.so.1")
		assert.Equal(t, "init 0 devices 2 driver 13000 arch 90\n", command(t, nil, bin, path))
		for name, there := range map[string]bool{"cuEventElapsedTime_v2": true, "cuMemPrefetchAsync_v2": true,
			"cuEventElapsedTime": false, "cuMemPrefetchAsync": false, "cuGraphInstantiate": false} {
			assert.Equal(t, there, exports(t, path, name), name)
		}
	})
}
