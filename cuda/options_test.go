package cuda

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

func TestOptions(t *testing.T) {
	for _, c := range []struct{ in, want []string }{
		{nil, nil},
		{[]string{"-cl-std=CL1.2", "-cl-no-signed-zeros", "-O3", "-Wall"}, nil},
		{[]string{"-cl-mad-enable"}, []string{"--fmad=true"}},
		{[]string{"-cl-denorms-are-zero"}, []string{"--ftz=true"}},
		{[]string{"-cl-opt-disable"}, []string{"--ptxas-options=-O0"}},
		{[]string{"-cl-fast-relaxed-math"}, []string{"--fmad=true", "--prec-div=false", "--prec-sqrt=false", "--ftz=true"}},
		{[]string{"-maxrregcount=32", "-lineinfo"}, []string{"-maxrregcount=32", "-lineinfo"}},
	} {
		got, err := options(c.in)
		require.NoError(t, err, "%v", c.in)
		assert.Equal(t, c.want, got, "%v", c.in)
	}
	for _, bad := range []string{"-cl-nonsense", "--gpu-architecture=sm_90", "-I/", "--include-path=/", "-maxrregcount=",
		"-Wl,x", "x", ""} {
		_, err := options([]string{"-O3", bad})
		assert.ErrorIs(t, err, driver.ErrInvalidArgument, "%q", bad)
		assert.ErrorContains(t, err, bad)
	}
}

// NVRTC refuses an option that is given twice.
func TestMerge(t *testing.T) {
	fixed := flags("sm_80")
	before := flags("sm_80")
	got := merge(fixed, []string{"--fmad=true", "-ftz=true", "-lineinfo", "--ptxas-options=-O0", "--fmad=true"})
	assert.Equal(t, []string{"--gpu-architecture=sm_80", "--std=c++17", "--fmad=true", "--prec-div=true",
		"--prec-sqrt=true",
		"-ftz=true", "-lineinfo", "--ptxas-options=-O0"}, got)
	assert.Equal(t, before, fixed, "the fixed options are unchanged")
	assert.Equal(t, []string{"--ptxas-options=-O0", verbose}, merge([]string{"--ptxas-options=-O0"}, []string{verbose}),
		"the assembler takes several")
}

func TestLibraries(t *testing.T) {
	t.Setenv("CUDA_HOME", "/opt/cuda")
	t.Setenv("CUDA_PATH", "relative")
	drv, rtc := libraries(&driver.Config{})
	assert.Equal(t, "libcuda.so.1", drv[0])
	assert.Equal(t, "libnvrtc.so.13", rtc[0], "the newest first")
	assert.Contains(t, drv, "/usr/lib/wsl/lib/libcuda.so.1")
	assert.Contains(t, rtc, "/opt/cuda/lib64/libnvrtc.so")
	assert.Contains(t, rtc, "/usr/local/cuda/lib64/libnvrtc.so")
	for _, name := range rtc {
		assert.True(t, filepath.IsAbs(name) || filepath.Base(name) == name, "%s would be looked for in the working directory",
			name)
	}
	drv, rtc = libraries(&driver.Config{CUDALibrary: "/a/libcuda.so", NVRTCLibrary: "/b/libnvrtc.so"})
	assert.Equal(t, []string{"/a/libcuda.so"}, drv)
	assert.Equal(t, []string{"/b/libnvrtc.so"}, rtc)

	drv, rtc = simLibraries(&driver.Config{SimDir: "/sim", CUDALibrary: "/a/libcuda.so"})
	assert.Equal(t, []string{"/sim/libcuda.so.1"}, drv)
	assert.Equal(t, []string{"/sim/libnvrtc.so.11.2"}, rtc)
	drv, _ = simLibraries(&driver.Config{})
	require.Len(t, drv, 1)
	assert.True(t, filepath.IsAbs(drv[0]), "%s", drv[0])
}
