package metal

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checker type-checks packages of this module as the go command would build them for
// another system. The standard library and C's basic types are those of this system, because the
// cgo command uses this system's C compiler.
type checker struct {
	t        *testing.T
	context  build.Context
	fset     *token.FileSet
	standard types.Importer
	done     map[string]*types.Package
	files    []string
}

const module = "github.com/concord-compute/concord/"

// Import implements types.Importer.
func (c *checker) Import(path string) (*types.Package, error) {
	dir, own := strings.CutPrefix(path, module)
	if !own {
		return c.standard.Import(path)
	}
	if p := c.done[path]; p != nil {
		return p, nil
	}
	found, err := c.context.ImportDir(filepath.Join("..", filepath.FromSlash(dir)), 0)
	if err != nil {
		return nil, err
	}
	names, err := c.translate(path, found)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(c.fset, name, nil, 0)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	config := types.Config{Importer: c, Sizes: types.SizesFor("gc", c.context.GOARCH),
		Error: func(err error) { assert.NoError(c.t, err) }}
	p, err := config.Check(path, c.fset, files, nil)
	c.done[path] = p
	return p, err
}

// translate returns the Go files of a package; files with C are translated by cgo.
func (c *checker) translate(path string, found *build.Package) (names []string, err error) {
	for _, name := range slices.Concat(found.GoFiles, found.CgoFiles) {
		c.files = append(c.files, filepath.ToSlash(filepath.Join(found.Dir, name)))
	}
	for _, name := range found.GoFiles {
		names = append(names, filepath.Join(found.Dir, name))
	}
	if len(found.CgoFiles) == 0 {
		return names, nil
	}
	out := c.t.TempDir()
	cmd := exec.Command("go", slices.Concat([]string{"tool", "cgo", "-objdir", out, "-importpath", path},
		found.CgoFiles)...)
	cmd.Dir = found.Dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "GOOS="+c.context.GOOS, "GOARCH="+c.context.GOARCH,
		"CC="+clang())
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", path, err, text)
	}
	made, err := filepath.Glob(filepath.Join(out, "*.cgo1.go"))
	return slices.Concat(names, made, []string{filepath.Join(out, "_cgo_gotypes.go")}), err
}

// clang returns the compiler for cgo, which for macOS passes -arch, an option that gcc does not
// have.
func clang() string { return cmp.Or(os.Getenv("CLANG"), "clang") }

// This test is needed because go vet without cgo ignores files with C, and with cgo it checks only
// this system's files.
func TestTypeChecksOnMac(t *testing.T) {
	if !build.Default.CgoEnabled {
		t.Skip("not here: cgo, which writes the Go files of packages with C")
	}
	if _, err := exec.LookPath(clang()); err != nil {
		t.Skip(err)
	}
	for _, cgo := range []bool{true, false} {
		c := checker{t: t, context: build.Default, fset: token.NewFileSet(), done: map[string]*types.Package{}}
		c.context.GOOS, c.context.GOARCH, c.context.CgoEnabled, c.context.BuildTags = "darwin", "arm64", cgo,
			[]string{"metal"}
		c.standard = importer.ForCompiler(c.fset, "gc", nil)
		p, err := c.Import(module + "metal")
		require.NoError(t, err)
		assert.NotNil(t, p.Scope().Lookup("table"))
		assert.Equal(t, cgo, slices.Contains(c.files, "../metal/shim.go"))
		assert.Equal(t, cgo, slices.Contains(c.files, "../internal/cgo/table.go"))
	}
}

// Every build has either the shim or a file with the reason why it is missing.
func TestBuildLines(t *testing.T) {
	for _, b := range []struct {
		os   string
		cgo  bool
		tags []string
		shim bool
	}{
		{"darwin", true, []string{"metal"}, true},
		{"darwin", true, []string{"metal", "simmetal"}, true},
		{"linux", true, []string{"metal", "simmetal"}, true},
		{"darwin", true, nil, false},
		{"darwin", true, []string{"simmetal"}, false},
		{"linux", true, nil, false},
		{"linux", true, []string{"metal"}, false},
		{"windows", true, []string{"metal"}, false},
		{"darwin", false, []string{"metal"}, false},
		{"linux", false, []string{"metal", "simmetal"}, false},
		{"linux", false, nil, false},
	} {
		context := build.Default
		context.GOOS, context.GOARCH, context.CgoEnabled, context.BuildTags = b.os, "arm64", b.cgo, b.tags
		found, err := context.ImportDir(".", 0)
		require.NoError(t, err)
		name := fmt.Sprintf("%s, cgo %v, tags %v", b.os, b.cgo, b.tags)
		assert.Equal(t, b.shim, slices.Contains(found.CgoFiles, "shim.go"), name)
		assert.Equal(t, b.shim, slices.Contains(found.MFiles, "shim.m"), name)
		assert.Equal(t, !b.shim, slices.Contains(found.GoFiles, "noshim.go"), name)
	}
}
