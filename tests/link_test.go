//go:build cgo && linux

package tests

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// vendorLibrary matches the name of a vendor's library in a table of needed libraries.
var vendorLibrary = regexp.MustCompile(`(?i)cuda|nvrtc|nvidia|cublas|hip|roc|amd|opencl|vulkan`)

// TestLinkedToNoVendor: a binary with the backends of this build starts on a machine without the
// vendors' libraries, and reports what is missing.
func TestLinkedToNoVendor(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "concord")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", ownTags(t), "-o", binary, "../cmd/concord")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	f, err := elf.Open(binary)
	require.NoError(t, err)
	defer f.Close()
	needed, err := f.ImportedLibraries()
	require.NoError(t, err)
	for _, name := range needed {
		assert.NotRegexp(t, vendorLibrary, name)
	}

	nowhere := t.TempDir()
	missing := map[string]string{"CUDA": "libcuda.so.1", "NVRTC": "libnvrtc.so.12", "HIP": "libamdhip64.so.6",
		"OPENCL": "libOpenCL.so.1", "VULKAN": "libvulkan.so.1",
		"NVML": "libnvidia-ml.so.1", "ROCM_SMI": "librocm_smi64.so.6"}
	devices := exec.CommandContext(t.Context(), binary, "devices")
	devices.Env = append(os.Environ(), "LD_LIBRARY_PATH="+nowhere, "CONCORD_CACHE_DIR=off", "CONCORD_REQUIRE=")
	for name, file := range missing {
		devices.Env = append(devices.Env, "CONCORD_"+name+"_LIBRARY="+filepath.Join(nowhere, file))
	}
	out, err = devices.Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), "cpu:0")
	// Only the drivers are checked, since compilers are not used without them.
	for tag, name := range map[string]string{"cuda": "CUDA", "rocm": "HIP", "opencl": "OPENCL", "vulkan": "VULKAN"} {
		if hasTag(t, tag) {
			assert.Contains(t, string(out), filepath.Join(nowhere, missing[name]), tag)
		}
	}
}

// ownTags returns the build tags of this test, separated by commas.
func ownTags(t *testing.T) string {
	t.Helper()
	info, ok := debug.ReadBuildInfo()
	require.True(t, ok)
	for _, s := range info.Settings {
		if s.Key == "-tags" {
			return s.Value
		}
	}
	return ""
}

func hasTag(t *testing.T, tag string) bool {
	t.Helper()
	return regexp.MustCompile(`\b` + tag + `\b`).MatchString(ownTags(t))
}
