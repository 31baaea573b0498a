package sim

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// clang finds one that knows halves: 15 or newer.
func clang(t *testing.T) string {
	for _, name := range []string{"clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		probe := exec.CommandContext(t.Context(), path, "-x", "c", "-fsyntax-only", "-")
		probe.Stdin = strings.NewReader("_Float16 x;")
		if probe.Run() == nil {
			return path
		}
	}
	Absent(t, "sim-metal", "clang of version 15 or newer")
	return ""
}

// metal builds the simulated framework in a temporary directory.
func metal(t *testing.T) (dir, compiler string) {
	for _, tool := range []string{"sh", "gcc", "g++"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	compiler = clang(t)
	for _, header := range []string{"/usr/include/GNUstep/Foundation/Foundation.h", "/usr/include/Block.h"} {
		if _, err := os.Stat(header); err != nil {
			Absent(t, "sim-metal", "libgnustep-base-dev libblocksruntime-dev")
		}
	}
	dir = t.TempDir()
	command(t, []string{"CLANG=" + compiler}, "sh", "metal/build.sh", dir)
	return dir, compiler
}

// TestMetal uses the simulated framework from Objective-C.
func TestMetal(t *testing.T) {
	dir, compiler := metal(t)
	bin := filepath.Join(t.TempDir(), "selftest")
	args := strings.Fields(command(t, nil, "sh", "metal/flags.sh", dir))
	args = append(args, "-O1", "-Wall", "-Wextra", "-Werror", "-o", bin, "testdata/selftest.m",
		"-L"+dir, "-Wl,-rpath,"+dir, "-lSimMetal", "-lBlocksRuntime", "-lgnustep-base", "-lobjc")
	command(t, nil, compiler, args...)
	out := command(t, nil, bin)
	assert.Contains(t, out, "\nok\n")
	assert.Contains(t, out, "violations 0\n", "nothing broke a rule that no exception tells")
}
