package tree

// Evaluation at compile time of what initializers of constants contain besides scalars: vectors, other constants
// and their elements, as_T.

import (
	"slices"
	"strings"
)

// Folder evaluates expressions in the initializers of constants. It is not safe for concurrent use.
type Folder struct {
	known map[*Init]lanesOf // constants that are computed from others are asked for often
}

type lanesOf struct {
	v  []Value
	ok bool
}

// Lanes evaluates e, a scalar or vector. It returns false if e is not constant. The caller must not change the result.
func (f *Folder) Lanes(e *Expr) ([]Value, bool) {
	if !e.Type.IsArith() {
		return nil, false
	}
	if e.Type.IsScalar() {
		if v := Fold(e); v.OK {
			return []Value{v}, true
		}
	}
	switch e.Op {
	case OpParen:
		return f.Lanes(e.A)
	case OpSym, OpIndex, OpMember:
		if n := f.node(e); n != nil {
			return f.init(n)
		}
	case OpVecLit:
		return f.literal(e)
	case OpCompound:
		return f.init(e.Init)
	case OpSwizzle, OpComponent:
		return f.swizzle(e)
	case OpCast, OpConv:
		return f.convert(e)
	case OpBuiltin:
		if strings.HasPrefix(e.Text, "as_") {
			return f.reinterpret(e)
		}
	case OpCond, OpElvis:
		return f.choose(e)
	case OpVecCond, OpUnary, OpBinary, OpShift, OpCompare, OpLogic:
		return f.operator(e)
	}
	return nil, false
}

// init evaluates the initializer of a scalar or vector; one without a value is zero.
func (f *Folder) init(n *Init) ([]Value, bool) {
	if n.Value != nil {
		known, asked := f.known[n]
		if !asked {
			if f.known == nil {
				f.known = map[*Init]lanesOf{}
			}
			f.known[n] = known // a constant whose initializer mentions itself is not constant
			known.v, known.ok = f.Lanes(n.Value)
			known.v = slices.Clip(known.v)
			f.known[n] = known
		}
		return known.v, known.ok
	}
	if !n.Type.IsArith() {
		return nil, false
	}
	return spread([]Value{BitsValue(n.Type.Base, 0)}, n.Type.Width())
}

// node finds the initializer of the object that e designates.
func (f *Folder) node(e *Expr) *Init {
	switch e.Op {
	case OpParen, OpDecay:
		return f.node(e.A)
	case OpSym:
		if e.Sym.Inst && e.Sym.Type.IsConst() {
			return e.Sym.Init
		}
	case OpIndex:
		a := f.node(e.A)
		i, ok := f.Lanes(e.B)
		if a != nil && a.Value == nil && a.Type.Kind == TArray && ok && !i[0].Negative() && i[0].Bits < uint64(a.Type.N) {
			return kidOf(a, int(i[0].Int()), a.Type.Elem)
		}
	case OpMember:
		a := f.node(e.A)
		for _, m := range e.Path {
			if a == nil || a.Value != nil || a.Type.Rec.Union && a.Kids[m.Index] == nil {
				return nil
			}
			a = kidOf(a, m.Index, m.Type)
		}
		return a
	}
	return nil
}

// kidOf returns element i, which is zero if the initializer does not mention it.
func kidOf(n *Init, i int, t *Type) *Init {
	if k := n.Kids[i]; k != nil {
		return k
	}
	return &Init{Type: t}
}

func (f *Folder) literal(e *Expr) ([]Value, bool) {
	var out []Value
	for _, a := range e.Args {
		v, ok := f.Lanes(a)
		if !ok {
			return nil, false
		}
		for _, c := range v {
			out = append(out, c.Convert(Scalar(e.Type.Base)))
		}
	}
	return checked(spread(out, e.Type.Width()))
}

// spread copies a single value to all n lanes.
func spread(v []Value, n int) ([]Value, bool) {
	if len(v) == 1 {
		v = slices.Repeat(v, n)
	}
	return v, len(v) == n
}

// checked returns false if a lane has no value.
func checked(v []Value, ok bool) ([]Value, bool) {
	return v, ok && !slices.ContainsFunc(v, func(c Value) bool { return !c.OK })
}

func (f *Folder) swizzle(e *Expr) ([]Value, bool) {
	v, ok := f.Lanes(e.A)
	lanes := e.Lanes
	if e.Op == OpComponent {
		at, known := f.Lanes(e.B)
		if !known || at[0].Negative() || at[0].Bits >= uint64(len(v)) {
			return nil, false
		}
		lanes = []int{int(at[0].Int())}
	}
	var out []Value
	for _, i := range lanes {
		if !ok || i >= len(v) {
			return nil, false
		}
		out = append(out, v[i])
	}
	return out, ok
}

func (f *Folder) convert(e *Expr) ([]Value, bool) {
	v, ok := f.Lanes(e.A)
	if !ok {
		return nil, false
	}
	out := make([]Value, len(v))
	for i, c := range v {
		out[i] = c.Convert(Scalar(e.Type.Base))
		if e.A.Type.Is(Bool) && e.Type.IsVector() && IsIntKind(e.Type.Base) {
			out[i] = unaryOf("-", out[i]) // true is all bits set
		}
	}
	return checked(spread(out, e.Type.Width()))
}

// reinterpret evaluates as_T.
func (f *Folder) reinterpret(e *Expr) ([]Value, bool) {
	v, ok := f.Lanes(e.Args[0])
	if !ok {
		return nil, false
	}
	var bytes []byte
	for _, c := range v {
		bytes = c.AppendTo(bytes)
	}
	size := KindSize(e.Type.Base)
	bytes = append(bytes, make([]byte, size)...) // the fourth lane of a vector of three is undefined
	out := make([]Value, e.Type.Width())
	for i := range out {
		out[i] = FromBytes(e.Type.Base, bytes[i*size:])
	}
	return out, true
}

// AppendTo appends the bytes of an object with value c.
func (c Value) AppendTo(bytes []byte) []byte {
	for k := range KindSize(c.Kind) {
		bytes = append(bytes, byte(c.Bits>>(8*k)))
	}
	return bytes
}

// FromBytes returns the value of kind k of an object that begins with these bytes.
func FromBytes(k Kind, bytes []byte) Value {
	bits := uint64(0)
	for i := range KindSize(k) {
		bits |= uint64(bytes[i]) << (8 * i)
	}
	return BitsValue(k, bits)
}

// choose evaluates ?: with a scalar condition.
func (f *Folder) choose(e *Expr) ([]Value, bool) {
	c, ok := f.Lanes(e.A)
	if !ok {
		return nil, false
	}
	yes := e.B
	if e.Op == OpElvis {
		yes = e.A
	}
	v := c // ?: without a middle operand evaluates its first one once
	if chosen := choice(c[0], yes, e.C); chosen != e.A {
		if v, ok = f.Lanes(chosen); !ok {
			return nil, false
		}
	}
	out := make([]Value, len(v))
	for i := range v {
		out[i] = v[i].Convert(Scalar(e.Type.Base))
	}
	return checked(spread(out, e.Type.Width()))
}

// operator evaluates an operator lane by lane, as Fold does for scalars.
func (f *Folder) operator(e *Expr) ([]Value, bool) {
	var of [3][]Value
	for i, k := range [...]*Expr{e.A, e.B, e.C} {
		if k == nil {
			continue
		}
		v, ok := f.Lanes(k)
		if i == 1 && e.Op == OpLogic && len(of[0]) == 1 && of[0][0].IsZero() == (e.Text == "&&") {
			return []Value{truth(e.Text == "||")}, true // the right side is not evaluated
		}
		if ok {
			of[i], ok = spread(v, e.Type.Width())
		}
		if !ok {
			return nil, false
		}
	}
	out := make([]Value, e.Type.Width())
	for i := range out {
		switch {
		case e.Op == OpVecCond: // by the top bit of the lane of the condition
			c := of[0][i]
			out[i] = of[2][i]
			if c.Bits>>(8*KindSize(c.Kind)-1)&1 != 0 {
				out[i] = of[1][i]
			}
		case e.B == nil:
			out[i] = unary(e, of[0][i])
		default:
			out[i] = binary(e, of[0][i], of[1][i])
		}
	}
	return checked(out, true)
}
