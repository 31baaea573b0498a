// Directives: lines that begin with #.

package preprocess

import (
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
)

// group is one #if ... #endif.
type group struct {
	name  string // "if", "ifdef" or "ifndef"
	pos   token.Pos
	outer bool // it is inside of text that is skipped
	taken bool // one of its branches was read
	last  bool // #else was seen
}

// directive acts on the line that begins with hash.
func (p *preprocessor) directive(hash token.Token) {
	noExpand, parsingArgs := p.noExpand, p.parsingArgs
	p.noExpand, p.parsingArgs = 0, 0
	defer func() { p.noExpand, p.parsingArgs = noExpand, parsingArgs }()

	in := p.input()
	name := in.lex.next()
	if name.Kind == token.Newline {
		return // "#" alone does nothing
	}
	if p.conditional(name) {
		return
	}
	if in.skipping {
		p.skipLine()
		return
	}
	switch name.Text {
	case "include":
		if parsingArgs != 0 {
			p.errorf(hash.Pos, "#include", "#include inside the arguments of a macro")
			p.skipLine()
			return
		}
		p.include(hash.Pos)
	case "define":
		p.define(name.Pos, p.line(), false)
	case "undef":
		p.undef(name.Pos, p.line())
	case "pragma":
		p.pragma(hash.Pos, p.line())
	case "line":
		p.setLine(name.Pos, p.expandLine(p.line()))
	case "error":
		p.errorf(hash.Pos, "#error", "#error %s", spell(p.line()))
	case "warning":
		p.warnf(hash.Pos, "#warning", "#warning %s", spell(p.line()))
	default:
		rest := p.line()
		if name.Kind == token.Int { // # 12 "file": the line marker of a preprocessor's output
			p.setLine(name.Pos, append([]token.Token{name}, rest...))
			return
		}
		p.errorf(name.Pos, "#"+name.Text, "unknown directive #%s", name.Text)
	}
}

// conditional acts on #if, #ifdef, #ifndef, #elif, #else and #endif, and reports whether name is
// one of them.
func (p *preprocessor) conditional(name token.Token) bool {
	in := p.input()
	switch name.Text {
	case "if", "ifdef", "ifndef":
		g := group{name: name.Text, pos: name.Pos, outer: in.skipping}
		if in.skipping {
			p.skipLine()
		} else if g.name == "if" {
			g.taken = p.condition(name, p.line())
		} else {
			g.taken = p.ifdef(name, p.line()) == (g.name == "ifdef")
		}
		in.skipping = !g.taken
		in.groups = append(in.groups, g)
		p.charge(name.Pos, 1, 0)
	case "elif", "else", "endif":
		p.branch(name)
	default:
		return false
	}
	return true
}

// branch acts on #elif, #else and #endif.
func (p *preprocessor) branch(name token.Token) {
	in := p.input()
	if len(in.groups) == 0 {
		p.errorf(name.Pos, "#"+name.Text, "#%s without #if", name.Text)
		p.skipLine()
		return
	}
	g := &in.groups[len(in.groups)-1]
	if g.last && name.Text != "endif" {
		p.errorf(name.Pos, "#"+name.Text, "#%s after #else", name.Text)
	}
	if name.Text == "elif" {
		if g.outer || g.taken || g.last {
			in.skipping = true
			p.skipLine()
			return
		}
		g.taken = p.condition(name, p.line())
		in.skipping = !g.taken
		return
	}
	if rest := p.line(); len(rest) > 0 && !g.outer {
		p.warnf(rest[0].Pos, "#"+name.Text, "extra text after #%s", name.Text)
	}
	if name.Text == "else" {
		in.skipping = g.outer || g.taken
		g.taken, g.last = true, true
		return
	}
	in.skipping = g.outer
	in.groups = in.groups[:len(in.groups)-1]
}

// macroName returns the name that is the only operand of a directive.
func (p *preprocessor) macroName(directive string, pos token.Pos, line []token.Token) (string, bool) {
	if len(line) == 0 || line[0].Kind != token.Ident {
		if len(line) > 0 {
			pos = line[0].Pos
		}
		p.errorf(pos, "#"+directive, "#%s needs the name of a macro", directive)
		return "", false
	}
	if len(line) > 1 {
		p.warnf(line[1].Pos, "#"+directive, "extra text after #%s %s", directive, line[0].Text)
	}
	return line[0].Text, true
}

// ifdef reports whether the macro that line names is defined.
func (p *preprocessor) ifdef(directive token.Token, line []token.Token) bool {
	name, ok := p.macroName(directive.Text, directive.Pos, line)
	return ok && p.macros[name] != nil
}

// undef acts on #undef.
func (p *preprocessor) undef(pos token.Pos, line []token.Token) {
	if name, ok := p.macroName("undef", pos, line); ok {
		if name == "defined" {
			p.errorf(pos, "#undef", "defined is not a macro")
		}
		delete(p.macros, name)
	}
}

// setLine acts on #line: line is its operand, macros expanded.
func (p *preprocessor) setLine(pos token.Pos, line []token.Token) {
	lex := p.input().lex
	if len(line) == 0 {
		p.errorf(pos, "#line", "#line needs a line number")
		return
	}
	n, err := strconv.ParseUint(line[0].Text, 10, 31)
	if err != nil {
		p.errorf(line[0].Pos, "#line", "#line %s: not a line number", line[0].Text)
		return
	}
	if len(line) > 1 {
		name, ok := unquote(line[1])
		if !ok {
			p.errorf(line[1].Pos, "#line", "#line needs a quoted file name, not %s", kindOf(line[1]))
			return
		}
		if len(name) > token.MaxName { // renderings repeat the name
			p.errorf(line[1].Pos, "#line", "#line: the file name is longer than %d bytes", token.MaxName)
			return
		}
		lex.file = name
	}
	// The lexer is at the beginning of the line that gets the number.
	lex.delta = int(n) - lex.line
}

// unquote returns the text of a string without its quotes and the escapes of
// these; other escapes stay, for this is used on file names and pragmas.
func unquote(t token.Token) (string, bool) {
	if t.Kind != token.String || t.Text[0] != '"' {
		return "", false
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(t.Text[1 : len(t.Text)-1]), true
}

// pragma acts on #pragma and _Pragma, which become one token. In the arguments of a call the token
// is emitted before the expansion of the call, as by GNU cpp.
func (p *preprocessor) pragma(pos token.Pos, line []token.Token) {
	if len(line) > 0 && line[0].Text == "once" {
		if key := p.input().key; key.fsys == mainFile {
			p.warnf(pos, "#pragma", "#pragma once in the main file")
		} else {
			p.once[key] = true
		}
		return
	}
	if len(line) > 0 && line[0].Text == "unroll" {
		line = append(line[:1:1], p.expandLine(line[1:])...)
	}
	for _, t := range line {
		if t.Kind == tokOther {
			p.stray(t)
		}
	}
	text := "#pragma"
	if len(line) > 0 {
		text += " " + spell(line)
	}
	p.charge(pos, 1, 0)
	p.emit(token.Token{Kind: token.Pragma, Text: text, Pos: pos})
}

// pragmaOperator acts on _Pragma("..."), whose name is the token op.
func (p *preprocessor) pragmaOperator(op ppToken) {
	var t [3]ppToken
	for i := range t {
		t[i] = p.getSolid()
		if i == 0 && t[0].Text != "(" || i == 1 && t[1].Kind != token.String || i == 2 && t[2].Text != ")" {
			p.errorf(op.Pos, "_Pragma", `_Pragma needs a string in parentheses`)
			return
		}
	}
	text, ok := unquote(t[1].Token)
	if !ok {
		p.errorf(op.Pos, "_Pragma", "_Pragma needs an ordinary string")
		return
	}
	lex := newLexer(op.Pos.File, text, func(_ token.Pos, construct, msg string) { p.errorf(op.Pos, construct, "%s", msg) })
	var line []token.Token
	for {
		t := lex.next()
		if t.Kind == token.Newline || t.Kind == token.EOF {
			break
		}
		t.Pos = op.Pos
		line = append(line, t)
	}
	p.pragma(op.Pos, line)
}
