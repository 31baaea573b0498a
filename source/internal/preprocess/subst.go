// Substitution in the replacement list of one macro call: parameters are replaced by arguments, and
// # and ## are applied.

package preprocess

import (
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
)

// substitute returns the replacement list of macro m for its use at name. Its tokens have the
// position of that use.
func (p *preprocessor) substitute(m *macro, name ppToken, args []macroArg) []ppToken {
	out := make([]ppToken, 0, len(m.body))
	for i, b := range m.body {
		if p.stopped {
			break
		}
		p.charge(name.Pos, 1, 0)
		if b.Kind != tokParam {
			out = append(out, b)
			continue
		}
		afterPaste := i > 0 && m.body[i-1].flags&flagPaste != 0
		out = p.substituteParam(m, b, &args[b.arg], out, i == 0, afterPaste)
	}
	for i := range out {
		out[i].Pos = name.Pos
	}
	return out
}

// substituteParam appends the argument for the parameter b. Operands of ## are not expanded, all
// others are.
func (p *preprocessor) substituteParam(m *macro, b ppToken, a *macroArg, out []ppToken, first,
	afterPaste bool) []ppToken {
	var toks []ppToken
	pasteLast := -1 // index of the token that gets the paste flag of b
	switch {
	case b.flags&flagString != 0:
		toks = []ppToken{p.stringify(b, a.toks)}
	case b.flags&flagPaste != 0:
		toks = a.toks
	case afterPaste:
		toks = a.toks
		if n := len(out); n > 0 {
			rest := m.variadic && int(b.arg) == len(m.params)-1
			switch {
			case rest && out[n-1].Kind == token.Punct && out[n-1].Text == ",":
				// GNU: ", ## __VA_ARGS__" pastes nothing, but drops the comma if there is no argument.
				if a.omitted {
					out = out[:n-1]
				} else {
					pasteLast = n - 1
				}
			case len(toks) == 0:
				pasteLast = n - 1
			}
		}
	default:
		toks = p.expanded(a, b)
	}
	if !first && !afterPaste {
		out = append(out, padding(b))
	}
	p.charge(b.Pos, len(toks), 0)
	if p.stopped {
		return out
	}
	out = append(out, toks...)
	if b.flags&flagPaste == 0 {
		out = append(out, seam())
	} else if len(toks) > 0 {
		pasteLast = len(out) - 1
	}
	if pasteLast >= 0 && out[pasteLast].Kind != tokPadding {
		out[pasteLast].flags = out[pasteLast].flags&^flagPaste | b.flags&flagPaste
	}
	return out
}

// expanded returns an argument with its macros expanded.
func (p *preprocessor) expanded(a *macroArg, at ppToken) []ppToken {
	if a.done || len(a.toks) == 0 {
		return a.expanded
	}
	if p.nesting >= maxNesting {
		p.limit(a.toks[0].Pos, "macro calls are nested deeper than %d", maxNesting)
		return nil
	}
	noExpand, parsingArgs := p.noExpand, p.parsingArgs
	p.noExpand, p.parsingArgs = 0, 0
	p.nesting++
	n := len(p.lists)
	p.push(list{toks: a.toks, stop: true})
	for {
		t := p.get()
		if t.Kind == token.EOF {
			break
		}
		a.expanded = append(a.expanded, t)
	}
	a.done = true
	if !p.stopped {
		for len(p.lists) > n {
			p.pop()
		}
	}
	p.nesting--
	p.noExpand, p.parsingArgs = noExpand, parsingArgs
	return a.expanded
}

// expandLine expands the operand of a directive.
func (p *preprocessor) expandLine(line []token.Token) []token.Token {
	a := macroArg{toks: make([]ppToken, len(line))}
	for i, t := range line {
		a.toks[i].Token = t
	}
	var out []token.Token
	var space spacing
	for _, t := range p.expanded(&a, ppToken{}) {
		if t.Kind == tokPadding {
			space.add(t)
			continue
		}
		t.Space = space.take(t)
		out = append(out, t.Token)
	}
	return out
}

// stringify is the # operator: the argument's spelling as a string.
func (p *preprocessor) stringify(at ppToken, toks []ppToken) ppToken {
	var b strings.Builder
	var space spacing
	backslashes := 0
	b.WriteByte('"')
	for _, t := range toks {
		if t.Kind == tokPadding {
			space.add(t)
			continue
		}
		if space.take(t) && b.Len() > 1 {
			b.WriteByte(' ')
		}
		switch {
		case t.Kind == token.String || t.Kind == token.Char:
			for i := range len(t.Text) {
				if c := t.Text[i]; c == '"' || c == '\\' {
					b.WriteByte('\\')
				}
				b.WriteByte(t.Text[i])
			}
		case t.Kind == tokOther && strings.IndexByte(`"'`, t.Text[0]) >= 0:
			p.stray(t.Token)
		default:
			b.WriteString(t.Text)
		}
		if t.Text == `\` {
			backslashes++
		} else {
			backslashes = 0
		}
	}
	text := b.String()
	if backslashes%2 == 1 { // it would escape the closing quote
		text = text[:len(text)-1]
	}
	at.Kind = token.String
	at.Text = text + `"`
	at.flags &^= flagString
	p.charge(at.Pos, len(toks), len(at.Text))
	return at
}

// pasteAll joins t, which is followed by ##, with the next tokens of the innermost list, and pushes
// the result.
func (p *preprocessor) pasteAll(t ppToken) {
	l := &p.lists[len(p.lists)-1]
	for more := true; more && l.i < len(l.toks) && !p.stopped; {
		right := l.toks[l.i]
		l.i++
		if right.Kind == tokPadding {
			continue
		}
		text := t.Text + right.Text
		p.charge(t.Pos, 1, len(text))
		kind, n := scan(text)
		if n != len(text) || kind == tokOther {
			p.errorf(t.Pos, "##", "%s and %s do not make one token", t.Text, right.Text)
			l.i--
			break
		}
		t.Kind, t.Text = kind, text
		more = right.flags&flagPaste != 0
	}
	t.flags = 0
	p.push(list{toks: []ppToken{t}})
}
