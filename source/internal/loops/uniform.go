package loops

// Uniform values: those that are the same for all items of a group. Every variable is assumed to be
// uniform until it is found that it is assigned a value that may differ between items (their ids,
// contents of memory), or in a place that not all items reach.

import (
	"slices"
	"strings"

	"github.com/concord-compute/concord/source/internal/builtins"
	"github.com/concord-compute/concord/source/internal/tree"
)

// isWrite reports whether e itself is an assignment.
func isWrite(e *tree.Expr) bool {
	return e.Op == tree.OpAssign || e.Op == tree.OpPreInc || e.Op == tree.OpPostInc
}

// isBarrier reports whether e is a call that synchronizes the group.
func isBarrier(e *tree.Expr) bool { return e.Op == tree.OpBuiltin && e.Site > 0 }

// uniform reports whether e has the same value for all items of a group and no side effects.
// Contents of memory are not uniform, since another item may change them at any time.
func (w *flow) uniform(e *tree.Expr) bool {
	return w.depends(e, func(sym *tree.Symbol) bool { return !w.varies[sym] })
}

// depends reports whether e has no side effects and the same value for all items, provided that the
// variables for which alone returns true are uniform.
func (w *flow) depends(e *tree.Expr, alone func(*tree.Symbol) bool) bool {
	if e == nil {
		return true
	}
	w.Step()
	switch e.Op {
	case tree.OpLit, tree.OpString, tree.OpNull, tree.OpNamed, tree.OpSizeof:
		return true
	case tree.OpSym:
		if e.Sym.Inst {
			return e.Sym.Type.Space == tree.Constant && !e.Sym.Type.IsPointer()
		}
		return e.Sym.Kind == tree.SymEnumConst || alone(e.Sym)
	case tree.OpDecay:
		return e.A.Op == tree.OpString || e.A.Op == tree.OpSym && e.A.Sym.Inst
	case tree.OpIndex:
		return e.A.Op == tree.OpDecay && e.A.A.Op == tree.OpSym && e.A.A.Sym.Inst && e.A.A.Sym.Type.Space == tree.Constant &&
			w.depends(e.B, alone)
	case tree.OpUnary:
		if e.Text == "&" || e.Text == "*" {
			return false
		}
	case tree.OpParen, tree.OpBinary, tree.OpShift, tree.OpCompare, tree.OpLogic, tree.OpCond, tree.OpElvis,
		tree.OpVecCond, tree.OpMember, tree.OpSwizzle, tree.OpComponent,
		tree.OpCast, tree.OpConv, tree.OpVecLit:
	case tree.OpBuiltin:
		if !alike(e) {
			return false
		}
	case tree.OpCall:
		if !w.isPure(e.Sym.Fn) {
			return false
		}
	default:
		return false
	}
	for x := range e.Operands {
		if !w.depends(x, alone) {
			return false
		}
	}
	return true
}

// groupMembers are the built-ins of the work item that return the same for all items of a group.
const groupMembers = " get_work_dim get_global_size get_local_size get_num_groups get_group_id get_global_offset "

// alike reports whether the result of a built-in depends only on its arguments and the group.
func alike(e *tree.Expr) bool {
	if _, ok := builtins.ConversionOf(e.Text); ok {
		return true
	}
	name := strings.TrimPrefix(e.Text, "cc_")
	b, ok := builtins.Lookup(name)
	if !ok || b.Barrier || b.Atomic || b.Variadic || b.Member && !strings.Contains(groupMembers, " "+name+" ") {
		return false
	}
	for _, a := range e.Args {
		if a.Type.IsPointer() {
			return false
		}
	}
	return true
}

// isPure reports whether the result of a function of the program depends only on its arguments.
func (w *flow) isPure(fn *tree.Function) bool {
	if known, ok := w.pure[fn]; ok {
		return known
	}
	w.pure[fn] = false
	if !fn.Defined || fn.Kernel || fn.Barrier {
		return false
	}
	pure := true
	for _, p := range fn.Params {
		pure = pure && !p.Type.IsPointer()
	}
	tree.WalkStmt(fn.Body, func(e *tree.Expr) {
		w.Step()
		switch e.Op {
		case tree.OpUnary:
			pure = pure && e.Text != "*" && e.Text != "&"
		case tree.OpIndex:
			pure = pure && e.A.Op == tree.OpDecay
		case tree.OpSym:
			pure = pure && (!e.Sym.Inst || e.Sym.Type.Space == tree.Constant && !e.Sym.Type.IsPointer())
		case tree.OpBuiltin:
			pure = pure && alike(e)
		case tree.OpCall:
			pure = pure && w.isPure(e.Sym.Fn)
		case tree.OpStmts, tree.OpCompound, tree.OpBad:
			pure = false
		}
	})
	w.pure[fn] = pure
	return pure
}

// cheapNodes is the largest size of an expression that is cheaper to compute again than to keep in
// memory.
const cheapNodes = 24

// cheap reports whether a variable of the items can be computed again wherever it is needed: it is
// never changed, and is computed from ids, arguments and other cheap variables.
func (f *Plan) cheap(sym *tree.Symbol) bool {
	known, asked := f.cheaps[sym]
	if !asked {
		f.cheaps[sym] = false // a variable whose initial value mentions itself is not cheap
		known = f.isCheap(sym)
		f.cheaps[sym] = known
	}
	return known
}

func (f *Plan) isCheap(sym *tree.Symbol) bool {
	if sym.Kind != tree.SymVar || f.Home[sym] == nil || len(f.Writes[sym]) != 1 || f.pinned[sym] || sym.Init == nil ||
		sym.Init.Value == nil ||
		sym.Type.Q&tree.QVolatile != 0 || sym.Type.Align > 0 || sym.Type.Kind != tree.TScalar &&
		sym.Type.Kind != tree.TPointer {
		return false
	}
	nodes, cheap := 0, true
	tree.WalkExpr(sym.Init.Value, func(e *tree.Expr) {
		f.Step()
		nodes++
		cheap = cheap && f.cheapNode(e, f.loops[sym])
	})
	return cheap && nodes <= cheapNodes
}

func (f *Plan) cheapNode(e *tree.Expr, loops []*tree.Stmt) bool {
	switch e.Op {
	case tree.OpLit, tree.OpNull, tree.OpNamed, tree.OpSizeof, tree.OpParen, tree.OpShift, tree.OpCompare, tree.OpLogic,
		tree.OpCond, tree.OpCast, tree.OpConv:
		return true
	case tree.OpUnary:
		return e.Text != "*" && e.Text != "&"
	case tree.OpBinary:
		n := tree.Fold(e.B)
		return e.Text != "/" && e.Text != "%" || n.OK && !n.IsFloat() && n.Int() > 0 && n.Int()&(n.Int()-1) == 0
	case tree.OpDecay:
		return e.A.Op == tree.OpSym && e.A.Sym.Inst
	case tree.OpSym:
		switch s := e.Sym; {
		case s.Inst:
			return s.Type.Kind == tree.TArray || s.Type.Space == tree.Constant && !s.Type.IsPointer()
		case s.Kind == tree.SymEnumConst:
			return true
		case f.Shared[s]:
			return f.steady(s, loops)
		case s.Kind == tree.SymParam:
			return len(f.Writes[s]) == 0
		default:
			return f.cheap(s)
		}
	case tree.OpBuiltin:
		name := strings.TrimPrefix(e.Text, "cc_")
		return strings.Contains(groupMembers+"get_global_id get_local_id ", " "+name+" ")
	}
	return false
}

// steadyIn is the key of a stored result of steady: the variable, the innermost loop and the number
// of loops.
type steadyIn struct {
	sym  *tree.Symbol
	loop *tree.Stmt
	n    int
}

// steady reports whether a variable of the group keeps its value during an iteration of these
// loops: it is changed only in their post expressions.
func (f *Plan) steady(sym *tree.Symbol, loops []*tree.Stmt) bool {
	key := steadyIn{sym: sym, n: len(loops)}
	if key.n > 0 {
		key.loop = loops[key.n-1]
	}
	known, asked := f.steadies[key]
	if !asked {
		known = f.changesIn(sym, loops) && (sym.Kind != tree.SymParam || len(f.Writes[sym]) == 0)
		f.steadies[key] = known
	}
	return known
}

// changesIn reports whether a variable is changed only by the post expressions of these loops.
func (f *Plan) changesIn(sym *tree.Symbol, loops []*tree.Stmt) bool {
	at, asked := f.changes[sym]
	if !asked {
		seen := map[*tree.Stmt]bool{}
		for _, w := range f.Writes[sym] {
			if s := w.at.s; s.Kind != tree.StDecl && !seen[s] {
				seen[s] = true
				at = append(at, s)
			}
		}
		f.changes[sym] = at
	}
	if len(at) > len(loops) {
		return false
	}
	for _, s := range at {
		f.Step()
		if !slices.Contains(loops, s) {
			return false
		}
	}
	return true
}
