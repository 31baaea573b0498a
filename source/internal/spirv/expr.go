package spirv

import (
	"github.com/concord-compute/concord/source/internal/spirv/module"
	"github.com/concord-compute/concord/source/internal/tree"
)

// expr writes an expression and returns its value.
func (f *function) expr(e *tree.Expr) value {
	f.Step()
	if e.Type.IsScalar() {
		if c := tree.Fold(e).Convert(e.Type); c.OK {
			return scalar(e.Type.Bare(), f.constantOf(c))
		}
	}
	switch e.Op {
	case tree.OpParen, tree.OpLoad:
		return f.expr(e.A)
	case tree.OpNull:
		return f.zero(e.Type)
	case tree.OpNamed:
		return scalar(e.Type, f.uint(map[string]int{"CC_LOCAL_MEM_FENCE": fenceLocal,
			"CC_GLOBAL_MEM_FENCE": fenceGlobal}[e.Text]))
	case tree.OpDecay:
		return scalar(e.Type, f.addressOf(f.place(e.A)))
	case tree.OpUnary:
		return f.unaryExpr(e)
	case tree.OpPreInc, tree.OpPostInc:
		return f.increment(e)
	case tree.OpBinary:
		return f.binaryExpr(e)
	case tree.OpShift:
		a, b := f.scalarOf(e.A, e.Type.Base), f.expr(e.B).one()
		return scalar(e.Type, f.shifted(e.Text, e.Type.Base, a, f.convert(b, e.B.Type.Base, e.Type.Base)))
	case tree.OpCompare, tree.OpLogic:
		return scalar(e.Type, f.fromCondition(f.cond(e), tree.Int, 1))
	case tree.OpCond:
		return f.conditional(e, e.B)
	case tree.OpElvis:
		return f.elvis(e)
	case tree.OpVecCond:
		return f.chooseLanes(e)
	case tree.OpAssign:
		return f.assign(e)
	case tree.OpComma:
		f.expr(e.A)
		return f.expr(e.B)
	case tree.OpCast, tree.OpConv:
		if e.Type.IsVoid() {
			f.expr(e.A)
			return value{t: e.Type}
		}
		return f.as(f.expr(e.A), e.Type)
	case tree.OpVecLit:
		return f.vectorLiteral(e)
	case tree.OpStmts:
		return f.statements(e)
	case tree.OpCall:
		return f.userCall(e)
	case tree.OpBuiltin:
		return f.builtin(e)
	case tree.OpSwizzle:
		if len(e.Lanes) > 1 || !e.A.LValue {
			v := f.expr(e.A)
			out := value{t: e.Type.Bare()}
			for _, l := range e.Lanes {
				out.ids = append(out.ids, v.ids[min(l, len(v.ids)-1)]) // lane 3 of a vector of three is undefined
			}
			return out
		}
	}
	return f.load(f.place(e))
}

// scalarOf writes a scalar and converts it.
func (f *function) scalarOf(e *tree.Expr, k tree.Kind) id {
	v := f.expr(e)
	return f.convert(v.one(), regKind(v.t), k)
}

// as converts a value to a type as C does.
func (f *function) as(v value, t *tree.Type) value {
	t = t.Bare()
	switch {
	case t.IsVoid() || v.at != nil || t.Kind == tree.TRecord || t.Kind == tree.TArray:
		return value{t, v.ids, v.at}
	case v.t.IsVector():
		out := value{t: t}
		for _, x := range v.ids {
			out.ids = append(out.ids, f.convert(x, v.t.Base, t.Base))
		}
		return out
	case t.IsVector():
		x := f.convert(v.one(), regKind(v.t), t.Base)
		if v.t.Is(tree.Bool) && tree.IsIntKind(t.Base) { // true is all bits set
			x = f.unary("-", t.Base, x)
		}
		return f.splat(x, t)
	}
	return scalar(t, f.convert(v.one(), regKind(v.t), regKind(t)))
}

// splat returns a vector of equal lanes, or the scalar.
func (f *function) splat(x id, t *tree.Type) value {
	out := value{t: t}
	for range t.Width() {
		out.ids = append(out.ids, x)
	}
	return out
}

// cond writes an expression as a condition.
func (f *function) cond(e *tree.Expr) id {
	if c := tree.Fold(e); c.OK && e.Type.IsScalar() {
		return f.b.Truth(!c.IsZero())
	}
	switch {
	case e.Op == tree.OpParen:
		return f.cond(e.A)
	case e.Op == tree.OpCompare:
		return f.relation(e)
	case e.Op == tree.OpLogic:
		return f.logic(e)
	case e.Op == tree.OpUnary && e.Text == "!":
		return f.f.Emit(module.OpLogicalNot, f.b.Bool(), f.cond(e.A))
	}
	v := f.expr(e)
	return f.isTrue(v.one(), regKind(v.t))
}

// relation compares two scalars or pointers.
func (f *function) relation(e *tree.Expr) id {
	if e.A.Type.IsPointer() {
		k := regKind(e.A.Type)
		a := f.expr(e.A).one()
		return f.compare(e.Text, k, a, f.expr(e.B).one())
	}
	k := tree.Usual(e.A.Type, e.B.Type).Base
	a := f.scalarOf(e.A, k)
	return f.compare(e.Text, k, a, f.scalarOf(e.B, k))
}

// logic writes && and ||. The right side is evaluated only if it is needed, or if nobody can tell.
func (f *function) logic(e *tree.Expr) id {
	and := e.Text == "&&"
	if f.cheap(e.B, cheapDepth) {
		op := module.OpLogicalOr
		if and {
			op = module.OpLogicalAnd
		}
		a := f.cond(e.A)
		return f.test(op, a, f.cond(e.B))
	}
	to := f.f.Variable(f.b.Bool())
	a := f.cond(e.A)
	f.f.Store(to, a)
	if !and {
		a = f.f.Emit(module.OpLogicalNot, f.b.Bool(), a)
	}
	f.branch(a, func() { f.f.Store(to, f.cond(e.B)) }, nil)
	return f.f.Load(f.b.Bool(), to)
}

// cheapDepth is how many operators an expression may have that is evaluated though its value may not be needed.
const cheapDepth = 3

// cheap reports whether e can be evaluated at any time: it changes nothing, reads no memory and takes little time.
func (f *function) cheap(e *tree.Expr, depth int) bool {
	if tree.Fold(e).OK {
		return true
	}
	switch e.Op {
	case tree.OpSym:
		return !e.Sym.Inst && !f.inMemory[e.Sym] && e.Type.IsArith() && f.variable(e.Sym).ids != nil
	case tree.OpParen:
		return f.cheap(e.A, depth)
	case tree.OpUnary:
		return depth > 0 && e.Text != "*" && e.Text != "&" && f.cheap(e.A, depth-1)
	case tree.OpConv, tree.OpCast:
		toInt := e.Type.IntElem() && e.A.Type.IsArith() && !e.A.Type.IntElem() // undefined if it is out of range
		return depth > 0 && !toInt && e.Type.Base != tree.Half && e.Type.IsArith() && f.cheap(e.A, depth-1)
	case tree.OpBinary, tree.OpShift, tree.OpCompare, tree.OpLogic:
		return depth > 0 && e.Text != "/" && e.Text != "%" && e.Type.IsArith() && e.Type.Base != tree.Half &&
			f.cheap(e.A, depth-1) && f.cheap(e.B, depth-1)
	}
	return false
}

// conditional writes c ? yes : e.C.
func (f *function) conditional(e *tree.Expr, yes *tree.Expr) value {
	c := f.cond(e.A)
	if e.Type.IsVoid() {
		f.branch(c, func() { f.expr(yes) }, func() { f.expr(e.C) })
		return value{t: e.Type}
	}
	t := e.Type.Bare()
	if f.cheap(yes, cheapDepth) && f.cheap(e.C, cheapDepth) {
		a, b := f.as(f.expr(yes), t), f.as(f.expr(e.C), t)
		return f.chooseValue(c, a, b)
	}
	return f.eitherValue(t, c, func() value { return f.as(f.expr(yes), t) }, func() value { return f.as(f.expr(e.C), t) })
}

// chooseValue chooses between two values of one type.
func (f *function) chooseValue(c id, a, b value) value {
	out := value{t: a.t}
	parts, _ := f.leaves(a.t)
	for i, l := range parts {
		out.ids = append(out.ids, f.choose(regKind(l.t), c, a.ids[i], b.ids[i]))
	}
	return out
}

// eitherValue evaluates yes or no, which return values of type t.
func (f *function) eitherValue(t *tree.Type, c id, yes, no func() value) value {
	to := f.spill(t)
	f.branch(c, func() { f.store(to, yes()) }, func() { f.store(to, no()) })
	return f.load(to)
}

// spill returns a new variable without a name.
func (f *function) spill(t *tree.Type) place {
	parts, ok := f.leaves(t)
	if !ok {
		return f.temporary(t)
	}
	v := &variable{ids: []id{}}
	for _, l := range parts {
		v.ids = append(v.ids, f.f.Variable(f.regType(l.t)))
	}
	return place{t: t, v: v}
}

// elvis writes a ?: c.
func (f *function) elvis(e *tree.Expr) value {
	a := f.expr(e.A)
	t := e.Type.Bare()
	c := f.isTrue(a.one(), regKind(a.t))
	return f.eitherValue(t, c, func() value { return f.as(a, t) }, func() value { return f.as(f.expr(e.C), t) })
}

// topBit returns the condition that the highest bit of a scalar of integer kind k is set.
func (f *function) topBit(v id, k tree.Kind) id {
	if isSigned(k) {
		return f.compare("<", k, v, f.constant(k, 0))
	}
	top := f.op(module.OpBitwiseAnd, k, v, f.constant(k, 1<<(8*tree.KindSize(k)-1)))
	return f.test(module.OpINotEqual, top, f.constant(k, 0))
}

// chooseLanes writes ?: with a vector condition.
func (f *function) chooseLanes(e *tree.Expr) value {
	c := f.expr(e.A)
	a := f.as(f.expr(e.B), e.Type)
	b := f.as(f.expr(e.C), e.Type)
	out := value{t: e.Type.Bare()}
	for i := range a.ids {
		out.ids = append(out.ids, f.choose(e.Type.Base, f.topBit(c.ids[i], c.t.Base), a.ids[i], b.ids[i]))
	}
	return out
}

// unaryExpr writes + - ! ~ * &.
func (f *function) unaryExpr(e *tree.Expr) value {
	switch {
	case e.Text == "*":
		return f.load(f.place(e))
	case e.Text == "&":
		return scalar(e.Type, f.addressOf(f.place(e.A)))
	case e.Text == "!" && e.A.Type.IsVector():
		v := f.expr(e.A)
		out := value{t: e.Type.Bare()}
		for _, x := range v.ids {
			c := f.f.Emit(module.OpLogicalNot, f.b.Bool(), f.isTrue(x, v.t.Base))
			out.ids = append(out.ids, f.fromCondition(c, e.Type.Base, -1))
		}
		return out
	case e.Text == "!":
		c := f.f.Emit(module.OpLogicalNot, f.b.Bool(), f.cond(e.A))
		return scalar(e.Type, f.fromCondition(c, tree.Int, 1))
	}
	v := f.as(f.expr(e.A), e.Type)
	out := value{t: e.Type.Bare()}
	for _, x := range v.ids {
		out.ids = append(out.ids, f.unary(e.Text, e.Type.Base, x))
	}
	return out
}

// binaryExpr writes the operators whose operands are both evaluated.
func (f *function) binaryExpr(e *tree.Expr) value {
	if e.A.Type.IsPointer() || e.B.Type.IsPointer() {
		a := f.expr(e.A)
		return f.pointerArithmetic(e.Text, a, f.expr(e.B), e.Type)
	}
	a := f.expr(e.A)
	return f.operate(e.Text, a, f.expr(e.B), e.Type)
}

// operate evaluates an operator on two arithmetic values with a result of type t.
func (f *function) operate(op string, a, b value, t *tree.Type) value {
	of := t.Bare()
	isCompare := comparisons[op].signed != 0 || op == "&&" || op == "||"
	if isCompare { // of vectors
		if of = a.t; !of.IsVector() {
			of = b.t
		}
	}
	a, b = f.as(a, of), f.as(b, of)
	out := value{t: t.Bare()}
	for i := range a.ids {
		x, y := a.ids[i], b.ids[i]
		switch {
		case op == "&&" || op == "||":
			both := module.OpLogicalAnd
			if op == "||" {
				both = module.OpLogicalOr
			}
			c := f.test(both, f.isTrue(x, of.Base), f.isTrue(y, of.Base))
			out.ids = append(out.ids, f.fromCondition(c, t.Base, -1))
		case isCompare:
			out.ids = append(out.ids, f.fromCondition(f.compare(op, of.Base, x, y), t.Base, -1))
		default:
			out.ids = append(out.ids, f.binary(op, of.Base, x, y))
		}
	}
	return out
}

// pointerArithmetic writes p + i, i + p, p - i and p - q.
func (f *function) pointerArithmetic(op string, a, b value, t *tree.Type) value {
	if !a.t.IsPointer() {
		a, b = b, a
	}
	k := regKind(a.t)
	size, _ := a.t.Elem.Size()
	if b.t.IsPointer() {
		d := f.op(module.OpISub, k, a.one(), b.one())
		signed := tree.Int
		if isWide(k) {
			signed = tree.Long
		}
		if size > 1 {
			d = f.quotient("/", signed, d, f.constant(signed, uint64(size)))
		}
		return scalar(t, f.convert(d, signed, tree.Long))
	}
	d := f.mul(k, f.convert(b.one(), b.t.Base, k), size)
	if op == "-" {
		return scalar(t, f.op(module.OpISub, k, a.one(), d))
	}
	return scalar(t, f.add(k, a.one(), d))
}

// vectorLiteral writes (float4)(a, b.xy, c).
func (f *function) vectorLiteral(e *tree.Expr) value {
	out := value{t: e.Type.Bare()}
	for _, a := range e.Args {
		v := f.expr(a)
		for _, x := range v.ids {
			out.ids = append(out.ids, f.convert(x, v.t.Base, e.Type.Base))
		}
	}
	if len(out.ids) == 1 {
		return f.splat(out.ids[0], out.t)
	}
	return out
}

// statements writes ({ ... }).
func (f *function) statements(e *tree.Expr) value {
	f.inExpression++
	defer func() { f.inExpression-- }()
	out := value{t: e.Type}
	for i, s := range e.Body.List {
		if i == len(e.Body.List)-1 && s.Kind == tree.StExpr {
			f.line(s.Pos)
			return f.expr(s.E)
		}
		f.stmt(s)
	}
	return out
}
