package source

// Expressions: the grammar. Typing is in expr_*.go beside it.

import (
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
)

// node finishes an expression: its depth is one more than its deepest operand's.
func (p *parser) node(e *expr) *expr {
	d := 0
	e.acts = actsItself(e)
	for _, k := range [...]*expr{e.a, e.b, e.c} {
		if k != nil {
			d = max(d, k.depth)
			e.acts = e.acts || k.acts
		}
	}
	for _, k := range e.args {
		d = max(d, k.depth)
		e.acts = e.acts || k.acts
	}
	e.depth = d + 1
	if e.depth > maxDepth {
		p.fail(p.posOf(e), "expression", "the expression is deeper than %d operators", maxDepth)
	}
	if e.typ == nil {
		e.typ = unknownType
	}
	if p.foldable(e) {
		e.val = fold(e)
		e.folded = true
	}
	return e
}

// foldable tells whether the value of e is known for good: its operands' are, and no
// constant is in it that the program has declared and will define later.
func (p *parser) foldable(e *expr) bool {
	if e.op == opSym {
		return !e.sym.inst || e.sym.init != nil
	}
	for _, k := range [...]*expr{e.a, e.b, e.c} {
		if k != nil && !k.folded {
			return false
		}
	}
	return true
}

// bad is an expression after an error that has been reported.
func (p *parser) bad(tok int) *expr { return &expr{op: opBad, typ: unknownType, tok: tok} }

// expression parses a comma expression.
func (p *parser) expression() *expr {
	tok := p.i
	e := p.assignment()
	for p.at(",") {
		p.next()
		b := p.rvalue(p.assignment())
		e = p.node(&expr{op: opComma, a: e, b: b, typ: b.typ.bare(), tok: tok})
	}
	return e
}

var assignOps = map[string]bool{
	"=": true, "+=": true, "-=": true, "*=": true, "/=": true, "%=": true,
	"&=": true, "|=": true, "^=": true, "<<=": true, ">>=": true,
}

// assignment parses an assignment expression.
func (p *parser) assignment() *expr {
	p.enter("expression")
	defer func() { p.nest-- }()
	e := p.conditional()
	t := p.peek()
	if t.Kind == token.Punct && assignOps[t.Text] {
		p.next()
		return p.assign(e, t.Text, p.assignment(), t.Pos)
	}
	return e
}

// conditional parses a ? b : c and everything that binds tighter.
func (p *parser) conditional() *expr {
	tok := p.i
	e := p.binary(1)
	if !p.at("?") {
		return e
	}
	p.enter("?:")
	defer func() { p.nest-- }()
	pos := p.next().Pos
	if p.accept(":") {
		return p.elvis(e, p.conditional(), tok, pos)
	}
	b := p.expression()
	p.expect(":", "?:")
	c := p.conditional()
	return p.choose(e, b, c, tok, pos)
}

var binaryPrec = map[string]int{
	"||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
	"<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}

// binary parses operators of at least this binaryPrec, left to right.
func (p *parser) binary(least int) *expr {
	tok := p.i
	e := p.castExpr()
	for {
		t := p.peek()
		prec := binaryPrec[t.Text]
		if t.Kind != token.Punct || prec < least {
			return e
		}
		p.next()
		b := p.binary(prec + 1)
		e = p.operate(e, t.Text, b, tok, t.Pos)
	}
}

// castExpr parses casts, vector literals and compound literals.
func (p *parser) castExpr() *expr {
	if !p.at("(") || !p.startsType(p.peekAt(1)) {
		return p.unary()
	}
	p.enter("cast")
	defer func() { p.nest-- }()
	tok := p.i
	p.next()
	typ := p.typeName()
	p.expect(")", "cast")
	if p.at("{") {
		return p.postfix(p.compound(typ, tok), tok)
	}
	if typ.isVector() && p.at("(") && !p.startsType(p.peekAt(1)) {
		return p.vectorOperand(typ, tok)
	}
	return p.cast(typ, p.castExpr(), tok)
}

// vectorOperand parses what follows (float4): a parenthesized list, or one
// parenthesized expression that postfix operators may follow.
func (p *parser) vectorOperand(typ *ctype, tok int) *expr {
	open := p.i
	p.next()
	args := []*expr{p.assignment()}
	for p.accept(",") {
		args = append(args, p.assignment())
	}
	p.expect(")", "vector literal")
	if len(args) == 1 {
		paren := p.node(&expr{op: opParen, a: args[0], typ: args[0].typ, lval: args[0].lval, tok: open})
		return p.cast(typ, p.postfix(paren, open), tok)
	}
	return p.postfix(p.vectorLiteral(typ, args, tok), tok)
}

// unary parses prefix operators and sizeof.
func (p *parser) unary() *expr {
	t := p.peek()
	tok := p.i
	if t.Kind == token.Punct {
		switch t.Text {
		case "+", "-", "!", "~", "*", "&":
			p.enter("expression")
			defer func() { p.nest-- }()
			p.next()
			return p.prefix(t.Text, p.castExpr(), tok)
		case "++", "--":
			p.enter("expression")
			defer func() { p.nest-- }()
			p.next()
			return p.increment(opPreInc, t.Text, p.unary(), tok)
		}
	}
	if t.Kind == token.Ident {
		switch t.Text {
		case "sizeof", "vec_step", "alignof", "__alignof__", "__alignof", "_Alignof":
			p.enter("expression")
			defer func() { p.nest-- }()
			return p.sizeOf(t.Text)
		case "__extension__":
			p.next()
			return p.castExpr()
		}
	}
	return p.postfix(p.primary(), tok)
}

// sizeOf parses sizeof, vec_step and alignof of a type or an expression.
func (p *parser) sizeOf(word string) *expr {
	tok := p.i
	p.next()
	var typ *ctype
	if p.at("(") && p.startsType(p.peekAt(1)) {
		p.next()
		typ = p.typeName()
		p.expect(")", word)
		if p.at("{") { // sizeof (T){...}
			typ = p.postfix(p.compound(typ, tok), tok).typ
		}
	} else {
		typ = p.unary().typ
	}
	e := &expr{op: opSizeof, typ: sizeType, tok: tok}
	n, ok := typ.size()
	switch {
	case typ.isUnknown():
		e.typ = unknownType
	case !ok || typ.kind == tFunc:
		p.errorf(p.posOf(e), word, "%s of the incomplete type '%s'", word, typ)
	case word == "vec_step":
		e.typ, n = intType, typ.width()
		if n == 3 {
			n = 4
		}
	case word != "sizeof":
		n = typ.alignment()
	}
	e.val = constant{ok: true, i: int64(n)}
	return p.node(e)
}

// postfix parses what may follow a primary expression.
func (p *parser) postfix(e *expr, tok int) *expr {
	for {
		t := p.peek()
		if t.Kind != token.Punct {
			return e
		}
		switch t.Text {
		case "[":
			p.next()
			i := p.expression()
			p.expect("]", "index")
			e = p.index(e, i, tok)
		case "(":
			p.fail(t.Pos, "call", "what stands here is not a function that can be called")
		case ".", "->":
			p.next()
			name := p.next()
			if name.Kind != token.Ident {
				p.fail(name.Pos, "member", "expected a member's name before %s", describe(name))
			}
			if t.Text == "->" {
				e = p.arrow(e, tok, t.Pos)
			}
			e = p.member(e, name.Text, tok, name.Pos)
		case "++", "--":
			p.next()
			e = p.increment(opPostInc, t.Text, e, tok)
		default:
			return e
		}
	}
}

// primary parses identifiers, literals and parentheses.
func (p *parser) primary() *expr {
	t := p.peek()
	tok := p.i
	switch t.Kind {
	case token.Int, token.Float, token.Char:
		p.next()
		return p.literal(t, tok)
	case token.String:
		return p.stringLiteral(tok)
	case token.Ident:
		if isKeyword(t.Text) {
			p.fail(t.Pos, "expression", "expected an expression before '%s'", t.Text)
		}
		p.next()
		return p.name(t, tok)
	case token.Punct:
		if t.Text == "(" {
			p.next()
			if p.at("{") {
				return p.statements(tok)
			}
			e := p.expression()
			p.expect(")", "expression")
			return p.node(&expr{op: opParen, a: e, typ: e.typ, lval: e.lval, tok: tok})
		}
		if t.Text == "^" {
			p.fail(t.Pos, "block", "blocks are not part of the portable language")
		}
	}
	p.fail(t.Pos, "expression", "expected an expression before %s", describe(t))
	return nil
}

// statements parses ({ ... }), which OpenCL compilers take from GNU C: the value
// is that of the last statement.
func (p *parser) statements(tok int) *expr {
	if p.fn == nil {
		p.fail(p.toks[tok].Pos, "statement expression", "a constant cannot be initialized by statements")
	}
	declares := p.body.declares
	p.push()
	body := p.block()
	p.pop()
	p.body.declares = declares
	p.expect(")", "statement expression")
	e := &expr{op: opStmts, body: body, typ: voidType, tok: tok}
	if n := len(body.list); n > 0 && body.list[n-1].kind == stExpr {
		last := body.list[n-1]
		last.e = p.rvalue(last.e)
		e.typ = last.e.typ.bare()
	}
	return p.node(e)
}

// stringLiteral parses adjacent string literals. They are of use only as the
// format of printf and to initialize a char array.
func (p *parser) stringLiteral(tok int) *expr {
	var words []string
	for p.peek().Kind == token.String {
		words = append(words, p.next().Text)
	}
	text := strings.Join(words, " ")
	n, err := stringBytes(text)
	if err != "" {
		p.fail(p.toks[tok].Pos, "string", "%s", err)
	}
	typ := arrayOf(charType.in(Constant).with(qConst), len(n)+1)
	return p.node(&expr{op: opString, text: text, typ: typ, lval: true, tok: tok})
}

// actsItself tells whether e, leaving its operands aside, changes anything that
// another expression can see.
func actsItself(e *expr) bool {
	switch e.op {
	case opAssign, opPreInc, opPostInc, opStmts:
		return true
	case opCall:
		for _, t := range e.sym.typ.params {
			if t.isPointer() || t.kind == tRecord {
				return true
			}
		}
	case opBuiltin:
		for _, a := range e.args {
			if a.typ.isPointer() && !strings.HasPrefix(e.text, "cc_vload") {
				return true
			}
		}
	}
	return false
}

// constantOf demands an integer constant.
func (p *parser) constantOf(e *expr, construct string) constant {
	c := fold(e)
	if !c.ok || !e.typ.isInteger() {
		if !e.typ.isUnknown() {
			p.errorf(p.posOf(e), construct, "this is not an integer constant")
		}
		return constant{ok: true}
	}
	return c
}
