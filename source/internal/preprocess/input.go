// The input of the preprocessor: the tokens of the program and of the files that it includes, after
// acting on directives and without skipped groups.

package preprocess

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
)

// mainFile is the index in fileKey for the program itself, which is in no file system.
const mainFile = -1

// fileKey identifies a file: an index into Options.Includes and a path in it.
type fileKey struct {
	fsys int
	path string
}

// input is one text being read.
type input struct {
	lex      *lexer
	key      fileKey
	groups   []group // #if groups that are open
	skipping bool    // the innermost group is skipped
}

func (p *preprocessor) input() *input { return p.inputs[len(p.inputs)-1] }

// enterFile starts reading tokens from text.
func (p *preprocessor) enterFile(name, text string, key fileKey) {
	l := newLexer(name, text, func(pos token.Pos, construct, msg string) { p.errorf(pos, construct, "%s", msg) })
	p.inputs = append(p.inputs, &input{lex: l, key: key})
	p.entered++
	p.readBytes += len(text)
	if p.readBytes > maxBytes || p.entered > maxIncludes {
		p.limit(l.pos(), "program includes too much (%d files and %d bytes are allowed)", maxIncludes, maxBytes)
	}
}

// leaveFile goes back to the file that included the current one, and reports
// whether there is one.
func (p *preprocessor) leaveFile() bool {
	in := p.input()
	for _, g := range in.groups {
		p.errorf(g.pos, "#"+g.name, "#%s without #endif", g.name)
	}
	in.groups, in.skipping = nil, false
	if len(p.inputs) == 1 {
		return false
	}
	p.inputs = p.inputs[:len(p.inputs)-1]
	return true
}

// lex returns the next token that is neither in a directive nor skipped. While a call's "(" or its
// arguments are read, the end of a file is EOF: a call must not continue in the including file.
func (p *preprocessor) lex() ppToken {
	lineEnd := false
	for !p.stopped {
		t := p.pull()
		switch {
		case t.Kind == token.Newline:
			lineEnd = true
		case t.Kind == token.EOF:
			if p.parsingArgs != 0 || !p.leaveFile() {
				return t
			}
		case t.BOL && isHash(t.Token) && p.parsingArgs != 1:
			p.directive(t.Token)
			lineEnd = true
		case p.input().skipping:
			p.skipLine()
		default:
			t.Space = t.Space || lineEnd && p.parsingArgs == 2
			p.charge(t.Pos, 1, 0)
			return t
		}
	}
	return p.eof()
}

// pull returns the token that was put back, or the next one of the text.
func (p *preprocessor) pull() ppToken {
	if t := p.peeked; t != nil {
		p.peeked = nil
		return *t
	}
	return ppToken{Token: p.input().lex.next()}
}

// eof returns the token at the end of a run that was stopped.
func (p *preprocessor) eof() ppToken {
	return ppToken{Token: token.Token{Kind: token.EOF, Pos: p.input().lex.pos()}}
}

func isHash(t token.Token) bool { return t.Kind == token.Punct && (t.Text == "#" || t.Text == "%:") }

// line returns the rest of the line and moves past its end.
func (p *preprocessor) line() []token.Token {
	var toks []token.Token
	for {
		t := p.input().lex.next()
		if t.Kind == token.Newline || t.Kind == token.EOF || p.stopped {
			return toks
		}
		p.charge(t.Pos, 1, 0)
		toks = append(toks, t)
	}
}

// skipLine moves past the end of the line. Malformed strings and comments in it are no error, since
// the line is not compiled.
func (p *preprocessor) skipLine() {
	for l := p.input().lex; ; {
		p.Step()
		if k := l.next().Kind; k == token.Newline || k == token.EOF {
			return
		}
	}
}

// include acts on "#include" at pos, whose operand stands next on the line.
func (p *preprocessor) include(pos token.Pos) {
	name, ok := p.input().lex.header()
	rest := p.line()
	if !ok {
		name.Text, ok = headerOf(p.expandLine(rest))
		if !ok {
			p.errorf(name.Pos, "#include", `#include needs "name" or <name>`)
			return
		}
	} else if len(rest) > 0 {
		p.warnf(rest[0].Pos, "#include", "extra text after #include %s", name.Text)
	}
	if len(p.inputs) > maxIncludeDepth {
		p.limit(pos, "#include %s: files are nested deeper than %d", name.Text, maxIncludeDepth)
		return
	}
	file, key, err := p.find(name.Text[1:len(name.Text)-1], name.Text[0] == '"')
	if err != nil {
		p.errorf(name.Pos, "#include", "#include %s: %v", name.Text, err)
		return
	}
	if !p.once[key] {
		p.enterFile(file.Name, file.Text, key)
	}
}

// headerOf returns the <name> or "name" from the expansion of a macro after #include.
func headerOf(toks []token.Token) (string, bool) {
	if len(toks) == 0 {
		return "", false
	}
	if t := toks[0]; t.Kind == token.String && t.Text[0] == '"' {
		return t.Text, true
	}
	if toks[0].Text != "<" {
		return "", false
	}
	for i, t := range toks {
		if t.Text == ">" {
			return "<" + spell(toks[1:i]) + ">", true
		}
	}
	return "", false
}

// find looks up an included file. A quoted name is first searched in the directory of the including
// file: in the same file system or, if the program itself includes it, in the directory of the
// program's name in any of the file systems.
func (p *preprocessor) find(name string, quoted bool) (*File, fileKey, error) {
	if name == "" {
		return nil, fileKey{}, errors.New("empty name")
	}
	if strings.HasPrefix(name, "/") {
		return nil, fileKey{}, errors.New("absolute path: includes come from the given file systems")
	}
	var keys []fileKey
	if from := p.input().key; quoted {
		beside := path.Join(path.Dir(from.path), name)
		for i := range p.includes {
			if from.fsys == i || from.fsys == mainFile {
				keys = append(keys, fileKey{i, beside})
			}
		}
	}
	for i := range p.includes {
		keys = append(keys, fileKey{i, path.Clean(name)})
	}
	for _, key := range keys {
		file, err := p.readFile(key)
		if err == nil {
			return file, key, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, key, err
		}
	}
	if !fs.ValidPath(path.Clean(name)) {
		return nil, fileKey{}, errors.New("leads out of the given file systems")
	}
	return nil, fileKey{}, errors.New("not found in the given file systems")
}

// Above is a file system that also opens files outside of its root, by names that begin with "../".
type Above interface {
	OpenAbove(name string) (fs.File, error)
}

// readFile returns a file's text. Each file is read once per run.
func (p *preprocessor) readFile(key fileKey) (*File, error) {
	if file, ok := p.read[key]; ok {
		return file, nil
	}
	fsys := p.includes[key.fsys]
	if fsys == nil {
		return nil, fs.ErrNotExist
	}
	open := fsys.Open
	if !fs.ValidPath(key.path) {
		above, ok := fsys.(Above)
		if !ok || strings.HasPrefix(key.path, "/") {
			return nil, fs.ErrNotExist
		}
		open = above.OpenAbove
	}
	f, err := open(key.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFileBytes {
		return nil, errors.New("file is too large")
	}
	file := &File{Name: key.path, Text: string(text)}
	p.read[key] = file
	p.files = append(p.files, *file)
	return file, nil
}

// File is one text that took part in a program.
type File struct {
	Name string
	Text string
}
