package tensor

// Element types, and which type the result of an operation on two of them has.

import (
	"fmt"
	"math"
	"reflect"

	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// Type is the type of the elements of a tensor.
type Type = driver.Type

// The element types. Bool is stored in a byte, 0 or 1. F16 and BF16 are computed in F32 and rounded when they
// are stored.
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

// ParseType returns the type with a short name: "f32", "bool".
func ParseType(name string) (Type, error) { return driver.ParseType(name) }

// Element is a Go type of elements.
type Element interface{ runtime.Element | bool }

// TypeOf returns the element type of a Go type.
func TypeOf[T Element]() Type { return runtime.TypeOf[T]() }

// IsFloat reports whether a type is one of floating-point numbers.
func IsFloat(t Type) bool { return t.IsFloat() }

// isSigned reports whether an integer type has negative numbers.
func isSigned(t Type) bool { return t.IsSigned() }

// size returns the bytes of an element.
func size(t Type) int { return t.Size() }

// Promote returns the type of the result of arithmetic on elements of a and b, by NumPy's rules: the smallest type that
// holds both. A Bool gives way to any other type. A signed and an unsigned integer become a signed one of more bits,
// and U64 with a signed integer F64. An integer with a floating type becomes the smallest float that holds it exactly,
// at least of the float's size, but F64 for 64 bits. NumPy has no BF16: with F16 it becomes F32, with an integer of 8
// bits it stays, and with longer ones it becomes what F16 becomes.
func Promote(a, b Type) Type {
	switch {
	case a == b || b == Bool:
		return a
	case a == Bool:
		return b
	case IsFloat(a) && IsFloat(b):
		if size(a) == size(b) { // F16 and BF16
			return F32
		}
		if size(a) > size(b) {
			return a
		}
		return b
	case IsFloat(b):
		return Promote(b, a)
	case IsFloat(a):
		switch size(b) {
		case 1:
			return a
		case 2:
			if size(a) == 2 {
				return F32
			}
			return a
		}
		return F64
	case isSigned(a) == isSigned(b):
		if size(a) > size(b) {
			return a
		}
		return b
	case isSigned(b):
		return Promote(b, a)
	case size(a) > size(b): // a is signed
		return a
	}
	return map[int]Type{1: I16, 2: I32, 4: I64, 8: F64}[size(b)]
}

// goNumber is a number of Go: a float, or an integer with its sign apart, so that it holds those of int64 and
// of uint64.
type goNumber struct {
	float    float64 // the value of either, to the nearest float64
	size     uint64  // |value| of an integer
	negative bool
	isFloat  bool
}

// number returns a Go number, or false if x is none. A bool is 0 or 1.
func number(x any) (n goNumber, ok bool) {
	v := reflect.ValueOf(x)
	switch x := x.(type) {
	case runtime.Float16:
		return goNumber{float: x.Float64(), isFloat: true}, true
	case runtime.BFloat16:
		return goNumber{float: x.Float64(), isFloat: true}, true
	}
	switch {
	case v.CanFloat():
		return goNumber{float: v.Float(), isFloat: true}, true
	case v.CanInt():
		i := v.Int()
		n = goNumber{float: float64(i), size: uint64(i), negative: i < 0}
		if n.negative {
			n.size = -n.size
		}
		return n, true
	case v.CanUint():
		return goNumber{float: float64(v.Uint()), size: v.Uint()}, true
	case v.Kind() == reflect.Bool:
		if v.Bool() {
			n = goNumber{float: 1, size: 1}
		}
		return n, true
	}
	return n, false
}

// fits reports whether an integer type holds an integer.
func (n goNumber) fits(t Type) bool {
	most := uint64(1)<<(8*size(t)-1) - 1
	switch {
	case n.size == 0:
		return true
	case !isSigned(t):
		return !n.negative && n.size <= 2*most+1
	case n.negative:
		return n.size <= most+1
	}
	return n.size <= most
}

// constant returns a Go number as an expression of the type in which t is computed. A floating type rounds it,
// to an infinity if it is beyond all that the type has. An integer that an integer type does not hold, or a
// fraction, a NaN or an infinity for it, is an error.
func constant(t Type, x any) (*expr.Expr, error) {
	n, ok := number(x)
	switch {
	case !ok:
		return nil, fmt.Errorf("%T is neither a tensor nor a number: %w", x, ErrType)
	case IsFloat(t):
		if t != F64 && !n.isFloat { // rounded once
			n.float = float64(float32(n.size))
			if n.negative {
				n.float = -n.float
			}
		}
		return expr.Float(t.Computed(), n.float), nil
	case t == Bool:
		return expr.Int(Bool, map[bool]int64{true: 1}[n.float != 0]), nil
	case n.isFloat:
		if n.float != math.Trunc(n.float) || math.Abs(n.float) >= 1<<64 {
			return nil, fmt.Errorf("%v is no number of type %v: %w", x, t, ErrType)
		}
		n.size, n.negative = uint64(math.Abs(n.float)), n.float < 0
	}
	if !n.fits(t) {
		return nil, fmt.Errorf("%v is no number of type %v: %w", x, t, ErrType)
	}
	if n.negative {
		return expr.Int(t, -int64(n.size)), nil
	}
	return expr.Int(t, int64(n.size)), nil
}

// fits reports whether an integer type holds i.
func fits(t Type, i int64) bool {
	n, _ := number(i)
	return n.fits(t)
}

// weak returns the type of the result of a tensor of type t with a Go number: t, unless the number needs
// another kind of type.
func weak(t Type, x any) Type {
	n, _ := number(x)
	switch {
	case n.isFloat && !IsFloat(t):
		return F64
	case t == Bool:
		if _, is := x.(bool); !is {
			return I64
		}
	}
	return t
}
