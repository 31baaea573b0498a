// Package apptest runs commands of concord in tests, in this process and in others.
package apptest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/internal/mnist"
	_ "github.com/concord-compute/concord/runtime/all" // every backend of this build
)

// commands are those that the tests of a package run.
var commands []app.Command

// ChildDies is a variable that makes a child of the tests die as it says.
const ChildDies = "_CONCORD_TEST_CHILD_DIES"

// AsCommand is a variable that makes this binary the command itself.
const AsCommand = "_CONCORD_TEST_COMMAND"

// Process is the command in a process of its own.
func Process(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), AsCommand+"=1")
	return cmd
}

// Main is the TestMain of a package whose tests run those commands. It gives the tests a cache of their own, and is
// the command itself where that starts this binary again. It does not return.
func Main(m *testing.M, list ...app.Command) {
	commands = list
	if app.IsChild() {
		switch os.Getenv(ChildDies) {
		case "signal":
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Kill() // it does not return
			}
			select {}
		case "panic":
			panic("as the runtime ends a program")
		}
	}
	if app.IsChild() || os.Getenv(AsCommand) != "" {
		app.Main(commands...)
	}
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "CONCORD_") && name != "CONCORD_REQUIRE" {
			os.Unsetenv(name)
		}
	}
	dir, err := os.MkdirTemp("", "concord-test-")
	if err != nil {
		panic(err)
	}
	os.Setenv("CONCORD_CACHE_DIR", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// Run runs a command in this process.
func Run(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = app.Run(args, &out, &errs, commands...)
	return status, out.String(), errs.String()
}

// Document checks that a text is exactly one JSON object, and returns it.
func Document(t *testing.T, text string) map[string]any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	var doc map[string]any
	require.NoError(t, dec.Decode(&doc), "standard output is %q", text)
	_, err := dec.Token()
	require.ErrorIs(t, err, io.EOF, "nothing comes after the document")
	return doc
}

// TextFile writes a text into a temporary directory.
func TextFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// NeedsCompiler skips where portable programs cannot run, and says why. It runs the command compile.
func NeedsCompiler(t *testing.T) {
	t.Helper()
	cl := TextFile(t, "nothing.cl", "kernel void k(global int *x) {}")
	if status, _, stderr := Run("compile", "--target", "host", cl); status != app.ExitOK {
		require.Contains(t, stderr, "not supported here", "only a missing compiler may keep this from running")
		t.Skip(stderr)
	}
}

// NeedsOpenCL skips where there is no OpenCL device. It runs the command devices.
func NeedsOpenCL(t *testing.T) {
	t.Helper()
	_, stdout, _ := Run("devices", "--json")
	for _, e := range Document(t, stdout)["devices"].([]any) {
		entry := e.(map[string]any)
		if entry["backend"] == "opencl" && entry["state"] == "available" {
			return
		}
	}
	t.Skip("no OpenCL device")
}

// DigitFiles is a directory with the first n images, in MNIST's format.
func DigitFiles(t *testing.T, n int) string {
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

// ExitCode returns the exit status in the error of a process, or 0.
func ExitCode(err error) int {
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	return 0
}
