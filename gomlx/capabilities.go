package gomlx

// What the backend can do.

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

// operations are the operations that the backend has.
var operations = []compute.OpType{
	compute.OpTypeParameter, compute.OpTypeConstant, compute.OpTypeIdentity,

	compute.OpTypeAbs, compute.OpTypeBitCount, compute.OpTypeBitwiseNot, compute.OpTypeCeil, compute.OpTypeClz,
	compute.OpTypeConj, compute.OpTypeCos,
	compute.OpTypeErf, compute.OpTypeExp, compute.OpTypeExpm1, compute.OpTypeFloor, compute.OpTypeImag,
	compute.OpTypeIsFinite, compute.OpTypeIsNaN,
	compute.OpTypeLog, compute.OpTypeLog1p, compute.OpTypeLogicalNot, compute.OpTypeLogistic, compute.OpTypeNeg,
	compute.OpTypeReal,
	compute.OpTypeRound, compute.OpTypeRsqrt, compute.OpTypeSign, compute.OpTypeSin, compute.OpTypeSqrt,
	compute.OpTypeTanh,

	compute.OpTypeAdd, compute.OpTypeAtan2, compute.OpTypeBitwiseAnd, compute.OpTypeBitwiseOr, compute.OpTypeBitwiseXor,
	compute.OpTypeDiv,
	compute.OpTypeLogicalAnd, compute.OpTypeLogicalOr, compute.OpTypeLogicalXor, compute.OpTypeMax, compute.OpTypeMin,
	compute.OpTypeMul,
	compute.OpTypePow, compute.OpTypeRem, compute.OpTypeShiftLeft, compute.OpTypeShiftRightArithmetic,
	compute.OpTypeShiftRightLogical, compute.OpTypeSub,

	compute.OpTypeEqual, compute.OpTypeNotEqual, compute.OpTypeGreaterOrEqual, compute.OpTypeGreaterThan,
	compute.OpTypeLessOrEqual, compute.OpTypeLessThan,
	compute.OpTypeEqualTotalOrder, compute.OpTypeNotEqualTotalOrder, compute.OpTypeGreaterOrEqualTotalOrder,
	compute.OpTypeGreaterThanTotalOrder,
	compute.OpTypeLessOrEqualTotalOrder, compute.OpTypeLessThanTotalOrder,

	compute.OpTypeClamp, compute.OpTypeConvertDType, compute.OpTypeWhere,

	compute.OpTypeBitcast, compute.OpTypeBroadcastInDim, compute.OpTypeConcatenate, compute.OpTypeIota, compute.OpTypePad,
	compute.OpTypeReshape,
	compute.OpTypeReverse, compute.OpTypeSlice, compute.OpTypeTranspose,

	compute.OpTypeArgMinMax, compute.OpTypeCumSum, compute.OpTypeDot, compute.OpTypeDotGeneral,
	compute.OpTypeReduceBitwiseAnd, compute.OpTypeReduceBitwiseOr, compute.OpTypeReduceBitwiseXor,
	compute.OpTypeReduceLogicalAnd, compute.OpTypeReduceLogicalOr, compute.OpTypeReduceLogicalXor,
	compute.OpTypeReduceMax, compute.OpTypeReduceMin, compute.OpTypeReduceProduct, compute.OpTypeReduceSum,

	compute.OpTypeDynamicSlice, compute.OpTypeDynamicUpdateSlice, compute.OpTypeGather, compute.OpTypeScatterMax,
	compute.OpTypeScatterMin, compute.OpTypeScatterSum,

	compute.OpTypeBatchNormForInference, compute.OpTypeBatchNormForTraining, compute.OpTypeBatchNormGradient,
	compute.OpTypeConvGeneral,
	compute.OpTypeReduceWindow, compute.OpTypeRNGBitGenerator, compute.OpTypeSelectAndScatterMax,
	compute.OpTypeSelectAndScatterMin,

	compute.OpTypeAllReduce,

	compute.OpTypeCall, compute.OpTypeIf, compute.OpTypeSort, compute.OpTypeWhile,

	compute.OpTypeDynamicBroadcastInDim, compute.OpTypeDynamicDimensionSize, compute.OpTypeDynamicIota,
	compute.OpTypeDynamicPad,
	compute.OpTypeDynamicReshape, compute.OpTypeDynamicShape,

	compute.OpTypeFusedAttentionQKVProjection, compute.OpTypeFusedDense, compute.OpTypeFusedGelu,
	compute.OpTypeFusedLayerNorm,
	compute.OpTypeFusedScaledDotProductAttention, compute.OpTypeFusedSoftmax,

	compute.OpTypeOptimizationBarrier, compute.OpTypeSchedulingBarrier,
}

// Capabilities returns what the backend can do.
func (b *Backend) Capabilities() compute.Capabilities {
	c := compute.Capabilities{
		Functions:     true,
		DynamicAxes:   true,
		DynamicShapes: compute.DynamicShapesRecompiling,
		Operations:    map[compute.OpType]bool{},
		DTypes:        map[dtypes.DType]bool{},
	}
	for _, op := range operations {
		c.Operations[op] = true
	}
	for d := range types {
		c.DTypes[d] = true
	}
	return c
}
