package loops

import (
	"slices"
	"strconv"

	"github.com/concord-compute/concord/source/internal/tree"
)

// Straight indices. Programs keep ids in an int or uint and compute indices from them, which may
// wrap at 32 bits. A C++ compiler therefore cannot know that the next item's element is the next
// one in memory, and does not vectorize. An expression that grows by a constant from one item of a
// row to the next is called straight here: the loop over the row computes its first value and
// counts in 64 bits. If the value would wrap within the row, the prelude cuts the row there, so
// that the result is always correct.

// Straight is a straight expression of 32 bits that is converted to 64 bits.
type Straight struct {
	E    *tree.Expr
	Step int64
}

// mostStraight limits the number of values that are computed at the beginning of a row. mostStep
// limits the step, and with it how often a row may have to be cut.
const mostStraight, mostStep = 24, 1 << 16

// Straights finds the straight indices of one region.
type Straights struct {
	*Plan
	g     *Region
	List  []Straight
	Order []*tree.Symbol // the variables that they are computed from, each after those that it depends on
	need  map[*tree.Symbol]bool
	steps map[*tree.Symbol]stepOf
	wides map[*tree.Expr]stepOf // stored results of wide for 64-bit sums

	names map[*tree.Symbol]string // see hoisted
}

// stepOf says by how much a value grows per item of a row, modulo 2^32. known is false if the
// difference is not constant, or if computing the value at the beginning of the row could have an
// effect. A value that does not move is the same for all items in all its bits. A value that moves
// has 32 bits or more; if n is 0, only its lower 32 bits are the same for all items.
type stepOf struct {
	n            int32
	known, moves bool
}

// newStraights returns an empty set of straight indices for a region.
func (f *Plan) newStraights(g *Region) *Straights {
	return &Straights{Plan: f, g: g, need: map[*tree.Symbol]bool{}, steps: map[*tree.Symbol]stepOf{},
		wides: map[*tree.Expr]stepOf{}}
}

// StraightOf returns the straight indices of a region.
func (f *Plan) StraightOf(g *Region) *Straights {
	s := f.newStraights(g)
	for _, sym := range g.Anew {
		s.Value(sym)
	}
	for _, k := range g.List {
		s.Read(k)
	}
	return s
}

// Read searches a statement for conversions of 32 bits to 64.
func (s *Straights) Read(k *tree.Stmt) {
	if k == nil {
		return
	}
	for _, e := range []*tree.Expr{k.E, k.Post} {
		tree.WalkExpr(e, s.visit)
	}
	for _, sym := range k.Syms {
		s.variableStep(sym) // in this order, to keep the recursion shallow
		s.Value(sym)
		tree.WalkInit(sym.Init, s.visit)
	}
	for _, k := range append([]*tree.Stmt{k.Init, k.Body, k.Alt}, k.List...) {
		s.Read(k)
	}
}

// Value is Read for the initial value of a variable.
func (s *Straights) Value(sym *tree.Symbol) {
	if sym.Init != nil && sym.Init.Value != nil && IsWide(sym.Type) {
		s.consider(sym.Init.Value)
	}
}

func (s *Straights) visit(e *tree.Expr) {
	s.Step()
	switch {
	case e.Op == tree.OpIndex:
		s.consider(e.B)
	case e.Op == tree.OpBinary && (e.Type.IsPointer() || IsWide(e.Type)):
		s.consider(e.A)
		s.consider(e.B)
	case (e.Op == tree.OpConv || e.Op == tree.OpCast) && IsWide(e.Type):
		s.consider(e.A)
	}
}

// IsWide reports whether t is an integer of 64 bits.
func IsWide(t *tree.Type) bool { return t.IsInteger() && tree.KindSize(t.Base) == 8 }

// consider enters e if it is straight.
func (s *Straights) consider(e *tree.Expr) {
	if len(s.List) == mostStraight || !e.Type.Is(tree.Int) && !e.Type.Is(tree.UInt) {
		return
	}
	step := s.stepOf(e)
	if n := int64(step.n); n != 0 && max(n, -n) <= mostStep {
		s.List = append(s.List, Straight{e, n})
		s.needs(e)
	}
}

// First returns the index of the first straight index with the same value as number i: programs use one
// variable for several buffers.
func (s *Straights) First(i int) int {
	e := s.List[i].E
	return slices.IndexFunc(s.List[:i+1], func(x Straight) bool {
		return x.E == e || x.E.Op == tree.OpSym && e.Op == tree.OpSym && x.E.Sym == e.Sym
	})
}

// needs enters the variables that e is computed from.
func (s *Straights) needs(e *tree.Expr) {
	tree.WalkExpr(e, func(x *tree.Expr) {
		s.Step()
		if x.Op == tree.OpSym && x.Sym.Kind == tree.SymVar && !x.Sym.Inst && !s.Shared[x.Sym] && !s.need[x.Sym] {
			s.need[x.Sym] = true
			s.needs(x.Sym.Init.Value)
			s.Order = append(s.Order, x.Sym)
		}
	})
}

var unknown, still = stepOf{}, stepOf{known: true}

func moving(n int32) stepOf { return stepOf{n, true, true} }

// stepOf returns the step of e.
func (s *Straights) stepOf(e *tree.Expr) stepOf {
	s.Step()
	switch {
	case tree.Fold(e).OK:
		return still
	case !e.Type.IsInteger():
		return unknown
	case e.Op == tree.OpSym:
		return s.variableStep(e.Sym)
	case e.Op == tree.OpBuiltin:
		return s.idStep(e)
	}
	if known, asked := s.wides[e]; asked {
		return known
	}
	step := s.operandStep(e)
	if e.Op == tree.OpBinary && IsWide(e.Type) {
		s.wides[e] = step
	}
	return step
}

// operandStep returns the step of an operator's result.
func (s *Straights) operandStep(e *tree.Expr) stepOf {
	var of [3]stepOf
	moves := false
	for i, x := range []*tree.Expr{e.A, e.B, e.C} {
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

// harmless reports whether e, whose operands do not move, can be computed even if no item would
// evaluate it.
func harmless(e *tree.Expr) bool {
	switch e.Op {
	case tree.OpParen, tree.OpConv, tree.OpCast, tree.OpUnary, tree.OpShift, tree.OpCompare, tree.OpLogic, tree.OpCond:
		return true
	case tree.OpBinary:
		n := tree.Fold(e.B)
		return e.Text != "/" && e.Text != "%" || n.OK && n.Int() > 0
	}
	return false
}

// movingStep returns the step of e, whose operands grow by a and b. The lower 32 bits of a sum, of
// a product with a constant and of a conversion between 32 and 64 bits follow from the lower 32
// bits of the operands; the step of any other operation is unknown.
func movingStep(e *tree.Expr, a, b int32) stepOf {
	if tree.KindSize(e.Type.Base) < 4 {
		return unknown
	}
	switch e.Op {
	case tree.OpParen, tree.OpConv, tree.OpCast:
		return moving(a)
	case tree.OpUnary:
		switch e.Text {
		case "+":
			return moving(a)
		case "-", "~":
			return moving(-a)
		}
	case tree.OpShift:
		if n := tree.Fold(e.B); e.Text == "<<" && n.OK && n.Int() >= 0 && n.Int() < 31 {
			return moving(a << n.Int())
		}
	case tree.OpBinary:
		x, y := tree.Fold(e.A), tree.Fold(e.B)
		switch {
		case e.Text == "+":
			return moving(a + b)
		case e.Text == "-":
			return moving(a - b)
		case e.Text == "*" && x.OK:
			return moving(int32(x.Int()) * b)
		case e.Text == "*" && y.OK:
			return moving(a * int32(y.Int()))
		}
	}
	return unknown
}

// idStep returns the step of an id, or of an expression that is the same for all items.
func (s *Straights) idStep(e *tree.Expr) stepOf {
	id, is := s.id(e)
	switch {
	case is && id.Dim == 0:
		return moving(1)
	case is || s.fixed(e):
		return still
	}
	return unknown
}

// variableStep returns the step of a variable. It is known only if the variable has one value while
// an item is in the region, which can be computed at the region's beginning.
func (s *Straights) variableStep(sym *tree.Symbol) stepOf {
	if known, asked := s.steps[sym]; asked {
		return known
	}
	step := unknown
	s.steps[sym] = step // for a variable whose initial value mentions itself
	switch {
	case sym.Type.Q&tree.QVolatile != 0 || sym.Inst:
	case s.Shared[sym] || sym.Kind == tree.SymParam && len(s.Writes[sym]) == 0:
		step = still
	case sym.Kind == tree.SymVar && len(s.Writes[sym]) == 1 && !s.pinned[sym] && sym.Init != nil &&
		sym.Init.Value != nil &&
		sym.Type.Align == 0 && (s.cheap(sym) || s.inside(sym)):
		step = s.stepOf(sym.Init.Value)
		if step.moves && tree.KindSize(sym.Type.Base) < 4 {
			step = unknown
		}
	}
	s.steps[sym] = step
	return step
}

// inside reports whether a variable is declared in the region.
func (s *Straights) inside(sym *tree.Symbol) bool {
	for at := s.Writes[sym][0].at; at != nil; at = at.up {
		if s.g.has[at.s] {
			return true
		}
	}
	return s.Home[sym] == s.g
}

// Hoisted returns the names of the variables from which straight indices are computed at the
// beginning of a run of items.
func (s *Straights) Hoisted() map[*tree.Symbol]string {
	if len(s.names) != len(s.Order) {
		s.names = map[*tree.Symbol]string{}
		for i, sym := range s.Order {
			s.names[sym] = "cc_h" + strconv.Itoa(i)
		}
	}
	return s.names
}
