// Package check parses the tokens of a program into a tree and checks it. Parsing and typing are
// one pass, since C requires declarations before uses. After a syntax error the parser skips the
// rest of the statement or declaration; an expression with a type error gets an unknown type, which
// suppresses errors that are consequences of it.
package check

// The parser: its state, token access, errors and scopes.

import (
	"fmt"
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// Limits that bound the recursion: how deep constructs nest, and how long a chain of operators is.
const (
	maxNest  = 256
	maxDepth = 4000
)

// parser is the state of parsing one program.
type parser struct {
	*token.Meter
	tree.Program
	folder  tree.Folder
	unrolls map[int]string
	i       int
	nest    int
	feats   token.Features
	errs    token.ErrorList

	scopes  []*scope
	fn      *tree.Function
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
	names map[string]*tree.Symbol
	tags  map[string]*tag
}

// body is the state of parsing a function's body.
type body struct {
	declares int            // declarations so far
	locals   map[string]int // number of local variables by name
	labels   map[string]token.Pos
	gotos    []tree.Use
}

// tag is a struct, union or enum by its name.
type tag struct {
	rec  *tree.Record
	enum *tree.Type
	word string
}

type switchState struct {
	typ        *tree.Type
	labels     []caseLabel
	hasDefault bool
}

// caseLabel is the range of values of one case of a switch.
type caseLabel struct {
	first, last uint64
	number      int // in the order of the text
	st          *tree.Stmt
}

// bail is the panic value of a syntax error; the parser recovers it.
type bail struct{}

// stop is the panic value for too many errors.
type stop struct{}

// Parse parses and checks a whole program for a device with these features. The error,
// if any, is an ErrorList.
func Parse(m *token.Meter, all []token.Token, feats token.Features) (*tree.Program, error) {
	p := &parser{Meter: m, Program: tree.Program{Tokens: all}, feats: feats, unrolls: map[int]string{},
		unique: map[string]int{}}
	for i, t := range all {
		if t.Kind == token.Pragma {
			if w := unrollPragma(t.Text); w != "" {
				p.unrolls[len(p.Toks)] = w
			}
			continue
		}
		p.Toks = append(p.Toks, t)
		p.Origin = append(p.Origin, i)
	}
	if n := len(p.Toks); n == 0 || p.Toks[n-1].Kind != token.EOF {
		p.Toks = append(p.Toks, token.Token{Kind: token.EOF})
		p.Origin = append(p.Origin, len(all))
	}
	p.scopes = append(p.scopes, typeNames())
	p.push()
	p.parse()
	if err := p.errs.Err(); err != nil {
		return nil, err
	}
	tree := p.Program
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
	for _, t := range p.Toks {
		if t.Kind == token.Ident && len(t.Text) > token.MaxName {
			p.errorf(t.Pos, "name", "the name is longer than %d bytes", token.MaxName)
		}
	}
	for p.peek().Kind != token.EOF {
		p.guard(p.externalDecl, false)
	}
	p.checkProgram()
}

// guard runs parse; after a syntax error it skips the rest of the statement (inBlock) or declaration.
// It always consumes at least one token.
func (p *parser) guard(parse func(), inBlock bool) {
	start, nest, depth := p.i, p.nest, len(p.scopes)
	loop, brk, sw := p.inLoop, p.inBreak, p.inSwtch
	defer func() {
		switch r := recover(); r.(type) {
		case nil:
		case bail:
			p.nest, p.inLoop, p.inBreak, p.inSwtch = nest, loop, brk, sw
			p.scopes = p.scopes[:depth]
			p.skip(p.openBraces(start), inBlock)
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
	for _, t := range p.Toks[start:p.i] {
		if t.Kind == token.Punct && t.Text == "{" {
			n++
		} else if t.Kind == token.Punct && t.Text == "}" {
			n--
		}
	}
	return max(n, 0)
}

// skip skips the rest of a declaration, or of a statement in a block, that could not be parsed and of which level
// braces are open. The end of the block is left for its parser.
func (p *parser) skip(level int, inBlock bool) {
	if !inBlock {
		p.fn = nil
	}
	for p.peek().Kind != token.EOF && !(inBlock && level == 0 && p.at("}")) {
		switch {
		case p.accept("{"):
			level++
		case p.accept("}"):
			if level--; level <= 0 {
				if !inBlock {
					p.accept(";")
				}
				return
			}
		case p.next().Text == ";" && level <= 0:
			return
		}
	}
}

func (p *parser) peek() *token.Token { return &p.Toks[p.i] }

func (p *parser) peekAt(n int) *token.Token {
	return &p.Toks[min(p.i+n, len(p.Toks)-1)]
}

func (p *parser) next() *token.Token {
	p.Step()
	t := &p.Toks[p.i]
	if p.i < len(p.Toks)-1 {
		p.i++
	}
	return t
}

// at reports whether the next token is this punctuation or word.
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

// expect consumes the given punctuation, or reports the token that is there instead.
func (p *parser) expect(text, construct string) *token.Token {
	if p.at(text) {
		return p.next()
	}
	pos, found := p.peek().Pos, describe(p.peek())
	if text == ";" && p.i > 0 && p.peek().BOL {
		// The mistake is at the end of the line before.
		prev := &p.Toks[p.i-1]
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

// enter counts a nesting level, which leave ends.
func (p *parser) enter(construct string) {
	if p.nest++; p.nest > maxNest {
		p.fail(p.pos(), construct, "nested deeper than %d levels", maxNest)
	}
}

func (p *parser) leave() { p.nest-- }

func (p *parser) push() {
	p.scopes = append(p.scopes, &scope{names: map[string]*tree.Symbol{}, tags: map[string]*tag{}})
}

func (p *parser) pop() { p.scopes = p.scopes[:len(p.scopes)-1] }

func (p *parser) level() int { return len(p.scopes) - 1 }

func (p *parser) lookup(name string) *tree.Symbol {
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
// renderings. Names that shadow another one of the same function get a different name, because C++
// forbids some shadowing that C allows.
func (p *parser) declare(s *tree.Symbol) {
	s.Scope = p.level()
	if s.Kind != tree.SymFunc {
		s.Fn = p.fn
	}
	top := p.scopes[len(p.scopes)-1]
	if old := top.names[s.Name]; old != nil && s.Scope > 0 && !p.redeclares(old, s) {
		p.errorf(s.Pos, "declaration", "'%s' is already declared at %s", s.Name, old.Pos)
	}
	s.CName = "u_" + s.Name
	if s.Scope >= 2 && !s.Inst {
		n := 1
		for i := 2; i < len(p.scopes); i++ {
			if old := p.scopes[i].names[s.Name]; old != nil && old != s && !old.Inst {
				n++
			}
		}
		if n > 1 {
			s.CName = fmt.Sprintf("u%d_%s", n, s.Name)
		}
	}
	top.names[s.Name] = s
}

// redeclares reports whether s may be declared in the same scope as old.
func (p *parser) redeclares(old, s *tree.Symbol) bool {
	if old.Kind != s.Kind {
		return false
	}
	switch s.Kind {
	case tree.SymTypedef:
		return tree.SameObject(old.Type, s.Type)
	case tree.SymFunc:
		return true // declareFunction has checked it
	}
	return false
}

// uniqueName makes a name that is unique in the program, for declarations that a rendering moves
// out of their scope.
func (p *parser) uniqueName(prefix, name string) string {
	key := prefix + name
	p.unique[key]++
	if n := p.unique[key]; n > 1 {
		return fmt.Sprintf("%s%d_%s", prefix, n, name)
	}
	return prefix + "_" + name
}

// unrollPragma returns the text of a #pragma unroll, and "" for other pragmas.
func unrollPragma(text string) string {
	words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(text), "#"))
	if len(words) >= 2 && words[0] == "pragma" && words[1] == "unroll" {
		return strings.Join(words[1:], " ")
	}
	return ""
}
