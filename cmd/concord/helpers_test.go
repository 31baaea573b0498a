package main

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

	"github.com/concord-compute/concord/internal/mnist"
)

// childDies is a variable that makes a child of the tests die as it says.
const childDies = "_CONCORD_TEST_CHILD_DIES"

// asCommand is a variable that makes this binary the command itself.
const asCommand = "_CONCORD_TEST_COMMAND"

// commandProcess is the command in a process of its own.
func commandProcess(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return cmd
}

// TestMain gives the tests a cache of their own, and is the command itself where
// run starts this binary again.
func TestMain(m *testing.M) {
	if isChild() {
		switch os.Getenv(childDies) {
		case "signal":
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Kill() // it does not return
			}
			select {}
		case "panic":
			panic("as the runtime ends a program")
		}
	}
	if isChild() || os.Getenv(asCommand) != "" {
		main()
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

// concord runs the command.
func concord(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(args, &out, &errs)
	return status, out.String(), errs.String()
}

// document checks that a text is exactly one JSON object, and returns it.
func document(t *testing.T, text string) map[string]any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	var doc map[string]any
	require.NoError(t, dec.Decode(&doc), "standard output is %q", text)
	_, err := dec.Token()
	require.ErrorIs(t, err, io.EOF, "nothing comes after the document")
	return doc
}

// textFile writes a text into a temporary directory.
func textFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// needsCompiler skips where portable programs cannot run, and says why.
func needsCompiler(t *testing.T) {
	t.Helper()
	cl := textFile(t, "nothing.cl", "kernel void k(global int *x) {}")
	if status, _, stderr := concord("compile", "--target", "host", cl); status != exitOK {
		require.Contains(t, stderr, "not supported here", "only a missing compiler may keep this from running")
		t.Skip(stderr)
	}
}

func needsOpenCL(t *testing.T) {
	t.Helper()
	_, stdout, _ := concord("devices", "--json")
	for _, e := range document(t, stdout)["devices"].([]any) {
		entry := e.(map[string]any)
		if entry["backend"] == "opencl" && entry["state"] == "available" {
			return
		}
	}
	t.Skip("no OpenCL device")
}

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

func exitCode(err error) int {
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	return 0
}
