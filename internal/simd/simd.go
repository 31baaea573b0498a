//go:build cgo && unix

package simd

/*
// Debug information has lines, but no variables: the compiler would need more time for those
// than for the code.
#cgo CFLAGS: -g1
#cgo noavx512 CFLAGS: -DNO_AVX512
#cgo noavx2 CFLAGS: -DNO_AVX2
#cgo linux LDFLAGS: -lm
#cgo noescape concord_simd
#cgo nocallback concord_simd
#cgo noescape concord_simd_here
#cgo nocallback concord_simd_here

#include "../../csrc/cpu/simd.h"
*/
import "C"

import (
	// An edit of their C rebuilds this package.
	_ "github.com/concord-compute/concord/csrc"
	_ "github.com/concord-compute/concord/source/host"
)

// The instruction sets.
const (
	AVX512 Set = C.SIMD_SET_AVX512
	AVX2   Set = C.SIMD_SET_AVX2
	NEON   Set = C.SIMD_SET_NEON
)

// The functions. The comments in csrc/cpu describe each function and its arguments.
const (
	GemmF32Direct      Op = C.SIMD_GEMM_F32_DIRECT
	GemmF32Dot         Op = C.SIMD_GEMM_F32_DOT
	GemmF32Pack        Op = C.SIMD_GEMM_F32_PACK
	GemmF32Block       Op = C.SIMD_GEMM_F32_BLOCK
	GemmF32FewRows     Op = C.SIMD_GEMM_F32_FEW_ROWS
	GemmF32FewColumns  Op = C.SIMD_GEMM_F32_FEW_COLUMNS
	GemmF32Store       Op = C.SIMD_GEMM_F32_STORE
	GemmF64Direct      Op = C.SIMD_GEMM_F64_DIRECT
	GemmF64Dot         Op = C.SIMD_GEMM_F64_DOT
	GemmF64Pack        Op = C.SIMD_GEMM_F64_PACK
	GemmF64Block       Op = C.SIMD_GEMM_F64_BLOCK
	GemmF64FewRows     Op = C.SIMD_GEMM_F64_FEW_ROWS
	GemmF64FewColumns  Op = C.SIMD_GEMM_F64_FEW_COLUMNS
	GemmF64Store       Op = C.SIMD_GEMM_F64_STORE
	Widen              Op = C.SIMD_WIDEN
	Narrow             Op = C.SIMD_NARROW
	FMAPeak            Op = C.SIMD_FMA_PEAK
	L2Float            Op = C.SIMD_L2_FLOAT
	L2I8               Op = C.SIMD_L2_I8
	ReduceRows         Op = C.SIMD_REDUCE_ROWS
	Softmax            Op = C.SIMD_SOFTMAX
	ReduceColumns      Op = C.SIMD_REDUCE_COLUMNS
	Norm               Op = C.SIMD_NORM
	Transpose          Op = C.SIMD_TRANSPOSE
	TopK               Op = C.SIMD_TOPK
	L2Pack             Op = C.SIMD_L2_PACK
	ConvF32            Op = C.SIMD_CONV_F32
	ConvF64            Op = C.SIMD_CONV_F64
	ConvZipF32         Op = C.SIMD_CONV_ZIP_F32
	ConvZipF64         Op = C.SIMD_CONV_ZIP_F64
	ConvPhasesF32      Op = C.SIMD_CONV_PHASES_F32
	ConvPhasesF64      Op = C.SIMD_CONV_PHASES_F64
	ConvDilatedF32     Op = C.SIMD_CONV_DILATED_F32
	ConvDilatedF64     Op = C.SIMD_CONV_DILATED_F64
	ConvDilatedPackF32 Op = C.SIMD_CONV_DILATED_PACK_F32
	ConvDilatedPackF64 Op = C.SIMD_CONV_DILATED_PACK_F64
	ConvLongF32        Op = C.SIMD_CONV_LONG_F32
	ConvLongF64        Op = C.SIMD_CONV_LONG_F64
	ConvTurnedF32      Op = C.SIMD_CONV_TURNED_F32
	ConvTurnedF64      Op = C.SIMD_CONV_TURNED_F64
	Winograd           Op = C.SIMD_WINOGRAD
	WinogradFilters    Op = C.SIMD_WINOGRAD_FILTERS
	GemmI8Pack         Op = C.SIMD_GEMM_I8_PACK
	GemmI8Rows         Op = C.SIMD_GEMM_I8_ROWS
	GemmVNNIPack       Op = C.SIMD_GEMM_VNNI_PACK
	GemmVNNIRows       Op = C.SIMD_GEMM_VNNI_ROWS
	L2I8Pack           Op = C.SIMD_L2_I8_PACK
	Expr               Op = C.SIMD_EXPR
	Nearest            Op = C.SIMD_NEAREST
	ReduceIntRows      Op = C.SIMD_REDUCE_INT_ROWS
	ReduceIntCols      Op = C.SIMD_REDUCE_INT_COLUMNS
	GemvRows           Op = C.SIMD_GEMV_ROWS
	GemvColumns        Op = C.SIMD_GEMV_COLUMNS
	GemvStore          Op = C.SIMD_GEMV_STORE
	GemmInt            Op = C.SIMD_GEMM_INT
	NearestPick        Op = C.SIMD_NEAREST_PICK
	NearestList        Op = C.SIMD_NEAREST_LIST
	W2A8               Op = C.SIMD_W2A8
	W2A8Four           Op = C.SIMD_W2A8_FOUR
	W2A8Rows           Op = C.SIMD_W2A8_ROWS
	GemmQ              Op = C.SIMD_GEMM_Q
	GemmQFour          Op = C.SIMD_GEMM_Q_FOUR
	GemmQBlocks        Op = C.SIMD_GEMM_Q_BLOCKS
	CodesEncode        Op = C.SIMD_CODES_ENCODE
	CodesTable         Op = C.SIMD_CODES_TABLE
	CodesScan          Op = C.SIMD_CODES_SCAN
)

// The functions of package quant.
const (
	QuantLargest           Op = C.SIMD_QUANT_LARGEST
	QuantInterleavedEncode Op = C.SIMD_QUANT_INTERLEAVED_ENCODE
	QuantInterleavedDecode Op = C.SIMD_QUANT_INTERLEAVED_DECODE
	QuantTQ1Encode         Op = C.SIMD_QUANT_TQ1_ENCODE
	QuantTQ1Decode         Op = C.SIMD_QUANT_TQ1_DECODE
	QuantTQ2Encode         Op = C.SIMD_QUANT_TQ2_ENCODE
	QuantTopEncode         Op = C.SIMD_QUANT_TOP_ENCODE
	QuantMostEncode        Op = C.SIMD_QUANT_MOST_ENCODE
	QuantBlockDecode       Op = C.SIMD_QUANT_BLOCK_DECODE
	QuantBytesEncode       Op = C.SIMD_QUANT_BYTES_ENCODE
	QuantBytesDecode       Op = C.SIMD_QUANT_BYTES_DECODE
	QuantQuarterEncode     Op = C.SIMD_QUANT_QUARTER_ENCODE
	QuantQuarterDecode     Op = C.SIMD_QUANT_QUARTER_DECODE
)

// Here reports whether this build contains the functions of the set.
func (s Set) Here() bool { return C.concord_simd_here(C.int32_t(s)) != 0 }

// Run calls a function on the calling thread. The set must be in this build. words points to
// all the words that the function reads. Addresses among them are not followed by Go's
// collector: the caller keeps that memory alive, and none of it is on a stack, which may move.
func (s Set) Run(op Op, words *uint64) {
	C.concord_simd(C.int32_t(s), C.int32_t(op), (*C.uint64_t)(words))
}
