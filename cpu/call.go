package cpu

// Kernels that are Go functions: what such a function is given, and how it
// spreads its work over the device's threads.

import (
	"context"
	"fmt"
	"math"
	"unsafe"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/half"
	"github.com/concord-compute/concord/source"
)

// Func is a kernel written in Go. It is called once per launch, not once per
// item: it does the work of the whole grid. It may use every thread that
// [Call.Parallel] gives it, keeps nothing of c after it returns, and reports what
// is wrong with its arguments as an error. A panic becomes an error of the launch.
type Func func(c *Call) error

// Call is one launch of a [Func]. It is valid until the function returns.
//
// The accessors of arguments take the position of the parameter. One that does
// not fit the parameter ends the launch with an error that matches
// driver.ErrInvalidArgument, so that callers need no check of their own.
type Call struct {
	Unit   *source.Unit   // the program that the launch names
	Kernel string         // the kernel's name in it
	Params []source.Param // the kernel's parameters
	Dim    int            // 1, 2 or 3
	Global [3]int         // items of the grid
	Local  [3]int         // items of a group

	device  *device
	ctx     context.Context
	args    []driver.Arg
	buffers [][]byte // of each buffer argument, at its position
	data    []byte
}

// misuse is what an accessor panics with; run turns it into an error.
type misuse struct{ err error }

func (c *Call) fail(i int, format string, args ...any) {
	what := fmt.Sprintf("argument %d", i)
	if i >= 0 && i < len(c.Params) {
		what += fmt.Sprintf(" (%s %s)", c.Params[i].Decl, c.Params[i].Name)
	}
	panic(misuse{fmt.Errorf("%s: %s: %w", what, fmt.Sprintf(format, args...), driver.ErrInvalidArgument)})
}

// Define returns the value of a definition that the program was parsed with, and
// whether there is one.
func (c *Call) Define(name string) (value string, ok bool) { return unitDefine(c.Unit, name) }

// Context is done when the device is being closed. [Call.Parallel] looks at it
// by itself.
func (c *Call) Context() context.Context { return c.ctx }

// Threads is the number of threads that Parallel spreads work over.
func (c *Call) Threads() int { return c.device.threads }

// Bytes returns the memory of a buffer argument, whatever its type. A buffer of
// no bytes gives nil.
func (c *Call) Bytes(i int) []byte {
	if i < 0 || i >= len(c.args) {
		c.fail(i, "the launch has %d arguments", len(c.args))
	}
	if c.args[i].Kind != driver.ArgMemory {
		c.fail(i, "not a buffer")
	}
	return c.buffers[i]
}

// LocalBytes returns the local memory of a local argument: one block for the
// whole launch, since the function is called once for all groups. It is zeroed.
func (c *Call) LocalBytes(i int) []byte {
	if i < 0 || i >= len(c.args) || c.args[i].Kind != driver.ArgLocal {
		c.fail(i, "not local memory")
	}
	return make([]byte, c.args[i].Size)
}

// buffer checks that argument i is a buffer of that element kind and returns its
// elements. Vectors count as their components: a float4 buffer has 4 per element.
func buffer[T any](c *Call, i int, kinds ...source.Kind) []T {
	b := c.Bytes(i)
	if i < len(c.Params) {
		fits := false
		for _, k := range kinds {
			fits = fits || c.Params[i].Kind == k
		}
		if !fits {
			var zero T
			c.fail(i, "not a buffer of %T", zero)
		}
	}
	var zero T
	size := int(unsafe.Sizeof(zero))
	if len(b) < size {
		return nil
	}
	if uintptr(unsafe.Pointer(&b[0]))%uintptr(size) != 0 {
		c.fail(i, "offset %d is not a multiple of the element's %d bytes", c.args[i].Memory.Offset, size)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/size)
}

// F32 returns the elements of a float buffer.
func (c *Call) F32(i int) []float32 { return buffer[float32](c, i, source.Float) }

// F64 returns the elements of a double buffer.
func (c *Call) F64(i int) []float64 { return buffer[float64](c, i, source.Double) }

// I8 returns the elements of a char buffer.
func (c *Call) I8(i int) []int8 { return buffer[int8](c, i, source.Char) }

// U8 returns the elements of a uchar buffer.
func (c *Call) U8(i int) []uint8 { return buffer[uint8](c, i, source.UChar) }

// I16 returns the elements of a short buffer.
func (c *Call) I16(i int) []int16 { return buffer[int16](c, i, source.Short) }

// U16 returns the elements of a ushort buffer, and the bits of a half buffer.
func (c *Call) U16(i int) []uint16 { return buffer[uint16](c, i, source.UShort, source.Half) }

// I32 returns the elements of an int buffer.
func (c *Call) I32(i int) []int32 { return buffer[int32](c, i, source.Int) }

// U32 returns the elements of a uint buffer.
func (c *Call) U32(i int) []uint32 { return buffer[uint32](c, i, source.UInt) }

// I64 returns the elements of a long buffer.
func (c *Call) I64(i int) []int64 { return buffer[int64](c, i, source.Long) }

// U64 returns the elements of a ulong buffer.
func (c *Call) U64(i int) []uint64 { return buffer[uint64](c, i, source.ULong) }

// value returns the bytes of a value argument as a little number.
func (c *Call) value(i int) (bits uint64, kind source.Kind) {
	if i < 0 || i >= len(c.args) || i >= len(c.Params) || c.args[i].Kind != driver.ArgValue {
		c.fail(i, "not a value")
	}
	p, a := &c.Params[i], &c.args[i]
	if p.Width > 1 || p.Kind == source.Struct {
		c.fail(i, "not a scalar: use Value")
	}
	b := c.data[a.Offset : a.Offset+a.Size]
	if len(b) == 0 {
		c.fail(i, "no bytes")
	}
	switch at := unsafe.Pointer(&b[0]); len(b) { // runtime aligns each value to its size
	case 1:
		return uint64(*(*uint8)(at)), p.Kind
	case 2:
		return uint64(*(*uint16)(at)), p.Kind
	case 4:
		return uint64(*(*uint32)(at)), p.Kind
	case 8:
		return *(*uint64)(at), p.Kind
	}
	c.fail(i, "a scalar of %d bytes", len(b))
	return 0, 0
}

// Value returns the bytes of a value argument: those of a vector or struct, in
// the layout of OpenCL C.
func (c *Call) Value(i int) []byte {
	if i < 0 || i >= len(c.args) || c.args[i].Kind != driver.ArgValue {
		c.fail(i, "not a value")
	}
	a := c.args[i]
	return c.data[a.Offset : a.Offset+a.Size : a.Offset+a.Size]
}

// Int returns an integer argument. An unsigned 64-bit one above the largest
// int64 wraps, as a conversion does.
func (c *Call) Int(i int) int64 {
	bits, kind := c.value(i)
	v, ok := integer(bits, kind)
	if !ok {
		c.fail(i, "not an integer")
	}
	return v
}

// Float returns a number argument, integers converted.
func (c *Call) Float(i int) float64 {
	bits, kind := c.value(i)
	switch kind {
	case source.Float:
		return float64(math.Float32frombits(uint32(bits)))
	case source.Double:
		return math.Float64frombits(bits)
	case source.Half:
		return half.Float16(bits).Float64()
	case source.ULong:
		return float64(bits)
	}
	v, ok := integer(bits, kind)
	if !ok {
		c.fail(i, "not a number")
	}
	return float64(v)
}

func integer(bits uint64, kind source.Kind) (v int64, ok bool) {
	switch kind {
	case source.Bool, source.UChar, source.UShort, source.UInt, source.Long, source.ULong:
		return int64(bits), true
	case source.Char:
		return int64(int8(bits)), true
	case source.Short:
		return int64(int16(bits)), true
	case source.Int:
		return int64(int32(bits)), true
	}
	return 0, false
}
