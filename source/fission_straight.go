package source

import "strconv"

// Straight indices. Programs keep ids in an int or uint and index with sums of them,
// which the language lets wrap at 32 bits: so a C++ compiler cannot know that the
// next item's element is the next in memory, and does not vectorize. Where such a sum
// grows by a constant from one item of a row to the next, the loop over the row takes
// its first value and counts in 64 bits; should the sum wrap within the row, the
// prelude cuts the row there, so that nothing has to be assumed.

// straight is an expression of 32 bits that is used with 64 and goes straight.
type straight struct {
	e    *expr
	step int64
}

// mostStraight bounds what the beginning of a row computes, mostStep how often a row
// may have to be cut.
const mostStraight, mostStep = 24, 1 << 16

// straights finds the straight indices of one region.
type straights struct {
	*fission
	g     *region
	list  []straight
	order []*symbol // the variables that they are computed from, in an order that works
	need  map[*symbol]bool
	steps map[*symbol]stepOf
	wides map[*expr]stepOf // of sums of 64 bits, which wide asks for at every level

	names map[*symbol]string // see hoisted
}

// stepOf says how much something grows per item of a row, modulo 2^32; known is false
// where that differs, or where computing it at the beginning of the row could do harm.
// What does not move is the same for all items in all its bits. What moves has 32 bits
// or more, and of n = 0 only the lower 32 stay.
type stepOf struct {
	n            int32
	known, moves bool
}

// newStraights begins with none.
func (f *fission) newStraights(g *region) *straights {
	return &straights{fission: f, g: g, need: map[*symbol]bool{}, steps: map[*symbol]stepOf{}, wides: map[*expr]stepOf{}}
}

// straightOf returns the straight indices of a region.
func (f *fission) straightOf(g *region) *straights {
	s := f.newStraights(g)
	for _, sym := range g.anew {
		s.value(sym)
	}
	for _, k := range g.list {
		s.read(k)
	}
	return s
}

// read looks through a statement for the places where 32 bits become 64.
func (s *straights) read(k *stmt) {
	if k == nil {
		return
	}
	for _, e := range []*expr{k.e, k.post} {
		walkExpr(e, s.visit)
	}
	for _, sym := range k.syms {
		s.variableStep(sym) // in order: no answer has to ask for many others first
		s.value(sym)
		walkInit(sym.init, s.visit)
	}
	for _, k := range append([]*stmt{k.init, k.body, k.alt}, k.list...) {
		s.read(k)
	}
}

// value is read for what a variable begins with.
func (s *straights) value(sym *symbol) {
	if sym.init != nil && sym.init.value != nil && isWide(sym.typ) {
		s.consider(sym.init.value)
	}
}

func (s *straights) visit(e *expr) {
	s.Step()
	switch {
	case e.op == opIndex:
		s.consider(e.b)
	case e.op == opBinary && (e.typ.isPointer() || isWide(e.typ)):
		s.consider(e.a)
		s.consider(e.b)
	case (e.op == opConv || e.op == opCast) && isWide(e.typ):
		s.consider(e.a)
	}
}

func isWide(t *ctype) bool { return t.isInteger() && kindSize(t.base) == 8 }

// consider enters e if it is straight.
func (s *straights) consider(e *expr) {
	if len(s.list) == mostStraight || !e.typ.is(Int) && !e.typ.is(UInt) {
		return
	}
	step := s.stepOf(e)
	if n := int64(step.n); n != 0 && max(n, -n) <= mostStep {
		s.list = append(s.list, straight{e, n})
		s.needs(e)
	}
}

// needs enters the variables that e is computed from.
func (s *straights) needs(e *expr) {
	walkExpr(e, func(x *expr) {
		s.Step()
		if x.op == opSym && x.sym.kind == symVar && !x.sym.inst && !s.shared[x.sym] && !s.need[x.sym] {
			s.need[x.sym] = true
			s.needs(x.sym.init.value)
			s.order = append(s.order, x.sym)
		}
	})
}

var unknown, still = stepOf{}, stepOf{known: true}

func moving(n int32) stepOf { return stepOf{n, true, true} }

// stepOf is how much e grows per item.
func (s *straights) stepOf(e *expr) stepOf {
	s.Step()
	switch {
	case fold(e).ok:
		return still
	case !e.typ.isInteger():
		return unknown
	case e.op == opSym:
		return s.variableStep(e.sym)
	case e.op == opBuiltin:
		return s.idStep(e)
	}
	if known, asked := s.wides[e]; asked {
		return known
	}
	step := s.operandStep(e)
	if e.op == opBinary && isWide(e.typ) {
		s.wides[e] = step
	}
	return step
}

// operandStep is stepOf for an operator.
func (s *straights) operandStep(e *expr) stepOf {
	var of [3]stepOf
	moves := false
	for i, x := range []*expr{e.a, e.b, e.c} {
		if x == nil {
			continue
		}
		of[i] = s.stepOf(x)
		if !of[i].known {
			return unknown
		}
		moves = moves || of[i].moves
	}
	switch {
	case moves:
		return movingStep(e, of[0].n, of[1].n)
	case harmless(e):
		return still
	}
	return unknown
}

// harmless tells whether e, of operands that do not move, can be computed where no
// item may come to it.
func harmless(e *expr) bool {
	switch e.op {
	case opParen, opConv, opCast, opUnary, opShift, opCompare, opLogic, opCond:
		return true
	case opBinary:
		n := fold(e.b)
		return e.text != "/" && e.text != "%" || n.ok && n.i > 0
	}
	return false
}

// movingStep is for e of operands that grow by a and b. The lower 32 bits of a sum, a
// product with a constant and a change between 32 and 64 bits follow from those of the
// operands; whatever looks at other bits is unknown.
func movingStep(e *expr, a, b int32) stepOf {
	if kindSize(e.typ.base) < 4 {
		return unknown
	}
	switch e.op {
	case opParen, opConv, opCast:
		return moving(a)
	case opUnary:
		switch e.text {
		case "+":
			return moving(a)
		case "-", "~":
			return moving(-a)
		}
	case opShift:
		if n := fold(e.b); e.text == "<<" && n.ok && n.i >= 0 && n.i < 31 {
			return moving(a << n.i)
		}
	case opBinary:
		x, y := fold(e.a), fold(e.b)
		switch {
		case e.text == "+":
			return moving(a + b)
		case e.text == "-":
			return moving(a - b)
		case e.text == "*" && x.ok:
			return moving(int32(x.i) * b)
		case e.text == "*" && y.ok:
			return moving(a * int32(y.i))
		}
	}
	return unknown
}

// idStep is for what the item knows of itself.
func (s *straights) idStep(e *expr) stepOf {
	id, is := s.id(e)
	switch {
	case is && id.dim == 0:
		return moving(1)
	case is || s.fixed(e):
		return still
	}
	return unknown
}

// variableStep is for variables that have one value while an item is in the region,
// which can be computed from the beginning.
func (s *straights) variableStep(sym *symbol) stepOf {
	if known, asked := s.steps[sym]; asked {
		return known
	}
	step := unknown
	s.steps[sym] = step // for what begins with itself
	switch {
	case sym.typ.q&qVolatile != 0 || sym.inst:
	case s.shared[sym] || sym.kind == symParam && len(s.writes[sym]) == 0:
		step = still
	case sym.kind == symVar && len(s.writes[sym]) == 1 && !s.pinned[sym] && sym.init != nil && sym.init.value != nil &&
		sym.typ.align == 0 && (s.cheap(sym) || s.inside(sym)):
		step = s.stepOf(sym.init.value)
		if step.moves && kindSize(sym.typ.base) < 4 {
			step = unknown
		}
	}
	s.steps[sym] = step
	return step
}

// inside tells whether a variable is declared in the region.
func (s *straights) inside(sym *symbol) bool {
	for at := s.writes[sym][0].at; at != nil; at = at.up {
		if s.g.has[at.s] {
			return true
		}
	}
	return s.home[sym] == s.g
}

// hoisted are the names of the variables that straight indices are computed from, at the
// beginning of a run.
func (s *straights) hoisted() map[*symbol]string {
	if len(s.names) != len(s.order) {
		s.names = map[*symbol]string{}
		for i, sym := range s.order {
			s.names[sym] = "cc_h" + strconv.Itoa(i)
		}
	}
	return s.names
}
