package driver

// Element types of buffers.

import (
	"fmt"

	"github.com/concord-compute/concord/source"
)

// Type is the element type of a buffer.
type Type uint8

// The element types. The zero value is no type.
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
)

// Types returns every element type.
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
}

// String returns the short name: "f32", "bf16", "u8".
func (t Type) String() string {
	if int(t) >= len(typeTable) {
		return fmt.Sprintf("Type(%d)", t)
	}
	return typeTable[t].name
}

// Size returns the bytes of one element.
func (t Type) Size() int {
	if int(t) >= len(typeTable) {
		return 0
	}
	return typeTable[t].size
}

// Kind returns the type of a kernel parameter that points to such elements.
// bfloat16 has no type in OpenCL C: kernels see it as ushort.
func (t Type) Kind() source.Kind {
	if int(t) >= len(typeTable) {
		return source.Void
	}
	return typeTable[t].kind
}

// ParseType returns the type with that short name.
func ParseType(name string) (Type, error) {
	for _, t := range Types() {
		if typeTable[t].name == name {
			return t, nil
		}
	}
	return NoType, fmt.Errorf("element type %q is not one of %v: %w", name, Types(), ErrInvalidArgument)
}
