package source

// Walks over the tree, for analyses that ask what a part of a program mentions.

// walkExpr calls visit for e and everything in it, outer expressions first;
// statement expressions included.
func walkExpr(e *expr, visit func(*expr)) {
	if e == nil {
		return
	}
	visit(e)
	walkExpr(e.a, visit)
	walkExpr(e.b, visit)
	walkExpr(e.c, visit)
	for _, a := range e.args {
		walkExpr(a, visit)
	}
	walkInit(e.init, visit)
	walkStmt(e.body, visit)
}

func walkInit(n *initNode, visit func(*expr)) {
	if n == nil {
		return
	}
	walkExpr(n.value, visit)
	for _, k := range n.kids {
		walkInit(k, visit)
	}
}

// walkStmt is walkExpr for the expressions of s and of all statements in it.
func walkStmt(s *stmt, visit func(*expr)) {
	for ; s != nil; s = s.alt { // a chain of else-if may be long
		walkExpr(s.e, visit)
		walkExpr(s.post, visit)
		walkStmt(s.init, visit)
		walkStmt(s.body, visit)
		for _, k := range s.list {
			walkStmt(k, visit)
		}
		for _, sym := range s.syms {
			walkInit(sym.init, visit)
		}
	}
}

// rootVariable returns the variable of a function that an lvalue is a part of,
// nil where it is reached through a pointer or belongs to the program.
func rootVariable(e *expr) *symbol {
	for e != nil {
		switch e.op {
		case opSym:
			if e.sym.inst || e.sym.kind != symVar && e.sym.kind != symParam {
				return nil
			}
			return e.sym
		case opParen, opSwizzle, opComponent, opMember, opDecay, opLoad:
			e = e.a
		case opIndex:
			if e.a.op != opDecay {
				return nil
			}
			e = e.a
		default:
			return nil
		}
	}
	return nil
}

// jumpOut finds a statement that may leave the block it is in: a return, a goto, or
// a break or continue that belongs to something outside of it.
func jumpOut(list []*stmt, loop, sw bool) *stmt {
	for _, s := range list {
		for ; s != nil; s = s.alt { // a chain of else-if may be long
			switch s.kind {
			case stReturn, stGoto, stLabel:
				return s
			case stBreak:
				if !loop && !sw {
					return s
				}
			case stContinue:
				if !loop {
					return s
				}
			}
			inLoop := loop || s.kind == stFor || s.kind == stWhile || s.kind == stDo
			inSwitch := sw || s.kind == stSwitch
			if out := jumpOut(append([]*stmt{s.body}, s.list...), inLoop, inSwitch); out != nil {
				return out
			}
		}
	}
	return nil
}
