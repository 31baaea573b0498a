package cpu

// Elementwise arithmetic, saxpy and the activations in vector instructions.

import (
	"math"
	"strings"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

// opAxpy is the number of a·x + y in csrc/cpu, after those of add, sub, mul and div.
const opAxpy = 4

func init() {
	for code, op := range []string{"add", "sub", "mul", "div"} {
		names := []string{op, op + "_scalar"}
		if op == "sub" || op == "div" { // the other operations are commutative
			names = append(names, "scalar_"+op)
		}
		for _, name := range names {
			vector("arith", name, func(u *source.Unit) goFunc { return bindArith(u, name, uint64(code)) })
		}
		vector("arith", op+"_broadcast", func(u *source.Unit) goFunc { return bindBroadcast(u, uint64(code)) })
	}
	vector("saxpy", "saxpy", bindSaxpy)
	// In the order of csrc/cpu/elements.h.
	for which, name := range []string{"relu", "sigmoid", "swish", "gelu_tanh", "tanh_act", "gelu"} {
		vector("activation", name, func(u *source.Unit) goFunc { return bindActivation(u, uint64(which)) })
	}
}

// number returns the bits of a scalar argument as the C functions expect them.
func (c *call) number(i int, typ uint64) uint64 {
	if kernels.IsFloat(simdTypes[typ]) {
		return math.Float64bits(c.Float(i))
	}
	return uint64(c.Int(i))
}

func bindArith(u *source.Unit, name string, code uint64) goFunc {
	typ := typeNumber(u, "T")
	size := typeSize(typ)
	if code == 3 && !kernels.IsFloat(simdTypes[typ]) {
		return nil
	}
	scalar := [2]bool{strings.HasPrefix(name, "scalar_"), strings.HasSuffix(name, "_scalar")}
	part := func(c *call, lo, hi int) {
		var at, value [2]uint64
		for k := range at {
			if scalar[k] {
				value[k] = c.number(k, typ)
			} else {
				at[k] = c.at(k) + uint64(lo*size)
			}
		}
		past := flag(overflows(int(c.Int(3)) * size))
		c.device.simd.run(simd.Arith, typ, code, uint64(hi-lo), c.at(2)+uint64(lo*size), at[0], at[1], value[0], value[1],
			past)
	}
	return func(c *call) error { return c.spread(int(c.Int(3)), 3*size, part) }
}

// bindSaxpy returns the function for y = a·x + y.
func bindSaxpy(u *source.Unit) goFunc {
	typ := typeNumber(u, "T")
	size := typeSize(typ)
	part := func(c *call, lo, hi int) {
		x, y := c.at(1)+uint64(lo*size), c.at(2)+uint64(lo*size)
		c.device.simd.run(simd.Arith, typ, opAxpy, uint64(hi-lo), y, x, 0, c.number(0, typ), 0, 0)
	}
	return func(c *call) error { return c.spread(int(c.Int(3)), 3*size, part) }
}

func bindActivation(u *source.Unit, which uint64) goFunc {
	typ := typeNumber(u, "T")
	size := typeSize(typ)
	part := func(c *call, lo, hi int) {
		in, out, past := c.at(0)+uint64(lo*size), c.at(1)+uint64(lo*size), flag(overflows(int(c.Int(2))*size))
		c.device.simd.run(simd.Activation, typ, which, uint64(hi-lo), in, out, past)
	}
	return func(c *call) error { return c.spread(int(c.Int(2)), 4*size, part) }
}

// bindBroadcast returns a function that computes row by row along the last dimension, after it has
// merged neighbouring dimensions that both operands traverse with one stride.
func bindBroadcast(u *source.Unit, code uint64) goFunc {
	typ := typeNumber(u, "T")
	size := typeSize(typ)
	if code == 3 && !kernels.IsFloat(simdTypes[typ]) {
		return nil
	}
	return func(c *call) error {
		var v [12]int
		for j := range v {
			v[j] = int(c.Int(3 + j))
		}
		d, strides := [4]int(v[:4]), [2][4]int{[4]int(v[4:8]), [4]int(v[8:])}
		n, at, out := d[0]*d[1]*d[2]*d[3], [2]uint64{c.at(0), c.at(1)}, c.at(2)
		d = coalesce(d, &strides)
		past, set := flag(overflows(n*size) && d[3]*size >= 4096), c.device.simd
		block := func(first, count, n int, out, a, b uint64) {
			w := [19]uint64{typ, code, uint64(first), uint64(count), out, a, b, uint64(d[1]), uint64(d[2]), uint64(n)}
			for k, s := range strides {
				for j := range s {
					w[10+4*k+j] = uint64(s[j])
				}
			}
			w[18] = past
			set.run(simd.Broadcast, w[:]...)
		}
		rows := d[0] * d[1] * d[2]
		const long = 1 << 15
		if d[3] < 2*long {
			return c.spread(rows, 3*size*d[3], func(_ *call, lo, hi int) { block(lo, hi-lo, d[3], out, at[0], at[1]) })
		}
		parts := (d[3] + long - 1) / long
		return c.spread(rows*parts, 3*size*long, func(_ *call, lo, hi int) {
			for p := lo; p < hi; p++ {
				row, j := p/parts, p%parts*long
				where := at
				for k, s := range strides {
					i := row/(d[1]*d[2])*s[0] + row/d[2]%d[1]*s[1] + row%d[2]*s[2] + j*s[3]
					where[k] += uint64(i * size)
				}
				block(0, 1, min(long, d[3]-j), out+uint64((row*d[3]+j)*size), where[0], where[1])
			}
		})
	}
}

// coalesce merges neighbouring dimensions, beginning with the last, and moves the remaining ones to
// the end.
func coalesce(d [4]int, s *[2][4]int) [4]int {
	to := 3
	for j := 2; j >= 0; j-- {
		switch {
		case d[j] == 1:
		case d[to] == 1, s[0][j] == s[0][to]*d[to] && s[1][j] == s[1][to]*d[to]:
			if d[to] == 1 {
				s[0][to], s[1][to] = s[0][j], s[1][j]
			}
			d[to] *= d[j]
		default:
			to--
			d[to], s[0][to], s[1][to] = d[j], s[0][j], s[1][j]
		}
	}
	for to--; to >= 0; to-- {
		d[to], s[0][to], s[1][to] = 1, 0, 0
	}
	return d
}
