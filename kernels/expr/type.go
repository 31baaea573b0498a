package expr

// The types of values.

import "github.com/concord-compute/concord/runtime/driver"

// Type is the type of a value in an expression, or of an element of an operand.
type Type = driver.Type

// The types. F16 and BF16 are types of elements only: their values are computed in F32. The values of Bool
// are stored as U8, 0 or 1.
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
	Bool = driver.Bool
)

// valueType returns the type of a value in OpenCL C.
func valueType(t Type) string {
	if t == Bool {
		return "int"
	}
	return t.Computed().Kind().String()
}

// holds reports whether an element of t can take values of that type.
func holds(t, value Type) bool { return t.Computed() == value || t == U8 && value == Bool }
