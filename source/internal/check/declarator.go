package check

// Declarators: the part of a declaration that wraps a type around a name.

import (
	"slices"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// declOp is one step of a declarator, applied to the type from the outside in.
type declOp struct {
	kind   byte // '*', '[' or '('
	q      tree.Qual
	space  tree.Space
	n      int
	pos    token.Pos
	params *paramList
}

// paramList is a parsed parameter list.
type paramList struct {
	syms     []*tree.Symbol
	types    []*tree.Type
	nameToks []int
	variadic bool
	close    int
}

// declarator parses a declarator with a name. It also returns the parameter list when that declares a function.
func (p *parser) declarator(base *tree.Type, construct string) (string, *tree.Type, token.Pos, *paramList) {
	ops, nameTok := p.declaratorOps(construct, false)
	name, typ := p.Toks[nameTok], p.apply(ops, base)
	var params *paramList
	if len(ops) > 0 {
		params = ops[len(ops)-1].params
	}
	return name.Text, typ, name.Pos, params
}

// declaratorOps returns the steps in the order in which they apply, and the
// index of the name's token or -1. With abstract the name may be missing.
func (p *parser) declaratorOps(construct string, abstract bool) (ops []declOp, nameTok int) {
	p.enter(construct)
	defer p.leave()
	nameTok = -1
	for p.at("*") {
		op := declOp{kind: '*', pos: p.next().Pos}
		p.pointerQualifiers(&op)
		ops = append(ops, op)
	}
	if p.at("^") {
		p.fail(p.pos(), "block", "blocks are not part of the portable language")
	}
	var inner []declOp
	t := p.peek()
	switch {
	case t.Kind == token.Ident && keywords[t.Text].class == statementWord:
		p.fail(t.Pos, construct, "the keyword '%s' cannot be a name", t.Text)
	case t.Kind == token.Ident && !isKeyword(t.Text):
		nameTok = p.i
		p.next()
	case p.at("(") && p.nestedDeclarator(abstract):
		p.next()
		inner, nameTok = p.declaratorOps(construct, abstract)
		p.expect(")", construct)
	case !abstract:
		if t.Kind == token.Ident {
			p.fail(t.Pos, construct, "the keyword '%s' cannot be a name", t.Text)
		}
		p.fail(t.Pos, construct, "expected a name before %s", describe(t))
	}
	var suffix []declOp
	for p.at("[") || p.at("(") {
		if p.at("[") {
			suffix = append(suffix, p.arraySuffix(construct))
		} else {
			suffix = append(suffix, p.functionSuffix())
		}
	}
	slices.Reverse(suffix)
	return slices.Concat(ops, suffix, inner), nameTok
}

// nestedDeclarator reports whether a ( begins a nested declarator and not a parameter list.
func (p *parser) nestedDeclarator(abstract bool) bool {
	t := p.peekAt(1)
	if t.Kind == token.Punct {
		return t.Text == "*" || t.Text == "(" || t.Text == "[" || t.Text == "^"
	}
	return !abstract && !p.startsType(t)
}

func (p *parser) pointerQualifiers(op *declOp) {
	for {
		t := p.peek()
		switch k := keywords[t.Text]; {
		case k.class == qualifierWord:
			op.q |= k.qual
			p.next()
		case k.class == spaceWord:
			op.space = k.space
			p.next()
		case t.Text == "__attribute__" || t.Text == "__attribute":
			p.attributes(&tree.Attributes{})
		default:
			return
		}
	}
}

// arraySuffix parses [n], [] and, in parameters, [const n] and [static n].
func (p *parser) arraySuffix(construct string) declOp {
	op := declOp{kind: '[', n: -1, pos: p.next().Pos}
	for keywords[p.peek().Text].class == qualifierWord || p.at("static") {
		p.next()
	}
	if !p.at("]") {
		e := p.assignment()
		c := tree.Fold(e)
		switch {
		case e.Type.IsUnknown():
			op.n = 1
		case !e.Type.IsInteger():
			p.errorf(op.pos, "array", "the array size is not an integer")
			op.n = 1
		case !c.OK:
			p.errorf(p.PosOf(e), "variable length array", "the array size is not a constant: variable length arrays are not "+
				"part of OpenCL C")
			op.n = 1
		case c.Negative() || c.Bits > tree.BigSize:
			p.errorf(p.PosOf(e), "array", "the array size %s is out of range", c)
			op.n = 1
		default:
			op.n = int(c.Int())
		}
	}
	p.expect("]", construct)
	return op
}

// functionSuffix parses a parameter list.
func (p *parser) functionSuffix() declOp {
	op := declOp{kind: '(', pos: p.next().Pos, params: &paramList{}}
	l := op.params
	p.push()
	defer p.pop()
	if p.at("void") && p.peekAt(1).Text == ")" {
		p.next()
	}
	for !p.at(")") {
		if p.accept("...") {
			l.variadic = true
			break
		}
		p.param(l)
		if !p.accept(",") {
			break
		}
	}
	l.close = p.i
	p.expect(")", "parameter list")
	return op
}

// param parses one parameter. Arrays become pointers.
func (p *parser) param(l *paramList) {
	s := p.specifiers("parameter")
	ops, nameTok := p.declaratorOps("parameter", true)
	typ := p.apply(ops, s.typ)
	p.attributes(&tree.Attributes{})
	sym := &tree.Symbol{Kind: tree.SymParam, Pos: s.pos}
	if nameTok >= 0 {
		sym.Name, sym.Pos = p.Toks[nameTok].Text, p.Toks[nameTok].Pos
	}
	switch typ.Kind {
	case tree.TArray:
		typ = tree.PointerTo(typ.Elem)
	case tree.TFunc:
		p.fail(sym.Pos, "function pointer", "a parameter cannot be a function")
	}
	if typ.IsVoid() {
		p.errorf(sym.Pos, "parameter", "a parameter cannot be void")
		typ = tree.UnknownType
	}
	if _, ok := typ.Size(); !ok && !typ.IsUnknown() {
		p.errorf(sym.Pos, "parameter", "the parameter has the incomplete type '%s'", typ)
		typ = tree.UnknownType
	}
	if typ.Space != tree.Private {
		p.errorf(sym.Pos, "parameter", "a parameter itself lives in private memory, not in %s", typ.Space)
		typ = typ.In(tree.Private)
	}
	sym.Type = typ
	l.syms = append(l.syms, sym)
	l.types = append(l.types, typ)
	l.nameToks = append(l.nameToks, nameTok)
	if sym.Name != "" {
		p.declare(sym) // so that a later parameter can mention it
	}
}

// apply wraps the steps of a declarator around a type.
func (p *parser) apply(ops []declOp, t *tree.Type) *tree.Type {
	for _, op := range ops {
		t = p.applyOp(t, op)
	}
	return t
}

// applyOp wraps one step around a type and checks that C allows it.
func (p *parser) applyOp(t *tree.Type, op declOp) *tree.Type {
	if t.IsUnknown() && op.kind != '(' {
		return t
	}
	if t.Depth >= maxNest {
		p.fail(op.pos, "declaration", "pointers and arrays nested deeper than %d levels", maxNest)
	}
	switch op.kind {
	case '*':
		if t.Kind == tree.TFunc {
			p.fail(op.pos, "function pointer", "function pointers are not part of OpenCL C")
		}
		out := tree.PointerTo(t).With(op.q)
		return out.In(op.space)
	case '[':
		if t.Kind == tree.TFunc || t.IsVoid() || t.Kind == tree.TEvent && op.n > 1<<16 {
			p.fail(op.pos, "array", "an array of '%s' is not possible", t)
		}
		n, ok := t.Size()
		if !ok {
			p.fail(op.pos, "array", "the array elements have the incomplete type '%s'", t)
		}
		if n > 0 && op.n > tree.BigSize/n {
			p.fail(op.pos, "array", "the array is too large")
		}
		return tree.ArrayOf(t, op.n)
	}
	if t.Kind == tree.TFunc || t.Kind == tree.TArray {
		p.fail(op.pos, "function", "a function cannot return '%s'", t)
	}
	return &tree.Type{Kind: tree.TFunc, Elem: t.Bare(), Params: op.params.types, Variadic: op.params.variadic}
}

// typeName parses a type in a cast, sizeof or compound literal.
func (p *parser) typeName() *tree.Type {
	s := p.specifiers("type name")
	if s.typedef || s.static || s.extern || s.kernel || s.inline {
		p.errorf(s.pos, "type name", "a type name cannot have a storage class")
	}
	ops, nameTok := p.declaratorOps("type name", true)
	if nameTok >= 0 {
		p.fail(p.Toks[nameTok].Pos, "type name", "unexpected name '%s' in a type", p.Toks[nameTok].Text)
	}
	return p.apply(ops, s.typ)
}
