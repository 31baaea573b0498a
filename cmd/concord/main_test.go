package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
)

var update = flag.Bool("update", false, "write docs/commands.md instead of comparing it")

func TestMain(m *testing.M) { apptest.Main(m, commands...) }

func TestUsageLines(t *testing.T) {
	for want, args := range map[string][]string{
		"concord COMMAND [flags]":                 {"--help"},
		"concord cache COMMAND [flags]":           {"help", "cache"},
		"concord doctor [flags]":                  {"doctor", "--help"},
		"concord compile --target T FILE [flags]": {"help", "compile"},
	} {
		status, stdout, stderr := apptest.Run(args...)
		require.Equal(t, app.ExitOK, status, stderr)
		assert.Contains(t, stdout, "\nUsage:\n  "+want+"\n\n")
		assert.NotContains(t, stdout, "[command]")
	}
}

func TestUsage(t *testing.T) {
	cl := apptest.TextFile(t, "k.cl", "kernel void k(global int *x) { x[0] = 1; }")
	for _, args := range [][]string{
		{},
		{"frobnicate"},
		{"--frobnicate"},
		{"devices", "extra"},
		{"cache"},
		{"cache", "frobnicate"},
		{"completion"},
		{"completion", "frobnicate"},
		{"completion", "bash", "extra"},
		{"trace", "frobnicate"},
		{"translate", cl},
		{"translate", "--to", "fortran", cl},
		{"translate", "--to", "host"},
		{"translate", "--to", "host", "-D", "1x=2", cl},
		{"compile", cl},
		{"compile", "--target", "toaster", cl},
		{"kernels", "soft"},
		{"occupancy", cl},
		{"occupancy", "--target", "sm_90", "--group", "0", cl},
		{"occupancy", "--target", "sm_90", "--group", "64,x", cl},
		{"occupancy", "--target", "sm_90", "--local", "-1", cl},
		{"occupancy", "--target", "toaster", cl},
		{"run", cl},
		{"run", "--global", "0", cl},
		{"run", "--global", "1,2,3,4", cl},
		{"run", "--global", "8", "--local", "x", cl},
		{"run", "--global", "8", "--arg", "7", cl},
		{"run", "--global", "8", "--arg", "i32:x", cl},
		{"run", "--global", "8", "--arg", "zeros:i32:4", "--out", "1=x.npy", cl},
		{"run", "--global", "8", "--arg", "zeros:i32:4", "--out", "x.npy", cl},
		{"run", "--global", "8", "--timeout", "-1s", cl},
		{"run", "--global", "8", "--timeout", "soon", cl},
		{"run", "--global", "8", "--device", "toaster:0", cl},
		{"run", "--global", "8", "--device", "cpu:x", cl},
		{"run", "--global", "8", "--device", "cpu:-1", cl},
		{"run", "--global", "8", "--device=-1", cl},
		{"compile", "--target", "cpu:x", cl},
		{"bench", "--device", "cpu:x"},
		{"parity", "--device", "cpu:"},
		{"help", "nosuch"},
		{"help", "cache", "nosuch"},
		{"parity", "--kernel", "frobnicate"},
		{"bench", "frobnicate"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			status, stdout, stderr := apptest.Run(args...)
			assert.Equal(t, app.ExitUsage, status)
			assert.Empty(t, stdout)
			assert.Contains(t, stderr, "--help", "it says where to read on")
		})
	}
}

// A wrong number of arguments is told with the arguments' names.
func TestUsageNamesArguments(t *testing.T) {
	for says, args := range map[string][]string{
		"concord tensor FILE..., and not with 0 arguments": {"tensor"},
		"concord eval FILE, and not with 2 arguments":      {"eval", "a", "b"},
		"concord cache export FILE":                        {"cache", "export"},
	} {
		status, _, stderr := apptest.Run(args...)
		assert.Equal(t, app.ExitUsage, status)
		assert.Contains(t, stderr, "it is called as "+says)
	}
}

func TestFailures(t *testing.T) {
	cl := apptest.TextFile(t, "k.cl", "kernel void k(global int *x) { x[0] = 1; }")
	bad := apptest.TextFile(t, "bad.cl", "kernel void k(global int *x) {\n  x[0] = nothing;\n}")
	empty, includes := apptest.TextFile(t, "empty.cl", ""), apptest.TextFile(t, "includes.cl", "#include \"no.h\"\n")
	for _, tc := range []struct {
		says string
		args []string
	}{
		{"no such file", []string{"translate", "--to", "host", "missing.cl"}},
		{"bad.cl:2:10", []string{"translate", "--to", "host", bad}},
		{"-I missing", []string{"translate", "--to", "host", "-I", "missing", cl}},
		{"sm_1", []string{"compile", "--target", "sm_1", cl}},
		{"architecture \"toaster\"", []string{"compile", "--target", "hipcc:toaster", cl}},
		{"no such file", []string{"run", "--global", "1", "k.cu"}},
		{"read from a file beside it", []string{"compile", "--target", "host", apptest.TextFile(t, "alone.cu", "")}},
		{"no kernel in this file", []string{"compile", "--target", "host", empty}},
		{"no kernel in this file", []string{"run", "--global", "1", empty}},
		{
			"both marked kernel and defined", []string{
				"compile", "--target", "host", apptest.TextFile(t, "declared.cl", "kernel void k(global int *o);")}},
		{"not found in " + filepath.Dir(includes) + ", " + filepath.Dir(empty) + " (-I adds",
			[]string{"compile", "--target", "host", "-I", filepath.Dir(empty), includes}},
		{"nowhere.bundle: no such file", []string{"cache", "export", filepath.Join("missing", "nowhere.bundle")}},
		{"there are cpu:0, cpu:reference", []string{"run", "--device", "cpu:1", "--global", "1", cl}},
		{"cpu:9", []string{"run", "--device", "cpu:9", "--global", "1", cl}},
		{"not in this build", []string{"run", "--device", "metal:0", "--global", "1", cl}},
		{"k.cl has k", []string{"run", "--device", "cpu:0", "--kernel", "other", "--global", "1", cl}},
		{"0 arguments for the 1 parameters", []string{"run", "--device", "cpu:0", "--global", "1", cl}},
		{"argument 0 (@missing.npy)", []string{"run", "--device", "cpu:0", "--global", "1", "--arg", "@missing.npy", cl}},
		{"argument 0 (@" + cl, []string{"run", "--device", "cpu:0", "--global", "1", "--arg", "@" + cl, cl}},
		{"elements of type int, not f32", []string{"run", "--device", "cpu:0", "--global", "1", "--arg", "zeros:f32:4", cl}},
		{"takes a buffer", []string{"run", "--device", "cpu:0", "--global", "1", "--arg", "i32:4", cl}},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			status, stdout, stderr := apptest.Run(tc.args...)
			assert.Equal(t, app.ExitFailed, status)
			assert.Empty(t, stdout)
			assert.Contains(t, stderr, tc.says)
		})
	}
}

// Whatever happens, standard output is one document.
func TestJSON(t *testing.T) {
	cl := apptest.TextFile(t, "k.cl", "kernel void k(global int *x) { x[0] = 1; }")
	for _, tc := range []struct {
		status int
		has    string
		args   []string
	}{
		{app.ExitOK, "devices", []string{"devices", "--json"}},
		{app.ExitOK, "checks", []string{"doctor", "--json"}},
		{app.ExitOK, "dir", []string{"cache", "stats", "--json"}},
		{app.ExitOK, "entries", []string{"cache", "list", "--json"}},
		{app.ExitOK, "corrupt", []string{"cache", "verify", "--json"}},
		{app.ExitOK, "results", []string{"parity", "--device", "cpu:0", "--kernel", "fill", "--json"}},
		{app.ExitOK, "results", []string{"bench", "launch", "--device", "cpu:0", "--json"}},
		{app.ExitFailed, "error", []string{"compile", "--target", "sm_1", "--json", cl}},
		{app.ExitFailed, "error", []string{"run", "--device", "cpu:9", "--global", "1", "--json", cl}},
		{app.ExitUsage, "error", []string{"run", "--json", cl}},
		{app.ExitUsage, "error", []string{"devices", "--json", "extra"}},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			status, stdout, stderr := apptest.Run(tc.args...)
			require.Equal(t, tc.status, status, stderr)
			assert.Contains(t, apptest.Document(t, stdout), tc.has)
		})
	}
}

func TestEnvironment(t *testing.T) {
	t.Run("malformed", func(t *testing.T) {
		t.Setenv("CONCORD_DEBUG", "loud")
		status, _, stderr := apptest.Run("devices")
		assert.Equal(t, app.ExitUsage, status)
		assert.Contains(t, stderr, "CONCORD_DEBUG")
	})
	t.Run("fakes are listed", func(t *testing.T) {
		t.Setenv("CONCORD_FAKE_DEVICES", "cuda:2")
		status, stdout, _ := apptest.Run("devices")
		assert.Equal(t, app.ExitOK, status)
		assert.Contains(t, stdout, "fake cuda device 1")
	})
	t.Run("strict refuses fakes", func(t *testing.T) {
		t.Setenv("CONCORD_FAKE_DEVICES", "cuda")
		t.Setenv("CONCORD_STRICT", "1")
		status, _, stderr := apptest.Run("devices")
		assert.Equal(t, app.ExitFailed, status)
		assert.Contains(t, stderr, "fake")
	})
}

func TestHelp(t *testing.T) {
	root := app.New(io.Discard, io.Discard).Root(commands...)
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		assert.NotEmpty(t, cmd.Example, "%s has examples", cmd.CommandPath())
		assert.NotEmpty(t, cmd.Short, "%s says what it does", cmd.CommandPath())
		status, _, stderr := apptest.Run(append(strings.Fields(cmd.CommandPath())[1:], "--frobnicate")...)
		assert.Equal(t, app.ExitUsage, status, "%s with a wrong flag", cmd.CommandPath())
		assert.Contains(t, stderr, "see "+cmd.CommandPath()+" --help")
		for _, c := range cmd.Commands() {
			check(c)
		}
	}
	check(root)
	status, stdout, stderr := apptest.Run("run", "--help")
	assert.Equal(t, app.ExitOK, status)
	assert.Contains(t, stdout, "--global")
	assert.Empty(t, stderr)
	status, stdout, _ = apptest.Run("--version")
	assert.Equal(t, app.ExitOK, status)
	assert.Contains(t, stdout, "go1")
}

// docs/commands.md is what the command says of itself.
func TestCommandsPage(t *testing.T) {
	var table, sections strings.Builder
	var describe func(*cobra.Command)
	describe = func(cmd *cobra.Command) {
		if cmd.Name() == "completion" || cmd.Name() == "help" {
			return
		}
		if cmd.HasParent() {
			anchor := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
			fmt.Fprintf(&table, "| [`%s`](#%s) | %s |\n", cmd.CommandPath(), anchor, cmd.Short)
		}
		var help strings.Builder
		cmd.SetOut(&help)
		cmd.InitDefaultHelpFlag()
		require.NoError(t, cmd.Help())
		fmt.Fprintf(&sections, "\n## %s\n\n```\n%s```\n", cmd.CommandPath(), help.String())
		for _, c := range cmd.Commands() {
			describe(c)
		}
	}
	describe(app.New(io.Discard, io.Discard).Root(commands...))
	want := "# Commands\n\nThe help of `concord`, as it prints it: `go run ./cmd/concord`, or `make build` and " +
		"`bin/concord`. Most calls take `--json`.\n" +
		"`make docs` writes this page.\n\n| call | does |\n|---|---|\n" + table.String() + sections.String()
	const file = "../../docs/commands.md"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		return
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.True(t, want == string(got), "docs/commands.md is not what the command prints: make docs")
}
