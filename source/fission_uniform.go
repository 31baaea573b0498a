package source

// What is alike for all items of a group. Every variable is taken to be so until
// something shows that it need not be: it is assigned what differs between items
// (their ids, whatever is read from memory), or in a place that not all items reach.

import (
	"slices"
	"strings"
)

// isWrite tells whether e itself assigns.
func isWrite(e *expr) bool { return e.op == opAssign || e.op == opPreInc || e.op == opPostInc }

// isBarrier tells whether e is a call that synchronizes the group.
func isBarrier(e *expr) bool { return e.op == opBuiltin && e.site > 0 }

// uniform tells whether e has one value for all items of a group and changes
// nothing. What is read from memory may be changed by another item at any time.
func (w *flow) uniform(e *expr) bool {
	return w.depends(e, func(sym *symbol) bool { return !w.varies[sym] })
}

// depends tells whether e changes nothing and has one value for all items, given that the
// variables for which alone is true have.
func (w *flow) depends(e *expr, alone func(*symbol) bool) bool {
	if e == nil {
		return true
	}
	w.Step()
	switch e.op {
	case opLit, opString, opNull, opNamed, opSizeof:
		return true
	case opSym:
		if e.sym.inst {
			return e.sym.typ.space == Constant && !e.sym.typ.isPointer()
		}
		return e.sym.kind == symEnumConst || alone(e.sym)
	case opDecay:
		return e.a.op == opString || e.a.op == opSym && e.a.sym.inst
	case opIndex:
		return e.a.op == opDecay && e.a.a.op == opSym && e.a.a.sym.inst && e.a.a.sym.typ.space == Constant && w.depends(e.b, alone)
	case opUnary:
		if e.text == "&" || e.text == "*" {
			return false
		}
	case opParen, opBinary, opShift, opCompare, opLogic, opCond, opElvis, opVecCond, opMember, opSwizzle, opComponent,
		opCast, opConv, opVecLit:
	case opBuiltin:
		if !alike(e) {
			return false
		}
	case opCall:
		if !w.isPure(e.sym.fn) {
			return false
		}
	default:
		return false
	}
	for _, a := range e.args {
		if !w.depends(a, alone) {
			return false
		}
	}
	return w.depends(e.a, alone) && w.depends(e.b, alone) && w.depends(e.c, alone)
}

// groupMembers are the built-ins of the work item that answer all items alike.
const groupMembers = " get_work_dim get_global_size get_local_size get_num_groups get_group_id get_global_offset "

// alike tells whether a built-in depends on its arguments and the group alone.
func alike(e *expr) bool {
	if _, ok := conversionOf(e.text); ok {
		return true
	}
	name := strings.TrimPrefix(e.text, "cc_")
	b, ok := lookupBuiltin(name)
	if !ok || b.Barrier || b.Atomic || b.Variadic || b.Member && !strings.Contains(groupMembers, " "+name+" ") {
		return false
	}
	for _, a := range e.args {
		if a.typ.isPointer() {
			return false
		}
	}
	return true
}

// isPure tells whether a function of the program depends on its arguments alone.
func (w *flow) isPure(fn *function) bool {
	if known, ok := w.pure[fn]; ok {
		return known
	}
	w.pure[fn] = false
	if !fn.defined || fn.kernel || fn.barrier {
		return false
	}
	pure := true
	for _, p := range fn.params {
		pure = pure && !p.typ.isPointer()
	}
	walkStmt(fn.body, func(e *expr) {
		w.Step()
		switch e.op {
		case opUnary:
			pure = pure && e.text != "*" && e.text != "&"
		case opIndex:
			pure = pure && e.a.op == opDecay
		case opSym:
			pure = pure && (!e.sym.inst || e.sym.typ.space == Constant && !e.sym.typ.isPointer())
		case opBuiltin:
			pure = pure && alike(e)
		case opCall:
			pure = pure && w.isPure(e.sym.fn)
		case opStmts, opCompound, opBad:
			pure = false
		}
	})
	w.pure[fn] = pure
	return pure
}

// cheapNodes is the size of an expression that costs less to compute again than to
// keep.
const cheapNodes = 24

// cheap tells whether a variable of the items can be computed wherever it is
// needed: from ids, arguments and variables like it, and never changed.
func (f *fission) cheap(sym *symbol) bool {
	known, asked := f.cheaps[sym]
	if !asked {
		f.cheaps[sym] = false // what begins with itself is not
		known = f.isCheap(sym)
		f.cheaps[sym] = known
	}
	return known
}

func (f *fission) isCheap(sym *symbol) bool {
	if sym.kind != symVar || f.home[sym] == nil || len(f.writes[sym]) != 1 || f.pinned[sym] || sym.init == nil || sym.init.value == nil ||
		sym.typ.q&qVolatile != 0 || sym.typ.align > 0 || sym.typ.kind != tScalar && sym.typ.kind != tPointer {
		return false
	}
	nodes, cheap := 0, true
	walkExpr(sym.init.value, func(e *expr) {
		f.Step()
		nodes++
		cheap = cheap && f.cheapNode(e, f.loops[sym])
	})
	return cheap && nodes <= cheapNodes
}

func (f *fission) cheapNode(e *expr, loops []*stmt) bool {
	switch e.op {
	case opLit, opNull, opNamed, opSizeof, opParen, opShift, opCompare, opLogic, opCond, opCast, opConv:
		return true
	case opUnary:
		return e.text != "*" && e.text != "&"
	case opBinary:
		n := fold(e.b)
		return e.text != "/" && e.text != "%" || n.ok && !n.float && n.i > 0 && n.i&(n.i-1) == 0
	case opDecay:
		return e.a.op == opSym && e.a.sym.inst
	case opSym:
		switch s := e.sym; {
		case s.inst:
			return s.typ.kind == tArray || s.typ.space == Constant && !s.typ.isPointer()
		case s.kind == symEnumConst:
			return true
		case f.shared[s]:
			return f.steady(s, loops)
		case s.kind == symParam:
			return len(f.writes[s]) == 0
		default:
			return f.cheap(s)
		}
	case opBuiltin:
		name := strings.TrimPrefix(e.text, "cc_")
		return strings.Contains(groupMembers+"get_global_id get_local_id ", " "+name+" ")
	}
	return false
}

// steadyIn is what steady was asked: about a variable, inside of loops of which these are
// the innermost and the number.
type steadyIn struct {
	sym  *symbol
	loop *stmt
	n    int
}

// steady tells whether a variable of the group keeps its value inside of these
// loops: it is changed only where one of them goes round.
func (f *fission) steady(sym *symbol, loops []*stmt) bool {
	key := steadyIn{sym: sym, n: len(loops)}
	if key.n > 0 {
		key.loop = loops[key.n-1]
	}
	known, asked := f.steadies[key]
	if !asked {
		known = f.changesIn(sym, loops) && (sym.kind != symParam || len(f.writes[sym]) == 0)
		f.steadies[key] = known
	}
	return known
}

// changesIn tells whether a variable is changed by nothing but the post expressions of
// these loops.
func (f *fission) changesIn(sym *symbol, loops []*stmt) bool {
	at, asked := f.changes[sym]
	if !asked {
		seen := map[*stmt]bool{}
		for _, w := range f.writes[sym] {
			if s := w.at.s; s.kind != stDecl && !seen[s] {
				seen[s] = true
				at = append(at, s)
			}
		}
		f.changes[sym] = at
	}
	if len(at) > len(loops) {
		return false
	}
	for _, s := range at {
		f.Step()
		if !slices.Contains(loops, s) {
			return false
		}
	}
	return true
}
