package expr

// Reductions: which nodes of a map are computed when, and the maps without reductions that it is divided into.

import (
	"fmt"
	"math"
	"slices"
)

// phases says in which order the nodes of a map with reductions are computed. The elements of a row, which
// differ in the last dimension only, are visited once for each level: nodes of level k need the results of
// reductions of level k and below. After the last level the elements are visited once more if an output has a
// value for each of them.
type phases struct {
	level      []int
	uniform    []bool // nodes with one value for a row
	reductions []int  // nodes
	values     []int  // other nodes with one value for a row that nodes which differ within a row use
	levels     int    // of reductions
	locating   int    // how many reductions are to places
	steps      func() (division, error)
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
			if n.op.locates() {
				m.locating++
			}
		}
	}
	for i := range m.nodes {
		n := &m.nodes[i]
		if m.levels == 0 || m.uniform[i] && !n.op.reduces() {
			continue
		}
		for _, a := range n.args[:ops[n.op].arity] {
			if x := m.nodes[a].op; m.uniform[a] && !x.reduces() && x != opConst && x != opParam && x != opLength &&
				!slices.Contains(m.values, a) {
				m.values = append(m.values, a)
			}
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
	return m.neededTo(func(i int) bool { return m.nodes[i].op.reduces() }, roots...)
}

// neededTo is needed up to the nodes that known reports.
func (m *Map) neededTo(known func(i int) bool, roots ...int) []bool {
	need := make([]bool, len(m.nodes))
	for _, i := range roots {
		need[i] = true
	}
	for i := len(m.nodes) - 1; i >= 0; i-- {
		if n := &m.nodes[i]; need[i] && !known(i) {
			for _, a := range n.args[:ops[n.op].arity] {
				need[a] = true
			}
		}
	}
	return need
}

// operandsOf returns the nodes that reductions of a level reduce, and those reductions.
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

// Step is one step in the evaluation of a map with reductions by block programs: a map without reductions, for
// every element, or for every row if Rows is set. What earlier steps computed is among its inputs.
//
// Operands of steps are numbered: those of the whole map, then the results of its reductions, then other values
// of rows, then what the reductions reduce.
type Step struct {
	Map     *Map
	Block   *Block
	Rows    bool
	Inputs  []int // the operand that each input is
	Params  []int // of each parameter: that of the whole map, or their number for the length of the last dimension
	Outputs []int // the operand that each output is
	Combine []Op  // for each of the first outputs the reduction that it goes to; outputs after these are those of the map
	Types   []Type
	Direct  []int // for each output that goes to a reduction the input of the whole map whose values it has, or -1
}

// division has the steps of a map with reductions.
type division struct {
	list []Step
	// where the steps for rows begin whose elements stay in memory once they are computed, 0 if these are the same steps
	kept int
}

// Steps returns the steps of a map with reductions, in the order of which [Machine] counts them. They are made
// once, and callers must not change them. The error wraps ErrInvalid if a step has no block program.
func (m *Map) Steps() ([]Step, error) {
	d, err := m.steps()
	return d.list, err
}

func (m *Map) divide() (division, error) {
	long, _, err := m.stepsOf(false)
	if err != nil {
		return division{}, err
	}
	short, differ, err := m.stepsOf(true)
	if err != nil || !differ {
		return division{list: long}, err
	}
	return division{append(long, short...), len(long)}, nil
}

// The numbers of operands of steps.
func (m *Map) resultAt(reduction int) int { return len(m.inputs) + len(m.outputs) + reduction }
func (m *Map) valueAt(i int) int          { return m.resultAt(len(m.reductions)) + i }
func (m *Map) reducedAt(reduction int) int {
	return m.valueAt(len(m.values)) + reduction
}

// stepsOf returns the steps, with keep those in which what was reduced is not computed again, and whether there
// is such a thing.
func (m *Map) stepsOf(keep bool) (list []Step, kept bool, err error) {
	add := func(s Step, level int, roots []int) error {
		if len(roots) == 0 {
			return nil
		}
		var err error
		if s.Map, s.Inputs, s.Params, err = m.part(roots, s.Types, s.Rows, keep, level); err != nil {
			return err
		}
		s.Block, err = s.Map.Block()
		list = append(list, s)
		kept = kept || slices.ContainsFunc(s.Inputs, func(k int) bool { return k >= m.reducedAt(0) })
		return err
	}
	for level := 0; ; level++ {
		var roots []int
		s := Step{Rows: true}
		for i, v := range m.values {
			if m.level[v] == level {
				s.Outputs, s.Types, roots = append(s.Outputs, m.valueAt(i)), append(s.Types, widened(m.nodes[v].typ)),
					append(roots, v)
			}
		}
		if level == m.levels {
			s, roots = m.stored(s, roots)
		}
		if err := add(s, level, roots); err != nil {
			return nil, false, err
		}
		s = Step{}
		if level == m.levels {
			if m.early() {
				return list, kept, nil
			}
			s, roots = m.stored(s, nil)
			err := add(s, level, roots)
			return list, kept, err
		}
		operands, reductions := m.operandsOf(level + 1)
		for j, r := range reductions {
			x, direct := &m.nodes[operands[j]], -1
			if x.op == opInput {
				direct = x.slot
			}
			s.Outputs, s.Types = append(s.Outputs, m.reducedAt(slices.Index(m.reductions, r))), append(s.Types, widened(x.typ))
			s.Combine, s.Direct = append(s.Combine, m.nodes[r].op), append(s.Direct, direct)
		}
		if m.early() {
			s, operands = m.stored(s, operands)
		}
		if err := add(s, level, operands); err != nil {
			return nil, false, err
		}
	}
}

// early reports whether the outputs with a value for each element are stored when these are visited for
// reductions: if none needs a reduction, and elements are visited but once, since an output may be the same
// memory as an input.
func (m *Map) early() bool {
	return m.levels == 1 && !slices.ContainsFunc(m.outputsBy(false), func(j int) bool {
		return m.level[m.outputs[j].node] > 0
	})
}

// stored adds to a step the outputs of the map that are stored once for each row if it is one for rows, and
// otherwise the others.
func (m *Map) stored(s Step, roots []int) (Step, []int) {
	for _, j := range m.outputsBy(s.Rows) {
		s.Outputs, s.Types, roots = append(s.Outputs, len(m.inputs)+j), append(s.Types, m.outputs[j].elem),
			append(roots, m.outputs[j].node)
	}
	return s, roots
}

// widened returns the type of 32 or 64 bits that holds values of t in a register.
func widened(t Type) Type {
	switch t {
	case I8, I16:
		return I32
	case U8, U16, Bool:
		return U32
	}
	return t
}

// part returns the map of a step after the reductions of a level: that of some nodes, with what is known by
// then as inputs, which inputs and params describe as in Step. Outputs are stored as elems.
func (m *Map) part(roots []int, elems []Type, rows, keep bool, level int) (p *Map, inputs, params []int, err error) {
	known := make([]int, len(m.nodes)) // the operand of steps that each node is, or -1
	for i := range m.nodes {
		n := &m.nodes[i]
		value, reduced := slices.Index(m.values, i), slices.IndexFunc(m.reductions, func(r int) bool {
			return m.nodes[r].args[0] == i
		})
		switch known[i] = -1; {
		case n.op.reduces():
			known[i] = m.resultAt(slices.Index(m.reductions, i))
		case value >= 0 && (!rows || m.level[i] < level):
			known[i] = m.valueAt(value)
		case keep && reduced >= 0 && !m.uniform[i] && n.op != opInput && n.op != opIndex && m.level[i] < level:
			known[i] = m.reducedAt(reduced)
		}
	}
	need := m.neededTo(func(i int) bool { return known[i] >= 0 }, roots...)
	made := make([]*Expr, len(m.nodes))
	operand := func(op Op, list *[]int, x int, elem, typ Type) *Expr {
		i := slices.Index(*list, x)
		if i < 0 {
			i = len(*list)
			*list = append(*list, x)
		}
		return &Expr{op: op, typ: typ, elem: elem, slot: i}
	}
	for i := range m.nodes {
		n := &m.nodes[i]
		switch t := widened(n.typ); {
		case !need[i]:
		case known[i] >= 0: // in memory as registers have it
			made[i] = operand(opInput, &inputs, known[i], t, t).Cast(n.typ)
		case n.op == opInput:
			made[i] = operand(opInput, &inputs, n.slot, n.elem, n.typ)
		case n.op == opParam:
			made[i] = operand(opParam, &params, n.slot, 0, n.typ)
		case n.op == opLength:
			made[i] = operand(opParam, &params, len(m.params), 0, I64)
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
		if !holds(elems[k], e.typ) {
			e = e.Cast(elems[k])
		}
		outputs = append(outputs, e.Output(elems[k]))
	}
	p, err = newMap(255, outputs)
	return p, inputs, params, err
}

// identityOf returns the bits of a reduction's result for no elements, in a type.
func identityOf(op Op, t Type) uint64 {
	lo, hi := int64(0), uint64(0)
	if t.IsInteger() {
		lo, hi = ends(t)
	}
	switch op {
	case Product:
		return numberBits(t, 1)
	case Smallest:
		if t.IsFloat() {
			return numberBits(t, math.Inf(1))
		}
		return hi
	case Largest:
		if t.IsFloat() {
			return numberBits(t, math.Inf(-1))
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
