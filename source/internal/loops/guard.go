package loops

// Guards. Most regions begin with a condition that excludes items: if (i < n) ..., if (x >= w)
// return. If it compares an id with a uniform value, the bounds of the loop over the items can
// exclude these items, and the compiler sees a loop without a condition. This is done only if all
// ids fit an int, so that no conversion in the comparison changes an id.

import (
	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// ItemID is get_global_id(dim) or get_local_id(dim).
type ItemID struct {
	Global bool
	Dim    int
}

// Limit is a comparison that every item of a region passes: ID op U.
type Limit struct {
	ID ItemID
	op string
	U  *tree.Expr
}

// Way is a limit as a call of the prelude.
type Way struct{ Method, Plus string }

// Ways returns the calls of the prelude that exclude the items that do not satisfy the limit.
func (l Limit) Ways() []Way {
	switch l.op {
	case "<":
		return []Way{{"below", ""}}
	case "<=":
		return []Way{{"below", " + 1"}}
	case ">":
		return []Way{{"from", " + 1"}}
	case ">=":
		return []Way{{"from", ""}}
	}
	return []Way{{"from", ""}, {"below", " + 1"}}
}

// opposite maps a comparison to its negation, mirrored to the comparison with exchanged sides.
var (
	opposite = map[string]string{"<": ">=", "<=": ">", ">": "<=", ">=": "<", "!=": "=="}
	mirrored = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
)

// Guards returns the limits of a region, and records the conditions that become redundant because
// of them.
func (f *Plan) Guards(g *Region) []Limit {
	var limits []Limit
	for i, s := range g.List {
		switch {
		case s.Kind == tree.StEmpty:
		case s.Kind == tree.StDecl:
			for _, sym := range s.Syms {
				if !f.cheap(sym) {
					return limits
				}
			}
		case s.Kind == tree.StIf && s.Alt == nil && i == len(g.List)-1:
			more, all := f.limits(s.E, "&&", false)
			f.Needless[s] = all
			return append(limits, more...)
		case s.Kind == tree.StIf && s.Alt == nil && IsReturn(s.Body):
			more, all := f.limits(s.E, "||", true)
			if !all {
				return append(limits, more...)
			}
			f.Needless[s] = true
			limits = append(limits, more...)
		default:
			return limits
		}
	}
	return limits
}

// IsReturn reports whether s only returns.
func IsReturn(s *tree.Stmt) bool {
	for s.Kind == tree.StBlock && len(s.List) == 1 {
		s = s.List[0]
	}
	return s.Kind == tree.StReturn && s.E == nil
}

// limits splits a condition at an operator (&& or ||) and returns the limits in it. all reports
// whether they are equivalent to the whole condition.
func (f *Plan) limits(e *tree.Expr, at string, negate bool) (list []Limit, all bool) {
	e = tree.Unparen(e)
	if e.Op == tree.OpLogic && e.Text == at {
		a, whole := f.limits(e.A, at, negate)
		if !whole {
			return a, false // an operand that is evaluated first may have side effects
		}
		b, whole := f.limits(e.B, at, negate)
		return append(a, b...), whole
	}
	if e.Op != tree.OpCompare || !e.A.Type.IsInteger() || !e.B.Type.IsInteger() {
		return nil, false
	}
	op := e.Text
	if negate {
		op = opposite[op]
	}
	common := tree.Usual(e.A.Type, e.B.Type) // the type in which C++ compares: -1 becomes large if the id is unsigned
	if id, ok := f.id(e.A); ok && mirrored[op] != "" && f.fixed(e.B) {
		return []Limit{{id, op, &tree.Expr{Op: tree.OpConv, A: e.B, Type: common}}}, true
	}
	if id, ok := f.id(e.B); ok && mirrored[op] != "" && f.fixed(e.A) {
		return []Limit{{id, mirrored[op], &tree.Expr{Op: tree.OpConv, A: e.A, Type: common}}}, true
	}
	return nil, false
}

// idAnswer is a stored result of id for a variable.
type idAnswer struct {
	id ItemID
	ok bool
}

// id recognizes an id, or a variable that holds one, of at least 32 bits.
func (f *Plan) id(e *tree.Expr) (ItemID, bool) {
	f.Step()
	if !e.Type.IsInteger() || tree.KindSize(e.Type.Base) < 4 {
		return ItemID{}, false
	}
	switch e.Op {
	case tree.OpParen, tree.OpConv, tree.OpCast:
		return f.id(e.A)
	case tree.OpSym:
		if e.Sym.Kind != tree.SymVar || e.Sym.Inst || !f.cheap(e.Sym) {
			return ItemID{}, false
		}
		a, asked := f.ids[e.Sym]
		if !asked {
			a.id, a.ok = f.id(e.Sym.Init.Value)
			f.ids[e.Sym] = a
		}
		return a.id, a.ok
	case tree.OpBuiltin:
		d := tree.Value{}
		if len(e.Args) == 1 {
			d = tree.Fold(e.Args[0])
		}
		if d.OK && d.Int() >= 0 && d.Int() < 3 && (e.Text == "cc_get_global_id" || e.Text == "cc_get_local_id") {
			return ItemID{e.Text == "cc_get_global_id", int(d.Int())}, true
		}
	}
	return ItemID{}, false
}

// fixed reports whether e can be computed once before the loop, even if no item would have
// evaluated it.
func (f *Plan) fixed(e *tree.Expr) bool {
	if !f.uniform(e) {
		return false
	}
	ok := true
	tree.WalkExpr(e, func(x *tree.Expr) {
		f.Step()
		switch {
		case x.Op == tree.OpCall, x.Op == tree.OpIndex, x.Op == tree.OpLoad:
			ok = false
		case x.Op == tree.OpBinary && (x.Text == "/" || x.Text == "%"):
			n := tree.Fold(x.B)
			ok = ok && n.OK && !n.IsFloat() && n.Int() > 0
		case x.Op == tree.OpSym && !x.Sym.Inst && x.Sym.Kind == tree.SymVar && !f.Shared[x.Sym]:
			ok = ok && f.cheap(x.Sym)
		case x.Op == tree.OpSym && x.Sym.Kind == tree.SymParam && len(f.Writes[x.Sym]) > 0 && !f.Shared[x.Sym]:
			ok = false
		}
	})
	return ok
}

// The flags of a kernel, as the host executor defines them.
const (
	flagsNone = "0u"
	flagsRows = "CONCORD_KERNEL_ROWS"
)

// Flags returns the flags that tell the executor how a kernel may be called.
func (f *Plan) Flags(asks map[*tree.Function]bool) string {
	if len(f.fn.Locals) > 0 || f.fn.Barrier || asksGroup(f.fn, asks, f.Meter) {
		return flagsNone
	}
	return flagsRows
}

// asksGroup reports whether a function, or one that it calls, depends on the group of its item.
func asksGroup(fn *tree.Function, known map[*tree.Function]bool, m *token.Meter) bool {
	if asks, ok := known[fn]; ok {
		return asks
	}
	asks := false
	tree.WalkStmt(fn.Body, func(e *tree.Expr) {
		m.Step()
		switch e.Op {
		case tree.OpCall:
			asks = asks || e.Sym.Fn.Kernel || asksGroup(e.Sym.Fn, known, m)
		case tree.OpBuiltin:
			asks = asks || e.Text == "cc_get_local_id" || e.Text == "cc_get_group_id" || e.Site > 0
		}
	})
	for _, p := range fn.Params {
		asks = asks || fn.Kernel && p.Type.IsPointer() && p.Type.Elem.Space == tree.Local
	}
	known[fn] = asks
	return asks
}
