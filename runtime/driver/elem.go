package driver

// Element types of buffers, of tensors and of values in expressions.

import (
	"fmt"
	"math"
	"slices"

	"github.com/concord-compute/concord/source"
)

// Type is the type of an element of a buffer or a tensor, or of a value in an expression.
type Type uint8

// The element types. The zero value is no type. Tensors and expressions have Bool, too, whose elements are stored
// as U8, 0 or 1: no buffer is of that type. F16 and BF16 are computed in F32.
const (
	NoType Type = iota
	F32
	F64
	F16
	BF16
	I8
	I16
	I32
	I64
	U8
	U16
	U32
	U64
	Bool
)

// Types returns every element type of buffers.
func Types() []Type { return []Type{F32, F64, F16, BF16, I8, I16, I32, I64, U8, U16, U32, U64} }

var typeTable = [...]struct {
	name string
	size int
	kind source.Kind
}{
	NoType: {"none", 0, source.Void},
	F32:    {"f32", 4, source.Float}, F64: {"f64", 8, source.Double},
	F16: {"f16", 2, source.Half}, BF16: {"bf16", 2, source.UShort},
	I8: {"i8", 1, source.Char}, I16: {"i16", 2, source.Short},
	I32: {"i32", 4, source.Int}, I64: {"i64", 8, source.Long},
	U8: {"u8", 1, source.UChar}, U16: {"u16", 2, source.UShort},
	U32: {"u32", 4, source.UInt}, U64: {"u64", 8, source.ULong},
	Bool: {"bool", 1, source.UChar},
}

// String returns the short name: "f32", "bf16", "u8".
func (t Type) String() string {
	if int(t) >= len(typeTable) {
		return fmt.Sprintf("Type(%d)", t)
	}
	return typeTable[t].name
}

// Size returns the bytes of one element, or 0 for what is no type.
func (t Type) Size() int {
	if int(t) >= len(typeTable) {
		return 0
	}
	return typeTable[t].size
}

// Bytes returns the bytes of a buffer of n elements. It is an error if no buffer can be of that type, n is negative
// (both ErrInvalidArgument), or the bytes are more than an int64 counts (ErrTooLarge).
func (t Type) Bytes(n int) (int64, error) {
	switch {
	case t.Size() == 0 || t == Bool:
		return 0, fmt.Errorf("%v is not an element type of buffers: %w", t, ErrInvalidArgument)
	case n < 0:
		return 0, fmt.Errorf("%d elements: %w", n, ErrInvalidArgument)
	case n > math.MaxInt64/t.Size():
		return 0, fmt.Errorf("%d elements of %v overflow: %w", n, t, ErrTooLarge)
	}
	return int64(n) * int64(t.Size()), nil
}

// Kind returns the type of a kernel parameter that points to such elements.
// bfloat16 has no type in OpenCL C: kernels see it as ushort.
func (t Type) Kind() source.Kind {
	if int(t) >= len(typeTable) {
		return source.Void
	}
	return typeTable[t].kind
}

// IsFloat reports whether t is a type of floating-point numbers.
func (t Type) IsFloat() bool { return t >= F32 && t <= BF16 }

// IsInteger reports whether t is a type of integers, which Bool is not.
func (t Type) IsInteger() bool { return t >= I8 && t <= U64 }

// IsSigned reports whether t is a type of integers that may be negative.
func (t Type) IsSigned() bool { return t >= I8 && t <= I64 }

// Computed returns the type that values of t are computed in: F32 for F16 and BF16, else t.
func (t Type) Computed() Type {
	if t == F16 || t == BF16 {
		return F32
	}
	return t
}

// Stored returns the type of a buffer that holds values of t: U8 for Bool, else t.
func (t Type) Stored() Type {
	if t == Bool {
		return U8
	}
	return t
}

// ParseType returns the type with that short name.
func ParseType(name string) (Type, error) {
	all := append(Types(), Bool)
	if i := slices.IndexFunc(all, func(t Type) bool { return t.String() == name }); i >= 0 {
		return all[i], nil
	}
	return NoType, fmt.Errorf("element type %q is not one of %v: %w", name, all, ErrInvalidArgument)
}
