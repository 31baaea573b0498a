package compilers

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// aloneVariable marks the child process that TestAlone starts.
const aloneVariable = "COMPILERS_ALONE"

// TestAlone: two libraries that contain an LLVM are not loaded into one process by accident, since
// Debian's HIP and its OpenCL drivers crash together. Compiling for AMD's GPUs opens no OpenCL, and
// looking for devices opens no HIP on a machine without /dev/kfd. Each is tested in a separate
// process.
func TestAlone(t *testing.T) {
	if what := os.Getenv(aloneVariable); what != "" {
		alone(t, what)
		return
	}
	if _, err := os.ReadFile("/proc/self/maps"); err != nil {
		t.Skip(err)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	for _, what := range []string{"compile", "probe"} {
		cmd := exec.Command(self, "-test.run=^TestAlone$", "-test.v")
		cmd.Env = append(os.Environ(), aloneVariable+"="+what)
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, "%s: %s", what, out)
		if strings.Contains(string(out), "--- SKIP") {
			t.Logf("%s: %s", what, out)
		}
	}
}

func alone(t *testing.T, what string) {
	loaded := func() string {
		maps, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		return string(maps)
	}
	hip, cl := []string{"libamdhip64", "libamd_comgr", "libhiprtc"},
		[]string{"libOpenCL", "libpocl", "libMesaOpenCL", "libRusticlOpenCL"}
	if what == "probe" {
		if _, err := os.Stat("/dev/kfd"); err == nil || os.Getenv("CONCORD_HIP_LIBRARY") != "" {
			t.Skip("there can be a GPU of AMD's")
		}
		s, err := runtime.New(runtime.Config{})
		require.NoError(t, err)
		defer s.Close()
		probes, err := s.Discover(t.Context())
		require.NoError(t, err)
		assert.NotEmpty(t, probes)
		for _, name := range hip {
			assert.NotContains(t, loaded(), name)
		}
		return
	}
	compilers(t, func(t *testing.T, c driver.CrossCompiler, cfg *driver.Config, u turn) {
		features := c.TargetFeatures(u.target)
		unit, err := kernels.Unit("saxpy", &features)
		require.NoError(t, err)
		_, err = c.CompileFor(t.Context(), cfg, u.target, unit, nil)
		require.NoError(t, err)
		for _, name := range cl {
			assert.NotContains(t, loaded(), name)
		}
	})
}
