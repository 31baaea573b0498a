package program

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
)

// TestProgramOptions: macros with parameters by -D, and files above the program's directory.
func TestProgramOptions(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o777))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
		return file
	}
	file := write("a/b/k.cl", "#include \"../x.h\"\n#include M2S(../../deep/y.h)\nkernel void k(global int *o) { o[0] = "+
		"X + Y + ADD(1, 2) + NIL() 5; }\n")
	write("a/x.h", "#include \"z.h\"\n#define X Z\n")
	write("a/z.h", "#define Z 17\n")
	write("deep/y.h", "#define Y 25\n")
	options := []string{"translate", "--to", "opencl", "-D", "M2S(x)=#x", "-D", "ADD(a, b)=((a) + (b))", "-D", "NIL()=0 +",
		file}
	status, out, errs := apptest.Run(options...)
	require.Zero(t, status, errs)
	assert.Contains(t, out, "17 + 25 + ((1) + (2)) + 0 + 5")

	for _, bad := range []string{"M2S(x=1", "2(x)=1", "(x)=1", "F(x)(y)=1", "F(2)=1", "F(x, x)=1"} {
		status, _, _ = apptest.Run("translate", "--to", "opencl", "-D", bad, file)
		assert.NotZero(t, status, bad)
	}
	absolute := write("c/k.cl", "#include \""+filepath.Join(dir, "a/z.h")+
		"\"\nkernel void k(global int *o) { o[0] = Z; }\n")
	status, _, errs = apptest.Run("translate", "--to", "opencl", absolute)
	assert.NotZero(t, status)
	assert.Contains(t, errs, "absolute path")
	lost := write("c/l.cl", "#include \"../none.h\"\nkernel void k(global int *o) { o[0] = 1; }\n")
	status, _, errs = apptest.Run("translate", "--to", "opencl", lost)
	assert.NotZero(t, status)
	assert.Contains(t, errs, "none.h")
	t.Log(errs)
}
