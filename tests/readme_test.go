package tests

// Tests that README.md and the pages of docs agree with the code.

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/concord-compute/concord/runtime/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	return string(text)
}

var update = flag.Bool("update", false, "write the parts of pages that a program knows, instead of comparing them")

// TestReadmeIsShort: a page that somebody reads before they know whether they want to read more.
func TestReadmeIsShort(t *testing.T) {
	text := readme(t)
	assert.LessOrEqual(t, strings.Count(text, "\n"), 150, "lines of README.md")
	assert.LessOrEqual(t, len(strings.Fields(text)), 1200, "words of README.md")
}

// TestEnvironmentPage: the table of docs/environment.md lists exactly the variables that Concord reads.
func TestEnvironmentPage(t *testing.T) {
	const file = "../docs/environment.md"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var want strings.Builder
	for _, v := range config.Variables() {
		def := v.Default
		if def != "" {
			def = "`" + def + "`"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", v.Name, def, v.Doc)
	}
	table := regexp.MustCompile("(?m)(^\\| `CONCORD_.*\n)+").FindIndex(text)
	require.NotNil(t, table)
	if *update {
		require.NoError(t, os.WriteFile(file, slices.Concat(text[:table[0]], []byte(want.String()), text[table[1]:]), 0o644))
		return
	}
	assert.Equal(t, want.String(), string(text[table[0]:table[1]]), "make docs writes it")
}

// TestReadmeProgram runs the program that README.md shows, without C, and demands the output that it shows.
func TestReadmeProgram(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("running the program needs the go command: ", err)
	}
	m := regexp.MustCompile("(?s)```go\n(package main.*?)```.*?```text\n(.*?)```").FindStringSubmatch(readme(t))
	require.NotNil(t, m)
	file := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(file, []byte(m[1]), 0o600))
	cmd := exec.CommandContext(t.Context(), "go", "run", file)
	cmd.Env = append(os.Environ(), "CONCORD_DEVICE=cpu:0", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, m[2], string(out))
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
	page, err := os.ReadFile("../docs/backends.md")
	require.NoError(t, err)
	onPage := flags.FindAllString(string(page), -1)
	slices.Sort(inMakefile)
	slices.Sort(onPage)
	assert.Equal(t, inMakefile, onPage)
}
