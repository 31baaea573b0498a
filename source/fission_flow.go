package source

// What the statements of a kernel do, read once: where its variables are assigned, where
// it jumps and where it waits. fission_spread.go finds out from it what is alike for all
// items of a group.

import "github.com/concord-compute/concord/source/internal/token"

// flow is what the statements of a kernel do to its variables and to the order of
// execution.
type flow struct {
	*token.Meter
	order    []*symbol        // parameters and variables, in the order of the text
	index    map[*symbol]int  // where each is in order
	declared map[*symbol]bool // as a statement of the kernel
	writes   map[*symbol][]write
	varies   map[*symbol]bool // may differ between the items
	pinned   map[*symbol]bool // its address is taken
	places   []*place         // of all statements, outer ones first
	barriers []*place
	waits    map[*stmt]bool // statements with a barrier inside
	jumps    []jump
	leaving  map[*stmt][]jump   // the jumps by the loop or switch that they leave
	pure     map[*function]bool // functions whose result depends on the arguments alone
	bad      bool               // something that no plan can have
}

// place is a statement and the way to it.
type place struct {
	s     *stmt
	up    *place // the statement around it
	depth int
	index int // in the list of a block

	inner  []*place  // what it is around
	writes []*symbol // what is assigned in its own expressions
	jump   *jump     // what it does, if it is one

	split bool // only some items may reach its end
	left  bool // some items may return from it while others stay
	late  bool // all items do something together behind it, and no loop is needed for that
	swept bool // the returns in it are done once for the group
}

// write is an assignment of a variable, or its declaration.
type write struct {
	value *expr // nil: none
	at    *place
}

// jump is a break, continue or return.
type jump struct {
	at     *place
	target *stmt // the loop or switch that it leaves; nil: the kernel
}

// read goes through a kernel. It is false where no plan is possible.
func (w *flow) read(fn *function) bool {
	w.declared, w.writes, w.index = map[*symbol]bool{}, map[*symbol][]write{}, map[*symbol]int{}
	w.varies, w.pinned = map[*symbol]bool{}, map[*symbol]bool{}
	w.waits, w.leaving = map[*stmt]bool{}, map[*stmt][]jump{}
	for _, p := range fn.params {
		w.variable(p)
	}
	w.stmt(fn.body, nil, 0)
	if w.bad {
		return false
	}
	for i := range w.jumps {
		j := &w.jumps[i]
		j.at.jump = j
		w.leaving[j.target] = append(w.leaving[j.target], *j)
	}
	w.spread()
	return true
}

// variable enters a parameter or variable. Only plain ones can be alike: parts of
// others are assigned one by one.
func (w *flow) variable(sym *symbol) {
	w.index[sym] = len(w.order)
	w.order = append(w.order, sym)
	t := sym.typ
	if t.q&qVolatile != 0 || t.kind != tScalar && t.kind != tPointer && t.kind != tVector {
		w.varies[sym] = sym.kind != symParam || t.q&qVolatile != 0
	}
}

// mostNesting is how deep statements may stand in each other. Deeper kernels, which a
// chain of else-if easily is, have no plan.
const mostNesting = 250

// stmt reads one statement, which is number index in the list of a block up.
func (w *flow) stmt(s *stmt, up *place, index int) {
	if s == nil || w.bad {
		return
	}
	w.Step()
	at := &place{s: s, up: up, index: index}
	if up != nil {
		at.depth = up.depth + 1
		up.inner = append(up.inner, at)
	}
	if at.depth == mostNesting {
		w.bad = true
		return
	}
	w.places = append(w.places, at)
	switch s.kind {
	case stExpr:
		if isBarrier(s.e) {
			w.barriers = append(w.barriers, at)
			for p := at; p != nil && !w.waits[p.s]; p = p.up {
				w.waits[p.s] = true
			}
			for _, a := range s.e.args {
				w.expr(a, at, false)
				w.bad = w.bad || a.acts
			}
			return
		}
		w.expr(s.e, at, true)
		return
	case stDecl:
		for _, sym := range s.syms {
			if sym.inst {
				continue
			}
			w.variable(sym)
			w.declared[sym] = true
			d := write{at: at}
			if sym.init != nil {
				if d.value = sym.init.value; d.value == nil {
					w.varies[sym] = true
				}
				w.init(sym.init, at)
			}
			w.writes[sym] = append(w.writes[sym], d)
			at.writes = append(at.writes, sym)
		}
		return
	case stBreak, stContinue, stReturn:
		w.jumps = append(w.jumps, jump{at, target(at)})
	case stGoto, stLabel:
		w.bad = true
	}
	w.expr(s.e, at, false)
	w.expr(s.post, at, true)
	w.stmt(s.init, at, 0)
	w.stmt(s.body, at, 0)
	w.stmt(s.alt, at, 0)
	for i, k := range s.list {
		w.stmt(k, at, i)
	}
}

// target is the statement that a jump leaves or goes on with.
func target(at *place) *stmt {
	if at.s.kind == stReturn {
		return nil
	}
	for p := at; p != nil; p = p.up {
		switch p.s.kind {
		case stFor, stWhile, stDo:
			return p.s
		case stSwitch:
			if at.s.kind == stBreak {
				return p.s
			}
		}
	}
	return nil
}

func (w *flow) init(n *initNode, at *place) {
	if n == nil {
		return
	}
	w.expr(n.value, at, false)
	for _, k := range n.kids {
		w.init(k, at)
	}
}

// expr reads an expression. whole says that it is a statement of its own: an
// assignment inside a larger expression may not happen.
func (w *flow) expr(e *expr, at *place, whole bool) {
	if e == nil {
		return
	}
	w.Step()
	switch {
	case whole && e.op == opParen:
		w.expr(e.a, at, true)
		return
	case whole && e.op == opComma:
		w.expr(e.a, at, true)
		w.expr(e.b, at, true)
		return
	case isWrite(e):
		if sym := rootVariable(e.a); sym != nil {
			w.writes[sym] = append(w.writes[sym], write{e.b, at})
			at.writes = append(at.writes, sym)
			if !whole || unparen(e.a).op != opSym {
				w.varies[sym] = true
			}
		}
	case e.op == opUnary && e.text == "&", e.op == opDecay:
		// What has the address may assign, here or behind the next barrier.
		if sym := rootVariable(e.a); sym != nil {
			w.varies[sym], w.pinned[sym] = true, true
			w.writes[sym] = append(w.writes[sym], write{nil, at})
		}
	case e.op == opIndex && e.a.op == opDecay: // the address goes no further
		if sym := rootVariable(e.a.a); sym != nil {
			w.varies[sym] = true
		}
		w.expr(e.a.a, at, false)
		w.expr(e.b, at, false)
		return
	case isBarrier(e), e.op == opBad, e.op == opCompound:
		w.bad = true
	case e.op == opStmts:
		w.bad = w.bad || jumpOut(e.body.list, false, false) != nil
		inner := len(w.jumps)
		w.stmt(e.body, at, 0)
		w.jumps = w.jumps[:inner] // they stay inside
		w.bad = w.bad || w.waits[e.body]
		w.scatter(e.body)
	}
	w.expr(e.a, at, false)
	w.expr(e.b, at, false)
	w.expr(e.c, at, false)
	for _, a := range e.args {
		w.expr(a, at, false)
	}
	w.init(e.init, at)
}

// scatter gives up on everything that a statement expression assigns.
func (w *flow) scatter(s *stmt) {
	walkStmt(s, func(e *expr) {
		if isWrite(e) {
			if sym := rootVariable(e.a); sym != nil {
				w.varies[sym] = true
			}
		}
	})
}
