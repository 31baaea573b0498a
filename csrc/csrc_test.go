package csrc

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source/host"
)

// compiler returns $CC or the first C compiler that is installed, or skips the test.
func compiler(t *testing.T) string {
	t.Helper()
	for _, cc := range []string{os.Getenv("CC"), "gcc", "cc", "clang"} {
		if cc == "" {
			continue
		}
		if _, err := exec.LookPath(cc); err == nil {
			return cc
		}
	}
	t.Skip("no C compiler here")
	return ""
}

// build compiles the executor's test program.
func build(t *testing.T, cc string, flags ...string) string {
	t.Helper()
	return buildFrom(t, cc, "testdata/host_test.c", flags...)
}

// buildFrom compiles a test program. Warnings are errors.
func buildFrom(t *testing.T, cc, source string, flags ...string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "program")
	args := append([]string{"-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-o", bin, source}, flags...)
	out, err := exec.Command(cc, append(args, "-lpthread")...).CombinedOutput()
	if err != nil && strings.Contains(string(out), "cannot find") {
		t.Skipf("%s has no library for %v: %s", cc, flags, out)
	}
	require.NoError(t, err, "%s", out)
	return bin
}

// run runs a test program with a time limit, so that a program that hangs fails.
func run(t *testing.T, bin string, args ...string) {
	t.Helper()
	cmd := exec.Command(bin, args...)
	timer := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

func TestHost(t *testing.T) {
	bin := build(t, compiler(t), "-O2")
	for _, name := range []string{"grids", "barriers", "faults", "cancel", "concurrent", "print", "share", "chain"} {
		t.Run(name, func(t *testing.T) { run(t, bin, name) })
	}
}

// TestHostVariants tests the executor in its other builds: with ucontext instead of assembly, with
// the address sanitizer, with the other compiler.
func TestHostVariants(t *testing.T) {
	if testing.Short() {
		t.Skip("several compilations")
	}
	for _, v := range []struct {
		name, cc string
		flags    []string
	}{
		{"ucontext", "", []string{"-O2", "-DCONCORD_UCONTEXT"}},
		{"asan", "", []string{"-O1", "-fsanitize=address", "-fno-omit-frame-pointer"}},
		{"clang", "clang", []string{"-O2"}},
	} {
		t.Run(v.name, func(t *testing.T) {
			cc := v.cc
			if cc == "" {
				cc = compiler(t)
			} else if _, err := exec.LookPath(cc); err != nil {
				t.Skipf("no %s here", cc)
			}
			run(t, build(t, cc, v.flags...))
		})
	}
}

// TestHostInGo runs the executor in a Go program, where its signal handlers pass signals on to Go's.
func TestHostInGo(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a Go program")
	}
	compiler(t)
	bin := filepath.Join(t.TempDir(), "gohost")
	cmd := exec.Command("go", "build", "-o", bin, "./testdata/gohost")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	run(t, bin)
}

// TestFiles checks that every file that the C includes is embedded by a package: an edit of another one would compile
// nothing again.
func TestFiles(t *testing.T) {
	includes := 0
	require.NoError(t, fs.WalkDir(Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := Files.ReadFile(name)
		for line := range strings.Lines(string(b)) {
			if file, ok := strings.CutPrefix(line, `#include "`); ok {
				includes++
				file, _, _ = strings.Cut(file, `"`)
				file = path.Join(path.Dir(name), file)
				if outside, ok := strings.CutPrefix(file, "../source/host/"); ok {
					_, err := host.Files.Open(outside)
					assert.NoError(t, err, "%s includes %s", name, file)
					continue
				}
				_, err := Files.Open(file)
				assert.NoError(t, err, "%s includes %s", name, file)
			}
		}
		return err
	}))
	assert.Greater(t, includes, 50)
}
