package csrc

import (
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/concord-compute/concord/tests/sim"
)

// The shim for NVIDIA over the simulated libraries: every entry, what an old driver
// lacks, and each of the vendor's calls failing once, after which nothing is alive.
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
