package cpu

// Block programs of kernels/expr in vector instructions.

import (
	"slices"
	"sync"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/source"
)

func init() {
	vector(expr.Family, expr.Kernel, bindExpr)
	vector(expr.Family, expr.KernelColumns, bindExpr)
	for _, family := range []string{"saxpy", "arith", "fill", "copy", "cast", "activation", "reduce", "softmax", "norm"} {
		f, _ := kernels.Find(family)
		for _, name := range f.Kernels {
			vector(family, name, func(u *source.Unit) goFunc { return bindDefined(u, name) })
		}
	}
}

// arrangedCall is a launch of a map that was made from that of a kernel with a name. Later launches reuse it.
type arrangedCall struct {
	call
	layout []byte
}

var arrangedCalls = sync.Pool{New: func() any {
	n := new(arrangedCall)
	n.Host = &n.call
	return n
}}

// bindDefined returns the function for a kernel that is an expression with a name, or nil.
func bindDefined(u *source.Unit, kernel string) goFunc {
	d, ok := expr.DefinedOf(u, kernel)
	if !ok {
		return nil
	}
	run := bindMap(d.Map)
	if run == nil {
		return nil
	}
	return func(c *call) error {
		n := arrangedCalls.Get().(*arrangedCall)
		defer func() {
			clear(n.Args)
			clear(n.Params)
			n.Unit, n.device, n.ctx, n.chosen = nil, nil, nil, nil
			arrangedCalls.Put(n)
		}()
		n.device, n.ctx, n.chosen = c.device, c.ctx, c.chosen
		n.layout = d.Arrange(&c.Call, &n.Call, n.layout)
		return run(&n.call)
	}
}

// exprRoom is the word that has the memory of a program, and instructionWords the number of words of an instruction;
// see csrc/cpu/expr.h.
const exprRoom, instructionWords = 8, 4

// exprLinks is how many operations a chain of csrc/cpu/expr.h has at most.
const exprLinks = 128

// A program that needs more than exprStack bytes gets memory of the device: threads of programs may have small stacks.
const exprStack = 96 << 10

// exprLaunch holds the memory that one launch of a map needs. Later launches reuse it.
type exprLaunch struct {
	expr.Launch
	n     int
	words []uint64
	room  chan uint64               // memory for each range that runs at the same time, if the program needs it
	part  func(c *call, lo, hi int) // run as a func value, so that a launch allocates nothing
}

var exprLaunches = sync.Pool{New: func() any {
	l := new(exprLaunch)
	l.part = l.run
	return l
}}

// exprRanges has memory for the words of one range each, a copy of those of the launch.
var exprRanges = sync.Pool{New: func() any { return new([]uint64) }}

func bindExpr(u *source.Unit) goFunc {
	m, _, err := expr.OfUnit(u)
	if err != nil {
		return nil
	}
	return bindMap(m)
}

func bindMap(m *expr.Map) goFunc {
	if r := byRows(m); r != nil {
		other := bindSteps(m)
		if other == nil {
			return nil
		}
		return func(c *call) error {
			if done, err := r.launch(c, m); done || err != nil {
				return err
			}
			return other(c)
		}
	}
	return bindSteps(m)
}

// bindSteps returns the function for the block programs of a map, or nil.
func bindSteps(m *expr.Map) goFunc {
	if m.Reduces() {
		return bindReducing(m)
	}
	b, err := m.Block()
	if err != nil {
		return nil
	}
	b = asStored(b)
	code := encodeBlock(b)
	need := blockBytes(b)
	elems := append(m.Inputs(), m.Outputs()...)
	bytes, written := 0, 0 // of one element of every operand, and of every output
	for k, t := range elems {
		bytes += t.Size()
		if k >= len(m.Inputs()) {
			written += t.Size()
		}
	}
	return func(c *call) error {
		l := exprLaunches.Get().(*exprLaunch)
		defer exprLaunches.Put(l)
		m.Read(&c.Call, &l.Launch)
		l.n = l.Layout.Len()
		if l.n == 0 {
			return nil
		}
		l.words = append(l.words[:0], 0, 0, uint64(len(b.Instructions)), uint64(b.Prologue), uint64(b.Registers),
			uint64(len(l.Layout.Dims)), uint64(len(elems)), flag(c.overflows(l.n*written)), 0)
		l.words = c.exprChoices(l.words)
		for _, d := range l.Layout.Dims {
			l.words = append(l.words, uint64(d))
		}
		for k, o := range l.Layout.Operands {
			l.words = append(l.words, c.at(k), uint64(o.First))
			for _, s := range o.Steps {
				l.words = append(l.words, uint64(s))
			}
		}
		first := len(l.words)
		l.words = append(l.words, code...)
		for i, in := range b.Instructions[:b.Prologue] {
			if in.Code == expr.CodeParam {
				l.words[first+instructionWords*i+1] = l.Params[in.Slot]
			}
		}
		l.room = nil
		if need > exprStack {
			memory, err := c.device.scratch.take(int64(need * c.device.threads))
			if err != nil {
				return err
			}
			defer c.device.scratch.give(memory)
			l.room = make(chan uint64, c.device.threads)
			for i := range c.device.threads {
				l.room <- address(memory.data) + uint64(i*need)
			}
		}
		return c.spread((l.n+expr.Tile-1)/expr.Tile, expr.Tile*bytes, l.part)
	}
}

// exprChoices appends the words of the choices that csrc/cpu/expr.h reads.
func (c *call) exprChoices(words []uint64) []uint64 {
	return append(words, uint64(c.Choose(exprNear))<<10, uint64(c.Choose(exprAhead)), uint64(c.Choose(exprNext)),
		uint64(c.Choose(exprFetches)), uint64(c.Choose(exprTiles)))
}

// run computes a range of tiles.
func (l *exprLaunch) run(c *call, lo, hi int) {
	w := exprRanges.Get().(*[]uint64)
	*w = append((*w)[:0], l.words...)
	(*w)[0], (*w)[1] = uint64(lo*expr.Tile), uint64(min(hi*expr.Tile, l.n))
	if l.room != nil {
		(*w)[exprRoom] = <-l.room
	}
	c.device.simd.run(simd.Expr, *w...)
	if l.room != nil {
		l.room <- (*w)[exprRoom]
	}
	exprRanges.Put(w)
}

// blockBytes returns the memory that the machine needs for a program; see EXPR_BYTES in csrc/cpu/expr.h.
func blockBytes(b *expr.Block) int {
	return (b.Registers+1)*(expr.Tile*8+5*64) + len(b.Instructions)*192
}

// exprSteps runs the steps of a map with reductions for one launch. Later launches reuse it.
type exprSteps struct {
	*call
	steps []expr.Step
	code  [][]uint64 // of each step
	block block
}

// bindReducing returns the function for a map with reductions, or nil if a step needs more memory than a
// thread's stack has.
func bindReducing(m *expr.Map) goFunc {
	steps, err := m.Steps()
	if err != nil {
		return nil
	}
	var code [][]uint64
	for _, s := range steps {
		if blockBytes(s.Block) > exprStack {
			return nil
		}
		code = append(code, encodeBlock(s.Block))
	}
	machines := sync.Pool{New: func() any { return &exprSteps{steps: steps, code: code} }}
	return func(c *call) error {
		e := machines.Get().(*exprSteps)
		defer machines.Put(e)
		e.call = c
		return m.Reduce(&c.Call, e)
	}
}

// Compute stores large results past the caches.
func (e *exprSteps) Compute(step int, l *expr.Layout, memory [][]byte, params []uint64, lo, hi int) {
	s, code := &e.steps[step], e.code[step]
	past := uint64(0)
	if s.Combine == nil {
		past = flag(e.overflows(l.Len() * s.Types[0].Size() * len(s.Types)))
	}
	words := exprRanges.Get().(*[]uint64)
	defer exprRanges.Put(words)
	w := append((*words)[:0], uint64(lo), uint64(hi), uint64(len(code)/instructionWords), uint64(s.Block.Prologue),
		uint64(s.Block.Registers),
		uint64(len(l.Dims)), uint64(len(l.Operands)), past, 0)
	w = e.exprChoices(w)
	for _, d := range l.Dims {
		w = append(w, uint64(d))
	}
	for k, o := range l.Operands {
		w = append(w, address(memory[k]), uint64(o.First))
		for _, s := range o.Steps {
			w = append(w, uint64(s))
		}
	}
	first := len(w)
	w = append(w, code...)
	for i, in := range s.Block.Instructions[:s.Block.Prologue] {
		if in.Code == expr.CodeParam {
			w[first+instructionWords*i+1] = params[in.Slot]
		}
	}
	e.device.simd.run(simd.Expr, w...)
	*words = w
}

func (e *exprSteps) Rows(op expr.Op, t expr.Type, rows, n int, into, from []byte) {
	by := simd.ReduceRows
	if t > expr.BF16 {
		by = simd.ReduceIntRows
	}
	e.device.simd.run(by, uint64(t)-1, uint64(op-expr.Sum), uint64(rows), uint64(n), address(from), address(into),
		uint64(e.Choose(reduceBlock)))
}

func (e *exprSteps) Columns(op expr.Op, t expr.Type, n, step, columns int, into, from []byte) {
	by := simd.ReduceColumns
	if t > expr.BF16 {
		by = simd.ReduceIntCols
	}
	e.device.simd.run(by, uint64(t)-1, uint64(op-expr.Sum), uint64(n), uint64(step), uint64(columns), address(from),
		address(into))
}

func (e *exprSteps) Memory(bytes int) (memory []byte, err error) {
	e.block, err = e.device.scratch.take(int64(bytes))
	return e.block.data, err
}

func (e *exprSteps) Free() { e.device.scratch.give(e.block) }

// readLater reports whether an instruction reads a register before another one writes it.
func readLater(list []expr.Instruction, register int) bool {
	for i := range list {
		in := &list[i]
		if slices.Contains(in.Args[:in.Code.Arity()], register) {
			return true
		}
		if in.Code != expr.CodeStore && in.Dst == register {
			return false
		}
	}
	return false
}

// feeds reports whether only the next instruction uses the result of instruction i, as one of its operands or
// as both of a product.
func feeds(list []expr.Instruction, i int) bool {
	if i+1 == len(list) || list[i+1].Code == expr.CodeStore {
		return false
	}
	dst, next, uses := list[i].Dst, list[i+1], 0
	for _, r := range next.Args[:next.Code.Arity()] {
		if r == dst {
			uses++
		}
	}
	square := uses == 2 && expr.Op(next.Code) == expr.Mul
	return (uses == 1 || square) && (next.Dst == dst || !readLater(list[i+2:], dst))
}

// The classes of numbers that only csrc/cpu/expr_tile.h has.
const (
	classF16 = expr.ClassU64 + 1 + iota
	classBF16
	classU8
	classU16
)

// chained are the operations that chains of csrc/cpu have for integers, and those that they have for floats.
var chained = [2][]expr.Op{
	{expr.Add, expr.Sub, expr.Mul, expr.Neg, expr.And, expr.Or, expr.Xor},
	{expr.Add, expr.Sub, expr.Mul, expr.FMA, expr.Neg, expr.Abs, expr.Div, expr.Min, expr.Max, expr.Sqrt, expr.Rsqrt,
		expr.Exp, expr.Sigmoid, expr.Tanh, expr.GELU},
}

// asStored returns the program for elements of 8 or 16 bits as they are stored, if it allows that, and
// otherwise b. Integers then lie in registers of their own size, if all operations only need the low bits of
// operands. Floats are converted while one chain computes, if it is the whole program.
func asStored(b *expr.Block) *expr.Block {
	list := b.Instructions
	store := list[len(list)-1]
	elem, float := store.Elem, 0
	class, ok := map[expr.Type]expr.Class{expr.F16: classF16, expr.BF16: classBF16, expr.I8: classU8, expr.U8: classU8,
		expr.I16: classU16, expr.U16: classU16}[elem]
	if kernels.IsFloat(elem.String()) {
		float = 1
	}
	out := expr.Block{Prologue: b.Prologue, Registers: b.Registers}
	for i, in := range list {
		last := len(out.Instructions) - 1
		// set for loads, stores, wraps
		same := in.Elem.Size() == elem.Size() && kernels.IsFloat(in.Elem.String()) == (float == 1)
		chain := slices.Contains(chained[float], expr.Op(in.Code))
		switch {
		case !ok:
			return b
		case i < b.Prologue:
			if float == 0 {
				in.To = class
			}
			out.Instructions = append(out.Instructions, in)
			continue
		case in.Code == expr.CodeWrap && same && last >= b.Prologue && out.Instructions[last].Dst == in.Args[0] &&
			!readLater(list[i+1:], in.Args[0]):
			out.Instructions[last].Dst = in.Dst // the operation itself wraps
			continue
		case in.Code == expr.CodeLoad && same && (float == 0 || in.Elem == elem):
		case in.Code == expr.CodeStore && same && (float == 0 || i == len(list)-1 && i > b.Prologue &&
			list[i-1].Dst == in.Args[0]):
		case chain && (float == 0 || i+2 == len(list) || feeds(list, i)) && len(out.Instructions) < b.Prologue+exprLinks:
		default:
			return b
		}
		in.Type, in.To = class, class
		out.Instructions = append(out.Instructions, in)
	}
	return &out
}

// encodeBlock writes the instructions as csrc/cpu/expr.h reads them. Of operations other than casts, word low
// says whether the result is an operand of the next instruction alone.
func encodeBlock(b *expr.Block) []uint64 {
	var words []uint64
	for i, in := range b.Instructions {
		if expr.Op(in.Code) != expr.Cast && i >= b.Prologue && feeds(b.Instructions, i) {
			in.Low = 1
		}
		w := uint64(in.Code) | uint64(in.Type)<<8 | uint64(in.To)<<16 | uint64(in.Dst)<<24
		for j, a := range in.Args {
			w |= uint64(a) << (32 + 8*j)
		}
		elem := uint64(0)
		if in.Elem != 0 && in.Elem != expr.Bool {
			elem = uint64(in.Elem) - 1 // the order is that of csrc/cpu/storage.h
		}
		bits := in.Bits
		if in.Code == expr.CodeLoad || in.Code == expr.CodeStore {
			bits = uint64(in.Slot)
		}
		words = append(words, w|elem<<56, bits, in.Low, in.Top)
	}
	return words
}
