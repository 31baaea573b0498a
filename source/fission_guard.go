package source

// Guards. Most regions begin by turning items away: if (i < n) ..., if (x >= w)
// return. Where an id is compared with what is alike for all items, the loop over
// the items can leave these out from the start, and the compiler sees a loop without
// a condition. It is done where all ids fit an int, so that no conversion in the
// comparison changes one.

import "github.com/concord-compute/concord/source/internal/token"

// itemID is get_global_id(dim) or get_local_id(dim).
type itemID struct {
	global bool
	dim    int
}

// limit is a comparison that every item of a region passes: id op u.
type limit struct {
	id itemID
	op string
	u  *expr
}

// way is a limit as the prelude takes it.
type way struct{ method, plus string }

func (l limit) ways() []way {
	switch l.op {
	case "<":
		return []way{{"below", ""}}
	case "<=":
		return []way{{"below", " + 1"}}
	case ">":
		return []way{{"from", " + 1"}}
	case ">=":
		return []way{{"from", ""}}
	}
	return []way{{"from", ""}, {"below", " + 1"}}
}

// opposite turns a comparison into its negation, mirrored exchanges its sides.
var (
	opposite = map[string]string{"<": ">=", "<=": ">", ">": "<=", ">=": "<", "!=": "=="}
	mirrored = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
)

// guards returns the limits of a region, and remembers which conditions they make
// needless.
func (f *fission) guards(g *region) []limit {
	var limits []limit
	for i, s := range g.list {
		switch {
		case s.kind == stEmpty:
		case s.kind == stDecl:
			for _, sym := range s.syms {
				if !f.cheap(sym) {
					return limits
				}
			}
		case s.kind == stIf && s.alt == nil && i == len(g.list)-1:
			more, all := f.limits(s.e, "&&", false)
			f.needless[s] = all
			return append(limits, more...)
		case s.kind == stIf && s.alt == nil && isReturn(s.body):
			more, all := f.limits(s.e, "||", true)
			if !all {
				return append(limits, more...)
			}
			f.needless[s] = true
			limits = append(limits, more...)
		default:
			return limits
		}
	}
	return limits
}

// isReturn tells whether s does nothing but return.
func isReturn(s *stmt) bool {
	for s.kind == stBlock && len(s.list) == 1 {
		s = s.list[0]
	}
	return s.kind == stReturn && s.e == nil
}

// limits takes a condition apart at an operator. all says that nothing else is in it.
func (f *fission) limits(e *expr, at string, negate bool) (list []limit, all bool) {
	e = unparen(e)
	if e.op == opLogic && e.text == at {
		a, whole := f.limits(e.a, at, negate)
		if !whole {
			return a, false // what is evaluated first may do something
		}
		b, whole := f.limits(e.b, at, negate)
		return append(a, b...), whole
	}
	if e.op != opCompare || !e.a.typ.isInteger() || !e.b.typ.isInteger() {
		return nil, false
	}
	op := e.text
	if negate {
		op = opposite[op]
	}
	common := usual(e.a.typ, e.b.typ) // what C++ compares in: -1 becomes large if the id is unsigned
	if id, ok := f.id(e.a); ok && mirrored[op] != "" && f.fixed(e.b) {
		return []limit{{id, op, &expr{op: opConv, a: e.b, typ: common}}}, true
	}
	if id, ok := f.id(e.b); ok && mirrored[op] != "" && f.fixed(e.a) {
		return []limit{{id, mirrored[op], &expr{op: opConv, a: e.a, typ: common}}}, true
	}
	return nil, false
}

// idAnswer is what id has said of a variable.
type idAnswer struct {
	id itemID
	ok bool
}

// id recognizes an id, or a variable that holds one, of at least 32 bits.
func (f *fission) id(e *expr) (itemID, bool) {
	f.Step()
	if !e.typ.isInteger() || kindSize(e.typ.base) < 4 {
		return itemID{}, false
	}
	switch e.op {
	case opParen, opConv, opCast:
		return f.id(e.a)
	case opSym:
		if e.sym.kind != symVar || e.sym.inst || !f.cheap(e.sym) {
			return itemID{}, false
		}
		a, asked := f.ids[e.sym]
		if !asked {
			a.id, a.ok = f.id(e.sym.init.value)
			f.ids[e.sym] = a
		}
		return a.id, a.ok
	case opBuiltin:
		d := constant{}
		if len(e.args) == 1 {
			d = fold(e.args[0])
		}
		if d.ok && d.i >= 0 && d.i < 3 && (e.text == "cc_get_global_id" || e.text == "cc_get_local_id") {
			return itemID{e.text == "cc_get_global_id", int(d.i)}, true
		}
	}
	return itemID{}, false
}

// fixed tells whether e can be computed once in front of the loop, whether or not
// an item would have come to it.
func (f *fission) fixed(e *expr) bool {
	if !f.uniform(e) {
		return false
	}
	ok := true
	walkExpr(e, func(x *expr) {
		f.Step()
		switch {
		case x.op == opCall, x.op == opIndex, x.op == opLoad:
			ok = false
		case x.op == opBinary && (x.text == "/" || x.text == "%"):
			n := fold(x.b)
			ok = ok && n.ok && !n.float && n.i > 0
		case x.op == opSym && !x.sym.inst && x.sym.kind == symVar && !f.shared[x.sym]:
			ok = ok && f.cheap(x.sym)
		case x.op == opSym && x.sym.kind == symParam && len(f.writes[x.sym]) > 0 && !f.shared[x.sym]:
			ok = false
		}
	})
	return ok
}

// The flags of a kernel, as the executor has them.
const (
	flagsNone = "0u"
	flagsRows = "CONCORD_KERNEL_ROWS"
)

// flags tells the executor how a kernel may be called.
func (f *fission) flags(asks map[*function]bool) string {
	if len(f.fn.locals) > 0 || f.fn.barrier || asksGroup(f.fn, asks, f.Meter) {
		return flagsNone
	}
	return flagsRows
}

// asksGroup tells whether a function, or one that it calls, depends on the group that
// its item is in.
func asksGroup(fn *function, known map[*function]bool, m *token.Meter) bool {
	if asks, ok := known[fn]; ok {
		return asks
	}
	asks := false
	walkStmt(fn.body, func(e *expr) {
		m.Step()
		switch e.op {
		case opCall:
			asks = asks || e.sym.fn.kernel || asksGroup(e.sym.fn, known, m)
		case opBuiltin:
			asks = asks || e.text == "cc_get_local_id" || e.text == "cc_get_group_id" || e.site > 0
		}
	})
	for _, p := range fn.params {
		asks = asks || fn.kernel && p.typ.isPointer() && p.typ.elem.space == Local
	}
	known[fn] = asks
	return asks
}
