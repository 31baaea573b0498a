package module

// Op is the opcode of an instruction.
type Op uint16

// The opcodes that a rendering uses, from the specification's section 3.49.
const (
	OpUndef                Op = 1
	OpName                 Op = 5
	OpString               Op = 7
	OpLine                 Op = 8
	OpExtension            Op = 10
	OpExtInstImport        Op = 11
	OpExtInst              Op = 12
	OpMemoryModel          Op = 14
	OpEntryPoint           Op = 15
	OpExecutionMode        Op = 16
	OpCapability           Op = 17
	OpTypeVoid             Op = 19
	OpTypeBool             Op = 20
	OpTypeInt              Op = 21
	OpTypeFloat            Op = 22
	OpTypeVector           Op = 23
	OpTypeArray            Op = 28
	OpTypeStruct           Op = 30
	OpTypePointer          Op = 32
	OpTypeFunction         Op = 33
	OpConstantTrue         Op = 41
	OpConstantFalse        Op = 42
	OpConstant             Op = 43
	OpConstantNull         Op = 46
	OpSpecConstant         Op = 50
	OpSpecConstantOp       Op = 52
	OpFunction             Op = 54
	OpFunctionParameter    Op = 55
	OpFunctionEnd          Op = 56
	OpFunctionCall         Op = 57
	OpVariable             Op = 59
	OpLoad                 Op = 61
	OpStore                Op = 62
	OpAccessChain          Op = 65
	OpDecorate             Op = 71
	OpMemberDecorate       Op = 72
	OpCompositeConstruct   Op = 80
	OpCompositeExtract     Op = 81
	OpConvertFToU          Op = 109
	OpConvertFToS          Op = 110
	OpConvertSToF          Op = 111
	OpConvertUToF          Op = 112
	OpUConvert             Op = 113
	OpSConvert             Op = 114
	OpFConvert             Op = 115
	OpConvertUToPtr        Op = 120
	OpBitcast              Op = 124
	OpSNegate              Op = 126
	OpFNegate              Op = 127
	OpIAdd                 Op = 128
	OpFAdd                 Op = 129
	OpISub                 Op = 130
	OpFSub                 Op = 131
	OpIMul                 Op = 132
	OpFMul                 Op = 133
	OpUDiv                 Op = 134
	OpSDiv                 Op = 135
	OpFDiv                 Op = 136
	OpUMod                 Op = 137
	OpUMulExtended         Op = 151
	OpSMulExtended         Op = 152
	OpIsNan                Op = 156
	OpIsInf                Op = 157
	OpLogicalEqual         Op = 164
	OpLogicalNotEqual      Op = 165
	OpLogicalOr            Op = 166
	OpLogicalAnd           Op = 167
	OpLogicalNot           Op = 168
	OpSelect               Op = 169
	OpIEqual               Op = 170
	OpINotEqual            Op = 171
	OpUGreaterThan         Op = 172
	OpSGreaterThan         Op = 173
	OpUGreaterThanEqual    Op = 174
	OpSGreaterThanEqual    Op = 175
	OpULessThan            Op = 176
	OpSLessThan            Op = 177
	OpULessThanEqual       Op = 178
	OpSLessThanEqual       Op = 179
	OpFOrdEqual            Op = 180
	OpFOrdNotEqual         Op = 182
	OpFUnordNotEqual       Op = 183
	OpFOrdLessThan         Op = 184
	OpFOrdGreaterThan      Op = 186
	OpFOrdLessThanEqual    Op = 188
	OpFOrdGreaterThanEqual Op = 190
	OpShiftRightLogical    Op = 194
	OpShiftRightArithmetic Op = 195
	OpShiftLeftLogical     Op = 196
	OpBitwiseOr            Op = 197
	OpBitwiseXor           Op = 198
	OpBitwiseAnd           Op = 199
	OpNot                  Op = 200
	OpBitFieldSExtract     Op = 202
	OpBitFieldUExtract     Op = 203
	OpBitReverse           Op = 204
	OpBitCount             Op = 205
	OpControlBarrier       Op = 224
	OpMemoryBarrier        Op = 225
	OpAtomicLoad           Op = 227
	OpAtomicStore          Op = 228
	OpAtomicExchange       Op = 229
	OpAtomicCompareExch    Op = 230
	OpAtomicIAdd           Op = 234
	OpAtomicISub           Op = 235
	OpAtomicSMin           Op = 236
	OpAtomicUMin           Op = 237
	OpAtomicSMax           Op = 238
	OpAtomicUMax           Op = 239
	OpAtomicAnd            Op = 240
	OpAtomicOr             Op = 241
	OpAtomicXor            Op = 242
	OpLoopMerge            Op = 246
	OpSelectionMerge       Op = 247
	OpLabel                Op = 248
	OpBranch               Op = 249
	OpBranchConditional    Op = 250
	OpSwitch               Op = 251
	OpReturn               Op = 253
	OpReturnValue          Op = 254
	OpUnreachable          Op = 255
	OpExecutionModeID      Op = 331

	OpGroupNonUniformAll       Op = 334
	OpGroupNonUniformAny       Op = 335
	OpGroupNonUniformBroadcast Op = 337
	OpGroupNonUniformShuffle   Op = 345
	OpGroupNonUniformIAdd      Op = 349
	OpGroupNonUniformFAdd      Op = 350
	OpGroupNonUniformSMin      Op = 353
	OpGroupNonUniformUMin      Op = 354
	OpGroupNonUniformFMin      Op = 355
	OpGroupNonUniformSMax      Op = 356
	OpGroupNonUniformUMax      Op = 357
	OpGroupNonUniformFMax      Op = 358
)

// Capability is what a module needs of the device.
type Capability uint32

// The capabilities.
const (
	Shader                         Capability = 1
	Float64                        Capability = 10
	Int64                          Capability = 11
	Int64Atomics                   Capability = 12
	GroupNonUniform                Capability = 61
	GroupNonUniformVote            Capability = 62
	GroupNonUniformArithmetic      Capability = 63
	GroupNonUniformShuffle         Capability = 65
	StorageBuffer16BitAccess       Capability = 4433
	signedZeroInfNanPreserve       Capability = 4466
	roundingModeRTE                Capability = 4467
	StorageBuffer8BitAccess        Capability = 4448
	VulkanMemoryModel              Capability = 5345
	VulkanMemoryModelDeviceScope   Capability = 5346
	PhysicalStorageBufferAddresses Capability = 5347
)

// Class is a storage class: the memory that a pointer points to.
type Class uint32

// The storage classes.
const (
	Input                 Class = 1
	Workgroup             Class = 4
	Private               Class = 6
	Function              Class = 7
	PushConstant          Class = 9
	PhysicalStorageBuffer Class = 5349
)

// Decorations, and the built-in variables that BuiltIn names.
const (
	SpecID        uint32 = 1
	Block         uint32 = 2
	ArrayStride   uint32 = 6
	BuiltIn       uint32 = 11
	Offset        uint32 = 35
	NoContraction uint32 = 42

	WorkgroupID               uint32 = 26
	LocalInvocationID         uint32 = 27
	SubgroupSize              uint32 = 36
	SubgroupID                uint32 = 40
	SubgroupLocalInvocationID uint32 = 41
)

// Operands of loads and stores, as bits.
const (
	Volatile          uint32 = 1
	Aligned           uint32 = 2
	NonPrivatePointer uint32 = 32
)

// Scopes and memory semantics.
const (
	ScopeDevice    uint32 = 1
	ScopeWorkgroup uint32 = 2
	ScopeSubgroup  uint32 = 3

	Acquire         uint32 = 2
	Release         uint32 = 4
	AcquireRelease  uint32 = 8
	UniformMemory   uint32 = 0x40
	MakeAvailable   uint32 = 0x2000
	MakeVisible     uint32 = 0x4000
	WorkgroupMemory uint32 = 0x100
)

// What else headers and entry points need.
const (
	magic                   uint32 = 0x07230203
	version                 uint32 = 0x00010600 // SPIR-V 1.6
	glCompute               uint32 = 5
	localSizeID             uint32 = 38
	preserveSpecials        uint32 = 4461 // SignedZeroInfNanPreserve
	roundsToNearest         uint32 = 4462 // RoundingModeRTE
	physicalStorageBuffer64 uint32 = 5348
	memoryGLSL450           uint32 = 1
	memoryVulkan            uint32 = 3
	LoopUnroll              uint32 = 1
	Reduce                  uint32 = 0 // group operations
	InclusiveScan           uint32 = 1
	ExclusiveScan           uint32 = 2
)

// Inst is an instruction of the extended set GLSL.std.450.
type Inst uint32

// The instructions of the extended set that are exact.
const (
	RoundEven      Inst = 2
	Trunc          Inst = 3
	FAbs           Inst = 4
	Floor          Inst = 8
	Ceil           Inst = 9
	Sqrt           Inst = 31
	UMin           Inst = 38
	SMin           Inst = 39
	UMax           Inst = 41
	SMax           Inst = 42
	Fma            Inst = 50
	Ldexp          Inst = 53
	UnpackHalf2x16 Inst = 62
	FindILsb       Inst = 73
	FindUMsb       Inst = 75
	NMin           Inst = 79
	NMax           Inst = 80
)
