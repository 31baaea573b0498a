package expr

// Block: a map as a program of operations on tiles, for devices that run it without a compiler.

import (
	"fmt"
	"math"
	"slices"
)

// Tile is the number of elements that one instruction of a [Block] computes: so few that several tiles fit in the
// first-level cache.
const Tile = 512

// Block is a map as a program for a machine whose registers are tiles of [Tile] numbers of 32 or 64 bits.
// Instructions up to Prologue fill registers with one number each, and run once for any number of tiles. The
// others run for every tile: loads first, stores last, so that an output may be an input.
type Block struct {
	Instructions []Instruction
	Prologue     int
	Registers    int
}

// Instruction is one operation of a [Block]. Integers of less than 32 bits lie in registers of 32, extended with
// their sign if their type is signed and with zeros otherwise; a Bool is a 32-bit 0 or 1.
type Instruction struct {
	Code     Code
	Type     Class  // of the operands, and, except for comparisons and casts, of the result
	To       Class  // of the result
	Dst      int    // register
	Args     [3]int // registers
	Elem     Type   // type of the elements that are loaded or stored, or of the integer that CodeWrap wraps
	Slot     int    // operand of a load or store; number of a parameter
	Bits     uint64 // number that fills a register; stream and lane of random bits; mask of a shift's count
	Low, Top uint64 // least and largest result of a cast: of an integer in the operand's type, of a float in the result's
}

// Code is the operation of an instruction.
type Code uint8

// The codes of instructions that are not operations. An [Op] has its own number as its code.
const (
	CodeLoad  = Code(opInput)
	CodeParam = Code(opParam)
	CodeFill  = Code(opConst)
	CodeIndex = Code(opIndex)
	CodeBits  = Code(opRandom)
	CodeStore = Code(opEnd)
	CodeWrap  = Code(opEnd + 1) // cut to Elem and extended again
)

// Arity returns the number of registers that an instruction reads.
func (c Code) Arity() int {
	if c < Code(opEnd) {
		return ops[c].arity
	}
	return 1 // store and wrap
}

// Class is the type of the numbers in a register.
type Class uint8

// The classes.
const (
	ClassF32 Class = iota
	ClassF64
	ClassI32
	ClassI64
	ClassU32
	ClassU64
)

// Size returns the bytes of a number.
func (c Class) Size() int {
	switch c {
	case ClassF64, ClassI64, ClassU64:
		return 8
	}
	return 4
}

// classOf returns the class of the registers that hold values of a type.
func classOf(t Type) Class {
	switch t {
	case F64:
		return ClassF64
	case I8, I16, I32:
		return ClassI32
	case I64:
		return ClassI64
	case U8, U16, U32, Bool:
		return ClassU32
	case U64:
		return ClassU64
	}
	return ClassF32
}

// MaxRegisters is the largest number of registers of a Block.
const MaxRegisters = 255

// Block returns the map as a block program. It is made once, and callers must not change it. The error wraps
// ErrInvalid if the map needs more than MaxRegisters numbers at once, or has reductions, see [Map.Steps].
func (m *Map) Block() (*Block, error) { return m.block() }

func (m *Map) lower() (*Block, error) {
	if m.Reduces() {
		return nil, fmt.Errorf("a map with reductions is several block programs: %w", ErrInvalid)
	}
	l := lowering{m: m, register: make([]int, len(m.nodes)), last: make([]int, len(m.nodes))}
	l.lifetimes()
	b := &l.b
	for i := range m.nodes {
		if n := &m.nodes[i]; n.op == opConst || n.op == opParam {
			l.register[i] = l.take()
			b.Instructions = append(b.Instructions, Instruction{Code: Code(n.op), To: classOf(n.typ), Dst: l.register[i],
				Bits: n.bits, Slot: n.slot, Elem: n.typ})
		}
	}
	b.Prologue = len(b.Instructions)
	for i := range m.nodes {
		if m.nodes[i].op == opInput {
			l.lower(i)
		}
	}
	for i := range m.nodes {
		if m.nodes[i].op != opInput {
			l.lower(i)
		}
	}
	for k, o := range m.outputs {
		b.Instructions = append(b.Instructions, Instruction{Code: CodeStore, Type: classOf(m.nodes[o.node].typ),
			Args: [3]int{l.register[o.node]}, Elem: o.elem, Slot: len(m.inputs) + k})
	}
	if b.Registers > MaxRegisters {
		return nil, fmt.Errorf("%d values are needed at once; there can be %d: %w", b.Registers, MaxRegisters, ErrInvalid)
	}
	return b, nil
}

// lowering assigns registers to nodes.
type lowering struct {
	m        *Map
	b        Block
	register []int
	last     []int // the last node that uses the register of a node
	free     []int
}

// alias reports whether a node has the same bits in a register as its operand.
func (l *lowering) alias(n *node) bool {
	return n.op == Bits && n.typ.Size() >= 4
}

// root returns the node whose register node i shares; it is i itself unless i is an alias.
func (l *lowering) root(i int) int {
	for l.alias(&l.m.nodes[i]) {
		i = l.m.nodes[i].args[0]
	}
	return i
}

func (l *lowering) lifetimes() {
	for i := range l.m.nodes {
		n := &l.m.nodes[i]
		for _, a := range n.args[:ops[n.op].arity] {
			l.last[l.root(a)] = i
		}
	}
	for i := range l.m.nodes {
		if op := l.m.nodes[i].op; op == opConst || op == opParam { // filled once, for all tiles
			l.last[i] = math.MaxInt
		}
	}
	for _, o := range l.m.outputs {
		l.last[l.root(o.node)] = math.MaxInt
	}
}

func (l *lowering) take() int {
	if n := len(l.free); n > 0 {
		r := l.free[n-1]
		l.free = l.free[:n-1]
		return r
	}
	l.b.Registers++
	return l.b.Registers - 1
}

// lower appends the instructions of a node. The register of the result differs from those of the operands.
func (l *lowering) lower(i int) {
	n := &l.m.nodes[i]
	if n.op == opConst || n.op == opParam {
		return
	}
	if l.alias(n) {
		l.register[i] = l.register[n.args[0]]
		l.release(i, n)
		return
	}
	in := Instruction{Code: Code(n.op), Type: classOf(n.typ), To: classOf(n.typ), Dst: l.take(), Slot: n.slot,
		Bits: n.bits, Elem: n.typ}
	l.register[i] = in.Dst
	for j, a := range n.args[:ops[n.op].arity] {
		in.Args[j] = l.register[a]
		in.Type = classOf(l.m.nodes[a].typ)
	}
	from := n.typ
	if ops[n.op].arity > 0 {
		from = l.m.nodes[n.args[ops[n.op].arity-1]].typ
	}
	cut := false
	switch n.op {
	case opInput:
		in.Elem = n.elem
	case Shl, Shr:
		in.Bits = uint64(8*n.typ.Size() - 1)
		cut = n.op == Shl
	case Neg, Abs, Not, Add, Sub, Mul, Div:
		cut = true
		if n.typ == Bool { // Not
			in.Code, in.Bits, cut = Code(Not), 1, false
		}
	case Cast:
		in.Low, in.Top = castEnds(n.typ, from)
	case Bits: // of an integer of less than 32 bits
		in.Code = CodeWrap
	}
	l.b.Instructions = append(l.b.Instructions, in)
	if cut && n.typ.IsInteger() && n.typ.Size() < 4 {
		w := Instruction{Code: CodeWrap, Type: in.To, To: in.To, Dst: l.take(), Args: [3]int{in.Dst}, Elem: n.typ}
		l.free = append(l.free, in.Dst)
		l.register[i] = w.Dst
		l.b.Instructions = append(l.b.Instructions, w)
	}
	l.release(i, n)
}

// release gives back the registers that node i is the last to use.
func (l *lowering) release(i int, n *node) {
	var given []int
	for _, a := range n.args[:ops[n.op].arity] {
		if a = l.root(a); l.last[a] == i && !slices.Contains(given, a) {
			given = append(given, a)
			l.free = append(l.free, l.register[a])
		}
	}
}

// castEnds returns the least and the largest result of a cast to an integer type, as numbers of from if that is an
// integer type too, and otherwise of to. They lie within the numbers of from if that is an integer type.
func castEnds(to, from Type) (low, top uint64) {
	if !to.IsInteger() {
		return 0, math.MaxUint64
	}
	lo, hi := ends(to)
	if from.IsFloat() {
		return uint64(lo), hi
	}
	fromLo, fromHi := int64(0), uint64(1)
	if from != Bool {
		fromLo, fromHi = ends(from)
	}
	return uint64(max(lo, fromLo)), min(hi, fromHi)
}
