package source

import (
	"slices"
	"strconv"
	"strings"
)

// Interchange. A reduction begins at the item's own element and goes on by the number
// of items: for (int k = id; k < n; k += size) s += x[k]. Run to its end item by item,
// such a loop touches memory that lies far apart, while the items side by side would
// read what lies side by side. Where the variable grows by one from item to item (a
// straight value, as in fission_straight.go), and by the same for all in each round, the
// loop is run once for the items of a row: a round is a loop over the items that are
// still in it, a whole range of the row, and a compiler can vectorize that.
//
// The region is cut into strips for it: what stands before the loop, the loop, what comes
// after. A row is done in parts of some items, whose variables, where several
// strips mention them, lie in arrays meanwhile. Each item does all it does in its own
// order, and the order between items is free where no barrier stands, so nothing has to
// be known of the memory that the loop reads and writes; a body that could notice (it
// is atomic, volatile, or prints) is left alone nevertheless, since items might wait for
// each other.
//
// Which items are in a round is found with the condition itself: each part of it is
// true at one end of the range or at both, so it is asked at the ends, and only where
// these differ, between. Where the variable wraps within the range this would not
// hold: then the prelude (cc_rounds) finishes the items one by one.
//
// It pays where the memory that the body touches is consecutive from item to
// item. An index that is not (each item has a row of its own) leaves the loop as it is.

// strip is a part of a region: statements, or a loop that the items go through side by
// side.
type strip struct {
	list   []*stmt
	rounds *rounds
	only   *stmt // an if at the end that all items pass, as the loop over the items knows
	refs   map[*symbol]bool
	writes map[*symbol]bool
	home   map[*symbol]bool // declared here
	vars   []*symbol        // refs in the order of the text
	anew   []*symbol        // what is computed again for it, likewise
}

// rounds is a loop that is interchanged.
type rounds struct {
	loop  *stmt
	k     *symbol
	step  int64   // how much k grows from item to item: 1 or -1
	conds []*expr // all of them have to be true
	signs bool    // one converts k to a type that takes its top bit for something else
	jam   int     // how many rounds are done at once, where nothing ends meanwhile
}

// heldBytes bounds what the items of a part hold together, and mostHeld what one does.
const heldBytes, mostHeld = 16 << 10, 64

// jamPlaces and jamNodes bound what several rounds at once are: the places in memory that
// they go through, and the expressions.
const jamPlaces, jamNodes = 8, 256

// shortStep is a step that is not worth it: the items' elements overlap.
const shortStep = 8

// shortRow is how many items a row has to have: with fewer, each runs its loop to the end.
const shortRow = 8

// interchange cuts a region into strips if that pays, and gives their variables places.
func (f *fission) interchange(g *region) {
	f.guards(g)
	c := &cutting{fission: f, g: g, rows: f.newStraights(g)}
	c.cut(g.list)
	if !c.loops || !c.leaves() || !c.hold() {
		return
	}
	g.strips, g.rows = c.strips, c.rows
	for _, sym := range c.held {
		name := strconv.Itoa(len(f.where))
		f.names[sym], f.where[sym] = "cv"+name+"_"+sym.cname, "cc_v"+name
	}
	g.held = c.held
	for _, sym := range f.inOrder(c.again) {
		if f.names[sym] == "" {
			f.names[sym] = "cb" + strconv.Itoa(len(f.again)) + "_" + sym.cname
			f.again[sym] = true
		}
	}
	for _, sym := range f.closure(g.refs) {
		g.rows.value(sym)
	}
	for _, s := range g.strips {
		for _, k := range s.list {
			g.rows.read(k)
		}
	}
}

// cutting is the work on one region.
type cutting struct {
	*fission
	g      *region
	rows   *straights // what is computed at the beginning of a part
	strips []*strip
	loops  bool
	held   []*symbol
	again  map[*symbol]bool
}

// cut finds the strips of a list.
func (c *cutting) cut(list []*stmt) {
	var now *strip
	for i, s := range list {
		if l := c.rounds(s); l != nil {
			c.loops, now = true, nil
			c.strip(&strip{rounds: l}, s.body) // the rest is computed from what stands still
			continue
		}
		if now == nil {
			now = c.strip(&strip{})
		}
		if i == len(list)-1 && s.kind == stIf && c.needless[s] && !isReturn(s.body) && s.body.kind == stBlock {
			now.only = s
			now.mention(s.e)
			c.cut(s.body.list)
			return
		}
		now.list = append(now.list, s)
		now.read(s)
	}
}

func (c *cutting) strip(s *strip, parts ...*stmt) *strip {
	s.refs, s.writes, s.home = map[*symbol]bool{}, map[*symbol]bool{}, map[*symbol]bool{}
	for _, k := range parts {
		s.read(k)
	}
	c.strips = append(c.strips, s)
	return s
}

// read notes what a statement of the strip mentions.
func (s *strip) read(k *stmt) {
	s.declares(k)
	walkStmt(k, s.note)
}

func (s *strip) declares(k *stmt) {
	if k == nil {
		return
	}
	for _, sym := range k.syms {
		s.home[sym], s.refs[sym] = true, true
	}
	for _, in := range append([]*stmt{k.init, k.body, k.alt}, k.list...) {
		s.declares(in)
	}
}

func (s *strip) mention(e *expr) { walkExpr(e, s.note) }

func (s *strip) note(e *expr) {
	if e.op == opSym && rootVariable(e) != nil {
		s.refs[e.sym] = true
	}
	if isWrite(e) {
		if sym := rootVariable(e.a); sym != nil {
			s.writes[sym] = true
		}
	}
	if e.body != nil {
		s.declares(e.body)
	}
}

// leaves tells whether items leave the kernel only where the strips allow it: in a
// guard, which no item comes to, or behind the last loop; and that none waits in front of it.
func (c *cutting) leaves() bool {
	last := 0
	for i, s := range c.strips {
		if s.rounds != nil {
			last = i
		}
	}
	for _, s := range c.strips[:last] {
		for _, k := range s.list {
			if hasReturn(k) && !(c.needless[k] && isReturn(k.body)) || c.spins(k) {
				return false
			}
		}
	}
	return true
}

// spins tells whether a loop in k may wait for another item: one that has taken a lock,
// and gives it back behind the strip.
func (c *cutting) spins(k *stmt) bool {
	if k == nil {
		return false
	}
	if k.kind == stFor || k.kind == stWhile || k.kind == stDo {
		found := false
		walkStmt(k, func(e *expr) {
			b, _ := lookupBuiltin(strings.TrimPrefix(e.text, "cc_"))
			found = found || e.typ != nil && e.typ.q&qVolatile != 0 || e.op == opBuiltin && b != nil && b.Atomic || e.op == opCall && !c.isPure(e.sym.fn)
		})
		return found
	}
	for _, in := range append([]*stmt{k.body, k.alt}, k.list...) {
		if c.spins(in) {
			return true
		}
	}
	return false
}

// hold finds the variables that several strips mention: those that are cheap to
// compute again, and those that are held.
func (c *cutting) hold() bool {
	c.again = map[*symbol]bool{}
	for _, s := range c.strips[:len(c.strips)-1] {
		for _, k := range s.list {
			for _, sym := range k.syms {
				if c.pinned[sym] && c.where[sym] == "" {
					return false // a pointer outlives the strip
				}
			}
		}
	}
	users, home := map[*symbol]int{}, map[*symbol]bool{}
	several := map[*symbol]bool{} // mentioned by more than one
	for _, s := range c.strips {
		for sym := range s.refs {
			if users[sym]++; users[sym] == 2 {
				several[sym] = true
			}
		}
		for sym := range s.home {
			home[sym] = true
		}
	}
	bytes := 0
	for _, sym := range c.inOrder(several) {
		switch {
		case sym.kind != symParam && !home[sym], c.shared[sym], c.names[sym] != "", sym.kind == symParam && len(c.writes[sym]) == 0:
		case c.cheap(sym):
			c.needs(sym, c.again)
		default:
			t := sym.typ
			size, ok := t.size()
			if bytes += size; !ok || bytes > mostHeld || !c.copied(sym) || t.align > 0 {
				return false
			}
			c.held = append(c.held, sym)
		}
	}
	return true
}

// part is how many items of a row are done together.
func (g *region) part() int {
	bytes := 4
	for _, sym := range g.held {
		n, _ := sym.typ.size()
		bytes += n
	}
	n := 1
	for 2*n*bytes <= heldBytes {
		n *= 2
	}
	return n
}

// rounds recognizes a loop that can be interchanged and should be.
func (c *cutting) rounds(s *stmt) *rounds {
	if s.kind != stFor || s.init == nil || s.init.kind != stDecl || len(s.init.syms) != 1 || s.e == nil || s.post == nil || !c.stays(s) {
		return nil
	}
	k := s.init.syms[0]
	if t := k.typ; t.kind != tScalar || !t.isInteger() || kindSize(t.base) < 4 || t.align > 0 || t.q&qVolatile != 0 ||
		k.init == nil || k.init.value == nil || c.pinned[k] || len(c.writes[k]) != 2 {
		return nil
	}
	if c.writes[k][0].at.s != s || !c.advances(s.post, k) { // the post expression, read before the declaration
		return nil
	}
	first := c.rows.first(k)
	l := &rounds{loop: s, k: k, step: int64(first.n)}
	if !first.known || l.step != 1 && l.step != -1 || !c.conditions(l, s.e) || !c.pays(l) {
		return nil
	}
	c.rows.need[k] = true // its value is named where it is needed
	c.rows.needs(k.init.value)
	c.rows.needs(s.post)
	c.rows.needs(s.e)
	return l
}

// stays tells whether no item leaves a loop but by its condition.
func (c *cutting) stays(loop *stmt) bool {
	if hasReturn(loop) {
		return false
	}
	return !slices.ContainsFunc(c.leaving[loop], func(j jump) bool { return j.at.s.kind != stContinue })
}

// still tells whether e can be computed in front of a part and stays what it is.
func (c *cutting) still(e *expr) bool {
	s := c.rows.stepOf(e)
	return s.known && !s.moves && e.typ.isInteger()
}

// advances tells whether e adds to k what is the same for all items and all rounds.
func (c *cutting) advances(e *expr, k *symbol) bool {
	e = unparen(e)
	is := func(x *expr) bool { x = c.widened(x, k); return x.op == opSym && x.sym == k }
	adds := func(x *expr) bool {
		n := fold(x)
		return c.still(x) && !(n.ok && max(n.i, -n.i) < shortStep)
	}
	if e.op != opAssign || !is(e.a) {
		return false
	}
	switch b := c.widened(e.b, k); {
	case e.text == "+=" || e.text == "-=":
		return adds(e.b)
	case e.text == "=" && b.op == opBinary && b.typ.isInteger() && kindSize(b.typ.base) >= kindSize(k.typ.base):
		return (b.text == "+" || b.text == "-") && is(b.a) && adds(b.b) || b.text == "+" && is(b.b) && adds(b.a)
	}
	return false
}

// widened takes off conversions that keep all bits of k.
func (c *cutting) widened(e *expr, k *symbol) *expr {
	for (e.op == opParen || e.op == opConv || e.op == opCast) && e.typ.isInteger() && kindSize(e.typ.base) >= kindSize(k.typ.base) {
		e = e.a
	}
	return e
}

// conditions takes the condition of a loop apart into comparisons of k.
func (c *cutting) conditions(l *rounds, e *expr) bool {
	e = unparen(e)
	if e.op == opLogic && e.text == "&&" {
		return c.conditions(l, e.a) && c.conditions(l, e.b)
	}
	l.conds = append(l.conds, e)
	if c.still(e) {
		return true
	}
	if e.op != opCompare || mirrored[e.text] == "" || e.text == "==" || !e.a.typ.isInteger() || !e.b.typ.isInteger() {
		return false
	}
	x, u := e.a, e.b
	if c.still(x) {
		x, u = u, x
	}
	signed := isSigned(l.k.typ)
	l.signs = l.signs || isSigned(usual(e.a.typ, e.b.typ)) != signed
	for ; x.op == opParen || x.op == opConv || x.op == opCast; x = x.a {
		if !x.typ.isInteger() || kindSize(x.typ.base) < kindSize(l.k.typ.base) {
			return false
		}
		l.signs = l.signs || isSigned(x.typ) != signed
	}
	return x.op == opSym && x.sym == l.k && c.still(u)
}

// pays tells whether the body of a loop touches memory that is consecutive from
// item to item, and none that is not, and does nothing that others could notice.
func (c *cutting) pays(l *rounds) bool {
	in := c.bodyOf(c.g, l)
	good, bad, nodes := 0, false, 0
	visit := func(e *expr) {
		c.Step()
		nodes++
		switch {
		case e.typ != nil && e.typ.q&qVolatile != 0:
			bad = true
		case e.op == opIndex && rootVariable(e) == nil && e.typ.kind != tArray:
			at := in.place(e)
			if at.n == 1 || at.n == -1 {
				good++
			}
			bad = bad || !at.known && !reads(e.b) || max(at.n, -at.n) > 1
		case e.op == opUnary && e.text == "*", e.op == opStmts, e.op == opCompound, e.op == opBad, e.op == opLoad:
			bad = true
		case e.op == opCall:
			bad = bad || !c.isPure(e.sym.fn)
		case e.op == opBuiltin:
			_, id := c.id(e)
			bad = bad || !id && !alike(e)
		}
	}
	walkStmt(l.loop.body, visit)
	walkExpr(l.loop.e, visit)
	walkExpr(l.loop.post, visit)
	l.jam = 1
	for 2*l.jam*good <= jamPlaces && 2*l.jam*nodes <= jamNodes {
		l.jam *= 2
	}
	return good > 0 && !bad
}

// bodyOf is for the straight indices of a body, with a variable of the loop that goes
// straight.
func (f *fission) bodyOf(g *region, l *rounds) *straights {
	s := f.newStraights(g)
	s.need[l.k], s.steps[l.k] = true, moving(int32(l.step))
	return s
}

// place is how many elements the place of e, or what e points to, moves per item.
func (s *straights) place(e *expr) stepOf {
	switch e.op {
	case opParen, opDecay:
		return s.place(e.a)
	case opIndex, opBinary:
		if e.op == opBinary && (e.text != "+" || !e.a.typ.isPointer()) {
			return unknown
		}
		a, b := s.place(e.a), s.stepOf(e.b)
		if !a.known || !b.known || e.typ.kind == tArray && b.n != 0 {
			return unknown
		}
		return stepOf{n: a.n + b.n, known: true}
	case opSym:
		sym := e.sym
		switch {
		case sym.inst || s.shared[sym] || sym.kind == symParam && len(s.writes[sym]) == 0:
			return still
		case sym.typ.isPointer() && len(s.writes[sym]) == 1 && !s.pinned[sym] && sym.init != nil && sym.init.value != nil && s.inside(sym):
			return s.place(sym.init.value)
		}
	}
	return unknown
}

// first is how much the value that a variable begins with grows from item to item, in
// all its bits as long as those of 32 bits in it do not wrap.
func (s *straights) first(k *symbol) stepOf {
	if kindSize(k.typ.base) == 4 {
		return s.stepOf(k.init.value)
	}
	return s.wide(k.init.value)
}

// wide is step for values of 64 bits.
func (s *straights) wide(e *expr) stepOf {
	step := s.stepOf(e)
	if !step.known || !step.moves {
		return step
	}
	if !isWide(e.typ) {
		n := len(s.list)
		if s.consider(e); len(s.list) == n {
			return unknown
		}
		return step
	}
	switch e.op {
	case opParen, opConv, opCast:
		return s.wide(e.a)
	case opSym:
		if isWide(e.sym.typ) {
			return s.wide(e.sym.init.value)
		}
	case opBuiltin:
		return step
	case opBinary:
		a, b := s.wide(e.a), s.wide(e.b)
		if a.known && b.known && (e.text == "+" || e.text == "-") {
			return step
		}
	}
	return unknown
}

// reads tells whether memory decides about e.
func reads(e *expr) bool {
	found := false
	walkExpr(e, func(x *expr) { found = found || x.op == opIndex && rootVariable(x) == nil })
	return found
}

// isSigned is for integers.
func isSigned(t *ctype) bool { return signedOf(t.base) == t.base }
