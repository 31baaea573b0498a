package gomlx

// Random bits.

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/tensor"
)

// RNGBitGenerator returns random bits, and the state with the next number. The bits are those of Philox4x32-10,
// whose key is a mixture of the three words of the state, and whose counter is the number of the element.
func (f *function) RNGBitGenerator(state compute.Value,
	shape shapes.Shape) (newState, values compute.Value, err error) {
	const op = compute.OpTypeRNGBitGenerator
	in, err := f.operands(op, state)
	if err != nil {
		return nil, nil, err
	}
	if !in[0].shape.Equal(compute.RNGStateShape) {
		return nil, nil, errors.Errorf("%s with a state of shape %s, which has to be %s", op, in[0].shape,
			compute.RNGStateShape)
	}
	t, err := typeOf(shape.DType)
	if err != nil {
		return nil, nil, err
	}
	if !isInteger(t) {
		return nil, nil, errors.Wrapf(compute.ErrNotImplemented, "%s of %s", op, shape)
	}
	out, err := f.several(&node{op: op, in: in, emit: func(tr *trace, in []array) []array {
		var word [3]array
		for i := range word {
			word[i] = in[0].Index(0, i)
		}
		number := func(x uint64) *expr.Expr { return expr.Int(tensor.U64, int64(x)) }
		key := expr.Input(0, tensor.U64)
		for i := range 2 {
			key = mixed(key.Mul(number(0x9e3779b97f4a7c15)).Add(expr.Input(1+i, tensor.U64)))
		}
		bits32 := func(lane int) *expr.Expr { return expr.Random(expr.Input(0, tensor.U64), 0, lane) }
		e := bits32(0)
		u := unsigned(t)
		if u == tensor.U64 {
			high := expr.Apply(expr.Shl, bits32(1).Cast(tensor.U64), number(32))
			e = expr.Apply(expr.Or, high, e.Cast(tensor.U64))
		} else if u != tensor.U32 {
			e = expr.Apply(expr.Shr, e, expr.Int(tensor.U32, int64(32-bitsOf(u)))).Cast(u)
		}
		keys := tensor.Apply("key", key, word[0], word[1], word[2])
		values := tensor.Apply("random bits", bits(e, t), keys.Expand(tr.shape(shape).Dimensions...))
		next := word[1].Add(uint64(1))
		carry := next.Eq(uint64(0)).Cast(tensor.U64)
		return []array{tensor.Stack(0, word[0], next, word[2].Add(carry)), values}
	}}, in[0].shape, shape)
	if err != nil {
		return nil, nil, err
	}
	return out[0], out[1], nil
}

// mixed returns a number of 64 bits in which every bit depends on every bit of x: the last steps of SplitMix64.
func mixed(x *expr.Expr) *expr.Expr {
	for _, s := range []struct {
		shift int64
		by    uint64
	}{{30, 0xbf58476d1ce4e5b9}, {27, 0x94d049bb133111eb}, {31, 1}} {
		x = expr.Apply(expr.Xor, x, expr.Apply(expr.Shr, x, expr.Int(tensor.U64, s.shift))).Mul(expr.Int(tensor.U64,
			int64(s.by)))
	}
	return x
}
