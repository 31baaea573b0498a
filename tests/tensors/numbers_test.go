package tensors

// Numbers of the interpreter: exact integers, and floating-point numbers with a bound of the error that a
// device may make.

import (
	"math"

	"github.com/concord-compute/concord/tensor"
)

// num is one element. Floating-point numbers are f, of which a device's result differs by at most e; integers
// and truths are i, with the bits of an unsigned one. An e of +Inf says that nothing is known.
type num struct {
	f, e float64
	i    int64
}

var unknown = num{e: math.Inf(1)}

func (x num) known() bool { return !math.IsInf(x.e, 1) }

// format describes a floating-point type: half of the distance of 1 to the next number, the smallest distance
// of numbers, and the largest number.
type format struct{ unit, tiny, most float64 }

var formats = map[tensor.Type]format{
	tensor.F64:  {0x1p-53, 1e-300, 1e300},
	tensor.F32:  {0x1p-24, 1e-37, 1e38},
	tensor.F16:  {0x1p-11, 1e-4 * 0x1p-10, 6e4},
	tensor.BF16: {0x1p-8, 1e-37, 1e38},
}

// float returns a result of type t. The interpreter and the device each round a few times, and half and
// bfloat16 are rounded to their type only where they are stored, which differs between ways to compute the
// same; rounds counts roundings.
func float(t tensor.Type, f, e, rounds float64) num {
	how := formats[t]
	e += rounds*how.unit*math.Abs(f) + how.tiny
	if t == tensor.F16 || t == tensor.BF16 {
		e += rounds * 16 * formats[tensor.F32].unit * math.Abs(f)
	}
	if math.IsNaN(f) || math.IsNaN(e) || math.Abs(f)+e > how.most {
		return unknown
	}
	return num{f: f, e: e}
}

// ends returns the smallest and the largest number of an integer type.
func ends(t tensor.Type) (lo int64, hi uint64) {
	n := uint(8 * t.Size())
	if signed(t) {
		return -1 << (n - 1), 1<<(n-1) - 1
	}
	return 0, math.MaxUint64 >> (64 - n)
}

func signed(t tensor.Type) bool {
	return t == tensor.I8 || t == tensor.I16 || t == tensor.I32 || t == tensor.I64
}

func unsigned(t tensor.Type) bool {
	return t == tensor.U8 || t == tensor.U16 || t == tensor.U32 || t == tensor.U64
}

func isInteger(t tensor.Type) bool { return signed(t) || unsigned(t) }

// wrapped returns the low bits of x as a number of t.
func wrapped(t tensor.Type, x int64) num {
	n := uint(64 - 8*t.Size())
	if signed(t) {
		return num{i: x << n >> n}
	}
	return num{i: int64(uint64(x) << n >> n)}
}

func truth(b bool) num {
	if b {
		return num{i: 1}
	}
	return num{}
}

// asFloat returns an element as the nearest float64.
func asFloat(t tensor.Type, x num) float64 {
	switch {
	case tensor.IsFloat(t):
		return x.f
	case t == tensor.U64:
		return float64(uint64(x.i))
	}
	return float64(x.i)
}

// cast converts an element.
func cast(from, to tensor.Type, x num) num {
	switch {
	case from == to || !x.known():
		return x
	case to == tensor.Bool && tensor.IsFloat(from):
		if x.e > 0 && math.Abs(x.f) <= x.e {
			return unknown
		}
		return truth(x.f != 0)
	case to == tensor.Bool:
		return truth(x.i != 0)
	case tensor.IsFloat(to):
		f := asFloat(from, x)
		if narrower(f, to) == f && (!tensor.IsFloat(from) || x.e == 0) &&
			(from != tensor.I64 && from != tensor.U64 || math.Abs(f) < 1<<53) {
			return num{f: f}
		}
		return float(to, f, x.e, 2)
	case tensor.IsFloat(from):
		lo, hi := clipped(to, x.f-x.e), clipped(to, x.f+x.e)
		if lo != hi {
			return unknown
		}
		return num{i: lo}
	}
	lo, hi := ends(to)
	if !unsigned(from) && x.i < 0 {
		return num{i: max(x.i, lo)}
	}
	return num{i: int64(min(uint64(x.i), hi))}
}

// narrower returns f as a number of t, or NaN if it is none.
func narrower(f float64, t tensor.Type) float64 {
	digits := map[tensor.Type]int{tensor.F64: 53, tensor.F32: 24, tensor.F16: 11, tensor.BF16: 8}[t]
	m, exp := math.Frexp(f)
	if m = math.Ldexp(m, digits); m != math.Trunc(m) || exp > 15 || exp < -10 && f != 0 {
		return math.NaN()
	}
	return f
}

// clipped returns the whole part of f, or the nearest number of t.
func clipped(t tensor.Type, f float64) int64 {
	lo, hi := ends(t)
	switch {
	case f <= float64(lo):
		return lo
	case f >= float64(hi):
		return int64(hi)
	case f >= 1<<63:
		return int64(uint64(f))
	}
	return int64(f)
}

// promoted returns the type of arithmetic on two types: the smallest that holds the numbers of both.
func promoted(a, b tensor.Type) tensor.Type {
	rank := map[tensor.Type]int{tensor.Bool: 0, tensor.U8: 1, tensor.U16: 2, tensor.U32: 4, tensor.U64: 8, tensor.I8: 1,
		tensor.I16: 2, tensor.I32: 4, tensor.I64: 8,
		tensor.F16: 2, tensor.BF16: 2, tensor.F32: 4, tensor.F64: 8}
	if a == b || b == tensor.Bool {
		return a
	}
	if a == tensor.Bool {
		return b
	}
	if tensor.IsFloat(b) && !tensor.IsFloat(a) || unsigned(a) && signed(b) {
		a, b = b, a
	}
	larger := a
	if rank[b] > rank[a] {
		larger = b
	}
	switch {
	case tensor.IsFloat(a) && tensor.IsFloat(b):
		if rank[a] == rank[b] {
			return tensor.F32
		}
		return larger
	case tensor.IsFloat(a): // b is an integer
		switch {
		case rank[b] == 1:
			return a
		case rank[b] == 2 && rank[a] == 2:
			return tensor.F32
		case rank[b] == 2:
			return a
		}
		return tensor.F64
	case signed(a) && unsigned(b):
		for _, t := range []tensor.Type{tensor.I16, tensor.I32, tensor.I64} {
			if rank[t] > rank[b] && rank[t] >= rank[a] {
				return t
			}
		}
		return tensor.F64
	}
	return larger
}

// through returns f of numbers with errors: f has its largest distance at a corner, for functions that change
// evenly in the range of the errors.
func through(t tensor.Type, rounds float64, f func(x []float64) float64, args ...num) num {
	at := make([]float64, len(args))
	exact := true
	for i, a := range args {
		if !a.known() {
			return unknown
		}
		at[i] = a.f
		exact = exact && a.e == 0
	}
	y, far := f(at), 0.0
	if !exact {
		for corner := range 1 << len(args) {
			for i, a := range args {
				at[i] = a.f - a.e
				if corner>>i&1 == 1 {
					at[i] = a.f + a.e
				}
			}
			d := math.Abs(f(at) - y)
			if math.IsNaN(d) {
				return unknown
			}
			far = max(far, d)
		}
	}
	if exact && rounds == 0 && !math.IsNaN(y) {
		return num{f: y}
	}
	return float(t, y, 1.5*far, rounds)
}
