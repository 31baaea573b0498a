package source

// Calls of convert_T_sat_rte(x) and as_T(x).

import "github.com/concord-compute/concord/source/internal/token"

// conversionCall types one.
func (p *parser) conversionCall(t *token.Token, tok int) *expr {
	args, end := p.arguments()
	c, _ := conversionOf(t.Text)
	if len(args) != 1 {
		p.errorf(t.Pos, "call", "'%s' takes 1 argument, not %d", t.Text, len(args))
		return p.bad(tok)
	}
	a := p.value(args[0])
	e := &expr{op: opBuiltin, text: t.Text, args: []*expr{a}, typ: c.to, tok: tok, end: end}
	p.checkFeature(c.to, t.Pos)
	if a.typ.isUnknown() {
		e.op, e.typ = opBad, unknownType
		return p.node(e)
	}
	from, _ := a.typ.size()
	to, _ := c.to.size()
	switch {
	case c.as && a.typ.isPointer():
	case !a.typ.isArith():
		p.errorf(t.Pos, "call", "'%s' cannot take '%s'", t.Text, a.typ.bare())
		return p.bad(tok)
	case c.as && from != to:
		p.errorf(t.Pos, "call", "'%s' takes a value of its own size, not '%s'", t.Text, a.typ.bare())
		return p.bad(tok)
	case !c.as && a.typ.width() != c.to.width():
		p.errorf(t.Pos, "call", "'%s' takes as many components as it returns, not '%s'", t.Text, a.typ.bare())
		return p.bad(tok)
	}
	p.checkHalf(e)
	return p.node(e)
}
