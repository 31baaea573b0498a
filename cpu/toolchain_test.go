//go:build cgo && unix

package cpu

// Tests of finding the host's C++ compiler, running it, and its failures.

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// TestBuildError checks the error of a program that parses but that the C++ compiler rejects, because
// of a wrong option.
func TestBuildError(t *testing.T) {
	d := openDevice(t)
	needCompiler(t)
	u := parse(t, saxpyText)
	_, err := d.Compile(background(t), u, []string{"-fno-such-option"})
	var build *driver.BuildError
	require.ErrorAs(t, err, &build)
	require.ErrorIs(t, err, driver.ErrCompile)
	assert.Equal(t, "test.cl", build.Source)
	assert.Equal(t, "host", build.Target)
	assert.Contains(t, build.Log, "no-such-option")
	wrong := parse(t, "kernel void k(global int *x) {\n  int y;\n  x[0] = y;\n}")
	_, err = d.Compile(background(t), wrong, []string{"-Wall", "-Werror"})
	require.ErrorAs(t, err, &build)
	assert.Contains(t, build.Log, "test.cl:3", "positions are those of the portable text")
	assert.NotContains(t, build.Log, "concord-build-", "the log names no temporary file")
	bin, err := d.Compile(background(t), wrong, []string{"-Wall"})
	require.NoError(t, err)
	assert.Contains(t, bin.Log, "test.cl:3", "warnings are kept")
	_, err = d.Compile(background(t), u, []string{"program2.cpp"})
	require.ErrorIs(t, err, driver.ErrInvalidArgument)
	_, err = d.Compile(background(t), u, []string{"-cl-mad-enable", "-cl-std=CL1.2", "-cl-fast-relaxed-math",
		"-cl-opt-disable",
		"-cl-unsafe-math-optimizations", "-cl-finite-math-only", "-cl-no-signed-zeros", "-ffast-math", "-Ofast", "-g", "-O1"})
	require.NoError(t, err, "the device works after a failed compilation")
}

func TestNoCompiler(t *testing.T) {
	d := openDevice(t)
	u := parse(t, saxpyText)
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CXX", "")
	_, err := d.Compile(background(t), u, nil)
	require.ErrorIs(t, err, driver.ErrNoCompiler)
	assert.Contains(t, err.Error(), "apt-get install g++")
	_, err = d.Identity(background(t))
	require.ErrorIs(t, err, driver.ErrNoCompiler)
	p := backend{}.Probe(background(t), nil)
	assert.Equal(t, driver.Available, p.State)
	assert.Empty(t, p.CompilerVersion)
	assert.Contains(t, strings.Join(p.Tried, "\n"), "c++: not found")

	t.Setenv("CXX", "/no/such/compiler -O2")
	_, err = d.Compile(background(t), u, nil)
	require.ErrorIs(t, err, driver.ErrNoCompiler)
	assert.Contains(t, err.Error(), "/no/such/compiler")
}

func TestReferenceCompilesNothing(t *testing.T) {
	d := openIndex(t, referenceIndex)
	u := parse(t, saxpyText)
	_, err := d.Compile(background(t), u, nil)
	require.ErrorIs(t, err, driver.ErrUnsupported)
	_, err = d.Identity(background(t))
	require.ErrorIs(t, err, driver.ErrUnsupported)
	_, err = d.Load(background(t), u, driver.Binary{})
	require.ErrorIs(t, err, driver.ErrUnsupported)
}

// fakeCompiler makes CXX a script that answers --version and otherwise runs body.
func fakeCompiler(t *testing.T, body string) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh")
	}
	path := filepath.Join(t.TempDir(), "cxx")
	script := "#!/bin/sh\nif [ \"$1\" = --first ]; then shift; fi\ncase \"$1\" in --version) echo fake c++ 1.0; exit " +
		"0;; esac\n" + body
	require.NoError(t, os.WriteFile(path, []byte(script), 0o700))
	t.Setenv("CXX", path+" --first")
}

func TestCompileEndsWithItsContext(t *testing.T) {
	d := openDevice(t)
	u := parse(t, saxpyText)
	pids := filepath.Join(t.TempDir(), "pids")
	// The child takes the place of a process that a compiler starts; it holds the pipes open.
	fakeCompiler(t, "sleep 60 & echo $$ $! > "+pids+".new; mv "+pids+".new "+pids+"; wait")
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	ctx, cancel := context.WithCancelCause(background(t))
	why := errors.New("enough")
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(pids); err == nil {
				cancel(why)
			}
		}
	}()
	_, err := d.Compile(ctx, u, nil)
	require.ErrorIs(t, err, why)
	assert.NotErrorIs(t, err, driver.ErrCompile, "the program is not to blame")
	text, err := os.ReadFile(pids)
	require.NoError(t, err)
	require.Len(t, strings.Fields(string(text)), 2)
	for _, pid := range strings.Fields(string(text)) {
		assert.Eventually(t, func() bool { return !running(pid) }, 5e9, 1e6, "process %s is left", pid)
	}
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	assert.Empty(t, left, "temporary files are left")
}

// running reports whether a process exists and is not a zombie.
func running(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func TestCompilerThatMisbehaves(t *testing.T) {
	d := openDevice(t)
	u := parse(t, saxpyText)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	for name, body := range map[string]string{
		"fails silently": "exit 3",
		"talks a lot":    "yes error: no | head -c 9000000; exit 1",
	} {
		fakeCompiler(t, body)
		_, err := d.Compile(background(t), u, nil)
		var build *driver.BuildError
		require.ErrorAs(t, err, &build, name)
		assert.LessOrEqual(t, len(build.Log), maxLog)
	}
	for name, body := range map[string]string{
		"succeeds with nothing":  "exit 0",
		"dies":                   "echo working; kill -9 $$",
		"has a killed part":      "echo 'c++: fatal error: Killed signal terminated program cc1plus'; exit 1",
		"has no memory":          "echo 'cc1plus: out of memory allocating 65536 bytes'; exit 1",
		"has no memory, says ld": "echo 'virtual memory exhausted: Cannot allocate memory'; exit 1",
		"has no disk":            "echo 'ld: final link failed: No space left on device'; exit 1",
	} {
		fakeCompiler(t, body)
		_, err := d.Compile(background(t), u, nil)
		var op *driver.OpError
		require.ErrorAs(t, err, &op, name)
		assert.NotErrorIs(t, err, driver.ErrCompile, "%s: the program is not to blame", name)
		assert.Contains(t, err.Error(), "cpu:0: compile test.cl: ", name)
	}
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	assert.Empty(t, left, "temporary files are left")
}

func TestIdentity(t *testing.T) {
	d := openDevice(t)
	needCompiler(t)
	a, err := d.Identity(background(t))
	require.NoError(t, err)
	b, err := d.Identity(background(t))
	require.NoError(t, err)
	assert.Equal(t, a, b)
	assert.Greater(t, len(a), 5)
	fakeCompiler(t, "exit 0")
	c, err := d.Identity(background(t))
	require.NoError(t, err)
	assert.NotEqual(t, a, c)
	assert.Contains(t, c, "--first")
}

func TestSweep(t *testing.T) {
	tmp := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{buildPrefix + "old": 2 * time.Hour, buildPrefix + "new": time.Minute,
		"other": 2 * time.Hour} {
		require.NoError(t, os.Mkdir(filepath.Join(tmp, name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(tmp, name, "program.cpp"), nil, 0o600))
		require.NoError(t, os.Chtimes(filepath.Join(tmp, name), now.Add(-age), now.Add(-age)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(tmp, buildPrefix+"file"), nil, 0o600))
	sweep(tmp, now.Add(-staleAfter))
	entries, err := os.ReadDir(tmp)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	assert.Equal(t, []string{buildPrefix + "file", buildPrefix + "new", "other"}, names)
	sweep(filepath.Join(tmp, "not there"), now)
}
