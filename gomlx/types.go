package gomlx

// Types of elements: GoMLX's and package tensor's, and numbers that stand for the ends of their ranges.

import (
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/tensor"
)

// array is what a value of a computation is while that is traced.
type array = *tensor.Tensor

// types has the element type of each data type that the backend computes with.
var types = map[dtypes.DType]tensor.Type{
	dtypes.Bool:     tensor.Bool,
	dtypes.Int8:     tensor.I8,
	dtypes.Int16:    tensor.I16,
	dtypes.Int32:    tensor.I32,
	dtypes.Int64:    tensor.I64,
	dtypes.Uint8:    tensor.U8,
	dtypes.Uint16:   tensor.U16,
	dtypes.Uint32:   tensor.U32,
	dtypes.Uint64:   tensor.U64,
	dtypes.Float16:  tensor.F16,
	dtypes.BFloat16: tensor.BF16,
	dtypes.Float32:  tensor.F32,
	dtypes.Float64:  tensor.F64,
}

// typeOf returns the element type of a data type, or an error that wraps compute.ErrNotImplemented.
func typeOf(d dtypes.DType) (tensor.Type, error) {
	t, ok := types[d]
	if !ok {
		return 0, errors.Wrapf(compute.ErrNotImplemented, "data type %s", d)
	}
	return t, nil
}

// unsigned returns the unsigned integer type of as many bits as t.
func unsigned(t tensor.Type) tensor.Type {
	return map[int]tensor.Type{1: tensor.U8, 2: tensor.U16, 4: tensor.U32, 8: tensor.U64}[t.Size()]
}

// signed returns the signed integer type of as many bits as t.
func signed(t tensor.Type) tensor.Type {
	return map[int]tensor.Type{1: tensor.I8, 2: tensor.I16, 4: tensor.I32, 8: tensor.I64}[t.Size()]
}

func isInteger(t tensor.Type) bool { return !tensor.IsFloat(t) && t != tensor.Bool }

func isUnsigned(t tensor.Type) bool { return isInteger(t) && t == unsigned(t) }

func bitsOf(t tensor.Type) int { return 8 * t.Size() }

// limit returns the smallest or the largest number of a type: an infinity, if it has one.
func limit(t tensor.Type, largest bool) any {
	switch {
	case t == tensor.Bool:
		return largest
	case tensor.IsFloat(t):
		if largest {
			return math.Inf(1)
		}
		return math.Inf(-1)
	case isUnsigned(t):
		if largest {
			return uint64(math.MaxUint64) >> (64 - bitsOf(t))
		}
		return 0
	case largest:
		return int64(math.MaxInt64) >> (64 - bitsOf(t))
	}
	return int64(math.MinInt64) >> (64 - bitsOf(t))
}

// combined returns x combined with what there is already, which is nil at first.
func combined(sum, x array, combine func(x array, y any) array) array {
	if sum == nil {
		return x
	}
	return combine(sum, x)
}

// convert returns x as elements of another type. Integers keep their low bits, where tensor.Cast would keep to
// the limits of the type.
func convert(x array, to tensor.Type) array {
	from := x.Type()
	if x.Err() != nil || from == to || !isInteger(from) || !isInteger(to) {
		return x.Cast(to)
	}
	e := expr.Input(0, from)
	if to.Size() < from.Size() {
		u := unsigned(from)
		mask := int64(1)<<bitsOf(to) - 1
		e = expr.Apply(expr.And, bits(e, u), expr.Int(u, mask)).Cast(unsigned(to))
	} else if to.Size() > from.Size() {
		if isUnsigned(from) {
			e = e.Cast(unsigned(to))
		} else {
			e = e.Cast(signed(to))
		}
	}
	return tensor.Apply("convert", bits(e, to), x)
}

// bits returns the bits of e as type t of the same size.
func bits(e *expr.Expr, t tensor.Type) *expr.Expr {
	if e.Type() == t {
		return e
	}
	return e.Bits(t)
}
