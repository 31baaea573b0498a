package runtime

// Types, constants and errors of the driver contract that programs need, under names of this
// package.

import (
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/half"
)

// Config is the whole configuration of a session; its zero value is the default. See New.
type Config = driver.Config

// Info describes a device: its names, its memory, its limits and what it can do.
type Info = driver.Info

// Probe is the result of looking for one backend's devices: the devices, or why there are none.
type Probe = driver.Probe

// Type is the element type of a buffer, such as F32.
type Type = driver.Type

// MemoryKind says where a buffer's memory lives and whether the host and the device see it.
type MemoryKind = driver.MemoryKind

// Float16 is an IEEE 754 binary16 number, as its bits: half in kernels.
type Float16 = half.Float16

// BFloat16 is the upper half of an IEEE 754 binary32 number, as its bits: ushort in kernels.
type BFloat16 = half.BFloat16

// OpError says on which device which operation failed, and why. errors.As finds it.
type OpError = driver.OpError

// BuildError is a program that did not build, with the compiler's whole output. errors.As finds it.
type BuildError = driver.BuildError

// KernelInfo holds the properties of a compiled kernel. A field that is zero is unknown.
type KernelInfo = driver.KernelInfo

// Element types of buffers, with the type that kernels have for each.
const (
	F32  = driver.F32  // float
	F64  = driver.F64  // double
	F16  = driver.F16  // half: IEEE 754 binary16
	BF16 = driver.BF16 // ushort: bfloat16
	I8   = driver.I8   // char
	I16  = driver.I16  // short
	I32  = driver.I32  // int
	I64  = driver.I64  // long
	U8   = driver.U8   // uchar
	U16  = driver.U16  // ushort
	U32  = driver.U32  // uint
	U64  = driver.U64  // ulong
)

// Kinds of memory for Device.AllocKind.
const (
	OnDevice = driver.OnDevice // the device's own memory
	Pinned   = driver.Pinned   // the host's memory, which the device reads and writes, slowly
	Unified  = driver.Unified  // one memory that the host and the device share
)

// Require is the policy for Config.Fallback by which a program gets the named device or an error. Without it, the next
// devices stand in, down to the CPU.
const Require = driver.Require

// Errors that programs test with errors.Is; package driver has more, which are more exact. "Also X" means that
// the error matches X as well.
var (
	// ErrInvalidArgument: an argument, shape or state that is wrong whatever the device.
	ErrInvalidArgument = driver.ErrInvalidArgument
	// ErrBufferOverflow: a range that extends past the end of its buffer; also ErrInvalidArgument.
	ErrBufferOverflow = driver.ErrBufferOverflow
	// ErrDimension: lengths or shapes that disagree.
	ErrDimension = driver.ErrDimension
	// ErrNoDevice: there is no such device, or no device is left to try.
	ErrNoDevice = driver.ErrNoDevice
	// ErrDeviceIndex: the backend exists, but has no device with that index; also ErrNoDevice.
	ErrDeviceIndex = driver.ErrDeviceIndex
	// ErrUnsupported: a known operation that this device or build cannot do.
	ErrUnsupported = driver.ErrUnsupported
	// ErrOutOfMemory: the device does not have that much memory free, as the vendor's API reported.
	ErrOutOfMemory = driver.ErrOutOfMemory
	// ErrTooLarge: a size that can never fit.
	ErrTooLarge = driver.ErrTooLarge
	// ErrBudget: the operation would exceed a limit of the configuration.
	ErrBudget = driver.ErrBudget
	// ErrCompile: a program did not build. *BuildError has the log.
	ErrCompile = driver.ErrCompile
	// ErrLaunch: a kernel launch was refused, or the kernel failed while it ran.
	ErrLaunch = driver.ErrLaunch
	// ErrDeviceLost: the device's whole context is gone; every later call returns this error.
	ErrDeviceLost = driver.ErrDeviceLost
	// ErrClosed: the object was used after its Close.
	ErrClosed = driver.ErrClosed
	// ErrCorrupt: damaged or truncated data.
	ErrCorrupt = driver.ErrCorrupt
	// ErrFormat: data that is not of the expected format at all; also ErrCorrupt.
	ErrFormat = driver.ErrFormat
)

// ParseType returns the element type with a short name: "f32", "bf16", "u8".
func ParseType(name string) (Type, error) { return driver.ParseType(name) }

// ToFloat16 rounds to IEEE binary16, to nearest even.
func ToFloat16(x float64) Float16 { return half.ToFloat16(x) }

// ToBFloat16 rounds to bfloat16, to nearest even.
func ToBFloat16(x float64) BFloat16 { return half.ToBFloat16(x) }
