package kernels

// Kernels that are Go functions, and the launch that such a function is called with.

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/concord-compute/concord/runtime/half"
	"github.com/concord-compute/concord/source"
)

// Func is a kernel written in Go: a float64 reference, or an implementation that cpu:0 runs
// instead of compiled text. It is called once per launch, not once per item, and does the work of
// the whole grid, on the threads of Parallel if it likes. It may be called from several
// goroutines at once. It must not keep c or memory of c after it returns. It returns an error if
// an argument is wrong; its error, or a panic, becomes the error of the launch.
type Func func(c *Call) error

// Call is one launch of a [Func]. It is valid until the function returns.
//
// The accessors of arguments take the position i of the parameter, from 0. Slices that they
// return are the memory of the buffers themselves, and end where a buffer ends. An accessor that does
// not fit the parameter ends the launch with an error that matches driver.ErrInvalidArgument, so
// that callers need no check of their own.
type Call struct {
	Unit   *source.Unit   // the program that the launch names
	Kernel string         // the kernel's name in it
	Params []source.Param // the kernel's parameters
	Dim    int            // 1, 2 or 3
	Global [3]int         // items of the grid
	Local  [3]int         // items of a group
	Args   []Argument     // the arguments, which the accessors read
	Host                  // the device that runs the launch

	weighs bool    // buffers have no memory, and Need only sums up
	needed float64 // the bytes of all calls of Need
}

// Host is the device as a [Func] sees it during a launch: a context, and threads.
type Host interface {
	// Context returns a context that is done when the device is being closed. Parallel
	// checks it by itself.
	Context() context.Context
	// Threads returns the largest number of goroutines on which Parallel runs at once.
	Threads() int
	// Parallel calls f for consecutive ranges [lo, hi) that together are [0, n), on up to
	// Threads goroutines at once. A range has at least grain indexes, except that n may be
	// smaller than that. Parallel returns when all calls have returned. When the context
	// is done, no further range is started, and the context's error is returned. A panic of
	// f becomes the error of the launch.
	Parallel(n, grain int, f func(lo, hi int)) error
}

// Argument is one argument of a [Call], which a device fills in.
type Argument struct {
	Kind  ArgumentKind
	Bytes []byte // the memory of a buffer, or the bytes of a value
	Size  int    // size of local memory in bytes
}

// ArgumentKind says whether an [Argument] is a value, a buffer or local memory.
type ArgumentKind uint8

// The kinds of arguments.
const (
	ValueArgument  ArgumentKind = iota // a scalar, vector or struct
	BufferArgument                     // memory of the device
	LocalArgument                      // local memory, of which only the size is given
)

// ArgumentError is the value with which the accessors panic; the device recovers it and makes
// it the error of the launch. It is also the error of [Geometry].
type ArgumentError string

// Error implements error.
func (e ArgumentError) Error() string { return string(e) }

// Fail ends the launch with an error about argument i, or, if i is negative, about no single
// argument. It panics with an [ArgumentError] and so does not return.
func (c *Call) Fail(i int, format string, args ...any) {
	what := ""
	if i >= 0 {
		what = fmt.Sprintf("argument %d: ", i)
	}
	if i >= 0 && i < len(c.Params) {
		what = fmt.Sprintf("argument %d (%s %s): ", i, c.Params[i].Decl, c.Params[i].Name)
	}
	panic(ArgumentError(what + fmt.Sprintf(format, args...)))
}

// Define returns the value of the last definition of that name that the program was
// parsed with, and whether there is one.
func (c *Call) Define(name string) (value string, ok bool) {
	return c.Unit.Define(name)
}

// Type is [TypeOf] of the program.
func (c *Call) Type(define string) string { return TypeOf(c.Unit, define) }

// TypeOf returns the element type that a definition of a program of the catalog names. Without the definition that is
// the default of the catalog's sources: the type T for OUT, TYPE_A and TYPE_B, u32 for INDEX and VALUE, and f32 for
// others.
func TypeOf(u *source.Unit, define string) string {
	if t, ok := u.Define(define); ok {
		return t
	}
	switch define {
	case "OUT", "TYPE_A", "TYPE_B":
		return TypeOf(u, "T")
	case "INDEX", "VALUE":
		return "u32"
	}
	return "f32"
}

// Flag reports whether a definition is 1.
func (c *Call) Flag(name string) bool {
	v, _ := c.Define(name)
	return v == "1"
}

// arg returns argument i. If it is not of the kind, the launch ends with the text otherwise.
func (c *Call) arg(i int, kind ArgumentKind, otherwise string) *Argument {
	if i < 0 || i >= len(c.Args) {
		c.Fail(i, "the launch has %d arguments", len(c.Args))
	}
	if c.Args[i].Kind != kind {
		c.Fail(i, "%s", otherwise)
	}
	return &c.Args[i]
}

// Bytes returns the memory of a buffer argument, whatever its type, or nil if it has no bytes.
func (c *Call) Bytes(i int) []byte {
	return slices.Clip(c.arg(i, BufferArgument, "not a buffer").Bytes)
}

// LocalBytes allocates the memory of a local argument: one block of zeros for the
// whole launch, since the function is called once for all groups.
func (c *Call) LocalBytes(i int) []byte {
	return make([]byte, c.arg(i, LocalArgument, "not local memory").Size)
}

// Need ends the launch if buffer argument i has fewer than n elements of size bytes, or if its
// address is not aligned for such elements.
func (c *Call) Need(i, n, size int) {
	b := c.Bytes(i)
	if c.weighs {
		c.needed += float64(n) * float64(size)
		return
	}
	if n < 0 || n > len(b)/size {
		c.Fail(i, "%d elements, but the kernel uses %d", len(b)/size, n)
	}
	if n > 0 {
		c.align(i, b, size)
	}
}

// align ends the launch if the address of b, the memory of buffer argument i, is not a multiple of the
// element's size or, if that is not a power of two, as for a vector of three, of the largest power
// of two that divides it.
func (c *Call) align(i int, b []byte, size int) {
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))&uintptr(size&-size-1) != 0 {
		c.Fail(i, "its offset is not a multiple of the element's %d bytes", size)
	}
}

// needAll calls Need with n elements of type typ for each of the buffer arguments buffers.
func needAll(c *Call, typ string, n int, buffers ...int) {
	size := SizeOf(typ)
	for _, i := range buffers {
		c.Need(i, n, size)
	}
}

// elementwise returns a function for Family.Arguments of kernels whose argument at position size is the
// number of elements of type T in each of the buffer arguments buffers.
func elementwise(size int, buffers ...int) func(c *Call) bool {
	return func(c *Call) bool {
		n := int(c.Int(size))
		needAll(c, c.Type("T"), n, buffers...)
		return n > 0
	}
}

// Elem is the constraint of the Go types in which elements of buffers are read and written.
type Elem interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

// Elements returns the elements of buffer argument i as a slice of E, which is the buffer's
// memory. If kinds are given, the element type of the parameter has to be one of them. A vector
// counts as its components.
func Elements[E Elem](c *Call, i int, kinds ...source.Kind) []E {
	b := c.Bytes(i)
	if i < len(c.Params) && len(kinds) > 0 && !slices.Contains(kinds, c.Params[i].Kind) {
		c.Fail(i, "not a buffer of %T", *new(E))
	}
	size := int(unsafe.Sizeof(*new(E)))
	if len(b) < size {
		return nil
	}
	c.align(i, b, size)
	return unsafe.Slice((*E)(unsafe.Pointer(&b[0])), len(b)/size)
}

// F32 returns the elements of a float buffer.
func (c *Call) F32(i int) []float32 { return Elements[float32](c, i, source.Float) }

// F64 returns the elements of a double buffer.
func (c *Call) F64(i int) []float64 { return Elements[float64](c, i, source.Double) }

// I8 returns the elements of a char buffer.
func (c *Call) I8(i int) []int8 { return Elements[int8](c, i, source.Char) }

// U8 returns the elements of a uchar buffer.
func (c *Call) U8(i int) []uint8 { return Elements[uint8](c, i, source.UChar) }

// I16 returns the elements of a short buffer.
func (c *Call) I16(i int) []int16 { return Elements[int16](c, i, source.Short) }

// U16 returns the elements of a ushort buffer, and the bits of a half buffer.
func (c *Call) U16(i int) []uint16 { return Elements[uint16](c, i, source.UShort, source.Half) }

// I32 returns the elements of an int buffer.
func (c *Call) I32(i int) []int32 { return Elements[int32](c, i, source.Int) }

// U32 returns the elements of a uint buffer.
func (c *Call) U32(i int) []uint32 { return Elements[uint32](c, i, source.UInt) }

// I64 returns the elements of a long buffer.
func (c *Call) I64(i int) []int64 { return Elements[int64](c, i, source.Long) }

// U64 returns the elements of a ulong buffer.
func (c *Call) U64(i int) []uint64 { return Elements[uint64](c, i, source.ULong) }

// Value returns the bytes of a value argument, such as a vector or struct, in the layout of
// OpenCL C.
func (c *Call) Value(i int) []byte { return slices.Clip(c.arg(i, ValueArgument, "not a value").Bytes) }

// value returns the bits of a scalar argument, as a number of 64 bits, and its type.
func (c *Call) value(i int) (bits uint64, kind source.Kind) {
	b := c.Value(i)
	if i >= len(c.Params) {
		c.Fail(i, "not a value")
	}
	p := &c.Params[i]
	if p.Width > 1 || p.Kind == source.Struct {
		c.Fail(i, "not a scalar: use Value")
	}
	switch len(b) {
	case 1:
		return uint64(b[0]), p.Kind
	case 2:
		return uint64(binary.NativeEndian.Uint16(b)), p.Kind
	case 4:
		return uint64(binary.NativeEndian.Uint32(b)), p.Kind
	case 8:
		return binary.NativeEndian.Uint64(b), p.Kind
	}
	c.Fail(i, "a scalar of %d bytes", len(b))
	return 0, 0
}

// Int returns an integer argument. An unsigned 64-bit number above the largest
// int64 wraps, as in a Go conversion.
func (c *Call) Int(i int) int64 {
	if i >= 0 && i < len(c.Args) && i < len(c.Params) { // what most sizes are, of which a launch has many
		a, p := &c.Args[i], &c.Params[i]
		if a.Kind == ValueArgument && len(a.Bytes) == 4 && p.Kind == source.UInt && p.Width <= 1 {
			return int64(binary.NativeEndian.Uint32(a.Bytes))
		}
	}
	bits, kind := c.value(i)
	v, ok := integer(bits, kind)
	if !ok {
		c.Fail(i, "not an integer")
	}
	return v
}

// Float returns a scalar argument as a float64; an integer is converted.
func (c *Call) Float(i int) float64 {
	if i >= 0 && i < len(c.Args) && i < len(c.Params) { // what most factors are
		a, p := &c.Args[i], &c.Params[i]
		if a.Kind == ValueArgument && len(a.Bytes) == 4 && p.Kind == source.Float && p.Width <= 1 {
			return float64(math.Float32frombits(binary.NativeEndian.Uint32(a.Bytes)))
		}
	}
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
		c.Fail(i, "not a number")
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

// maxElements is the largest number of elements, of up to 16 bytes, whose size fits in an int.
const maxElements = int(^uint(0)>>1) / 16

// Product returns the product of sizes that are arguments of the launch. The launch ends with an
// error if a size is negative or the product is larger than any memory. If one size is
// 0, the product is 0, whatever the others are.
func (c *Call) Product(sizes ...int) int {
	if slices.Contains(sizes, 0) {
		return 0
	}
	n := 1
	for _, s := range sizes {
		if s < 0 || n > maxElements/s {
			// a clone, so that sizes stays on the stack
			c.Fail(-1, "the product of the sizes %v is larger than any memory", slices.Clone(sizes))
		}
		n *= s
	}
	return n
}

// Sum is Product for a sum of sizes that are not negative.
func (c *Call) Sum(sizes ...int) int {
	n := 0
	for _, s := range sizes {
		if s < 0 || n > maxElements-s {
			c.Fail(-1, "the sum of the sizes %v is larger than any memory", slices.Clone(sizes))
		}
		n += s
	}
	return n
}

// SizeOf returns the size in bytes of an element of a type such as "bf16", whose name ends in its
// number of bits.
func SizeOf(typ string) int {
	switch {
	case strings.HasSuffix(typ, "8"):
		return 1
	case strings.HasSuffix(typ, "16"):
		return 2
	case strings.HasSuffix(typ, "32"):
		return 4
	case strings.HasSuffix(typ, "64"):
		return 8
	}
	return 0
}
