package cpu

// Block programs of kernels/expr in vector instructions.

import (
	"slices"
	"sync"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/source"
)

func init() {
	vector(expr.Family, expr.Kernel, bindExpr)
	vector(expr.Family, expr.KernelColumns, bindExpr)
}

// exprWords is the number of words in front of the lengths of dimensions, and instructionWords the number of words of
// an instruction; see csrc/cpu/expr.h.
const exprWords, instructionWords = 9, 4

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
	if m.Reduces() {
		return bindReducing(m)
	}
	b, err := m.Block()
	if err != nil {
		return nil
	}
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
			uint64(len(l.Layout.Dims)), uint64(len(elems)), flag(overflows(l.n*written)), 0)
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

// run computes a range of tiles.
func (l *exprLaunch) run(c *call, lo, hi int) {
	w := exprRanges.Get().(*[]uint64)
	*w = append((*w)[:0], l.words...)
	(*w)[0], (*w)[1] = uint64(lo*expr.Tile), uint64(min(hi*expr.Tile, l.n))
	if l.room != nil {
		(*w)[exprWords-1] = <-l.room
	}
	c.device.simd.run(simd.Expr, *w...)
	if l.room != nil {
		l.room <- (*w)[exprWords-1]
	}
	exprRanges.Put(w)
}

// blockBytes returns the memory that the machine needs for a program; see EXPR_BYTES in csrc/cpu/expr.h.
func blockBytes(b *expr.Block) int {
	return (b.Registers+1)*(expr.Tile*8+5*64) + len(b.Instructions)*192
}

// exprSteps runs the steps of maps with reductions.
type exprSteps struct {
	*call
	steps []expr.Step
	code  [][]uint64 // of each step
}

// bindReducing returns the function for a map with reductions, or nil if a step needs more memory than a thread's stack has.
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
	return func(c *call) error { return m.Reduce(&c.Call, &exprSteps{c, steps, code}) }
}

func (e *exprSteps) Compute(step int, l *expr.Layout, memory [][]byte, params []uint64, lo, hi int) {
	b, code := e.steps[step].Block, e.code[step]
	words := exprRanges.Get().(*[]uint64)
	defer exprRanges.Put(words)
	w := append((*words)[:0], uint64(lo), uint64(hi), uint64(len(code)/instructionWords), uint64(b.Prologue), uint64(b.Registers),
		uint64(len(l.Dims)), uint64(len(l.Operands)), 0, 0)
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
	for i, in := range b.Instructions[:b.Prologue] {
		if in.Code == expr.CodeParam {
			w[first+instructionWords*i+1] = params[in.Slot]
		}
	}
	e.device.simd.run(simd.Expr, w...)
	*words = w
}

func (e *exprSteps) Fold(op expr.Op, c expr.Class, lanes, count, keep int, into, from []byte) {
	if lanes > 0 {
		e.device.simd.run(simd.ExprFold, uint64(op), uint64(c), address(into), address(from), uint64(lanes), uint64(count), uint64(keep))
	}
}

func (e *exprSteps) Segments(op expr.Op, c expr.Class, rows, n int, into, from []byte) {
	e.device.simd.run(simd.ExprFold, uint64(op), uint64(c), address(into), address(from), 0, uint64(rows), uint64(n))
}

func (e *exprSteps) Memory(bytes int) ([]byte, func(), error) {
	b, err := e.device.scratch.take(int64(bytes))
	return b.data, func() { e.device.scratch.give(b) }, err
}

// readLater reports whether an instruction reads a register before another one writes it.
func readLater(list []expr.Instruction, register int) bool {
	for i := range list {
		in := &list[i]
		if in.Code != expr.CodeLoad && in.Code != expr.CodeIndex && slices.Contains(in.Args[:], register) {
			return true // also if register is 0 and the operand is unused, in which case a possible pair is not joined
		}
		if in.Code != expr.CodeStore && in.Dst == register {
			return false
		}
	}
	return false
}

// feeds reports whether only the next instruction uses the result of instruction i, as one of two operands.
func feeds(list []expr.Instruction, i int) bool {
	if i+1 == len(list) || list[i+1].Code == expr.CodeStore {
		return false
	}
	dst, next := list[i].Dst, list[i+1]
	a, b := next.Args[0] == dst, next.Args[1] == dst
	if next.Code.Arity() == 1 {
		b = false
	}
	return a != b && (next.Dst == dst || !readLater(list[i+2:], dst))
}

// encodeBlock writes the instructions as csrc/cpu/expr.h reads them. Of operations other than casts, word low says whether
// the result is an operand of the next instruction alone.
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
