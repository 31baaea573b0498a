package expr

// The types of values.

import "strconv"

// Type is the type of a value in an expression, or of an element of an operand.
type Type uint8

// The types. F16 and BF16 are types of elements only: their values are computed in F32. The values of Bool
// are stored as U8, 0 or 1.
const (
	F32 Type = iota + 1
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

// typeInfo has the properties of a type.
type typeInfo struct {
	name  string // as in the catalog's definitions
	cl    string // of an element in OpenCL C
	bits  int    // of an element
	value string // of a value in OpenCL C
	kind  kind
}

// kind is the kind of arithmetic of a type.
type kind uint8

const (
	floating kind = iota + 1
	signed
	unsigned
	truth
)

var types = [...]typeInfo{
	F32:  {"f32", "float", 32, "float", floating},
	F64:  {"f64", "double", 64, "double", floating},
	F16:  {"f16", "half", 16, "float", floating},
	BF16: {"bf16", "ushort", 16, "float", floating},
	I8:   {"i8", "char", 8, "char", signed},
	I16:  {"i16", "short", 16, "short", signed},
	I32:  {"i32", "int", 32, "int", signed},
	I64:  {"i64", "long", 64, "long", signed},
	U8:   {"u8", "uchar", 8, "uchar", unsigned},
	U16:  {"u16", "ushort", 16, "ushort", unsigned},
	U32:  {"u32", "uint", 32, "uint", unsigned},
	U64:  {"u64", "ulong", 64, "ulong", unsigned},
	Bool: {"bool", "uchar", 8, "int", truth},
}

// Types returns the types that elements of an operand can have.
func Types() []Type { return []Type{F32, F64, F16, BF16, I8, I16, I32, I64, U8, U16, U32, U64} }

// TypeOf returns the type of that name in the catalog: "f32", "bf16", "u8".
func TypeOf(name string) (Type, bool) {
	for t := range types {
		if t > 0 && types[t].name == name {
			return Type(t), true
		}
	}
	return 0, false
}

// String returns the name of the type in the catalog.
func (t Type) String() string {
	if !t.valid() {
		return "Type(" + strconv.Itoa(int(t)) + ")"
	}
	return types[t].name
}

// Size returns the number of bytes of an element.
func (t Type) Size() int { return types[t].bits / 8 }

// Computed returns the type that values of t are computed in: F32 for F16 and BF16, else t.
func (t Type) Computed() Type { return t.computed() }

// Stored returns the type of an element that holds a value of t: U8 for Bool, else t.
func (t Type) Stored() Type { return t.stored() }

func (t Type) valid() bool   { return t > 0 && int(t) < len(types) }
func (t Type) kind() kind    { return types[t].kind }
func (t Type) float() bool   { return t.kind() == floating }
func (t Type) integer() bool { return t.kind() == signed || t.kind() == unsigned }

// computed returns the type that values of t are computed in.
func (t Type) computed() Type {
	if t == F16 || t == BF16 {
		return F32
	}
	return t
}

// stored returns the type of an element that holds a value of t.
func (t Type) stored() Type {
	if t == Bool {
		return U8
	}
	return t
}

// holds reports whether an element of t can take values of that type.
func (t Type) holds(value Type) bool { return t.computed() == value || t == U8 && value == Bool }
