package csrc

import (
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fake builds the library that stands in for NVIDIA's.
func fake(t *testing.T, cc string, flags ...string) string {
	t.Helper()
	lib := filepath.Join(t.TempDir(), "libfake.so")
	args := append([]string{"-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-fPIC", "-shared", "-o", lib, "testdata/cuda_fake.c"}, flags...)
	out, err := exec.Command(cc, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return lib
}

// The shim for NVIDIA over a fake of its libraries: every entry, what an old driver
// lacks, and each of the vendor's calls failing once, after which nothing is alive.
func TestCUDA(t *testing.T) {
	if goruntime.GOOS != "linux" {
		t.Skip("CUDA runs on Linux")
	}
	cc := compiler(t)
	whole, old, broken := fake(t, cc), fake(t, cc, "-DOLD"), fake(t, cc, "-DBROKEN")
	for _, flags := range []string{"-O2", "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all"} {
		t.Run(flags, func(t *testing.T) {
			bin := buildFrom(t, cc, "testdata/cuda_test.c", append(strings.Fields(flags), "-ldl")...)
			run(t, bin, "all", whole)
			run(t, bin, "less", old, broken)
			run(t, bin, "sweep", whole)
		})
	}
}
