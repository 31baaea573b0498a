package check

// Statements.

import (
	"cmp"
	"slices"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// block parses { ... } in the scope that the caller opened.
func (p *parser) block() *tree.Stmt {
	st := &tree.Stmt{Kind: tree.StBlock, Pos: p.pos()}
	p.enter("block")
	defer p.leave()
	p.expect("{", "block")
	for !p.at("}") {
		if p.peek().Kind == token.EOF {
			p.fail(p.pos(), "block", "expected '}' before the end of the program")
		}
		p.guard(func() { st.List = append(st.List, p.item()) }, true)
	}
	p.next()
	return st
}

// item parses a declaration or a statement.
func (p *parser) item() *tree.Stmt {
	t := p.peek()
	if t.Kind == token.Ident && p.startsType(t) && p.peekAt(1).Text != ":" && !p.attributedStatement() {
		return p.localDecl()
	}
	return p.statement()
}

// attributedStatement reports whether an attribute begins a statement, such as
// __attribute__((opencl_unroll_hint(2))) for (...), and not a declaration.
func (p *parser) attributedStatement() bool {
	if !p.at("__attribute__") && !p.at("__attribute") {
		return false
	}
	start := p.i
	for p.at("__attribute__") || p.at("__attribute") {
		p.next()
		if !p.at("(") {
			break
		}
		p.skipParens() // skipped and parsed only once; parsing them twice would double the time at each level of nesting
	}
	isDecl := p.startsType(p.peek())
	p.i = start
	return !isDecl
}

// statement parses one statement.
func (p *parser) statement() *tree.Stmt {
	p.enter("statement")
	defer p.leave()
	return p.oneStatement()
}

func (p *parser) oneStatement() *tree.Stmt {
	t := p.peek()
	st := &tree.Stmt{Pos: t.Pos}
	if t.Kind == token.Punct && t.Text == "{" {
		p.push()
		st = p.block()
		p.pop()
		return st
	}
	if t.Kind == token.Punct && t.Text == ";" {
		p.next()
		return st
	}
	if t.Kind == token.Ident {
		if p.peekAt(1).Kind == token.Punct && p.peekAt(1).Text == ":" && !isKeyword(t.Text) {
			return p.label(st)
		}
		if keywords[t.Text].class == statementWord && p.keywordStatement(st, t.Text) {
			return st
		}
		if t.Text == "__attribute__" || t.Text == "__attribute" {
			p.attributes(&tree.Attributes{})
			return p.oneStatement()
		}
	}
	st.Kind = tree.StExpr
	st.E = p.expression()
	p.expect(";", "statement")
	return st
}

func (p *parser) label(st *tree.Stmt) *tree.Stmt {
	name := p.next().Text
	p.next()
	p.attributes(&tree.Attributes{})
	st.Kind, st.Text, p.Loops = tree.StLabel, name, true
	if old, ok := p.body.labels[name]; ok {
		p.errorf(st.Pos, "label", "the label '%s' is already at %s", name, old)
	}
	p.body.labels[name] = st.Pos
	p.fn.Split = true
	st.Body = p.labelled()
	return st
}

// labelled parses the statement after a label; before a } it is empty.
func (p *parser) labelled() *tree.Stmt {
	if p.at("}") {
		return &tree.Stmt{Pos: p.pos()}
	}
	if t := p.peek(); t.Kind == token.Ident && p.startsType(t) && p.peekAt(1).Text != ":" {
		return p.localDecl() // C23 and clang allow it
	}
	return p.statement()
}

// keywordStatement parses a statement that starts with a keyword. It returns false for keywords
// that start an expression.
func (p *parser) keywordStatement(st *tree.Stmt, word string) bool {
	switch word {
	case "if":
		p.ifStatement(st)
	case "while":
		p.next()
		st.Kind, st.Unroll, p.Loops = tree.StWhile, p.unrolls[p.i-1], true
		st.E = p.parenCondition("while")
		st.Body = p.loopBody()
	case "do":
		p.next()
		st.Kind, st.Unroll, p.Loops = tree.StDo, p.unrolls[p.i-1], true
		st.Body = p.loopBody()
		if !p.at("while") {
			p.fail(p.pos(), "do", "expected 'while' before %s", describe(p.peek()))
		}
		p.next()
		st.E = p.parenCondition("do")
		p.expect(";", "do")
	case "for":
		p.forStatement(st)
	case "switch":
		p.switchStatement(st)
	case "case", "default":
		p.caseStatement(st)
	case "goto":
		p.next()
		t := p.next()
		if t.Kind != token.Ident {
			p.fail(t.Pos, "goto", "expected a label before %s", describe(t))
		}
		st.Kind, st.Text = tree.StGoto, t.Text
		p.fn.Split = true
		p.body.gotos = append(p.body.gotos, tree.Use{Name: t.Text, Pos: t.Pos})
		p.expect(";", "goto")
	case "break", "continue":
		p.next()
		st.Kind = tree.StBreak
		if word == "continue" {
			st.Kind = tree.StContinue
		}
		if p.inLoop == 0 && (word == "continue" || p.inBreak == 0) {
			p.errorf(st.Pos, word, "'%s' outside of a loop", word)
		}
		p.expect(";", word)
	case "return":
		p.returnStatement(st)
	case "else":
		p.fail(st.Pos, "else", "'else' without 'if'")
	case "asm", "__asm__", "__asm":
		p.fail(st.Pos, "asm", "inline assembly is not part of the portable language")
	default:
		return false
	}
	return true
}

// ifStatement parses an if and its chain of else if. For the limits on nesting the chain counts as
// a list.
func (p *parser) ifStatement(st *tree.Stmt) {
	for {
		p.next()
		st.Kind = tree.StIf
		st.E = p.parenCondition("if")
		st.Body = p.subStatement()
		if !p.accept("else") {
			return
		}
		if !p.at("if") {
			st.Alt = p.subStatement()
			return
		}
		st.Alt = &tree.Stmt{Pos: p.pos()}
		st = st.Alt
	}
}

// subStatement parses a statement in a new scope.
func (p *parser) subStatement() *tree.Stmt {
	p.push()
	defer p.pop()
	if t := p.peek(); t.Kind == token.Ident && p.startsType(t) && p.peekAt(1).Text != ":" {
		p.fail(t.Pos, "declaration", "a declaration needs braces here")
	}
	return p.statement()
}

func (p *parser) loopBody() *tree.Stmt {
	p.inLoop++
	p.inBreak++
	st := p.subStatement()
	p.inLoop--
	p.inBreak--
	return st
}

func (p *parser) parenCondition(construct string) *tree.Expr {
	p.expect("(", construct)
	e := p.condition(p.expression())
	p.expect(")", construct)
	return e
}

func (p *parser) forStatement(st *tree.Stmt) {
	p.next()
	st.Kind, st.Unroll, p.Loops = tree.StFor, p.unrolls[p.i-1], true
	p.expect("(", "for")
	p.push()
	defer p.pop()
	switch {
	case p.accept(";"):
	case p.startsType(p.peek()):
		st.Init = p.localDecl()
	default:
		st.Init = &tree.Stmt{Kind: tree.StExpr, Pos: p.pos(), E: p.expression()}
		p.expect(";", "for")
	}
	if !p.at(";") {
		st.E = p.condition(p.expression())
	}
	p.expect(";", "for")
	if !p.at(")") {
		st.Post = p.expression()
	}
	p.expect(")", "for")
	st.Body = p.loopBody()
}

func (p *parser) switchStatement(st *tree.Stmt) {
	p.next()
	st.Kind = tree.StSwitch
	p.expect("(", "switch")
	e := p.rvalue(p.expression())
	if !e.Type.IsInteger() && !e.Type.IsUnknown() {
		p.errorf(p.PosOf(e), "switch", "switch needs an integer, not '%s'", e.Type)
	}
	st.E = p.promote(e)
	p.expect(")", "switch")
	sw := &switchState{typ: st.E.Type}
	p.inSwtch = append(p.inSwtch, sw)
	p.inBreak++
	declares := p.body.declares
	st.Body = p.subStatement()
	p.inBreak--
	p.inSwtch = p.inSwtch[:len(p.inSwtch)-1]
	p.checkCases(sw)
	p.fn.Split = p.fn.Split || p.body.declares > declares // the switch can jump past an initializer
}

func (p *parser) caseStatement(st *tree.Stmt) {
	word := p.next().Text
	if len(p.inSwtch) == 0 {
		p.fail(st.Pos, word, "'%s' outside of a switch", word)
	}
	sw := p.inSwtch[len(p.inSwtch)-1]
	if word == "default" {
		st.Kind = tree.StDefault
		if sw.hasDefault {
			p.errorf(st.Pos, word, "the switch has two defaults")
		}
		sw.hasDefault = true
	} else {
		st.Kind = tree.StCase
		e := p.conditional()
		st.Val = p.constantOf(e, "case")
		if !sw.typ.IsUnknown() {
			st.Val = st.Val.Convert(sw.typ)
			st.E = &tree.Expr{Op: tree.OpLit, Type: sw.typ, Val: st.Val, Tok: e.Tok}
		}
		st.Last = st.Val
		if p.accept("...") { // ranges are an extension of GNU C that OpenCL compilers have
			st.Last = p.constantOf(p.conditional(), "case").Convert(sw.typ)
		}
		p.caseValues(sw, st)
	}
	p.expect(":", word)
	st.Body = p.labelled()
}

// caseValues enters the values of a label.
func (p *parser) caseValues(sw *switchState, st *tree.Stmt) {
	if !st.Val.OK || !st.Last.OK {
		return
	}
	key := func(v tree.Value) uint64 { // ordered as values of the switch's type
		if v.Kind == tree.ULong {
			return v.Bits
		}
		return v.Bits ^ 1<<63
	}
	if first, last := key(st.Val), key(st.Last); first <= last {
		sw.labels = append(sw.labels, caseLabel{first, last, len(sw.labels), st})
	}
}

// checkCases reports values that are in two labels of a switch.
func (p *parser) checkCases(sw *switchState) {
	slices.SortFunc(sw.labels, func(a, b caseLabel) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.number, b.number))
	})
	for i := 1; i < len(sw.labels); i++ {
		a, b := &sw.labels[i-1], &sw.labels[i]
		if b.first > a.last {
			continue
		}
		at := b.st
		if a.number > b.number {
			at = a.st
		}
		p.errorf(at.Pos, "case", "the case %s occurs twice", b.st.Val)
		if a.last > b.last {
			b.last = a.last
		}
	}
}

func (p *parser) returnStatement(st *tree.Stmt) {
	p.next()
	st.Kind = tree.StReturn
	want := p.fn.Type.Elem
	if p.accept(";") {
		if !want.IsVoid() && !want.IsUnknown() {
			p.errorf(st.Pos, "return", "'%s' must return '%s'", p.fn.Name, want)
		}
		return
	}
	e := p.expression()
	switch {
	case want.IsVoid() && e.Type.IsVoid():
		st.E = e
	case want.IsVoid():
		if !e.Type.IsUnknown() {
			p.errorf(p.PosOf(e), "return", "'%s' returns nothing", p.fn.Name)
		}
	default:
		st.E = p.assignConv(e, want, "return")
	}
	p.expect(";", "return")
}
