package kernels

// A test case of a kernel: one launch with its data, and the error that is allowed.

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/concord-compute/concord/source"
)

// Case is one test case of a kernel: a launch to run on a device and on the reference, and the bound
// for the difference of the results.
type Case struct {
	Family  string
	Kernel  string
	DType   string // the element type, such as "f32"; for cast both types, such as "f32-i8"
	Shape   string // sizes and data in words: "n=257", "3×1000×2 special values"
	Defines []source.Define
	Needs   source.Features // the case is skipped on a device that lacks one of these features
	Sizes   []int           // the sizes from which Geometry makes the grid
	Args    []Arg

	// Bound returns the largest absolute error that is allowed for each element of an output. arg
	// is the position of the output in Args. in is what Inputs returns. ref is the
	// result of the reference. If Bound is nil or returns nil, the result has to be equal to the
	// reference bit by bit, except that any NaN equals any other.
	Bound     func(arg int, in [][]float64, ref []float64) []float64
	Tolerance string // Bound as a formula; ε is the unit roundoff of the arithmetic
	Why       string // the reason for the bound
}

// Dir says whether an argument is a buffer that a kernel reads or writes, or a value.
type Dir uint8

// The directions of arguments.
const (
	In    Dir = iota // a buffer that the kernel only reads
	Out              // a buffer of which the kernel writes every element; its contents before are undefined
	InOut            // a buffer with data that the kernel may change
	Value            // a scalar
)

// Arg is one argument of a case.
type Arg struct {
	Dir  Dir
	Type string  // "f32", "bf16", "u8"
	Len  int     // number of elements of a buffer
	V    float64 // the number, if Dir is Value and Bytes is nil

	// Bytes is the value in memory, if Dir is Value and the parameter is a struct; Type is empty then.
	Bytes []byte

	// Fill returns the Len numbers of an In or InOut buffer, the same at every call.
	Fill func() []float64
}

// Data returns the numbers of an In or InOut buffer before they are rounded to its type
// (to nearest even; integers are exact already), the same at every call. For Out
// it returns nil, for Value the one number.
func (a *Arg) Data() []float64 {
	switch {
	case a.Bytes != nil:
		return nil
	case a.Dir == Value:
		return []float64{a.V}
	case a.Fill == nil:
		return nil
	}
	return a.Fill()
}

// Name returns a name that is unique in the catalog, such as "gemm/gemm f16 m=1 n=2 k=3".
func (c *Case) Name() string { return c.Family + "/" + c.Kernel + " " + c.DType + " " + c.Shape }

// Case returns a case of one of the family's kernels with its names, the definition T if the
// family has it, the features that a device needs for that type, and the sizes for [Geometry].
// The caller adds the arguments and the bound.
func (f *Family) Case(kernel, dtype, shape string, sizes ...int) Case {
	c := Case{Family: f.ID, Kernel: kernel, DType: dtype, Shape: shape, Sizes: sizes}
	if slices.Contains(f.Defines, "T") {
		c.Defines = []source.Define{{Name: "T", Value: dtype}}
	}
	c.need(dtype)
	return c
}

func (c *Case) need(dtype string) { c.Needs.FP64 = c.Needs.FP64 || dtype == "f64" }

// with adds arguments and returns the case.
func (c Case) with(args ...Arg) Case {
	c.Args = args
	return c
}

// define adds a definition and returns the case.
func (c Case) define(name, value string) Case {
	c.Defines = append(slices.Clip(c.Defines), source.Define{Name: name, Value: value})
	return c
}

// grouped changes a case to groups of that many items, which the definition GROUP chooses; 0 leaves the usual ones.
func (c Case) grouped(items int) Case {
	if items == 0 {
		return c
	}
	c.Shape += fmt.Sprintf(" GROUP=%d", items)
	return c.define("GROUP", strconv.Itoa(items))
}

// exact states that the result has to be equal to that of the reference.
func (c Case) exact(why string) Case {
	c.Tolerance, c.Why = "equal", why
	return c
}

// within sets the bound, as a formula, with its reason and as a function.
func (c Case) within(formula, why string, bound func(arg int, in [][]float64, ref []float64) []float64) Case {
	c.Tolerance, c.Why, c.Bound = formula, why, bound
	return c
}

func in(typ string, n int, data func() []float64) Arg {
	return Arg{Dir: In, Type: typ, Len: max(n, 1), Fill: data}
}

func inout(typ string, n int, data func() []float64) Arg {
	return Arg{Dir: InOut, Type: typ, Len: max(n, 1), Fill: data}
}

// out returns an output of n elements. There are no empty buffers, so that an output of 0
// elements gets one element, which the kernel must not change.
func out(typ string, n int) Arg {
	if n == 0 {
		return inout(typ, 1, constant(1, 77))
	}
	return Arg{Dir: Out, Type: typ, Len: n}
}

func value(typ string, v float64) Arg { return Arg{Dir: Value, Type: typ, V: v} }
func uintArg(v int) Arg               { return value("u32", float64(v)) }
func ulongArg(v int) Arg              { return value("u64", float64(v)) }
