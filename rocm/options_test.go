package rocm

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
		{[]string{"-cl-std=CL1.2", "-cl-kernel-arg-info"}, nil},
		{[]string{"-cl-mad-enable", "-O2", "-Wall"}, []string{"-ffp-contract=fast", "-O2", "-Wall"}},
		{[]string{"-cl-denorms-are-zero"}, []string{"-fgpu-flush-denormals-to-zero"}},
		{[]string{"-cl-opt-disable"}, []string{"-O0"}},
		{[]string{"-cl-fast-relaxed-math"}, append(append([]string{}, relaxed...), "-ffinite-math-only")},
	} {
		got, err := options(c.in)
		require.NoError(t, err, "%v", c.in)
		assert.Equal(t, c.want, got, "%v", c.in)
	}
	for _, bad := range []string{"-cl-nonsense", "--offload-arch=gfx942", "-march=x", "-mcpu=gfx942", "-I/", "-include",
		"-fplugin=x", "-Wl,x", "x", ""} {
		_, err := options([]string{"-O3", bad})
		assert.ErrorIs(t, err, driver.ErrInvalidArgument, "%q", bad)
		assert.ErrorContains(t, err, bad)
	}
}

func TestFlags(t *testing.T) {
	assert.Equal(t, "--offload-arch=gfx906", flags("gfx906")[0])
	assert.Equal(t, "--offload-arch=gfx90a", flags("gfx90a")[0], "one list does not change the other")
	assert.Contains(t, flags("gfx906"), "-ffp-contract=off")
}

func TestLibraries(t *testing.T) {
	t.Setenv("ROCM_PATH", "/opt/other")
	t.Setenv("HIP_PATH", "relative")
	drv, rtc := libraries(&driver.Config{})
	assert.Equal(t, "libamdhip64.so.7", drv[0], "the newest first")
	assert.Contains(t, drv, "/opt/other/lib/libamdhip64.so")
	assert.Contains(t, drv, "/opt/rocm/lib/libamdhip64.so")
	assert.Contains(t, rtc, "libhiprtc.so.6")
	for _, name := range append(drv, rtc...) {
		assert.True(t, filepath.IsAbs(name) || filepath.Base(name) == name, "%s would be looked for in the working directory",
			name)
	}
	drv, rtc = libraries(&driver.Config{HIPLibrary: "/a/libamdhip64.so"})
	assert.Equal(t, []string{"/a/libamdhip64.so"}, drv)
	assert.Contains(t, rtc, "/a/libhiprtc.so.6", "the one that belongs to it")
	drv, rtc = simLibraries(&driver.Config{SimDir: "/sim"})
	assert.Equal(t, []string{"/sim/libamdhip64.so.5"}, drv)
	assert.Empty(t, rtc)
	drv, _ = simLibraries(&driver.Config{})
	assert.True(t, filepath.IsAbs(drv[0]), "never one that the loader searches for")
}

func TestVersion(t *testing.T) {
	assert.Equal(t, "5.2.21153", version(50221153))
	assert.Equal(t, "6.0.32830", version(60032830))
}

func TestCompileArch(t *testing.T) {
	known := []string{"gfx906", "gfx90a"}
	got, err := compileArch("gfx90a:sramecc+:xnack-", known)
	require.NoError(t, err)
	assert.Equal(t, "gfx90a:sramecc+:xnack-", got)
	for _, arch := range []string{"", "gfx942:xnack-", "gfx90"} {
		_, err = compileArch(arch, known)
		assert.ErrorIs(t, err, driver.ErrUnsupported, arch)
	}
}
