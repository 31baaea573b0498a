//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/internal/npy"
	"github.com/concord-compute/concord/runtime"
)

// writing is every command that writes a file, by its arguments before and behind it.
type writing struct {
	name   string
	before []string
	behind []string
	ending string
	begins string // what such a file begins with
}

func writings(t *testing.T) []writing {
	apptest.NeedsCompiler(t)
	cl := apptest.TextFile(t, "k.cl", "kernel void k(global int *x) { x[0] = 1; }")
	trace := filepath.Join(t.TempDir(), "known.trace")
	t.Setenv(apptest.AsCommand, "1") // what is recorded is this binary
	status, _, stderr := apptest.Run("trace", "memory", "--record", trace, "--", "doctor")
	require.Equal(t, app.ExitOK, status, stderr)
	return []writing{
		{"run --out", []string{"run", "--device", "cpu:0", "--global", "1", "--arg", "zeros:i32:1", "--out"}, []string{cl},
			".npy", "\x93NUMPY"},
		{"run --out in a child", []string{"run", "--device", "cpu:0", "--timeout", "5m", "--global", "1", "--arg",
			"zeros:i32:1", "--out"}, []string{cl}, ".npy", "\x93NUMPY"},
		{"bench --report", []string{"bench", "launch", "--device", "cpu:0", "--report"}, nil, ".html", "<!DOCTYPE html>"},
		{"cache export", []string{"cache", "export"}, nil, ".bundle", "CNCRDbnd"},
		{"trace --picture", []string{"trace", "memory", trace, "--picture"}, nil, ".svg", "<?xml"},
		{"trace --record", []string{"trace", "memory", "--record"}, []string{"--", "doctor"}, ".trace", "{"},
	}
}

// to is the command line that writes to a path.
func (w writing) to(path string) []string {
	if w.ending == ".npy" {
		path = "0=" + path
	}
	return append(append(append([]string{}, w.before...), path), w.behind...)
}

// A file keeps its type and permissions, whichever command writes it.
func TestWrites(t *testing.T) {
	for _, w := range writings(t) {
		t.Run(w.name, func(t *testing.T) {
			dir := t.TempDir()
			in := func(name string) string { return filepath.Join(dir, name+w.ending) }
			old := func(name string, mode os.FileMode) string {
				require.NoError(t, os.WriteFile(in(name), []byte(w.begins+" old"), 0o600))
				require.NoError(t, os.Chmod(in(name), mode))
				return in(name)
			}
			mode := func(path string) os.FileMode {
				info, err := os.Lstat(path)
				require.NoError(t, err)
				return info.Mode()
			}
			writes := func(path string) {
				t.Helper()
				status, _, stderr := apptest.Run(w.to(path)...)
				require.Equal(t, app.ExitOK, status, stderr)
			}
			refuses := func(path, says string) {
				t.Helper()
				status, _, stderr := apptest.Run(w.to(path)...)
				assert.Equal(t, app.ExitFailed, status)
				assert.Contains(t, stderr, says)
				assert.Contains(t, stderr, path)
			}
			writes(in("new"))
			whole, err := os.Stat(in("new"))
			require.NoError(t, err)
			require.Positive(t, whole.Size())
			mask := unix.Umask(0o022)
			unix.Umask(mask)
			assert.Equal(t, os.FileMode(0o666&^mask), mode(in("new")))

			writes(old("mine", 0o600))
			assert.Equal(t, os.FileMode(0o600), mode(in("mine")))
			require.NoError(t, os.Symlink("mine"+w.ending, in("link")))
			writes(in("link"))
			assert.Equal(t, os.ModeSymlink, mode(in("link")).Type())
			require.NoError(t, os.Symlink("made"+w.ending, in("dangling")))
			writes(in("dangling"))
			assert.Equal(t, os.ModeSymlink, mode(in("dangling")).Type())
			assert.FileExists(t, in("made"))

			refuses(old("fixed", 0o444), "permission denied")
			text, err := os.ReadFile(in("fixed"))
			require.NoError(t, err)
			assert.Equal(t, w.begins+" old", string(text))
			require.NoError(t, os.WriteFile(in("foreign"), []byte("old"), 0o600))
			refuses(in("foreign"), "so that it is not replaced")
			require.NoError(t, os.Mkdir(in("dir"), 0o700))
			refuses(in("dir"), "is a directory")
			refuses(filepath.Join(dir, "none", "x"+w.ending), "no such file")
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			assert.Len(t, entries, 8, "nothing else is left: %v", entries)
		})
	}
}

// Pipes and devices are written to directly and are not replaced.
func TestWritesToDevices(t *testing.T) {
	for _, w := range writings(t) {
		if w.ending == ".svg" || w.ending == ".trace" {
			continue // the name has to end so, and it is read again
		}
		t.Run(w.name, func(t *testing.T) {
			null, err := os.Stat(os.DevNull)
			require.NoError(t, err)
			status, _, stderr := apptest.Run(w.to(os.DevNull)...)
			require.Equal(t, app.ExitOK, status, stderr)
			after, err := os.Lstat(os.DevNull)
			require.NoError(t, err)
			require.True(t, os.SameFile(null, after))
			if _, err := os.Stat("/dev/full"); err == nil {
				status, _, stderr = apptest.Run(w.to("/dev/full")...)
				assert.Equal(t, app.ExitFailed, status)
				assert.Contains(t, stderr, "/dev/full: no space left")
			}
			fifo := filepath.Join(t.TempDir(), "fifo")
			require.NoError(t, unix.Mkfifo(fifo, 0o600))
			got := make(chan []byte)
			go func() {
				data, err := os.ReadFile(fifo)
				assert.NoError(t, err)
				got <- data
			}()
			status, _, stderr = apptest.Run(w.to(fifo)...)
			require.Equal(t, app.ExitOK, status, stderr)
			assert.NotEmpty(t, <-got)

			// Standard output has the file and nothing else.
			cmd := apptest.Process(w.to("/dev/stdout")...)
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			require.NoError(t, cmd.Run(), "%s", &errs)
			for ending, begins := range map[string]string{".npy": "\x93NUMPY", ".html": "<!DOCTYPE", ".bundle": "CNCRD"} {
				if ending == w.ending {
					assert.True(t, bytes.HasPrefix(out.Bytes(), []byte(begins)), "%.40q", out.Bytes())
				}
			}
			assert.NotEmpty(t, errs.String(), "and people read on standard error")
			status, _, stderr = apptest.Run(append(w.to("/dev/stdout"), "--json")...)
			assert.Equal(t, app.ExitUsage, status)
			assert.Contains(t, stderr, "standard output")
		})
	}
}

// Two results have no room in one file, but in a pipe; an input may be replaced.
func TestRunOutTwice(t *testing.T) {
	apptest.NeedsCompiler(t)
	cl := apptest.TextFile(t, "two.cl", "kernel void two(global int *x, global int *y) { x[0] += 1; y[0] = 2; }")
	dir := t.TempDir()
	a := filepath.Join(dir, "a.npy")
	require.NoError(t, os.Symlink("a.npy", filepath.Join(dir, "b.npy")))
	args := []string{"run", "--device", "cpu:0", "--global", "1", "--arg", "zeros:i32:1", "--arg", "zeros:i32:1"}
	for _, outs := range [][]string{{"0=" + a, "1=" + a}, {"0=" + a, "0=" + dir + "/./a.npy"},
		{"0=" + filepath.Join(dir, "b.npy"), "1=" + a}} {
		status, _, stderr := apptest.Run(append(args, "--out", outs[0], "--out", outs[1], cl)...)
		assert.Equal(t, app.ExitUsage, status)
		assert.Contains(t, stderr, "it is the file of --out")
		assert.NoFileExists(t, a)
	}
	status, _, stderr := apptest.Run(append(args, "--out", "0=/dev/null", "--out", "1=/dev/null", cl)...)
	assert.Equal(t, app.ExitOK, status, stderr)
	status, stdout, stderr := apptest.Run(append(args, "--out", "1=-", cl)...)
	assert.Equal(t, app.ExitOK, status, stderr)
	assert.True(t, strings.HasPrefix(stdout, "\x93NUMPY"), "%.40q", stdout)
	status, _, stderr = apptest.Run(append(args, "--out", "1="+filepath.Join(dir, "missing", "x.npy"), cl)...)
	assert.Equal(t, app.ExitFailed, status, "before anything runs")
	assert.Contains(t, stderr, "x.npy: no such file or directory")
	require.NoError(t, npy.WriteFile(a, npy.Array{Type: runtime.I32, Shape: []int{1}, Data: []byte{41, 0, 0, 0}}))
	args[6] = "@" + a
	status, _, stderr = apptest.Run(append(args, "--out", "0="+a, cl)...)
	require.Equal(t, app.ExitOK, status, stderr)
	got, err := npy.ReadFile(a)
	require.NoError(t, err)
	assert.Equal(t, []byte{42, 0, 0, 0}, got.Data)
}

// One file cannot be both the target of redirected standard output and a result.
func TestRunOutIsStandardOutput(t *testing.T) {
	apptest.NeedsCompiler(t)
	cl := apptest.TextFile(t, "one.cl", "kernel void one(global int *x) { x[0] = 1; }")
	f, err := os.Create(filepath.Join(t.TempDir(), "same.npy"))
	require.NoError(t, err)
	defer f.Close()
	var stderr strings.Builder
	status := app.Run([]string{"run", "--device", "cpu:0", "--global", "1", "--arg", "zeros:i32:1", "--out",
		"0=" + f.Name(),
		cl}, f, &stderr, commands...)
	assert.Equal(t, app.ExitUsage, status)
	assert.Contains(t, stderr.String(), "standard output goes to this file, too")
	info, err := os.Stat(f.Name())
	require.NoError(t, err)
	assert.Zero(t, info.Size())
}

// The program is not overwritten by its result.
func TestRunOutIsTheProgram(t *testing.T) {
	const text = "kernel void one(global int *x) { x[0] = 1; }"
	cl := apptest.TextFile(t, "one.cl", text)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(cl, link))
	for _, out := range []string{cl, link} {
		status, _, stderr := apptest.Run("run", "--device", "cpu:0", "--global", "1", "--arg", "zeros:i32:1", "--out",
			"0="+out,
			cl)
		assert.Equal(t, app.ExitUsage, status)
		assert.Contains(t, stderr, "it is the program's file, too")
	}
	got, err := os.ReadFile(cl)
	require.NoError(t, err)
	assert.Equal(t, text, string(got))
}
