package expr

// The builder, which makes the list of operations of a map from expressions.

import (
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
)

// builder makes the list of a Map's operations.
type builder struct {
	operations
	defined map[*Expr]*Expr // what stands in place of named operations; nil if they stay
	named   bool            // there are such operations
	hash    []uint64        // of what each node computes
	text    []byte          // of which the last one is made
	known   map[node]int
	done    map[*Expr]int
	err     error
}

// build returns the operations of outputs, and whether there are named ones, in place of which expand puts what defines
// them.
func build(outputs []*Expr, expand bool) (list operations, named bool, err error) {
	b := newBuilder(outputs, expand)
	if b.err == nil {
		b.order()
	}
	return b.operations, b.named, b.err
}

// newBuilder returns a builder with the operations of outputs, in the order in which they were found.
func newBuilder(outputs []*Expr, expand bool) *builder {
	b := &builder{known: map[node]int{}, done: map[*Expr]int{}}
	if expand {
		b.defined = map[*Expr]*Expr{}
	}
	for _, e := range outputs {
		elem := e.typ.Stored()
		if e.elem != 0 {
			elem = e.elem
		}
		b.outputs = append(b.outputs, output{b.add(e), elem})
	}
	return b
}

// add returns the index of an expression's node. Expressions may be deep chains, so that it keeps a stack of its own.
func (b *builder) add(root *Expr) int {
	stack := []*Expr{root}
	for len(stack) > 0 {
		e := stack[len(stack)-1]
		if _, ok := b.done[e]; ok {
			stack = stack[:len(stack)-1]
			continue
		}
		ready, args := true, e.args[:ops[e.op].arity]
		if e.op.named() {
			b.named = true
			if b.defined != nil {
				args = []*Expr{b.definition(e)}
			}
		}
		for _, a := range args {
			if _, ok := b.done[a]; !ok {
				stack, ready = append(stack, a), false
			}
		}
		if !ready {
			if len(stack) > 64*maxNodes {
				b.err = fmt.Errorf("more than %d operations: %w", maxNodes, ErrInvalid)
				return 0
			}
			continue
		}
		stack = stack[:len(stack)-1]
		if b.defined != nil && e.op.named() {
			b.done[e] = b.done[args[0]]
			continue
		}
		n := node{op: e.op, typ: e.typ, slot: e.slot, bits: e.bits}
		if e.op == opInput {
			n.elem = e.elem
		}
		for i, a := range e.args[:ops[e.op].arity] {
			n.args[i] = b.done[a]
		}
		if e.op == Cast && e.typ == e.args[0].typ { // made by Output, for an input that is stored as another type
			b.done[e] = n.args[0]
			continue
		}
		if e.op == opInput && e.typ == Bool { // stored as U8
			n.typ = U8
			n = node{op: Ne, typ: Bool, args: [3]int{b.intern(n), b.intern(node{op: opConst, typ: U8})}}
		}
		b.done[e] = b.intern(n)
		if len(b.nodes) > 4*maxNodes {
			b.err = fmt.Errorf("more than %d operations: %w", maxNodes, ErrInvalid)
			return 0
		}
	}
	return b.done[root]
}

// definition returns the definition of a named operation, the same one each time.
func (b *builder) definition(e *Expr) *Expr {
	if b.defined[e] == nil {
		b.defined[e] = definitions[e.op](e.args)
	}
	return b.defined[e]
}

// intern returns the index of a node that computes what n does.
func (b *builder) intern(n node) int {
	if n.op.commutes() && b.hash[n.args[0]] > b.hash[n.args[1]] {
		n.args[0], n.args[1] = n.args[1], n.args[0]
	}
	if same, ok := b.same(n); ok {
		return same
	}
	if bits, ok := b.fold(n); ok {
		n = node{op: opConst, typ: n.typ, bits: bits}
	}
	if i, ok := b.known[n]; ok {
		return i
	}
	b.text = append(b.text[:0], n.op.String()...)
	for _, t := range []Type{n.typ, n.elem} {
		b.text = append(append(b.text, ' '), t.String()...)
	}
	b.text = strconv.AppendInt(append(b.text, ' '), int64(n.slot), 10)
	b.text = strconv.AppendUint(append(b.text, ' '), n.bits, 10)
	for _, a := range n.args[:ops[n.op].arity] {
		b.text = strconv.AppendUint(append(b.text, ' '), b.hash[a], 10)
	}
	h := fnv.New64a()
	h.Write(b.text)
	b.nodes, b.hash = append(b.nodes, n), append(b.hash, h.Sum64())
	b.known[n] = len(b.nodes) - 1
	return len(b.nodes) - 1
}

// same returns an operand that n is equal to, bit for bit, for all values. x + 0 is not among them (-0 + 0 is
// 0), x·1 and x - 0 are.
func (b *builder) same(n node) (int, bool) {
	x := n.args[0]
	number := func(i int, v float64) bool {
		c := &b.nodes[n.args[i]]
		return c.op == opConst && c.bits == numberBits(n.typ, v)
	}
	switch n.op {
	case Neg, Not:
		if a := &b.nodes[x]; a.op == n.op {
			return a.args[0], true
		}
	case Mul: // the operands were sorted, so that a number may come first
		if number(1, 1) {
			return x, true
		}
		if number(0, 1) {
			return n.args[1], true
		}
	case Div:
		if number(1, 1) {
			return x, true
		}
	case Sub:
		if number(1, 0) {
			return x, true
		}
	case Add, Or, Xor:
		if n.typ.IsFloat() {
			if c := math.Copysign(0, -1); number(1, c) {
				return x, true
			} else if number(0, c) {
				return n.args[1], true
			}
			break
		}
		if number(1, 0) {
			return x, true
		}
		if number(0, 0) {
			return n.args[1], true
		}
	case Select:
		if c := &b.nodes[x]; c.op == opConst {
			return n.args[2-int(c.bits)], true
		}
		if n.args[1] == n.args[2] {
			return n.args[1], true
		}
	case Min, Max:
		if n.args[0] == n.args[1] {
			return x, true
		}
	}
	return 0, false
}

// numberBits returns the bits of v in type t.
func numberBits(t Type, v float64) uint64 {
	if t.IsFloat() {
		return elementBits(t, Value{Float: v})
	}
	return wrap(t, uint64(int64(v)))
}

// fold computes an operation on numbers if every device computes the same bits, that is, if the operation is correctly
// rounded and the result is neither a NaN nor denormal.
func (b *builder) fold(n node) (bits uint64, ok bool) {
	info := &ops[n.op]
	if n.op < Neg || n.op.reduces() || n.op.named() || info.ulp > 0 && n.op != Div || n.op == Div && n.typ.IsFloat() ||
		n.op == FMA {
		return 0, false
	}
	var args [3]Value
	for i, a := range n.args[:info.arity] {
		c := &b.nodes[a]
		if c.op != opConst {
			return 0, false
		}
		args[i] = constant(c)
	}
	from := n.typ
	if info.arity > 0 {
		from = b.nodes[n.args[info.arity-1]].typ
	}
	v := compute(&n, from, &args)
	if n.typ.IsFloat() {
		if v.Float != v.Float || v.Bound != 0 {
			return 0, false
		}
		return numberBits(n.typ, v.Float), true
	}
	return v.Int, v.Bound == 0
}

// order keeps the nodes that outputs need, in the order in which a walk from the outputs meets them. Since operands are
// ordered by hash, the result does not depend on the order in which the expression was made.
func (b *builder) order() {
	nodes := b.nodes
	place := make([]int, len(nodes)) // 1 more than the new index
	var kept []node
	var visit func(i int)
	visit = func(i int) {
		if place[i] > 0 {
			return
		}
		n := nodes[i]
		for j := range ops[n.op].arity {
			visit(n.args[j])
			n.args[j] = place[n.args[j]] - 1
		}
		kept = append(kept, n)
		place[i] = len(kept)
	}
	for i := range b.outputs {
		o := &b.outputs[i]
		visit(o.node)
		o.node = place[o.node] - 1
	}
	b.nodes = kept
}
