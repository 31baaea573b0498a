package expr

// The machine in Go that runs block programs. cpu:0 uses it in a build without C.

import (
	"math"
	"unsafe"

	"github.com/concord-compute/concord/internal/precise"
	"github.com/concord-compute/concord/runtime/half"
)

type (
	floatNumber interface{ float32 | float64 }
	intNumber   interface {
		int32 | int64 | uint32 | uint64
	}
	anyNumber interface{ floatNumber | intNumber }
)

// machine runs one block program on one goroutine.
type machine struct {
	block  *Block
	layout *Layout
	memory [][]byte // of each operand
	params []uint64 // bits
	words  []uint64 // Tile words of 64 bits for each register
	raw    []byte   // a tile as it is stored
}

// Run computes elements lo to hi in Go, on the calling goroutine. memory has the memory of each operand, which
// the layout must not leave, params the bits of each parameter, extended to 64 with the sign if the type is
// signed.
func (b *Block) Run(l *Layout, memory [][]byte, params []uint64, lo, hi int) {
	newMachine(b, l, memory, params).run(lo, hi)
}

func newMachine(b *Block, l *Layout, memory [][]byte, params []uint64) *machine {
	m := &machine{block: b, layout: l, memory: memory, params: params}
	m.words = make([]uint64, Tile*(b.Registers+1))
	m.raw = registerOf[byte](m, b.Registers)[:8*Tile]
	for i := range b.Instructions[:b.Prologue] {
		in := &b.Instructions[i]
		bits := in.Bits
		if in.Code == CodeParam {
			bits = params[in.Slot]
		}
		fillNumbers(in.To, registerOf[byte](m, in.Dst), Tile, bits)
	}
	return m
}

func fill[T any](d []T, x T) {
	for i := range d {
		d[i] = x
	}
}

// registerOf returns register r as a slice of numbers of T, as many as fit.
func registerOf[T any](m *machine, r int) []T {
	var x T
	w := m.words[r*Tile : (r+1)*Tile]
	return unsafe.Slice((*T)(unsafe.Pointer(&w[0])), Tile*8/int(unsafe.Sizeof(x)))
}

// run computes elements lo to hi.
func (m *machine) run(lo, hi int) {
	for ; lo < hi; lo += Tile {
		n := min(Tile, hi-lo)
		for i := m.block.Prologue; i < len(m.block.Instructions); i++ {
			m.step(&m.block.Instructions[i], lo, n)
		}
	}
}

// arithmetic has what is computed with numbers of one class.
type arithmetic struct {
	step, cast, odd func(m *machine, in *Instruction, n int)
	// combine combines n numbers for a reduction.
	combine func(op Op, n int, into, from []byte)
	// firsts sets into[i] to the place of the first extreme of n numbers, from[i·row], from[i·row+step] and so on.
	firsts func(op Op, results, n, row, step int, into, from []byte)
}

var arithmetics = [...]arithmetic{
	ClassF32: floatsOf[float32](),
	ClassF64: floatsOf[float64](),
	ClassI32: intsOf[int32, uint32](),
	ClassI64: intsOf[int64, uint64](),
	ClassU32: intsOf[uint32, uint32](),
	ClassU64: intsOf[uint64, uint64](),
}

func floatsOf[F floatNumber]() arithmetic {
	return arithmetic{floatStep[F], castFloat[F], oddFloats[F], combineFloats[F], firsts[F]}
}

func intsOf[I intNumber, U uint32 | uint64]() arithmetic {
	return arithmetic{intStep[I, U], castInt[I], oddInts[I], combineInts[I], firsts[I]}
}

func (m *machine) step(in *Instruction, lo, n int) {
	switch in.Code {
	case CodeLoad:
		m.move(in.Slot, in.Elem.Size(), lo, n, false)
		widen(in.Elem, n, registerOf[byte](m, in.Dst), m.raw)
	case CodeStore:
		m.store(in, n)
		m.move(in.Slot, in.Elem.Size(), lo, n, true)
	case CodeIndex:
		d := registerOf[int64](m, in.Dst)
		for i := range n {
			d[i] = int64(lo + i)
		}
	case CodeBits:
		d, seed := registerOf[uint32](m, in.Dst), registerOf[uint64](m, in.Args[0])
		for i := range n {
			d[i] = philox(seed[i], uint64(lo+i), uint32(in.Bits>>2))[in.Bits&3]
		}
	case CodeWrap:
		m.wrap(in, n)
	case Code(Select):
		if in.To.Size() == 8 {
			choose[uint64](m, in, n)
		} else {
			choose[uint32](m, in, n)
		}
	case Code(Cast):
		arithmetics[in.Type].cast(m, in, n)
	case Code(opOdd):
		arithmetics[in.Type].odd(m, in, n)
	default:
		arithmetics[in.Type].step(m, in, n)
	}
}

// move gathers n elements of an operand from lo on into raw, or scatters them from there.
func (m *machine) move(slot, size, lo, n int, out bool) {
	l, o := m.layout, &m.layout.Operands[slot]
	memory := m.memory[slot]
	last := len(l.Dims) - 1
	var at [MaxRank]int
	for j, rest := last, lo; j >= 0; j-- {
		at[j], rest = rest%l.Dims[j], rest/l.Dims[j]
	}
	for done := 0; done < n; {
		count, place := min(n-done, l.Dims[last]-at[last]), o.First
		for j := range l.Dims {
			place += at[j] * o.Steps[j]
		}
		raw, step := m.raw[done*size:(done+count)*size], o.Steps[last]
		switch {
		case step == 1 && out:
			copy(memory[place*size:], raw)
		case step == 1:
			copy(raw, memory[place*size:])
		case size == 1:
			stride[uint8](raw, memory, place, step, out)
		case size == 2:
			stride[uint16](raw, memory, place, step, out)
		case size == 4:
			stride[uint32](raw, memory, place, step, out)
		default:
			stride[uint64](raw, memory, place, step, out)
		}
		done += count
		at[last] = 0
		for j := last - 1; j >= 0; j-- {
			if at[j]++; j == 0 || at[j] < l.Dims[j] {
				break
			}
			at[j] = 0
		}
	}
}

// slice returns bytes as a slice of numbers of T.
func slice[T any](b []byte) []T {
	var x T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(x)))
}

// stride moves elements that lie step apart in memory.
func stride[T any](raw, memory []byte, place, step int, out bool) {
	r, p := slice[T](raw), slice[T](memory)
	if out {
		for i, x := range r {
			p[place+i*step] = x
		}
		return
	}
	for i := range r {
		r[i] = p[place+i*step]
	}
}

// widen converts n elements of type t to the numbers of a register.
func widen(t Type, n int, to, from []byte) {
	switch t {
	case F16:
		d := slice[float32](to)
		for i, x := range slice[uint16](from)[:n] {
			d[i] = half.Float16(x).Float32()
		}
	case BF16:
		d := slice[float32](to)
		for i, x := range slice[uint16](from)[:n] {
			d[i] = half.BFloat16(x).Float32()
		}
	case I8:
		convert(slice[int32](to), slice[int8](from)[:n])
	case I16:
		convert(slice[int32](to), slice[int16](from)[:n])
	case U8:
		convert(slice[uint32](to), slice[uint8](from)[:n])
	case U16:
		convert(slice[uint32](to), slice[uint16](from)[:n])
	default:
		copy(to, from[:n*t.Size()])
	}
}

// store converts the numbers of a register to elements in raw.
func (m *machine) store(in *Instruction, n int) {
	r := in.Args[0]
	switch in.Elem {
	case F16:
		d := slice[uint16](m.raw)
		for i, x := range registerOf[float32](m, r)[:n] {
			d[i] = uint16(half.ToFloat16(float64(x)))
		}
	case BF16:
		d := slice[uint16](m.raw)
		for i, x := range registerOf[float32](m, r)[:n] {
			d[i] = uint16(half.ToBFloat16(float64(x)))
		}
	case I8, U8:
		convert(slice[uint8](m.raw), registerOf[uint32](m, r)[:n])
	case I16, U16:
		convert(slice[uint16](m.raw), registerOf[uint32](m, r)[:n])
	default:
		copy(m.raw, registerOf[byte](m, r)[:n*in.Elem.Size()])
	}
}

type elementNumber interface {
	int8 | uint8 | int16 | uint16 | anyNumber
}

func convert[D, S elementNumber](d []D, s []S) {
	for i, x := range s {
		d[i] = D(x)
	}
}

func (m *machine) wrap(in *Instruction, n int) {
	d, from := registerOf[uint32](m, in.Dst)[:n], registerOf[uint32](m, in.Args[0])[:n]
	shift := uint(32-8*in.Elem.Size()) & 31
	if in.Elem.IsSigned() {
		for i, x := range from {
			d[i] = uint32(int32(x<<shift) >> shift)
		}
		return
	}
	for i, x := range from {
		d[i] = x << shift >> shift
	}
}

func choose[T any](m *machine, in *Instruction, n int) {
	d, c := registerOf[T](m, in.Dst), registerOf[uint32](m, in.Args[0])
	x, y := registerOf[T](m, in.Args[1]), registerOf[T](m, in.Args[2])
	for i := range n {
		if c[i] != 0 {
			d[i] = x[i]
		} else {
			d[i] = y[i]
		}
	}
}

// oddFloats rounds the numbers of a register to floats to odd, as oddInts does.
func oddFloats[F floatNumber](m *machine, in *Instruction, n int) {
	d := registerOf[float32](m, in.Dst)
	for i, x := range registerOf[F](m, in.Args[0])[:n] {
		d[i] = oddFloat32(float64(x))
	}
}

func oddInts[I intNumber](m *machine, in *Instruction, n int) {
	d, t := registerOf[float32](m, in.Dst), U64
	if ^I(0) < 0 {
		t = I64
	}
	for i, x := range registerOf[I](m, in.Args[0])[:n] {
		d[i] = oddFloat32(oddFloat(t, uint64(x)))
	}
}

// castFloat converts the numbers of a register to the type of the result, as castInt does.
func castFloat[S floatNumber](m *machine, in *Instruction, n int) {
	s := registerOf[S](m, in.Args[0])[:n]
	switch in.To {
	case ClassF32:
		convert(registerOf[float32](m, in.Dst), s)
	case ClassF64:
		convert(registerOf[float64](m, in.Dst), s)
	case ClassI32, ClassU32:
		d := registerOf[uint32](m, in.Dst)
		for i, x := range s {
			d[i] = uint32(truncate(in.Elem, float64(x)))
		}
	default:
		d := registerOf[uint64](m, in.Dst)
		for i, x := range s {
			d[i] = truncate(in.Elem, float64(x))
		}
	}
}

func castInt[S intNumber](m *machine, in *Instruction, n int) {
	s, low, top := registerOf[S](m, in.Args[0])[:n], S(in.Low), S(in.Top)
	switch in.To {
	case ClassF32:
		convert(registerOf[float32](m, in.Dst), s)
	case ClassF64:
		convert(registerOf[float64](m, in.Dst), s)
	case ClassI32, ClassU32:
		d := registerOf[uint32](m, in.Dst)
		for i, x := range s {
			d[i] = uint32(max(low, min(top, x)))
		}
	default:
		d := registerOf[uint64](m, in.Dst)
		for i, x := range s {
			d[i] = uint64(max(low, min(top, x)))
		}
	}
}

func floatStep[F floatNumber](m *machine, in *Instruction, n int) {
	d := registerOf[F](m, in.Dst)[:n]
	a := registerOf[F](m, in.Args[0])[:n]
	b := registerOf[F](m, in.Args[1])[:n]
	switch op := Op(in.Code); op {
	case Neg:
		for i, x := range a {
			d[i] = -x
		}
	case Abs:
		for i, x := range a {
			d[i] = F(math.Abs(float64(x)))
		}
	case Add:
		for i, x := range a {
			d[i] = x + b[i]
		}
	case Sub:
		for i, x := range a {
			d[i] = x - b[i]
		}
	case Mul:
		for i, x := range a {
			d[i] = x * b[i]
		}
	case Div:
		for i, x := range a {
			d[i] = x / b[i]
		}
	case Min:
		for i, x := range a {
			if y := b[i]; x < y || x != x {
				d[i] = x
			} else {
				d[i] = y
			}
		}
	case Max:
		for i, x := range a {
			if y := b[i]; x > y || x != x {
				d[i] = x
			} else {
				d[i] = y
			}
		}
	case Rem:
		for i, x := range a {
			d[i] = F(math.Mod(float64(x), float64(b[i])))
		}
	case Pow:
		pow := precise.Pow
		if unsafe.Sizeof(a[0]) == 4 {
			pow = math.Pow // which has more digits than a float32, and is faster
		}
		for i, x := range a {
			d[i] = F(pow(float64(x), float64(b[i])))
		}
	case Atan2:
		for i, x := range a {
			d[i] = F(precise.Atan2(float64(x), float64(b[i])))
		}
	case CopySign:
		for i, x := range a {
			d[i] = F(math.Copysign(float64(x), float64(b[i])))
		}
	case FMA:
		c := registerOf[F](m, in.Args[2])[:n]
		for i, x := range a {
			d[i] = fused(x, b[i], c[i])
		}
	case IsNaN:
		t := registerOf[uint32](m, in.Dst)
		for i, x := range a {
			t[i] = uint32(truthBits(x != x))
		}
	case Eq, Ne, Lt, Le:
		compareStep(op, registerOf[uint32](m, in.Dst), a, b)
	default:
		f := ops[op].f
		for i, x := range a {
			d[i] = F(f(float64(x)))
		}
	}
}

// fused returns a·b + c rounded once. For floats the product is exact in float64; its sum with c is rounded to
// odd there, and then rounds to the same float as the exact sum.
func fused[F floatNumber](a, b, c F) F {
	if unsafe.Sizeof(a) == 8 {
		return F(math.FMA(float64(a), float64(b), float64(c)))
	}
	p, q := float64(a)*float64(b), float64(c)
	s := p + q
	t := s - p
	lost := (p - (s - t)) + (q - t)
	if bits := math.Float64bits(s); lost != 0 && bits&1 == 0 && !math.IsInf(s, 0) {
		if lost > 0 == (s > 0) {
			s = math.Float64frombits(bits + 1)
		} else {
			s = math.Float64frombits(bits - 1)
		}
	}
	return F(s)
}

func compareStep[T anyNumber](op Op, d []uint32, a, b []T) {
	switch op {
	case Eq:
		for i, x := range a {
			d[i] = uint32(truthBits(x == b[i]))
		}
	case Ne:
		for i, x := range a {
			d[i] = uint32(truthBits(x != b[i]))
		}
	case Lt:
		for i, x := range a {
			d[i] = uint32(truthBits(x < b[i]))
		}
	case Le:
		for i, x := range a {
			d[i] = uint32(truthBits(x <= b[i]))
		}
	}
}

// intStep runs one operation on integers of type I; U is the unsigned type of the same size.
func intStep[I intNumber, U uint32 | uint64](m *machine, in *Instruction, n int) {
	d := registerOf[I](m, in.Dst)[:n]
	a := registerOf[I](m, in.Args[0])[:n]
	b := registerOf[I](m, in.Args[1])[:n]
	switch op := Op(in.Code); op {
	case Neg:
		for i, x := range a {
			d[i] = -x
		}
	case Abs:
		for i, x := range a {
			if d[i] = x; x < 0 {
				d[i] = -x
			}
		}
	case Not:
		mask := ^I(0)
		if in.Bits != 0 { // of a Bool
			mask = 1
		}
		for i, x := range a {
			d[i] = x ^ mask
		}
	case Add:
		for i, x := range a {
			d[i] = x + b[i]
		}
	case Sub:
		for i, x := range a {
			d[i] = x - b[i]
		}
	case Mul:
		for i, x := range a {
			d[i] = x * b[i]
		}
	case Div:
		for i, x := range a {
			if d[i] = 0; b[i] != 0 {
				d[i] = x / b[i]
			}
		}
	case Rem:
		for i, x := range a {
			if d[i] = 0; b[i] != 0 {
				d[i] = x % b[i]
			}
		}
	case Min:
		for i, x := range a {
			d[i] = min(x, b[i])
		}
	case Max:
		for i, x := range a {
			d[i] = max(x, b[i])
		}
	case And:
		for i, x := range a {
			d[i] = x & b[i]
		}
	case Or:
		for i, x := range a {
			d[i] = x | b[i]
		}
	case Xor:
		for i, x := range a {
			d[i] = x ^ b[i]
		}
	case Shl:
		for i, x := range a {
			d[i] = x << (U(b[i]) & U(in.Bits))
		}
	case Shr:
		for i, x := range a {
			d[i] = x >> (U(b[i]) & U(in.Bits))
		}
	case Eq, Ne, Lt, Le:
		compareStep(op, registerOf[uint32](m, in.Dst), a, b)
	}
}
