package kernels

// Functions that the references share. A reference reads every element as a float64 (or, if it
// is an integer, exactly), computes in float64, and rounds once when it writes. It is
// correct rather than fast.

import (
	"math"
	"math/big"

	"gonum.org/v1/gonum/floats"

	"github.com/concord-compute/concord/runtime/half"
	"github.com/concord-compute/concord/source"
)

// Get returns a function that reads element at of buffer argument i as a float64. typ is the
// floating type of the elements: f32, f64, f16 or bf16.
func (c *Call) Get(i int, typ string) func(at int) float64 {
	switch typ {
	case "f32":
		p := c.F32(i)
		return func(at int) float64 { return float64(p[at]) }
	case "f64":
		p := c.F64(i)
		return func(at int) float64 { return p[at] }
	case "f16":
		p := c.U16(i)
		return func(at int) float64 { return half.Float16(p[at]).Float64() }
	case "bf16":
		p := c.U16(i)
		return func(at int) float64 { return half.BFloat16(p[at]).Float64() }
	}
	c.Fail(i, "%s is not a floating type", typ)
	return nil
}

// Set returns a function that writes x to element at of buffer argument i, rounded once, to
// nearest even. typ is the floating type of the elements: f32, f64, f16 or bf16.
func (c *Call) Set(i int, typ string) func(at int, x float64) {
	switch typ {
	case "f32":
		p := c.F32(i)
		return func(at int, x float64) { p[at] = float32(x) }
	case "f64":
		p := c.F64(i)
		return func(at int, x float64) { p[at] = x }
	case "f16":
		p := c.U16(i)
		return func(at int, x float64) { p[at] = uint16(half.ToFloat16(x)) }
	case "bf16":
		p := c.U16(i)
		return func(at int, x float64) { p[at] = uint16(half.ToBFloat16(x)) }
	}
	c.Fail(i, "%s is not a floating type", typ)
	return nil
}

// refRead returns n elements of a buffer of floating type: those at at, at + stride and so on.
func refRead(get func(int) float64, at, n, stride int) []float64 {
	x := make([]float64, n)
	for j := range x {
		x[j] = get(at + j*stride)
	}
	return x
}

// refGetInt returns a function that reads one element of an integer type exactly.
func refGetInt(c *Call, i int, typ string) func(at int) *big.Int {
	size := SizeOf(typ)
	get := refGetBits(c, i, size)
	signed := typ[0] == 'i'
	return func(at int) *big.Int {
		x := new(big.Int).SetUint64(get(at))
		if signed && x.Bit(8*size-1) == 1 {
			x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
		}
		return x
	}
}

// refSetInt returns a function that writes one element of an integer type, modulo 2^bits.
func refSetInt(c *Call, i int, typ string) func(at int, x *big.Int) {
	size := SizeOf(typ)
	set := refSetBits(c, i, size)
	mask := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(8*size)), big.NewInt(1))
	return func(at int, x *big.Int) { set(at, new(big.Int).And(x, mask).Uint64()) }
}

// refGetBits returns a function that reads the bits of one element of size bytes, little-endian.
func refGetBits(c *Call, i, size int) func(at int) uint64 {
	b := c.Bytes(i)
	return func(at int) (x uint64) {
		for j, v := range b[at*size : at*size+size] {
			x |= uint64(v) << (8 * j)
		}
		return x
	}
}

func refSetBits(c *Call, i, size int) func(at int, x uint64) {
	b := c.Bytes(i)
	return func(at int, x uint64) {
		for j := range size {
			b[at*size+j] = byte(x >> (8 * j))
		}
	}
}

// refRound rounds an integer to a floating type with a significand of that many bits.
func refRound(x *big.Int, digits uint) float64 {
	f, _ := new(big.Float).SetPrec(digits).SetMode(big.ToNearestEven).SetInt(x).Float64()
	return f
}

// refDigits returns the number of bits in the significand of a floating type.
func refDigits(typ string) uint {
	return map[string]uint{"f32": 24, "f64": 53, "f16": 11, "bf16": 8}[typ]
}

// refClamp returns the number of an integer type that is nearest to x.
func refClamp(x *big.Int, typ string) *big.Int {
	bits := uint(8 * SizeOf(typ))
	lo, hi := new(big.Int), new(big.Int).Lsh(big.NewInt(1), bits)
	if typ[0] == 'i' {
		hi.Rsh(hi, 1)
		lo.Neg(hi)
	}
	hi.Sub(hi, big.NewInt(1))
	switch {
	case x.Cmp(lo) < 0:
		return lo
	case x.Cmp(hi) > 0:
		return hi
	}
	return x
}

// refScalarInt returns an integer argument exactly.
func refScalarInt(c *Call, i int) *big.Int {
	v := c.Int(i)
	if c.Params[i].Kind == source.ULong {
		return new(big.Int).SetUint64(uint64(v))
	}
	return big.NewInt(v)
}

// finite reports whether no number is NaN or infinite.
func finite(lists ...[]float64) bool {
	for _, x := range lists {
		for _, v := range x {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return false
			}
		}
	}
	return true
}

func refWrite(set func(int, float64), x []float64) {
	for i, v := range x {
		set(i, v)
	}
}

// refSum returns a compensated sum, which is accurate to the last place whatever the length.
func refSum(x []float64) float64 {
	if !finite(x) {
		return floats.Sum(x) // with compensation a sum of infinities would be NaN
	}
	return floats.SumCompensated(x)
}

func refMax(x []float64) float64 {
	switch {
	case len(x) == 0:
		return math.Inf(-1)
	case floats.HasNaN(x):
		return math.NaN()
	}
	return floats.Max(x)
}
