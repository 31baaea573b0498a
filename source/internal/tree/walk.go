package tree

// Walks over the tree, for analyses of the symbols and operators in a part of a program.

// Operands yields what e consists of, from left to right: its operands and arguments.
func (e *Expr) Operands(yield func(*Expr) bool) {
	for _, k := range [...]*Expr{e.A, e.B, e.C} {
		if k != nil && !yield(k) {
			return
		}
	}
	for _, k := range e.Args {
		if !yield(k) {
			return
		}
	}
}

// WalkExpr calls visit for e and everything in it, outer expressions first;
// statement expressions included.
func WalkExpr(e *Expr, visit func(*Expr)) {
	if e == nil {
		return
	}
	visit(e)
	WalkExpr(e.A, visit)
	WalkExpr(e.B, visit)
	WalkExpr(e.C, visit)
	for _, a := range e.Args {
		WalkExpr(a, visit)
	}
	WalkInit(e.Init, visit)
	WalkStmt(e.Body, visit)
}

// WalkInit is WalkExpr for the expressions of an initializer, in no order.
func WalkInit(n *Init, visit func(*Expr)) {
	if n == nil {
		return
	}
	WalkExpr(n.Value, visit)
	for _, k := range n.Kids {
		WalkInit(k, visit)
	}
}

// WalkStmt is WalkExpr for the expressions of s and of all statements in it.
func WalkStmt(s *Stmt, visit func(*Expr)) {
	for ; s != nil; s = s.Alt { // a chain of else-if may be long
		WalkExpr(s.E, visit)
		WalkExpr(s.Post, visit)
		WalkStmt(s.Init, visit)
		WalkStmt(s.Body, visit)
		for _, k := range s.List {
			WalkStmt(k, visit)
		}
		for _, sym := range s.Syms {
			WalkInit(sym.Init, visit)
		}
	}
}

// RootVariable returns the local variable that an lvalue is a part of. It is nil if the lvalue is
// accessed through a pointer or is at program scope.
func RootVariable(e *Expr) *Symbol {
	for e != nil {
		switch e.Op {
		case OpSym:
			if e.Sym.Inst || e.Sym.Kind != SymVar && e.Sym.Kind != SymParam {
				return nil
			}
			return e.Sym
		case OpParen, OpSwizzle, OpComponent, OpMember, OpDecay, OpLoad:
			e = e.A
		case OpIndex:
			if e.A.Op != OpDecay {
				return nil
			}
			e = e.A
		default:
			return nil
		}
	}
	return nil
}

// JumpOut finds a statement that may leave the block it is in: a return, a goto, or
// a break or continue that belongs to something outside of it.
func JumpOut(list []*Stmt, loop, sw bool) *Stmt {
	for _, s := range list {
		for ; s != nil; s = s.Alt { // a chain of else-if may be long
			switch s.Kind {
			case StReturn, StGoto, StLabel:
				return s
			case StBreak:
				if !loop && !sw {
					return s
				}
			case StContinue:
				if !loop {
					return s
				}
			}
			inLoop := loop || s.Kind == StFor || s.Kind == StWhile || s.Kind == StDo
			inSwitch := sw || s.Kind == StSwitch
			if out := JumpOut(append([]*Stmt{s.Body}, s.List...), inLoop, inSwitch); out != nil {
				return out
			}
		}
	}
	return nil
}
