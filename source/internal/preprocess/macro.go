// Macros: the definitions of #define and Options.Defines.

package preprocess

import (
	"slices"
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
)

// macro is a definition. A function-like one has params, perhaps none.
type macro struct {
	name       string
	funlike    bool
	variadic   bool // the last parameter takes the rest of the arguments
	params     []string
	body       []ppToken
	builtin    builtinMacro
	predefined bool // defined by the language; a program may redefine it
	off        bool // its replacement list is being read
}

// builtinMacro is a macro whose value depends on where it is used, such as __LINE__.
type builtinMacro uint8

const (
	notBuiltin builtinMacro = iota
	lineMacro
	fileMacro
	counterMacro
)

// defines acts on Options.Defines. They are in no file, so their positions have the definition's
// name as the file.
func (p *preprocessor) defines(defs []Define) {
	for _, d := range defs {
		pos := token.Pos{File: "-D " + d.Name, Line: 1, Col: 1}
		if strings.ContainsAny(d.Name+d.Value, "\r\n") {
			p.errorf(pos, "-D", "definition of %q contains a line end", d.Name)
			continue
		}
		line, ok := p.defineText(pos, d.Name)
		if !ok {
			continue
		}
		// Name must be exactly NAME or NAME(a, b); the value is in Value.
		if n := headLen(line); n == 0 || n != len(line) || line[0].Space {
			p.errorf(pos, "-D", "%q is not the name of a macro", d.Name)
			continue
		}
		value, ok := p.defineText(pos, d.Value)
		if !ok {
			continue
		}
		if len(value) > 0 {
			value[0].Space = true
		}
		p.define(pos, append(line, value...), false)
	}
}

// defineText splits a part of a definition into tokens.
func (p *preprocessor) defineText(pos token.Pos, text string) ([]token.Token, bool) {
	if len(text) > maxFileBytes {
		p.limit(pos, "definition is larger than %d bytes", maxFileBytes)
		return nil, false
	}
	ok := true
	lex := newLexer(pos.File, text, func(_ token.Pos, construct, msg string) {
		ok = false
		p.errorf(pos, construct, "%s", msg)
	})
	var line []token.Token
	for !p.stopped {
		t := lex.next()
		if t.Kind == token.Newline || t.Kind == token.EOF {
			break
		}
		p.charge(pos, 1, 0)
		line = append(line, t)
	}
	return line, ok
}

// headLen returns the number of tokens of the name and the parameters of a definition, and 0 if
// there is no name.
func headLen(line []token.Token) int {
	switch {
	case len(line) == 0 || line[0].Kind != token.Ident:
		return 0
	case len(line) == 1 || line[1].Text != "(" || line[1].Space:
		return 1
	}
	for i, t := range line {
		if t.Text == ")" {
			return i + 1
		}
	}
	return len(line)
}

// define acts on #define; line is the rest of the line after that word.
func (p *preprocessor) define(pos token.Pos, line []token.Token, predefined bool) {
	if len(line) == 0 || line[0].Kind != token.Ident {
		if len(line) > 0 {
			pos = line[0].Pos
		}
		p.errorf(pos, "#define", "#define needs the name of a macro")
		return
	}
	m := &macro{name: line[0].Text, predefined: predefined}
	if m.name == "defined" || m.name == "__VA_ARGS__" {
		p.errorf(line[0].Pos, "#define", "%s cannot be defined", m.name)
		return
	}
	body := line[1:]
	if len(body) > 0 && body[0].Text == "(" && !body[0].Space {
		m.funlike = true
		rest, ok := p.parameters(m, body)
		if !ok {
			return
		}
		body = rest
	}
	if !p.body(m, body) {
		return
	}
	if old := p.macros[m.name]; old != nil && !old.predefined && !old.same(m) {
		p.warnf(line[0].Pos, "macro "+m.name, "macro %s is redefined", m.name)
	}
	p.macros[m.name] = m
}

// parameters reads "(a, b, ...)" into m and returns the tokens after it.
func (p *preprocessor) parameters(m *macro, line []token.Token) ([]token.Token, bool) {
	bad := func(t token.Token, format string, args ...any) ([]token.Token, bool) {
		p.errorf(t.Pos, "macro "+m.name, "macro "+m.name+": "+format, args...)
		return nil, false
	}
	end := token.Token{Kind: token.Newline, Pos: line[0].Pos}
	at := func(i int) token.Token {
		if i < len(line) {
			return line[i]
		}
		return end
	}
	known := map[string]bool{}
	for i := 1; ; i++ {
		t := at(i)
		switch {
		case t.Text == ")" && i == 1:
			return line[2:], true
		case t.Text == "...":
			m.variadic = true
			m.params = append(m.params, "__VA_ARGS__")
		case t.Kind != token.Ident:
			return bad(t, "expected a parameter, not %s", kindOf(t))
		case known[t.Text] || t.Text == "__VA_ARGS__":
			return bad(t, "parameter %s is not allowed here", t.Text)
		default:
			known[t.Text] = true
			m.params = append(m.params, t.Text)
			if at(i+1).Text == "..." { // GNU: a named variadic parameter
				m.variadic = true
				i++
			}
		}
		i++
		switch t := at(i); {
		case t.Text == ")":
			return line[i+1:], true
		case t.Text != "," || m.variadic:
			return bad(t, "expected , or ) after a parameter, not %s", kindOf(t))
		}
	}
}

// body reads the replacement list of m. Parameters become tokParam tokens, and # and ## become
// flags of their operands.
func (p *preprocessor) body(m *macro, line []token.Token) bool {
	bad := func(t token.Token, msg string) bool {
		p.errorf(t.Pos, "macro "+m.name, "macro %s: %s", m.name, msg)
		return false
	}
	param := make(map[string]int32, len(m.params))
	for i, name := range m.params {
		param[name] = int32(i)
	}
	m.body = make([]ppToken, 0, len(line))
	for i := 0; i < len(line); i++ {
		t := ppToken{Token: line[i]}
		t.BOL = false
		if digraph(t.Text) == "##" && t.Kind == token.Punct {
			if i == 0 || i == len(line)-1 {
				return bad(t.Token, "## cannot stand at the end of the list")
			}
			m.body[len(m.body)-1].flags |= flagPaste
			continue
		}
		if m.funlike && isHash(t.Token) {
			i++
			if i < len(line) && line[i].Kind == token.Ident {
				if _, ok := param[line[i].Text]; ok {
					space := t.Space
					t.Token = line[i]
					t.Space = space
					t.flags = flagString
				}
			}
			if t.flags == 0 {
				return bad(t.Token, "# needs a parameter after it")
			}
		}
		if n, ok := param[t.Text]; ok && t.Kind == token.Ident {
			t.Kind = tokParam
			t.arg = n
		}
		if len(m.body) == 0 {
			t.Space = false
		}
		m.body = append(m.body, t)
	}
	return true
}

// same reports whether two definitions are the same in the sense of C99 6.10.3.
func (m *macro) same(o *macro) bool {
	if m.builtin != o.builtin || m.funlike != o.funlike || m.variadic != o.variadic {
		return false
	}
	return slices.Equal(m.params, o.params) && slices.EqualFunc(m.body, o.body, func(a, b ppToken) bool {
		return a.Kind == b.Kind && a.Text == b.Text && a.Space == b.Space && a.flags == b.flags
	})
}

// Define is one -D. With an empty Value the name is defined as nothing; the command's
// -D NAME defines it as 1, as compilers do.
type Define struct {
	Name  string
	Value string
}
