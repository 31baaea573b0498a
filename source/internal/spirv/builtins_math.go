package spirv

// Built-in functions of floating numbers. The library has them for float and double; those of half are computed in
// float and rounded.

import (
	"strings"

	"github.com/concord-compute/concord/source/internal/spirv/module"
	"github.com/concord-compute/concord/source/internal/tree"
)

// math writes the built-ins that are neither instructions nor about memory. ok is false for those that it does not
// know.
func (f *function) math(e *tree.Expr, name string) (value, bool) {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "half_"), "native_")
	switch {
	case strings.Contains(name, "sub_group"):
		return f.subGroup(e, name), true
	case strings.HasPrefix(name, "dot_") || name == "dot" && tree.IsIntKind(e.Type.Base):
		return f.byteDot(e, name), true
	case writesBack(e.Text):
		return f.twoResults(e, name), true
	}
	if v, ok := f.relational(e, name); ok {
		return v, true
	}
	if v, ok := f.geometric(e, name); ok {
		return v, true
	}
	if v, ok := f.integer(e, name); ok {
		return v, true
	}
	return f.floating(e, name)
}

// isReal reports whether k is a kind of floating numbers.
func isReal(k tree.Kind) bool { return isFloating(k) || k == tree.Half }

// realKind returns the kind in which a function of floating numbers is computed.
func realKind(k tree.Kind) tree.Kind {
	if k == tree.Double {
		return tree.Double
	}
	return tree.Float
}

// real returns a number as it is computed with: a half as a float.
func (f *function) real(v id, k tree.Kind) id {
	if k == tree.Half {
		return f.fromHalf(v)
	}
	return v
}

// rounded is the reverse of real.
func (f *function) rounded(v id, k tree.Kind) id {
	if k == tree.Half {
		return f.toHalf(v)
	}
	return v
}

// libraryName returns the name of the library's function for numbers of a kind.
func libraryNameOf(name string, k tree.Kind) string {
	if k == tree.Double {
		return "cc_" + name + "_d"
	}
	return "cc_" + name + "_f"
}

// ask calls a function of the library for floating numbers of kind k.
func (f *function) ask(name string, k tree.Kind, args ...id) id {
	k = realKind(k)
	return f.callLibrary(libraryNameOf(name, k), k, args...)
}

// floating writes the functions whose lanes the library computes.
func (f *function) floating(e *tree.Expr, name string) (value, bool) {
	k := e.Args[0].Type.Base
	switch name {
	case "recip":
		return f.lanewise(e.Type, f.args(e), func(x []id) id { return f.divide(k, f.one(k), x[0]) }), true
	case "divide":
		return f.lanewise(e.Type, f.args(e), func(x []id) id { return f.divide(k, x[0], x[1]) }), true
	case "mad": // of halves
		return f.lanewise(e.Type, f.args(e), func(x []id) id {
			p := f.exact(module.OpFMul, tree.Float, f.fromHalf(x[0]), f.fromHalf(x[1]))
			return f.toHalf(f.exact(module.OpFAdd, tree.Float, p, f.fromHalf(x[2])))
		}), true
	case "copysign":
		return f.lanewise(e.Type, f.args(e), func(x []id) id { return f.withSign(k, x[0], x[1]) }), true
	case "nan":
		return f.lanewise(e.Type, f.args(e), func(x []id) id { return f.nan(x[0], e.Type.Base) }), true
	case "step": // the library has another function of that name
		name = "step_of"
	case "fma":
		if k == tree.Half {
			return f.lanewise(e.Type, f.args(e), func(x []id) id {
				return f.toHalf(f.callLibrary("cc_fma_h", tree.Float, f.fromHalf(x[0]), f.fromHalf(x[1]), f.fromHalf(x[2])))
			}), true
		}
	case "nextafter":
		if k == tree.Half {
			return f.lanewise(e.Type, f.args(e), func(x []id) id {
				return f.callLibrary("cc_nextafter_h", tree.UShort, x[0], x[1])
			}), true
		}
	}
	if !hasLibrary(libraryNameOf(name, k)) || !e.Type.IsArith() {
		return value{}, false
	}
	args := f.args(e)
	result := e.Type.Base
	if isReal(result) {
		result = realKind(result)
	}
	out := value{t: e.Type.Bare()}
	for i := range e.Type.Width() {
		var lane []id
		for _, a := range args {
			lane = append(lane, f.real(a.ids[min(i, len(a.ids)-1)], a.t.Base))
		}
		out.ids = append(out.ids, f.rounded(f.callLibrary(libraryNameOf(name, k), result, lane...), e.Type.Base))
	}
	return out, true
}

// one returns the constant 1 of float or double.
func (f *function) one(k tree.Kind) id {
	return f.constantOf(tree.IntValue(tree.Int, 1).Convert(tree.Scalar(k)))
}

// bitsKind returns the unsigned kind of the size of a floating kind, in which its bits are handled.
func bitsKind(k tree.Kind) tree.Kind {
	if isWide(k) {
		return tree.ULong
	}
	return tree.UInt
}

// signMask returns the bit of the sign.
func signMask(k tree.Kind) uint64 { return 1 << (8*tree.KindSize(k) - 1) }

// withSign writes copysign. Parts of two floating numbers are not joined by their bits: Mesa 22.3 does that wrongly
// where it is the end of nested conditions.
func (f *function) withSign(k tree.Kind, x, y id) id {
	if isFloating(k) {
		size := f.f.Ext(module.FAbs, f.kindType(k), x)
		return f.choose(k, f.classify("signbit", k, y), f.f.Emit(module.OpFNegate, f.kindType(k), size), size)
	}
	u := bitsKind(k)
	a := f.op(module.OpBitwiseAnd, u, f.bitsOf(x, k), f.constant(u, signMask(k)-1))
	b := f.op(module.OpBitwiseAnd, u, f.bitsOf(y, k), f.constant(u, signMask(k)))
	return f.ofBits(f.op(module.OpBitwiseOr, u, a, b), k)
}

// bitsOf returns the bits of a floating number, and ofBits the number with some bits.
func (f *function) bitsOf(v id, k tree.Kind) id {
	if isFloating(k) {
		return f.bitcast(v, k, bitsKind(k))
	}
	return v
}

func (f *function) ofBits(v id, k tree.Kind) id {
	if isFloating(k) {
		return f.bitcast(v, bitsKind(k), k)
	}
	return v
}

// nan writes nan(code).
func (f *function) nan(code id, k tree.Kind) id {
	if k == tree.Half {
		low := f.op(module.OpBitwiseAnd, tree.UInt, code, f.uint(0x1ff))
		return f.op(module.OpBitwiseOr, tree.UInt, low, f.uint(0x7e00))
	}
	return f.ask("nan_of", k, code)
}

// twoResults writes the functions that have a second result, which they store through a pointer.
func (f *function) twoResults(e *tree.Expr, name string) value {
	last := len(e.Args) - 1
	var args []value
	for _, a := range e.Args[:last] {
		args = append(args, f.expr(a))
	}
	to := f.fixed(f.pointee(e.Args[last]))
	k := e.Type.Base
	called := f.libraryFunction(libraryNameOf(name, k))
	out, other := value{t: e.Type.Bare()}, value{t: to.t.Bare()}
	for i := range e.Type.Width() {
		var lane []value
		for _, a := range args {
			lane = append(lane, value{ids: []id{f.real(a.ids[i], a.t.Base)}})
		}
		r := f.invoke(called, nil, lane)
		out.ids = append(out.ids, f.rounded(r.ids[0], k))
		other.ids = append(other.ids, f.rounded(r.ids[1], to.t.Base))
	}
	f.store(to, other)
	return out
}

// relational writes the tests of floating numbers: 0 and 1 of scalars, 0 and -1 in lanes.
func (f *function) relational(e *tree.Expr, name string) (value, bool) {
	k := e.Args[0].Type.Base
	var test func(x []id) id
	switch name {
	case "isequal", "isnotequal", "isgreater", "isgreaterequal", "isless", "islessequal":
		op := map[string]string{"isequal": "==", "isnotequal": "!=", "isgreater": ">", "isgreaterequal": ">=",
			"isless": "<", "islessequal": "<="}[name]
		test = func(x []id) id { return f.compare(op, k, x[0], x[1]) }
	case "islessgreater":
		test = func(x []id) id {
			return f.test(module.OpLogicalOr, f.compare("<", k, x[0], x[1]), f.compare(">", k, x[0], x[1]))
		}
	case "isordered":
		test = func(x []id) id {
			return f.test(module.OpLogicalAnd, f.compare("==", k, x[0], x[0]), f.compare("==", k, x[1], x[1]))
		}
	case "isunordered":
		test = func(x []id) id {
			return f.test(module.OpLogicalOr, f.compare("!=", k, x[0], x[0]), f.compare("!=", k, x[1], x[1]))
		}
	case "isfinite", "isinf", "isnan", "isnormal", "signbit":
		test = func(x []id) id { return f.classify(name, k, x[0]) }
	default:
		return value{}, false
	}
	yes := int64(-1)
	if e.Type.IsScalar() {
		yes = 1
	}
	return f.lanewise(e.Type, f.args(e), func(x []id) id { return f.fromCondition(test(x), e.Type.Base, yes) }), true
}

// classify looks at the bits of a floating number, since devices may assume that there are no NaNs.
func (f *function) classify(name string, k tree.Kind, v id) id {
	u := bitsKind(k)
	exponent := map[tree.Kind]uint64{tree.Half: 0x7c00, tree.Float: 0x7f800000, tree.Double: 0x7ff << 52}[k]
	all := f.bitsOf(v, k)
	inf := f.constant(u, exponent)
	if name == "signbit" {
		return f.test(module.OpINotEqual, f.op(module.OpBitwiseAnd, u, all, f.constant(u, signMask(k))), f.constant(u, 0))
	}
	b := f.op(module.OpBitwiseAnd, u, all, f.constant(u, signMask(k)-1))
	switch name {
	case "isfinite":
		return f.test(module.OpULessThan, b, inf)
	case "isinf":
		return f.test(module.OpIEqual, b, inf)
	case "isnan":
		return f.test(module.OpUGreaterThan, b, inf)
	}
	least := exponent & -exponent // the least normal number
	return f.test(module.OpLogicalAnd, f.test(module.OpULessThan, b, inf),
		f.test(module.OpUGreaterThanEqual, b, f.constant(u, least)))
}

// geometric writes the functions of vectors as points. Lengths are computed of lanes that a power of two keeps in
// range.
func (f *function) geometric(e *tree.Expr, name string) (value, bool) {
	k := e.Args[0].Type.Base
	switch name = strings.TrimPrefix(name, "fast_"); name {
	case "dot":
		args := f.args(e)
		var sum id
		for i, x := range args[0].ids {
			p := f.binary("*", k, x, args[1].ids[i])
			if sum == 0 {
				sum = p
			} else {
				sum = f.binary("+", k, sum, p)
			}
		}
		return scalar(e.Type, sum), true
	case "cross":
		args := f.args(e)
		a, b := args[0].ids, args[1].ids
		out := value{t: e.Type.Bare()}
		for i := range 3 {
			j, l := (i+1)%3, (i+2)%3
			out.ids = append(out.ids, f.binary("-", k, f.binary("*", k, a[j], b[l]), f.binary("*", k, a[l], b[j])))
		}
		if e.Type.Width() == 4 {
			out.ids = append(out.ids, f.constant(k, 0))
		}
		return out, true
	case "length":
		return scalar(e.Type, f.length(f.expr(e.Args[0]))), true
	case "distance":
		args := f.args(e)
		d := f.operate("-", args[0], args[1], args[0].t)
		return scalar(e.Type, f.length(d)), true
	case "normalize":
		return f.normalize(f.expr(e.Args[0])), true
	}
	return value{}, false
}

// norm returns the length of a vector times a power of two, and that.
func (f *function) norm(x []id, most id, k tree.Kind) (n, scale id) {
	scale = f.ask("scale", k, most)
	var sum id
	for _, v := range x {
		v = f.exact(module.OpFMul, k, v, scale)
		v = f.exact(module.OpFMul, k, v, v)
		if sum == 0 {
			sum = v
		} else {
			sum = f.exact(module.OpFAdd, k, sum, v)
		}
	}
	return f.ask("sqrt", k, sum), scale
}

// reals returns the lanes of a vector as they are computed with, and the largest magnitude.
func (f *function) reals(v value) (x []id, most id, k tree.Kind) {
	k = realKind(v.t.Base)
	for _, one := range v.ids {
		one = f.real(one, v.t.Base)
		x = append(x, one)
		a := f.f.Ext(module.FAbs, f.kindType(k), one)
		if most == 0 {
			most = a
		} else {
			most = f.choose(k, f.compare(">", k, a, most), a, most)
		}
	}
	return x, most, k
}

// length returns the length of a vector, or the magnitude of a scalar.
func (f *function) length(v value) id {
	x, most, k := f.reals(v)
	if !v.t.IsVector() {
		return f.rounded(most, v.t.Base)
	}
	n, scale := f.norm(x, most, k)
	return f.rounded(f.exact(module.OpFMul, k, n, f.ask("unscale", k, scale)), v.t.Base)
}

func (f *function) normalize(v value) value {
	x, most, k := f.reals(v)
	out := value{t: v.t.Bare()}
	if !v.t.IsVector() {
		out.ids = []id{f.rounded(f.ask("sign", k, x[0]), v.t.Base)}
		return out
	}
	infinite := f.classify("isinf", k, most)
	for i := range x { // only infinite lanes count, if there are any
		x[i] = f.choose(k, infinite, f.ask("unit", k, x[i]), x[i])
	}
	n, scale := f.norm(x, f.choose(k, infinite, f.one(k), most), k)
	for _, one := range x {
		out.ids = append(out.ids, f.rounded(f.ask("normal", k, one, n, scale), v.t.Base))
	}
	return out
}
