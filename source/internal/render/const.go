package render

// Constants on GPUs: their compilers require initializers that are constant expressions in C++,
// which operators and built-ins of vectors, other constants and as_T are not. So values are
// computed here wherever that is possible.

import (
	"math"
	"strconv"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// constantValue writes a value in the initializer of a constant.
func (r *renderer) constantValue(e *tree.Expr) {
	v, ok := r.Lanes(e)
	switch {
	case !ok && hasBuiltin(e):
		r.refuse(r.p.PosOf(e), "constant", "this initializer of a constant cannot be rendered for this target")
		return
	case !ok:
		r.expr(e)
		return
	case !e.Type.IsVector():
		r.constantLane(v[0])
		return
	}
	if !r.d.msl { // where the braces suffice, and a copy may not compile
		r.w(r.plain(e.Type))
	}
	r.w("{{")
	for i, c := range v {
		r.comma(i)
		r.constantLane(c)
	}
	r.w("}}")
}

// hasBuiltin reports whether e calls a built-in.
func hasBuiltin(e *tree.Expr) bool {
	for k := range e.Operands {
		if hasBuiltin(k) {
			return true
		}
	}
	return e.Op == tree.OpBuiltin
}

// constantLane writes one number. Of NaNs, only the one of NAN has a form that all compilers take here: see
// needsWords.
func (r *renderer) constantLane(c tree.Value) {
	sign := ""
	if math.Signbit(c.Float()) {
		sign = "-"
	}
	f := c.Float()
	special := c.IsFloat() && (math.IsNaN(f) || math.IsInf(f, 0))
	switch {
	case c.Kind == tree.Half && special && r.d.msl:
		r.w("cc_half(")
		r.constantLane(c.Convert(tree.FloatType))
		r.w(")")
	case !special || c.Kind == tree.Half:
		r.literal(c)
	case math.IsNaN(f):
		r.w("CC_NAN_INIT")
	default:
		r.w(sign, "CC_INFINITY_INIT")
	}
}

// isPlainNaN reports whether c is the NaN of NAN, converted to its kind.
func isPlainNaN(c tree.Value) bool {
	return c == tree.FloatValue(c.Kind, math.Float64frombits(0x7ff8<<48))
}

// needsWords reports whether the initializer of a constant has no form in C++17 that all compilers for GPUs take:
// it initializes a member of a union other than the first, or is a NaN with other bits than NAN.
func (r *renderer) needsWords(n *tree.Init) bool {
	needs := r.needsAssign(n)
	eachValue(n, func(e *tree.Expr) {
		if !needs && e.Type.IsArith() && !tree.IsIntKind(e.Type.Base) {
			v, _ := r.Lanes(e)
			for _, c := range v {
				f := c.Float()
				needs = needs || f != f && !isPlainNaN(c)
			}
		}
	})
	return needs
}

// words writes the bytes of such a constant, as an array of integers; symbol writes how it is read.
func (r *renderer) words(g *tree.Symbol) {
	size, _ := g.Type.Size()
	image := make([]byte, size)
	if bad := r.fill(image, g.Init); bad != nil {
		r.refuse(r.p.PosOf(bad), "constant", "a constant union whose second or later member is initialized, or a NaN, "+
			"beside this value cannot be rendered for this target")
		return
	}
	kind := tree.UChar
	for _, k := range []tree.Kind{tree.UShort, tree.UInt, tree.ULong} {
		if tree.KindSize(k) <= g.Type.Alignment() { // of which the size is a multiple
			kind = k
		}
	}
	n := tree.KindSize(kind)
	t := tree.ArrayOf(tree.Scalar(kind).In(tree.Constant), size/n)
	r.w("alignas(", g.Type.Alignment(), ") ", r.constant(g, t), " = {")
	for i := 0; i < size; i += n {
		r.comma(i)
		r.literal(tree.FromBytes(kind, image[i:]))
	}
	r.w("};")
}

// fill writes an initializer's values to the bytes of its object, or returns a value that is not a number.
func (r *renderer) fill(image []byte, n *tree.Init) *tree.Expr {
	if n.Value != nil {
		v, ok := r.Lanes(n.Value)
		if !ok {
			return n.Value
		}
		at := image[:0]
		for _, c := range v {
			at = c.AppendTo(at)
		}
		return nil
	}
	for i, k := range n.Kids {
		at := 0
		if n.Type.Kind == tree.TRecord {
			at = n.Type.Rec.Fields[i].Offset
		} else {
			size, _ := n.Type.Elem.Size()
			at = i * size
		}
		if bad := r.fill(image[at:], k); bad != nil {
			return bad
		}
	}
	return nil
}

// literal writes a constant of a scalar type that is not a NaN.
func (r *renderer) literal(c tree.Value) {
	v := c.Int()
	switch c.Kind {
	case tree.Float:
		r.w(r.floatText(c.Float(), 32))
	case tree.Double:
		if r.d.msl {
			r.metalDouble(token.Pos{})
		}
		r.w(r.floatText(c.Float(), 64))
	case tree.Half:
		if r.d.msl {
			r.w("cc_half(", r.floatText(c.Float(), 32), ")")
			return
		}
		r.w("cc_half(cc_half_bits{", strconv.FormatUint(c.Bits, 10), "})")
	case tree.UInt:
		r.w(c.String(), "u")
	case tree.Long:
		if v == math.MinInt64 {
			r.w("cc_long(-9223372036854775807", r.longSuffix(), " - 1)")
			return
		}
		r.w("cc_long(", c.String(), r.longSuffix(), ")")
	case tree.ULong:
		r.w("cc_ulong(", c.String(), "U", r.longSuffix(), ")")
	default:
		switch {
		case v == math.MinInt32:
			r.w("(-2147483647 - 1)")
		case v < 0:
			r.w("(", c.String(), ")")
		default:
			r.w(c.String())
		}
	}
}
