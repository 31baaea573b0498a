package tests

// The documentation that programs see: every exported identifier has a comment, every
// package an example that runs, and the pages show code that is compiled.

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

// public reports whether programs are meant to import the package of a directory.
func public(dir string) bool {
	for _, private := range []string{"cmd", "csrc", "examples", "testdata"} {
		if within(dir, private) {
			return false
		}
	}
	internal := slices.Contains(strings.Split(dir, "/"), "internal")
	return !internal && (dir == "tests/conformance" || !within(dir, "tests"))
}

// TestExportedDocs demands a doc comment of every exported constant, variable, type,
// function and method of the public packages, with every build tag and system at once.
// One comment above a group in parentheses serves the constants or variables in it.
func TestExportedDocs(t *testing.T) {
	checked := 0
	for _, f := range load(t, "..").files {
		if f.test() || !public(f.dir()) {
			continue
		}
		for _, d := range f.ast.Decls {
			for _, name := range undocumented(d) {
				assert.Fail(t, fmt.Sprintf("%s: %s has no doc comment", f.path, name))
			}
			checked++
		}
	}
	assert.NotZero(t, checked)
}

// TestUndocumented shows the test above what it has to find.
func TestUndocumented(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "planted.go", `package planted
func Bare() {}
// Said has a comment.
func Said() {}
func (t *T[E]) Method() {}
func (t hidden) Method() {}
type T[E any] struct{}
type ( Grouped int )
const A, b = 1, 2
// The group.
const ( C = 3 )
var D int // D has one at the end of its line.
`, parser.ParseComments)
	require.NoError(t, err)
	var names []string
	for _, d := range file.Decls {
		names = append(names, undocumented(d)...)
	}
	assert.Equal(t, []string{"Bare", "T.Method", "T", "Grouped", "A"}, names)
}

// undocumented returns the exported names that a declaration makes and that have no comment.
func undocumented(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		receiver := ""
		if d.Recv != nil {
			receiver = typeName(d.Recv.List[0].Type)
			if !ast.IsExported(receiver) {
				return nil
			}
			receiver += "."
		}
		if d.Name.IsExported() && d.Doc == nil {
			names = append(names, receiver+d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				// The comment of a group says nothing about each type in it.
				if s.Name.IsExported() && s.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

// typeName returns the name of a receiver's type without pointer and parameters.
func typeName(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// TestExamplesOfPackages demands an example with a checked output in every public package,
// in a test package of its own, since that is how godoc shows imports.
func TestExamplesOfPackages(t *testing.T) {
	packages, shown := map[string]bool{}, map[string]bool{}
	for _, f := range load(t, "..").files {
		switch {
		case !public(f.dir()) || f.dir() == "tests/conformance": // its example needs a backend's module
		case !f.test():
			packages[f.dir()] = true
		case strings.HasSuffix(f.ast.Name.Name, "_test"):
			for _, c := range f.ast.Comments {
				if strings.HasPrefix(c.Text(), "Output:") || strings.HasPrefix(c.Text(), "Unordered output:") {
					shown[f.dir()] = true
				}
			}
		}
	}
	require.NotEmpty(t, packages)
	for dir := range packages {
		assert.True(t, shown[dir], "package %s has no example with an output", dir)
	}
}

// pages returns the names of the pages that people read, below the root.
func pages(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	names := []string{"README.md", "ARCHITECTURE.md", "RATIONALE.md", "CONTRIBUTING.md"}
	for _, d := range docs {
		names = append(names, "docs/"+filepath.Base(d))
	}
	return names
}

// TestQuotedCode demands that each block of Go or of output in the pages of docs stands, but for
// its indentation, in an example that is compiled and run. The program in README.md has a test
// of its own.
func TestQuotedCode(t *testing.T) {
	var examples []string
	for _, pattern := range []string{"../examples/*/*.go", "../examples/*_test.go", "../source/example_test.go"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, f := range found {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			examples = append(examples, flat(string(text)))
		}
	}
	for page, code := range blocks(t, "go|text") {
		quoted := slices.ContainsFunc(examples, func(e string) bool { return strings.Contains(e, flat(code)) })
		assert.True(t, quoted, "%s: no example has these lines:\n%s", page, code)
	}
}

// TestKernelBlocks demands that each block of C in the pages of docs is a program for every kind of
// device, and builds where this machine can.
func TestKernelBlocks(t *testing.T) {
	dev, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	n := 0
	for page, code := range blocks(t, "c") {
		n++
		unit, err := source.Parse(code, source.Options{Name: page})
		require.NoError(t, err)
		for _, target := range []source.Target{source.OpenCL, source.Host, source.CUDA, source.HIP} {
			_, err := unit.Render(target)
			assert.NoError(t, err, target)
		}
		unit, err = source.Parse(code, source.Options{Name: page, Features: &source.MetalFeatures})
		require.NoError(t, err)
		_, err = unit.Render(source.Metal)
		assert.NoError(t, err)
		unit, err = source.Parse(code, source.Options{Name: page, Features: dev.Features()})
		require.NoError(t, err)
		if _, err := dev.Program(t.Context(), unit); !errors.Is(err, runtime.ErrUnsupported) {
			assert.NoError(t, err)
		}
	}
	assert.NotZero(t, n)
}

// blocks iterates over the blocks of code in a language in the pages of docs, with the page.
func blocks(t *testing.T, language string) iter.Seq2[string, string] {
	block := regexp.MustCompile("(?ms)^```(?:" + language + ")\n(.*?)^```$")
	return func(yield func(page, code string) bool) {
		for _, page := range pages(t) {
			if !strings.HasPrefix(page, "docs/") {
				continue
			}
			text, err := os.ReadFile(filepath.Join("..", page))
			require.NoError(t, err)
			for _, m := range block.FindAllStringSubmatch(string(text), -1) {
				if !yield(page, m[1]) {
					return
				}
			}
		}
	}
}

// flat returns a text without indentation, and comments as what they say.
func flat(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimPrefix(strings.TrimSpace(line), "// ") + "\n")
	}
	return b.String()
}
