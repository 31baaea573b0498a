package trace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
)

func TestTraceRun(t *testing.T) {
	apptest.NeedsCompiler(t)
	t.Setenv(apptest.AsCommand, "1") // what is recorded is this binary
	dir := t.TempDir()
	out, page := filepath.Join(dir, "t.json"), filepath.Join(dir, "t.html")
	cl := apptest.TextFile(t, "k.cl", "kernel void mine(global int *x) { x[get_global_id(0)] = 1; }")
	program := []string{"--", "run", "--device", "cpu:0", "--global", "64", "--arg", "zeros:i32:64", cl}
	status, stdout, stderr := apptest.Run(append([]string{"trace", "run", "--out", out, "--html", page}, program...)...)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Regexp(t, `launch +mine +cpu:0 +1 +0 `, stdout)
	assert.Regexp(t, `cpu:0: busy .* of `, stdout)
	assert.NotContains(t, stdout, "times of the host")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(text), "cpu:0 stream 1")

	status, stdout, stderr = apptest.Run("trace", "show", out, "--json")
	require.Equal(t, app.ExitOK, status, stderr)
	doc := apptest.Document(t, stdout)
	var kinds []any
	for _, l := range doc["lines"].([]any) {
		kinds = append(kinds, l.(map[string]any)["kind"])
	}
	assert.Subset(t, kinds, []any{"launch", "fill", "compile", "wait", "alloc"})

	status, _, stderr = apptest.Run("trace", "run", "--", os.Args[0], "devices")
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "left no trace")
	status, stdout, stderr = apptest.Run("trace", "run", "--out", out, "--", "concord-has-no-such-program")
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "executable file not found")
	assert.Empty(t, stdout, "the trace of another run")
	// the same is true of a pipe
	for _, flags := range [][]string{{"run", "--out", os.DevNull}, {"memory", "--record", os.DevNull}} {
		status, _, stderr = apptest.Run(append(append([]string{"trace"}, flags...), "--", "devices")...)
		assert.Equal(t, app.ExitUsage, status)
		assert.Contains(t, stderr, "is read again, from a file")
	}
	status, _, stderr = apptest.Run("trace", "show", cl)
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "not a trace of Concord")
	status, _, _ = apptest.Run("trace", "run")
	assert.Equal(t, app.ExitUsage, status)
}
