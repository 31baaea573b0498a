package source

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
}

// stepOf says how much something grows per item of a row; known is false where that
// differs, or where computing it at the beginning of the row could do harm.
type stepOf struct {
	n     int64
	known bool
}

// straightOf returns the straight indices of a region that also computes some
// variables again.
func (f *fission) straightOf(g *region, again map[*symbol]bool) *straights {
	s := &straights{fission: f, g: g, need: map[*symbol]bool{}, steps: map[*symbol]stepOf{}}
	for _, sym := range f.order {
		if again[sym] {
			s.value(sym)
		}
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
	if step := s.step(e); step.known && step.n != 0 && max(step.n, -step.n) <= mostStep {
		s.list = append(s.list, straight{e, step.n})
		s.needs(e)
	}
}

// needs enters the variables that e is computed from.
func (s *straights) needs(e *expr) {
	walkExpr(e, func(x *expr) {
		if x.op == opSym && x.sym.kind == symVar && !x.sym.inst && !s.shared[x.sym] && !s.need[x.sym] {
			s.need[x.sym] = true
			s.needs(x.sym.init.value)
			s.order = append(s.order, x.sym)
		}
	})
}

var unknown = stepOf{}

// step is how much e grows per item. Modulo 2^32 sums, products with constants and
// changes between 32 and 64 bits keep that; everything else only passes on what does
// not change.
func (s *straights) step(e *expr) stepOf {
	if c := fold(e); c.ok {
		return stepOf{0, true}
	}
	if !e.typ.isInteger() {
		return unknown
	}
	whole := kindSize(e.typ.base) >= 4 && !e.typ.is(Bool)
	if e.op == opSym {
		return s.variableStep(e.sym)
	}
	if e.op == opBuiltin {
		return s.idStep(e)
	}
	var a, b stepOf
	for i, x := range []*expr{e.a, e.b, e.c} {
		if x == nil {
			continue
		}
		step := s.step(x)
		if !step.known {
			return unknown
		}
		if i == 0 {
			a = step
		} else if b = step; i == 2 && step.n != 0 {
			return unknown
		}
	}
	steady := a.n == 0 && b.n == 0
	switch e.op {
	case opParen:
		return a
	case opConv, opCast:
		if whole && kindSize(e.a.typ.base) >= 4 || steady {
			return a
		}
	case opUnary:
		switch e.text {
		case "+":
			return a
		case "-", "~":
			return stepOf{-a.n, true}
		case "!":
			return stepOf{0, steady}
		}
	case opBinary:
		return s.binaryStep(e, a, b)
	case opShift:
		if n := fold(e.b); steady || e.text == "<<" && n.ok && n.i >= 0 && n.i < 31 {
			return stepOf{a.n << max(n.i, 0), true}
		}
	case opCompare, opLogic, opCond:
		return stepOf{0, steady}
	}
	return unknown
}

func (s *straights) binaryStep(e *expr, a, b stepOf) stepOf {
	x, y := fold(e.a), fold(e.b)
	const most = 1 << 30 // no product or sum of two overflows
	switch {
	case e.text == "/" || e.text == "%": // computed where no item may come to it
		return stepOf{0, a.n == 0 && y.ok && y.i > 0}
	case a.n == 0 && b.n == 0:
		return stepOf{0, true}
	case max(a.n, -a.n, b.n, -b.n, x.i, -x.i, y.i, -y.i) > most:
	case e.text == "+":
		return stepOf{a.n + b.n, true}
	case e.text == "-":
		return stepOf{a.n - b.n, true}
	case e.text == "*" && x.ok:
		return stepOf{x.i * b.n, true}
	case e.text == "*" && y.ok:
		return stepOf{a.n * y.i, true}
	}
	return unknown
}

// idStep is for what the item knows of itself.
func (s *straights) idStep(e *expr) stepOf {
	if id, is := s.id(e); is {
		return stepOf{int64(1 - min(id.dim, 1)), true}
	}
	return stepOf{0, s.fixed(e)}
}

// variableStep is for variables that have one value while an item is in the region,
// which can be computed from the beginning.
func (s *straights) variableStep(sym *symbol) stepOf {
	if known, asked := s.steps[sym]; asked {
		return known
	}
	step := unknown
	switch {
	case sym.typ.q&qVolatile != 0 || sym.inst:
	case s.shared[sym] || sym.kind == symParam && len(s.writes[sym]) == 0:
		step = stepOf{0, true}
	case sym.kind == symVar && len(s.writes[sym]) == 1 && !s.pinned[sym] && sym.init != nil && sym.init.value != nil &&
		sym.typ.align == 0 && (s.cheap(sym) || s.inside(sym)):
		from := sym.init.value
		step = s.step(from)
		if step.n != 0 && (kindSize(sym.typ.base) < 4 || sym.typ.is(Bool) || kindSize(from.typ.base) < 4) {
			step = unknown
		}
	}
	s.steps[sym] = step
	return step
}

// inside tells whether a variable is declared in the region.
func (s *straights) inside(sym *symbol) bool {
	for _, at := range s.writes[sym][0].path {
		for _, k := range s.g.list {
			if k == at {
				return true
			}
		}
	}
	return s.home[sym] == s.g
}
