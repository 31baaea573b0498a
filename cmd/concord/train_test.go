package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/mnist"
)

// digitFiles is a directory with the first n images, in MNIST's format.
func digitFiles(t *testing.T, n int) string {
	images, err := mnist.Images()
	require.NoError(t, err)
	labels, err := mnist.Labels()
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name string, data []byte, head ...uint32) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		require.NoError(t, binary.Write(z, binary.BigEndian, head))
		_, err := z.Write(data)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o600))
	}
	write("t10k-images-idx3-ubyte.gz", images.Pixels[:n*784], 0x803, uint32(n), 28, 28)
	write("t10k-labels-idx1-ubyte.gz", labels[:n], 0x801, uint32(n))
	return dir
}

// Training that goes on from its checkpoint ends where one ends that was not interrupted.
func TestTrain(t *testing.T) {
	data, dir := digitFiles(t, 600), t.TempDir()
	one, two := filepath.Join(dir, "one.safetensors"), filepath.Join(dir, "two.safetensors")
	train := func(file, epochs string, more ...string) map[string]any {
		args := append([]string{"train", "--json", "--device", "cpu:0", "--batch", "32", "--data", data, "--epochs", epochs, "--checkpoint", file}, more...)
		status, stdout, stderr := concord(args...)
		require.Equal(t, exitOK, status, stderr)
		return document(t, stdout)
	}
	want := train(one, "3")
	assert.Equal(t, 535818.0, want["parameters"])
	assert.Greater(t, want["accuracy"], 0.7)
	train(two, "1")
	got := train(two, "3", "--resume")
	assert.Equal(t, want["loss"], got["loss"])
	assert.Equal(t, want["history"].(map[string]any)["TrainLoss"], got["history"].(map[string]any)["TrainLoss"])
	status, stdout, stderr := concord("eval", one, "--device", "cpu:0", "--data", data)
	require.Equal(t, exitOK, status, stderr)
	assert.Contains(t, stdout, "of 600 images are read rightly")

	// Two images are too few to keep one for a test.
	status, stdout, stderr = concord("train", "--device", "cpu:0", "--data", digitFiles(t, 2), "--epochs", "1")
	require.Equal(t, exitOK, status, stderr)
	assert.Contains(t, stdout, "2 images are too few")

	for says, args := range map[string][]string{
		"there are cnn and mlp": {"train", "--model", "gan"},
		"--resume needs":        {"train", "--resume"},
		"Epochs is 0":           {"train", "--epochs", "0", "--device", "cpu:0"},
	} {
		status, _, stderr := concord(args...)
		assert.Equal(t, exitUsage, status, says)
		assert.Contains(t, stderr, says)
	}
	for says, args := range map[string][]string{
		"learning rate": {"train", "--device", "cpu:0", "--batch", "32", "--data", data, "--checkpoint", one, "--resume", "--rate", "1"},
		"no such file":  {"eval", filepath.Join(dir, "none.safetensors"), "--device", "cpu:0"},
		"has no":        {"eval", one, "--model", "cnn", "--device", "cpu:0", "--data", data},
	} {
		status, _, stderr := concord(args...)
		assert.Equal(t, exitFailed, status, says)
		assert.Contains(t, stderr, says)
	}
}

// A process that is killed leaves a whole checkpoint.
func TestTrainIsKilled(t *testing.T) {
	data, file := digitFiles(t, 100), filepath.Join(t.TempDir(), "digits.safetensors")
	args := []string{"train", "--device", "cpu:0", "--batch", "32", "--data", data, "--epochs", "100000", "--checkpoint", file}
	for i := range 5 {
		cmd := commandProcess(args...)
		require.NoError(t, cmd.Start())
		for begin := time.Now(); ; time.Sleep(time.Millisecond) {
			if _, err := os.Stat(file); err == nil || time.Since(begin) > time.Minute {
				break
			}
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		assert.Error(t, cmd.Wait())
		status, stdout, stderr := concord("eval", file, "--json", "--device", "cpu:0", "--data", data)
		require.Equal(t, exitOK, status, strconv.Itoa(i)+": "+stderr)
		assert.Equal(t, 100.0, document(t, stdout)["examples"])
		if i == 0 {
			args = append(args, "--resume")
		}
	}
}
