package source

// Checks of a whole program: constants, the call graph, the kernels.

// checkConstant checks that an initializer can be computed before anything runs.
func (p *parser) checkConstant(n *initNode) {
	if n == nil {
		return
	}
	if n.value != nil {
		if bad := notConstant(n.value); bad != nil {
			p.errorf(p.posOf(bad), "constant", "the initializer of a constant must itself be constant")
		}
	}
	for _, k := range n.kids {
		p.checkConstant(k)
	}
}

// notConstant returns the part of e that is not known before a program runs.
func notConstant(e *expr) *expr {
	switch e.op {
	case opAssign, opPreInc, opPostInc, opCall, opStmts:
		return e
	case opBuiltin:
		if c, ok := conversionOf(e.text); !ok || !c.as {
			return e
		}
	case opSym:
		if e.typ.kind == tArray && e.sym.typ.space == Constant || e.sym.val.ok || e.sym.typ.space == Constant && e.sym.inst {
			return nil
		}
		return e
	case opUnary:
		if e.text == "&" {
			return nil
		}
	}
	for _, k := range [...]*expr{e.a, e.b, e.c} {
		if k != nil {
			if bad := notConstant(k); bad != nil {
				return bad
			}
		}
	}
	for _, k := range e.args {
		if bad := notConstant(k); bad != nil {
			return bad
		}
	}
	return nil
}

// checkProgram runs when everything is parsed.
func (p *parser) checkProgram() {
	for _, fn := range p.funcs {
		for _, c := range fn.calls {
			if !c.to.defined {
				p.errorf(c.pos, "call", "'%s' is declared but not defined", c.to.name)
			}
		}
		if fn.kernel {
			p.checkKernel(fn)
		}
	}
	state := map[*function]int{}
	for _, fn := range p.funcs {
		p.checkRecursion(fn, state, 0)
	}
}

// maxCalls is how deep calls of functions may be nested: walks over the call graph go as
// deep.
const maxCalls = 1000

// checkRecursion walks the calls below fn. States: 1 on the way, 2 done.
func (p *parser) checkRecursion(fn *function, state map[*function]int, depth int) {
	if state[fn] == 2 {
		return
	}
	if depth > maxCalls {
		p.errorf(fn.pos, "call", "calls are nested deeper than %d functions", maxCalls)
		return
	}
	state[fn] = 1
	for _, c := range fn.calls {
		if state[c.to] == 1 {
			p.errorf(c.pos, "recursion", "'%s' calls itself: OpenCL C has no recursion", c.to.name)
			continue
		}
		p.checkRecursion(c.to, state, depth+1)
		fn.barrier = fn.barrier || c.to.barrier
		fn.depth = max(fn.depth, c.to.depth+1)
	}
	if fn.depth == maxCalls+1 {
		p.errorf(fn.pos, "call", "calls are nested deeper than %d functions", maxCalls)
	}
	fn.memory = localBytes(fn)
	state[fn] = 2
}

// checkKernel checks what a kernel may return and take.
func (p *parser) checkKernel(fn *function) {
	if !fn.typ.elem.isVoid() {
		p.errorf(fn.pos, "kernel", "the kernel '%s' must return void, not '%s'", fn.name, fn.typ.elem)
	}
	if fn.overload {
		p.errorf(fn.pos, "kernel", "the kernel '%s' cannot be overloadable", fn.name)
	}
	for _, s := range fn.params {
		if msg := kernelParamError(s.typ); msg != "" {
			p.errorf(s.pos, "kernel parameter", "'%s' of the kernel '%s': %s", s.name, fn.name, msg)
		}
	}
}

// kernelParamError says why a kernel cannot take a parameter of type t.
func kernelParamError(t *ctype) string {
	switch t.kind {
	case tPointer:
		switch {
		case t.elem.space == Private:
			return "a pointer parameter must say global, constant or local"
		case arrayBase(t.elem).isPointer():
			return "a kernel cannot take pointers to pointers"
		}
	case tScalar:
		switch {
		case t.alias != "":
			return "a kernel cannot take '" + t.alias + "', whose size differs by device"
		case t.base == Bool:
			return "a kernel cannot take 'bool'"
		case t.base == Half:
			return "a kernel cannot take 'half' by value"
		}
	case tEvent:
		return "a kernel cannot take 'event_t'"
	case tRecord:
		if t.rec.pointers {
			return "a kernel cannot take a struct with pointers or bool in it"
		}
	}
	return ""
}

// localBytes is the local memory that a kernel declares, with that of the kernels it calls,
// whose memory is known already. It is no more than bigSize.
func localBytes(fn *function) int {
	n := 0
	for _, s := range fn.locals {
		size, _ := s.typ.size()
		n = min(alignUp(n, localAlignment(s.typ))+size, bigSize)
	}
	seen := map[*function]bool{}
	for _, c := range fn.calls {
		if c.to.kernel && !seen[c.to] {
			seen[c.to] = true
			n += c.to.memory
		}
		n = min(n, bigSize)
	}
	return n
}
