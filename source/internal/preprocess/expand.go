// Macro expansion, by GNU cpp's algorithm.
//
// The replacement list of a macro is pushed on a stack and read from there, so that it is scanned
// again together with the text that follows. While a macro's list is on the stack the macro is off:
// its name, if it is read then, is marked as never to be expanded. Arguments are expanded by
// themselves first, on the same stack above a list that ends in EOF.

package preprocess

import (
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
)

// ppToken is a token with the state that expansion needs.
type ppToken struct {
	token.Token
	flags ppFlags
	arg   int32 // index of the parameter, for a tokParam
}

type ppFlags uint8

const (
	flagNoExpand ppFlags = 1 << iota // a name that was read while its macro was off
	flagPaste                        // ## follows
	flagString                       // a parameter with # before it
	flagPlain                        // padding that stands for no token
)

// tokParam is a parameter in a replacement list.
const tokParam = tokHeader + 1

// list is a replacement list, or an argument, being read.
type list struct {
	toks []ppToken
	i    int
	m    *macro // on again when the list is at its end; may be nil
	stop bool   // ends in EOF, and is popped by the function that pushed it
}

// macroArg is one argument of a call.
type macroArg struct {
	toks     []ppToken
	expanded []ppToken
	done     bool // expanded is set
	omitted  bool // the call does not have the argument at all, not even an empty one
}

// padding returns a token that is never emitted. It records whether there was white space before a
// macro or parameter that was replaced.
func padding(t ppToken) ppToken {
	return ppToken{Token: token.Token{Kind: tokPadding, Pos: t.Pos, Space: t.Space}}
}

// seam returns the padding at the end of a replacement.
func seam() ppToken { return ppToken{Token: token.Token{Kind: tokPadding}, flags: flagPlain} }

// spacing collects padding up to the next token and decides, by cpp's rules, whether there is white
// space before that token. Only the # operator makes this visible.
type spacing struct{ known, white bool }

func (s *spacing) add(pad ppToken) {
	plain := pad.flags&flagPlain != 0
	if !s.known || !s.white && plain {
		s.known, s.white = !plain, pad.Space
	}
}

func (s *spacing) take(t ppToken) bool {
	white := t.Space
	if s.known {
		white = s.white
	}
	*s = spacing{}
	return white
}

// get returns the next token with macros expanded, or padding.
func (p *preprocessor) get() ppToken {
	if p.stopped {
		return p.eof()
	}
	var t ppToken
	if n := len(p.lists); n == 0 {
		t = p.lex()
	} else {
		l := &p.lists[n-1]
		if l.i == len(l.toks) {
			if l.stop {
				return p.eof()
			}
			p.pop()
			return seam()
		}
		t = l.toks[l.i]
		l.i++
		p.charge(t.Pos, 1, 0)
		if t.flags&flagPaste != 0 {
			p.pasteAll(t)
			return padding(t)
		}
	}
	if t.Kind != token.Ident || t.flags&flagNoExpand != 0 {
		return t
	}
	m := p.macros[t.Text]
	switch {
	case m == nil:
	case m.off:
		t.flags |= flagNoExpand
	case p.noExpand == 0 && p.expand(m, t):
		return padding(t)
	}
	return t
}

// getSolid is get without padding.
func (p *preprocessor) getSolid() ppToken {
	for {
		if t := p.get(); t.Kind != tokPadding {
			return t
		}
	}
}

// putBack makes t the next token again. It must be the token that get has just returned.
func (p *preprocessor) putBack(t ppToken) {
	switch n := len(p.lists); {
	case t.Kind == token.EOF: // repeats by itself
	case n > 0:
		p.lists[n-1].i--
	default:
		p.peeked = &t
	}
}

func (p *preprocessor) push(l list) {
	if l.m != nil {
		l.m.off = true
	}
	p.lists = append(p.lists, l)
}

func (p *preprocessor) pop() {
	n := len(p.lists) - 1
	if m := p.lists[n].m; m != nil {
		m.off = false
	}
	p.lists[n] = list{}
	p.lists = p.lists[:n]
}

// expand pushes the expansion of macro m at name. It returns false if there is none to expand: a
// function-like macro without a "(".
func (p *preprocessor) expand(m *macro, name ppToken) bool {
	if m.builtin != notBuiltin {
		p.push(list{toks: []ppToken{p.value(m.builtin, name)}})
		return true
	}
	var args []macroArg
	if m.funlike {
		var ok bool
		if args, ok = p.call(m, name); !ok {
			return false
		}
	}
	p.push(list{toks: p.substitute(m, name, args), m: m})
	return true
}

// value returns the expansion of a built-in macro at name.
func (p *preprocessor) value(b builtinMacro, name ppToken) ppToken {
	t := ppToken{Token: token.Token{Kind: token.Int, Pos: name.Pos}}
	switch b {
	case lineMacro:
		t.Text = strconv.Itoa(name.Pos.Line)
	case counterMacro:
		t.Text = strconv.Itoa(p.counter)
		p.counter++
	case fileMacro:
		t.Kind = token.String
		t.Text = quote(name.Pos.File)
	}
	p.charge(name.Pos, 1, len(t.Text))
	return t
}

// quote returns s as a string literal.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// call reads the arguments of a function-like macro.
func (p *preprocessor) call(m *macro, name ppToken) ([]macroArg, bool) {
	p.noExpand++
	p.parsingArgs = 1
	defer func() {
		p.noExpand--
		p.parsingArgs = 0
	}()
	var gap *ppToken
	t := p.get()
	for ; t.Kind == tokPadding; t = p.get() {
		if gap == nil || !gap.Space && t.flags&flagPlain != 0 {
			pad := t
			gap = &pad
		}
	}
	if t.Kind != token.Punct || t.Text != "(" {
		p.putBack(t)
		if gap != nil && len(p.lists) > 0 {
			p.push(list{toks: []ppToken{*gap}})
		}
		return nil, false
	}
	p.parsingArgs = 2
	args, n := p.arguments(m, name)
	return args, n >= 0 && p.checkArgs(m, name, args, n)
}

// arguments reads up to the ")" of a call. It returns the arguments, one for each parameter, and
// the number that the call had, or -1 if the ")" is missing.
func (p *preprocessor) arguments(m *macro, name ppToken) ([]macroArg, int) {
	args := make([]macroArg, len(m.params))
	count, depth := 1, 0
	var toks []ppToken
	for {
		t := p.get()
		end := false
		switch {
		case t.Kind == token.EOF || t.BOL && isHash(t.Token):
			if !p.stopped {
				p.putBack(t)
				p.errorf(name.Pos, "macro "+m.name, "call of macro %s has no )", m.name)
			}
			return nil, -1
		case t.Kind == tokPadding && len(toks) == 0:
			continue
		case t.Kind != token.Punct:
		case t.Text == "(":
			depth++
		case t.Text == ")":
			end = depth == 0
			depth--
		case t.Text == "," && depth == 0:
			end = !m.variadic || count < len(m.params)
		}
		if !end {
			toks = append(toks, t)
			continue
		}
		for len(toks) > 0 && toks[len(toks)-1].Kind == tokPadding {
			toks = toks[:len(toks)-1]
		}
		if count <= len(args) {
			args[count-1].toks = toks
		} else if count == 1 && len(toks) == 0 {
			count = 0 // F() with a macro F that has no parameters
		}
		if t.Text == ")" {
			return args, count
		}
		count++
		toks = nil
	}
}

// checkArgs reports whether a call has the number of arguments that m takes.
func (p *preprocessor) checkArgs(m *macro, name ppToken, args []macroArg, n int) bool {
	switch want := len(m.params); {
	case n == want:
		if m.variadic && n == 1 {
			args[0].omitted = len(args[0].toks) == 0
		}
	case m.variadic && n == want-1:
		args[n].omitted = true
	default:
		p.errorf(name.Pos, "macro "+m.name, "macro %s takes %d arguments, not %d", m.name, want, n)
		return false
	}
	return true
}
