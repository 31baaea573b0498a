// Package loops plans how the host runs a kernel without fibers. A kernel in which each barrier is
// provably reached by all items of a group or by none is cut at the barriers: the host runs each
// piece as a loop over the items, and the statements around the pieces, which are loops and
// branches with uniform conditions, once for the group. Kernels for which this cannot be proved run
// on fibers, which also detect a barrier that not all items reach. A loop in which neighbouring
// items read neighbouring elements is interchanged with the loop over the items.
package loops

// This file decides whether a kernel can be cut and makes the plan; flow.go collects the kernel's
// flow, spread.go and uniform.go decide what is uniform, that is, the same for all items of a
// group. Package render writes the result.

import (
	"slices"
	"strconv"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// keptBytes is the limit for the bytes that an item keeps from one piece to the next. Kernels that
// need more run on fibers, whose stacks have a limit and a guard page.
const keptBytes = 16 << 10

// Plan is the plan for one kernel.
type Plan struct {
	fn     *tree.Function
	Pieces map[*tree.Stmt][]Piece // the pieces of a statement that is executed once for the group
	Kept   []*tree.Symbol         // variables of items that outlive a piece, in the order of the text
	Keeps  map[*tree.Symbol]bool  // the same
	again  map[*tree.Symbol]bool  // those that each piece computes again
	Names  map[*tree.Symbol]string
	Where  map[*tree.Symbol]string // the array that holds a kept variable of all items

	flow                                   // effects of the kernel's statements, see flow.go
	group    map[*tree.Stmt]bool           // statements that are executed once for the group
	taken    []*place                      // while marking: statements of the group that are still to be examined
	sharing  []*tree.Symbol                // while marking: variables of the group that are still to be examined
	Shared   map[*tree.Symbol]bool         // variables that exist once per group
	Home     map[*tree.Symbol]*Region      // where a variable of the items is declared
	users    map[*tree.Symbol]int          // how many regions mention it
	loops    map[*tree.Symbol][]*tree.Stmt // the loops of the group around its declaration
	regions  []*Region
	cheaps   map[*tree.Symbol]bool           // stored results of cheap
	froms    map[*tree.Symbol][]*tree.Symbol // likewise
	ids      map[*tree.Symbol]idAnswer
	steadies map[steadyIn]bool
	changes  map[*tree.Symbol][]*tree.Stmt // where a variable of the group is changed after its declaration
	around   []*tree.Stmt                  // while planning: the enclosing loops of the group
	Needless map[*tree.Stmt]bool           // conditions that the bounds of the loop over the items already ensure
	returned bool                          // while planning: some items may have left the kernel
	failed   bool
}

// Piece is a part of a plan. Pieces are in the order of execution. A piece is either statements for
// every item, or one statement for the group, or the declaration of a variable of the group.
type Piece struct {
	Items *Region
	Once  *tree.Stmt
	Sym   *tree.Symbol
	Fence bool // a barrier was here
}

// Region is a sequence of statements without a barrier.
type Region struct {
	List   []*tree.Stmt
	has    map[*tree.Stmt]bool // the same
	refs   map[*tree.Symbol]bool
	Writes map[*tree.Symbol]bool
	Vars   []*tree.Symbol // Refs in the order of the text
	Anew   []*tree.Symbol // what is computed again for it, likewise

	Strips []*Strip       // see interchange.go; if empty, the region is one loop over the items
	Rows   *Straights     // values that the strips compute at the beginning of a part of a row
	Held   []*tree.Symbol // variables that several strips mention
}

// newFission returns the plan for a kernel, or nil if the kernel needs fibers.
func newFission(fn *tree.Function, m *token.Meter, pure map[*tree.Function]bool) *Plan {
	f := &Plan{
		flow: flow{Meter: m, pure: pure}, again: map[*tree.Symbol]bool{}, Keeps: map[*tree.Symbol]bool{},
		ids: map[*tree.Symbol]idAnswer{}, froms: map[*tree.Symbol][]*tree.Symbol{},
		steadies: map[steadyIn]bool{}, changes: map[*tree.Symbol][]*tree.Stmt{},
		fn: fn, Pieces: map[*tree.Stmt][]Piece{}, Names: map[*tree.Symbol]string{}, Where: map[*tree.Symbol]string{},
		group: map[*tree.Stmt]bool{}, Shared: map[*tree.Symbol]bool{}, Home: map[*tree.Symbol]*Region{},
		users: map[*tree.Symbol]int{}, loops: map[*tree.Symbol][]*tree.Stmt{}, Needless: map[*tree.Stmt]bool{},
		cheaps: map[*tree.Symbol]bool{},
	}
	if fn.Split || len(fn.Temps) > 0 || hasBarrierCall(fn) || !f.read(fn) {
		return nil
	}
	f.mark()
	if !f.sound() {
		return nil
	}
	var first *Region
	for _, p := range fn.Params {
		if len(f.Writes[p]) > 0 && !f.Shared[p] {
			first = f.add(first, &tree.Stmt{Kind: tree.StDecl, Pos: fn.Pos, Syms: []*tree.Symbol{p}})
		}
	}
	f.plan(fn.Body, first)
	var own []Piece
	for _, p := range slices.Backward(fn.Params) {
		if len(f.Writes[p]) > 0 && f.Shared[p] {
			own = append(own, Piece{Sym: p})
		}
	}
	f.Pieces[fn.Body] = append(own, f.Pieces[fn.Body]...)
	if f.failed || !f.classify() {
		return nil
	}
	for _, g := range f.regions {
		f.interchange(g)
	}
	for _, g := range f.regions {
		g.Vars, g.Anew = f.InOrder(g.refs), f.closure(g.refs)
		for _, s := range g.Strips {
			s.Vars, s.Anew = f.InOrder(s.Refs), f.closure(s.Refs)
		}
	}
	return f
}

// hasBarrierCall reports whether a kernel calls a function that has a barrier.
func hasBarrierCall(fn *tree.Function) bool {
	for _, c := range fn.Calls {
		if c.To.Barrier {
			return true
		}
	}
	return false
}

// sound reports whether the marked statements can be executed once: they are of kinds that a plan
// supports, and their conditions are uniform.
func (f *Plan) sound() bool {
	for sym := range f.Shared {
		if f.varies[sym] || !f.declared[sym] && sym.Kind != tree.SymParam || sym.Type.Align > 0 {
			return false
		}
	}
	for s := range f.group {
		switch s.Kind {
		case tree.StBlock, tree.StDecl, tree.StBreak, tree.StContinue, tree.StReturn:
		case tree.StIf, tree.StWhile, tree.StDo:
			if !f.uniform(s.E) {
				return false
			}
		case tree.StFor:
			if s.E != nil && !f.uniform(s.E) || s.Post != nil && !f.once(s.Post) {
				return false
			}
		case tree.StExpr:
			if !isBarrier(s.E) && !f.once(s.E) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// once reports whether e has no side effects but assignments to variables of the group.
func (f *Plan) once(e *tree.Expr) bool {
	e = tree.Unparen(e)
	if e.Op == tree.OpComma {
		return f.once(e.A) && f.once(e.B)
	}
	return isWrite(e) && tree.Unparen(e.A).Op == tree.OpSym && f.Shared[tree.Unparen(e.A).Sym]
}

// plan cuts the statements of body, a block or a single statement. now is a region to continue, or
// nil.
func (f *Plan) plan(body *tree.Stmt, now *Region) {
	var out []Piece
	if now != nil {
		out = append(out, Piece{Items: now})
	}
	list := []*tree.Stmt{body}
	if body.Kind == tree.StBlock {
		list = body.List
	}
	item := func(s *tree.Stmt) {
		begun := now
		if now = f.add(now, s); begun == nil {
			out = append(out, Piece{Items: now})
		}
	}
	// put adds a piece that is executed once. If the current region does not mention its variable
	// the piece goes before the region, so that the region can continue.
	put := func(p Piece, sym *tree.Symbol) {
		if now == nil || sym == nil || now.refs[sym] {
			f.failed = f.failed || f.returned
			out, now = append(out, p), nil
			return
		}
		last := len(out) - 1
		out = append(out[:last], p, out[last])
	}
	for _, s := range list {
		switch {
		case !f.group[s]:
			item(s)
		case s.Kind == tree.StDecl:
			for _, sym := range s.Syms {
				if f.Shared[sym] {
					put(Piece{Sym: sym}, sym)
				} else {
					item(&tree.Stmt{Kind: tree.StDecl, Pos: s.Pos, Syms: []*tree.Symbol{sym}})
				}
			}
		case s.Kind == tree.StExpr && isBarrier(s.E):
			put(Piece{Once: s, Fence: true}, nil)
		case s.Kind == tree.StExpr && isWrite(tree.Unparen(s.E)):
			put(Piece{Once: s}, tree.Unparen(tree.Unparen(s.E).A).Sym)
		default:
			put(Piece{Once: s}, nil)
			f.inside(s)
		}
	}
	f.Pieces[body] = out
}

// inside plans the parts of a statement that is executed once.
func (f *Plan) inside(s *tree.Stmt) {
	switch s.Kind {
	case tree.StBlock:
		f.plan(s, nil)
	case tree.StIf:
		f.plan(s.Body, nil)
		switch {
		case s.Alt == nil:
		case s.Alt.Kind == tree.StIf && f.group[s.Alt]:
			f.inside(s.Alt)
		default:
			f.plan(s.Alt, nil)
		}
	case tree.StFor, tree.StWhile, tree.StDo:
		around := f.around
		f.around = append(around[:len(around):len(around)], s) // a copy, since variables keep the old slice
		f.plan(s.Body, nil)
		f.around = around
	}
}

// add puts a statement into a region, or into a new one.
func (f *Plan) add(r *Region, s *tree.Stmt) *Region {
	if r == nil {
		f.failed = f.failed || f.returned
		r = &Region{has: map[*tree.Stmt]bool{}, refs: map[*tree.Symbol]bool{}, Writes: map[*tree.Symbol]bool{}}
		f.regions = append(f.regions, r)
	}
	r.List = append(r.List, s)
	r.has[s] = true
	if s.Kind == tree.StDecl {
		for _, sym := range s.Syms {
			f.Home[sym] = r
			f.loops[sym] = f.around
			f.mention(r, sym)
		}
	}
	tree.WalkStmt(s, func(e *tree.Expr) {
		f.Step()
		if e.Op == tree.OpSym && tree.RootVariable(e) != nil {
			f.mention(r, e.Sym)
		}
		if isWrite(e) || e.Op == tree.OpUnary && e.Text == "&" {
			if sym := tree.RootVariable(e.A); sym != nil {
				r.Writes[sym] = true
			}
		}
	})
	f.returned = f.returned || hasReturn(s)
	return r
}

func (f *Plan) mention(r *Region, sym *tree.Symbol) {
	if !r.refs[sym] {
		r.refs[sym] = true
		f.users[sym]++
	}
}

func hasReturn(s *tree.Stmt) bool {
	if s == nil {
		return false
	}
	if s.Kind == tree.StReturn || hasReturn(s.Init) || hasReturn(s.Body) || hasReturn(s.Alt) {
		return true
	}
	for _, k := range s.List {
		if hasReturn(k) {
			return true
		}
	}
	return false
}

// classify decides how the variables of the items are stored. A variable that only one region
// mentions stays as it is, unless its address is used elsewhere; a variable that is cheap to
// compute is computed again in each region; any other becomes an array with an element per item.
func (f *Plan) classify() bool {
	total := 0
	again := map[*tree.Symbol]bool{}
	for _, sym := range f.order { // in this order, to keep the recursion shallow
		if f.cheap(sym) && f.Home[sym] != nil && !f.Shared[sym] && f.users[sym] > 1 {
			f.Needs(sym, again)
		}
	}
	for i, sym := range f.order {
		switch {
		case sym.Kind == tree.SymParam && len(f.Writes[sym]) == 0: // it stays a parameter
		case f.Shared[sym]:
			f.Names[sym] = "cg" + strconv.Itoa(i) + "_" + sym.CName
		case again[sym]:
			f.Names[sym] = "ca" + strconv.Itoa(i) + "_" + sym.CName
			f.again[sym] = true
		case f.Home[sym] == nil || f.users[sym] == 1 && !(f.pinned[sym] && len(f.regions) > 1):
			// or a pointer outlives the piece
		default:
			size, ok := sym.Type.Size()
			base := tree.ArrayBase(sym.Type)
			if total += size; !ok || total > keptBytes || sym.Type.Align > 0 || base.Q&tree.QVolatile != 0 &&
				base.Kind == tree.TRecord {
				return false
			}
			f.Names[sym] = "ck" + strconv.Itoa(i) + "_" + sym.CName
			f.Where[sym] = "cc_k" + strconv.Itoa(i)
			f.Kept = append(f.Kept, sym)
			f.Keeps[sym] = true
		}
	}
	return true
}

// Needs enters a cheap variable and those that it is computed from.
func (f *Plan) Needs(sym *tree.Symbol, into map[*tree.Symbol]bool) {
	for list := []*tree.Symbol{sym}; len(list) > 0; {
		sym := list[len(list)-1]
		list = list[:len(list)-1]
		if into[sym] {
			continue
		}
		into[sym] = true
		f.Step()
		list = append(list, f.computedFrom(sym)...)
	}
}

// computedFrom returns the variables of the items that a cheap one is computed from.
func (f *Plan) computedFrom(sym *tree.Symbol) []*tree.Symbol {
	list, asked := f.froms[sym]
	if !asked {
		tree.WalkInit(sym.Init, func(e *tree.Expr) {
			f.Step()
			if e.Op == tree.OpSym && e.Sym.Kind == tree.SymVar && !e.Sym.Inst && !f.Shared[e.Sym] {
				list = append(list, e.Sym)
			}
		})
		f.froms[sym] = list
	}
	return list
}

// closure returns the variables that have to be computed again to use those in refs, in the order
// of the text.
func (f *Plan) closure(refs map[*tree.Symbol]bool) []*tree.Symbol {
	need := map[*tree.Symbol]bool{}
	for sym := range refs {
		if f.again[sym] {
			f.Needs(sym, need)
		}
	}
	return f.InOrder(need)
}

// InOrder returns the variables of a set in the order of the text.
func (f *Plan) InOrder(set map[*tree.Symbol]bool) []*tree.Symbol {
	list := make([]*tree.Symbol, 0, len(set))
	for sym := range set {
		f.Step()
		if _, ok := f.index[sym]; ok {
			list = append(list, sym)
		}
	}
	slices.SortFunc(list, func(a, b *tree.Symbol) int { return f.index[a] - f.index[b] })
	return list
}

// KeptSize returns the bytes that an item keeps from piece to piece.
func (f *Plan) KeptSize() int {
	total := 0
	for _, sym := range f.Kept {
		size, _ := sym.Type.Size()
		total += size
	}
	return total
}

// Plans makes the plans of all kernels for which it is possible within the limit of steps.
func Plans(funcs []*tree.Function, m *token.Meter) map[*tree.Function]*Plan {
	plans, pure := map[*tree.Function]*Plan{}, map[*tree.Function]bool{}
	for _, fn := range funcs {
		if fn.Kernel && fn.Defined {
			var f *Plan
			if m.Within(planSteps(fn), func() { f = newFission(fn, m, pure) }) && f != nil {
				plans[fn] = f
			}
		}
	}
	return plans
}

// planSteps returns the limit for the steps of planning a kernel. It is linear in the kernel's
// text, so that the time for a program is, too. Kernels of the catalog need a twentieth of it.
func planSteps(fn *tree.Function) int {
	n := 1 << 10
	tree.WalkStmt(fn.Body, func(*tree.Expr) { n++ })
	return n << 5
}

// Copied reports whether a kept variable is loaded at the beginning of a region and stored at its
// end, so that the compiler can hold it in a register. Other kept variables are accessed in their
// arrays.
func (f *Plan) Copied(s *tree.Symbol) bool {
	switch s.Type.Kind {
	case tree.TScalar, tree.TVector, tree.TPointer:
		return !f.pinned[s] && s.Type.Q&tree.QVolatile == 0
	}
	return false
}
