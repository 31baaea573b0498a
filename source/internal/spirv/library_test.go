package spirv_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The library's functions are within OpenCL's limits, and fma, quotients, square roots and remainders are rounded once,
// on a device that is exact and on one whose own quotients and square roots are wrong by two units in the last place
// and whose fma is none. testdata/library_test.cc says what they are compared with. LIBRARY_TRIES is the number of
// random arguments.
func TestLibrary(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles C++")
	}
	tries := os.Getenv("LIBRARY_TRIES")
	if tries == "" {
		tries = "20000"
	}
	for name, flags := range map[string]string{"exact": "-DFACTS=63", "inexact": "-DFACTS=0 -DINJECT"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin := filepath.Join(t.TempDir(), "library")
			args := append(strings.Fields("-std=gnu++17 -O1 -ffp-contract=off -w -Itext "+flags+" -o"), bin,
				"testdata/library_test.cc", "-lquadmath")
			if out, err := exec.Command("g++", args...).CombinedOutput(); err != nil {
				t.Skipf("needs g++ and its library of __float128: %v %.2000s", err, out)
			}
			out, err := exec.Command(bin, tries).CombinedOutput()
			assert.NoError(t, err, "%s", out)
			require.Greater(t, strings.Count(string(out), "\n"), 90)
			assert.NotContains(t, string(out), "WRONG")
		})
	}
}
