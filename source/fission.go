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
)

// keptBytes is the most that an item may keep from one piece to the next. More is
// left to fibers, whose stacks have a limit and a guard.
const keptBytes = 16 << 10

// fission is the plan for one kernel.
type fission struct {
	fn     *function
	pieces map[*stmt][]piece // what a statement that is done once for the group is made of
	kept   []*symbol         // variables of items that outlive a piece, in the order of the text
	keeps  map[*symbol]bool  // the same
	again  map[*symbol]bool  // those that each piece computes for itself
	names  map[*symbol]string
	where  map[*symbol]string // the array that holds a kept variable of all items

	flow                         // what the text does, see fission_flow.go
	group    map[*stmt]bool      // statements that are done once for the group
	taken    []*place            // while marking: statements of the group whose needs are not known yet
	sharing  []*symbol           // while marking: and variables
	shared   map[*symbol]bool    // variables that there is one of for the group
	home     map[*symbol]*region // where a variable of the items is declared
	users    map[*symbol]int     // how many regions mention it
	loops    map[*symbol][]*stmt // the loops of the group around its declaration
	regions  []*region
	cheaps   map[*symbol]bool      // what cheap has answered
	froms    map[*symbol][]*symbol // likewise
	ids      map[*symbol]idAnswer
	steadies map[steadyIn]bool
	changes  map[*symbol][]*stmt // where a variable of the group is changed after its declaration
	around   []*stmt             // while planning: the loops of the group around
	needless map[*stmt]bool      // conditions that the loop over the items has seen to
	returned bool                // while planning: some items may have left the kernel
	failed   bool
}

// piece is a part of a plan, in the order of execution: statements for every item,
// or one statement for the group, or the declaration of a variable of the group.
type piece struct {
	items *region
	once  *stmt
	sym   *symbol
	fence bool // a barrier was here
}

// region is a run of statements that one item goes through without meeting another.
type region struct {
	list   []*stmt
	has    map[*stmt]bool // the same
	refs   map[*symbol]bool
	writes map[*symbol]bool
	vars   []*symbol // refs in the order of the text
	anew   []*symbol // what is computed again for it, likewise

	strips []*strip   // see fission_interchange.go; none: it is one loop over the items
	rows   *straights // what they compute at the beginning of a part of a row
	held   []*symbol  // variables that several of them mention
}

// newFission returns the plan for a kernel, nil if it has to have fibers.
func newFission(fn *function, m *token.Meter, pure map[*function]bool) *fission {
	f := &fission{
		flow: flow{Meter: m, pure: pure}, again: map[*symbol]bool{}, keeps: map[*symbol]bool{}, ids: map[*symbol]idAnswer{}, froms: map[*symbol][]*symbol{},
		steadies: map[steadyIn]bool{}, changes: map[*symbol][]*stmt{},
		fn: fn, pieces: map[*stmt][]piece{}, names: map[*symbol]string{}, where: map[*symbol]string{},
		group: map[*stmt]bool{}, shared: map[*symbol]bool{}, home: map[*symbol]*region{},
		users: map[*symbol]int{}, loops: map[*symbol][]*stmt{}, needless: map[*stmt]bool{},
		cheaps: map[*symbol]bool{},
	}
	if fn.split || len(fn.temps) > 0 || hasBarrierCall(fn) || !f.read(fn) {
		return nil
	}
	f.mark()
	if !f.sound() {
		return nil
	}
	var first *region
	for _, p := range fn.params {
		if len(f.writes[p]) > 0 && !f.shared[p] {
			first = f.add(first, &stmt{kind: stDecl, pos: fn.pos, syms: []*symbol{p}})
		}
	}
	f.plan(fn.body, first)
	var own []piece
	for _, p := range slices.Backward(fn.params) {
		if len(f.writes[p]) > 0 && f.shared[p] {
			own = append(own, piece{sym: p})
		}
	}
	f.pieces[fn.body] = append(own, f.pieces[fn.body]...)
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
func hasBarrierCall(fn *function) bool {
	for _, c := range fn.calls {
		if c.to.barrier {
			return true
		}
	}
	return false
}

// sound tells whether what was marked can be done once: in statements of a kind
// that a plan has, decided by what is alike for all items.
func (f *fission) sound() bool {
	for sym := range f.shared {
		if f.varies[sym] || !f.declared[sym] && sym.kind != symParam || sym.typ.align > 0 {
			return false
		}
	}
	for s := range f.group {
		switch s.kind {
		case stBlock, stDecl, stBreak, stContinue, stReturn:
		case stIf, stWhile, stDo:
			if !f.uniform(s.e) {
				return false
			}
		case stFor:
			if s.e != nil && !f.uniform(s.e) || s.post != nil && !f.once(s.post) {
				return false
			}
		case stExpr:
			if !isBarrier(s.e) && !f.once(s.e) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// once tells whether e does nothing but assign variables of the group.
func (f *fission) once(e *expr) bool {
	e = unparen(e)
	if e.op == opComma {
		return f.once(e.a) && f.once(e.b)
	}
	return isWrite(e) && unparen(e.a).op == opSym && f.shared[unparen(e.a).sym]
}

// plan cuts the statements of body, a block or a single statement. The first region
// may have been begun.
func (f *fission) plan(body *stmt, now *region) {
	var out []piece
	if now != nil {
		out = append(out, piece{items: now})
	}
	list := []*stmt{body}
	if body.kind == stBlock {
		list = body.list
	}
	item := func(s *stmt) {
		begun := now
		if now = f.add(now, s); begun == nil {
			out = append(out, piece{items: now})
		}
	}
	// put places what is done once. What the region in hand does not mention goes
	// before it, so that the region can go on.
	put := func(p piece, sym *symbol) {
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
		case s.kind == stDecl:
			for _, sym := range s.syms {
				if f.shared[sym] {
					put(piece{sym: sym}, sym)
				} else {
					item(&stmt{kind: stDecl, pos: s.pos, syms: []*symbol{sym}})
				}
			}
		case s.kind == stExpr && isBarrier(s.e):
			put(piece{once: s, fence: true}, nil)
		case s.kind == stExpr && isWrite(unparen(s.e)):
			put(piece{once: s}, unparen(unparen(s.e).a).sym)
		default:
			put(piece{once: s}, nil)
			f.inside(s)
		}
	}
	f.pieces[body] = out
}

// inside plans the parts of a statement that is done once.
func (f *fission) inside(s *stmt) {
	switch s.kind {
	case stBlock:
		f.plan(s, nil)
	case stIf:
		f.plan(s.body, nil)
		switch {
		case s.alt == nil:
		case s.alt.kind == stIf && f.group[s.alt]:
			f.inside(s.alt)
		default:
			f.plan(s.alt, nil)
		}
	case stFor, stWhile, stDo:
		around := f.around
		f.around = append(around[:len(around):len(around)], s) // variables keep what it was
		f.plan(s.body, nil)
		f.around = around
	}
}

// add puts a statement into a region, or into a new one.
func (f *fission) add(r *region, s *stmt) *region {
	if r == nil {
		f.failed = f.failed || f.returned
		r = &region{has: map[*stmt]bool{}, refs: map[*symbol]bool{}, writes: map[*symbol]bool{}}
		f.regions = append(f.regions, r)
	}
	r.list = append(r.list, s)
	r.has[s] = true
	if s.kind == stDecl {
		for _, sym := range s.syms {
			f.home[sym] = r
			f.loops[sym] = f.around
			f.mention(r, sym)
		}
	}
	walkStmt(s, func(e *expr) {
		f.Step()
		if e.op == opSym && rootVariable(e) != nil {
			f.mention(r, e.sym)
		}
		if isWrite(e) || e.op == opUnary && e.text == "&" {
			if sym := rootVariable(e.a); sym != nil {
				r.writes[sym] = true
			}
		}
	})
	f.returned = f.returned || hasReturn(s)
	return r
}

func (f *fission) mention(r *region, sym *symbol) {
	if !r.refs[sym] {
		r.refs[sym] = true
		f.users[sym]++
	}
}

func hasReturn(s *stmt) bool {
	if s == nil {
		return false
	}
	if s.kind == stReturn || hasReturn(s.init) || hasReturn(s.body) || hasReturn(s.alt) {
		return true
	}
	for _, k := range s.list {
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
	again := map[*symbol]bool{}
	for _, sym := range f.order { // in order: no answer has to ask for many others first
		if f.cheap(sym) && f.home[sym] != nil && !f.shared[sym] && f.users[sym] > 1 {
			f.needs(sym, again)
		}
	}
	for i, sym := range f.order {
		switch {
		case sym.kind == symParam && len(f.writes[sym]) == 0: // it stays a parameter
		case f.shared[sym]:
			f.names[sym] = "cg" + strconv.Itoa(i) + "_" + sym.cname
		case again[sym]:
			f.names[sym] = "ca" + strconv.Itoa(i) + "_" + sym.cname
			f.again[sym] = true
		case f.home[sym] == nil || f.users[sym] == 1 && !(f.pinned[sym] && len(f.regions) > 1): // or a pointer outlives the piece
		default:
			size, ok := sym.typ.size()
			base := arrayBase(sym.typ)
			if total += size; !ok || total > keptBytes || sym.typ.align > 0 || base.q&qVolatile != 0 && base.kind == tRecord {
				return false
			}
			f.names[sym] = "ck" + strconv.Itoa(i) + "_" + sym.cname
			f.where[sym] = "cc_k" + strconv.Itoa(i)
			f.kept = append(f.kept, sym)
			f.keeps[sym] = true
		}
	}
	return true
}

// needs enters a cheap variable and those that it is computed from.
func (f *fission) needs(sym *symbol, into map[*symbol]bool) {
	for list := []*symbol{sym}; len(list) > 0; {
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
func (f *fission) computedFrom(sym *symbol) []*symbol {
	list, asked := f.froms[sym]
	if !asked {
		walkInit(sym.init, func(e *expr) {
			f.Step()
			if e.op == opSym && e.sym.kind == symVar && !e.sym.inst && !f.shared[e.sym] {
				list = append(list, e.sym)
			}
		})
		f.froms[sym] = list
	}
	return list
}

// closure returns what has to be computed again where some variables are mentioned, in
// the order of the text.
func (f *fission) closure(refs map[*symbol]bool) []*symbol {
	need := map[*symbol]bool{}
	for sym := range refs {
		if f.again[sym] {
			f.needs(sym, need)
		}
	}
	return f.inOrder(need)
}

// inOrder returns the variables of a set in the order of the text.
func (f *fission) inOrder(set map[*symbol]bool) []*symbol {
	list := make([]*symbol, 0, len(set))
	for sym := range set {
		f.Step()
		if _, ok := f.index[sym]; ok {
			list = append(list, sym)
		}
	}
	slices.SortFunc(list, func(a, b *symbol) int { return f.index[a] - f.index[b] })
	return list
}

// keptSize is the memory that an item needs for what it keeps.
func (f *fission) keptSize() int {
	total := 0
	for _, sym := range f.kept {
		size, _ := sym.typ.size()
		total += size
	}
	return total
}

// planKernels makes the plans of all kernels that have one. A kernel whose plan takes too
// long has none.
func planKernels(funcs []*function, m *token.Meter) map[*function]*fission {
	plans, pure := map[*function]*fission{}, map[*function]bool{}
	for _, fn := range funcs {
		if fn.kernel && fn.defined {
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
func planSteps(fn *function) int {
	n := 1 << 10
	walkStmt(fn.body, func(*expr) { n++ })
	return n << 5
}

// copied tells whether a kept variable is loaded and stored as a whole, so that the
// compiler can hold it in a register meanwhile. Others are used where they lie.
func (f *fission) copied(s *symbol) bool {
	switch s.typ.kind {
	case tScalar, tVector, tPointer:
		return !f.pinned[s] && s.typ.q&qVolatile == 0
	}
	return false
}
