package tests

// Tests of how the code reads: the length of lines, and of sentences in the documentation.

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	longestLine     = 120 // characters, a tab is one
	longestSentence = 35  // words
	longSentences   = 100 // one sentence of so many in a room may be longer, by need
)

// room returns the first folder of a path, or a dot.
func room(path string) string {
	if name, _, below := strings.Cut(path, "/"); below {
		return name
	}
	return "."
}

// TestLineLength: no line of Go has over 120 characters. Lines within raw strings are data: programs of other
// languages, templates, patterns. Flags for cgo cannot be divided.
func TestLineLength(t *testing.T) {
	long := map[string][]string{}
	for _, f := range load(t, "..").files {
		text, err := os.ReadFile(filepath.Join("..", f.path))
		require.NoError(t, err)
		raw := rawLines(text)
		n := 0
		for line := range strings.Lines(string(text)) {
			if n++; raw[n] || strings.HasPrefix(line, "#cgo ") {
				continue
			}
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > longestLine {
				long[room(f.path)] = append(long[room(f.path)], f.path+": "+strings.TrimSpace(line))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(long)) {
		n := len(long[name])
		assert.Fail(t, "long lines", "%s has %d:\n%s", name, n, strings.Join(long[name][:min(n, 20)], "\n"))
	}
}

// rawLines returns the numbers, from 1, of the lines of a file that a raw string reaches into.
func rawLines(text []byte) map[int]bool {
	var s scanner.Scanner
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	s.Init(file, text, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.STRING && literal[0] == '`' {
			first := file.Line(pos)
			for n := range strings.Count(literal, "\n") {
				lines[first+n+1] = true
			}
			if len(literal) > longestLine/2 {
				lines[first] = true
			}
		}
	}
}

// TestSentences: a sentence of the documentation of an exported name, or of a package, has at most 35 words.
func TestSentences(t *testing.T) {
	all, long := map[string]int{}, map[string][]string{}
	for _, f := range load(t, "..").files {
		if f.test() || !public(f.dir()) {
			continue
		}
		for _, doc := range documentation(f.ast) {
			for _, s := range sentences(doc.Text()) {
				all[room(f.path)]++
				if words := strings.Fields(s); len(words) > longestSentence {
					long[room(f.path)] = append(long[room(f.path)], f.path+": "+s)
				}
			}
		}
	}
	require.NotEmpty(t, all)
	for _, name := range slices.Sorted(maps.Keys(long)) {
		n, allowed := len(long[name]), (all[name]+longSentences-1)/longSentences
		if n > allowed {
			assert.Fail(t, "too many long sentences", "%s has %d of %d, %d are allowed:\n%s", name, n, all[name], allowed,
				strings.Join(long[name], "\n"))
		}
	}
}

// TestSentencesAreFound shows the test above what a sentence is.
func TestSentencesAreFound(t *testing.T) {
	assert.Equal(t, []string{"One two", "Three, e.g. four", "five", "Head", "six seven"},
		sentences("One two. Three, e.g. four\n\n  - five\n\n# Head\n\n\tcode that is not prose.\n\nsix\nseven\n"))
}

// documentation returns the comments of a file that godoc shows.
func documentation(f *ast.File) (docs []*ast.CommentGroup) {
	docs = append(docs, f.Doc)
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(typeName(d.Recv.List[0].Type))) {
				docs = append(docs, d.Doc)
			}
		case *ast.GenDecl:
			exported := false
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						exported = true
						docs = append(docs, s.Doc)
						docs = append(docs, members(s.Type)...)
					}
				case *ast.ValueSpec:
					if slices.ContainsFunc(s.Names, (*ast.Ident).IsExported) {
						exported = true
						docs = append(docs, s.Doc, s.Comment)
					}
				}
			}
			if exported {
				docs = append(docs, d.Doc)
			}
		}
	}
	return docs
}

// members returns the comments of the exported fields of a struct and of the methods of an interface.
func members(e ast.Expr) (docs []*ast.CommentGroup) {
	var list *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		list = e.Fields
	case *ast.InterfaceType:
		list = e.Methods
	default:
		return nil
	}
	for _, f := range list.List {
		if len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
			docs = append(docs, f.Doc, f.Comment)
		}
	}
	return docs
}

// sentences returns the sentences of a comment. Blank lines, headings and items of lists end one; indented
// lines that are no items of a list or their continuation are code.
func sentences(text string) (all []string) {
	var current []string
	end := func() {
		for s := range strings.SplitSeq(strings.ReplaceAll(strings.Join(current, " "), "e.g. ", "e.g.\u00a0"), ". ") {
			if s = strings.ReplaceAll(strings.TrimSpace(s), "e.g.\u00a0", "e.g. "); s != "" {
				all = append(all, s)
			}
		}
		current = nil
	}
	item := false
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "":
			end()
			item = false
		case strings.HasPrefix(line, "# "):
			end()
			all = append(all, strings.TrimPrefix(trimmed, "# "))
		case strings.HasPrefix(trimmed, "- ") && strings.HasPrefix(line, " "):
			end()
			item = true
			current = append(current, strings.TrimPrefix(trimmed, "- "))
		case (strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "  ")) && !item:
			end()
		default:
			current = append(current, trimmed)
		}
	}
	end()
	return all
}
