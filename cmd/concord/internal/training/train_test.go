package training

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/internal/mnist"
	"github.com/concord-compute/concord/internal/npy"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tensor"
)

// Training that goes on from its checkpoint ends where one ends that was not interrupted.
func TestTrain(t *testing.T) {
	data, dir := apptest.DigitFiles(t, 600), t.TempDir()
	one, two := filepath.Join(dir, "one.safetensors"), filepath.Join(dir, "two.safetensors")
	train := func(file, epochs string, more ...string) map[string]any {
		args := append([]string{"train", "--json", "--device", "cpu:0", "--batch", "32", "--data", data, "--epochs", epochs,
			"--checkpoint", file}, more...)
		status, stdout, stderr := apptest.Run(args...)
		require.Equal(t, app.ExitOK, status, stderr)
		return apptest.Document(t, stdout)
	}
	want := train(one, "3")
	assert.Equal(t, 535818.0, want["parameters"])
	assert.Greater(t, want["accuracy"], 0.7)
	train(two, "1")
	got := train(two, "3", "--resume")
	assert.Equal(t, want["loss"], got["loss"])
	assert.Equal(t, want["history"].(map[string]any)["TrainLoss"], got["history"].(map[string]any)["TrainLoss"])
	status, stdout, stderr := apptest.Run("eval", one, "--device", "cpu:0", "--data", data)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Contains(t, stdout, "of 600 images are read rightly")

	// Two images are too few to keep one for a test, and so is one.
	for _, n := range []int{1, 2} {
		status, stdout, stderr = apptest.Run("train", "--device", "cpu:0", "--data", apptest.DigitFiles(t, n), "--epochs",
			"1")
		require.Equal(t, app.ExitOK, status, stderr)
		assert.Contains(t, stdout, fmt.Sprintf("too few images to keep some for a test: %d; all of them were learned from, "+
			"for 1 epoch\n", n))
	}

	for says, args := range map[string][]string{
		"there are cnn, lstm, mlp, transformer, or FILE.json": {"train", "--model", "gan", "--device", "cpu:0"},
		"does not take examples": {"train", "--model", "mlp", "--device", "cpu:0", "--data",
			apptest.TextFile(t, "a.txt", strings.Repeat("ab", 99))},
		"neither .png nor .svg": {"train", "--plot", "x.gif"},
		"--precision f8":        {"train", "--precision", "f8"},
		"--batch 0":             {"train", "--batch", "0", "--device", "cpu:0"},
		"needs the array": {"train", "--data", apptest.TextFile(t, "x.npy", ""), "--device",
			"cpu:0"},
		"--resume needs": {"train", "--resume"},
		"they belong to --data FILE.npy": {"train", "--data", data, "--labels", "y.npy", "--device",
			"cpu:0"},
		"--checkpoint -: it has to be a file": {"train", "--checkpoint", "-"},
		"--checkpoint and --plot name one file": {"train", "--checkpoint", filepath.Join(dir, "a.svg"),
			"--plot", dir + "/./a.svg"},
		"--epochs 0: it has to be":                {"train", "--epochs", "0"},
		"--rate -1: it has to be":                 {"train", "--rate", "-1"},
		`"foo" for "--rate" flag: invalid syntax`: {"train", "--rate", "foo"},
		"own.json itself says how many there are": {
			"train", "--model", apptest.TextFile(t, "own.json", `[{"layer":"flatten"}]`), "--classes", "3", "--device", "cpu:0"},
		"none.json: nn: configuration: layer 1: 0 outputs": {
			"train", "--model", apptest.TextFile(t, "none.json", `[{"layer":"flatten"},{"layer":"dense"}]`), "--device",
			"cpu:0"},
		"--classes 10: a text has 256": {"train", "--model", "lstm", "--classes", "10", "--device",
			"cpu:0", "--data", apptest.TextFile(t, "b.txt", strings.Repeat("ab", 99))},
		"--classes 0: it has to be": {"train", "--classes", "0", "--device", "cpu:0", "--data",
			data},
		"--prompt is empty":           {"predict", one, "--prompt", ""},
		"--length is for a text":      {"predict", one, "--length", "3"},
		"--temperature is for a text": {"predict", one, "--temperature", "0.7"},
		"--seed is for a text":        {"predict", one, "--data", "x.npy", "--seed", "2"},
		"--batch is for examples":     {"predict", one, "--prompt", "a", "--batch", "2"},
	} {
		status, _, stderr := apptest.Run(args...)
		assert.Equal(t, app.ExitUsage, status, says)
		assert.Contains(t, stderr, says)
	}
	for precision, want := range map[string]string{"auto": "f32", "bf16": "bf16"} {
		status, stdout, stderr := apptest.Run("train", "--json", "--device", "cpu:0", "--data", data, "--epochs", "1",
			"--precision", precision, "--batch", "auto")
		require.Equal(t, app.ExitOK, status, stderr)
		d := apptest.Document(t, stdout)
		assert.Equal(t, []any{want, 8.0}, []any{d["precision"], d["batch"]}, "480 images teach")
	}
	for says, args := range map[string][]string{
		"label 481 is 9, of 5 classes; --classes says": {"train", "--classes", "5", "--device", "cpu:0", "--data", data},
		"it needs --prompt":                            {"predict", one, "--model", "transformer", "--device", "cpu:0"},
		"two.txt is no checkpoint of train, so that": {"train", "--checkpoint", apptest.TextFile(t, "two.txt", "old"),
			"--device",
			"cpu:0"},
	} {
		status, _, stderr := apptest.Run(args...)
		assert.Equal(t, app.ExitFailed, status, says)
		assert.Contains(t, stderr, says)
	}
	fixed := apptest.TextFile(t, "fixed.svg", "<svg/>")
	require.NoError(t, os.Chmod(fixed, 0o444))
	status, stdout, stderr = apptest.Run("train", "--device", "cpu:0", "--data", data, "--epochs", "1", "--plot", fixed)
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "permission denied")
	assert.Empty(t, stdout, "this is found before the work")
	picture := filepath.Join(dir, "one.svg")
	status, stdout, stderr = apptest.Run("plot", one, "--out", picture)
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Empty(t, stdout)
	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	for _, text := range []string{"<svg", "one.safetensors", "loss, training", "loss, validation",
		"accuracy, validation"} {
		assert.Contains(t, string(svg), text)
	}
	status, stdout, _ = apptest.Run("plot", one)
	assert.Equal(t, app.ExitOK, status)
	assert.Len(t, strings.Split(strings.TrimSpace(stdout), "\n"), 4, "a head and three epochs")
	_, stdout, _ = apptest.Run("plot", one, "--json")
	assert.Equal(t, want["history"].(map[string]any)["ValLoss"], apptest.Document(t, stdout)["ValLoss"])

	network := apptest.TextFile(t, "network.json", `[{"layer": "flatten"}, {"layer": "dense", "out": 10}]`)
	probabilities := filepath.Join(dir, "p.npy")
	status, stdout, stderr = apptest.Run("predict", one, "--device", "cpu:0", "--data", data, "--batch", "256", "--out",
		probabilities)
	require.Equal(t, app.ExitOK, status, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 600)
	array, err := npy.ReadFile(probabilities)
	require.NoError(t, err)
	assert.Equal(t, []int{600, 10}, array.Shape)
	labels, err := mnist.Labels()
	require.NoError(t, err)
	right := 0
	for i, line := range lines {
		fields := strings.Split(line, "\t")
		require.Equal(t, strconv.Itoa(i), fields[0])
		class, err := strconv.Atoi(fields[1])
		require.NoError(t, err)
		if class == int(labels[i]) {
			right++
		}
		p := math.Float32frombits(binary.LittleEndian.Uint32(array.Data[4*(10*i+class):]))
		assert.Equal(t, fmt.Sprintf("%.6f", p), fields[2])
	}
	assert.Greater(t, right, 450)

	for says, args := range map[string][]string{
		"not a checkpoint": {
			"plot", apptest.TextFile(t, "empty.safetensors", "\x02\x00\x00\x00\x00\x00\x00\x00{}")},
		"the length of a header, which has at most": {"plot", apptest.TextFile(t, "notes.txt", "These are notes.")},
		"a checkpoint, the file that train":         {"plot", network},
		"it has to be a checkpoint":                 {"predict", network, "--data", data, "--device", "cpu:0"},
		"open nosuch":                               {"plot", "nosuch"},
		"stat nosuch":                               {"predict", one, "--data", "nosuch", "--device", "cpu:0"},
		"learning rate": {"train", "--device", "cpu:0", "--batch", "32", "--data", data,
			"--checkpoint", one, "--resume", "--rate", "1"},
		"no such file":      {"eval", filepath.Join(dir, "none.safetensors"), "--device", "cpu:0"},
		"no regular file":   {"predict", one, "--data", "/dev/zero", "--device", "cpu:0"},
		"--model cnn names": {"eval", one, "--model", "cnn", "--device", "cpu:0", "--data", data},
	} {
		status, _, stderr := apptest.Run(args...)
		assert.Equal(t, app.ExitFailed, status, says)
		assert.Contains(t, stderr, says)
	}
}

// Classes of further examples take no further memory of the device.
func TestProbabilitiesAreFreed(t *testing.T) {
	a := app.New(io.Discard, io.Discard)
	l := flags{data: apptest.DigitFiles(t, 100), model: "mlp", device: "cpu:0", classes: 10, given: func(string) bool {
		return false
	}}
	st, d, err := openNetwork(t.Context(), a, &l, func(s *tensor.Scope) (dataset, error) {
		return l.dataset(t.Context(), s, false)
	})
	require.NoError(t, err)
	defer a.Close(t.Context())
	defer st.close()
	var live []int64
	for first := range 3 {
		rows, err := st.probabilities(t.Context(), d.X, 30*first, 30)
		require.NoError(t, err)
		require.Len(t, rows, 300)
		live = append(live, st.dev.Stats().Live)
	}
	assert.Equal(t, live[0], live[2])
}

// A text is learned by two networks, and continued.
func TestTrainOnText(t *testing.T) {
	text := apptest.TextFile(t, "a.txt", strings.Repeat("The quick brown fox jumps over the lazy dog. ", 100))
	for _, model := range []string{"lstm", "transformer"} {
		file := filepath.Join(t.TempDir(), "text.safetensors")
		status, stdout, stderr := apptest.Run("train", "--json", "--device", "cpu:0", "--data", text, "--model", model,
			"--epochs", "8", "--rate", "0.01", "--checkpoint", file)
		require.Equal(t, app.ExitOK, status, stderr)
		d := apptest.Document(t, stdout)
		assert.Less(t, d["perplexity"], 1.5, model)
		assert.InDelta(t, math.Exp(d["loss"].(float64)), d["perplexity"], 1e-9)
		assert.NotContains(t, stdout, `"perplexity": null`)
		status, stdout, stderr = apptest.Run("predict", file, "--device", "cpu:0", "--model", model, "--prompt",
			"The quick brown fox ", "--length", "16", "--temperature", "0")
		require.Equal(t, app.ExitOK, status, stderr)
		assert.Equal(t, "The quick brown fox jumps over the l\n", stdout, model)
		status, stdout, stderr = apptest.Run("predict", file, "--json", "--device", "cpu:0", "--model", model, "--data", text,
			"--length", "5")
		require.Equal(t, app.ExitOK, status, stderr)
		assert.Len(t, []rune(apptest.Document(t, stdout)["text"].(string)), 5)
		status, stdout, _ = apptest.Run("eval", file, "--device", "cpu:0", "--data", text, "--model", model)
		assert.Equal(t, app.ExitOK, status)
		assert.Contains(t, stdout, "perplexity 1.")
	}
	status, stdout, stderr := apptest.Run("train", "--device", "cpu:0", "--data", text, "--model", "lstm", "--checkpoint",
		filepath.Join(t.TempDir(), "none", "text.safetensors"))
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "no such file")
	assert.Empty(t, stdout, "it is said before the work")
	status, _, stderr = apptest.Run("train", "--device", "cpu:0", "--model", "lstm", "--data", apptest.TextFile(t, "b.txt",
		"short"))
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "a text of 5 bytes")
}

// Arrays of NumPy are learned by a network that a file describes, and the rows of images by networks of sequences.
func TestTrainOnArrays(t *testing.T) {
	dir := t.TempDir()
	x, y := filepath.Join(dir, "x.npy"), filepath.Join(dir, "y.npy")
	const n = 120
	points, labels := make([]float32, 2*n), make([]int64, n)
	for i := range n {
		points[2*i], points[2*i+1], labels[i] = rand.Float32(), rand.Float32(), int64(i%3)
		points[2*i] += float32(i % 3)
	}
	write := func(file string, a npy.Array, data any) {
		var err error
		a.Data, err = binary.Append(nil, binary.LittleEndian, data)
		require.NoError(t, err)
		require.NoError(t, npy.WriteFile(file, a))
	}
	write(x, npy.Array{Type: driver.F32, Shape: []int{n, 2}}, points)
	write(y, npy.Array{Type: driver.I64, Shape: []int{n}}, labels)
	network := apptest.TextFile(t, "network.json",
		`[{"layer": "dense", "out": 16, "act": "tanh"}, {"layer": "dense", "out": 3}]`)
	status, stdout, stderr := apptest.Run("train", "--json", "--device", "cpu:0", "--data", x, "--labels", y, "--model",
		network, "--batch", "8", "--epochs", "40", "--rate", "0.03")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Greater(t, apptest.Document(t, stdout)["accuracy"], 0.8)

	labels[7] = 3
	write(y, npy.Array{Type: driver.I64, Shape: []int{n}}, labels)
	status, _, stderr = apptest.Run("train", "--device", "cpu:0", "--data", x, "--labels", y, "--model", network)
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "label 7 is 3, of 3 classes")
	status, _, stderr = apptest.Run("train", "--device", "cpu:0", "--data", x, "--labels", y, "--model",
		apptest.TextFile(t, "n.json", `[{"layer":"dense","width":3}]`))
	assert.Equal(t, app.ExitUsage, status)
	assert.Contains(t, stderr, `n.json: nn: configuration: network[0]: dense has no field "width"; it has`)

	data := apptest.DigitFiles(t, 600)
	for _, model := range []string{"lstm", "transformer"} {
		status, stdout, stderr := apptest.Run("train", "--json", "--device", "cpu:0", "--data", data, "--model", model,
			"--batch",
			"32", "--epochs", "8", "--rate", "0.003")
		require.Equal(t, app.ExitOK, status, stderr)
		assert.Greater(t, apptest.Document(t, stdout)["accuracy"], 0.6, model)
	}
}

// A process that is killed leaves a whole checkpoint.
func TestTrainIsKilled(t *testing.T) {
	data, file := apptest.DigitFiles(t, 100), filepath.Join(t.TempDir(), "digits.safetensors")
	args := []string{"train", "--device", "cpu:0", "--batch", "32", "--data", data, "--epochs", "100000", "--checkpoint",
		file}
	for i := range 5 {
		cmd := apptest.Process(args...)
		require.NoError(t, cmd.Start())
		for begin := time.Now(); ; time.Sleep(time.Millisecond) {
			if _, err := os.Stat(file); err == nil || time.Since(begin) > time.Minute {
				break
			}
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		assert.Error(t, cmd.Wait())
		status, stdout, stderr := apptest.Run("eval", file, "--json", "--device", "cpu:0", "--data", data)
		require.Equal(t, app.ExitOK, status, strconv.Itoa(i)+": "+stderr)
		assert.Equal(t, 100.0, apptest.Document(t, stdout)["examples"])
		if i == 0 {
			args = append(args, "--resume")
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".concord-*"))
	require.NoError(t, err)
	if goruntime.GOOS == "linux" {
		assert.LessOrEqual(t, len(left), 1, "what the last one left, and no more")
	}
}

// An interrupted training says once whether its checkpoint was written, also one of members: it fails if a member that
// writes nothing answers for the one that does.
func TestTrainIsInterrupted(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("there is no signal for Ctrl-C")
	}
	data, network := apptest.DigitFiles(t, 300), filepath.Join(t.TempDir(), "divided.json")
	require.NoError(t, os.WriteFile(network, []byte(`[{"layer": "flatten"}, {"layer": "dense", "out": 8, "act": "relu",
		"divided": "columns"}, {"layer": "dense", "out": 10, "divided": "rows"}]`), 0o600))
	for _, more := range [][]string{nil, {"--members", "2"}, {"--members", "2", "--model", network}} {
		for _, lost := range []bool{false, true} { // the directory
			divided := len(more) > 2
			if lost && divided { // which writes nothing
				continue
			}
			file := filepath.Join(t.TempDir(), "own", "digits.safetensors")
			require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
			var said bytes.Buffer
			cmd := apptest.Process(append([]string{"train", "--device", "cpu:0", "--batch", "1", "--data", data, "--epochs",
				"100000", "--checkpoint", file}, more...)...)
			cmd.Stderr = &said
			require.NoError(t, cmd.Start())
			assert.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, time.Minute, time.Millisecond)
			if lost {
				assert.NoError(t, os.RemoveAll(filepath.Dir(file)))
			}
			require.NoError(t, cmd.Process.Signal(os.Interrupt))
			require.Error(t, cmd.Wait())
			learned := " has what was learned, from which the same command with --resume goes on"
			if divided { // no member is left that could send its part
				learned = " has what was learned up to the last epoch that was over"
			}
			if lost {
				assert.NotContains(t, said.String(), learned, more)
				assert.Contains(t, said.String(), "no such file", more)
				continue
			}
			assert.Equal(t, 1, strings.Count(said.String(), file+learned), "%v: %s", more, said.String())
		}
	}
}
