package gomlx

// Reductions, running sums, places of the largest elements, and products.

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/compute/support/xslices"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/tensor"
)

// reduce adds a reduction over axes, or all.
func (f *function) reduce(op compute.OpType, x compute.Value, axes []int, fits func(d dtypes.DType) bool,
	emit func(x array, axes ...int) array) (compute.Value, error) {
	axes = slices.Clone(axes)
	infer := func(in []shapes.Shape) (shapes.Shape, error) {
		if !fits(in[0].DType) {
			return shapes.Invalid(), errors.Errorf("%s of %s", op, in[0])
		}
		if len(axes) == 0 {
			axes = others(in[0].Rank())
		}
		return shapeinference.Reduce(in[0], axes)
	}
	return f.inferred(op, []compute.Value{x}, infer, func(_ *trace, in []array) array {
		x := in[0]
		if len(axes) == 0 {
			return x
		}
		return convert(emit(x, axes...), x.Type())
	})
}

func isNumber(d dtypes.DType) bool { return d.IsInt() || d.IsFloat() }
func isTruth(d dtypes.DType) bool  { return d == dtypes.Bool }
func isAny(dtypes.DType) bool      { return true }

// ReduceSum returns the sum over axes.
func (f *function) ReduceSum(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceSum, x, axes, isNumber, array.Sum)
}

// ReduceProduct returns the product over axes.
func (f *function) ReduceProduct(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceProduct, x, axes, isNumber, array.Prod)
}

// ReduceMax returns the largest element over axes, the smallest number of the type if there is none.
func (f *function) ReduceMax(x compute.Value, axes ...int) (compute.Value, error) {
	return f.extreme(compute.OpTypeReduceMax, x, axes, array.Max, array.Any, false)
}

// ReduceMin returns the smallest element over axes, the largest number of the type if there is none.
func (f *function) ReduceMin(x compute.Value, axes ...int) (compute.Value, error) {
	return f.extreme(compute.OpTypeReduceMin, x, axes, array.Min, array.All, true)
}

// extreme adds a reduction to an extreme of numbers or of truths. Of no elements it is a limit of their type.
func (f *function) extreme(op compute.OpType, x compute.Value, axes []int,
	ofNumbers, ofTruths func(x array, axes ...int) array, largest bool) (compute.Value, error) {
	return f.reduce(op, x, axes, isAny, func(x array, axes ...int) array {
		switch {
		case x.Type() == tensor.Bool:
			return ofTruths(x, axes...)
		case x.Len() > 0:
			return ofNumbers(x, axes...)
		}
		kept := dimsAt(x.Shape(), others(x.Rank(), axes...))
		return tensor.Full(x.Scope(), x.Type(), limit(x.Type(), largest), kept...)
	})
}

// ReduceLogicalAnd returns whether all are true.
func (f *function) ReduceLogicalAnd(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceLogicalAnd, x, axes, isTruth, array.All)
}

// ReduceLogicalOr returns whether one is true.
func (f *function) ReduceLogicalOr(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceLogicalOr, x, axes, isTruth, array.Any)
}

// ReduceLogicalXor returns whether an odd number of them is true.
func (f *function) ReduceLogicalXor(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceLogicalXor, x, axes, isTruth, func(x array, axes ...int) array {
		return x.Sum(axes...).And(1).Cast(tensor.Bool)
	})
}

// ReduceBitwiseAnd returns the bits that are set in all.
func (f *function) ReduceBitwiseAnd(x compute.Value, axes ...int) (compute.Value, error) {
	return f.bitwise(compute.OpTypeReduceBitwiseAnd, x, axes, array.And, -1)
}

// ReduceBitwiseOr returns the bits that are set in one.
func (f *function) ReduceBitwiseOr(x compute.Value, axes ...int) (compute.Value, error) {
	return f.bitwise(compute.OpTypeReduceBitwiseOr, x, axes, array.Or, 0)
}

// ReduceBitwiseXor returns the bits that are set in an odd number of them.
func (f *function) ReduceBitwiseXor(x compute.Value, axes ...int) (compute.Value, error) {
	return f.bitwise(compute.OpTypeReduceBitwiseXor, x, axes, array.Xor, 0)
}

// bitwise adds a reduction by halves: the first half is combined with the second, until one element is left.
func (f *function) bitwise(op compute.OpType, x compute.Value, axes []int,
	combine func(x array, y any) array, none int) (compute.Value, error) {
	return f.reduce(op, x, axes, dtypes.DType.IsInt, func(x array, axes ...int) array {
		return folded(x, axes, combine, convert(tensor.Full(x.Scope(), tensor.I64, none), x.Type()))
	})
}

// folded reduces axes by halves with an operation on two tensors; none is the result of no elements.
func folded(x array, axes []int, combine func(x array, y any) array,
	none array) array {
	order := others(x.Rank(), axes...)
	kept := dimsAt(x.Shape(), order)
	x = x.Permute(append(order, axes...)...).Reshape(append(slices.Clone(kept), -1)...)
	n := x.Dim(-1)
	if n == 0 {
		return none.Expand(kept...)
	}
	last := x.Rank() - 1
	for n > 1 {
		half := n / 2
		y := combine(x.Narrow(last, 0, half), x.Narrow(last, half, half))
		if n%2 == 1 {
			first := combine(y.Narrow(last, 0, 1), x.Narrow(last, n-1, 1))
			if y = first; half > 1 {
				y = tensor.Concat(last, first, y.Narrow(last, 1, half-1))
			}
		}
		x, n = y, half
	}
	return x.Reshape(kept...)
}

// ArgMinMax returns the index of the smallest or the largest element along an axis, that of a NaN if there is one.
func (f *function) ArgMinMax(x compute.Value, axis int, outputDType dtypes.DType, isMin bool) (compute.Value, error) {
	infer := func(in []shapes.Shape) (shapes.Shape, error) {
		return shapeinference.ArgMinMax(in[0], axis, outputDType)
	}
	return f.inferred(compute.OpTypeArgMinMax, []compute.Value{x}, infer, func(_ *trace, in []array) array {
		to := types[outputDType]
		if isMin {
			return convert(in[0].ArgMin(axis), to)
		}
		return convert(in[0].ArgMax(axis), to)
	})
}

// CumSum returns the running sums along an axis.
func (f *function) CumSum(x compute.Value, axis int, options compute.CumSumOptions) (compute.Value, error) {
	infer := func(in []shapes.Shape) (shapes.Shape, error) { return shapeinference.CumSum(in[0], axis) }
	return f.inferred(compute.OpTypeCumSum, []compute.Value{x}, infer, func(_ *trace, in []array) array {
		x := in[0]
		if options.Reverse {
			x = x.Flip(axis)
		}
		s := convert(x.CumSum(axis), x.Type())
		if n := x.Dim(axis); options.Exclusive && n > 0 {
			config := make([]compute.PadAxis, axis+1)
			config[axis].Start = 1
			s = padded(s.Narrow(axis, 0, n-1), 0, config)
		}
		if options.Reverse {
			s = s.Flip(axis)
		}
		return s
	})
}

// DotGeneral returns the products of lhs and rhs, summed over the contracting axes, for each place along the
// batch axes.
func (f *function) DotGeneral(lhs compute.Value, lhsContractingAxes, lhsBatchAxes []int, rhs compute.Value,
	rhsContractingAxes, rhsBatchAxes []int,
	config compute.DotGeneralConfig) (compute.Value, error) {
	in, err := f.operands(compute.OpTypeDotGeneral, lhs, rhs)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.DotGeneral(in[0].shape, lhsContractingAxes, lhsBatchAxes, in[1].shape, rhsContractingAxes,
		rhsBatchAxes, config)
	if err != nil {
		return nil, err
	}
	sum := in[0].shape.DType
	if config.AccumulatorDType != dtypes.InvalidDType {
		sum = config.AccumulatorDType
	}
	by, err := typeOf(sum)
	if err != nil {
		return nil, err
	}
	to, err := typeOf(shape.DType)
	if err != nil {
		return nil, err
	}
	if from := types[in[0].shape.DType]; tensor.IsFloat(from) && by.Size() > from.Size() && to == from &&
		by == tensor.F32 {
		by = from // half and bfloat16 are summed in F32
	}
	lc, lb, rc, rb := slices.Clone(lhsContractingAxes), slices.Clone(lhsBatchAxes), slices.Clone(rhsContractingAxes),
		slices.Clone(rhsBatchAxes)
	v, err := f.single(compute.OpTypeDotGeneral, shape, in, func(_ *trace, in []array) array {
		return convert(dot(convert(in[0], by), lc, lb, convert(in[1], by), rc, rb), to)
	})
	if err != nil {
		return nil, err
	}
	batch, rows, columns := len(lb), in[0].shape.Rank()-len(lb)-len(lc), in[1].shape.Rank()-len(rb)-len(rc)
	v.(*value).node.exchanged = func(order []int) (*node, bool) {
		// the order that has the columns in front of the rows
		want := slices.Concat(xslices.Iota(0, batch), xslices.Iota(batch+rows, columns), xslices.Iota(batch, rows))
		return &node{in: []*value{in[1], in[0]}, emit: func(_ *trace, in []array) []array {
			return []array{convert(dot(convert(in[0], by), rc, rb, convert(in[1], by), lc, lb), to)}
		}}, slices.Equal(order, want)
	}
	return v, nil
}

// dot returns products of matrices, into which the dimensions of x and y are put.
func dot(x array, xContract, xBatch []int, y array, yContract, yBatch []int) array {
	xFree := others(x.Rank(), slices.Concat(xContract, xBatch)...)
	yFree := others(y.Rank(), slices.Concat(yContract, yBatch)...)
	batch, m, n := dimsAt(x.Shape(), xBatch), dimsAt(x.Shape(), xFree), dimsAt(y.Shape(), yFree)
	k := size(dimsAt(x.Shape(), xContract))
	a := x.Permute(slices.Concat(xBatch, xFree, xContract)...).Reshape(size(batch), size(m), k)
	b := y.Permute(slices.Concat(yBatch, yContract, yFree)...).Reshape(size(batch), k, size(n))
	if len(batch) == 0 {
		a, b = a.Reshape(size(m), k), b.Reshape(k, size(n))
	}
	return a.MatMul(b).Reshape(slices.Concat(batch, m, n)...)
}

func size(dims []int) int { return shapes.Make(dtypes.Bool, dims...).Size() }

// others returns the axes up to a rank beside those given.
func others(rank int, axes ...int) []int {
	return slices.DeleteFunc(xslices.Iota(0, rank), func(i int) bool { return slices.Contains(axes, i) })
}

// dimsAt returns the dimensions of some axes.
func dimsAt(dims, axes []int) []int {
	list := make([]int, len(axes))
	for i, a := range axes {
		list[i] = dims[a]
	}
	return list
}

// inverse returns the permutation that undoes another one.
func inverse(order []int) []int {
	back := make([]int, len(order))
	for i, a := range order {
		back[a] = i
	}
	return back
}
