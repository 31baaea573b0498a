package source

// Barriers without fibers. A kernel whose barriers are reached by all items of a
// group or by none is cut at them: the host runs each piece as a loop over the
// items, and what stands around the pieces, loops and branches that all items take
// alike, once for the group. This file finds out whether a kernel is of that kind
// and makes the plan; fission_flow.go reads it, fission_spread.go and fission_uniform.go know
// what is alike for all items, render_fission.go writes the result. Whatever cannot be proved here keeps its
// fibers, which also find the barriers that not all items reach.

import (
	"slices"
	"strconv"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// keptBytes is the most that an item may keep from one piece to the next. More is
// left to fibers, whose stacks have a limit and a guard.
const keptBytes = 16 << 10

// fission is the plan for one kernel.
type fission struct {
	fn     *tree.Function
	pieces map[*tree.Stmt][]piece // what a statement that is done once for the group is made of
	kept   []*tree.Symbol         // variables of items that outlive a piece, in the order of the text
	keeps  map[*tree.Symbol]bool  // the same
	again  map[*tree.Symbol]bool  // those that each piece computes for itself
	names  map[*tree.Symbol]string
	where  map[*tree.Symbol]string // the array that holds a kept variable of all items

	flow                                   // what the text does, see fission_flow.go
	group    map[*tree.Stmt]bool           // statements that are done once for the group
	taken    []*place                      // while marking: statements of the group whose needs are not known yet
	sharing  []*tree.Symbol                // while marking: and variables
	shared   map[*tree.Symbol]bool         // variables that there is one of for the group
	home     map[*tree.Symbol]*region      // where a variable of the items is declared
	users    map[*tree.Symbol]int          // how many regions mention it
	loops    map[*tree.Symbol][]*tree.Stmt // the loops of the group around its declaration
	regions  []*region
	cheaps   map[*tree.Symbol]bool           // what cheap has answered
	froms    map[*tree.Symbol][]*tree.Symbol // likewise
	ids      map[*tree.Symbol]idAnswer
	steadies map[steadyIn]bool
	changes  map[*tree.Symbol][]*tree.Stmt // where a variable of the group is changed after its declaration
	around   []*tree.Stmt                  // while planning: the loops of the group around
	needless map[*tree.Stmt]bool           // conditions that the loop over the items has seen to
	returned bool                          // while planning: some items may have left the kernel
	failed   bool
}

// piece is a part of a plan, in the order of execution: statements for every item,
// or one statement for the group, or the declaration of a variable of the group.
type piece struct {
	items *region
	once  *tree.Stmt
	sym   *tree.Symbol
	fence bool // a barrier was here
}

// region is a run of statements that one item goes through without meeting another.
type region struct {
	list   []*tree.Stmt
	has    map[*tree.Stmt]bool // the same
	refs   map[*tree.Symbol]bool
	writes map[*tree.Symbol]bool
	vars   []*tree.Symbol // refs in the order of the text
	anew   []*tree.Symbol // what is computed again for it, likewise

	strips []*strip       // see fission_interchange.go; none: it is one loop over the items
	rows   *straights     // what they compute at the beginning of a part of a row
	held   []*tree.Symbol // variables that several of them mention
}

// newFission returns the plan for a kernel, nil if it has to have fibers.
func newFission(fn *tree.Function, m *token.Meter, pure map[*tree.Function]bool) *fission {
	f := &fission{
		flow: flow{Meter: m, pure: pure}, again: map[*tree.Symbol]bool{}, keeps: map[*tree.Symbol]bool{}, ids: map[*tree.Symbol]idAnswer{}, froms: map[*tree.Symbol][]*tree.Symbol{},
		steadies: map[steadyIn]bool{}, changes: map[*tree.Symbol][]*tree.Stmt{},
		fn: fn, pieces: map[*tree.Stmt][]piece{}, names: map[*tree.Symbol]string{}, where: map[*tree.Symbol]string{},
		group: map[*tree.Stmt]bool{}, shared: map[*tree.Symbol]bool{}, home: map[*tree.Symbol]*region{},
		users: map[*tree.Symbol]int{}, loops: map[*tree.Symbol][]*tree.Stmt{}, needless: map[*tree.Stmt]bool{},
		cheaps: map[*tree.Symbol]bool{},
	}
	if fn.Split || len(fn.Temps) > 0 || hasBarrierCall(fn) || !f.read(fn) {
		return nil
	}
	f.mark()
	if !f.sound() {
		return nil
	}
	var first *region
	for _, p := range fn.Params {
		if len(f.writes[p]) > 0 && !f.shared[p] {
			first = f.add(first, &tree.Stmt{Kind: tree.StDecl, Pos: fn.Pos, Syms: []*tree.Symbol{p}})
		}
	}
	f.plan(fn.Body, first)
	var own []piece
	for _, p := range slices.Backward(fn.Params) {
		if len(f.writes[p]) > 0 && f.shared[p] {
			own = append(own, piece{sym: p})
		}
	}
	f.pieces[fn.Body] = append(own, f.pieces[fn.Body]...)
	if f.failed || !f.classify() {
		return nil
	}
	for _, g := range f.regions {
		f.interchange(g)
	}
	for _, g := range f.regions {
		g.vars, g.anew = f.inOrder(g.refs), f.closure(g.refs)
		for _, s := range g.strips {
			s.vars, s.anew = f.inOrder(s.refs), f.closure(s.refs)
		}
	}
	return f
}

// hasBarrierCall tells whether a kernel calls something that synchronizes.
func hasBarrierCall(fn *tree.Function) bool {
	for _, c := range fn.Calls {
		if c.To.Barrier {
			return true
		}
	}
	return false
}

// sound tells whether what was marked can be done once: in statements of a kind
// that a plan has, decided by what is alike for all items.
func (f *fission) sound() bool {
	for sym := range f.shared {
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

// once tells whether e does nothing but assign variables of the group.
func (f *fission) once(e *tree.Expr) bool {
	e = tree.Unparen(e)
	if e.Op == tree.OpComma {
		return f.once(e.A) && f.once(e.B)
	}
	return isWrite(e) && tree.Unparen(e.A).Op == tree.OpSym && f.shared[tree.Unparen(e.A).Sym]
}

// plan cuts the statements of body, a block or a single statement. The first region
// may have been begun.
func (f *fission) plan(body *tree.Stmt, now *region) {
	var out []piece
	if now != nil {
		out = append(out, piece{items: now})
	}
	list := []*tree.Stmt{body}
	if body.Kind == tree.StBlock {
		list = body.List
	}
	item := func(s *tree.Stmt) {
		begun := now
		if now = f.add(now, s); begun == nil {
			out = append(out, piece{items: now})
		}
	}
	// put places what is done once. What the region in hand does not mention goes
	// before it, so that the region can go on.
	put := func(p piece, sym *tree.Symbol) {
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
				if f.shared[sym] {
					put(piece{sym: sym}, sym)
				} else {
					item(&tree.Stmt{Kind: tree.StDecl, Pos: s.Pos, Syms: []*tree.Symbol{sym}})
				}
			}
		case s.Kind == tree.StExpr && isBarrier(s.E):
			put(piece{once: s, fence: true}, nil)
		case s.Kind == tree.StExpr && isWrite(tree.Unparen(s.E)):
			put(piece{once: s}, tree.Unparen(tree.Unparen(s.E).A).Sym)
		default:
			put(piece{once: s}, nil)
			f.inside(s)
		}
	}
	f.pieces[body] = out
}

// inside plans the parts of a statement that is done once.
func (f *fission) inside(s *tree.Stmt) {
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
		f.around = append(around[:len(around):len(around)], s) // variables keep what it was
		f.plan(s.Body, nil)
		f.around = around
	}
}

// add puts a statement into a region, or into a new one.
func (f *fission) add(r *region, s *tree.Stmt) *region {
	if r == nil {
		f.failed = f.failed || f.returned
		r = &region{has: map[*tree.Stmt]bool{}, refs: map[*tree.Symbol]bool{}, writes: map[*tree.Symbol]bool{}}
		f.regions = append(f.regions, r)
	}
	r.list = append(r.list, s)
	r.has[s] = true
	if s.Kind == tree.StDecl {
		for _, sym := range s.Syms {
			f.home[sym] = r
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
				r.writes[sym] = true
			}
		}
	})
	f.returned = f.returned || hasReturn(s)
	return r
}

func (f *fission) mention(r *region, sym *tree.Symbol) {
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

// classify says where the variables of the items live. One that a single region
// mentions stays as it is, if no other can reach it by its address; one that is cheap to compute is computed in each region;
// of the others there is an array with an element for each item.
func (f *fission) classify() bool {
	total := 0
	again := map[*tree.Symbol]bool{}
	for _, sym := range f.order { // in order: no answer has to ask for many others first
		if f.cheap(sym) && f.home[sym] != nil && !f.shared[sym] && f.users[sym] > 1 {
			f.needs(sym, again)
		}
	}
	for i, sym := range f.order {
		switch {
		case sym.Kind == tree.SymParam && len(f.writes[sym]) == 0: // it stays a parameter
		case f.shared[sym]:
			f.names[sym] = "cg" + strconv.Itoa(i) + "_" + sym.CName
		case again[sym]:
			f.names[sym] = "ca" + strconv.Itoa(i) + "_" + sym.CName
			f.again[sym] = true
		case f.home[sym] == nil || f.users[sym] == 1 && !(f.pinned[sym] && len(f.regions) > 1): // or a pointer outlives the piece
		default:
			size, ok := sym.Type.Size()
			base := tree.ArrayBase(sym.Type)
			if total += size; !ok || total > keptBytes || sym.Type.Align > 0 || base.Q&tree.QVolatile != 0 && base.Kind == tree.TRecord {
				return false
			}
			f.names[sym] = "ck" + strconv.Itoa(i) + "_" + sym.CName
			f.where[sym] = "cc_k" + strconv.Itoa(i)
			f.kept = append(f.kept, sym)
			f.keeps[sym] = true
		}
	}
	return true
}

// needs enters a cheap variable and those that it is computed from.
func (f *fission) needs(sym *tree.Symbol, into map[*tree.Symbol]bool) {
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
func (f *fission) computedFrom(sym *tree.Symbol) []*tree.Symbol {
	list, asked := f.froms[sym]
	if !asked {
		tree.WalkInit(sym.Init, func(e *tree.Expr) {
			f.Step()
			if e.Op == tree.OpSym && e.Sym.Kind == tree.SymVar && !e.Sym.Inst && !f.shared[e.Sym] {
				list = append(list, e.Sym)
			}
		})
		f.froms[sym] = list
	}
	return list
}

// closure returns what has to be computed again where some variables are mentioned, in
// the order of the text.
func (f *fission) closure(refs map[*tree.Symbol]bool) []*tree.Symbol {
	need := map[*tree.Symbol]bool{}
	for sym := range refs {
		if f.again[sym] {
			f.needs(sym, need)
		}
	}
	return f.inOrder(need)
}

// inOrder returns the variables of a set in the order of the text.
func (f *fission) inOrder(set map[*tree.Symbol]bool) []*tree.Symbol {
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

// keptSize is the memory that an item needs for what it keeps.
func (f *fission) keptSize() int {
	total := 0
	for _, sym := range f.kept {
		size, _ := sym.Type.Size()
		total += size
	}
	return total
}

// planKernels makes the plans of all kernels that have one. A kernel whose plan takes too
// long has none.
func planKernels(funcs []*tree.Function, m *token.Meter) map[*tree.Function]*fission {
	plans, pure := map[*tree.Function]*fission{}, map[*tree.Function]bool{}
	for _, fn := range funcs {
		if fn.Kernel && fn.Defined {
			var f *fission
			if m.Within(planSteps(fn), func() { f = newFission(fn, m, pure) }) && f != nil {
				plans[fn] = f
			}
		}
	}
	return plans
}

// planSteps is how many steps the plan of a kernel may take. They grow with its text, so
// that the time for a program does too. Kernels of the catalog take a twentieth of it.
func planSteps(fn *tree.Function) int {
	n := 1 << 10
	tree.WalkStmt(fn.Body, func(*tree.Expr) { n++ })
	return n << 5
}

// copied tells whether a kept variable is loaded and stored as a whole, so that the
// compiler can hold it in a register meanwhile. Others are used where they lie.
func (f *fission) copied(s *tree.Symbol) bool {
	switch s.Type.Kind {
	case tree.TScalar, tree.TVector, tree.TPointer:
		return !f.pinned[s] && s.Type.Q&tree.QVolatile == 0
	}
	return false
}
