package tests

// Tests that README.md agrees with the code.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/concord-compute/concord/runtime/config"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	return string(text)
}

// TestReadmeVariables: the table of environment variables lists exactly those that Concord reads.
func TestReadmeVariables(t *testing.T) {
	var want, got []string
	for _, v := range config.Variables() {
		def := v.Default
		if def != "" {
			def = "`" + def + "`"
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s |", v.Name, def, v.Doc))
	}
	for line := range strings.Lines(readme(t)) {
		if strings.HasPrefix(line, "| `CONCORD_") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	assert.Equal(t, want, got)
}

// TestReadmeProgram runs the program that README.md shows.
func TestReadmeProgram(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("running the program needs the go command: ", err)
	}
	_, program, found := strings.Cut(readme(t), "```go\n")
	require.True(t, found)
	program, _, found = strings.Cut(program, "```")
	require.True(t, found)
	file := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(file, []byte(program), 0o600))
	cmd := exec.CommandContext(t.Context(), "go", "run", file)
	cmd.Env = append(os.Environ(), "CONCORD_DEVICE=cpu:0")
	out, err := cmd.CombinedOutput()
	if err != nil && strings.Contains(string(out), driver.ErrUnsupported.Error()) {
		t.Skipf("no portable kernels here: %s", out)
	}
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "cpu:0 [12 24 36] ")
}

// TestLinks: the targets of the pages' links exist, and the flags for -tags opencl are the same
// everywhere.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join("..", page))
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			_, err := os.Stat(filepath.Join("..", filepath.Dir(page), m[1]))
			assert.NoError(t, err, "%s links to %s", page, m[1])
		}
	}
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	flags := regexp.MustCompile(`-DCL_\w+=\w+`)
	inMakefile := flags.FindAllString(string(makefile), -1)
	require.Len(t, inMakefile, 3)
	inReadme := flags.FindAllString(readme(t), -1)
	slices.Sort(inMakefile)
	slices.Sort(inReadme)
	assert.Equal(t, inMakefile, inReadme)
}
