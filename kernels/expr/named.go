package expr

// Named operations: expressions that have a name in the canonical form of a map, so that devices with a loop of their
// own for them find them there.

import "sync"

// definitions has for each named operation of the table ops the expression that defines it.
var definitions = [opLast]func(args [3]*Expr) *Expr{
	Softmax: func(args [3]*Expr) *Expr {
		e := args[0].Sub(args[0].Largest()).Exp()
		return e.Mul(e.Number(1).Div(e.Sum())) // a quotient for each row, since products are faster
	},
	Normalize: func(args [3]*Expr) *Expr {
		x, n, epsilon := args[0], args[1], args[2]
		return x.Sub(x.Sum().Div(n)).scaled(n, epsilon)
	},
	RMSNormalize: func(args [3]*Expr) *Expr { return args[0].scaled(args[1], args[2]) },
}

// scaled returns e divided by the root of the mean of its n squares and epsilon.
func (e *Expr) scaled(n, epsilon *Expr) *Expr {
	return e.Mul(Apply(Rsqrt, e.Mul(e).Sum().Div(n).Add(epsilon)))
}

// typedOp is an operation on operands of a type.
type typedOp struct {
	op  Op
	typ Type
}

// patterns has the definitions of named operations with placeholders as operands.
var patterns = sync.OnceValue(func() map[typedOp]*Expr {
	list := map[typedOp]*Expr{}
	for op := opEnd; op < opLast; op++ {
		for _, t := range []Type{F32, F64} {
			if op.valid() {
				list[typedOp{op, t}] = definitions[op](placeholders(t))
			}
		}
	}
	return list
})

// placeholders returns what stands for the operands of an operation: inputs of slots that no map has.
func placeholders(t Type) (list [3]*Expr) {
	for i := range list {
		list[i] = &Expr{op: opInput, typ: t, elem: t, slot: maxSlots + i}
	}
	return list
}

// derivativesOfNamed returns the derivatives of a named operation, those of its definition, as derivatives does.
func derivativesOfNamed(e, g *Expr) (d [3]*Expr) {
	n, operands := ops[e.op].arity, placeholders(e.typ)
	with := append(make([]*Expr, maxSlots), e.args[:n]...)
	for i, x := range Gradient(patterns()[typedOp{e.op, e.typ}], g, operands[:n]...) {
		d[i] = x.Replace(with...)
	}
	return d
}

// Named returns e as the named operation op, if e is what defines that, and otherwise e itself. An operand is
// recognized by being the same *Expr, or an equal number, wherever it stands in e.
func (e *Expr) Named(op Op) *Expr {
	if e.bad() || !op.named() {
		return e
	}
	var b binding
	if p := patterns()[typedOp{op, e.typ}]; p == nil || !b.unify(p, e) {
		return e
	}
	named := &Expr{op: op, typ: e.typ}
	copy(named.args[:], b.inputs[maxSlots:])
	return named
}

// binding has what the inputs, placeholders and parameters of a pattern stand for.
type binding struct {
	inputs [maxSlots + 3]*Expr
	params [maxSlots]*Expr
}

// unify reports whether e is the expression p but for the order of operands that commute. In p an input stands for any
// input of its type, a parameter for a parameter, a number or [Length], and a placeholder for any expression. Each
// pair of operands is tried in both orders by itself, not with all orders of other pairs.
func (b *binding) unify(p, e *Expr) bool {
	bind := func(to **Expr, ok bool) bool {
		if *to != nil {
			return *to == e || e.op == opConst && (*to).op == opConst && e.bits == (*to).bits
		}
		*to = e
		return ok
	}
	switch {
	case p.typ != e.typ:
		return false
	case p.op == opInput:
		return bind(&b.inputs[p.slot], p.slot >= maxSlots || e.op == opInput && e.elem == p.elem)
	case p.op == opParam:
		return bind(&b.params[p.slot], e.op == opParam || e.op == opConst || e.op == Cast && e.args[0].op == opLength)
	case p.op != e.op || p.bits != e.bits:
		return false
	}
	n, had := ops[p.op].arity, *b
	for i := range n {
		if !b.unify(p.args[i], e.args[i]) {
			if *b = had; !p.op.commutes() {
				return false
			}
			return b.unify(p.args[0], e.args[1]) && b.unify(p.args[1], e.args[0])
		}
	}
	return true
}

// Match says how a map computes what a pattern does; see [Map.Match].
type Match struct {
	Inputs []int // of each input of the pattern, that of the map
	params []*Expr
}

// Match returns how the map computes what pattern does, as its only output, or nil if it does not. Operands that
// commute may have another order, and an input of the pattern stands for any input with elements of its type. A
// parameter stands for a parameter, a number or the length of rows, which [Match.Number] returns.
func (m *Map) Match(pattern *Expr) *Match {
	root, elem := m.form.outputs[0], pattern.typ
	if pattern.elem != 0 && pattern.op == Cast { // made by Output
		pattern, elem = pattern.args[0], pattern.elem
	}
	if len(m.outputs) != 1 || root.elem != elem || m.form.nodes[root.node].op != pattern.op {
		return nil
	}
	list := make([]*Expr, len(m.form.nodes))
	for i := range m.form.nodes {
		n := &m.form.nodes[i]
		list[i] = &Expr{op: n.op, typ: n.typ, elem: n.elem, slot: n.slot, bits: n.bits}
		for j, a := range n.args[:ops[n.op].arity] {
			list[i].args[j] = list[a]
		}
	}
	var b binding
	if !b.unify(pattern, list[root.node]) {
		return nil
	}
	found := &Match{params: b.params[:]}
	for _, e := range b.inputs {
		if e != nil {
			found.Inputs = append(found.Inputs, e.slot)
		}
	}
	return found
}

// Number returns what parameter number i of the pattern, a floating number, stands for in a launch.
func (x *Match) Number(i int, l *Launch) float64 {
	e := x.params[i]
	bits := e.bits
	switch e.op {
	case opParam:
		bits = l.Params[e.slot]
	case Cast: // of Length
		bits = numberBits(e.typ, float64(l.Layout.Dims[len(l.Layout.Dims)-1]))
	}
	return valueOf(e.typ, bits).Float
}
