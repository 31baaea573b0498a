package tuning

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
	_ "github.com/concord-compute/concord/tensor"
)

func TestMain(m *testing.M) { apptest.Main(m, Command) }

// Costs are measured in a child, kept, and shown with their spread until they are forgotten.
func TestTuneCosts(t *testing.T) {
	t.Setenv("CONCORD_CACHE_DIR", t.TempDir())
	t.Setenv(apptest.AsCommand, "1") // of the child
	status, stdout, stderr := apptest.Run("tune", "costs", "--json")
	require.Equal(t, app.ExitOK, status, stderr)
	table := apptest.Document(t, stdout)
	values := table["values"].(map[string]any)
	assert.Len(t, values, len(choice.Of("tensor")))
	assert.Positive(t, values["tensor.task"])

	status, stdout, stderr = apptest.Run("tune", "show")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "  tensor.task = ")
	assert.Regexp(t, `(?m)^  launch +launch +[\d.]+ (ns|µs|ms) `, stdout)
	assert.Contains(t, stdout, "QUARTER ABOVE")

	status, stdout, stderr = apptest.Run("tune", "reset")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Equal(t, "cpu:0 has the defaults.\n", stdout)
	status, stdout, stderr = apptest.Run("tune", "list")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "\n  costs: launch, upload, copy, add, move.1m, ")
}

// A table of trials that all failed says why.
func TestShowFailed(t *testing.T) {
	t.Setenv("CONCORD_CACHE_DIR", t.TempDir())
	dev, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	table := dev.Choices().New(map[string]int{})
	table.Trials = []choice.Trial{{Subject: "costs", Failed: "the device is lost"}}
	var text bytes.Buffer
	require.NoError(t, table.Write(&text))
	status, _, stderr := apptest.Run("tune", "import", apptest.TextFile(t, "table.json", text.String()))
	require.Equal(t, app.ExitOK, status, stderr)
	status, stdout, stderr := apptest.Run("tune", "show")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "costs, the defaults: the device is lost\n")
	assert.NotContains(t, stdout, "no candidate was tried")
}

// A name that is none is wrong usage.
func TestTuneRefuses(t *testing.T) {
	for says, args := range map[string][]string{
		`no "gemn" among costs, gemm f32`: {"gemn"},
		`no size "65" among 64`:           {"gemm", "--size", "64,65"},
		"--minutes 0: it is above 0":      {"--minutes", "0"},
		`"x" is not an index`:             {"--device", "cpu:x"},
	} {
		status, stdout, stderr := apptest.Run(append([]string{"tune", "--try"}, args...)...)
		assert.Equal(t, app.ExitUsage, status, stderr)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, says)
	}
}

// Import names the values of a table that do not hold any more, and keeps the others.
func TestTuneImports(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CONCORD_CACHE_DIR", filepath.Join(dir, "cache"))
	t.Setenv("CONCORD_TUNE", "first") // which keeps tables, too
	s, err := runtime.New(app.Exactly)
	require.NoError(t, err)
	defer s.Close()
	d, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	table := d.Choices().New(map[string]int{"cpu.transpose.ranges": 2, "kernels.gemm.items": 4})
	table.Versions["cpu.transpose"] = "0"
	name := filepath.Join(dir, "table.json")
	f, err := os.Create(name)
	require.NoError(t, err)
	require.NoError(t, table.Write(f))
	require.NoError(t, f.Close())
	status, stdout, stderr := apptest.Run("tune", "import", name)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, ": 1 value for ")
	assert.Contains(t, stdout, "values were left out: it was made with version 0 of the choices for cpu.transpose")
	status, stdout, stderr = apptest.Run("tune", "show")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "kernels.gemm.items = 4")
	assert.NotContains(t, stdout, "cpu.transpose")
}
