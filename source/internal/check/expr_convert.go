package check

// Calls of convert_T_sat_rte(x) and as_T(x).

import (
	"github.com/concord-compute/concord/source/internal/builtins"
	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// conversionCall types an explicit conversion.
func (p *parser) conversionCall(t *token.Token, tok int) *tree.Expr {
	args, end := p.arguments()
	c, _ := builtins.ConversionOf(t.Text)
	if len(args) != 1 {
		return p.refuse(tok, t.Pos, "call", "'%s' takes 1 argument, not %d", t.Text, len(args))
	}
	a := p.value(args[0])
	e := &tree.Expr{Op: tree.OpBuiltin, Text: t.Text, Args: []*tree.Expr{a}, Type: c.To, Tok: tok, End: end}
	p.checkFeature(c.To, t.Pos)
	if a.Type.IsUnknown() {
		e.Op, e.Type = tree.OpBad, tree.UnknownType
		return p.node(e)
	}
	from, _ := a.Type.Size()
	to, _ := c.To.Size()
	switch {
	case c.As && a.Type.IsPointer():
	case !a.Type.IsArith():
		return p.refuse(tok, t.Pos, "call", "'%s' cannot take '%s'", t.Text, a.Type.Bare())
	case c.As && from != to:
		return p.refuse(tok, t.Pos, "call", "'%s' takes a value of its own size, not '%s'", t.Text, a.Type.Bare())
	case !c.As && a.Type.Width() != c.To.Width():
		return p.refuse(tok, t.Pos, "call", "'%s' takes as many components as it returns, not '%s'", t.Text,
			a.Type.Bare())
	}
	p.checkHalf(e)
	return p.node(e)
}
