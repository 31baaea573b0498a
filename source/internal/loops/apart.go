package loops

// What compilers are told about the loop over the items of a kernel, which they cannot see for themselves.

import (
	"strings"

	"github.com/concord-compute/concord/source/internal/tree"
)

// Vectors says how a kernel's loop over its items can be vectorized.
type Vectors uint8

const (
	// Careful is a loop of which nothing is known.
	Careful Vectors = iota
	// Apart is a loop in which nothing is carried from one item to the next, whichever buffers are the same: the
	// items have no memory of their own, only variables that are kept in registers, and each accesses the
	// elements of its own place, and before it writes also one that is the same for all. OpenCL leaves open in which order
	// two items access memory, and the accesses of one item keep their order in vectors: compilers only move accesses
	// that they join, to elements two or more apart.
	Apart
	// Even is Apart, and the items only compute with values of 32 bits. Then lane k of every vector belongs to
	// item k, and a compiler permutes no lanes, whatever the length of its vectors.
	Even
)

// Vectors examines the kernel.
func (f *Plan) Vectors() Vectors {
	if f.fn.Barrier || len(f.fn.Locals) > 0 || len(f.Kept) > 0 || len(f.regions) != 1 || f.regions[0].Strips != nil {
		return Careful
	}
	g := f.regions[0]
	v := examination{Straights: f.StraightOf(g), most: Even, asked: map[*tree.Function]bool{}}
	for _, s := range g.List {
		v.stmt(s)
	}
	return v.most
}

// examination is an examination of the statements of a region, and of the functions that they call.
type examination struct {
	*Straights
	most   Vectors // what they allow as far as they have been seen
	asked  map[*tree.Function]bool
	called bool // the statements are a called function's, of whose parameters nothing is known
	wrote  bool // a statement that has been seen writes an element
}

// allow lowers the result.
func (v *examination) allow(most Vectors) { v.most = min(v.most, most) }

func (v *examination) stmt(s *tree.Stmt) {
	if s == nil || v.most == Careful {
		return
	}
	v.Step()
	switch s.Kind {
	case tree.StBlock, tree.StDecl, tree.StExpr, tree.StIf, tree.StReturn, tree.StEmpty:
		v.parts(s)
	default:
		v.loop(s)
	}
}

// parts examines what a statement consists of.
func (v *examination) parts(s *tree.Stmt) {
	if !v.Needless[s] {
		v.expr(s.E)
	}
	v.expr(s.Post)
	for _, sym := range s.Syms {
		v.expr(&tree.Expr{Op: tree.OpSym, Sym: sym, Type: sym.Type})
		if sym.Init != nil {
			v.expr(sym.Init.Value)
		}
	}
	for _, k := range append([]*tree.Stmt{s.Init, s.Body, s.Alt}, s.List...) {
		v.stmt(k)
	}
}

// loop examines a loop. What its first round writes comes before everything in the second.
func (v *examination) loop(s *tree.Stmt) {
	v.allow(Apart)
	wrote := v.wrote
	v.parts(s)
	if v.wrote != wrote {
		v.parts(s)
	}
}

// typed examines the type of e. An integer of 64 bits that is counted along the row, or the same for all items,
// is in no vector.
func (v *examination) typed(e *tree.Expr) {
	switch t := e.Type; {
	case t.Q&tree.QVolatile != 0, !t.IsScalar() && !t.IsVoid() && !t.IsPointer():
		v.allow(Careful) // vectors are arrays of lanes in C++
	case t.Is(tree.Float), t.Is(tree.Int), t.Is(tree.UInt), t.IsVoid(), t.IsPointer(), IsWide(t) && !v.called &&
		v.stepOf(e).known:
	default:
		v.allow(Apart)
	}
}

func (v *examination) expr(e *tree.Expr) {
	if e == nil || v.most == Careful {
		return
	}
	v.Step()
	v.typed(e)
	if isWrite(e) {
		v.write(tree.Unparen(e.A))
	}
	switch e.Op {
	case tree.OpIndex:
		v.index(e)
		v.expr(e.B)
		return
	case tree.OpConv, tree.OpCast:
		if IsWide(e.A.Type) && !e.Type.IsInteger() && (v.called || v.stepOf(e.A).moves) {
			v.allow(Apart) // the lanes of a count are twice as wide
		}
	case tree.OpCompare:
		if IsWide(e.A.Type) && (v.called || v.stepOf(e.A).moves || v.stepOf(e.B).moves) {
			v.allow(Apart)
		}
	case tree.OpCall:
		v.function(e.Sym.Fn)
	case tree.OpBuiltin:
		if !evenFunctions[strings.TrimPrefix(e.Text, "cc_")] {
			v.allow(Apart)
		}
		for _, a := range e.Args {
			if a.Type.IsPointer() {
				v.allow(Careful) // it may write there
			}
		}
	case tree.OpSym:
		if e.Sym.Inst {
			v.allow(Careful)
		}
	case tree.OpLit, tree.OpNamed, tree.OpParen, tree.OpBinary, tree.OpShift, tree.OpLogic, tree.OpCond, tree.OpAssign,
		tree.OpComma, tree.OpPreInc, tree.OpPostInc, tree.OpSizeof:
	case tree.OpUnary:
		if e.Text == "*" || e.Text == "&" {
			v.allow(Careful)
		}
	default:
		v.allow(Careful)
	}
	for x := range e.Operands {
		v.expr(x)
	}
	v.wrote = v.wrote || isWrite(e) && tree.Unparen(e.A).Op != tree.OpSym
}

// index examines an element that is read or written.
func (v *examination) index(e *tree.Expr) {
	v.typed(e)
	p, step := tree.Unparen(e.A), v.stepOf(e.B)
	own := step.n == 1 || step.n == -1
	if v.called || p.Op != tree.OpSym || p.Sym.Kind != tree.SymParam || len(v.Writes[p.Sym]) > 0 ||
		!step.known || !own && (step.moves || v.wrote) {
		v.allow(Careful)
	} else if step.n == -1 {
		v.allow(Apart) // the lanes are in reverse
	}
}

// write examines what is assigned: a variable, or an element that is another one for every item.
func (v *examination) write(e *tree.Expr) {
	switch {
	case e.Op == tree.OpSym:
	case e.Op != tree.OpIndex || v.called || v.stepOf(e.B).n == 0:
		v.allow(Careful)
	}
}

// function examines a function that is called, once.
func (v *examination) function(fn *tree.Function) {
	if fn == nil || fn.Kernel || fn.Body == nil {
		v.allow(Careful)
		return
	}
	if !v.asked[fn] {
		v.asked[fn] = true
		was := v.called
		v.called = true
		v.stmt(fn.Body)
		v.called = was
	}
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
