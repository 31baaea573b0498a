package expr

// Expr, the nodes of an expression, and the functions that make them.

import (
	"errors"
	"fmt"
	"slices"
)

// Expr is an expression of one type: an immutable value that any number of other expressions may contain. A mistake,
// such as an operand of a wrong type, passes to every expression that is made of it; [New] and Err return it.
type Expr struct {
	op   Op
	typ  Type     // of the value
	elem Type     // of an input: that of its elements
	slot int      // of an input or a parameter
	bits uint64   // of a number: its bits in typ; of random bits: stream<<2 | lane
	rule rule     // of Min, Max and Product how Gradient differentiates it, of Cast how Output rounds it
	args [3]*Expr // as many as op has operands
	err  error
}

// ErrInvalid is the error for an expression, map or layout that is not well formed. The errors that wrap it
// give the reason.
var ErrInvalid = errors.New("expr: invalid expression")

func wrong(format string, args ...any) *Expr {
	return &Expr{err: fmt.Errorf(format+": %w", append(args, ErrInvalid)...)}
}

// maxSlots is the largest number of operands (inputs and outputs together) of a map, and of its parameters: OpenCL
// guarantees only 1,024 bytes of arguments.
const maxSlots = 16

// Input returns the element of input number slot, counted from 0, that belongs to the element being computed.
// Every slot up to the highest has to be used, always with the same type. The elements of an input of type Bool
// are U8; those that are not 0 are true.
func Input(slot int, t Type) *Expr {
	if slot < 0 || slot >= maxSlots || t.Size() == 0 {
		return wrong("input %d of type %v: the slots are 0 to %d and the types those of elements", slot, t, maxSlots-1)
	}
	return &Expr{op: opInput, typ: t.Computed(), elem: t.Stored(), slot: slot}
}

// Param returns parameter number slot, counted from 0: a number that each launch is given. It cannot be of type F16 or
// BF16.
func Param(slot int, t Type) *Expr {
	if slot < 0 || slot >= maxSlots || t.Size() == 0 || t == Bool || t.Computed() != t {
		return wrong("parameter %d of type %v: the slots are 0 to %d and the types those that are computed in", slot, t,
			maxSlots-1)
	}
	return &Expr{op: opParam, typ: t, slot: slot}
}

// Float returns the number x, rounded to a floating type.
func Float(t Type, x float64) *Expr {
	if t != F32 && t != F64 {
		return wrong("a floating number of type %v: there are f32 and f64", t)
	}
	return &Expr{op: opConst, typ: t, bits: numberBits(t, x)}
}

// Int returns x as a number of an integer type, modulo 2^bits, or as a Bool, which is true if x is not 0.
func Int(t Type, x int64) *Expr {
	switch {
	case t == Bool:
		return &Expr{op: opConst, typ: t, bits: truthBits(x != 0)}
	case t.Size() > 0 && t.IsInteger():
		return &Expr{op: opConst, typ: t, bits: wrap(t, uint64(x))}
	}
	return wrong("an integer of type %v", t)
}

// Number returns x as a number of the type of e: rounded to a floating type; of an integer type x has to be exactly.
func (e *Expr) Number(x float64) *Expr {
	switch {
	case e.err != nil:
		return e
	case e.typ.IsFloat():
		return Float(e.typ, x)
	case e.typ == Bool:
		return Int(Bool, int64(truthBits(x != 0)))
	case e.typ.Size() > 0 && asFloat(e.typ, truncate(e.typ, x)) == x:
		return &Expr{op: opConst, typ: e.typ, bits: truncate(e.typ, x)}
	}
	return wrong("%v is not a number of type %v", x, e.typ)
}

// Index returns the position of the element being computed, an I64, counted from 0 with the last dimension changing
// fastest.
func Index() *Expr { return &Expr{op: opIndex, typ: I64} }

// Length returns the length of the last dimension, an I64. Only maps with reductions have it.
func Length() *Expr { return &Expr{op: opLength, typ: I64} }

// Random returns 32 random bits, a U32: word number lane, 0 to 3, of Philox4x32-10 (Salmon et al., 2011) with
// the key seed, a U64, and the counter made of Index and stream. They are the same on every device.
func Random(seed *Expr, stream uint32, lane int) *Expr {
	switch {
	case seed == nil:
		return wrong("random bits with a seed that is nil")
	case seed.err != nil:
		return seed
	case seed.typ != U64 || lane < 0 || lane > 3:
		return wrong("random bits with a seed of type %v, lane %d: the seed is a u64 and lanes are 0 to 3", seed.typ, lane)
	}
	return &Expr{op: opRandom, typ: U32, bits: uint64(stream)<<2 | uint64(lane), args: [3]*Expr{seed}}
}

// Apply returns the result of an operation on operands. Select, Cast and Bits have methods of their own.
func Apply(op Op, args ...*Expr) *Expr {
	if op < Neg || !op.valid() || op == Cast || op == Bits || op == opOdd {
		return wrong("operation %v cannot be applied by that name", op)
	}
	info := &ops[op]
	if len(args) != info.arity {
		return wrong("%s takes %d operands, not %d", info.name, info.arity, len(args))
	}
	e := &Expr{op: op}
	for i, a := range args {
		if a == nil {
			return wrong("operand %d of %s is nil", i, info.name)
		}
		if a.err != nil {
			return a
		}
		if a.op == 0 {
			return wrong("operand %d of %s is an empty expression", i, info.name)
		}
		e.args[i] = a
	}
	if op == Select {
		if args[0].typ != Bool || args[1].typ != args[2].typ {
			return wrong("select of a %v between %v and %v: it takes a bool and two values of one type", args[0].typ,
				args[1].typ, args[2].typ)
		}
		e.typ = args[1].typ
		return e
	}
	e.typ = args[0].typ
	for _, a := range args {
		if a.typ != e.typ {
			return wrong("%s of %v and %v: it takes one type, see Cast", info.name, e.typ, a.typ)
		}
	}
	if !info.takes.accepts(e.typ) {
		return wrong("%s of %v", info.name, e.typ)
	}
	switch {
	case info.truth:
		e.typ = Bool
	case op.locates():
		e.typ = I64
	}
	return e
}

// Cast converts e to another type, rounded once: to a floating type to nearest even, to an integer type toward zero,
// saturating, with 0 for a NaN. A Bool becomes 0 or 1; a value becomes a Bool that is true if the value is not 0.
// F16 and BF16 are types of elements: the value is an F32, and [Expr.Output] rounds e once to such a type.
func (e *Expr) Cast(t Type) *Expr {
	switch {
	case e.err != nil || e.typ == t:
		return e
	case t.Size() == 0:
		return wrong("cast to %v", t)
	case e.typ == t.Computed():
		return e
	case t == Bool:
		return e.Ne(e.Number(0))
	case t.Computed() != t:
		return &Expr{op: Cast, typ: t.Computed(), rule: roundOnce, args: [3]*Expr{e}}
	}
	return &Expr{op: Cast, typ: t, args: [3]*Expr{e}}
}

// odd returns e, which is of a type with more digits than F32, as an F32 rounded to odd: the last bit is set if the
// number is not exact. A later rounding to 16 bits then has the result of one rounding of e.
func (e *Expr) odd() *Expr {
	switch {
	case e.err != nil:
		return e
	case e.typ != F64 && (!e.typ.IsInteger() || e.typ.Size() < 4):
		return wrong("a %v rounded to odd", e.typ)
	}
	return &Expr{op: opOdd, typ: F32, args: [3]*Expr{e}}
}

// Bits returns the value of type t, which must be of the same size, that has the bits of e.
func (e *Expr) Bits(t Type) *Expr {
	switch {
	case e.err != nil || e.typ == t:
		return e
	case t.Size() == 0 || t.Computed() != t || t == Bool || e.typ == Bool || t.Size() != e.typ.Size():
		return wrong("the bits of %v as %v", e.typ, t)
	}
	return &Expr{op: Bits, typ: t, args: [3]*Expr{e}}
}

// Replace returns e with each input i replaced by the expression with[i], which must have that input's type.
// Inputs for which there is no expression, or a nil one, stay. It composes expressions.
func (e *Expr) Replace(with ...*Expr) *Expr {
	return e.rewritten(func(x *Expr) *Expr {
		if x.op != opInput || x.slot >= len(with) || with[x.slot] == nil {
			return nil
		}
		if y := with[x.slot]; y.err != nil || y.typ == x.typ {
			return y
		}
		return wrong("a %v in place of input %d, which is a %v", with[x.slot].typ, x.slot, x.typ)
	})
}

// Substitute returns e with one of the expressions that it contains, the same *Expr, replaced by another one of
// its type. A gradient so takes the result of a function as an input.
func (e *Expr) Substitute(part, with *Expr) *Expr {
	return e.rewritten(func(x *Expr) *Expr {
		switch {
		case x != part:
			return nil
		case with.err != nil || with.typ == x.typ:
			return with
		}
		return wrong("a %v in place of a %v", with.typ, x.typ)
	})
}

// rewritten returns e with expressions replaced by those that f returns for them, if it returns one. A mistake
// in one of these is the result.
func (e *Expr) rewritten(f func(x *Expr) *Expr) *Expr {
	if e.err != nil {
		return e
	}
	made := map[*Expr]*Expr{}
	for _, x := range ordered(e) {
		y := f(x)
		switch {
		case y == nil:
			y = x.with(func(j int) *Expr { return made[x.args[j]] })
		case y.err != nil:
			return y
		}
		made[x] = y
	}
	return made[e]
}

// with returns e with other operands, which is e itself if they are its own.
func (e *Expr) with(operand func(j int) *Expr) *Expr {
	y := e
	for j, a := range e.args[:ops[e.op].arity] {
		if b := operand(j); b != a {
			if y == e {
				c := *e
				y = &c
			}
			y.args[j] = b
		}
	}
	return y
}

// Uses reports whether e contains input number slot.
func (e *Expr) Uses(slot int) bool {
	return e.err == nil && slices.ContainsFunc(ordered(e), func(x *Expr) bool { return x.op == opInput && x.slot == slot })
}

// Used returns the type with which [Input] made each input that a map of these outputs reads. It is 0 for
// inputs that the map does not need, such as those of an operation that is always multiplied by an integer 0.
func Used(outputs ...*Expr) []Type {
	if slices.ContainsFunc(outputs, (*Expr).bad) {
		return nil
	}
	list, _, err := build(outputs, false)
	if err != nil {
		return nil
	}
	var used []Type
	for _, n := range list.nodes {
		if n.op == opInput {
			for len(used) <= n.slot {
				used = append(used, 0)
			}
			used[n.slot] = n.elem
		}
	}
	for _, e := range outputs {
		for _, x := range ordered(e) {
			if x.op == opInput && x.typ == Bool && x.slot < len(used) && used[x.slot] != 0 {
				used[x.slot] = Bool
			}
		}
	}
	return used
}

// Indexed reports whether e contains [Index] or [Random], whose values depend on the position of the element alone.
func (e *Expr) Indexed() bool {
	return slices.ContainsFunc(ordered(e), func(x *Expr) bool { return x.op == opIndex || x.op == opRandom })
}

// Operations returns how often each operation is applied in e.
func (e *Expr) Operations() map[Op]int {
	count := map[Op]int{}
	for _, x := range ordered(e) {
		if x.op >= Neg {
			count[x.op]++
		}
	}
	return count
}

// bad reports whether e is no expression, or has a mistake.
func (e *Expr) bad() bool { return e == nil || e.err != nil || e.op == 0 }

// Type returns the type of the value; 0 if the expression has a mistake.
func (e *Expr) Type() Type { return e.typ }

// Err returns the first mistake of an expression, which wraps ErrInvalid, or nil.
func (e *Expr) Err() error { return e.err }

// The operations as methods. The constants of the same names define them exactly.

// Add returns e + x.
func (e *Expr) Add(x *Expr) *Expr { return Apply(Add, e, x) }

// Sub returns e - x.
func (e *Expr) Sub(x *Expr) *Expr { return Apply(Sub, e, x) }

// Mul returns e · x.
func (e *Expr) Mul(x *Expr) *Expr { return Apply(Mul, e, x) }

// Div returns e / x.
func (e *Expr) Div(x *Expr) *Expr { return Apply(Div, e, x) }

// Min returns the smaller of e and x.
func (e *Expr) Min(x *Expr) *Expr { return Apply(Min, e, x) }

// Max returns the larger of e and x.
func (e *Expr) Max(x *Expr) *Expr { return Apply(Max, e, x) }

// Pow returns e to the power of x.
func (e *Expr) Pow(x *Expr) *Expr { return Apply(Pow, e, x) }

// Neg returns -e.
func (e *Expr) Neg() *Expr { return Apply(Neg, e) }

// Abs returns |e|.
func (e *Expr) Abs() *Expr { return Apply(Abs, e) }

// Sqrt returns the square root of e.
func (e *Expr) Sqrt() *Expr { return Apply(Sqrt, e) }

// Exp returns the exponential function of e.
func (e *Expr) Exp() *Expr { return Apply(Exp, e) }

// Log returns the natural logarithm of e.
func (e *Expr) Log() *Expr { return Apply(Log, e) }

// Tanh returns the hyperbolic tangent of e.
func (e *Expr) Tanh() *Expr { return Apply(Tanh, e) }

// Erf returns the error function of e.
func (e *Expr) Erf() *Expr { return Apply(Erf, e) }

// Eq returns the Bool e = x.
func (e *Expr) Eq(x *Expr) *Expr { return Apply(Eq, e, x) }

// Ne returns the Bool e ≠ x.
func (e *Expr) Ne(x *Expr) *Expr { return Apply(Ne, e, x) }

// Lt returns the Bool e < x.
func (e *Expr) Lt(x *Expr) *Expr { return Apply(Lt, e, x) }

// Le returns the Bool e ≤ x.
func (e *Expr) Le(x *Expr) *Expr { return Apply(Le, e, x) }

// Select returns x where e, a Bool, is true, and y elsewhere.
func (e *Expr) Select(x, y *Expr) *Expr { return Apply(Select, e, x, y) }

// Sum returns the sum of e over the last dimension.
func (e *Expr) Sum() *Expr { return Apply(Sum, e) }

// Product returns the product of e over the last dimension.
func (e *Expr) Product() *Expr { return Apply(Product, e) }

// Smallest returns the minimum of e over the last dimension.
func (e *Expr) Smallest() *Expr { return Apply(Smallest, e) }

// Largest returns the maximum of e over the last dimension.
func (e *Expr) Largest() *Expr { return Apply(Largest, e) }

// ArgLargest returns the place of the maximum of e in the last dimension, an I64: of the first of equals, and of the
// first NaN if there is one. Of no elements it is 0.
func (e *Expr) ArgLargest() *Expr { return Apply(ArgLargest, e) }

// ArgSmallest returns the place of the minimum, as ArgLargest does that of the maximum.
func (e *Expr) ArgSmallest() *Expr { return Apply(ArgSmallest, e) }

// All returns whether e, a Bool, is true in all of the last dimension; of integers, their bits.
func (e *Expr) All() *Expr { return Apply(All, e) }

// Any returns whether e, a Bool, is true anywhere in the last dimension; of integers, their bits.
func (e *Expr) Any() *Expr { return Apply(Any, e) }

// Softmax returns e^(x-m) · (1 / Σ e^(x-m)) of e over the last dimension, with its maximum m.
func (e *Expr) Softmax() *Expr { return Apply(Softmax, e) }

// Normalize returns e moved to the mean 0 and scaled to the variance 1 in the last dimension. epsilon is added to the
// variance before.
func (e *Expr) Normalize(epsilon *Expr) *Expr { return Apply(Normalize, e, e.length(), epsilon) }

// RMSNormalize returns e divided by the root of the mean of its squares in the last dimension, to which epsilon is
// added.
func (e *Expr) RMSNormalize(epsilon *Expr) *Expr { return Apply(RMSNormalize, e, e.length(), epsilon) }

// length returns the length of the last dimension as a number of the type of e.
func (e *Expr) length() *Expr {
	if e.err != nil {
		return e
	}
	return Length().Cast(e.typ)
}

// Relu returns max(e, 0). Its derivative at 0 is 0.
func (e *Expr) Relu() *Expr { return e.Max(e.Number(0)).by(toSecond) }

// AtLeast returns the larger of e and a bound, NaN if one is. Where both are equal, e has the gradient.
func (e *Expr) AtLeast(bound *Expr) *Expr { return bound.Max(e).by(toSecond) }

// AtMost returns the smaller of e and a bound, NaN if one is. Where both are equal, e has the gradient.
func (e *Expr) AtMost(bound *Expr) *Expr { return bound.Min(e).by(toSecond) }

// Sigmoid returns 1 / (1 + e^-x) of e.
func (e *Expr) Sigmoid() *Expr { return Apply(Sigmoid, e) }

// GELU returns x·Φ(x) of e, with the distribution function Φ of the normal distribution.
func (e *Expr) GELU() *Expr { return Apply(GELU, e) }

// wrap reduces bits to the size of an integer type and extends them to 64, with the sign if the type is signed. All
// evaluators in Go keep integers in this form.
func wrap(t Type, x uint64) uint64 {
	shift := 64 - uint(8*t.Size())
	if t.IsSigned() {
		return uint64(int64(x<<shift) >> shift)
	}
	return x << shift >> shift
}

func truthBits(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
