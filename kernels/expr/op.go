package expr

// The operations: their names, and the types of their operands and results.

import (
	"fmt"
	"math"

	"github.com/concord-compute/concord/internal/precise"
)

// Op is an operation of an expression.
type Op uint8

// The operations. On floating numbers each is rounded once to the type of its result, to nearest even, unless the
// device computes it only within a limit of error; integers wrap modulo 2^bits. The order is that of csrc/cpu/expr.h.
const (
	opInput  Op = iota + 1 // element of an operand
	opParam                // number of the launch
	opConst                // number of the expression
	opIndex                // position of the element, an I64
	opRandom               // 32 random bits, a U32
	opLength               // length of the last dimension, an I64

	Neg // -x
	Abs // |x|; the smallest signed integer stays as it is
	Not // bits inverted; of a Bool its negation

	Sqrt
	Rsqrt // 1/√x
	Exp
	Exp2
	Expm1 // e^x - 1
	Log
	Log2
	Log1p // ln(1 + x)
	Sin
	Cos
	Tan
	Sinh
	Cosh
	Tanh
	Asin
	Acos
	Atan
	Asinh
	Acosh
	Atanh
	Erf
	Erfc
	Sigmoid // 1 / (1 + e^-x)
	GELU    // x·Φ(x), with the distribution function Φ of the normal distribution
	Floor
	Ceil
	Trunc
	Round // to the nearest whole number, ties to even
	IsNaN // a Bool

	Add
	Sub
	Mul
	Div // of integers toward zero; by zero it gives zero
	Rem // the remainder of Div, with the sign of the dividend; of integers by zero it gives zero
	Min // NaN if either operand is; for zeros of both signs the second operand
	Max
	Pow
	Atan2
	CopySign

	And // of integers bit by bit, or of Bools
	Or
	Xor
	Shl // the count is taken modulo the number of bits
	Shr // copies the sign of signed integers

	Eq // as in IEEE 754: all comparisons with a NaN but Ne are false
	Ne
	Lt
	Le

	Select // of a Bool: the first of two values if it is true
	FMA    // a·b + c, rounded once

	Cast // to the nearest value of the type: integers toward zero, saturating, 0 for a NaN
	Bits // the same bits as another type of the same size

	opOdd // to F32, rounded to odd, for an element of 16 bits, which is then rounded once

	// Sum and the operations that follow are reductions over the last dimension.
	Sum      // 0 of no elements; of elements that are all -0 it is 0, as 0 is added to them
	Product  // 1 of no elements
	Smallest // NaN if any element is; ∞ or the largest integer of no elements
	Largest  // NaN if any element is; -∞ or the smallest integer of no elements
	All      // And of all elements; true or all bits set of none
	Any      // Or of all elements; false or 0 of none
	// ArgLargest is the place in the row, an I64, of the element that Largest returns, counted from 0: that of the first
	// one of equals, and of the first NaN if there is one. Of no elements it is 0.
	ArgLargest
	ArgSmallest // as ArgLargest, of the element that Smallest returns

	opEnd // as a code of block programs it is CodeStore, and the next number CodeWrap
	_

	// Softmax and the operations that follow are named: the canonical form of a map has them as they are, so that a
	// device can have a loop for them. All else works on the expressions that define them, see definitions.
	Softmax      // of the last dimension: e^(x-m) · (1 / Σ e^(x-m)), with the maximum m
	Normalize    // of x, n and ε: (x-m) · 1/√(v+ε), with the mean m = Σ x / n and the variance v = Σ (x-m)² / n
	RMSNormalize // of x, n and ε: x · 1/√(s+ε), with the mean of squares s = Σ x² / n

	opLast
)

// takes is the kind of operands of an operation.
type takes uint8

const (
	noOperands takes = iota
	numbers          // floating numbers or integers of one type
	floats           // floating numbers of one type
	integers         // integers of one type
	bitwise          // integers or Bool, of one type
	anything         // any values of one type
	special          // Select, Cast and Bits, whose methods check their operands
)

type opInfo struct {
	name  string
	arity int
	takes takes
	truth bool // the result is a Bool

	// call is the function of OpenCL C for floating numbers, or empty if the text has an expression instead. ulp
	// is its largest error in units in the last place, for float and double alike, from the tables of OpenCL 1.2;
	// 0: it is exact or rounded correctly.
	call string
	ulp  float64

	effort int                   // see Effort; 0 stands for 1
	f      func(float64) float64 // of one floating number: the function in float64
}

var ops = [opLast]opInfo{
	opInput:  {name: "input"},
	opParam:  {name: "param"},
	opConst:  {name: "const"},
	opIndex:  {name: "index"},
	opRandom: {name: "random", arity: 1, takes: special},
	opLength: {name: "length"},

	Neg: {name: "neg", arity: 1, takes: numbers},
	Abs: {name: "abs", arity: 1, takes: numbers},
	Not: {name: "not", arity: 1, takes: bitwise},

	Sqrt: {name: "sqrt", arity: 1, takes: floats, call: "sqrt", ulp: 3, effort: 4, f: math.Sqrt},
	Rsqrt: {name: "rsqrt", arity: 1, takes: floats, call: "rsqrt", ulp: 2, effort: 6,
		f: func(x float64) float64 { return 1 / math.Sqrt(x) }},
	Exp:   {name: "exp", arity: 1, takes: floats, call: "exp", ulp: 3, effort: 6, f: precise.Exp},
	Exp2:  {name: "exp2", arity: 1, takes: floats, call: "exp2", ulp: 3, effort: 10, f: math.Exp2},
	Expm1: {name: "expm1", arity: 1, takes: floats, call: "expm1", ulp: 3, effort: 30, f: precise.Expm1},
	Log:   {name: "log", arity: 1, takes: floats, call: "log", ulp: 3, effort: 16, f: precise.Log},
	Log2:  {name: "log2", arity: 1, takes: floats, call: "log2", ulp: 3, effort: 16, f: precise.Log2},
	Log1p: {name: "log1p", arity: 1, takes: floats, call: "log1p", ulp: 2, effort: 40, f: math.Log1p},
	Sin:   {name: "sin", arity: 1, takes: floats, call: "sin", ulp: 4, effort: 50, f: precise.Sin},
	Cos:   {name: "cos", arity: 1, takes: floats, call: "cos", ulp: 4, effort: 50, f: precise.Cos},
	Tan:   {name: "tan", arity: 1, takes: floats, call: "tan", ulp: 5, effort: 60, f: precise.Tan},
	Sinh:  {name: "sinh", arity: 1, takes: floats, call: "sinh", ulp: 4, effort: 40, f: precise.Sinh},
	Cosh:  {name: "cosh", arity: 1, takes: floats, call: "cosh", ulp: 4, effort: 30, f: precise.Cosh},
	Tanh:  {name: "tanh", arity: 1, takes: floats, call: "tanh", ulp: 5, effort: 10, f: math.Tanh},
	// math.Asin and its difference to π/2 lose digits near 1.
	Asin: {name: "asin", arity: 1, takes: floats, call: "asin", ulp: 4, effort: 40,
		f: func(x float64) float64 { return math.Atan2(x, math.Sqrt((1-x)*(1+x))) }},
	Acos: {name: "acos", arity: 1, takes: floats, call: "acos", ulp: 4, effort: 40,
		f: func(x float64) float64 { return 2 * math.Atan2(math.Sqrt(1-x), math.Sqrt(1+x)) }},
	Atan:  {name: "atan", arity: 1, takes: floats, call: "atan", ulp: 5, effort: 40, f: math.Atan},
	Asinh: {name: "asinh", arity: 1, takes: floats, call: "asinh", ulp: 4, effort: 40, f: math.Asinh},
	Acosh: {name: "acosh", arity: 1, takes: floats, call: "acosh", ulp: 4, effort: 40, f: math.Acosh},
	Atanh: {name: "atanh", arity: 1, takes: floats, call: "atanh", ulp: 5, effort: 40, f: math.Atanh},
	Erf:   {name: "erf", arity: 1, takes: floats, call: "erf", ulp: 16, effort: 20, f: math.Erf},
	Erfc:  {name: "erfc", arity: 1, takes: floats, call: "erfc", ulp: 16, effort: 20, f: math.Erfc},
	// The exponential function, the sum and the quotient may each err.
	Sigmoid: {name: "sigmoid", arity: 1, takes: floats, ulp: 7, effort: 8, f: precise.Sigmoid},
	// For positive numbers; gelu in eval.go has more for others.
	GELU:  {name: "gelu", arity: 1, takes: floats, ulp: 19.5, effort: 16, f: precise.GELU},
	Floor: {name: "floor", arity: 1, takes: floats, call: "floor", f: math.Floor},
	Ceil:  {name: "ceil", arity: 1, takes: floats, call: "ceil", f: math.Ceil},
	Trunc: {name: "trunc", arity: 1, takes: floats, call: "trunc", f: math.Trunc},
	Round: {name: "round", arity: 1, takes: floats, call: "rint", f: math.RoundToEven},
	IsNaN: {name: "isnan", arity: 1, takes: floats, truth: true},

	Add:      {name: "add", arity: 2, takes: numbers},
	Sub:      {name: "sub", arity: 2, takes: numbers},
	Mul:      {name: "mul", arity: 2, takes: numbers},
	Div:      {name: "div", arity: 2, takes: numbers, ulp: 2.5, effort: 4},
	Rem:      {name: "rem", arity: 2, takes: numbers, call: "fmod"},
	Min:      {name: "min", arity: 2, takes: numbers},
	Max:      {name: "max", arity: 2, takes: numbers},
	Pow:      {name: "pow", arity: 2, takes: floats, call: "pow", ulp: 16, effort: 100},
	Atan2:    {name: "atan2", arity: 2, takes: floats, call: "atan2", ulp: 6, effort: 50},
	CopySign: {name: "copysign", arity: 2, takes: floats, call: "copysign"},

	And: {name: "and", arity: 2, takes: bitwise},
	Or:  {name: "or", arity: 2, takes: bitwise},
	Xor: {name: "xor", arity: 2, takes: bitwise},
	Shl: {name: "shl", arity: 2, takes: integers},
	Shr: {name: "shr", arity: 2, takes: integers},

	Eq: {name: "eq", arity: 2, takes: anything, truth: true},
	Ne: {name: "ne", arity: 2, takes: anything, truth: true},
	Lt: {name: "lt", arity: 2, takes: numbers, truth: true},
	Le: {name: "le", arity: 2, takes: numbers, truth: true},

	Select: {name: "select", arity: 3, takes: special},
	FMA:    {name: "fma", arity: 3, takes: floats, call: "fma"},

	Cast: {name: "cast", arity: 1, takes: special},
	Bits: {name: "bits", arity: 1, takes: special},

	opOdd: {name: "odd", arity: 1, takes: special},

	Sum:      {name: "sum", arity: 1, takes: numbers},
	Product:  {name: "product", arity: 1, takes: numbers},
	Smallest: {name: "smallest", arity: 1, takes: numbers},
	Largest:  {name: "largest", arity: 1, takes: numbers},
	All:      {name: "all", arity: 1, takes: bitwise},
	Any:      {name: "any", arity: 1, takes: bitwise},

	ArgLargest:  {name: "arglargest", arity: 1, takes: numbers},
	ArgSmallest: {name: "argsmallest", arity: 1, takes: numbers},

	Softmax:      {name: "softmax", arity: 1, takes: floats},
	Normalize:    {name: "normalize", arity: 3, takes: floats},
	RMSNormalize: {name: "rmsnormalize", arity: 3, takes: floats},
}

// valid reports whether there is such an operation.
func (op Op) valid() bool { return op < opLast && ops[op].name != "" }

// named reports whether an expression defines the operation.
func (op Op) named() bool { return op >= Softmax }

// reduces reports whether the operation is a reduction.
func (op Op) reduces() bool { return op >= Sum && op <= ArgSmallest }

// locates reports whether the operation is a reduction whose result is the place of an element.
func (op Op) locates() bool { return op == ArgLargest || op == ArgSmallest }

// extremes has the reductions to the elements whose places are reduced to, and combines the operation that combines
// two results of any other reduction.
var (
	extremes = [opEnd]Op{ArgLargest: Largest, ArgSmallest: Smallest}
	combines = [opEnd]Op{Sum: Add, Product: Mul, Smallest: Min, Largest: Max, All: And, Any: Or}
)

// String returns the operation's name.
func (op Op) String() string {
	if !op.valid() {
		return fmt.Sprintf("Op(%d)", uint8(op))
	}
	return ops[op].name
}

// Effort returns how long the CPU computes the operation for floats in registers, in the time of an addition.
func (op Op) Effort() int { return max(ops[op].effort, 1) }

// commutes reports whether the operands can change places.
func (op Op) commutes() bool {
	switch op {
	case Add, Mul, And, Or, Xor, Eq, Ne:
		return true
	}
	return false
}

// accepts reports whether an operand may be of that type.
func (t takes) accepts(typ Type) bool {
	switch t {
	case numbers:
		return typ != Bool
	case floats:
		return typ.IsFloat()
	case integers:
		return typ.IsInteger()
	case bitwise:
		return typ.IsInteger() || typ == Bool
	}
	return true
}
