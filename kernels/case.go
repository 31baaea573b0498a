package kernels

// What parity runs: one launch with its data, and the error that is allowed.

import (
	"fmt"
	"math"
	"slices"

	"github.com/concord-compute/concord/source"
)

// Case is one launch to be run on a device and on the reference.
type Case struct {
	Family  string
	Kernel  string
	DType   string // "f32"; of cast "f32-i8"
	Shape   string // for people: "n=257", "3×1000×2 special values"
	Defines []source.Define
	Needs   source.Features // what the device must have, or the case is skipped
	Global  [3]int
	Local   [3]int // zeros: the runtime chooses
	Args    []Arg

	// Bound gives the largest absolute error of each element of an output. arg is
	// that output's position in Args; in has the data of every argument before the
	// launch, rounded to its type (a value argument has one element); ref is the
	// reference's result. nil, or a nil result: equal, bit for bit save for NaN.
	Bound     func(arg int, in [][]float64, ref []float64) []float64
	Tolerance string // Bound as a formula; ε is the unit roundoff of the arithmetic
	Why       string // the reason for it
}

// Dir is what a kernel does with an argument.
type Dir uint8

// The directions. Of Out the contents before the launch are undefined, and the
// kernel writes every element.
const (
	In Dir = iota
	Out
	InOut
	Value
)

// Arg is one argument of a case.
type Arg struct {
	Dir  Dir
	Type string  // "f32", "bf16", "u8"
	Len  int     // elements of a buffer
	V    float64 // of a Value that is a number

	// Bytes is a Value that is a struct, as it lies in memory; Type is empty then.
	Bytes []byte

	// Fill gives the Len numbers that an In or InOut buffer holds, the same at every call.
	Fill func() []float64
}

// Data returns what an In or InOut buffer holds before it is rounded to its type
// (to nearest even; integers are exact already), the same at every call. Of Out
// it returns nil, of a Value its one number.
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

// Name is "gemm/gemm f16 m=1 n=2 k=3": unique in the catalog.
func (c *Case) Name() string { return c.Family + "/" + c.Kernel + " " + c.DType + " " + c.Shape }

// Verdict is the outcome of a comparison. MaxError and Tolerance are those of the
// element that is nearest to its bound or furthest beyond it.
type Verdict struct {
	OK        bool
	MaxError  float64
	Tolerance float64
	At        int // that element
	Got, Want float64
	Wrong     string // why nothing could be compared, else ""
}

// String names the worst element, or says why nothing could be compared.
func (v Verdict) String() string {
	if v.Wrong != "" {
		return v.Wrong
	}
	return fmt.Sprintf("element %d: got %v, want %v ± %.3g", v.At, v.Got, v.Want, v.Tolerance)
}

// Compare judges one output. got and ref are compared as numbers, which is enough
// for all types but 64-bit integers above 2^53: of those the bytes must be equal. A Bound
// that does not give each element a number of 0 or more fails whatever the result is: it
// would accept anything.
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

// wrongVerdict is the verdict on what cannot be compared.
func wrongVerdict(format string, args ...any) Verdict {
	return Verdict{MaxError: math.Inf(1), Wrong: fmt.Sprintf(format, args...)}
}

// difference is |got - ref|. NaN differs only from numbers, and an infinity from
// everything else. Where the answer must be equal, so must the sign of zero.
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

// Case starts a case of one of the family's kernels: its names, the definition T where the
// family has it, and what a device needs for that type. The grid, the arguments and the
// bound are the caller's to add.
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

// exact states that the result is equal to the reference's.
func (c Case) exact(why string) Case {
	c.Tolerance, c.Why = "equal", why
	return c
}

// within states a bound.
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

// out is a result of n elements. One of none is given an element that must stay as
// it is, since there are no empty buffers.
func out(typ string, n int) Arg {
	if n == 0 {
		return inout(typ, 1, constant(1, 77))
	}
	return Arg{Dir: Out, Type: typ, Len: n}
}

func value(typ string, v float64) Arg { return Arg{Dir: Value, Type: typ, V: v} }
func uintArg(v int) Arg               { return value("u32", float64(v)) }
func ulongArg(v int) Arg              { return value("u64", float64(v)) }
