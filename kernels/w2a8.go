package kernels

// The family w2a8 and its cases: rows without elements, ties of rounding, numbers that are not finite, the
// largest sums.

import (
	"fmt"
	"math"

	"github.com/concord-compute/concord/source"
)

// W2A8Group is the number of weights of a group of the family w2a8: the length of a row is a multiple of it.
const W2A8Group = 256

func init() {
	Register(Family{
		ID: "w2a8", Doc: "activations in 8 bits, and their products with ternary weights of 2 bits",
		Kernels: []string{"quantize_rows", "w2a8"}, Defines: []string{"OUT", "GROUP"},
		Check:  oneOf(map[string][]string{"OUT": {"i32"}}),
		Source: sources, Tile: w2a8Tile, Arguments: w2a8Arguments, Work: quantizedWork, Reference: refW2A8,
		Bound: knows(w2a8Launch), Rows: w2a8Rows, Cases: w2a8Cases,
	})
}

// w2a8Tile returns the tile of results that a group of w2a8 computes; a group of quantize_rows has a row.
func w2a8Tile(u *source.Unit, kernel string) (rows, cols int) {
	if k, _ := u.Kernel(kernel); kernel == "w2a8" {
		return 4, k.ReqdLocal[0] / 8
	}
	return 0, 1
}

func w2a8Cases(f *Family) (list []Case) {
	quantize := func(note string, rows, cols, k int, x func() []float64) Case {
		return f.Case("quantize_rows", "f32", fmt.Sprintf("rows=%d cols=%d k=%d%s", rows, cols, k, note), rows).
			with(in("f32", rows*cols, x), out("i8", rows*k), out("f32", rows), out("i32", rows), uintArg(rows), uintArg(cols),
				uintArg(k)).
			exact("the scale is the nearest float, one product is rounded to float and to a whole number")
	}
	for _, s := range [][3]int{{1, 1, 256}, {0, 5, 256}, {1, 0, 256}, {2, 256, 256}, {5, 257, 512}, {7, 1000, 1024},
		{64, 31, 256}} {
		list = append(list, quantize("", s[0], s[1], s[2], Uniform("f32", s[0]*s[1], 71, -3, 3)))
	}
	list = append(list,
		quantize(" ties", 1, 256, 256, func() []float64 { // a scale of 1
			x := make([]float64, 256)
			for i := range x {
				x[i] = float64(i)/2 - 63.5
			}
			x[255] = -127
			return x
		}),
		quantize(" tiny", 2, 33, 256, Uniform("f32", 66, 72, -1e-6, 1e-6)),
		quantize(" huge", 2, 33, 256, Uniform("f32", 66, 73, -3e38, 3e38)),
		quantize(" NaN and Inf", 3, 300, 512, mixed(mixed(Uniform("f32", 900, 74, -1, 1), math.NaN(), 17), math.Inf(-1),
			899)),
		quantize("", 3, 777, 1024, Uniform("f32", 3*777, 75, -2, 2)).grouped(32))

	product := func(result, note string, m, n, k int, q, w func() []float64) Case {
		c := f.Case("w2a8", result, fmt.Sprintf("m=%d n=%d k=%d%s", m, n, k, note), m, n).
			with(in("u32", m*k/4, q), in("f32", m, Uniform("f32", m, 83, 0.5, 2)), in("i32", m, Uniform("i32", m, 84, 0, 0)),
				in("u32", n*k/16, w), in("f32", n, Uniform("f32", n, 85, -2, 2)), out(result, m*n), uintArg(m), uintArg(n),
				uintArg(k))
		if result == "i32" {
			return c.define("OUT", "i32").exact("integers wrap modulo 2^32")
		}
		return c.within("9ε·|y|", "the sum is exact; it is rounded to float, divided (2.5 ulp = 5ε) and multiplied, and "+
			"the reference rounds once",
			relative("f32", 9, nil))
	}
	for _, s := range [][3]int{{1, 1, 256}, {0, 3, 256}, {2, 0, 256}, {2, 3, 0}, {1, 64, 512}, {4, 8, 256}, {5, 9, 768},
		{7, 33, 1024}, {13, 7, 256}, {33, 20, 2560}, {1, 257, 4096}} {
		m, n, k := s[0], s[1], s[2]
		q, w := Uniform("u32", m*k/4, 81, 0, 0), Uniform("u32", n*k/16, 82, 0, 0)
		list = append(list, product("i32", "", m, n, k, q, w), product("f32", "", m, n, k, q, w))
	}
	list = append(list, product("i32", "", 6, 21, 1280, Uniform("u32", 6*320, 81, 0, 0),
		Uniform("u32", 21*80, 82, 0, 0)).grouped(32))
	bits := func(n int, v uint32) func() []float64 { return constant(n, float64(v)) }
	return append(list,
		product("i32", " all -128 and +1", 7, 6, 65536, bits(7*16384, 0x80808080), bits(6*4096, 0xaaaaaaaa)),
		product("i32", " all 127 and +1", 2, 9, 2560, bits(2*640, 0x7f7f7f7f), bits(9*160, 0xaaaaaaaa)),
		product("i32", " codes that are no weight", 3, 5, 512, bits(3*128, 0x80808080), bits(5*32, 0xffffffff)))
}

func w2a8Arguments(c *Call) bool {
	if c.Kernel == "quantize_rows" {
		rows, cols, k := int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
		if rows == 0 {
			return false
		}
		if k < cols {
			c.Fail(6, "rows of %d bytes for %d elements", k, cols)
		}
		needAll(c, "f32", c.Product(rows, cols), 0)
		needAll(c, "i8", c.Product(rows, k), 1)
		needAll(c, "f32", rows, 2)
		needAll(c, "i32", rows, 3)
		return true
	}
	m, n, k := int(c.Int(6)), int(c.Int(7)), int(c.Int(8))
	if m == 0 || n == 0 {
		return false
	}
	if k%W2A8Group != 0 {
		c.Fail(8, "rows of %d weights are not a multiple of %d", k, W2A8Group)
	}
	needAll(c, "u32", c.Product(m, k/4), 0)
	needAll(c, "f32", m, 1)
	needAll(c, "i32", m, 2)
	needAll(c, "u32", c.Product(n, k/16), 3)
	needAll(c, "f32", n, 4)
	needAll(c, c.Type("OUT"), c.Product(m, n), 5)
	return true
}

func refW2A8(c *Call) error {
	if c.Kernel == "quantize_rows" {
		return refQuantizeRows(c)
	}
	m, n, k := int(c.Int(6)), int(c.Int(7)), int(c.Int(8))
	q, scales, sums, w, by := c.Bytes(0), c.F32(1), c.I32(2), c.Bytes(3), c.F32(4)
	whole := c.Type("OUT") == "i32"
	for i := range m {
		for j := range n {
			sum := -int64(sums[i]) // does not overflow for any k, which has 32 bits
			for p := range k {
				b := w[(j*k+p/256*256)/4+p%64]
				sum += int64(b>>(p%256/64*2)&3) * int64(int8(q[i*k+p]))
			}
			if whole {
				c.I32(5)[i*n+j] = int32(sum)
			} else {
				c.F32(5)[i*n+j] = float32(float64(int32(sum)) / float64(scales[i]) * float64(by[j]))
			}
		}
	}
	return nil
}

func refQuantizeRows(c *Call) error {
	rows, cols, k := int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
	x, q, scales, sums := c.F32(0), c.I8(1), c.F32(2), c.I32(3)
	for i := range rows {
		most, good := float32(1e-5), true
		for _, v := range x[i*cols : (i+1)*cols] {
			good = good && v-v == 0
			most = max(most, v, -v)
		}
		scales[i], sums[i] = 127/most, 0
		if !good {
			scales[i] = float32(math.NaN())
		}
		for j := range k {
			v := 0.0
			if good && j < cols {
				v = min(max(math.RoundToEven(float64(x[i*cols+j]*scales[i])), -128), 127)
			}
			q[i*k+j] = int8(v)
			sums[i] += int32(v)
		}
	}
	return nil
}
