package cpu

// Block programs of kernels/expr in vector instructions.

import (
	"slices"
	"sync"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/source"
)

func init() { vector(expr.Family, expr.Kernel, bindExpr) }

// exprWords is the number of words in front of the lengths of dimensions, and instructionWords the number of words of
// an instruction; see csrc/cpu/expr.h.
const exprWords, instructionWords = 9, 4

// A program that needs more than exprStack bytes gets memory of the device: threads of programs may have small stacks.
const exprStack = 96 << 10

// exprLaunch holds the memory that one launch of a map needs. Later launches reuse it.
type exprLaunch struct {
	expr.Launch
	words []uint64
}

var exprLaunches = sync.Pool{New: func() any { return new(exprLaunch) }}

// exprRanges has memory for the words of one range each, a copy of those of the launch.
var exprRanges = sync.Pool{New: func() any { return new([]uint64) }}

func bindExpr(u *source.Unit) goFunc {
	m, _, err := expr.OfUnit(u)
	if err != nil {
		return nil
	}
	b, err := m.Block()
	if err != nil {
		return nil
	}
	instructions := pairs(b)
	code := encodeBlock(instructions)
	need := (b.Registers+1)*expr.Tile*8 + len(instructions)*192
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
		n := l.Layout.Len()
		if n == 0 {
			return nil
		}
		l.words = append(l.words[:0], 0, 0, uint64(len(instructions)), uint64(b.Prologue), uint64(b.Registers),
			uint64(len(l.Layout.Dims)), uint64(len(elems)), flag(overflows(n*written)), 0)
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
		set := c.device.simd
		var free chan uint64 // memory for each range that runs at the same time
		if need > exprStack {
			memory, err := c.device.scratch.take(int64(need * c.device.threads))
			if err != nil {
				return err
			}
			defer c.device.scratch.give(memory)
			free = make(chan uint64, c.device.threads)
			for i := range c.device.threads {
				free <- address(memory.data) + uint64(i*need)
			}
		}
		return c.spread((n+expr.Tile-1)/expr.Tile, expr.Tile*bytes, func(lo, hi int) {
			w := exprRanges.Get().(*[]uint64)
			*w = append((*w)[:0], l.words...)
			(*w)[0], (*w)[1] = uint64(lo*expr.Tile), uint64(min(hi*expr.Tile, n))
			if free != nil {
				(*w)[exprWords-1] = <-free
			}
			set.run(simd.Expr, *w...)
			if free != nil {
				free <- (*w)[exprWords-1]
			}
			exprRanges.Put(w)
		})
	}
}

// pairs joins two consecutive arithmetic operations if only the second uses the result of the first.
func pairs(b *expr.Block) []expr.Instruction {
	list := slices.Clone(b.Instructions)
	for i := b.Prologue; i+1 < len(list); i++ {
		first, second := &list[i], &list[i+1]
		at := slices.Index(second.Args[:2], first.Dst)
		if !pairable(first) || !pairable(second) || at < 0 || second.Args[1-at] == first.Dst || readLater(list[i+2:], first.Dst) {
			continue
		}
		op := uint64(second.Code)
		if at == 1 {
			switch expr.Op(second.Code) {
			case expr.Sub:
				op |= 1 << 8
			case expr.Min, expr.Max: // their result depends on the order of the operands
				continue
			}
		}
		*first = expr.Instruction{Code: expr.CodePair, Type: first.Type, To: first.To, Dst: second.Dst,
			Args: [3]int{first.Args[0], first.Args[1], second.Args[1-at]}, Elem: first.Elem, Bits: uint64(first.Code) | op<<8}
		list = slices.Delete(list, i+1, i+2)
	}
	return list
}

func pairable(in *expr.Instruction) bool {
	switch expr.Op(in.Code) {
	case expr.Add, expr.Sub, expr.Mul, expr.Min, expr.Max:
		return in.Type == expr.ClassF32 || in.Type == expr.ClassF64
	}
	return false
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

// encodeBlock writes the instructions as csrc/cpu/expr.h reads them.
func encodeBlock(list []expr.Instruction) []uint64 {
	var words []uint64
	for _, in := range list {
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
