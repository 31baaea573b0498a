package kernels

// The families fill, copy and cast, which move or convert values without computing, and their cases.

import (
	"fmt"
	"math"
	"math/big"

	"github.com/concord-compute/concord/source"
)

func init() {
	outline(Family{
		ID: "fill", Doc: "every element set to a value",
		Kernels: []string{"fill"}, Types: allTypes, Defines: []string{"T"},
		Arguments: elementwise(2, 0), Reference: refFill, Bound: exactly, Rows: elementRows(2, 0),
		Cases: func(f *Family) (list []Case) {
			for _, t := range f.Types {
				values := []float64{0, 77}
				if IsFloat(t) {
					values = []float64{math.Copysign(0, -1), 0.1, 1e30, math.Inf(-1), math.NaN()}
				}
				for i, v := range values {
					if scalarOf(t) == "f32" {
						v = float64(float32(v))
					}
					for _, n := range sizesFor(t) {
						if i != 1 && n != 257 {
							continue
						}
						list = append(list, f.Case("fill", t, fmt.Sprintf("n=%d value=%g", n, v), n).
							with(out(t, n), value(scalarOf(t), v), ulongArg(n)).
							exact("the value is rounded once, to nearest even"))
					}
				}
			}
			return list
		},
	})
}

func init() {
	outline(Family{
		ID: "copy", Doc: "out[i] = in[i], bit for bit",
		Kernels: []string{"copy"}, Types: allTypes, Defines: []string{"T"},
		Arguments: elementwise(2, 0, 1), Reference: refCopy, Bound: exactly, Rows: elementRows(2, 0, 1),
		Cases: func(f *Family) (list []Case) {
			add := func(t, shape string, n int, data func() []float64) {
				list = append(list, f.Case("copy", t, shape, n).
					with(in(t, n, data), out(t, n), ulongArg(n)).exact("bits are moved"))
			}
			for _, t := range f.Types {
				for _, n := range sizesFor(t) {
					add(t, fmt.Sprintf("n=%d", n), n, Uniform(t, n, 1, -1e4, 1e4))
				}
				if IsFloat(t) {
					add(t, "special values", len(Special(t)), numbers(Special(t)))
				}
			}
			return list
		},
	})
}

func init() {
	outline(Family{
		ID: "cast", Doc: "conversion between any two types: floats to nearest even, integers toward zero and saturating",
		Kernels: []string{"cast"}, Types: allTypes, Defines: []string{"FROM", "TO"},
		Arguments: castArguments, Reference: refCast, Bound: knows(castLaunch), Rows: castRows,
		Cases: castCases,
	})
}

func castCases(f *Family) (list []Case) {
	for _, from := range f.Types {
		for _, to := range f.Types {
			data := castData(from)
			list = append(list, castCase(f, from, to, "edges", len(data), numbers(data)))
			if from == "f32" && to != "f32" {
				for _, n := range []int{0, 1, 65537} {
					list = append(list, castCase(f, from, to, fmt.Sprintf("n=%d", n), n, Uniform(from, n, 3, -300, 300)))
				}
			}
		}
	}
	return list
}

func castCase(f *Family, from, to, shape string, n int, data func() []float64) Case {
	c := f.Case("cast", from+"-"+to, shape, n)
	c.need(from)
	c.need(to)
	c.Defines = []source.Define{{Name: "FROM", Value: from}, {Name: "TO", Value: to}}
	c = c.with(in(from, n, data), out(to, n), ulongArg(n))
	if !IsFloat(from) || !IsFloat(to) || from == to {
		return c.exact("every conversion rounds once, in the direction that the kernel specifies")
	}
	return c.within("0, or the smallest normal float where a denormal may be flushed", "every conversion rounds once",
		eachOf(n, func(in [][]float64, i int, r float64) float64 {
			x := in[0][i]
			if denormal("f32", r) || denormal(from, x) || (to == "f64" || from == "f64") && denormal("f32", x) {
				return 0x1p-126
			}
			return 0
		}))
}

// castData returns numbers at the limits of every target type, exact in float64: ties
// between neighbours, the ends of the integer ranges and the numbers beyond them, and numbers
// for which rounding twice and rounding once have different results.
func castData(from string) []float64 {
	var x []float64
	if !IsFloat(from) {
		lo, hi := rangeOf(from)
		for _, e := range []float64{7, 8, 9, 11, 12, 15, 16, 17, 23, 24, 25, 31, 32, 33, 40, 52, 53, 62, 63} {
			p := math.Ldexp(1, int(e))
			for _, v := range []float64{p - 1, p, p + 1, -p - 1, -p, -p + 1, p + p/256, p + p/256 + 1, -p - p/256 - 1} {
				if v >= lo && v <= hi && v == math.Trunc(v) {
					x = append(x, v)
				}
			}
		}
		return append(x, 0, 1, 2, 100, lo, hi, min(65519, hi), min(65520, hi))
	}
	for _, v := range []float64{0.5, 1.5, 2.5, 0.1, 126.5, 127, 127.5, 128, 255, 255.5, 256, 32767, 32768, 65504, 65519,
		65520, 65535, 65536, 2147483520, 2147483648, 4294967040, 4294967296, 0x1p63, 0x1p64, 0x1.fffffep62, 1e30,
		1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-23, 1 + 0x1p-8, 1 + 0x1p-8 + 0x1p-23, 1 + 0x1p-8 + 0x1p-30, 1 + 0x1p-11 + 0x1p-30,
		1 + 0x1p-24, 1 + 0x1p-24 + 0x1p-50, 0x1p-14, 0x1p-24, 0x1p-25, 0x1p-25 + 0x1p-40, 0x1.8p-24, 2147483647,
		9007199254740991} {
		x = append(x, v, -v)
	}
	return append(x, Special(from)...)
}

// refFill computes out[i] = value.
func refFill(c *Call) error {
	t, n := c.Type("T"), int(c.Int(2))
	if IsFloat(t) {
		set := c.Set(0, t)
		for i := range n {
			set(i, c.Float(1))
		}
		return nil
	}
	set := refSetInt(c, 0, t)
	for i := range n {
		set(i, refScalarInt(c, 1))
	}
	return nil
}

// refCopy computes out[i] = in[i], bit for bit.
func refCopy(c *Call) error {
	t, n := c.Type("T"), int(c.Int(2))
	get, set := refGetBits(c, 0, SizeOf(t)), refSetBits(c, 1, SizeOf(t))
	for i := range n {
		set(i, get(i))
	}
	return nil
}

func castArguments(c *Call) bool {
	n := int(c.Int(2))
	needAll(c, c.Type("FROM"), n, 0)
	needAll(c, c.Type("TO"), n, 1)
	return n > 0
}

// refCast rounds each number once: to a floating type to nearest even, to an integer type toward
// zero, saturating, with NaN becoming 0. Integers are read exactly.
func refCast(c *Call) error {
	from, to, n := c.Type("FROM"), c.Type("TO"), int(c.Int(2))
	switch {
	case IsFloat(from) && IsFloat(to):
		get, set := c.Get(0, from), c.Set(1, to)
		for i := range n {
			set(i, get(i))
		}
	case IsFloat(from):
		get, set := c.Get(0, from), refSetInt(c, 1, to)
		for i := range n {
			set(i, refClamp(refTruncate(get(i)), to))
		}
	case IsFloat(to):
		get, set := refGetInt(c, 0, from), c.Set(1, to)
		for i := range n {
			set(i, refRound(get(i), refDigits(to)))
		}
	default:
		get, set := refGetInt(c, 0, from), refSetInt(c, 1, to)
		for i := range n {
			set(i, refClamp(get(i), to))
		}
	}
	return nil
}

// refTruncate returns the integer part of x; for an infinity, a number beyond all integer types.
func refTruncate(x float64) *big.Int {
	switch {
	case math.IsNaN(x):
		return new(big.Int)
	case math.IsInf(x, 0):
		return new(big.Int).Mul(big.NewInt(int64(math.Copysign(1, x))), new(big.Int).Lsh(big.NewInt(1), 100))
	}
	i, _ := big.NewFloat(x).Int(nil)
	return i
}
