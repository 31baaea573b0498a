package expr

// Numbers of expressions as parameters, so that expressions which differ in numbers alone have one program.

import (
	"math"
	"slices"
)

// mostShared is how many numbers of a map become parameters at most: they take room that a layout needs.
const mostShared = 12

// Parameters returns outputs with parameters in place of their numbers, and the value of each parameter, as a launch
// takes it. Outputs that differ in such numbers alone so have one map, and one program. Small numbers and their halves
// stay, since operations with them are often simpler, as do divisors of integers and the counts of shifts. Of more than
// mostShared numbers the first ones become parameters, and the others stay. Outputs that have parameters or a mistake
// are returned as they are.
func Parameters(outputs ...*Expr) ([]*Expr, []any) {
	if slices.ContainsFunc(outputs, (*Expr).bad) {
		return outputs, nil
	}
	b := newBuilder(outputs, false)
	if b.err != nil {
		return outputs, nil
	}
	nodes := b.nodes // those of numbers alone are numbers here
	b.order()
	left := map[node]bool{} // what the map computes
	for _, n := range b.nodes {
		if n.op == opParam {
			return outputs, nil
		}
		left[n] = n.op == opConst
	}
	params, values := map[node]*Expr{}, []any(nil)
	shared := func(e *Expr, operand int) *Expr {
		n := nodes[b.done[e.args[operand]]]
		switch {
		case !left[n] || n.simple() || operand == 1 && e.typ.IsInteger() &&
			(e.op == Div || e.op == Rem || e.op == Shl || e.op == Shr):
			return nil
		case params[n] == nil && len(values) < mostShared:
			params[n] = Param(len(values), n.typ)
			values = append(values, n.value())
		}
		return params[n]
	}
	made := map[*Expr]*Expr{}
	list := make([]*Expr, len(outputs))
	for i, root := range outputs {
		for _, e := range ordered(root) {
			if made[e] = e; nodes[b.done[e]].op == opConst && e.elem == 0 { // elem is that of an output
				continue
			}
			made[e] = e.with(func(j int) *Expr {
				if p := shared(e, j); p != nil {
					return p
				}
				return made[e.args[j]]
			})
		}
		list[i] = made[root]
	}
	return list, values
}

// simple reports whether a number is worth to be known to a compiler.
func (n *node) simple() bool {
	switch {
	case n.typ == Bool:
		return true
	case n.typ.IsFloat():
		x := constant(n).Float
		return !(math.Abs(x) <= math.MaxFloat64) || math.Abs(x) <= 2 && 2*x == math.Trunc(2*x)
	case n.typ.IsSigned():
		return int64(n.bits) >= -2 && int64(n.bits) <= 2
	}
	return n.bits <= 2
}

// value returns a number as an argument of a launch.
func (n *node) value() any {
	switch n.typ {
	case F32:
		return math.Float32frombits(uint32(n.bits))
	case F64:
		return math.Float64frombits(n.bits)
	case I8:
		return int8(n.bits)
	case I16:
		return int16(n.bits)
	case I32:
		return int32(n.bits)
	case I64:
		return int64(n.bits)
	case U8:
		return uint8(n.bits)
	case U16:
		return uint16(n.bits)
	case U32:
		return uint32(n.bits)
	}
	return n.bits
}
