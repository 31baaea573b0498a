package render

// Constants on GPUs: their compilers require initializers that are constant expressions in C++,
// which operators and built-ins of vectors, other constants and as_T are not. So values are
// computed here wherever that is possible.

import (
	"math"
	"slices"
	"strconv"

	"github.com/concord-compute/concord/source/internal/builtins"
	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// lanesOf is a stored result of lanes.
type lanesOf struct {
	v  []tree.Value
	ok bool
}

// lanes evaluates e, a scalar or vector. It returns false if e is not constant.
func (r *renderer) lanes(e *tree.Expr) ([]tree.Value, bool) {
	if e.Type.IsScalar() {
		if v := tree.Fold(e); v.OK {
			return []tree.Value{v}, true
		}
	}
	if !e.Type.IsArith() {
		return nil, false
	}
	switch e.Op {
	case tree.OpParen:
		return r.lanes(e.A)
	case tree.OpNamed:
		return namedValue(e.Text)
	case tree.OpSym, tree.OpIndex, tree.OpMember:
		return r.constantElement(e)
	case tree.OpVecLit:
		return r.literalLanes(e)
	case tree.OpSwizzle:
		return r.swizzleLanes(e)
	case tree.OpCast, tree.OpConv:
		return r.convertLanes(e)
	case tree.OpBuiltin:
		return r.asLanes(e)
	case tree.OpUnary, tree.OpBinary, tree.OpShift, tree.OpCompare:
		return r.operatorLanes(e)
	}
	return nil, false
}

func namedValue(name string) ([]tree.Value, bool) {
	f, ok := map[string]float64{"CC_INFINITY": math.Inf(1), "CC_HUGE_VAL": math.Inf(1), "CC_NAN": math.NaN(),
		"CC_MAXFLOAT": math.MaxFloat32}[name]
	return []tree.Value{{OK: true, IsFloat: true, Float: f}}, ok
}

// constantElement evaluates a constant, or an element or member of one.
func (r *renderer) constantElement(e *tree.Expr) ([]tree.Value, bool) {
	n := constantNode(e)
	switch {
	case n == nil:
		return nil, false
	case n.Value != nil:
		known, asked := r.known[n] // constants that are computed from others are asked for often
		if !asked {
			r.known[n] = known // a constant whose initializer mentions itself is not constant
			known.v, known.ok = r.lanes(n.Value)
			known.v = slices.Clip(known.v)
			r.known[n] = known
		}
		return known.v, known.ok
	case n.Type.IsScalar() && len(n.Kids) == 0:
		return []tree.Value{tree.Value{OK: true}.Convert(n.Type)}, true
	}
	return nil, false
}

// constantNode finds the initializer of the object that e designates.
func constantNode(e *tree.Expr) *tree.Init {
	switch e.Op {
	case tree.OpParen, tree.OpDecay:
		return constantNode(e.A)
	case tree.OpSym:
		if e.Sym.Inst && e.Sym.Type.IsConst() {
			return e.Sym.Init
		}
	case tree.OpIndex:
		i := tree.Fold(e.B)
		if a := constantNode(e.A); a != nil && a.Value == nil && i.OK && i.Int >= 0 && a.Type.Kind == tree.TArray && i.Int < int64(a.Type.N) {
			return kidOf(a, int(i.Int), a.Type.Elem)
		}
	case tree.OpMember:
		a := constantNode(e.A)
		for _, f := range e.Path {
			if a == nil || a.Value != nil || a.Type.Rec.Union {
				return nil
			}
			a = kidOf(a, f.Index, f.Type)
		}
		return a
	}
	return nil
}

// kidOf returns element i, which is zero if the initializer does not mention it.
func kidOf(n *tree.Init, i int, t *tree.Type) *tree.Init {
	if k := n.Kids[i]; k != nil {
		return k
	}
	return &tree.Init{Type: t}
}

func (r *renderer) literalLanes(e *tree.Expr) ([]tree.Value, bool) {
	var out []tree.Value
	for _, a := range e.Args {
		v, ok := r.lanes(a)
		if !ok {
			return nil, false
		}
		for _, c := range v {
			out = append(out, convertLane(c, a.Type.Base, e.Type.Base))
		}
	}
	return spread(out, e.Type.Width())
}

// spread copies a single value to all n lanes.
func spread(v []tree.Value, n int) ([]tree.Value, bool) {
	for len(v) == 1 && n > 1 {
		for range n - 1 {
			v = append(v, v[0])
		}
	}
	return v, len(v) == n
}

func (r *renderer) swizzleLanes(e *tree.Expr) ([]tree.Value, bool) {
	v, ok := r.lanes(e.A)
	var out []tree.Value
	for _, i := range e.Lanes {
		if !ok || i >= len(v) {
			return nil, false
		}
		out = append(out, v[i])
	}
	return out, ok
}

func (r *renderer) convertLanes(e *tree.Expr) ([]tree.Value, bool) {
	v, ok := r.lanes(e.A)
	if !ok || !e.A.Type.IsArith() {
		return nil, false
	}
	out := make([]tree.Value, len(v))
	for i, c := range v {
		if out[i] = convertLane(c, e.A.Type.Base, e.Type.Base); !out[i].OK {
			return nil, false
		}
		if e.A.Type.Is(tree.Bool) && e.Type.IsVector() && tree.IsIntKind(e.Type.Base) {
			out[i].Int = -out[i].Int // true is all bits set
		}
	}
	return spread(out, e.Type.Width())
}

func convertLane(c tree.Value, from, to tree.Kind) tree.Value {
	if from == tree.ULong && !c.IsFloat && !tree.IsIntKind(to) {
		c = tree.Value{OK: c.OK, IsFloat: true, Float: float64(uint64(c.Int))}
	}
	return c.Convert(tree.Scalar(to))
}

// asLanes evaluates as_T.
func (r *renderer) asLanes(e *tree.Expr) ([]tree.Value, bool) {
	to, isConv := builtins.ConversionOf(e.Text)
	if !isConv || !to.As {
		return nil, false
	}
	v, ok := r.lanes(e.Args[0])
	if !ok {
		return nil, false
	}
	from := e.Args[0].Type
	var bytes []byte
	for _, c := range v {
		bits := bitsOf(c, from.Base)
		for range tree.KindSize(from.Base) {
			bytes = append(bytes, byte(bits))
			bits >>= 8
		}
	}
	var out []tree.Value
	size := tree.KindSize(to.To.Base)
	for i := range to.To.Width() {
		bits := uint64(0)
		for k := range size {
			if at := i*size + k; at < len(bytes) { // the fourth lane of a 3-vector is undefined
				bits |= uint64(bytes[at]) << (8 * k)
			}
		}
		out = append(out, fromBits(bits, to.To.Base))
	}
	return out, true
}

// operatorLanes evaluates an operator lane by lane, as tree.Fold does for scalars.
func (r *renderer) operatorLanes(e *tree.Expr) ([]tree.Value, bool) {
	a, ok := r.lanes(e.A)
	b := a
	if ok && e.B != nil {
		b, ok = r.lanes(e.B)
	}
	if !ok || e.Text == "&" && e.B == nil {
		return nil, false
	}
	n := e.Type.Width()
	a, okA := spread(a, n)
	b, okB := spread(b, n)
	if !okA || !okB {
		return nil, false
	}
	out := make([]tree.Value, n)
	for i := range out {
		one := tree.Expr{Op: e.Op, Text: e.Text, Type: tree.Scalar(e.Type.Base)}
		one.A = &tree.Expr{Op: tree.OpLit, Type: tree.Scalar(e.A.Type.Base), Val: a[i]}
		if e.B != nil {
			one.B = &tree.Expr{Op: tree.OpLit, Type: tree.Scalar(e.B.Type.Base), Val: b[i]}
		}
		if out[i] = tree.Fold(&one); !out[i].OK {
			return nil, false
		}
		if e.Op == tree.OpCompare && e.Type.IsVector() {
			out[i].Int = -out[i].Int
		}
	}
	return out, true
}

// bitsOf returns the bits of a constant of kind k.
func bitsOf(v tree.Value, k tree.Kind) uint64 {
	switch k {
	case tree.Half:
		return uint64(halfBits(v.Float))
	case tree.Float:
		return uint64(math.Float32bits(float32(v.Float)))
	case tree.Double:
		return math.Float64bits(v.Float)
	}
	return uint64(v.Int)
}

// fromBits returns the constant of kind k with these bits.
func fromBits(bits uint64, k tree.Kind) tree.Value {
	switch k {
	case tree.Half:
		return tree.Value{OK: true, IsFloat: true, Float: halfValue(uint16(bits))}
	case tree.Float:
		return tree.Value{OK: true, IsFloat: true, Float: float64(math.Float32frombits(uint32(bits)))}
	case tree.Double:
		return tree.Value{OK: true, IsFloat: true, Float: math.Float64frombits(bits)}
	}
	return tree.Value{OK: true, Int: tree.Wrap(int64(bits), k)}
}

// halfBits rounds to half: to nearest, ties to even.
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

// halfValue returns the number that the bits of a half represent.
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
func (r *renderer) constantValue(e *tree.Expr) {
	v, ok := r.lanes(e)
	switch {
	case !ok && hasBuiltin(e):
		r.refuse(r.p.PosOf(e), "constant", "this initializer of a constant cannot be rendered for this target")
		return
	case !ok:
		r.expr(e)
		return
	case !e.Type.IsVector():
		r.constantLane(v[0], e.Type)
		return
	}
	if !r.d.msl { // where the braces suffice, and a copy may not compile
		r.w(r.plain(e.Type))
	}
	r.w("{{")
	for i, c := range v {
		if i > 0 {
			r.w(", ")
		}
		r.constantLane(c, tree.Scalar(e.Type.Base))
	}
	r.w("}}")
}

// hasBuiltin reports whether e calls a built-in.
func hasBuiltin(e *tree.Expr) bool {
	if e == nil {
		return false
	}
	for _, a := range e.Args {
		if hasBuiltin(a) {
			return true
		}
	}
	return e.Op == tree.OpBuiltin || hasBuiltin(e.A) || hasBuiltin(e.B) || hasBuiltin(e.C)
}

// constantLane writes one number of scalar type t.
func (r *renderer) constantLane(c tree.Value, t *tree.Type) {
	sign := ""
	if math.Signbit(c.Float) {
		sign = "-"
	}
	switch {
	case t.Base == tree.Half && r.d.msl && !math.IsNaN(c.Float) && !math.IsInf(c.Float, 0):
		r.w(r.metalHalf(c.Float))
	case t.Base == tree.Half && r.d.msl:
		r.w("cc_half(")
		r.constantLane(c, tree.FloatType)
		r.w(")")
	case t.Base == tree.Half:
		r.w("cc_half(cc_half_bits{", strconv.Itoa(int(halfBits(c.Float))), "})")
	case c.IsFloat && math.IsNaN(c.Float):
		r.w("CC_NAN_INIT") // a NaN; its bits do not matter
	case c.IsFloat && math.IsInf(c.Float, 0):
		r.w(sign, "CC_INFINITY_INIT")
	default:
		r.literal(&tree.Expr{Op: tree.OpLit, Type: t, Val: c})
	}
}

// unionConstant writes the initializer of a constant that names a member of a union
// other than the first: as the bits of the first. A record with such a union in it is
// written as usual.
func (r *renderer) unionConstant(n *tree.Init) {
	if n.Type.Kind != tree.TRecord || !n.Type.Rec.Union {
		r.braces(n)
		return
	}
	first := n.Type.Rec.Fields[0].Type
	for i, k := range n.Kids {
		if i == 0 || k.Value == nil || !k.Type.IsScalar() || !first.IsScalar() || tree.KindSize(k.Type.Base) > tree.KindSize(first.Base) {
			continue
		}
		if v, ok := r.lanes(k.Value); ok {
			bits := bitsOf(v[0].Convert(k.Type), k.Type.Base) & (^uint64(0) >> (64 - 8*tree.KindSize(k.Type.Base)))
			r.w("{")
			r.constantLane(fromBits(bits, first.Base), first)
			r.w("}")
			return
		}
	}
	pos := token.Pos{}
	eachValue(n, func(e *tree.Expr) {
		if pos.Line == 0 {
			pos = r.p.PosOf(e)
		}
	})
	r.refuse(pos, "constant", "a constant union whose second or later member is initialized cannot be rendered for this target")
}
