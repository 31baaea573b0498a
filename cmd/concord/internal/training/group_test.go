package training

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/runtime"
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
		"abacus:*: no such device":  {"--devices", "abacus:*"},
		"a name is empty":           {"--devices", "cpu:0,,cpu:reference"},
		`--devices "": a name is`:   {"--devices", ""},
		"is member twice":           {"--devices", "cpu:0=2,cpu:0"},
		"a positive number":         {"--devices", "cpu:0=0,cpu:reference"},
		"cpu:0=x: the weight":       {"--devices", "cpu:0=x"},
	} {
		status, _, stderr := apptest.Run(append([]string{"train", "--data", data}, args...)...)
		assert.Equal(t, app.ExitUsage, status, args)
		assert.Contains(t, stderr, says)
	}
}

// A weight belongs to each device that a name of --devices stands for.
func TestWeighted(t *testing.T) {
	names, weights, err := weighted([]string{"cpu:0=2.5", "cpu:*", "cpu:reference"})
	require.NoError(t, err)
	assert.Equal(t, []float64{2.5, 1, 1}, weights)
	s, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	defer s.Close()
	infos, err := s.Devices(t.Context())
	require.NoError(t, err)
	cpus := 0
	for i := range infos {
		if infos[i].Backend == "cpu" {
			cpus++
		}
	}
	names, weights, err = expanded(t.Context(), &app.App{Session: s}, names, []float64{2.5, 3, 1})
	require.NoError(t, err)
	assert.Len(t, names, cpus+2)
	assert.Equal(t, slices.Concat([]float64{2.5}, slices.Repeat([]float64{3}, cpus), []float64{1}), weights)
	_, weights, err = weighted([]string{"cpu:0", "cpu:reference"})
	require.NoError(t, err)
	assert.Nil(t, weights)
}

// Processes of an MPI job train as members of one process do, to the bit, and go on from the same checkpoint.
func TestTrainMPI(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts processes")
	}
	launcher, err := exec.LookPath("mpirun.openmpi")
	if err != nil {
		t.Skip("Open MPI's mpirun is not here (Debian: openmpi-bin)")
	}
	t.Setenv("CONCORD_CPU_THREADS", "1")
	data, file := apptest.DigitFiles(t, 300), filepath.Join(t.TempDir(), "digits")
	args := []string{"train", "--json", "--device", "cpu:0", "--batch", "32", "--data", data}
	job := func(more ...string) map[string]any {
		one := apptest.Process(slices.Concat(args, []string{"--mpi"}, more)...)
		cmd := exec.CommandContext(t.Context(), launcher, slices.Concat([]string{"--allow-run-as-root", "--oversubscribe",
			"-np", "2"}, one.Args)...)
		cmd.Env = append(slices.Clone(one.Env), "TMPDIR=/tmp") // a short path, for the launcher's sockets
		out, err := cmd.Output()
		require.NoError(t, err, "%s", out)
		return apptest.Document(t, string(out))
	}
	losses := func(d map[string]any) any { return d["history"].(map[string]any)["TrainLoss"] }
	status, stdout, stderr := apptest.Run(slices.Concat(args, []string{"--members", "2", "--epochs", "3"})...)
	require.Equal(t, app.ExitOK, status, stderr)
	got := job("--epochs", "2", "--checkpoint", file)
	assert.Equal(t, "2 processes with cpu:0", got["device"])
	assert.Equal(t, losses(apptest.Document(t, stdout)), losses(job("--epochs", "3", "--checkpoint", file, "--resume")))

	// Processes divide a network as members of one process do, and a single device goes on from their checkpoint.
	network, parts := filepath.Join(t.TempDir(), "divided.json"), filepath.Join(t.TempDir(), "parts")
	require.NoError(t, os.WriteFile(network, []byte(`[{"layer": "flatten"},
		{"layer": "dense", "out": 33, "act": "relu", "divided": "columns"},
		{"layer": "dense", "out": 10, "divided": "rows"}]`), 0o600))
	args = append(args, "--model", network)
	status, stdout, stderr = apptest.Run(slices.Concat(args, []string{"--members", "2", "--epochs", "2"})...)
	require.Equal(t, app.ExitOK, status, stderr)
	want := losses(apptest.Document(t, stdout))
	assert.Equal(t, want, losses(job("--epochs", "2", "--checkpoint", parts)))
	status, stdout, stderr = apptest.Run(slices.Concat(args, []string{"--epochs", "3", "--checkpoint", parts,
		"--resume"})...)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Equal(t, want, losses(apptest.Document(t, stdout)).([]any)[:2])

	status, _, stderr = apptest.Run("train", "--mpi", "--members", "2")
	assert.Equal(t, app.ExitUsage, status)
	assert.Contains(t, stderr, "--mpi takes the place of --devices and --members")
}
