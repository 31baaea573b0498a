package source

// Statements.

import (
	"cmp"
	"slices"

	"github.com/concord-compute/concord/source/internal/token"
)

// block parses { ... } in the scope that the caller opened.
func (p *parser) block() *stmt {
	st := &stmt{kind: stBlock, pos: p.pos()}
	p.enter("block")
	p.expect("{", "block")
	for !p.at("}") {
		if p.peek().Kind == token.EOF {
			p.fail(p.pos(), "block", "expected '}' before the end of the program")
		}
		p.guard(func() { st.list = append(st.list, p.item()) }, p.skipStmt)
	}
	p.next()
	p.nest--
	return st
}

// item parses a declaration or a statement.
func (p *parser) item() *stmt {
	t := p.peek()
	if t.Kind == token.Ident && p.startsType(t) && p.peekAt(1).Text != ":" && !p.attributedStatement() {
		return p.localDecl()
	}
	return p.statement()
}

// attributedStatement tells __attribute__((opencl_unroll_hint(2))) for (...) from
// a declaration that begins with an attribute.
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
		p.skipParens() // what is in them is read once, or it would take twice as long at each level
	}
	isDecl := p.startsType(p.peek())
	p.i = start
	return !isDecl
}

// skipStmt moves behind the statement that could not be parsed, from inside
// level braces of it.
func (p *parser) skipStmt(level int) {
	for p.peek().Kind != token.EOF {
		t := p.peek()
		if t.Kind == token.Punct {
			switch t.Text {
			case "{":
				level++
			case "}":
				if level == 0 {
					return
				}
				level--
				if level == 0 {
					p.next()
					return
				}
			case ";":
				if level == 0 {
					p.next()
					return
				}
			}
		}
		p.next()
	}
}

// statement parses one statement.
func (p *parser) statement() *stmt {
	p.enter("statement")
	st := p.oneStatement()
	p.nest--
	return st
}

func (p *parser) oneStatement() *stmt {
	t := p.peek()
	st := &stmt{pos: t.Pos}
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
		if statementWords[t.Text] && p.keywordStatement(st, t.Text) {
			return st
		}
		if t.Text == "__attribute__" || t.Text == "__attribute" {
			var a attributes
			p.attributes(&a)
			return p.oneStatement()
		}
	}
	st.kind = stExpr
	st.e = p.expression()
	p.expect(";", "statement")
	return st
}

func (p *parser) label(st *stmt) *stmt {
	name := p.next().Text
	p.next()
	var a attributes
	p.attributes(&a)
	st.kind, st.text = stLabel, name
	if old, ok := p.body.labels[name]; ok {
		p.errorf(st.pos, "label", "the label '%s' is already at %s", name, old)
	}
	p.body.labels[name] = st.pos
	p.fn.split = true
	st.body = p.labelled()
	return st
}

// labelled parses what stands behind a label; } stands for an empty statement.
func (p *parser) labelled() *stmt {
	if p.at("}") {
		return &stmt{pos: p.pos()}
	}
	if t := p.peek(); t.Kind == token.Ident && p.startsType(t) && p.peekAt(1).Text != ":" {
		return p.localDecl() // C23 and clang allow it
	}
	return p.statement()
}

// keywordStatement parses a statement that starts with a keyword. It is false
// for keywords that start an expression.
func (p *parser) keywordStatement(st *stmt, word string) bool {
	switch word {
	case "if":
		p.ifStatement(st)
	case "while":
		p.next()
		st.kind, st.unroll = stWhile, p.unrolls[p.i-1]
		st.e = p.parenCondition("while")
		st.body = p.loopBody()
	case "do":
		p.next()
		st.kind, st.unroll = stDo, p.unrolls[p.i-1]
		st.body = p.loopBody()
		if !p.at("while") {
			p.fail(p.pos(), "do", "expected 'while' before %s", describe(p.peek()))
		}
		p.next()
		st.e = p.parenCondition("do")
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
		st.kind, st.text = stGoto, t.Text
		p.fn.split = true
		p.body.gotos = append(p.body.gotos, use{t.Text, t.Pos})
		p.expect(";", "goto")
	case "break", "continue":
		p.next()
		st.kind = stBreak
		if word == "continue" {
			st.kind = stContinue
		}
		if p.inLoop == 0 && (word == "continue" || p.inBreak == 0) {
			p.errorf(st.pos, word, "'%s' outside of a loop", word)
		}
		p.expect(";", word)
	case "return":
		p.returnStatement(st)
	case "else":
		p.fail(st.pos, "else", "'else' without 'if'")
	case "asm", "__asm__", "__asm":
		p.fail(st.pos, "asm", "inline assembly is not part of the portable language")
	default:
		return false
	}
	return true
}

// ifStatement parses an if and its chain of else if, which is a list to the
// limits on nesting as it is to people.
func (p *parser) ifStatement(st *stmt) {
	for {
		p.next()
		st.kind = stIf
		st.e = p.parenCondition("if")
		st.body = p.subStatement()
		if !p.accept("else") {
			return
		}
		if !p.at("if") {
			st.alt = p.subStatement()
			return
		}
		st.alt = &stmt{pos: p.pos()}
		st = st.alt
	}
}

// subStatement parses a statement in a scope of its own.
func (p *parser) subStatement() *stmt {
	p.push()
	defer p.pop()
	if t := p.peek(); t.Kind == token.Ident && p.startsType(t) && p.peekAt(1).Text != ":" {
		p.fail(t.Pos, "declaration", "a declaration cannot stand here without braces")
	}
	return p.statement()
}

func (p *parser) loopBody() *stmt {
	p.inLoop++
	p.inBreak++
	st := p.subStatement()
	p.inLoop--
	p.inBreak--
	return st
}

func (p *parser) parenCondition(construct string) *expr {
	p.expect("(", construct)
	e := p.condition(p.expression())
	p.expect(")", construct)
	return e
}

func (p *parser) forStatement(st *stmt) {
	p.next()
	st.kind, st.unroll = stFor, p.unrolls[p.i-1]
	p.expect("(", "for")
	p.push()
	defer p.pop()
	switch {
	case p.accept(";"):
	case p.startsType(p.peek()):
		st.init = p.localDecl()
	default:
		st.init = &stmt{kind: stExpr, pos: p.pos(), e: p.expression()}
		p.expect(";", "for")
	}
	if !p.at(";") {
		st.e = p.condition(p.expression())
	}
	p.expect(";", "for")
	if !p.at(")") {
		st.post = p.expression()
	}
	p.expect(")", "for")
	st.body = p.loopBody()
}

func (p *parser) switchStatement(st *stmt) {
	p.next()
	st.kind = stSwitch
	p.expect("(", "switch")
	e := p.rvalue(p.expression())
	if !e.typ.isInteger() && !e.typ.isUnknown() {
		p.errorf(p.posOf(e), "switch", "switch needs an integer, not '%s'", e.typ)
	}
	st.e = p.promote(e)
	p.expect(")", "switch")
	sw := &switchState{typ: st.e.typ}
	p.inSwtch = append(p.inSwtch, sw)
	p.inBreak++
	declares := p.body.declares
	st.body = p.subStatement()
	p.inBreak--
	p.inSwtch = p.inSwtch[:len(p.inSwtch)-1]
	p.checkCases(sw)
	p.fn.split = p.fn.split || p.body.declares > declares // it can jump past an initializer
}

func (p *parser) caseStatement(st *stmt) {
	word := p.next().Text
	if len(p.inSwtch) == 0 {
		p.fail(st.pos, word, "'%s' outside of a switch", word)
	}
	sw := p.inSwtch[len(p.inSwtch)-1]
	if word == "default" {
		st.kind = stDefault
		if sw.hasDefault {
			p.errorf(st.pos, word, "the switch has two defaults")
		}
		sw.hasDefault = true
	} else {
		st.kind = stCase
		e := p.conditional()
		st.val = p.constantOf(e, "case")
		if !sw.typ.isUnknown() {
			st.val = st.val.convert(sw.typ)
			st.e = &expr{op: opLit, typ: sw.typ, val: st.val, tok: e.tok}
		}
		st.last = st.val
		if p.accept("...") { // OpenCL compilers take ranges from GNU C
			st.last = p.constantOf(p.conditional(), "case").convert(sw.typ)
		}
		p.caseValues(sw, st)
	}
	p.expect(":", word)
	st.body = p.labelled()
}

// caseValues enters the values of a label.
func (p *parser) caseValues(sw *switchState, st *stmt) {
	if !st.val.ok || !st.last.ok {
		return
	}
	key := func(v int64) uint64 { // in the order of the switch's type
		if sw.typ.is(ULong) {
			return uint64(v)
		}
		return uint64(v) ^ 1<<63
	}
	if first, last := key(st.val.i), key(st.last.i); first <= last {
		sw.labels = append(sw.labels, caseLabel{first, last, len(sw.labels), st})
	}
}

// checkCases looks for values that two labels of a switch have.
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
		p.errorf(at.pos, "case", "the case %d is there twice", b.st.val.i)
		if a.last > b.last {
			b.last = a.last
		}
	}
}

func (p *parser) returnStatement(st *stmt) {
	p.next()
	st.kind = stReturn
	want := p.fn.typ.elem
	if p.accept(";") {
		if !want.isVoid() && !want.isUnknown() {
			p.errorf(st.pos, "return", "'%s' must return '%s'", p.fn.name, want)
		}
		return
	}
	e := p.expression()
	switch {
	case want.isVoid() && e.typ.isVoid():
		st.e = e
	case want.isVoid():
		if !e.typ.isUnknown() {
			p.errorf(p.posOf(e), "return", "'%s' returns nothing", p.fn.name)
		}
	default:
		st.e = p.assignConv(e, want, "return")
	}
	p.expect(";", "return")
}
