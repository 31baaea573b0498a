package source

// The parser: its state, token access, errors and scopes. Parsing and typing are
// one pass, as C declares before it uses. A syntax error abandons the statement
// or declaration it stands in; a typing error gives an unknown type, which
// silences what follows from it.

import (
	"fmt"
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
)

// Limits that keep any input finite: how deep constructs nest, and how long a chain of
// operators gets.
const (
	maxNest  = 256
	maxDepth = 4000
)

// parser holds what is known while one program is read.
type parser struct {
	*token.Meter
	program
	unrolls map[int]string
	i       int
	nest    int
	feats   token.Features
	errs    token.ErrorList

	scopes  []*scope
	fn      *function
	body    body // of fn
	inLoop  int
	inBreak int
	inSwtch []*switchState

	unique map[string]int
	sites  int
	nodes  int // initializer elements so far
}

// scope is one level of names. Tags are a name space of their own.
type scope struct {
	names map[string]*symbol
	tags  map[string]*tag
}

// body is what is known of a function while its body is read.
type body struct {
	declares int            // declarations so far
	locals   map[string]int // how many of the local variables have a name
	labels   map[string]token.Pos
	gotos    []use
}

// tag is a struct, union or enum by its name.
type tag struct {
	rec  *record
	enum *ctype
	word string
}

type switchState struct {
	typ        *ctype
	labels     []caseLabel
	hasDefault bool
}

// caseLabel is what one case of a switch stands for.
type caseLabel struct {
	first, last uint64
	number      int // in the order of the text
	st          *stmt
}

// bail is what a syntax error panics with; it never leaves the parser.
type bail struct{}

// stop is what too many errors panic with.
type stop struct{}

// parseTokens parses and checks a whole program for a device with these features. The error,
// if any, is an ErrorList.
func parseTokens(m *token.Meter, all []token.Token, feats token.Features) (*program, error) {
	p := &parser{Meter: m, program: program{tokens: all}, feats: feats, unrolls: map[int]string{}, unique: map[string]int{}}
	for i, t := range all {
		if t.Kind == token.Pragma {
			if w := unrollPragma(t.Text); w != "" {
				p.unrolls[len(p.toks)] = w
			}
			continue
		}
		p.toks = append(p.toks, t)
		p.origin = append(p.origin, i)
	}
	if n := len(p.toks); n == 0 || p.toks[n-1].Kind != token.EOF {
		p.toks = append(p.toks, token.Token{Kind: token.EOF})
		p.origin = append(p.origin, len(all))
	}
	p.push()
	p.declareTypeNames()
	p.push()
	p.parse()
	if err := p.errs.Err(); err != nil {
		return nil, err
	}
	tree := p.program
	return &tree, nil
}

// parse reads the tokens up to their end, or until there are too many errors.
func (p *parser) parse() {
	defer func() {
		switch r := recover(); r.(type) {
		case nil, stop:
		default:
			panic(r)
		}
	}()
	for _, t := range p.toks {
		if t.Kind == token.Ident && len(t.Text) > token.MaxName {
			p.errorf(t.Pos, "name", "the name is longer than %d bytes", token.MaxName)
		}
	}
	for p.peek().Kind != token.EOF {
		p.guard(p.externalDecl, p.skipDecl)
	}
	p.checkProgram()
}

// guard runs parse; after a syntax error it calls recovery to find a place
// where parsing can go on, and always moves forward.
func (p *parser) guard(parse func(), recovery func(braces int)) {
	start, nest, depth := p.i, p.nest, len(p.scopes)
	loop, brk, sw := p.inLoop, p.inBreak, p.inSwtch
	defer func() {
		switch r := recover(); r.(type) {
		case nil:
		case bail:
			p.nest, p.inLoop, p.inBreak, p.inSwtch = nest, loop, brk, sw
			p.scopes = p.scopes[:depth]
			recovery(p.openBraces(start))
			if p.i == start {
				p.next()
			}
		default:
			panic(r)
		}
	}()
	parse()
}

// openBraces counts the braces that were opened since token start and are not
// closed yet.
func (p *parser) openBraces(start int) int {
	n := 0
	for _, t := range p.toks[start:p.i] {
		if t.Kind == token.Punct && t.Text == "{" {
			n++
		} else if t.Kind == token.Punct && t.Text == "}" {
			n--
		}
	}
	return max(n, 0)
}

// skipDecl moves behind the declaration that could not be parsed, from inside
// level braces of it.
func (p *parser) skipDecl(level int) {
	p.fn = nil
	for p.peek().Kind != token.EOF {
		t := p.next()
		if t.Kind != token.Punct {
			continue
		}
		switch t.Text {
		case "{":
			level++
		case "}":
			level--
			if level <= 0 {
				p.accept(";")
				return
			}
		case ";":
			if level <= 0 {
				return
			}
		}
	}
}

func (p *parser) peek() *token.Token { return &p.toks[p.i] }

func (p *parser) peekAt(n int) *token.Token {
	return &p.toks[min(p.i+n, len(p.toks)-1)]
}

func (p *parser) next() *token.Token {
	p.Step()
	t := &p.toks[p.i]
	if p.i < len(p.toks)-1 {
		p.i++
	}
	return t
}

// at tells whether the next token is this punctuation or word.
func (p *parser) at(text string) bool {
	t := p.peek()
	return t.Text == text && (t.Kind == token.Punct || t.Kind == token.Ident)
}

func (p *parser) accept(text string) bool {
	if p.at(text) {
		p.next()
		return true
	}
	return false
}

// expect takes the given punctuation or reports what stands there instead.
func (p *parser) expect(text, construct string) *token.Token {
	if p.at(text) {
		return p.next()
	}
	pos, found := p.peek().Pos, describe(p.peek())
	if text == ";" && p.i > 0 && p.peek().BOL {
		// The mistake is at the end of the line before.
		prev := &p.toks[p.i-1]
		pos = prev.Pos
		pos.Col += len(prev.Text)
	}
	p.fail(pos, construct, "expected '%s' before %s", text, found)
	return nil
}

func describe(t *token.Token) string {
	if t.Kind == token.EOF {
		return "the end of the program"
	}
	text := t.Text
	if len(text) > 40 {
		text = text[:40] + "..."
	}
	return "'" + text + "'"
}

func (p *parser) pos() token.Pos { return p.peek().Pos }

// errorf records an error and goes on.
func (p *parser) errorf(pos token.Pos, construct, format string, args ...any) {
	msg := token.Clip(fmt.Sprintf(format, args...))
	for _, e := range p.errs {
		if e.Pos == pos && e.Msg == msg {
			return
		}
	}
	p.errs = append(p.errs, &token.Error{Pos: pos, Construct: construct, Msg: msg})
	if len(p.errs) >= token.MaxErrors {
		panic(stop{})
	}
}

// fail records an error and abandons the statement or declaration.
func (p *parser) fail(pos token.Pos, construct, format string, args ...any) {
	p.errorf(pos, construct, format, args...)
	panic(bail{})
}

// enter counts a nesting level; leave it with p.nest--.
func (p *parser) enter(construct string) {
	p.nest++
	if p.nest > maxNest {
		p.fail(p.pos(), construct, "nested deeper than %d levels", maxNest)
	}
}

func (p *parser) push() {
	p.scopes = append(p.scopes, &scope{names: map[string]*symbol{}, tags: map[string]*tag{}})
}

func (p *parser) pop() { p.scopes = p.scopes[:len(p.scopes)-1] }

func (p *parser) level() int { return len(p.scopes) - 1 }

func (p *parser) lookup(name string) *symbol {
	for i := len(p.scopes) - 1; i >= 0; i-- {
		if s := p.scopes[i].names[name]; s != nil {
			return s
		}
	}
	return nil
}

func (p *parser) lookupTag(name string) (t *tag, level int) {
	for i := len(p.scopes) - 1; i >= 0; i-- {
		if t := p.scopes[i].tags[name]; t != nil {
			return t, i
		}
	}
	return nil, 0
}

// declare enters a symbol into the innermost scope and gives it its name in
// renderings. Names that shadow another of the same function are told apart,
// because C++ forbids some of what C allows there.
func (p *parser) declare(s *symbol) {
	s.scope = p.level()
	s.fn = p.fnOf(s)
	top := p.scopes[len(p.scopes)-1]
	if old := top.names[s.name]; old != nil && s.scope > 0 && !p.redeclares(old, s) {
		p.errorf(s.pos, "declaration", "'%s' is already declared at %s", s.name, old.pos)
	}
	s.cname = "u_" + s.name
	if s.scope >= 2 && !s.inst {
		n := 1
		for i := 2; i < len(p.scopes); i++ {
			if old := p.scopes[i].names[s.name]; old != nil && old != s && !old.inst {
				n++
			}
		}
		if n > 1 {
			s.cname = fmt.Sprintf("u%d_%s", n, s.name)
		}
	}
	top.names[s.name] = s
}

func (p *parser) fnOf(s *symbol) *function {
	if s.kind == symFunc {
		return s.fn
	}
	return p.fn
}

// redeclares tells whether s may stand beside old in one scope.
func (p *parser) redeclares(old, s *symbol) bool {
	if old.kind != s.kind {
		return false
	}
	switch s.kind {
	case symTypedef:
		return sameObject(old.typ, s.typ)
	case symFunc:
		return true // declareFunction has looked at it
	}
	return false
}

// uniqueName makes a name that no other of the program has, for what a
// rendering moves out of the scope it was declared in.
func (p *parser) uniqueName(prefix, name string) string {
	key := prefix + name
	p.unique[key]++
	if n := p.unique[key]; n > 1 {
		return fmt.Sprintf("%s%d_%s", prefix, n, name)
	}
	return prefix + "_" + name
}

// unrollPragma returns what a #pragma unroll asks for ("" for other pragmas).
func unrollPragma(text string) string {
	words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(text), "#"))
	if len(words) >= 2 && words[0] == "pragma" && words[1] == "unroll" {
		return strings.Join(words[1:], " ")
	}
	return ""
}
