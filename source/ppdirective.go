// Directives: what a line that begins with # asks the preprocessor to do.

package source

import (
	"strconv"
	"strings"
)

// group is one #if ... #endif.
type group struct {
	name  string // "if", "ifdef" or "ifndef"
	pos   Pos
	outer bool // it stands in text that is left out
	taken bool // one of its branches was read
	last  bool // #else was seen
}

// directive acts on the line that begins with hash.
func (p *preprocessor) directive(hash token) {
	noExpand, parsingArgs := p.noExpand, p.parsingArgs
	p.noExpand, p.parsingArgs = 0, 0
	defer func() { p.noExpand, p.parsingArgs = noExpand, parsingArgs }()

	in := p.input()
	name := in.lex.next()
	if name.kind == tokNewline {
		return // "#" alone does nothing
	}
	if p.conditional(name) {
		return
	}
	if in.skipping {
		p.skipLine()
		return
	}
	switch name.text {
	case "include":
		if parsingArgs != 0 {
			p.errorf(hash.pos, "#include", "#include inside the arguments of a macro")
			p.skipLine()
			return
		}
		p.include(hash.pos)
	case "define":
		p.define(name.pos, p.line(), false)
	case "undef":
		p.undef(name.pos, p.line())
	case "pragma":
		p.pragma(hash.pos, p.line())
	case "line":
		p.setLine(name.pos, p.expandLine(p.line()))
	case "error":
		p.errorf(hash.pos, "#error", "#error %s", spell(p.line()))
	case "warning":
		p.warnf(hash.pos, "#warning", "#warning %s", spell(p.line()))
	default:
		rest := p.line()
		if name.kind == tokInt { // # 12 "file": what a preprocessor leaves behind
			p.setLine(name.pos, append([]token{name}, rest...))
			return
		}
		p.errorf(name.pos, "#"+name.text, "unknown directive #%s", name.text)
	}
}

// conditional acts on #if and its like and reports whether name is one of them.
func (p *preprocessor) conditional(name token) bool {
	in := p.input()
	switch name.text {
	case "if", "ifdef", "ifndef":
		g := group{name: name.text, pos: name.pos, outer: in.skipping}
		if in.skipping {
			p.skipLine()
		} else if g.name == "if" {
			g.taken = p.condition(name, p.line())
		} else {
			g.taken = p.ifdef(name, p.line()) == (g.name == "ifdef")
		}
		in.skipping = !g.taken
		in.groups = append(in.groups, g)
		p.charge(name.pos, 1, 0)
	case "elif", "else", "endif":
		p.branch(name)
	default:
		return false
	}
	return true
}

// branch acts on #elif, #else and #endif.
func (p *preprocessor) branch(name token) {
	in := p.input()
	if len(in.groups) == 0 {
		p.errorf(name.pos, "#"+name.text, "#%s without #if", name.text)
		p.skipLine()
		return
	}
	g := &in.groups[len(in.groups)-1]
	if g.last && name.text != "endif" {
		p.errorf(name.pos, "#"+name.text, "#%s after #else", name.text)
	}
	if name.text == "elif" {
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
		p.warnf(rest[0].pos, "#"+name.text, "extra text after #%s", name.text)
	}
	if name.text == "else" {
		in.skipping = g.outer || g.taken
		g.taken, g.last = true, true
		return
	}
	in.skipping = g.outer
	in.groups = in.groups[:len(in.groups)-1]
}

// macroName returns the one name that a directive is about.
func (p *preprocessor) macroName(directive string, pos Pos, line []token) (string, bool) {
	if len(line) == 0 || line[0].kind != tokIdent {
		if len(line) > 0 {
			pos = line[0].pos
		}
		p.errorf(pos, "#"+directive, "#%s needs the name of a macro", directive)
		return "", false
	}
	if len(line) > 1 {
		p.warnf(line[1].pos, "#"+directive, "extra text after #%s %s", directive, line[0].text)
	}
	return line[0].text, true
}

// ifdef reports whether the macro that line names is defined.
func (p *preprocessor) ifdef(directive token, line []token) bool {
	name, ok := p.macroName(directive.text, directive.pos, line)
	return ok && p.macros[name] != nil
}

// undef acts on #undef.
func (p *preprocessor) undef(pos Pos, line []token) {
	if name, ok := p.macroName("undef", pos, line); ok {
		if name == "defined" {
			p.errorf(pos, "#undef", "defined is not a macro")
		}
		delete(p.macros, name)
	}
}

// setLine acts on #line: line is its operand, macros expanded.
func (p *preprocessor) setLine(pos Pos, line []token) {
	lex := p.input().lex
	if len(line) == 0 {
		p.errorf(pos, "#line", "#line needs a line number")
		return
	}
	n, err := strconv.ParseUint(line[0].text, 10, 31)
	if err != nil {
		p.errorf(line[0].pos, "#line", "#line %s: not a line number", line[0].text)
		return
	}
	if len(line) > 1 {
		name, ok := unquote(line[1])
		if !ok {
			p.errorf(line[1].pos, "#line", "#line needs a quoted file name, not %s", kindOf(line[1]))
			return
		}
		if len(name) > maxName { // renderings repeat it
			p.errorf(line[1].pos, "#line", "#line: the file name is longer than %d bytes", maxName)
			return
		}
		lex.file = name
	}
	// The lexer stands at the beginning of the line that gets the number.
	lex.delta = int(n) - lex.line
}

// unquote returns the text of a string without its quotes and the escapes of
// these; other escapes stay, for this is used on file names and pragmas.
func unquote(t token) (string, bool) {
	if t.kind != tokString || t.text[0] != '"' {
		return "", false
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(t.text[1 : len(t.text)-1]), true
}

// pragma acts on #pragma and _Pragma: it is kept as one token. In the arguments
// of a call it comes out before what the call stands for, as with GNU.
func (p *preprocessor) pragma(pos Pos, line []token) {
	if len(line) > 0 && line[0].text == "once" {
		if key := p.input().key; key.fsys == mainFile {
			p.warnf(pos, "#pragma", "#pragma once in the main file")
		} else {
			p.once[key] = true
		}
		return
	}
	if len(line) > 0 && line[0].text == "unroll" {
		line = append(line[:1:1], p.expandLine(line[1:])...)
	}
	for _, t := range line {
		if t.kind == tokOther {
			p.stray(t)
		}
	}
	text := "#pragma"
	if len(line) > 0 {
		text += " " + spell(line)
	}
	p.charge(pos, 1, 0)
	p.emit(token{kind: tokPragma, text: text, pos: pos})
}

// pragmaOperator acts on _Pragma("..."), which op is the name of.
func (p *preprocessor) pragmaOperator(op ppToken) {
	var t [3]ppToken
	for i := range t {
		t[i] = p.getSolid()
		if i == 0 && t[0].text != "(" || i == 1 && t[1].kind != tokString || i == 2 && t[2].text != ")" {
			p.errorf(op.pos, "_Pragma", `_Pragma needs a string in parentheses`)
			return
		}
	}
	text, ok := unquote(t[1].token)
	if !ok {
		p.errorf(op.pos, "_Pragma", "_Pragma needs an ordinary string")
		return
	}
	lex := newLexer(op.pos.File, text, func(_ Pos, construct, msg string) { p.errorf(op.pos, construct, "%s", msg) })
	var line []token
	for {
		t := lex.next()
		if t.kind == tokNewline || t.kind == tokEOF {
			break
		}
		t.pos = op.pos
		line = append(line, t)
	}
	p.pragma(op.pos, line)
}
