//go:build unix

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/internal/stdio"
)

// printing returns for every command arguments with which it succeeds and prints.
func printing(t *testing.T) map[string][]string {
	dir := t.TempDir()
	bundle, trace, events := filepath.Join(dir, "all.bundle"), filepath.Join(dir, "demo.trace"),
		filepath.Join(dir, "trace.json")
	cl := apptest.TextFile(t, "k.cl", "kernel void k(global int *x) { x[0] = 1; }")
	network, digits, index := filepath.Join(dir, "digits.safetensors"), apptest.DigitFiles(t, 100),
		filepath.Join(dir, "digits.ann")
	model, tuned := filepath.Join(dir, "digits.gguf"), filepath.Join(dir, "tuned.json")
	for _, args := range [][]string{
		{"compile", "--target", "host", cl},
		{"cache", "export", bundle},
		{"train", "--device", "cpu:0", "--data", digits, "--epochs", "1", "--checkpoint", network},
		{"search", "build", "--vectors", "mnist", "--out", index},
		{"quantize", network, model, "--format", "Q8_0"},
		{"trace", "memory", "--record", trace, "--", os.Args[0], "doctor"},
		{"tune", "costs"},
		{"tune", "export", tuned},
		{"trace", "run", "--out", events, "--", os.Args[0], "doctor"},
	} {
		text, err := apptest.Process(args...).CombinedOutput()
		require.NoError(t, err, "%v: %s", args, text)
	}
	return map[string][]string{
		"devices":               {},
		"top":                   {"--count", "1"},
		"doctor":                {},
		"demo":                  {"--device", "cpu:0"},
		"translate":             {"--to", "cuda", cl},
		"compile":               {"--target", "host", cl},
		"occupancy":             {"--target", "cpu:0", cl},
		"run":                   {"--device", "cpu:0", "--global", "1", "--arg", "zeros:i32:1", "--timeout", "5m", cl},
		"train":                 {"--device", "cpu:0", "--data", digits, "--epochs", "1"},
		"eval":                  {network, "--device", "cpu:0", "--data", digits},
		"predict":               {network, "--device", "cpu:0", "--data", digits},
		"plot":                  {network},
		"quantize":              {network, filepath.Join(dir, "other.gguf"), "--format", "Q4_0", "--report"},
		"gguf ls":               {model},
		"gguf check":            {model},
		"gguf convert":          {model, filepath.Join(dir, "digits-32.safetensors")},
		"tensor":                {filepath.Join("..", "..", "internal", "npy", "testdata", "vector.npy")},
		"kernels":               {"softmax"},
		"explain":               {"--passes", "x.gelu() * x", "x=f32[100]"},
		"parity":                {"--device", "cpu:0", "--kernel", "fill"},
		"verify":                {"cpu:0", "--only", "quantized", "--minutes", "2", "--out", filepath.Join(dir, "verified")},
		"bench":                 {"launch", "--device", "cpu:0"},
		"bench train":           {"--size", "S", "--device", "cpu:0", "--time", "0s"},
		"cache stats":           {},
		"cache list":            {},
		"cache verify":          {},
		"cache clear":           {},
		"cache export":          {bundle},
		"cache import":          {bundle},
		"search build":          {"--vectors", "mnist", "--out", filepath.Join(dir, "other.ann")},
		"search query":          {index, "--queries", "mnist", "--limit", "2"},
		"search info":           {index},
		"search verify":         {index},
		"search serve":          {index, "--listen", "127.0.0.1:0", "--for", "10ms"},
		"search bench":          {index, "--queries", "mnist", "--limit", "20"},
		"trace memory":          {trace},
		"trace run":             {"--", "/bin/sh", "-c", `"$0" doctor >/dev/null`, os.Args[0]},
		"trace show":            {events},
		"tune":                  {"gemm f32", "--size", "64", "--minutes", "0.05", "--try"},
		"tune list":             {},
		"tune show":             {},
		"tune export":           {filepath.Join(dir, "table.json")},
		"tune pin":              {filepath.Join(dir, "table.json")},
		"tune import":           {tuned},
		"tune reset":            {},
		"help":                  {"run"},
		"completion bash":       {},
		"completion zsh":        {},
		"completion fish":       {},
		"completion powershell": {},
	}
}

// leaves lists the commands that do something.
func leaves(cmd *cobra.Command) (list []*cobra.Command) {
	for _, c := range cmd.Commands() {
		list = append(list, leaves(c)...)
		if !c.HasSubCommands() || len(c.ValidArgs) > 0 {
			list = append(list, c)
		}
	}
	return list
}

// A failed write makes every command fail with the reason.
func TestOutputLost(t *testing.T) {
	apptest.NeedsCompiler(t)
	root := app.New(io.Discard, io.Discard).Root(commands...)
	args := printing(t)
	lines := [][]string{{"--version"}, {"--help"}, {"__complete", ""}}
	for _, cmd := range leaves(root) {
		name := strings.TrimPrefix(cmd.CommandPath(), root.Name()+" ")
		more, ok := args[name]
		require.True(t, ok, "%s is tried", name)
		line := append(strings.Fields(name), more...)
		lines = append(lines, line)
		if !testing.Short() { // all commands print their help in the same way
			lines = append(lines, append(strings.Fields(name), "--help"))
		}
		if cmd.Flags().Lookup("json") != nil && name != "demo" {
			lines = append(lines, append(line, "--json"))
		}
	}
	for _, line := range lines {
		t.Run(strings.Join(line, " "), func(t *testing.T) {
			slow := line[0] == "demo" && len(line) > 2 // seconds each time; a test of its own shows what it prints
			if !slow {
				out, err := apptest.Process(line...).Output()
				require.NoError(t, err, "it succeeds elsewhere")
				require.NotEmpty(t, out, "and prints")
			}
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err == nil { // Linux
				defer full.Close()
				cmd := apptest.Process(line...)
				cmd.Stdout = full
				lost(t, cmd, "standard output: no space left on device")
			}
			if stdio.Knows && !slow {
				shell := exec.Command("/bin/sh", append([]string{"-c", `exec "$0" "$@" >&-`}, apptest.Process(line...).Args...)...)
				shell.Env = append(os.Environ(), apptest.AsCommand+"=1")
				lost(t, shell, "standard output: file already closed")
			}
		})
	}
}

func lost(t *testing.T, cmd *exec.Cmd, says string) {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	assert.Equal(t, app.ExitFailed, apptest.ExitCode(cmd.Run()), "%s", &stderr)
	assert.Equal(t, 1, strings.Count(stderr.String(), says), "it says once: %s", &stderr)
	assert.NotContains(t, stderr.String(), "interrupted")
}

// A reader that has seen enough ends the work, without a word.
func TestOutputUnread(t *testing.T) {
	near, far, err := os.Pipe()
	require.NoError(t, err)
	cmd := apptest.Process("top", "--interval", "10ms")
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = far, &stderr
	require.NoError(t, cmd.Start())
	far.Close()
	_, err = near.Read(make([]byte, 1))
	require.NoError(t, err)
	near.Close()
	timer := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	assert.Equal(t, app.ExitPipe, apptest.ExitCode(cmd.Wait()))
	assert.Empty(t, stderr.String())
}

// Wrong usage and failed work keep their exit status, and the output's end is told too.
func TestOutputLostAndFailed(t *testing.T) {
	for _, tc := range []struct {
		status int
		err    error
		args   []string
	}{
		{app.ExitUsage, syscall.ENOSPC, []string{"run", "--json", "x.cl"}},
		{app.ExitFailed, syscall.ENOSPC, []string{"translate", "--to", "host", "missing.cl"}},
		{app.ExitFailed, syscall.EPIPE, []string{"compile", "--target", "sm_1", "--json", "missing.cl"}},
	} {
		var stderr strings.Builder
		assert.Equal(t, tc.status, app.Run(tc.args, broken{tc.err}, &stderr, commands...))
		assert.NotEmpty(t, stderr.String())
	}
	var stderr strings.Builder
	assert.Equal(t, app.ExitOK, app.Run([]string{"cache", "stats"}, io.Discard, broken{syscall.ENOSPC}, commands...),
		"what people look at may be lost")
	assert.Empty(t, stderr.String())
}

// broken is an output that fails.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }
