package loops

import (
	"slices"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/builtins"
	"github.com/concord-compute/concord/source/internal/tree"
)

// Interchange. In a typical reduction each item begins at its own element and advances by the
// number of items: for (int k = id; k < n; k += size) s += x[k]. If one item after the other runs
// this loop to its end, successive accesses are far apart in memory, although neighbouring items
// read neighbouring elements. If the variable grows by one from item to item (a straight value, see
// straight.go), and in each round by the same amount for all items, the loop is interchanged with
// the loop over the items of a row: a round is then a loop over the items that are still in the
// loop, which are a contiguous range of the row, and the compiler can vectorize it.
//
// For this the region is cut into strips: the statements before the loop, the loop, and the
// statements after it. A row is processed in parts of some items; variables that several strips
// mention are kept in arrays with an element per item of the part. The order of operations within
// each item stays the same, and the order between items is free where there is no barrier, so
// nothing has to be known about the memory that the loop reads and writes. Loops whose body could
// observe the order (it has atomic or volatile accesses, or prints) are not interchanged, since
// their items might wait for each other.
//
// The items of a round are found by evaluating the condition: each part of it is true at one end of
// the range or at both, so it is evaluated at the two ends, and only if the results differ, in
// between. This would be wrong if the variable wrapped within the range; in that case the prelude
// (cc_rounds) finishes the items one by one.
//
// The interchange is profitable if the memory that the body accesses is consecutive from item to
// item. A loop with any other index (such as one row per item) is not interchanged.

// Strip is a part of a region: statements, or an interchanged loop.
type Strip struct {
	List   []*tree.Stmt
	Rounds *Rounds
	// an if at the end whose condition is true for all items because of the bounds of the loop over the items
	Only   *tree.Stmt
	Refs   map[*tree.Symbol]bool
	Writes map[*tree.Symbol]bool
	Home   map[*tree.Symbol]bool // variables declared here
	Vars   []*tree.Symbol        // Refs in the order of the text
	Anew   []*tree.Symbol        // variables that are computed again for it, also in the order of the text
}

// Rounds is a loop that is interchanged.
type Rounds struct {
	Loop  *tree.Stmt
	K     *tree.Symbol
	Step  int64        // difference of K between an item and the next: 1 or -1
	Conds []*tree.Expr // all of them have to be true
	Signs bool         // one of them converts K between signed and unsigned
	Jam   int          // number of rounds that are executed together while no item leaves the loop
}

// heldBytes is the limit for the bytes that all items of a part keep in arrays, and mostHeld the
// limit per item.
const heldBytes, mostHeld = 16 << 10, 64

// jamPlaces and jamNodes limit how many rounds are executed together: by the number of memory
// streams they access, and by the number of expressions.
const jamPlaces, jamNodes = 8, 256

// shortStep is the step below which an interchange is not profitable, because the items' elements
// overlap.
const shortStep = 8

// ShortRow is the smallest number of items of a row for an interchange: with fewer, each item runs
// its loop to the end.
const ShortRow = 8

// interchange cuts a region into strips if that is profitable, and assigns arrays to variables that
// several strips mention.
func (f *Plan) interchange(g *Region) {
	f.Guards(g)
	c := &cutting{Plan: f, g: g, rows: f.newStraights(g)}
	c.cut(g.List)
	if !c.loops || !c.leaves() || !c.hold() {
		return
	}
	g.Strips, g.Rows = c.strips, c.rows
	for _, sym := range c.held {
		name := strconv.Itoa(len(f.Where))
		f.Names[sym], f.Where[sym] = "cv"+name+"_"+sym.CName, "cc_v"+name
	}
	g.Held = c.held
	for _, sym := range f.InOrder(c.again) {
		if f.Names[sym] == "" {
			f.Names[sym] = "cb" + strconv.Itoa(len(f.again)) + "_" + sym.CName
			f.again[sym] = true
		}
	}
	for _, sym := range f.closure(g.refs) {
		g.Rows.Value(sym)
	}
	for _, s := range g.Strips {
		for _, k := range s.List {
			g.Rows.Read(k)
		}
	}
}

// cutting is the state of cutting one region.
type cutting struct {
	*Plan
	g      *Region
	rows   *Straights // values that are computed at the beginning of a part
	strips []*Strip
	loops  bool
	held   []*tree.Symbol
	again  map[*tree.Symbol]bool
}

// cut finds the strips of a list.
func (c *cutting) cut(list []*tree.Stmt) {
	var now *Strip
	for i, s := range list {
		if l := c.rounds(s); l != nil {
			c.loops, now = true, nil
			c.strip(&Strip{Rounds: l}, s.Body) // everything else is computed from values that do not change in the loop
			continue
		}
		if now == nil {
			now = c.strip(&Strip{})
		}
		if i == len(list)-1 && s.Kind == tree.StIf && c.Needless[s] && !IsReturn(s.Body) && s.Body.Kind == tree.StBlock {
			now.Only = s
			now.mention(s.E)
			c.cut(s.Body.List)
			return
		}
		now.List = append(now.List, s)
		now.read(s)
	}
}

func (c *cutting) strip(s *Strip, parts ...*tree.Stmt) *Strip {
	s.Refs, s.Writes, s.Home = map[*tree.Symbol]bool{}, map[*tree.Symbol]bool{}, map[*tree.Symbol]bool{}
	for _, k := range parts {
		s.read(k)
	}
	c.strips = append(c.strips, s)
	return s
}

// read records the variables that a statement of the strip mentions.
func (s *Strip) read(k *tree.Stmt) {
	s.declares(k)
	tree.WalkStmt(k, s.note)
}

func (s *Strip) declares(k *tree.Stmt) {
	if k == nil {
		return
	}
	for _, sym := range k.Syms {
		s.Home[sym], s.Refs[sym] = true, true
	}
	for _, in := range append([]*tree.Stmt{k.Init, k.Body, k.Alt}, k.List...) {
		s.declares(in)
	}
}

func (s *Strip) mention(e *tree.Expr) { tree.WalkExpr(e, s.note) }

func (s *Strip) note(e *tree.Expr) {
	if e.Op == tree.OpSym && tree.RootVariable(e) != nil {
		s.Refs[e.Sym] = true
	}
	if isWrite(e) {
		if sym := tree.RootVariable(e.A); sym != nil {
			s.Writes[sym] = true
		}
	}
	if e.Body != nil {
		s.declares(e.Body)
	}
}

// leaves reports whether items leave the kernel only where strips allow it: in a guard, which the
// loop bounds already exclude, or after the last loop; and whether no item may wait for another
// before that loop.
func (c *cutting) leaves() bool {
	last := 0
	for i, s := range c.strips {
		if s.Rounds != nil {
			last = i
		}
	}
	for _, s := range c.strips[:last] {
		for _, k := range s.List {
			if hasReturn(k) && !(c.Needless[k] && IsReturn(k.Body)) || c.spins(k) {
				return false
			}
		}
	}
	return true
}

// spins reports whether a loop in k may wait for another item, for example one that has taken a
// lock and releases it only after the strip.
func (c *cutting) spins(k *tree.Stmt) bool {
	if k == nil {
		return false
	}
	if k.Kind == tree.StFor || k.Kind == tree.StWhile || k.Kind == tree.StDo {
		found := false
		tree.WalkStmt(k, func(e *tree.Expr) {
			b, _ := builtins.Lookup(strings.TrimPrefix(e.Text, "cc_"))
			found = found || e.Type != nil && e.Type.Q&tree.QVolatile != 0 || e.Op == tree.OpBuiltin && b != nil && b.Atomic ||
				e.Op == tree.OpCall && !c.isPure(e.Sym.Fn)
		})
		return found
	}
	for _, in := range append([]*tree.Stmt{k.Body, k.Alt}, k.List...) {
		if c.spins(in) {
			return true
		}
	}
	return false
}

// hold finds the variables that several strips mention: those that are cheap to
// compute again, and those that are held.
func (c *cutting) hold() bool {
	c.again = map[*tree.Symbol]bool{}
	for _, s := range c.strips[:len(c.strips)-1] {
		for _, k := range s.List {
			for _, sym := range k.Syms {
				if c.pinned[sym] && c.Where[sym] == "" {
					return false // a pointer is used after the strip
				}
			}
		}
	}
	users, home := map[*tree.Symbol]int{}, map[*tree.Symbol]bool{}
	several := map[*tree.Symbol]bool{} // mentioned by more than one
	for _, s := range c.strips {
		for sym := range s.Refs {
			if users[sym]++; users[sym] == 2 {
				several[sym] = true
			}
		}
		for sym := range s.Home {
			home[sym] = true
		}
	}
	bytes := 0
	for _, sym := range c.InOrder(several) {
		switch {
		case sym.Kind != tree.SymParam && !home[sym], c.Shared[sym], c.Names[sym] != "", sym.Kind == tree.SymParam &&
			len(c.Writes[sym]) == 0:
		case c.cheap(sym):
			c.Needs(sym, c.again)
		default:
			t := sym.Type
			size, ok := t.Size()
			if bytes += size; !ok || bytes > mostHeld || !c.Copied(sym) || t.Align > 0 {
				return false
			}
			c.held = append(c.held, sym)
		}
	}
	return true
}

// Part returns the number of items of a row that are processed together.
func (g *Region) Part() int {
	bytes := 4
	for _, sym := range g.Held {
		n, _ := sym.Type.Size()
		bytes += n
	}
	n := 1
	for 2*n*bytes <= heldBytes {
		n *= 2
	}
	return n
}

// rounds returns the interchanged form of a loop, or nil if an interchange is not possible or not
// profitable.
func (c *cutting) rounds(s *tree.Stmt) *Rounds {
	if s.Kind != tree.StFor || s.Init == nil || s.Init.Kind != tree.StDecl || len(s.Init.Syms) != 1 || s.E == nil ||
		s.Post == nil || !c.stays(s) {
		return nil
	}
	k := s.Init.Syms[0]
	if t := k.Type; t.Kind != tree.TScalar || !t.IsInteger() || tree.KindSize(t.Base) < 4 || t.Align > 0 ||
		t.Q&tree.QVolatile != 0 ||
		k.Init == nil || k.Init.Value == nil || c.pinned[k] || len(c.Writes[k]) != 2 {
		return nil
	}
	if c.Writes[k][0].at.s != s || !c.advances(s.Post, k) { // the post expression, read before the declaration
		return nil
	}
	first := c.rows.first(k)
	l := &Rounds{Loop: s, K: k, Step: int64(first.n)}
	if !first.known || l.Step != 1 && l.Step != -1 || !c.conditions(l, s.E) || !c.pays(l) {
		return nil
	}
	c.rows.need[k] = true // its value has a name where it is needed
	c.rows.needs(k.Init.Value)
	c.rows.needs(s.Post)
	c.rows.needs(s.E)
	return l
}

// stays reports whether items leave a loop only by its condition.
func (c *cutting) stays(loop *tree.Stmt) bool {
	return !hasReturn(loop) &&
		!slices.ContainsFunc(c.leaving[loop], func(j jump) bool { return j.at.s.Kind != tree.StContinue })
}

// still reports whether e can be computed before a part and does not change during it.
func (c *cutting) still(e *tree.Expr) bool {
	s := c.rows.stepOf(e)
	return s.known && !s.moves && e.Type.IsInteger()
}

// advances reports whether e adds a value to k that is the same for all items and all rounds.
func (c *cutting) advances(e *tree.Expr, k *tree.Symbol) bool {
	e = tree.Unparen(e)
	is := func(x *tree.Expr) bool { x = c.widened(x, k); return x.Op == tree.OpSym && x.Sym == k }
	adds := func(x *tree.Expr) bool {
		n := tree.Fold(x)
		return c.still(x) && !(n.OK && max(n.Int(), -n.Int()) < shortStep)
	}
	if e.Op != tree.OpAssign || !is(e.A) {
		return false
	}
	switch b := c.widened(e.B, k); {
	case e.Text == "+=" || e.Text == "-=":
		return adds(e.B)
	case e.Text == "=" && b.Op == tree.OpBinary && b.Type.IsInteger() &&
		tree.KindSize(b.Type.Base) >= tree.KindSize(k.Type.Base):
		return (b.Text == "+" || b.Text == "-") && is(b.A) && adds(b.B) || b.Text == "+" && is(b.B) && adds(b.A)
	}
	return false
}

// widened removes conversions that keep all bits of k.
func (c *cutting) widened(e *tree.Expr, k *tree.Symbol) *tree.Expr {
	for (e.Op == tree.OpParen || e.Op == tree.OpConv || e.Op == tree.OpCast) && e.Type.IsInteger() &&
		tree.KindSize(e.Type.Base) >= tree.KindSize(k.Type.Base) {
		e = e.A
	}
	return e
}

// conditions splits the condition of a loop into comparisons of k.
func (c *cutting) conditions(l *Rounds, e *tree.Expr) bool {
	e = tree.Unparen(e)
	if e.Op == tree.OpLogic && e.Text == "&&" {
		return c.conditions(l, e.A) && c.conditions(l, e.B)
	}
	l.Conds = append(l.Conds, e)
	if c.still(e) {
		return true
	}
	if e.Op != tree.OpCompare || mirrored[e.Text] == "" || e.Text == "==" || !e.A.Type.IsInteger() ||
		!e.B.Type.IsInteger() {
		return false
	}
	x, u := e.A, e.B
	if c.still(x) {
		x, u = u, x
	}
	signed := isSigned(l.K.Type)
	l.Signs = l.Signs || isSigned(tree.Usual(e.A.Type, e.B.Type)) != signed
	for ; x.Op == tree.OpParen || x.Op == tree.OpConv || x.Op == tree.OpCast; x = x.A {
		if !x.Type.IsInteger() || tree.KindSize(x.Type.Base) < tree.KindSize(l.K.Type.Base) {
			return false
		}
		l.Signs = l.Signs || isSigned(x.Type) != signed
	}
	return x.Op == tree.OpSym && x.Sym == l.K && c.still(u)
}

// pays reports whether all memory that the body of a loop accesses is consecutive from item to
// item, and whether the body has no effect through which items could observe their order.
func (c *cutting) pays(l *Rounds) bool {
	in := c.BodyOf(c.g, l)
	good, bad, nodes := 0, false, 0
	visit := func(e *tree.Expr) {
		c.Step()
		nodes++
		switch {
		case e.Type != nil && e.Type.Q&tree.QVolatile != 0:
			bad = true
		case e.Op == tree.OpIndex && tree.RootVariable(e) == nil && e.Type.Kind != tree.TArray:
			at := in.place(e)
			if at.n == 1 || at.n == -1 {
				good++
			}
			bad = bad || !at.known && !reads(e.B) || max(at.n, -at.n) > 1
		case e.Op == tree.OpUnary && e.Text == "*", e.Op == tree.OpStmts, e.Op == tree.OpCompound, e.Op == tree.OpBad,
			e.Op == tree.OpLoad:
			bad = true
		case e.Op == tree.OpCall:
			bad = bad || !c.isPure(e.Sym.Fn)
		case e.Op == tree.OpBuiltin:
			_, id := c.id(e)
			bad = bad || !id && !alike(e)
		}
	}
	tree.WalkStmt(l.Loop.Body, visit)
	tree.WalkExpr(l.Loop.E, visit)
	tree.WalkExpr(l.Loop.Post, visit)
	l.Jam = 1
	for 2*l.Jam*good <= jamPlaces && 2*l.Jam*nodes <= jamNodes {
		l.Jam *= 2
	}
	return good > 0 && !bad
}

// BodyOf returns the straight indices of a loop's body, in which the loop's variable is a straight
// value.
func (f *Plan) BodyOf(g *Region, l *Rounds) *Straights {
	s := f.newStraights(g)
	s.need[l.K], s.steps[l.K] = true, moving(int32(l.Step))
	return s
}

// place returns the number of elements by which the address of e, or the address that e holds,
// grows per item.
func (s *Straights) place(e *tree.Expr) stepOf {
	switch e.Op {
	case tree.OpParen, tree.OpDecay:
		return s.place(e.A)
	case tree.OpIndex, tree.OpBinary:
		if e.Op == tree.OpBinary && (e.Text != "+" || !e.A.Type.IsPointer()) {
			return unknown
		}
		a, b := s.place(e.A), s.stepOf(e.B)
		if !a.known || !b.known || e.Type.Kind == tree.TArray && b.n != 0 {
			return unknown
		}
		return stepOf{n: a.n + b.n, known: true}
	case tree.OpSym:
		sym := e.Sym
		switch {
		case sym.Inst || s.Shared[sym] || sym.Kind == tree.SymParam && len(s.Writes[sym]) == 0:
			return still
		case sym.Type.IsPointer() && len(s.Writes[sym]) == 1 && !s.pinned[sym] && sym.Init != nil && sym.Init.Value != nil &&
			s.inside(sym):
			return s.place(sym.Init.Value)
		}
	}
	return unknown
}

// first returns by how much the initial value of a variable grows from item to item. This holds for
// all its bits as long as no 32-bit operand wraps.
func (s *Straights) first(k *tree.Symbol) stepOf {
	if tree.KindSize(k.Type.Base) == 4 {
		return s.stepOf(k.Init.Value)
	}
	return s.wide(k.Init.Value)
}

// wide is step for values of 64 bits.
func (s *Straights) wide(e *tree.Expr) stepOf {
	step := s.stepOf(e)
	if !step.known || !step.moves {
		return step
	}
	if !IsWide(e.Type) {
		n := len(s.List)
		if s.consider(e); len(s.List) == n {
			return unknown
		}
		return step
	}
	switch e.Op {
	case tree.OpParen, tree.OpConv, tree.OpCast:
		return s.wide(e.A)
	case tree.OpSym:
		if IsWide(e.Sym.Type) {
			return s.wide(e.Sym.Init.Value)
		}
	case tree.OpBuiltin:
		return step
	case tree.OpBinary:
		a, b := s.wide(e.A), s.wide(e.B)
		if a.known && b.known && (e.Text == "+" || e.Text == "-") {
			return step
		}
	}
	return unknown
}

// reads reports whether e depends on the contents of memory.
func reads(e *tree.Expr) bool {
	found := false
	tree.WalkExpr(e, func(x *tree.Expr) { found = found || x.Op == tree.OpIndex && tree.RootVariable(x) == nil })
	return found
}

// isSigned reports whether an integer type is signed.
func isSigned(t *tree.Type) bool { return tree.SignedOf(t.Base) == t.Base }
