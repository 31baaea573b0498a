package training

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
)

// Members train as one device does, and go on from its checkpoint, and it from theirs.
func TestTrainMembers(t *testing.T) {
	data, dir := apptest.DigitFiles(t, 300), t.TempDir()
	train := func(epochs, file string, more ...string) map[string]any {
		args := append([]string{"train", "--json", "--batch", "32", "--data", data, "--epochs", epochs, "--checkpoint",
			filepath.Join(dir, file)}, more...)
		status, stdout, stderr := apptest.Run(args...)
		require.Equal(t, app.ExitOK, status, stderr)
		return apptest.Document(t, stdout)
	}
	losses := func(d map[string]any) []any { return d["history"].(map[string]any)["TrainLoss"].([]any) }
	want := train("2", "one", "--device", "cpu:0")
	got := train("2", "two", "--device", "cpu:0", "--members", "2")
	assert.Equal(t, "2 members of cpu:0", got["device"])
	assert.Equal(t, 2.0, got["members"])
	assert.InDeltaSlice(t, losses(want), losses(got), 1e-3)
	more := train("3", "two", "--devices", "cpu:0", "--resume")
	assert.Equal(t, losses(got), losses(more)[:2])
	train("3", "one", "--device", "cpu:0", "--members", "3", "--resume", "--batch", "32")

	status, stdout, stderr := apptest.Run("train", "--device", "cpu:0", "--members", "2", "--data", data, "--epochs", "1",
		"--batch", "auto")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "mlp on 2 members of cpu:0, ")
	assert.Contains(t, stdout, "of the images that it has not seen are read rightly, after 1 epoch")

	for says, args := range map[string][]string{
		"--devices takes the place": {"--devices", "cpu:0", "--members", "2"},
		"--members -1":              {"--members", "-1"},
		"from 0 to 1024":            {"--members", "1025"},
		"which every member reads":  {"--members", "2", "--data", os.DevNull},
		"is member twice":           {"--devices", "cpu:0,cpu:0"},
	} {
		status, _, stderr := apptest.Run(append([]string{"train", "--data", data}, args...)...)
		assert.Equal(t, app.ExitUsage, status, args)
		assert.Contains(t, stderr, says)
	}
}
