package source

// Constants on GPUs: their compilers want initializers that are constant to C++,
// which operators and built-ins of vectors, other constants and as_T are not. So
// values are computed here wherever that is possible.

import (
	"math"
	"slices"
	"strconv"

	"github.com/concord-compute/concord/source/internal/token"
)

// lanesOf is what lanes has answered.
type lanesOf struct {
	v  []constant
	ok bool
}

// lanes evaluates e, a scalar or vector, or says that it is not constant.
func (r *renderer) lanes(e *expr) ([]constant, bool) {
	if e.typ.isScalar() {
		if v := fold(e); v.ok {
			return []constant{v}, true
		}
	}
	if !e.typ.isArith() {
		return nil, false
	}
	switch e.op {
	case opParen:
		return r.lanes(e.a)
	case opNamed:
		return namedValue(e.text)
	case opSym, opIndex, opMember:
		return r.constantElement(e)
	case opVecLit:
		return r.literalLanes(e)
	case opSwizzle:
		return r.swizzleLanes(e)
	case opCast, opConv:
		return r.convertLanes(e)
	case opBuiltin:
		return r.asLanes(e)
	case opUnary, opBinary, opShift, opCompare:
		return r.operatorLanes(e)
	}
	return nil, false
}

func namedValue(name string) ([]constant, bool) {
	f, ok := map[string]float64{"CC_INFINITY": math.Inf(1), "CC_HUGE_VAL": math.Inf(1), "CC_NAN": math.NaN(),
		"CC_MAXFLOAT": math.MaxFloat32}[name]
	return []constant{{ok: true, float: true, f: f}}, ok
}

// constantElement evaluates a constant, or an element or member of one.
func (r *renderer) constantElement(e *expr) ([]constant, bool) {
	n := constantNode(e)
	switch {
	case n == nil:
		return nil, false
	case n.value != nil:
		known, asked := r.known[n] // constants that are computed from others are asked for often
		if !asked {
			r.known[n] = known // what begins with itself is not constant
			known.v, known.ok = r.lanes(n.value)
			known.v = slices.Clip(known.v)
			r.known[n] = known
		}
		return known.v, known.ok
	case n.typ.isScalar() && len(n.kids) == 0:
		return []constant{constant{ok: true}.convert(n.typ)}, true
	}
	return nil, false
}

// constantNode finds the initializer of the object that e designates.
func constantNode(e *expr) *initNode {
	switch e.op {
	case opParen, opDecay:
		return constantNode(e.a)
	case opSym:
		if e.sym.inst && e.sym.typ.isConst() {
			return e.sym.init
		}
	case opIndex:
		i := fold(e.b)
		if a := constantNode(e.a); a != nil && a.value == nil && i.ok && i.i >= 0 && a.typ.kind == tArray && i.i < int64(a.typ.n) {
			return kidOf(a, int(i.i), a.typ.elem)
		}
	case opMember:
		a := constantNode(e.a)
		for _, f := range e.path {
			if a == nil || a.value != nil || a.typ.rec.union {
				return nil
			}
			a = kidOf(a, f.index, f.typ)
		}
		return a
	}
	return nil
}

// kidOf is element i; what is not mentioned is zero.
func kidOf(n *initNode, i int, t *ctype) *initNode {
	if k := n.kids[i]; k != nil {
		return k
	}
	return &initNode{typ: t}
}

func (r *renderer) literalLanes(e *expr) ([]constant, bool) {
	var out []constant
	for _, a := range e.args {
		v, ok := r.lanes(a)
		if !ok {
			return nil, false
		}
		for _, c := range v {
			out = append(out, convertLane(c, a.typ.base, e.typ.base))
		}
	}
	return spread(out, e.typ.width())
}

// spread gives a single value to all lanes.
func spread(v []constant, n int) ([]constant, bool) {
	for len(v) == 1 && n > 1 {
		for range n - 1 {
			v = append(v, v[0])
		}
	}
	return v, len(v) == n
}

func (r *renderer) swizzleLanes(e *expr) ([]constant, bool) {
	v, ok := r.lanes(e.a)
	var out []constant
	for _, i := range e.lanes {
		if !ok || i >= len(v) {
			return nil, false
		}
		out = append(out, v[i])
	}
	return out, ok
}

func (r *renderer) convertLanes(e *expr) ([]constant, bool) {
	v, ok := r.lanes(e.a)
	if !ok || !e.a.typ.isArith() {
		return nil, false
	}
	out := make([]constant, len(v))
	for i, c := range v {
		if out[i] = convertLane(c, e.a.typ.base, e.typ.base); !out[i].ok {
			return nil, false
		}
		if e.a.typ.is(Bool) && e.typ.isVector() && isIntKind(e.typ.base) {
			out[i].i = -out[i].i // true is all bits set
		}
	}
	return spread(out, e.typ.width())
}

func convertLane(c constant, from, to Kind) constant {
	if from == ULong && !c.float && !isIntKind(to) {
		c = constant{ok: c.ok, float: true, f: float64(uint64(c.i))}
	}
	return c.convert(scalar(to))
}

// asLanes evaluates as_T.
func (r *renderer) asLanes(e *expr) ([]constant, bool) {
	to, isConv := conversionOf(e.text)
	if !isConv || !to.as {
		return nil, false
	}
	v, ok := r.lanes(e.args[0])
	if !ok {
		return nil, false
	}
	from := e.args[0].typ
	var bytes []byte
	for _, c := range v {
		bits := bitsOf(c, from.base)
		for range kindSize(from.base) {
			bytes = append(bytes, byte(bits))
			bits >>= 8
		}
	}
	var out []constant
	size := kindSize(to.to.base)
	for i := range to.to.width() {
		bits := uint64(0)
		for k := range size {
			if at := i*size + k; at < len(bytes) { // the fourth lane of three is anything
				bits |= uint64(bytes[at]) << (8 * k)
			}
		}
		out = append(out, fromBits(bits, to.to.base))
	}
	return out, true
}

// operatorLanes evaluates an operator lane by lane, as fold does it for scalars.
func (r *renderer) operatorLanes(e *expr) ([]constant, bool) {
	a, ok := r.lanes(e.a)
	b := a
	if ok && e.b != nil {
		b, ok = r.lanes(e.b)
	}
	if !ok || e.text == "&" && e.b == nil {
		return nil, false
	}
	n := e.typ.width()
	a, okA := spread(a, n)
	b, okB := spread(b, n)
	if !okA || !okB {
		return nil, false
	}
	out := make([]constant, n)
	for i := range out {
		one := expr{op: e.op, text: e.text, typ: scalar(e.typ.base)}
		one.a = &expr{op: opLit, typ: scalar(e.a.typ.base), val: a[i]}
		if e.b != nil {
			one.b = &expr{op: opLit, typ: scalar(e.b.typ.base), val: b[i]}
		}
		if out[i] = fold(&one); !out[i].ok {
			return nil, false
		}
		if e.op == opCompare && e.typ.isVector() {
			out[i].i = -out[i].i
		}
	}
	return out, true
}

// bitsOf returns the bits of a constant of kind k.
func bitsOf(v constant, k Kind) uint64 {
	switch k {
	case Half:
		return uint64(halfBits(v.f))
	case Float:
		return uint64(math.Float32bits(float32(v.f)))
	case Double:
		return math.Float64bits(v.f)
	}
	return uint64(v.i)
}

// fromBits is the constant of kind k with these bits.
func fromBits(bits uint64, k Kind) constant {
	switch k {
	case Half:
		return constant{ok: true, float: true, f: halfValue(uint16(bits))}
	case Float:
		return constant{ok: true, float: true, f: float64(math.Float32frombits(uint32(bits)))}
	case Double:
		return constant{ok: true, float: true, f: math.Float64frombits(bits)}
	}
	return constant{ok: true, i: wrap(int64(bits), k)}
}

// halfBits rounds to half, to the nearest and of two to the even one.
func halfBits(f float64) uint16 {
	sign := uint16(math.Float64bits(f) >> 48 & 0x8000)
	a := math.Abs(f)
	switch {
	case f != f:
		return sign | 0x7e00
	case a >= 65520: // half way from the largest half to the next power of two
		return sign | 0x7c00
	case a < 0x1p-14: // in steps of the smallest half
		return sign | uint16(math.RoundToEven(a*0x1p24))
	}
	frac, exp := math.Frexp(a) // frac in [1/2, 1)
	m := uint16(math.RoundToEven(frac * 0x1p11))
	return sign | (uint16(exp+14)<<10 + (m - 0x400))
}

// halfValue is the number that the bits of a half stand for.
func halfValue(h uint16) float64 {
	exp, frac := int(h>>10&31), float64(h&0x3ff)
	f := math.Ldexp(frac, -24)
	switch {
	case exp == 31 && frac != 0:
		f = math.NaN()
	case exp == 31:
		f = math.Inf(1)
	case exp > 0:
		f = math.Ldexp(frac+0x400, exp-25)
	}
	if h&0x8000 != 0 {
		f = -f
	}
	return f
}

// constantValue writes a value in the initializer of a constant.
func (r *renderer) constantValue(e *expr) {
	v, ok := r.lanes(e)
	switch {
	case !ok && hasBuiltin(e):
		r.refuse(r.p.posOf(e), "constant", "this initializer of a constant cannot be rendered for this target")
		return
	case !ok:
		r.expr(e)
		return
	case !e.typ.isVector():
		r.constantLane(v[0], e.typ)
		return
	}
	if !r.d.msl { // where the braces alone do, and a copy might not
		r.w(r.plain(e.typ))
	}
	r.w("{{")
	for i, c := range v {
		if i > 0 {
			r.w(", ")
		}
		r.constantLane(c, scalar(e.typ.base))
	}
	r.w("}}")
}

// hasBuiltin tells whether e calls a built-in.
func hasBuiltin(e *expr) bool {
	if e == nil {
		return false
	}
	for _, a := range e.args {
		if hasBuiltin(a) {
			return true
		}
	}
	return e.op == opBuiltin || hasBuiltin(e.a) || hasBuiltin(e.b) || hasBuiltin(e.c)
}

// constantLane writes one number of scalar type t.
func (r *renderer) constantLane(c constant, t *ctype) {
	sign := ""
	if math.Signbit(c.f) {
		sign = "-"
	}
	switch {
	case t.base == Half && r.d.msl && !math.IsNaN(c.f) && !math.IsInf(c.f, 0):
		r.w(r.metalHalf(c.f))
	case t.base == Half && r.d.msl:
		r.w("cc_half(")
		r.constantLane(c, floatType)
		r.w(")")
	case t.base == Half:
		r.w("cc_half(cc_half_bits{", strconv.Itoa(int(halfBits(c.f))), "})")
	case c.float && math.IsNaN(c.f):
		r.w("CC_NAN_INIT") // some NaN
	case c.float && math.IsInf(c.f, 0):
		r.w(sign, "CC_INFINITY_INIT")
	default:
		r.literal(&expr{op: opLit, typ: t, val: c})
	}
}

// unionConstant writes the initializer of a constant that names a member of a union
// other than the first: as the bits of the first. A record with such a union in it is
// written as usual.
func (r *renderer) unionConstant(n *initNode) {
	if n.typ.kind != tRecord || !n.typ.rec.union {
		r.braces(n)
		return
	}
	first := n.typ.rec.fields[0].typ
	for i, k := range n.kids {
		if i == 0 || k.value == nil || !k.typ.isScalar() || !first.isScalar() || kindSize(k.typ.base) > kindSize(first.base) {
			continue
		}
		if v, ok := r.lanes(k.value); ok {
			bits := bitsOf(v[0].convert(k.typ), k.typ.base) & (^uint64(0) >> (64 - 8*kindSize(k.typ.base)))
			r.w("{")
			r.constantLane(fromBits(bits, first.base), first)
			r.w("}")
			return
		}
	}
	pos := token.Pos{}
	eachValue(n, func(e *expr) {
		if pos.Line == 0 {
			pos = r.p.posOf(e)
		}
	})
	r.refuse(pos, "constant", "a constant union whose second or later member is initialized cannot be rendered for this target")
}
