package kernels

// The comparison of the results of a kernel with those of a reference, and numbers as elements in memory.

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/concord-compute/concord/runtime/half"
)

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

// Judge compares elements of a type, such as "f32" or "bf16", as they lie in memory: got is a result, want that of a
// reference. bound has the largest absolute error that is allowed for each element, in the unit of the
// elements; an infinite one allows any error. If bound is nil, all are 0.
//
// Two NaNs are equal whatever their bits, and so are two equal infinities; from any other number both differ by
// an infinite error. Zeros of different signs differ if the bound is 0. Integers of 64 bits are compared
// exactly, though Got and Want may be rounded. If bound does not have a number of 0 or more for each element,
// or the lengths differ, the verdict is not OK, whatever the result is. A name that is not an element type is a
// mistake of the caller, for which Judge panics.
func Judge(typ string, want, got []byte, bound []float64) Verdict {
	size := elementSize(typ)
	n := len(want) / size
	switch {
	case len(want) != len(got):
		return wrongVerdict("%d elements where the reference has %d", len(got)/size, n)
	case bound != nil && len(bound) != n:
		return wrongVerdict("there are bounds for %d elements of %d", len(bound), n)
	}
	ref, out := Decode(typ, want), Decode(typ, got)
	worst, v := -1.0, Verdict{OK: true}
	for i := range ref {
		b := 0.0
		if bound != nil {
			b = bound[i]
		}
		if !(b >= 0) {
			return wrongVerdict("the bound of element %d is %v, which is not 0 or more", i, b)
		}
		err := difference(ref[i], out[i], b)
		if typ == "i64" || typ == "u64" { // float64 cannot hold every value of these
			err = separation(binary.LittleEndian.Uint64(want[8*i:]), binary.LittleEndian.Uint64(got[8*i:]), typ == "i64")
		}
		score := err / b
		switch {
		case err == 0 || math.IsInf(b, 1):
			score = 0
		case b == 0 || score != score:
			score = math.Inf(1)
		}
		if score > worst {
			worst = score
			v = Verdict{OK: score <= 1, MaxError: err, Tolerance: b, At: i, Got: out[i], Want: ref[i]}
		}
	}
	return v
}

// wrongVerdict returns the verdict on a result that cannot be compared.
func wrongVerdict(format string, args ...any) Verdict {
	return Verdict{MaxError: math.Inf(1), Wrong: fmt.Sprintf(format, args...)}
}

// difference returns |got - ref| as [Judge] defines it.
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

// separation returns the difference of two integers of 64 bits, rounded only after the subtraction.
func separation(a, b uint64, signed bool) float64 {
	if signed { // moves the smallest number to 0 and keeps the order
		a, b = a^1<<63, b^1<<63
	}
	return float64(max(a, b) - min(a, b))
}

// Judge judges a launch of the case: [Judge] of each output, with the case's Bound. want and got have an entry
// for each argument: the bytes of an Out or InOut buffer after the launch, on the reference and on a device;
// other entries are not read. Judge returns the verdict on the first output that is not OK, or else on the one
// whose worst element is nearest to its bound, and the position of that output in Args. If the case has no
// output, the verdict is not OK. Judge calls Fill of the arguments if there is a bound, and changes nothing.
func (c *Case) Judge(want, got [][]byte) (arg int, v Verdict) {
	arg, v = -1, wrongVerdict("the case has no Out or InOut argument, so that there is nothing to compare")
	var in [][]float64
	if c.Bound != nil {
		in = c.Inputs()
	}
	worst := 0.0 // error as a share of what is allowed; 0/0 compares false and changes nothing
	for i := range c.Args {
		a := &c.Args[i]
		if a.Dir != Out && a.Dir != InOut {
			continue
		}
		var bound []float64
		if c.Bound != nil {
			bound = c.Bound(i, in, Decode(a.Type, want[i]))
		}
		w := Judge(a.Type, want[i], got[i], bound)
		if !w.OK {
			return i, w
		}
		if arg < 0 {
			arg, v = i, Verdict{OK: true}
		}
		if share := w.MaxError / w.Tolerance; share >= worst {
			arg, v, worst = i, w, share
		}
	}
	return arg, v
}

// Inputs returns the numbers of every argument before the launch, as Bound takes them: rounded to its type, one for a
// Value, zeros for an Out, nil for a struct. The slices are the caller's.
func (c *Case) Inputs() [][]float64 {
	in := make([][]float64, len(c.Args))
	for i := range c.Args {
		switch a := &c.Args[i]; {
		case a.Bytes != nil:
		case a.Dir == Out:
			in[i] = make([]float64, a.Len)
		default:
			in[i] = Decode(a.Type, Encode(a.Type, a.Data()))
		}
	}
	return in
}

// elementSize is SizeOf for a type that has to be one.
func elementSize(typ string) int {
	if !slices.Contains(allTypes, typ) {
		panic(fmt.Sprintf("kernels: %q is not an element type", typ))
	}
	return SizeOf(typ)
}

// Encode returns numbers as elements of a type in memory, little-endian. Floating types round to nearest even.
// Numbers for an integer type have to be whole and in its range. It panics if typ is not an element type.
func Encode(typ string, numbers []float64) []byte {
	size := elementSize(typ)
	b := make([]byte, 0, len(numbers)*size)
	for _, x := range numbers {
		var bits uint64
		switch {
		case typ == "f32":
			bits = uint64(math.Float32bits(float32(x)))
		case typ == "f64":
			bits = math.Float64bits(x)
		case typ == "f16":
			bits = uint64(half.ToFloat16(x))
		case typ == "bf16":
			bits = uint64(half.ToBFloat16(x))
		case x < 0:
			bits = uint64(int64(x))
		default:
			bits = uint64(x)
		}
		for i := range size {
			b = append(b, byte(bits>>(8*i)))
		}
	}
	return b
}

// Decode returns the numbers of elements of a type in memory, little-endian. Integers of 64 bits are rounded to
// nearest even, which all other types do not need. Bytes after the last whole element are ignored. It panics if
// typ is not an element type.
func Decode(typ string, b []byte) []float64 {
	size := elementSize(typ)
	numbers := make([]float64, len(b)/size)
	switch typ { // most launches have these
	case "f32":
		for i := range numbers {
			numbers[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		}
		return numbers
	case "f64":
		for i := range numbers {
			numbers[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
		return numbers
	}
	for i := range numbers {
		var bits uint64
		for j, v := range b[i*size : (i+1)*size] {
			bits |= uint64(v) << (8 * j)
		}
		switch {
		case typ == "f16":
			numbers[i] = half.Float16(bits).Float64()
		case typ == "bf16":
			numbers[i] = half.BFloat16(bits).Float64()
		case typ[0] == 'i':
			numbers[i] = float64(int64(bits<<(64-8*size)) >> (64 - 8*size))
		default:
			numbers[i] = float64(bits)
		}
	}
	return numbers
}
