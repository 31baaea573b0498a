package check

// Checks of a whole program: constants, the call graph, the kernels.

import (
	"slices"

	"github.com/concord-compute/concord/source/internal/builtins"
	"github.com/concord-compute/concord/source/internal/tree"
)

// checkConstant checks that an initializer can be computed before anything runs.
func (p *parser) checkConstant(n *tree.Init) {
	if n == nil {
		return
	}
	if n.Value != nil {
		if bad := notConstant(n.Value); bad != nil {
			p.errorf(p.PosOf(bad), "constant", "the initializer of a constant must itself be constant")
		} else if bad := p.zeroDivisor(n.Value); bad != nil {
			if _, known := p.folder.Lanes(n.Value); !known {
				p.errorf(p.PosOf(bad), "constant", "a constant divides an integer by zero")
			}
		}
	}
	for _, k := range n.Kids {
		p.checkConstant(k)
	}
}

// zeroDivisor returns a constant part of e that is zero and divides an integer, or nil.
func (p *parser) zeroDivisor(e *tree.Expr) *tree.Expr {
	if e.Folded && e.Val.OK {
		return nil
	}
	if e.Op == tree.OpBinary && (e.Text == "/" || e.Text == "%") && e.Type.IntElem() {
		if by, ok := p.folder.Lanes(e.B); ok && slices.ContainsFunc(by, tree.Value.IsZero) {
			return e.B
		}
	}
	for k := range e.Operands {
		if bad := p.zeroDivisor(k); bad != nil {
			return bad
		}
	}
	return nil
}

// notConstant returns a part of e that is not constant, or nil.
func notConstant(e *tree.Expr) *tree.Expr {
	switch e.Op {
	case tree.OpAssign, tree.OpPreInc, tree.OpPostInc, tree.OpCall, tree.OpStmts:
		return e
	case tree.OpBuiltin:
		if c, ok := builtins.ConversionOf(e.Text); !ok || !c.As {
			return e
		}
	case tree.OpSym:
		if e.Type.Kind == tree.TArray && e.Sym.Type.Space == tree.Constant || e.Sym.Val.OK ||
			e.Sym.Type.Space == tree.Constant && e.Sym.Inst {
			return nil
		}
		return e
	case tree.OpUnary:
		if e.Text == "&" {
			return nil
		}
	}
	for k := range e.Operands {
		if bad := notConstant(k); bad != nil {
			return bad
		}
	}
	return nil
}

// checkProgram makes the checks that need the whole program.
func (p *parser) checkProgram() {
	for _, fn := range p.Funcs {
		for _, c := range fn.Calls {
			if !c.To.Defined {
				p.errorf(c.Pos, "call", "'%s' is declared but not defined", c.To.Name)
			}
		}
		if fn.Kernel {
			p.checkKernel(fn)
		}
	}
	state := map[*tree.Function]int{}
	for _, fn := range p.Funcs {
		p.checkRecursion(fn, state, 0)
	}
}

// maxCalls is the limit for the depth of calls, because walks over the call graph recurse as deep.
const maxCalls = 1000

// checkRecursion walks the calls below fn. States: 1 on the way, 2 done.
func (p *parser) checkRecursion(fn *tree.Function, state map[*tree.Function]int, depth int) {
	if state[fn] == 2 {
		return
	}
	if depth > maxCalls {
		p.errorf(fn.Pos, "call", "calls are nested deeper than %d functions", maxCalls)
		return
	}
	state[fn] = 1
	for _, c := range fn.Calls {
		if state[c.To] == 1 {
			p.errorf(c.Pos, "recursion", "'%s' calls itself: OpenCL C has no recursion", c.To.Name)
			continue
		}
		p.checkRecursion(c.To, state, depth+1)
		fn.Barrier = fn.Barrier || c.To.Barrier
		fn.Depth = max(fn.Depth, c.To.Depth+1)
	}
	if fn.Depth == maxCalls+1 {
		p.errorf(fn.Pos, "call", "calls are nested deeper than %d functions", maxCalls)
	}
	fn.Memory = localBytes(fn)
	state[fn] = 2
}

// checkKernel checks what a kernel may return and take.
func (p *parser) checkKernel(fn *tree.Function) {
	if !fn.Type.Elem.IsVoid() {
		p.errorf(fn.Pos, "kernel", "the kernel '%s' must return void, not '%s'", fn.Name, fn.Type.Elem)
	}
	if fn.Overload {
		p.errorf(fn.Pos, "kernel", "the kernel '%s' cannot be overloadable", fn.Name)
	}
	for _, s := range fn.Params {
		if msg := kernelParamError(s.Type); msg != "" {
			p.errorf(s.Pos, "kernel parameter", "'%s' of the kernel '%s': %s", s.Name, fn.Name, msg)
		}
	}
}

// kernelParamError returns the reason why a kernel cannot have a parameter of type t, or "".
func kernelParamError(t *tree.Type) string {
	switch t.Kind {
	case tree.TPointer:
		switch {
		case t.Elem.Space == tree.Private:
			return "a pointer parameter must say global, constant or local"
		case tree.ArrayBase(t.Elem).IsPointer():
			return "a kernel cannot take pointers to pointers"
		case t.Elem.Space != tree.Local && tree.ArrayBase(t.Elem).Is(tree.Bool):
			return "a kernel cannot take buffers of 'bool', whose size differs by device; take 'uchar' and compare with 0"
		}
	case tree.TScalar:
		switch {
		case t.Alias != "":
			return "a kernel cannot take '" + t.Alias + "', whose size differs by device"
		case t.Base == tree.Bool:
			return "a kernel cannot take 'bool'"
		case t.Base == tree.Half:
			return "a kernel cannot take 'half' by value"
		}
	case tree.TEvent:
		return "a kernel cannot take 'event_t'"
	case tree.TRecord:
		if t.Rec.Pointers {
			return "a kernel cannot take a struct with pointers or bool in it"
		}
	}
	return ""
}

// localBytes returns the bytes of local memory that a kernel and the kernels that it calls declare,
// at most BigSize. The memory of the called kernels is already known.
func localBytes(fn *tree.Function) int {
	n := 0
	for _, s := range fn.Locals {
		size, _ := s.Type.Size()
		n = min(tree.AlignUp(n, tree.LocalAlignment(s.Type))+size, tree.BigSize)
	}
	seen := map[*tree.Function]bool{}
	for _, c := range fn.Calls {
		if c.To.Kernel && !seen[c.To] {
			seen[c.To] = true
			n += c.To.Memory
		}
		n = min(n, tree.BigSize)
	}
	return n
}
