package program

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
)

func TestTranslate(t *testing.T) {
	cl := apptest.TextFile(t, "k.cl", "#include \"part.h\"\nkernel void k(global T *x) { x[0] = ONE; }")
	inc := filepath.Dir(apptest.TextFile(t, "part.h", "#define ONE 1\n"))
	status, stdout, stderr := apptest.Run("translate", "--to", "host", "-D", "T=float", "-I", inc, cl)
	require.Equal(t, app.ExitOK, status, stderr)
	// The kernel is a function of the group.
	assert.Contains(t, stdout, "ks_k")
	status, stdout, _ = apptest.Run("translate", "--to", "opencl", "-DT=float", "-I", inc, cl)
	require.Equal(t, app.ExitOK, status)
	assert.Contains(t, stdout, "global float *x")
	// Without includes the text is the original, and the definitions come with it.
	plain := apptest.TextFile(t, "plain.cl", "kernel void k(global T *x) { x[0] = N; }")
	status, stdout, _ = apptest.Run("translate", "--to", "opencl", "-D", "T=int", "-D", "N", plain)
	require.Equal(t, app.ExitOK, status)
	assert.Contains(t, stdout, "#define T int\n#define N 1\n")
	assert.Contains(t, stdout, "global T *x")
}
