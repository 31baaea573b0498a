package expr

// The bounds of launches of programs, and some rows of them.

import (
	"encoding/binary"
	"slices"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

// launchBound is Family.Bound: that of [Map.Eval] for every element.
func launchBound(c *kernels.Call) (bound func(arg int, in [][]float64, ref []float64) []float64, known bool) {
	m, _, err := OfUnit(c.Unit)
	if err != nil {
		return nil, false
	}
	if !slices.ContainsFunc(m.nodes, func(n node) bool { return n.typ.IsFloat() }) {
		return nil, true
	}
	var l Launch
	m.Read(c, &l)
	return func(arg int, in [][]float64, ref []float64) []float64 {
		return m.bounds(&l.Layout, arg-len(m.inputs), in, ref)
	}, true
}

// mostOverlap is how many bytes of an operand a row may have if they are also those of other rows.
const mostOverlap = 256

// launchRows is Family.Rows: elements, where all operands are dense, else the positions in the first dimension. A map
// that has the number of an element is not divided.
func launchRows(c *kernels.Call) kernels.Rows {
	m, _, err := OfUnit(c.Unit)
	if err != nil || slices.ContainsFunc(m.nodes, func(n node) bool { return n.op == opIndex || n.op == opRandom }) {
		return kernels.Rows{}
	}
	operands := len(m.inputs) + len(m.outputs)
	last := operands + len(m.params)
	var l Launch
	m.Read(c, &l)
	var rows kernels.Rows
	if c.Params[last].Kind != source.Struct { // the number of elements
		rows.N = l.Layout.Len()
		for k := range operands {
			size := m.elem(k).Size()
			rows.Parts = append(rows.Parts, kernels.Part{Arg: k, Step: size, Len: size, Count: 1})
		}
		rows.Values = func(n int) map[int][]byte {
			return map[int][]byte{last: binary.NativeEndian.AppendUint64(nil, uint64(n))}
		}
		return rows
	}
	given := &l.given
	if m.Reduces() && len(given.Dims) == 1 || given.Len() == 0 {
		return kernels.Rows{}
	}
	some := Layout{Dims: slices.Clone(given.Dims)}
	var across []int // operands whose rows lie between each other
	rows.N = given.Dims[0]
	for k, o := range given.Operands {
		o.Steps = slices.Clone(o.Steps)
		dims, own := m.own(k, given)
		step, size := own.Steps[0], m.elem(k).Size()
		if step != 0 {
			rest := Operand{First: own.First, Steps: own.Steps[1:]}
			lo, hi, _ := rest.span(dims[1:])
			n := hi - lo + 1
			switch apart := max(step, -step) >= n; {
			case apart || k < len(m.inputs) && n*size <= mostOverlap:
				rows.Parts = append(rows.Parts, kernels.Part{Arg: k, First: lo * size, Step: step * size, Len: n * size,
					Count: 1})
				o.First, o.Steps[0] = o.First-lo, n
			case len(dims) == 2:
				rows.Parts = append(rows.Parts, kernels.Part{Arg: k, First: own.First * size, Step: step * size, Len: size,
					Count: dims[1], Jump: own.Steps[1] * size})
				o.First, o.Steps[0] = 0, 1
				across = append(across, k)
			default:
				return kernels.Rows{}
			}
		}
		some.Operands = append(some.Operands, o)
	}
	rows.Values = func(n int) map[int][]byte {
		some.Dims[0] = n
		for _, k := range across {
			some.Operands[k].Steps[1] = n
		}
		return map[int][]byte{last: some.Bytes()}
	}
	return rows
}
