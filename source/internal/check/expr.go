package check

// Expressions: the grammar. Typing is in the files expr_*.go beside it.

import (
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// node finishes an expression: its depth is one more than its deepest operand's.
func (p *parser) node(e *tree.Expr) *tree.Expr {
	d := 0
	e.Acts = actsItself(e)
	for k := range e.Operands {
		d = max(d, k.Depth)
		e.Acts = e.Acts || k.Acts
	}
	e.Depth = d + 1
	if e.Depth > maxDepth {
		p.fail(p.PosOf(e), "expression", "the expression is deeper than %d operators", maxDepth)
	}
	if e.Type == nil {
		e.Type = tree.UnknownType
	}
	if p.foldable(e) {
		e.Val = tree.Fold(e)
		e.Folded = true
	}
	return e
}

// foldable reports whether the value of e can be computed now: the values of its operands are
// known, and it contains no constant that is declared but not defined yet.
func (p *parser) foldable(e *tree.Expr) bool {
	if e.Op == tree.OpSym {
		return !e.Sym.Inst || e.Sym.Init != nil
	}
	for _, k := range [...]*tree.Expr{e.A, e.B, e.C} {
		if k != nil && !k.Folded {
			return false
		}
	}
	return true
}

// bad returns an expression for an error that has been reported.
func (p *parser) bad(tok int) *tree.Expr {
	return &tree.Expr{Op: tree.OpBad, Type: tree.UnknownType, Tok: tok}
}

// refuse reports an error and returns the expression for it.
func (p *parser) refuse(tok int, pos token.Pos, construct, format string, args ...any) *tree.Expr {
	p.errorf(pos, construct, format, args...)
	return p.bad(tok)
}

// expression parses a comma expression.
func (p *parser) expression() *tree.Expr {
	tok := p.i
	e := p.assignment()
	for p.at(",") {
		p.next()
		b := p.rvalue(p.assignment())
		e = p.node(&tree.Expr{Op: tree.OpComma, A: e, B: b, Type: b.Type.Bare(), Tok: tok})
	}
	return e
}

var assignOps = map[string]bool{
	"=": true, "+=": true, "-=": true, "*=": true, "/=": true, "%=": true,
	"&=": true, "|=": true, "^=": true, "<<=": true, ">>=": true,
}

// assignment parses an assignment expression.
func (p *parser) assignment() *tree.Expr {
	p.enter("expression")
	defer p.leave()
	e := p.conditional()
	t := p.peek()
	if t.Kind == token.Punct && assignOps[t.Text] {
		p.next()
		return p.assign(e, t.Text, p.assignment(), t.Pos)
	}
	return e
}

// conditional parses a ? b : c and operators of higher precedence.
func (p *parser) conditional() *tree.Expr {
	tok := p.i
	e := p.binary(1)
	if !p.at("?") {
		return e
	}
	p.enter("?:")
	defer p.leave()
	pos := p.next().Pos
	if p.accept(":") {
		return p.elvis(e, p.conditional(), tok, pos)
	}
	b := p.expression()
	p.expect(":", "?:")
	c := p.conditional()
	return p.choose(e, b, c, tok, pos)
}

// binary parses operators of at least this precedence, left to right.
func (p *parser) binary(least int) *tree.Expr {
	tok := p.i
	e := p.castExpr()
	for {
		t := p.peek()
		prec := token.Precedence[t.Text]
		if t.Kind != token.Punct || prec < least {
			return e
		}
		p.next()
		b := p.binary(prec + 1)
		e = p.operate(e, t.Text, b, tok, t.Pos)
	}
}

// castExpr parses casts, vector literals and compound literals.
func (p *parser) castExpr() *tree.Expr {
	if !p.at("(") || !p.startsType(p.peekAt(1)) {
		return p.unary()
	}
	p.enter("cast")
	defer p.leave()
	tok := p.i
	p.next()
	typ := p.typeName()
	p.expect(")", "cast")
	if p.at("{") {
		return p.postfix(p.compound(typ, tok), tok)
	}
	if typ.IsVector() && p.at("(") && !p.startsType(p.peekAt(1)) {
		return p.vectorOperand(typ, tok)
	}
	return p.cast(typ, p.castExpr(), tok)
}

// vectorOperand parses what follows (float4): a parenthesized list, or one
// parenthesized expression that postfix operators may follow.
func (p *parser) vectorOperand(typ *tree.Type, tok int) *tree.Expr {
	open := p.i
	p.next()
	args := []*tree.Expr{p.assignment()}
	for p.accept(",") {
		args = append(args, p.assignment())
	}
	p.expect(")", "vector literal")
	if len(args) == 1 {
		paren := p.node(&tree.Expr{Op: tree.OpParen, A: args[0], Type: args[0].Type, LValue: args[0].LValue, Tok: open})
		return p.cast(typ, p.postfix(paren, open), tok)
	}
	return p.postfix(p.vectorLiteral(typ, args, tok), tok)
}

// unary parses prefix operators and sizeof.
func (p *parser) unary() *tree.Expr {
	t := p.peek()
	tok := p.i
	if t.Kind == token.Punct {
		switch t.Text {
		case "+", "-", "!", "~", "*", "&":
			p.enter("expression")
			defer p.leave()
			p.next()
			return p.prefix(t.Text, p.castExpr(), tok)
		case "++", "--":
			p.enter("expression")
			defer p.leave()
			p.next()
			return p.increment(tree.OpPreInc, t.Text, p.unary(), tok)
		}
	}
	if t.Kind == token.Ident {
		switch t.Text {
		case "sizeof", "vec_step", "alignof", "__alignof__", "__alignof", "_Alignof":
			p.enter("expression")
			defer p.leave()
			return p.sizeOf(t.Text)
		case "__extension__":
			p.next()
			return p.castExpr()
		}
	}
	return p.postfix(p.primary(), tok)
}

// sizeOf parses sizeof, vec_step and alignof of a type or an expression.
func (p *parser) sizeOf(word string) *tree.Expr {
	tok := p.i
	p.next()
	var typ *tree.Type
	if p.at("(") && p.startsType(p.peekAt(1)) {
		p.next()
		typ = p.typeName()
		p.expect(")", word)
		if p.at("{") { // sizeof (T){...}
			typ = p.postfix(p.compound(typ, tok), tok).Type
		}
	} else {
		typ = p.unary().Type
	}
	e := &tree.Expr{Op: tree.OpSizeof, Type: tree.SizeType, Tok: tok}
	n, ok := typ.Size()
	switch {
	case typ.IsUnknown():
		e.Type = tree.UnknownType
	case !ok || typ.Kind == tree.TFunc:
		p.errorf(p.PosOf(e), word, "%s of the incomplete type '%s'", word, typ)
	case word == "vec_step":
		e.Type, n = tree.IntType, typ.Width()
		if n == 3 {
			n = 4
		}
	case word != "sizeof":
		n = typ.Alignment()
	}
	e.Val = tree.IntValue(e.Type.Base, int64(n))
	return p.node(e)
}

// postfix parses the postfix operators after a primary expression.
func (p *parser) postfix(e *tree.Expr, tok int) *tree.Expr {
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
			p.fail(t.Pos, "call", "this is not a function that can be called")
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
			e = p.increment(tree.OpPostInc, t.Text, e, tok)
		default:
			return e
		}
	}
}

// primary parses identifiers, literals and parentheses.
func (p *parser) primary() *tree.Expr {
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
			return p.node(&tree.Expr{Op: tree.OpParen, A: e, Type: e.Type, LValue: e.LValue, Tok: tok})
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
func (p *parser) statements(tok int) *tree.Expr {
	if p.fn == nil {
		p.fail(p.Toks[tok].Pos, "statement expression", "a constant cannot be initialized by statements")
	}
	declares := p.body.declares
	p.push()
	body := p.block()
	p.pop()
	p.body.declares = declares
	p.expect(")", "statement expression")
	e := &tree.Expr{Op: tree.OpStmts, Body: body, Type: tree.VoidType, Tok: tok}
	if n := len(body.List); n > 0 && body.List[n-1].Kind == tree.StExpr {
		last := body.List[n-1]
		last.E = p.rvalue(last.E)
		e.Type = last.E.Type.Bare()
	}
	return p.node(e)
}

// stringLiteral parses adjacent string literals. They can only be the format of printf or the
// initializer of a char array.
func (p *parser) stringLiteral(tok int) *tree.Expr {
	var words []string
	for p.peek().Kind == token.String {
		words = append(words, p.next().Text)
	}
	text := strings.Join(words, " ")
	n, err := tree.StringBytes(text)
	if err != "" {
		p.fail(p.Toks[tok].Pos, "string", "%s", err)
	}
	typ := tree.ArrayOf(tree.CharType.In(tree.Constant).With(tree.QConst), len(n)+1)
	return p.node(&tree.Expr{Op: tree.OpString, Text: text, Type: typ, LValue: true, Tok: tok})
}

// actsItself reports whether e, apart from its operands, has a side effect that another expression
// can see.
func actsItself(e *tree.Expr) bool {
	switch e.Op {
	case tree.OpAssign, tree.OpPreInc, tree.OpPostInc, tree.OpStmts:
		return true
	case tree.OpCall:
		for _, t := range e.Sym.Type.Params {
			if t.IsPointer() || t.Kind == tree.TRecord {
				return true
			}
		}
	case tree.OpBuiltin:
		for _, a := range e.Args {
			if a.Type.IsPointer() && !strings.HasPrefix(e.Text, "cc_vload") {
				return true
			}
		}
	}
	return false
}

// constantOf returns the value of e, which has to be an integer constant; otherwise it reports an
// error.
func (p *parser) constantOf(e *tree.Expr, construct string) tree.Value {
	c := tree.Fold(e)
	if !c.OK || !e.Type.IsInteger() {
		if !e.Type.IsUnknown() {
			p.errorf(p.PosOf(e), construct, "this is not an integer constant")
		}
		return tree.IntValue(tree.Int, 0)
	}
	return c
}
