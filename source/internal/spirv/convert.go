package spirv

// Explicit conversions: convert_T with saturation and rounding modes, as_T.

import (
	"github.com/concord-compute/concord/source/internal/builtins"
	"github.com/concord-compute/concord/source/internal/spirv/module"
	"github.com/concord-compute/concord/source/internal/tree"
)

// The rounding modes as the library knows them.
const (
	modeDefault = iota // to nearest for floating results, towards zero for integers
	modeNearest
	modeZero
	modeUp
	modeDown
)

var modes = map[string]int{"": modeDefault, "_rte": modeNearest, "_rtz": modeZero, "_rtp": modeUp, "_rtn": modeDown}

// conversion writes convert_T(x) or as_T(x).
func (f *function) conversion(c builtins.Conversion, v value) value {
	if c.As {
		return f.reinterpret(v, c.To)
	}
	out := value{t: c.To}
	for _, x := range v.ids {
		out.ids = append(out.ids, f.convertBy(x, v.t.Base, c.To.Base, c.Sat, modes[c.Mode]))
	}
	return f.as(out, c.To)
}

// convertBy converts a scalar with saturation and a rounding mode.
func (f *function) convertBy(v id, from, to tree.Kind, sat bool, mode int) id {
	directed := mode != modeDefault && mode != modeNearest
	switch {
	case from == tree.Bool:
		return f.convert(v, from, to)
	case tree.IsIntKind(from) && tree.IsIntKind(to):
		if sat {
			v = f.saturate(v, from, to)
		}
		return f.convert(v, from, to)
	case tree.IsIntKind(to):
		return f.roundToInt(v, from, to, sat, mode)
	case !directed:
		return f.convert(v, from, to)
	case to == tree.Half && from == tree.Double:
		return f.callLibrary("cc_double_to_half", to, v, f.uint(mode))
	case to == tree.Half && from != tree.Half:
		return f.callLibrary("cc_float_to_half", to, f.convert(v, from, tree.Float), f.uint(mode))
	case from == tree.Double && to == tree.Float:
		return f.callLibrary("cc_double_to_float", to, v, f.uint(mode))
	case !tree.IsIntKind(from) || to == tree.Double && !isWide(from):
		return f.convert(v, from, to)
	}
	name, wide := "cc_ulong_to_", tree.ULong
	if isSigned(from) {
		name, wide = "cc_long_to_", tree.Long
	}
	return f.callLibrary(name+to.String(), to, f.convert(v, from, wide), f.uint(mode))
}

// limits returns the least and the largest value of an integer kind.
func limits(k tree.Kind) (least, most tree.Value) {
	bits := 8 * tree.KindSize(k)
	if isSigned(k) {
		return tree.IntValue(k, -1<<(bits-1)), tree.BitsValue(k, 1<<(bits-1)-1)
	}
	return tree.IntValue(k, 0), tree.BitsValue(k, 1<<bits-1)
}

// saturate limits an integer of one kind to the values of another.
func (f *function) saturate(v id, from, to tree.Kind) id {
	least, most := limits(to)
	if low, _ := limits(from); low.Negative() && (!least.Negative() || low.Int() < least.Int()) {
		c := f.constantOf(tree.IntValue(from, least.Int()))
		v = f.choose(from, f.compare("<", from, v, c), c, v)
	}
	if _, high := limits(from); high.Bits > most.Bits {
		c := f.constantOf(tree.IntValue(from, most.Int()))
		v = f.choose(from, f.compare(">", from, v, c), c, v)
	}
	return v
}

// roundToInt converts a floating number to an integer.
func (f *function) roundToInt(v id, from, to tree.Kind, sat bool, mode int) id {
	if from == tree.Half {
		v, from = f.fromHalf(v), tree.Float
	}
	switch mode {
	case modeNearest:
		v = f.f.Ext(module.RoundEven, f.kindType(from), v)
	case modeUp:
		v = f.f.Ext(module.Ceil, f.kindType(from), v)
	case modeDown:
		v = f.f.Ext(module.Floor, f.kindType(from), v)
	}
	if !sat {
		return f.convert(v, from, to)
	}
	least, most := limits(to)
	top := tree.FloatValue(from, float64(most.Bits/2+1)*2) // 2^bits, which is exact
	low := tree.FloatValue(from, least.Float())
	// what is out of range, or a NaN, must not reach the instruction
	above := f.compare(">=", from, v, f.constantOf(top))
	below := f.compare("<=", from, v, f.constantOf(low))
	inside := f.test(module.OpLogicalAnd, f.compare("<", from, v, f.constantOf(top)),
		f.compare(">", from, v, f.constantOf(low)))
	r := f.convert(f.choose(from, inside, v, f.constant(from, 0)), from, to)
	return f.choose(to, above, f.constantOf(most), f.choose(to, below, f.constantOf(least), r))
}

// reinterpret returns the bytes of a value as another type of the same size.
func (f *function) reinterpret(v value, t *tree.Type) value {
	from, to := regKind(v.t), t.Base
	if v.t.IsPointer() {
		v = scalar(tree.ULongType, f.convert(v.one(), from, tree.ULong))
		from = tree.ULong
	}
	a, b := tree.KindSize(from), tree.KindSize(to)
	out := value{t: t.Bare()}
	if a == b {
		for _, x := range v.ids {
			out.ids = append(out.ids, f.sameBits(x, from, to))
		}
	} else {
		out.ids = f.fromWords(f.toWords(v, from), to, t.Width())
	}
	for len(out.ids) < t.Width() { // the fourth lane of a vector of three is undefined
		out.ids = append(out.ids, f.constant(to, 0))
	}
	out.ids = out.ids[:t.Width()]
	return out
}

// sameBits returns a scalar with the same bits as another kind of the same size.
func (f *function) sameBits(v id, from, to tree.Kind) id {
	if tree.KindSize(from) >= 4 {
		return f.bitcast(v, from, to)
	}
	return f.narrow(v, to)
}

// toWords returns the bytes of a vector or scalar as words.
func (f *function) toWords(v value, k tree.Kind) (words []id) {
	size := tree.KindSize(k)
	for i, x := range v.ids {
		switch at := i * size % 4; {
		case size == 8:
			low, high := f.halves(x)
			words = append(words, low, high)
			continue
		case size == 4:
			x = f.bitcast(x, k, tree.UInt)
		default:
			x = f.op(module.OpBitwiseAnd, tree.UInt, x, f.uint(1<<(8*size)-1))
			if at > 0 {
				x = f.shift(module.OpShiftLeftLogical, tree.UInt, x, 8*at)
				words[len(words)-1] = f.op(module.OpBitwiseOr, tree.UInt, words[len(words)-1], x)
				continue
			}
		}
		words = append(words, x)
	}
	return words
}

// fromWords returns n lanes of kind k from words, or as many as the words have.
func (f *function) fromWords(words []id, k tree.Kind, n int) (lanes []id) {
	size := tree.KindSize(k)
	for i := 0; i < n && (i+1)*size <= 4*len(words); i++ {
		w := words[i*size/4]
		switch size {
		case 8:
			lanes = append(lanes, f.joined(k, w, words[i*2+1]))
		case 4:
			lanes = append(lanes, f.bitcast(w, tree.UInt, k))
		default:
			x := f.shift(module.OpShiftRightLogical, tree.UInt, w, i*size%4*8)
			lanes = append(lanes, f.narrow(x, k))
		}
	}
	return lanes
}
