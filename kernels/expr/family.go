package expr

// The family "expr" of the catalog, through which devices find the implementations of a map.

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/half"
	"github.com/concord-compute/concord/source"
)

// Family is the ID of the family of every map's program.
const Family = "expr"

// The definitions of a program: the map in its canonical form, and the rank of the operands.
const (
	defineMap  = "MAP"
	defineRank = "RANK"
)

func init() {
	kernels.Register(kernels.Family{
		ID: Family, Doc: "expressions, computed element by element from operands of up to eight dimensions",
		Kernels: []string{Kernel, KernelColumns}, Defines: []string{defineMap, defineRank},
		Text: text, Check: checkDefine, Reference: reference, Bound: launchBound, Rows: launchRows, Native: native,
		Cases: cases, Work: workOf,
	})
}

// Unit returns the map's program for a device with the given features, where nil means source.Portable, and for
// operands of the given rank, which is 0 if all are dense (see [Layout.Rank]). The program comes from kernels.Unit.
func (m *Map) Unit(features *source.Features, rank int) (*source.Unit, error) {
	if features != nil && !features.FP64 && slices.ContainsFunc(m.nodes, func(n node) bool { return n.typ == F64 }) {
		return nil, fmt.Errorf("expr: the map computes in f64, and the device has no double precision: %w", ErrInvalid)
	}
	if m.Reduces() && rank == 0 {
		return nil, fmt.Errorf("expr: a map with reductions has rank 1 or more, see Layout: %w", ErrInvalid)
	}
	recent.Add(m.text, m)
	return kernels.Unit(Family, features, m.defines(rank)...)
}

func (m *Map) defines(rank int) []source.Define {
	return []source.Define{{Name: defineMap, Value: m.text}, {Name: defineRank, Value: strconv.Itoa(rank)}}
}

func checkDefine(d source.Define) error {
	if d.Name == defineRank {
		if n, err := strconv.Atoi(d.Value); err != nil || n < 0 || n > MaxRank {
			return fmt.Errorf("RANK=%s is not from 0 to %d", d.Value, MaxRank)
		}
		return nil
	}
	_, err := parseRecent(d.Value)
	return err
}

// recent keeps the maps that were used last, by their canonical forms, so that a program's definition need not
// be parsed again each time that a device needs its map.
var recent = must(lru.New[string, *Map](1024))

func parseRecent(text string) (*Map, error) {
	if m, ok := recent.Get(text); ok {
		return m, nil
	}
	m, err := Parse(text)
	if err == nil {
		recent.Add(text, m)
	}
	return m, err
}

// identity is the map of a program without definitions; it copies floats.
const identity = "input.f32.0;out.f32.0"

func definition(define func(name string) (string, bool)) (*Map, int, error) {
	text, ok := define(defineMap)
	if !ok {
		text = identity
	}
	value, _ := define(defineRank)
	rank, _ := strconv.Atoi(value)
	m, err := parseRecent(text)
	return m, rank, err
}

// among returns a function that looks up the value of a definition by its name.
func among(defs []source.Define) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		i := slices.IndexFunc(defs, func(d source.Define) bool { return d.Name == name })
		if i < 0 {
			return "", false
		}
		return defs[i].Value, true
	}
}

func text(defs []source.Define) (string, error) {
	m, rank, err := definition(among(defs))
	if err != nil {
		return "", err
	}
	if m.Reduces() && rank == 0 {
		return "", fmt.Errorf("%s=0 with reductions: %w", defineRank, ErrInvalid)
	}
	return m.Text(rank), nil
}

// OfUnit returns the map of a program of this family, and the rank of its operands.
func OfUnit(u *source.Unit) (m *Map, rank int, err error) { return definition(u.Define) }

// Launch has the arguments of one launch of a map's kernel. The zero value is ready for [Map.Read], which
// reuses its memory.
type Launch struct {
	Layout Layout
	Params []uint64 // bits of each parameter, extended to 64 with the sign if the type is signed
	given  Layout   // as the launch passes it
}

// Read reads the arguments of a launch of the map into l. It ends the launch, as the methods of [kernels.Call] do, if
// the layout is not valid for the map or a buffer is too small for it.
func (m *Map) Read(c *kernels.Call, l *Launch) {
	operands := len(m.inputs) + len(m.outputs)
	l.Params = l.Params[:0]
	for i, t := range m.params {
		l.Params = append(l.Params, argument(t, c, operands+i))
	}
	last := operands + len(m.params)
	if c.Params[last].Kind != source.Struct {
		n := int(c.Int(last))
		if n < 0 {
			c.Fail(last, "more elements than an int counts")
		}
		l.Layout.dense(n, operands)
	} else {
		if !l.given.read(c.Value(last), operands) {
			c.Fail(last, "not the bytes of a layout")
		}
		if err := m.simplify(&l.given, &l.Layout); err != nil {
			c.Fail(last, "%v", err)
		}
	}
	for k := range operands {
		dims, o := m.own(k, &l.Layout)
		c.Need(k, o.Reach(dims), m.elem(k).Size())
	}
}

// elem returns the type of the elements of operand k.
func (m *Map) elem(k int) Type {
	if k < len(m.inputs) {
		return m.inputs[k]
	}
	return m.outputs[k-len(m.inputs)].elem
}

// argument returns scalar argument i of a launch as the bits of a parameter of type t or, for the types of
// elements alone, of the type that they are computed in. Integers wrap.
func argument(t Type, c *kernels.Call, i int) uint64 {
	if t.IsFloat() {
		return elementBits(t.Computed(), Value{Float: c.Float(i)})
	}
	return wrap(t, uint64(c.Int(i)))
}

// workOf is Map.Work of the layout that a launch passes.
func workOf(c *kernels.Call, _ float64) (operations, moved float64) {
	m, _, err := OfUnit(c.Unit)
	if err != nil {
		return 0, 0
	}
	var l Launch
	m.Read(c, &l)
	w := m.Work(&l.Layout)
	return w.Operations, w.Bytes
}

// native returns the implementation that runs the block program in Go.
func native(u *source.Unit, _ string) kernels.Func {
	m, _, err := OfUnit(u)
	if err != nil {
		return nil
	}
	return m.native()
}

func (m *Map) native() kernels.Func {
	if m.Reduces() {
		steps, err := m.Steps()
		if err != nil {
			return m.reference
		}
		machine := &goMachine{steps}
		return func(c *kernels.Call) error { return m.Reduce(c, machine) }
	}
	b, err := m.Block()
	if err != nil {
		return m.reference // slow, and needs no compiler: a map that has too many numbers for the registers
	}
	operands := len(m.inputs) + len(m.outputs)
	return func(c *kernels.Call) error {
		var l Launch
		m.Read(c, &l)
		memory := make([][]byte, operands)
		for k := range memory {
			memory[k] = c.Bytes(k)
		}
		n := l.Layout.Len()
		tiles := (n + Tile - 1) / Tile
		return c.Parallel(tiles, 8, func(lo, hi int) {
			b.Run(&l.Layout, memory, l.Params, lo*Tile, min(hi*Tile, n))
		})
	}
}

// reference evaluates every element in float64.
func reference(c *kernels.Call) error {
	m, _, err := OfUnit(c.Unit)
	if err != nil {
		return err
	}
	return m.reference(c)
}

func (m *Map) reference(c *kernels.Call) error {
	var l Launch
	m.Read(c, &l)
	params := make([]Value, len(m.params))
	for i, t := range m.params {
		params[i] = valueOf(t, l.Params[i])
	}
	// An output may be the same buffer as an input, so all results are computed before the first is stored.
	var results []uint64
	m.visit(&l.Layout, params, func(k, at int) Value {
		t := m.inputs[k]
		return element(t, c.Bytes(k)[at*t.Size():])
	}, func(j, _ int, v Value) {
		results = append(results, elementBits(m.outputs[j].elem, v))
	})
	i := 0
	m.visit(&l.Layout, nil, nil, func(j, at int, _ Value) {
		t := m.outputs[j].elem
		putElement(c.Bytes(len(m.inputs) + j)[at*t.Size():], t, results[i])
		i++
	})
	return nil
}

// visit calls store for every element of every output, with its place in the output's buffer and its value,
// which is computed from the elements that load returns. If load is nil, nothing is computed.
func (m *Map) visit(l *Layout, params []Value, load func(k, at int) Value, store func(j, at int, v Value)) {
	e := evaluation{m: m, values: make([]Value, len(m.nodes))}
	whole, n := *l, 1
	if m.Reduces() {
		last := len(l.Dims) - 1
		whole, n = Layout{Dims: l.Dims[:last]}, l.Dims[last]
		for _, o := range l.Operands {
			whole.Operands = append(whole.Operands, Operand{First: o.First, Steps: o.Steps[:last]})
		}
	}
	inputs := make([]Value, len(m.inputs))
	whole.each(func(i int, at []int) {
		place := func(k, j int) int {
			if m.Reduces() {
				return at[k] + j*l.Operands[k].Steps[len(l.Dims)-1]
			}
			return at[k]
		}
		fetch := func(j int) []Value {
			for k := range inputs {
				inputs[k] = load(k, place(k, j))
			}
			return inputs
		}
		if load != nil {
			e.row(n, fetch, params, int64(i)*int64(n))
		}
		for j := range m.outputs {
			if k := len(m.inputs) + j; m.oncePerRow(k) {
				store(j, at[k], e.values[m.outputs[j].node])
			}
		}
		for x := range n {
			if load != nil && (n > 1 || m.Reduces()) {
				e.run(fetch(x), params, int64(i)*int64(n)+int64(x), m.levels)
			}
			for j, o := range m.outputs {
				if k := len(m.inputs) + j; !m.oncePerRow(k) {
					store(j, place(k, x), e.values[o.node])
				}
			}
		}
	})
}

// each calls f for every element with its position and its index in each operand's buffer. f must not keep the slice.
func (l *Layout) each(f func(i int, at []int)) {
	n := l.Len()
	at := make([]int, len(l.Operands))
	for i := range n {
		for k := range at {
			at[k] = l.Operands[k].First
		}
		for j, rest := len(l.Dims)-1, i; j >= 0; j-- {
			c := rest % l.Dims[j]
			rest /= l.Dims[j]
			for k := range at {
				at[k] += c * l.Operands[k].Steps[j]
			}
		}
		f(i, at)
	}
}

// element returns the number at the beginning of b.
func element(t Type, b []byte) Value {
	var bits uint64
	switch t.Size() {
	case 1:
		bits = uint64(b[0])
	case 2:
		bits = uint64(binary.NativeEndian.Uint16(b))
	case 4:
		bits = uint64(binary.NativeEndian.Uint32(b))
	default:
		bits = binary.NativeEndian.Uint64(b)
	}
	return valueOf(t, bits)
}

// valueOf returns the value of a type that has the given bits.
func valueOf(t Type, bits uint64) Value {
	switch t {
	case F32:
		return Value{Float: float64(math.Float32frombits(uint32(bits)))}
	case F64:
		return Value{Float: math.Float64frombits(bits)}
	case F16:
		return Value{Float: half.Float16(bits).Float64()}
	case BF16:
		return Value{Float: half.BFloat16(bits).Float64()}
	}
	return Value{Int: wrap(t, bits)}
}

// elementBits rounds a value to an element.
func elementBits(t Type, v Value) uint64 {
	switch t {
	case F32:
		return uint64(math.Float32bits(float32(v.Float)))
	case F64:
		return math.Float64bits(v.Float)
	case F16:
		return uint64(half.ToFloat16(v.Float))
	case BF16:
		return uint64(half.ToBFloat16(v.Float))
	}
	return v.Int
}

func putElement(b []byte, t Type, bits uint64) {
	switch t.Size() {
	case 1:
		b[0] = byte(bits)
	case 2:
		binary.NativeEndian.PutUint16(b, uint16(bits))
	case 4:
		binary.NativeEndian.PutUint32(b, uint32(bits))
	default:
		binary.NativeEndian.PutUint64(b, bits)
	}
}
