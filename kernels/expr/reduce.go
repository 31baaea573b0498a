package expr

// Reductions: which nodes of a map are computed when, and the maps without reductions that it is divided into.

import (
	"fmt"
	"slices"
)

// phases says in which order the nodes of a map with reductions are computed. The elements of a row, which differ in the
// last dimension only, are visited once for each level: nodes of level k need the results of reductions of level k
// and below. After the last level the elements are visited once more if an output has a value for each of them.
type phases struct {
	level      []int
	uniform    []bool // nodes with one value for a row
	reductions []int  // nodes
	levels     int    // of reductions
	steps      func() ([]Step, error)
}

// arrange computes phases.
func (m *Map) arrange() error {
	m.level, m.uniform = make([]int, len(m.nodes)), make([]bool, len(m.nodes))
	length := false
	for i := range m.nodes {
		n := &m.nodes[i]
		m.uniform[i] = n.op != opInput && n.op != opIndex && n.op != opRandom
		for _, a := range n.args[:ops[n.op].arity] {
			m.level[i] = max(m.level[i], m.level[a])
			m.uniform[i] = m.uniform[i] && m.uniform[a]
		}
		length = length || n.op == opLength
		if n.op.reduces() {
			m.level[i]++
			m.uniform[i] = true
			m.reductions = append(m.reductions, i)
			m.levels = max(m.levels, m.level[i])
		}
	}
	if length && m.levels == 0 {
		return fmt.Errorf("the length of the last dimension in a map without a reduction: %w", ErrInvalid)
	}
	return nil
}

// Reduces reports whether the map has a reduction.
func (m *Map) Reduces() bool { return m.levels > 0 }

// OncePerRow reports whether an output has one element for a row, that is, for all positions in the last dimension. Its
// step there is 0.
func (m *Map) OncePerRow(output int) bool { return m.oncePerRow(len(m.inputs) + output) }

// oncePerRow reports whether operand k is an output with one element for a row.
func (m *Map) oncePerRow(k int) bool {
	return m.levels > 0 && k >= len(m.inputs) && m.uniform[m.outputs[k-len(m.inputs)].node]
}

// needed marks the nodes that the given ones are computed from, up to reductions, whose results are known.
func (m *Map) needed(roots ...int) []bool {
	need := make([]bool, len(m.nodes))
	for _, i := range roots {
		need[i] = true
	}
	for i := len(m.nodes) - 1; i >= 0; i-- {
		if n := &m.nodes[i]; need[i] && !n.op.reduces() {
			for _, a := range n.args[:ops[n.op].arity] {
				need[a] = true
			}
		}
	}
	return need
}

// operands returns the nodes that reductions of a level reduce, and those reductions.
func (m *Map) operandsOf(level int) (operands, reductions []int) {
	for _, r := range m.reductions {
		if m.level[r] == level {
			operands, reductions = append(operands, m.nodes[r].args[0]), append(reductions, r)
		}
	}
	return operands, reductions
}

// outputsBy returns the outputs with one element for a row, or those with one for each element.
func (m *Map) outputsBy(row bool) []int {
	var list []int
	for j, o := range m.outputs {
		if m.uniform[o.node] == row {
			list = append(list, j)
		}
	}
	return list
}

// Step is one step in the evaluation of a map with reductions on a machine for block programs: a map without reductions
// that is computed for every element, or for every row if Rows is set. Results of earlier reductions are among its inputs.
type Step struct {
	Map      *Map
	Block    *Block
	Rows     bool
	Inputs   []int // of each input: the operand of the whole map, or, from the number of its operands on, a reduction
	Params   []int // of each parameter: that of the whole map, or their number for the length of the last dimension
	Outputs  []int // operands of the whole map; for a step of reductions, the numbers of those as among Inputs
	Combine  []Op  // for each output the reduction it goes to; nil if outputs are stored
	Reducing []Type
}

// Steps returns the steps of a map with reductions. They are made once, and callers must not change them. The error wraps
// ErrInvalid if a step has no block program.
func (m *Map) Steps() ([]Step, error) { return m.steps() }

func (m *Map) divide() ([]Step, error) {
	var list []Step
	operands := len(m.inputs) + len(m.outputs)
	add := func(s Step, roots []int, elems []Type) error {
		s.Map, s.Inputs, s.Params = m.part(roots, elems)
		var err error
		s.Block, err = s.Map.Block()
		list = append(list, s)
		return err
	}
	for level := 1; level <= m.levels; level++ {
		roots, reductions := m.operandsOf(level)
		s := Step{}
		var elems []Type
		for _, r := range reductions {
			s.Outputs = append(s.Outputs, operands+slices.Index(m.reductions, r))
			s.Combine = append(s.Combine, m.nodes[r].op)
			s.Reducing = append(s.Reducing, m.nodes[r].typ)
			elems = append(elems, m.nodes[r].typ.register())
		}
		if err := add(s, roots, elems); err != nil {
			return nil, err
		}
	}
	for _, rows := range []bool{true, false} {
		s := Step{Rows: rows}
		var roots []int
		var elems []Type
		for _, j := range m.outputsBy(rows) {
			s.Outputs = append(s.Outputs, len(m.inputs)+j)
			roots, elems = append(roots, m.outputs[j].node), append(elems, m.outputs[j].elem)
		}
		if len(roots) == 0 {
			continue
		}
		if err := add(s, roots, elems); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// register returns the type of 32 or 64 bits that holds values of t in a register.
func (t Type) register() Type {
	switch t {
	case I8, I16:
		return I32
	case U8, U16, Bool:
		return U32
	}
	return t
}

// part returns the map of some nodes, with the results of reductions as inputs, which inputs and params describe as in Step.
// Outputs are stored as elems.
func (m *Map) part(roots []int, elems []Type) (p *Map, inputs, params []int) {
	need := m.needed(roots...)
	operands := len(m.inputs) + len(m.outputs)
	made := make([]*Expr, len(m.nodes))
	slot := func(list *[]int, x int) int {
		if i := slices.Index(*list, x); i >= 0 {
			return i
		}
		*list = append(*list, x)
		return len(*list) - 1
	}
	for i := range m.nodes {
		n := &m.nodes[i]
		switch {
		case !need[i]:
		case n.op.reduces(): // its result lies in memory as registers have it
			made[i] = Input(slot(&inputs, operands+slices.Index(m.reductions, i)), n.typ.register()).Cast(n.typ)
		case n.op == opInput:
			made[i] = Input(slot(&inputs, n.slot), n.elem)
		case n.op == opParam:
			made[i] = Param(slot(&params, n.slot), n.typ)
		case n.op == opLength:
			made[i] = Param(slot(&params, len(m.params)), I64)
		default:
			e := &Expr{op: n.op, typ: n.typ, bits: n.bits}
			for j, a := range n.args[:ops[n.op].arity] {
				e.args[j] = made[a]
			}
			made[i] = e
		}
	}
	var outputs []*Expr
	for k, i := range roots {
		e := made[i]
		if !elems[k].holds(e.typ) {
			e = e.Cast(elems[k])
		}
		outputs = append(outputs, e.Output(elems[k]))
	}
	p, err := New(outputs...)
	if err != nil {
		panic("expr: a part of a map is not a map: " + err.Error())
	}
	return p, inputs, params
}

// identity returns the bits of a reduction's result for no elements, in a type.
func identityOf(op Op, t Type) uint64 {
	lo, hi := int64(0), uint64(0)
	if t.integer() {
		lo, hi = t.ends()
	}
	switch op {
	case Product:
		return t.number(1)
	case Smallest:
		if t.float() {
			return infinity(t)
		}
		return hi
	case Largest:
		if t.float() {
			return infinity(t) | 1<<(types[t].bits-1)
		}
		return uint64(lo)
	case All:
		if t == Bool {
			return 1
		}
		return wrap(t, ^uint64(0))
	}
	return 0
}

// infinity returns the bits of a floating type's infinity.
func infinity(t Type) uint64 {
	if t == F64 {
		return 0x7ff0000000000000
	}
	return 0x7f800000
}
