package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Package runtime is what every program imports, so that each name of it costs every reader. What only some need
// stands in a package above or below it.
func TestRuntimeStaysSmall(t *testing.T) {
	names, methods := surface(t, filepath.Join("..", "runtime"))
	assert.LessOrEqual(t, len(names), 90, names)
	assert.LessOrEqual(t, len(methods), 110, methods)
	assert.Contains(t, names, "Stream", "it counts nothing")
	assert.Contains(t, methods, "Stream.Launch", "it counts nothing")
}

// surface lists the exported identifiers of a package's files, and the exported methods of its exported types.
func surface(t *testing.T, dir string) (names, methods []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		require.NoError(t, err)
		names = append(names, exported(file)...)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !f.Name.IsExported() {
				continue
			}
			if on := receiverName(f.Recv.List[0].Type); ast.IsExported(on) {
				methods = append(methods, on+"."+f.Name.Name)
			}
		}
	}
	return names, methods
}

// receiverName returns the name of a method's type.
func receiverName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiverName(t.X)
	case *ast.IndexExpr:
		return receiverName(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}
