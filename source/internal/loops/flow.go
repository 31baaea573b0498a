package loops

// The control and data flow of a kernel, collected in one pass: where its variables are assigned,
// where it jumps and where it waits. From it spread.go computes what is uniform, that is, the same
// for all items of a group.

import (
	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// flow describes the effects of a kernel's statements on its variables and on the order of
// execution.
type flow struct {
	*token.Meter
	order    []*tree.Symbol        // parameters and variables, in the order of the text
	index    map[*tree.Symbol]int  // index of each in order
	declared map[*tree.Symbol]bool // those that a statement of the kernel declares
	Writes   map[*tree.Symbol][]write
	varies   map[*tree.Symbol]bool // may differ between the items
	pinned   map[*tree.Symbol]bool // its address is taken
	places   []*place              // the places of all statements, outer ones first
	barriers []*place
	waits    map[*tree.Stmt]bool // statements with a barrier inside
	jumps    []jump
	leaving  map[*tree.Stmt][]jump   // the jumps by the loop or switch that they leave
	pure     map[*tree.Function]bool // functions whose result depends on the arguments alone
	bad      bool                    // the kernel has a construct that no plan supports
}

// place is a statement with its position in the tree of statements.
type place struct {
	s     *tree.Stmt
	up    *place // the statement around it
	depth int
	index int // index in the list of its block

	inner  []*place       // the statements directly in it
	writes []*tree.Symbol // variables that its own expressions assign
	jump   *jump          // set if the statement is a jump

	split bool // only some items may reach its end
	left  bool // some items may return from it while others stay
	late  bool // all items do something together after it, outside of any loop around it
	swept bool // the returns in it are executed once for the group
}

// write is an assignment of a variable, or its declaration.
type write struct {
	value *tree.Expr // the new value, or nil
	at    *place
}

// jump is a break, continue or return.
type jump struct {
	at     *place
	target *tree.Stmt // the loop or switch that it leaves; nil: the kernel
}

// read collects the flow of a kernel. It returns false if no plan is possible.
func (w *flow) read(fn *tree.Function) bool {
	w.declared, w.Writes, w.index = map[*tree.Symbol]bool{}, map[*tree.Symbol][]write{}, map[*tree.Symbol]int{}
	w.varies, w.pinned = map[*tree.Symbol]bool{}, map[*tree.Symbol]bool{}
	w.waits, w.leaving = map[*tree.Stmt]bool{}, map[*tree.Stmt][]jump{}
	for _, p := range fn.Params {
		w.variable(p)
	}
	w.stmt(fn.Body, nil, 0)
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

// variable enters a parameter or variable. Only scalars and pointers can be uniform; the parts of
// other variables are assigned separately.
func (w *flow) variable(sym *tree.Symbol) {
	w.index[sym] = len(w.order)
	w.order = append(w.order, sym)
	t := sym.Type
	if t.Q&tree.QVolatile != 0 || t.Kind != tree.TScalar && t.Kind != tree.TPointer && t.Kind != tree.TVector {
		w.varies[sym] = sym.Kind != tree.SymParam || t.Q&tree.QVolatile != 0
	}
}

// mostNesting is the limit for the nesting of statements. Kernels with deeper nesting, such as a
// long chain of else if, have no plan.
const mostNesting = 250

// stmt reads one statement, the one at index in the list of the block up.
func (w *flow) stmt(s *tree.Stmt, up *place, index int) {
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
	switch s.Kind {
	case tree.StExpr:
		if isBarrier(s.E) {
			w.barriers = append(w.barriers, at)
			for p := at; p != nil && !w.waits[p.s]; p = p.up {
				w.waits[p.s] = true
			}
			for _, a := range s.E.Args {
				w.expr(a, at, false)
				w.bad = w.bad || a.Acts
			}
			return
		}
		w.expr(s.E, at, true)
		return
	case tree.StDecl:
		for _, sym := range s.Syms {
			if sym.Inst {
				continue
			}
			w.variable(sym)
			w.declared[sym] = true
			d := write{at: at}
			if sym.Init != nil {
				if d.value = sym.Init.Value; d.value == nil {
					w.varies[sym] = true
				}
				w.init(sym.Init, at)
			}
			w.Writes[sym] = append(w.Writes[sym], d)
			at.writes = append(at.writes, sym)
		}
		return
	case tree.StBreak, tree.StContinue, tree.StReturn:
		w.jumps = append(w.jumps, jump{at, target(at)})
	case tree.StGoto, tree.StLabel:
		w.bad = true
	}
	w.expr(s.E, at, false)
	w.expr(s.Post, at, true)
	w.stmt(s.Init, at, 0)
	w.stmt(s.Body, at, 0)
	w.stmt(s.Alt, at, 0)
	for i, k := range s.List {
		w.stmt(k, at, i)
	}
}

// target returns the statement that a jump leaves or continues.
func target(at *place) *tree.Stmt {
	if at.s.Kind == tree.StReturn {
		return nil
	}
	for p := at; p != nil; p = p.up {
		switch p.s.Kind {
		case tree.StFor, tree.StWhile, tree.StDo:
			return p.s
		case tree.StSwitch:
			if at.s.Kind == tree.StBreak {
				return p.s
			}
		}
	}
	return nil
}

func (w *flow) init(n *tree.Init, at *place) {
	if n == nil {
		return
	}
	w.expr(n.Value, at, false)
	for _, k := range n.Kids {
		w.init(k, at)
	}
}

// expr reads an expression. whole says that it is a whole statement; an assignment inside a larger
// expression is not always executed.
func (w *flow) expr(e *tree.Expr, at *place, whole bool) {
	if e == nil {
		return
	}
	w.Step()
	switch {
	case whole && e.Op == tree.OpParen:
		w.expr(e.A, at, true)
		return
	case whole && e.Op == tree.OpComma:
		w.expr(e.A, at, true)
		w.expr(e.B, at, true)
		return
	case isWrite(e):
		if sym := tree.RootVariable(e.A); sym != nil {
			w.Writes[sym] = append(w.Writes[sym], write{e.B, at})
			at.writes = append(at.writes, sym)
			if !whole || tree.Unparen(e.A).Op != tree.OpSym {
				w.varies[sym] = true
			}
		}
	case e.Op == tree.OpUnary && e.Text == "&", e.Op == tree.OpDecay:
		// Code that has the address may assign the variable, here or after the next barrier.
		if sym := tree.RootVariable(e.A); sym != nil {
			w.varies[sym], w.pinned[sym] = true, true
			w.Writes[sym] = append(w.Writes[sym], write{nil, at})
		}
	case e.Op == tree.OpIndex && e.A.Op == tree.OpDecay: // the address goes no further
		if sym := tree.RootVariable(e.A.A); sym != nil {
			w.varies[sym] = true
		}
		w.expr(e.A.A, at, false)
		w.expr(e.B, at, false)
		return
	case isBarrier(e), e.Op == tree.OpBad, e.Op == tree.OpCompound:
		w.bad = true
	case e.Op == tree.OpStmts:
		w.bad = w.bad || tree.JumpOut(e.Body.List, false, false) != nil
		inner := len(w.jumps)
		w.stmt(e.Body, at, 0)
		w.jumps = w.jumps[:inner] // they stay inside
		w.bad = w.bad || w.waits[e.Body]
		w.scatter(e.Body)
	}
	w.expr(e.A, at, false)
	w.expr(e.B, at, false)
	w.expr(e.C, at, false)
	for _, a := range e.Args {
		w.expr(a, at, false)
	}
	w.init(e.Init, at)
}

// scatter marks all variables that a statement expression assigns as varying.
func (w *flow) scatter(s *tree.Stmt) {
	tree.WalkStmt(s, func(e *tree.Expr) {
		if isWrite(e) {
			if sym := tree.RootVariable(e.A); sym != nil {
				w.varies[sym] = true
			}
		}
	})
}
