package expr

// Map, the canonical form of one expression or several: one list of operations in which nothing is computed twice.

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Map computes the elements of outputs from the elements of inputs that belong to them. It is immutable and safe for
// concurrent use.
type Map struct {
	nodes   []node // operands stand before the nodes that use them
	inputs  []Type // of the elements of each
	params  []Type
	outputs []output
	text    string // canonical
	block   func() (*Block, error)
	phases  // of the reductions, if there are any
}

// node is one operation of a Map.
type node struct {
	op   Op
	typ  Type
	elem Type
	slot int
	bits uint64
	args [3]int // indices of nodes, as many as op has operands
}

type output struct {
	node int
	elem Type
}

// maxNodes is the largest number of operations of a map.
const maxNodes = 1024

// Output returns e as an output whose elements are stored as t, which has to hold values of e's type: that type,
// F16 or BF16 for an F32, U8 for a Bool. A cast that is stored in 16 bits is rounded once. Without Output, [New] stores a value in its own type, and a Bool as a U8.
func (e *Expr) Output(t Type) *Expr {
	switch {
	case e.err != nil:
		return e
	case !t.valid() || t == Bool || !t.holds(e.typ):
		return wrong("an output of type %v for a value of %v", t, e.typ)
	}
	if t != t.computed() && e.op == Cast {
		if once := e.args[0].odd(); once.err == nil {
			e = once
		}
	}
	return &Expr{op: Cast, typ: e.typ, elem: t, args: [3]*Expr{e}} // elem of an input is the type of its elements
}

// New makes a Map with an output for each expression. Common subexpressions are computed once, operations on numbers
// alone by New; beyond that, only identities that keep every bit of every result are used. The error wraps
// ErrInvalid; its cause is a mistake in an expression, a slot that is not used or is used with two types, or a limit
// that is exceeded.
func New(outputs ...*Expr) (*Map, error) { return newMap(maxSlots, outputs) }

// newMap is New for that number of operands.
func newMap(slots int, outputs []*Expr) (*Map, error) {
	if len(outputs) == 0 {
		return nil, fmt.Errorf("a map needs an output: %w", ErrInvalid)
	}
	b := &builder{known: map[node]int{}, done: map[*Expr]int{}}
	m := &b.m
	for i, e := range outputs {
		switch {
		case e == nil:
			return nil, fmt.Errorf("output %d is nil: %w", i, ErrInvalid)
		case e.err != nil:
			return nil, fmt.Errorf("output %d: %w", i, e.err)
		case e.op == 0:
			return nil, fmt.Errorf("output %d is an empty expression: %w", i, ErrInvalid)
		}
		elem := e.typ.stored()
		if e.elem != 0 {
			elem = e.elem
		}
		m.outputs = append(m.outputs, output{b.add(e), elem})
	}
	if b.err != nil {
		return nil, b.err
	}
	b.order()
	if err := m.check(slots); err != nil {
		return nil, err
	}
	m.text = m.canonical()
	m.block = sync.OnceValues(m.lower)
	m.steps = sync.OnceValues(m.divide)
	return m, nil
}

// check checks that there are no more operands than slots, and the other limits of sizes.
func (m *Map) check(slots int) error {
	for _, n := range m.nodes {
		var list *[]Type
		switch n.op {
		case opInput:
			list = &m.inputs
		case opParam:
			list = &m.params
			n.elem = n.typ
		default:
			continue
		}
		for len(*list) <= n.slot {
			*list = append(*list, 0)
		}
		if had := (*list)[n.slot]; had != 0 && had != n.elem {
			return fmt.Errorf("%v %d has elements of %v and of %v: %w", n.op, n.slot, had, n.elem, ErrInvalid)
		}
		(*list)[n.slot] = n.elem
	}
	if err := m.arrange(); err != nil {
		return err
	}
	for name, list := range map[string][]Type{"input": m.inputs, "parameter": m.params} {
		if i := slices.Index(list, 0); i >= 0 {
			return fmt.Errorf("%s %d is not used, but %d is: %w", name, i, len(list)-1, ErrInvalid)
		}
	}
	switch {
	case len(m.inputs)+len(m.outputs)+len(m.reductions) > slots:
		return fmt.Errorf("%d inputs, outputs and reductions; there can be %d: %w", len(m.inputs)+len(m.outputs)+
			len(m.reductions), slots, ErrInvalid)
	case len(m.nodes) > maxNodes:
		return fmt.Errorf("%d operations; there can be %d: %w", len(m.nodes), maxNodes, ErrInvalid)
	}
	return nil
}

// builder makes the list of a Map's operations.
type builder struct {
	m     Map
	hash  []uint64 // of what each node computes
	known map[node]int
	done  map[*Expr]int
	err   error
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
		ready := true
		for _, a := range e.args[:ops[e.op].arity] {
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
		if len(b.m.nodes) > 4*maxNodes {
			b.err = fmt.Errorf("more than %d operations: %w", maxNodes, ErrInvalid)
			return 0
		}
	}
	return b.done[root]
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
	h := fnv.New64a()
	fmt.Fprint(h, n.op, n.typ, n.elem, n.slot, n.bits)
	for _, a := range n.args[:ops[n.op].arity] {
		fmt.Fprint(h, " ", b.hash[a])
	}
	b.m.nodes, b.hash = append(b.m.nodes, n), append(b.hash, h.Sum64())
	b.known[n] = len(b.m.nodes) - 1
	return len(b.m.nodes) - 1
}

// same returns an operand that n is equal to, bit for bit, for all values. x + 0 is not among them (-0 + 0 is
// 0), x·1 and x - 0 are.
func (b *builder) same(n node) (int, bool) {
	x := n.args[0]
	number := func(i int, v float64) bool {
		c := &b.m.nodes[n.args[i]]
		return c.op == opConst && c.bits == n.typ.number(v)
	}
	switch n.op {
	case Neg, Not:
		if a := &b.m.nodes[x]; a.op == n.op {
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
		if n.typ.float() {
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
		if c := &b.m.nodes[x]; c.op == opConst {
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

// number returns the bits of v in type t.
func (t Type) number(v float64) uint64 {
	switch t {
	case F32:
		return uint64(math.Float32bits(float32(v)))
	case F64:
		return math.Float64bits(v)
	}
	return wrap(t, uint64(int64(v)))
}

// fold computes an operation on numbers if every device computes the same bits, that is, if the operation is correctly
// rounded and the result is neither a NaN nor denormal.
func (b *builder) fold(n node) (bits uint64, ok bool) {
	info := &ops[n.op]
	if n.op < Neg || n.op.reduces() || info.ulp > 0 && n.op != Div || n.op == Div && n.typ.float() || n.op == FMA {
		return 0, false
	}
	var args [3]Value
	for i, a := range n.args[:info.arity] {
		c := &b.m.nodes[a]
		if c.op != opConst {
			return 0, false
		}
		args[i] = constant(c)
	}
	from := n.typ
	if info.arity > 0 {
		from = b.m.nodes[n.args[info.arity-1]].typ
	}
	v := compute(&n, from, &args)
	if n.typ.float() {
		if v.Float != v.Float || v.Bound != 0 {
			return 0, false
		}
		return n.typ.number(v.Float), true
	}
	return v.Int, v.Bound == 0
}

// order keeps the nodes that outputs need, in the order in which a walk from the outputs meets them. Since operands are
// ordered by hash, the result does not depend on the order in which the expression was made.
func (b *builder) order() {
	nodes := b.m.nodes
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
	for i := range b.m.outputs {
		o := &b.m.outputs[i]
		visit(o.node)
		o.node = place[o.node] - 1
	}
	b.m.nodes = kept
}

// Inputs returns the types of the inputs' elements.
func (m *Map) Inputs() []Type { return slices.Clone(m.inputs) }

// Params returns the types of the parameters.
func (m *Map) Params() []Type { return slices.Clone(m.params) }

// Outputs returns the types of the outputs' elements.
func (m *Map) Outputs() []Type {
	list := make([]Type, len(m.outputs))
	for i, o := range m.outputs {
		list[i] = o.elem
	}
	return list
}

// String returns the canonical form: equal maps have equal forms, and [Parse] reads it. It is one word: operations
// separated by semicolons, each with its type and its operands, which are positions in the list, and the outputs.
//
//	input.f32.0;const.f32.3fc00000;mul.f32.0,1;out.f32.2
func (m *Map) String() string { return m.text }

func (m *Map) canonical() string {
	var b strings.Builder
	for i := range m.nodes {
		n := &m.nodes[i]
		t := n.typ
		if n.op == opInput {
			t = n.elem
		}
		fmt.Fprintf(&b, "%v.%v.", n.op, t)
		switch n.op {
		case opInput, opParam:
			fmt.Fprintf(&b, "%d", n.slot)
		case opConst:
			fmt.Fprintf(&b, "%x", n.bits)
		case opRandom:
			fmt.Fprintf(&b, "%x,", n.bits)
		}
		for j, a := range n.args[:ops[n.op].arity] {
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strconv.Itoa(a))
		}
		b.WriteByte(';')
	}
	for i, o := range m.outputs {
		if i > 0 {
			b.WriteByte(';')
		}
		fmt.Fprintf(&b, "out.%v.%d", o.elem, o.node)
	}
	return b.String()
}

// opByName and typeByName serve Parse.
var opByName = func() map[string]Op {
	list := map[string]Op{}
	for op := opInput; op < opEnd; op++ {
		list[ops[op].name] = op
	}
	return list
}()

// Parse reads the canonical form of a Map. The error wraps ErrInvalid and names the part that is wrong.
func Parse(text string) (*Map, error) {
	bad := func(part, why string) error {
		return fmt.Errorf("%q in the form of a map: %s: %w", part, why, ErrInvalid)
	}
	var list, outputs []*Expr
	for part := range strings.SplitSeq(text, ";") {
		fields := strings.SplitN(part, ".", 3)
		if len(fields) != 3 {
			return nil, bad(part, "not an operation, a type and operands")
		}
		t, ok := TypeOf(fields[1])
		if !ok {
			return nil, bad(part, "no such type")
		}
		if len(list) > maxNodes {
			return nil, bad(part, fmt.Sprintf("more than %d operations", maxNodes))
		}
		op, ok := opByName[fields[0]]
		if !ok && fields[0] != "out" {
			return nil, bad(part, "no such operation")
		}
		var words []string
		if fields[2] != "" {
			words = strings.Split(fields[2], ",")
		}
		var bits uint64
		if op == opConst || op == opRandom {
			if len(words) == 0 {
				return nil, bad(part, "no bits")
			}
			var err error
			if bits, err = strconv.ParseUint(words[0], 16, 64); err != nil {
				return nil, bad(part, "bits are a hexadecimal number")
			}
			words = words[1:]
		}
		var at []int
		for _, w := range words {
			i, err := strconv.Atoi(w)
			if err != nil || i < 0 {
				return nil, bad(part, "operands are numbers")
			}
			at = append(at, i)
		}
		if op == opInput || op == opParam {
			if len(at) != 1 {
				return nil, bad(part, "needs a slot")
			}
			if op == opInput {
				list = append(list, Input(at[0], t))
			} else {
				list = append(list, Param(at[0], t))
			}
			continue
		}
		args := make([]*Expr, len(at))
		for i, a := range at {
			if a >= len(list) {
				return nil, bad(part, "an operand stands behind it")
			}
			args[i] = list[a]
		}
		if want := ops[op].arity; fields[0] != "out" && len(args) != want || fields[0] == "out" && len(args) != 1 {
			return nil, bad(part, "has a wrong number of operands")
		}
		var e *Expr
		switch {
		case fields[0] == "out":
			outputs = append(outputs, args[0].Output(t))
			continue
		case op == opConst && t.float():
			e = &Expr{op: opConst, typ: t, bits: bits}
			if t.computed() != t || t == F32 && bits>>32 != 0 {
				return nil, bad(part, "not a number of that type")
			}
		case op == opConst:
			e = Int(t, int64(bits))
		case op == opIndex:
			e = Index()
		case op == opLength:
			e = Length()
		case op == opRandom:
			e = Random(args[0], uint32(bits>>2), int(bits&3))
		case op == Cast:
			e = args[0].Cast(t)
		case op == Bits:
			e = args[0].Bits(t)
		case op == opOdd:
			e = args[0].odd()
		default:
			e = Apply(op, args...)
		}
		if e.err == nil && e.typ != t {
			return nil, bad(part, "its result is of type "+e.typ.String())
		}
		list = append(list, e)
	}
	m, err := New(outputs...)
	if err != nil {
		return nil, err
	}
	if m.text != text {
		return nil, bad(text, "not canonical")
	}
	return m, nil
}
