package kernels

// A test case of a kernel: one launch with its data, and the error that is allowed.

import (
	"fmt"
	"math"
	"slices"

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
	Global  [3]int          // items of the grid
	Local   [3]int          // items of a group; if all are 0, the runtime chooses
	Args    []Arg

	// Bound returns the largest absolute error that is allowed for each element of an output. arg
	// is the position of the output in Args. in has the data of every argument before the
	// launch, rounded to its type: one element for a Value, zeros for an Out. ref is the
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

// Verdict is the outcome of a comparison. It describes the worst element: the one whose
// error is the largest in proportion to its bound.
type Verdict struct {
	OK        bool    // no element exceeds its bound
	MaxError  float64 // absolute error of the worst element
	Tolerance float64 // its bound
	At        int     // its index
	Got, Want float64 // its result and that of the reference
	Wrong     string  // why nothing could be compared, else ""
}

// String returns the worst element as text, or the reason why nothing could be compared.
func (v Verdict) String() string {
	if v.Wrong != "" {
		return v.Wrong
	}
	return fmt.Sprintf("element %d: got %v, want %v ± %.3g", v.At, v.Got, v.Want, v.Tolerance)
}

// Compare judges output arg: got is the result of a device, ref that of the reference, and in is
// as for Bound. It compares numbers, which is enough for all types but 64-bit integers above
// 2^53, for which the caller compares bytes. If Bound does not return a number of 0 or more
// for each element, the verdict is not OK, whatever the result is.
func (c *Case) Compare(arg int, in [][]float64, ref, got []float64) Verdict {
	if len(ref) != len(got) {
		return wrongVerdict("%d elements where the reference has %d", len(got), len(ref))
	}
	var bound []float64
	if c.Bound != nil {
		bound = c.Bound(arg, in, ref)
	}
	if bound != nil && len(bound) != len(ref) {
		return wrongVerdict("the case bounds %d elements of %d", len(bound), len(ref))
	}
	worst, v := -1.0, Verdict{OK: true}
	for i := range ref {
		b := 0.0
		if bound != nil {
			b = bound[i]
		}
		if !(b >= 0) {
			return wrongVerdict("the case bounds element %d by %v, which is not 0 or more", i, b)
		}
		err := difference(ref[i], got[i], b)
		score := err / b
		switch {
		case err == 0 || math.IsInf(b, 1):
			score = 0
		case b == 0 || score != score:
			score = math.Inf(1)
		}
		if score > worst {
			worst = score
			v = Verdict{OK: score <= 1, MaxError: err, Tolerance: b, At: i, Got: got[i], Want: ref[i]}
		}
	}
	return v
}

// wrongVerdict returns the verdict on a result that cannot be compared.
func wrongVerdict(format string, args ...any) Verdict {
	return Verdict{MaxError: math.Inf(1), Wrong: fmt.Sprintf(format, args...)}
}

// difference returns |got - ref|. Two NaNs are equal, and so are two equal infinities; their
// difference from any other number is infinite. If the bound is 0, zeros of different signs differ.
func difference(ref, got, bound float64) float64 {
	switch {
	case ref != ref && got != got:
		return 0
	case ref == got:
		if bound == 0 && ref == 0 && math.Signbit(ref) != math.Signbit(got) {
			return math.SmallestNonzeroFloat64
		}
		return 0
	case ref != ref || got != got || math.IsInf(ref, 0) || math.IsInf(got, 0):
		return math.Inf(1)
	}
	return math.Abs(got - ref)
}

// Case returns a case of one of the family's kernels with its names, the definition T if the
// family has it, and the features that a device needs for that type. The caller adds the
// grid, the arguments and the bound.
func (f *Family) Case(kernel, dtype, shape string) Case {
	c := Case{Family: f.ID, Kernel: kernel, DType: dtype, Shape: shape}
	if slices.Contains(f.Defines, "T") {
		c.Defines = []source.Define{{Name: "T", Value: dtype}}
	}
	c.need(dtype)
	return c
}

func (c *Case) need(dtype string) { c.Needs.FP64 = c.Needs.FP64 || dtype == "f64" }

// with adds arguments and returns the case.
func (c Case) with(global, local [3]int, args ...Arg) Case {
	c.Global, c.Local, c.Args = global, local, args
	return c
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
