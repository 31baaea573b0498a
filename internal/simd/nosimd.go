//go:build !cgo || !unix

package simd

// The build without C, which contains no set.

// The instruction sets.
const AVX512, AVX2, NEON Set = 0, 0, 0

// The functions.
const (
	GemmF32Direct Op = 0
	GemmF32Dot
	GemmF32Pack
	GemmF32Block
	GemmF32FewRows
	GemmF32FewColumns
	GemmF32Store
	GemmF64Direct
	GemmF64Dot
	GemmF64Pack
	GemmF64Block
	GemmF64FewRows
	GemmF64FewColumns
	GemmF64Store
	Widen
	Narrow
	FMAPeak
	L2Float
	L2I8
	ReduceRows
	Softmax
	ReduceColumns
	Norm
	Transpose
	TopK
	L2Pack
	ConvF32
	ConvF64
	ConvZipF32
	ConvZipF64
	ConvPhasesF32
	ConvPhasesF64
	ConvDilatedF32
	ConvDilatedF64
	ConvDilatedPackF32
	ConvDilatedPackF64
	ConvLongF32
	ConvLongF64
	ConvTurnedF32
	ConvTurnedF64
	Winograd
	WinogradFilters
	GemmI8Pack
	GemmI8Rows
	GemmVNNIPack
	GemmVNNIRows
	L2I8Pack
	Expr
	Nearest
	ReduceIntRows
	ReduceIntCols
	GemvRows
	GemvColumns
	GemvStore
	GemmInt
	NearestPick
	NearestList
	W2A8
	W2A8Four
	W2A8Rows
	GemmQ
	GemmQFour
	GemmQBlocks
	CodesEncode
	CodesTable
	CodesScan
)

// The functions of package quant.
const (
	QuantLargest Op = 0
	QuantInterleavedEncode
	QuantInterleavedDecode
	QuantTQ1Encode
	QuantTQ1Decode
	QuantTQ2Encode
	QuantTopEncode
	QuantMostEncode
	QuantBlockDecode
	QuantBytesEncode
	QuantBytesDecode
	QuantQuarterEncode
	QuantQuarterDecode
)

// Here reports whether this build contains the functions of the set.
func (Set) Here() bool { return false }

// Run is never called, since no set is in this build.
func (Set) Run(Op, *uint64) {}
