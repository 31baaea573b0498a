package source

// What is alike for all items of a group. Every variable is taken to be so until
// something shows that it need not be: it is assigned what differs between items
// (their ids, whatever is read from memory), or in a place that not all items reach.

import "strings"

// flow is what the statements of a kernel do to its variables and to the order of
// execution.
type flow struct {
	order    []*symbol        // parameters and variables, in the order of the text
	declared map[*symbol]bool // as a statement of the kernel
	writes   map[*symbol][]write
	varies   map[*symbol]bool // may differ between the items
	pinned   map[*symbol]bool // its address is taken
	barriers [][]*stmt        // the paths to all barriers
	waits    map[*stmt]bool   // statements with a barrier inside
	jumps    []jump
	parted   map[*stmt]bool     // loops that items may leave at different times
	pure     map[*function]bool // functions whose result depends on the arguments alone
	bad      bool               // something that no plan can have
}

// write is an assignment of a variable, or its declaration. path holds the statements
// around it from the outermost on, and last the one that it is in.
type write struct {
	value *expr // nil: none
	path  []*stmt
}

// jump is a break, continue or return.
type jump struct {
	path   []*stmt
	target *stmt // the loop or switch that it leaves; nil: the kernel
}

func (j jump) at() *stmt { return j.path[len(j.path)-1] }

// read goes through a kernel. It is false where no plan is possible.
func (w *flow) read(fn *function) bool {
	w.declared, w.writes = map[*symbol]bool{}, map[*symbol][]write{}
	w.varies, w.pinned = map[*symbol]bool{}, map[*symbol]bool{}
	w.waits, w.parted, w.pure = map[*stmt]bool{}, map[*stmt]bool{}, map[*function]bool{}
	for _, p := range fn.params {
		w.variable(p)
	}
	w.stmt(fn.body, nil)
	if w.bad {
		return false
	}
	for changed := true; changed; {
		before := len(w.varies) + len(w.parted)
		for sym, all := range w.writes {
			for _, a := range all {
				if a.value != nil && !w.uniform(a.value) || w.split(a.path) {
					w.varies[sym] = true
				}
			}
		}
		for _, j := range w.jumps {
			if !w.split(j.path) {
				continue
			}
			for _, s := range j.path { // a return leaves every loop
				if s.kind == stFor || s.kind == stWhile || s.kind == stDo {
					if j.target == nil || j.target == s {
						w.parted[s] = true
					}
				}
			}
		}
		changed = before != len(w.varies)+len(w.parted)
	}
	return true
}

// variable enters a parameter or variable. Only plain ones can be alike: parts of
// others are assigned one by one.
func (w *flow) variable(sym *symbol) {
	w.order = append(w.order, sym)
	t := sym.typ
	if t.q&qVolatile != 0 || t.kind != tScalar && t.kind != tPointer && t.kind != tVector {
		w.varies[sym] = sym.kind != symParam || t.q&qVolatile != 0
	}
}

// mostNesting is how deep statements may stand in each other: every one notes the way
// to it.
const mostNesting = 250

// stmt reads one statement. path leads to it.
func (w *flow) stmt(s *stmt, path []*stmt) {
	if s == nil || w.bad {
		return
	}
	if len(path) == mostNesting {
		w.bad = true
		return
	}
	path = append(path[:len(path):len(path)], s)
	switch s.kind {
	case stExpr:
		if isBarrier(s.e) {
			w.barriers = append(w.barriers, path)
			for _, p := range path {
				w.waits[p] = true
			}
			for _, a := range s.e.args {
				w.expr(a, path, false)
				w.bad = w.bad || a.acts
			}
			return
		}
		w.expr(s.e, path, true)
		return
	case stDecl:
		for _, sym := range s.syms {
			if sym.inst {
				continue
			}
			w.variable(sym)
			w.declared[sym] = true
			d := write{path: path}
			if sym.init != nil {
				if d.value = sym.init.value; d.value == nil {
					w.varies[sym] = true
				}
				w.init(sym.init, path)
			}
			w.writes[sym] = append(w.writes[sym], d)
		}
		return
	case stBreak, stContinue, stReturn:
		w.jumps = append(w.jumps, jump{path, target(s, path)})
	case stGoto, stLabel:
		w.bad = true
	}
	w.expr(s.e, path, false)
	w.expr(s.post, path, true)
	w.stmt(s.init, path)
	w.stmt(s.body, path)
	w.stmt(s.alt, path)
	for _, k := range s.list {
		w.stmt(k, path)
	}
}

// target is the statement that a jump leaves or goes on with.
func target(s *stmt, path []*stmt) *stmt {
	if s.kind == stReturn {
		return nil
	}
	for i := len(path) - 1; i >= 0; i-- {
		switch path[i].kind {
		case stFor, stWhile, stDo:
			return path[i]
		case stSwitch:
			if s.kind == stBreak {
				return path[i]
			}
		}
	}
	return nil
}

func (w *flow) init(n *initNode, path []*stmt) {
	if n == nil {
		return
	}
	w.expr(n.value, path, false)
	for _, k := range n.kids {
		w.init(k, path)
	}
}

// expr reads an expression. whole says that it is a statement of its own: an
// assignment inside a larger expression may not happen.
func (w *flow) expr(e *expr, path []*stmt, whole bool) {
	if e == nil {
		return
	}
	switch {
	case whole && e.op == opParen:
		w.expr(e.a, path, true)
		return
	case whole && e.op == opComma:
		w.expr(e.a, path, true)
		w.expr(e.b, path, true)
		return
	case isWrite(e):
		if sym := rootVariable(e.a); sym != nil {
			w.writes[sym] = append(w.writes[sym], write{e.b, path})
			if !whole || unparen(e.a).op != opSym {
				w.varies[sym] = true
			}
		}
	case e.op == opUnary && e.text == "&", e.op == opDecay:
		// Whoever has the address may assign, here or behind the next barrier.
		if sym := rootVariable(e.a); sym != nil {
			w.varies[sym], w.pinned[sym] = true, true
			w.writes[sym] = append(w.writes[sym], write{nil, path})
		}
	case e.op == opIndex && e.a.op == opDecay: // the address goes no further
		if sym := rootVariable(e.a.a); sym != nil {
			w.varies[sym] = true
		}
		w.expr(e.a.a, path, false)
		w.expr(e.b, path, false)
		return
	case isBarrier(e), e.op == opBad, e.op == opCompound:
		w.bad = true
	case e.op == opStmts:
		w.bad = w.bad || jumpOut(e.body.list, false, false) != nil
		inner := len(w.jumps)
		w.stmt(e.body, path)
		w.jumps = w.jumps[:inner] // they stay inside
		w.bad = w.bad || w.waits[e.body]
		w.scatter(e.body)
	}
	w.expr(e.a, path, false)
	w.expr(e.b, path, false)
	w.expr(e.c, path, false)
	for _, a := range e.args {
		w.expr(a, path, false)
	}
	w.init(e.init, path)
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

// split tells whether only some items may reach the end of a path.
func (w *flow) split(path []*stmt) bool {
	for _, s := range path {
		switch s.kind {
		case stSwitch:
			return true
		case stIf, stFor, stWhile, stDo:
			if w.parted[s] || s.e != nil && !w.uniform(s.e) {
				return true
			}
		}
	}
	return false
}

// isWrite tells whether e itself assigns.
func isWrite(e *expr) bool { return e.op == opAssign || e.op == opPreInc || e.op == opPostInc }

// isBarrier tells whether e is a call that synchronizes the group.
func isBarrier(e *expr) bool { return e.op == opBuiltin && e.site > 0 }

// uniform tells whether e has one value for all items of a group and changes
// nothing. What is read from memory may be changed by another item at any time.
func (w *flow) uniform(e *expr) bool { return w.depends(e, w.varies) }

// depends is uniform for variables that are alike except for some.
func (w *flow) depends(e *expr, varies map[*symbol]bool) bool {
	if e == nil {
		return true
	}
	switch e.op {
	case opLit, opString, opNull, opNamed, opSizeof:
		return true
	case opSym:
		if e.sym.inst {
			return e.sym.typ.space == Constant && !e.sym.typ.isPointer()
		}
		return e.sym.kind == symEnumConst || !varies[e.sym]
	case opDecay:
		return e.a.op == opString || e.a.op == opSym && e.a.sym.inst
	case opIndex:
		return e.a.op == opDecay && e.a.a.op == opSym && e.a.a.sym.inst && e.a.a.sym.typ.space == Constant && w.depends(e.b, varies)
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
		if !w.depends(a, varies) {
			return false
		}
	}
	return w.depends(e.a, varies) && w.depends(e.b, varies) && w.depends(e.c, varies)
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

// steady tells whether a variable of the group keeps its value inside of these
// loops: it is changed only where one of them goes round.
func (f *fission) steady(sym *symbol, loops []*stmt) bool {
	for _, w := range f.writes[sym] {
		at := w.path[len(w.path)-1]
		if at.kind == stDecl {
			continue
		}
		inside := false
		for _, l := range loops {
			inside = inside || at == l // the for's own post expression
		}
		if !inside {
			return false
		}
	}
	return sym.kind != symParam || len(f.writes[sym]) == 0
}
