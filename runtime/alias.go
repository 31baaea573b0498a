package runtime

// What users need of the contract, under names of this package.

import (
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// Types shared with backends.
type (
	Config     = driver.Config
	Info       = driver.Info
	Probe      = driver.Probe
	Type       = driver.Type
	MemoryKind = driver.MemoryKind
	Priority   = driver.Priority
	Float16    = driver.Float16
	BFloat16   = driver.BFloat16
	OpError    = driver.OpError
	BuildError = driver.BuildError
	KernelInfo = driver.KernelInfo
)

// Element types of buffers.
const (
	F32  = driver.F32
	F64  = driver.F64
	F16  = driver.F16
	BF16 = driver.BF16
	I8   = driver.I8
	I16  = driver.I16
	I32  = driver.I32
	I64  = driver.I64
	U8   = driver.U8
	U16  = driver.U16
	U32  = driver.U32
	U64  = driver.U64
)

// Kinds of memory for Device.AllocKind.
const (
	OnDevice = driver.OnDevice
	Pinned   = driver.Pinned
	Unified  = driver.Unified
)

// Priorities for Device.NewPriorityStream.
const (
	Low    = driver.Low
	Normal = driver.Normal
	High   = driver.High
)

// Fallback policies for Config.Fallback.
const (
	Prefer  = driver.Prefer
	Require = driver.Require
)

// Errors, tested with errors.Is. Package driver documents each.
var (
	ErrInvalidArgument      = driver.ErrInvalidArgument
	ErrBufferOverflow       = driver.ErrBufferOverflow
	ErrEventNotRecorded     = driver.ErrEventNotRecorded
	ErrTimingDisabled       = driver.ErrTimingDisabled
	ErrNoHostMemory         = driver.ErrNoHostMemory
	ErrNoDeviceMemory       = driver.ErrNoDeviceMemory
	ErrDimension            = driver.ErrDimension
	ErrNoDevice             = driver.ErrNoDevice
	ErrDeviceIndex          = driver.ErrDeviceIndex
	ErrFakeDevice           = driver.ErrFakeDevice
	ErrAllBackendsExhausted = driver.ErrAllBackendsExhausted
	ErrUnknownBackend       = driver.ErrUnknownBackend
	ErrUnsupported          = driver.ErrUnsupported
	ErrUnsupportedPrecision = driver.ErrUnsupportedPrecision
	ErrOutOfMemory          = driver.ErrOutOfMemory
	ErrTooLarge             = driver.ErrTooLarge
	ErrBudget               = driver.ErrBudget
	ErrCompile              = driver.ErrCompile
	ErrNoKernel             = driver.ErrNoKernel
	ErrLaunch               = driver.ErrLaunch
	ErrTimeout              = driver.ErrTimeout
	ErrDeviceLost           = driver.ErrDeviceLost
	ErrClosed               = driver.ErrClosed
	ErrCorrupt              = driver.ErrCorrupt
	ErrFormat               = driver.ErrFormat

	ErrLeak = mempool.ErrLeak // memory that should have ended is still in use
)

// ParseType returns the element type with a short name: "f32", "bf16", "u8".
func ParseType(name string) (Type, error) { return driver.ParseType(name) }

// ToFloat16 rounds to IEEE binary16, to nearest even.
func ToFloat16(x float64) Float16 { return driver.ToFloat16(x) }

// ToBFloat16 rounds to bfloat16, to nearest even.
func ToBFloat16(x float64) BFloat16 { return driver.ToBFloat16(x) }
