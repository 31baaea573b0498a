package expr

// Map, the canonical form of one expression or several: one list of operations in which nothing is computed twice.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/concord-compute/concord/runtime/driver"
)

// Map computes the elements of outputs from the elements of inputs that belong to them. It is immutable and safe for
// concurrent use.
type Map struct {
	operations            // without named ones, as evaluators need them
	form       operations // with named ones, as text has them
	inputs     []Type     // of the elements of each
	params     []Type
	text       string // canonical
	block      func() (*Block, error)
	phases     // of the reductions, if there are any
}

// operations are those of a map, and what it stores.
type operations struct {
	nodes   []node // operands stand before the nodes that use them
	outputs []output
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
// F16 or BF16 for an F32, U8 for a Bool. A [Expr.Cast] to F16 or BF16 that is stored so is rounded once. Without
// Output, [New] stores a value in its own type, and a Bool as a U8.
func (e *Expr) Output(t Type) *Expr {
	switch {
	case e.err != nil:
		return e
	case t.Size() == 0 || t == Bool || !holds(t, e.typ):
		return wrong("an output of type %v for a value of %v", t, e.typ)
	}
	if t != t.Computed() && e.op == Cast && e.rule == roundOnce {
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

// must returns what is made of constants, with which there is no error.
func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// newMap is New for that number of operands.
func newMap(slots int, outputs []*Expr) (*Map, error) {
	if len(outputs) == 0 {
		return nil, fmt.Errorf("a map needs an output: %w", ErrInvalid)
	}
	for i, e := range outputs {
		switch {
		case e == nil:
			return nil, fmt.Errorf("output %d is nil: %w", i, ErrInvalid)
		case e.err != nil:
			return nil, fmt.Errorf("output %d: %w", i, e.err)
		case e.op == 0:
			return nil, fmt.Errorf("output %d is an empty expression: %w", i, ErrInvalid)
		}
	}
	form, named, err := build(outputs, false)
	if err != nil {
		return nil, err
	}
	m := &Map{operations: form, form: form}
	if named {
		if m.operations, _, err = build(outputs, true); err != nil {
			return nil, err
		}
	}
	if err := m.check(slots); err != nil {
		return nil, err
	}
	m.text = m.form.canonical()
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

func (o *operations) canonical() string {
	var b strings.Builder
	for i := range o.nodes {
		n := &o.nodes[i]
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
	for i, out := range o.outputs {
		if i > 0 {
			b.WriteByte(';')
		}
		fmt.Fprintf(&b, "out.%v.%d", out.elem, out.node)
	}
	return b.String()
}

// opByName and typeByName serve Parse.
var opByName = func() map[string]Op {
	list := map[string]Op{}
	for op := opInput; op < opLast; op++ {
		if op.valid() {
			list[ops[op].name] = op
		}
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
		t, err := driver.ParseType(fields[1])
		if err != nil {
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
		case op == opConst && t.IsFloat():
			e = &Expr{op: opConst, typ: t, bits: bits}
			if t.Computed() != t || t == F32 && bits>>32 != 0 {
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
