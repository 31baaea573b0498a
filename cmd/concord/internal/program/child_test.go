//go:build unix

package program

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
)

const spinText = "kernel void spin(global volatile int *x) { while (x[0] == 0) {} }"

// family is a command and what it starts. All of them hold one pipe, which ends when the
// last of them does.
type family struct {
	cmd  *exec.Cmd
	held *os.File
}

// startFamily starts a command that runs in a child.
func startFamily(t *testing.T, args ...string) *family {
	t.Helper()
	near, far, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { near.Close() })
	f := &family{apptest.Process(args...), near}
	f.cmd.Stderr = far
	require.NoError(t, f.cmd.Start())
	far.Close()
	return f
}

// runs reports whether one of the family is still there after a time.
func (f *family) runs(within time.Duration) bool {
	if err := f.held.SetReadDeadline(time.Now().Add(within)); err != nil {
		return true
	}
	_, err := io.Copy(io.Discard, f.held)
	return err != nil
}

// A child ends with its parent, whatever ends that and whatever the child does.
func TestRunEndsWithParent(t *testing.T) {
	apptest.NeedsCompiler(t)
	spin := apptest.TextFile(t, "spin.cl", spinText)
	apptest.Run("compile", "--target", "host", spin)
	for _, tc := range []struct {
		name, device string
		signal       unix.Signal
	}{
		{"killed", "cpu:0", unix.SIGKILL},
		{"killed beside OpenCL", "opencl:0", unix.SIGKILL},
		{"interrupted", "cpu:0", unix.SIGINT},
		{"terminated", "cpu:0", unix.SIGTERM},
		{"terminated beside OpenCL", "opencl:0", unix.SIGTERM},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.device == "opencl:0" {
				apptest.NeedsOpenCL(t)
			}
			f := startFamily(t, "run", "--device", tc.device, "--timeout", "5m", "--global", "1", "--arg", "zeros:i32:1", spin)
			require.True(t, f.runs(3*time.Second), "an endless kernel")
			require.NoError(t, f.cmd.Process.Signal(tc.signal))
			_ = f.cmd.Wait() // the signal is its result
			assert.False(t, f.runs(10*time.Second), "the child went on")
		})
	}
}

// The parent goes while the child waits for an argument, before anything is launched.
func TestRunEndsBeforeLaunch(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "x.npy")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	f := startFamily(t, "run", "--device", "cpu:0", "--timeout", "5m", "--global", "1", "--arg", "@"+fifo,
		apptest.TextFile(t, "spin.cl", spinText))
	require.True(t, f.runs(time.Second))
	require.NoError(t, f.cmd.Process.Kill())
	_ = f.cmd.Wait()
	assert.False(t, f.runs(10*time.Second))
}

// The compilers that a child runs end with it.
func TestRunEndsItsCompiler(t *testing.T) {
	apptest.NeedsCompiler(t)
	cxx, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("no g++ to stand before")
	}
	dir := t.TempDir()
	pids := filepath.Join(dir, "pids")
	slow := filepath.Join(dir, "g++")
	require.NoError(t, os.WriteFile(slow, []byte("#!/bin/sh\ncase \"$*\" in *program.cpp*) echo $$ >>"+pids+
		"; sleep 1000; exit 1;; esac\nexec "+cxx+" \"$@\"\n"), 0o700))
	t.Setenv("CXX", slow)
	t.Setenv("CONCORD_CACHE_DIR", "off")
	f := startFamily(t, "run", "--device", "cpu:0", "--timeout", "5m", "--global", "1", "--arg", "zeros:i32:1",
		apptest.TextFile(t, "slow.cl", spinText))
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(pids)
		return err == nil && strings.HasSuffix(string(text), "\n")
	}, 20*time.Second, 50*time.Millisecond, "it compiles")
	require.NoError(t, f.cmd.Process.Kill())
	_ = f.cmd.Wait()
	assert.False(t, f.runs(10*time.Second))
	text, err := os.Open(pids)
	require.NoError(t, err)
	defer text.Close()
	for lines := bufio.NewScanner(text); lines.Scan(); {
		pid, err := strconv.Atoi(lines.Text())
		require.NoError(t, err)
		assert.Eventually(t, func() bool { return unix.Kill(-pid, 0) == unix.ESRCH }, 5*time.Second, 50*time.Millisecond,
			"the compiler went on")
	}
}

// A child keeps its limit while its parent is stopped, which tells of it when it goes on.
func TestRunTimeoutStopped(t *testing.T) {
	apptest.NeedsCompiler(t)
	if childState(os.Getppid()) == "" {
		t.Skip("no /proc to see the child in")
	}
	spin := apptest.TextFile(t, "spin.cl", spinText)
	apptest.Run("compile", "--target", "host", spin)
	cmd := apptest.Process("run", "--device", "cpu:0", "--timeout", "2s", "--global", "1", "--arg", "zeros:i32:1",
		"--json",
		spin)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer cmd.Process.Kill()
	// The child is there once the parent has one, and gone when it has none that runs.
	child := func() string { return childState(cmd.Process.Pid) }
	require.Eventually(t, func() bool { return child() != "" }, 10*time.Second, 20*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(unix.SIGSTOP))
	assert.Eventually(t, func() bool { return strings.HasPrefix(child(), "Z") }, 20*time.Second, 50*time.Millisecond,
		"the child ends by itself: %s", child())
	require.NoError(t, cmd.Process.Signal(unix.SIGCONT))
	text, err := io.ReadAll(stdout)
	require.NoError(t, err)
	assert.Contains(t, apptest.Document(t, string(text))["error"], "timed out")
	assert.Equal(t, app.ExitFailed, apptest.ExitCode(cmd.Wait()))
}

// childState is the state of a child of a process, such as R or Z, as Linux has it in
// /proc; "" if there is none.
func childState(parent int) string {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, _ := os.ReadFile(path) // it may be gone
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			return fields[0]
		}
	}
	return ""
}
