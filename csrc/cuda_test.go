package csrc

import (
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/concord-compute/concord/tests/sim"
)

// TestSimulatedCUDA runs the CUDA shim on simulated libraries: every entry, a driver
// without the newer functions, and a failure of each call into the library, after which no object may be left.
func TestSimulatedCUDA(t *testing.T) {
	if goruntime.GOOS != "linux" {
		t.Skip("CUDA runs on Linux")
	}
	cc, dir := compiler(t), sim.Dir(t, "..", "sim-cuda", "libcuda.so.1")
	for _, flags := range []string{"-O2", "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all"} {
		t.Run(flags, func(t *testing.T) {
			bin := buildFrom(t, cc, "testdata/cuda_test.c", append(strings.Fields(flags), "-ldl")...)
			for _, name := range []string{"all", "less", "sweep"} {
				run(t, bin, name, dir)
			}
		})
	}
}
