package tuning

import (
	"bytes"
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
