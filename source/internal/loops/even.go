package loops

import (
	"strings"

	"github.com/concord-compute/concord/source/internal/tree"
)

// Even reports whether the items of a kernel only compute with values of 32 bits, and only read and write
// the element of their own place or one that is the same for all: then lane k of every vector belongs to
// item k, and a compiler permutes no lanes, whatever the length of its vectors.
func (f *Plan) Even() bool {
	if f.fn.Barrier || len(f.fn.Locals) > 0 || len(f.Kept) > 0 {
		return false
	}
	for _, ps := range f.Pieces {
		for _, p := range ps {
			if p.Items == nil || p.Items.Strips != nil {
				return false
			}
		}
	}
	for _, g := range f.regions {
		e := evenness{Straights: f.StraightOf(g), asked: map[*tree.Function]bool{}}
		for _, s := range g.List {
			if !e.stmt(s) {
				return false
			}
		}
	}
	return true
}

// evenness examines the statements of one region, and of the functions that they call.
type evenness struct {
	*Straights
	asked  map[*tree.Function]bool // stored results of function
	called bool                    // the statements are a called function's, of whose parameters nothing is known
}

func (v *evenness) stmt(s *tree.Stmt) bool {
	if s == nil {
		return true
	}
	v.Step()
	switch s.Kind {
	case tree.StBlock, tree.StDecl, tree.StExpr, tree.StIf, tree.StReturn, tree.StEmpty:
	default:
		return false
	}
	if !v.Needless[s] && !v.expr(s.E) {
		return false
	}
	for _, sym := range s.Syms {
		if sym.Inst || !v.typed(sym.Type, &tree.Expr{Op: tree.OpSym, Sym: sym, Type: sym.Type}) ||
			sym.Init != nil && (sym.Init.Value == nil || !v.expr(sym.Init.Value)) {
			return false
		}
	}
	for _, k := range append([]*tree.Stmt{s.Init, s.Body, s.Alt}, s.List...) {
		if !v.stmt(k) {
			return false
		}
	}
	return true
}

// typed reports whether e has a type of 32 bits, or is an integer of 64 that is counted along the row or the
// same for all items, and so is in no vector.
func (v *evenness) typed(t *tree.Type, e *tree.Expr) bool {
	if t.Q&tree.QVolatile != 0 {
		return false
	}
	if IsWide(t) {
		return !v.called && v.stepOf(e).known
	}
	return t.IsVoid() || t.Is(tree.Float) || t.Is(tree.Int) || t.Is(tree.UInt)
}

func (v *evenness) expr(e *tree.Expr) bool {
	if e == nil {
		return true
	}
	v.Step()
	if !v.typed(e.Type, e) {
		return false
	}
	if IsWide(e.Type) {
		return !e.Acts
	}
	switch e.Op {
	case tree.OpIndex:
		if v.called {
			return false
		}
		p, step := tree.Unparen(e.A), v.stepOf(e.B)
		return p.Op == tree.OpSym && p.Sym.Kind == tree.SymParam && p.Type.IsPointer() && len(v.Writes[p.Sym]) == 0 &&
			step.known && (step.n == 1 || !step.moves) && (IsWide(e.B.Type) || v.expr(e.B))
	case tree.OpCall:
		if !v.function(e.Sym.Fn) {
			return false
		}
	case tree.OpBuiltin:
		if !evenFunctions[strings.TrimPrefix(e.Text, "cc_")] {
			return false
		}
	case tree.OpConv, tree.OpCast: // a count that becomes a value takes half of the lanes of one
		if IsWide(e.A.Type) {
			return v.typed(e.A.Type, e.A) && (e.Type.IsInteger() || !v.stepOf(e.A).moves)
		}
		return v.expr(e.A)
	case tree.OpCompare:
		if IsWide(e.A.Type) && (v.stepOf(e.A).moves || v.stepOf(e.B).moves) {
			return false
		}
	case tree.OpLit, tree.OpNamed, tree.OpSym, tree.OpParen, tree.OpBinary, tree.OpShift, tree.OpLogic, tree.OpCond, tree.OpAssign,
		tree.OpComma, tree.OpPreInc, tree.OpPostInc:
	case tree.OpUnary:
		if e.Text == "*" || e.Text == "&" {
			return false
		}
	default:
		return false
	}
	for _, x := range append([]*tree.Expr{e.A, e.B, e.C}, e.Args...) {
		if !v.expr(x) {
			return false
		}
	}
	return true
}

// function is stmt for a function that is called.
func (v *evenness) function(fn *tree.Function) bool {
	known, asked := v.asked[fn]
	if !asked {
		in := evenness{v.Straights, v.asked, true}
		v.asked[fn] = false // for one that calls itself
		known = fn != nil && !fn.Kernel && fn.Body != nil && in.stmt(fn.Body)
		v.asked[fn] = known
	}
	return known
}

// evenFunctions are those that the host computes in vectors of 32-bit lanes; it computes others in double.
var evenFunctions = func() map[string]bool {
	known := map[string]bool{}
	for name := range strings.FieldsSeq("as_float as_int as_uint get_global_id get_global_size " +
		"exp exp2 exp10 tanh erf erfc log log2 log10 sqrt fabs fma mad fmin fmax floor ceil trunc rint copysign " +
		"isnan isinf isfinite min max clamp mix step select native_exp native_log native_sqrt native_divide native_recip") {
		known[name] = true
	}
	return known
}()
