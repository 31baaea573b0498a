// The replacement list of one macro call: arguments put in the place of
// parameters, # and ##.

package source

import "strings"

// substitute returns the replacement list of m used at name. Its tokens carry
// the place of that use.
func (p *preprocessor) substitute(m *macro, name ppToken, args []macroArg) []ppToken {
	out := make([]ppToken, 0, len(m.body))
	for i, b := range m.body {
		if p.stopped {
			break
		}
		p.charge(name.pos, 1, 0)
		if b.kind != tokParam {
			out = append(out, b)
			continue
		}
		afterPaste := i > 0 && m.body[i-1].flags&flagPaste != 0
		out = p.substituteParam(m, b, &args[b.arg], out, i == 0, afterPaste)
	}
	for i := range out {
		out[i].pos = name.pos
	}
	return out
}

// substituteParam appends what stands for the parameter b. Operands of ## are
// taken as they were written, all others are expanded first.
func (p *preprocessor) substituteParam(m *macro, b ppToken, a *macroArg, out []ppToken, first, afterPaste bool) []ppToken {
	var toks []ppToken
	pasteLast := -1 // this token takes over whether ## follows b
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
			case rest && out[n-1].kind == tokPunct && out[n-1].text == ",":
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
	p.charge(b.pos, len(toks), 0)
	if p.stopped {
		return out
	}
	out = append(out, toks...)
	if b.flags&flagPaste == 0 {
		out = append(out, seam())
	} else if len(toks) > 0 {
		pasteLast = len(out) - 1
	}
	if pasteLast >= 0 && out[pasteLast].kind != tokPadding {
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
		p.limit(a.toks[0].pos, "macro calls are nested deeper than %d", maxNesting)
		return nil
	}
	noExpand, parsingArgs := p.noExpand, p.parsingArgs
	p.noExpand, p.parsingArgs = 0, 0
	p.nesting++
	n := len(p.lists)
	p.push(list{toks: a.toks, stop: true})
	for {
		t := p.get()
		if t.kind == tokEOF {
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
func (p *preprocessor) expandLine(line []token) []token {
	a := macroArg{toks: make([]ppToken, len(line))}
	for i, t := range line {
		a.toks[i].token = t
	}
	var out []token
	var space spacing
	for _, t := range p.expanded(&a, ppToken{}) {
		if t.kind == tokPadding {
			space.add(t)
			continue
		}
		t.space = space.take(t)
		out = append(out, t.token)
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
		if t.kind == tokPadding {
			space.add(t)
			continue
		}
		if space.take(t) && b.Len() > 1 {
			b.WriteByte(' ')
		}
		switch {
		case t.kind == tokString || t.kind == tokChar:
			for i := range len(t.text) {
				if c := t.text[i]; c == '"' || c == '\\' {
					b.WriteByte('\\')
				}
				b.WriteByte(t.text[i])
			}
		case t.kind == tokOther && strings.IndexByte(`"'`, t.text[0]) >= 0:
			p.stray(t.token)
		default:
			b.WriteString(t.text)
		}
		if t.text == `\` {
			backslashes++
		} else {
			backslashes = 0
		}
	}
	text := b.String()
	if backslashes%2 == 1 { // it would take the closing quote with it
		text = text[:len(text)-1]
	}
	at.kind = tokString
	at.text = text + `"`
	at.flags &^= flagString
	p.charge(at.pos, len(toks), len(at.text))
	return at
}

// pasteAll joins t, which ## follows, with what comes next in the innermost
// list, and pushes the result.
func (p *preprocessor) pasteAll(t ppToken) {
	l := &p.lists[len(p.lists)-1]
	for more := true; more && l.i < len(l.toks) && !p.stopped; {
		right := l.toks[l.i]
		l.i++
		if right.kind == tokPadding {
			continue
		}
		text := t.text + right.text
		p.charge(t.pos, 1, len(text))
		kind, n := scan(text)
		if n != len(text) || kind == tokOther {
			p.errorf(t.pos, "##", "%s and %s do not make one token", t.text, right.text)
			l.i--
			break
		}
		t.kind, t.text = kind, text
		more = right.flags&flagPaste != 0
	}
	t.flags = 0
	p.push(list{toks: []ppToken{t}})
}
