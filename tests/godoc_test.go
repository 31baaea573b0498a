package tests

// Tests of the documentation: every exported identifier has a comment, every package an example
// that runs, and the pages show code that is compiled.

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/kernels"
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

// TestExportedDocs demands that every exported constant, variable, type, function and method of
// the public packages, with every build tag and system at once, has a doc comment that begins
// with its name, as godoc lists and searches it. One comment above a group in parentheses serves the
// constants or variables in it and may begin with any word, as may one at the end of a line.
func TestExportedDocs(t *testing.T) {
	checked := 0
	for _, f := range load(t, "..").files {
		if f.test() || !public(f.dir()) {
			continue
		}
		for _, d := range f.ast.Decls {
			for _, name := range undocumented(d) {
				assert.Fail(t, fmt.Sprintf("%s: %s has no doc comment that begins with its name", f.path, name))
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
// The Article comes before it.
type Article int
// Othername is another name.
func Other() {}
// Deprecated: use Said.
func Old() {}
// Returns itself.
func (t *T[E]) Self() {}
func (t *T[E]) Method() {}
func (t hidden) Method() {}
type T[E any] struct{}
type ( Grouped int )
const A, b = 1, 2
// The group.
const ( C = 3 )
const (
	// E begins with its name.
	E = 5
	// Six is another.
	F = 6
)
// Two of them: G and H.
var G, H int
var D int // one at the end of its line
`, parser.ParseComments)
	require.NoError(t, err)
	var names []string
	for _, d := range file.Decls {
		names = append(names, undocumented(d)...)
	}
	assert.Equal(t, []string{"Bare", "Other", "T.Self", "T.Method", "T", "Grouped", "A", "F", "G", "H"}, names)
}

// undocumented returns the exported names that a declaration makes and that have no comment, or
// one that does not begin with them.
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
		if d.Name.IsExported() && !begins(d.Doc, d.Name) {
			names = append(names, receiver+d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				// The comment of a group says nothing about each type in it.
				if s.Name.IsExported() && !begins(s.Doc, s.Name) && (d.Lparen.IsValid() || !begins(d.Doc, s.Name)) {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				said := begins(s.Doc, s.Names...)
				if s.Doc == nil {
					said = s.Comment != nil || begins(d.Doc, s.Names...) || d.Doc != nil && d.Lparen.IsValid()
				}
				for _, n := range s.Names {
					if n.IsExported() && !said {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

// begins reports whether a comment begins with one of some names, an article aside, or says that
// they are deprecated.
func begins(doc *ast.CommentGroup, names ...*ast.Ident) bool {
	text := strings.TrimSpace(doc.Text()) // the comments of errors are indented below that of their parent
	for _, article := range []string{"A ", "An ", "The "} {
		text = strings.TrimPrefix(text, article)
	}
	first := text[:len(text)-len(strings.TrimLeftFunc(text, func(r rune) bool {
		return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
	}))]
	return strings.HasPrefix(text, "Deprecated: ") || slices.ContainsFunc(names, func(n *ast.Ident) bool {
		return n.Name == first
	})
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

// TestQuotedCode demands that each block of Go, CUDA or output in the pages of docs and in README.md stands,
// but for its indentation, in an example that is compiled and run. README.md's program and CONTRIBUTING.md
// have tests of their own.
func TestQuotedCode(t *testing.T) {
	var examples []string
	for _, pattern := range []string{"../examples/*/*.go", "../examples/*_test.go", "../*/example_test.go"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, f := range found {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			examples = append(examples, flat(string(text)))
		}
	}
	for page, code := range blocks(t, "go|text|cuda") {
		if page == "CONTRIBUTING.md" || page == "README.md" &&
			(strings.HasPrefix(code, "package main") || strings.HasPrefix(code, "cpu:0")) {
			continue
		}
		quoted := slices.ContainsFunc(examples, func(e string) bool { return strings.Contains(e, flat(code)) })
		assert.True(t, quoted, "%s: no example has these lines:\n%s", page, code)
	}
}

// TestContributedKernel adds the kernel of CONTRIBUTING.md to the catalog, and demands that it passes
// the tests of package kernels.
func TestContributedKernel(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("testing the kernel needs the go command: ", err)
	}
	catalog, err := filepath.Abs("../kernels")
	require.NoError(t, err)
	dir, added := t.TempDir(), map[string]string{}
	for extension, language := range map[string]string{".cl": "c", ".go": "go"} {
		for page, code := range blocks(t, language) {
			if page == "CONTRIBUTING.md" {
				file := filepath.Join(dir, "clamp"+extension)
				require.NoError(t, os.WriteFile(file, []byte(code), 0o600))
				added[filepath.Join(catalog, "clamp"+extension)] = file
			}
		}
	}
	require.Len(t, added, 2)
	overlay, err := json.Marshal(map[string]any{"Replace": added})
	require.NoError(t, err)
	file := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", file, "../kernels")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

// TestKernelBlocks demands that each block of C in the pages is a program for every kind of device,
// as a kernel of the catalog is parsed, and builds where this machine can.
func TestKernelBlocks(t *testing.T) {
	dev, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	n := 0
	for page, code := range blocks(t, "c") {
		n++
		opt := source.Options{Name: page, Includes: []fs.FS{kernels.Sources()}, Defines: []source.Define{
			{Name: "T", Value: "f32"}}}
		unit, err := source.Parse(code, opt)
		require.NoError(t, err)
		for _, target := range []source.Target{source.OpenCL, source.Host, source.CUDA, source.HIP} {
			_, err := unit.Render(target)
			assert.NoError(t, err, target)
		}
		opt.Features = &source.MetalFeatures
		unit, err = source.Parse(code, opt)
		require.NoError(t, err)
		_, err = unit.Render(source.Metal)
		assert.NoError(t, err)
		opt.Features = dev.Features()
		unit, err = source.Parse(code, opt)
		require.NoError(t, err)
		if _, err := dev.Program(t.Context(), unit); !errors.Is(err, runtime.ErrUnsupported) {
			assert.NoError(t, err)
		}
	}
	assert.NotZero(t, n)
}

// blocks iterates over the blocks of code in a language in the pages of docs, README.md and CONTRIBUTING.md,
// with the page.
func blocks(t *testing.T, language string) iter.Seq2[string, string] {
	block := regexp.MustCompile("(?ms)^```(?:" + language + ")\n(.*?)^```$")
	return func(yield func(page, code string) bool) {
		for _, page := range pages(t) {
			if page == "ARCHITECTURE.md" || page == "RATIONALE.md" {
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

// flat returns a text without indentation and without the marks of comments.
func flat(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimPrefix(strings.TrimSpace(line), "// ") + "\n")
	}
	return b.String()
}
