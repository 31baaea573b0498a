package kernels

// The family gemm_q and its cases: blocks that are padded, ties of rounding, numbers that are not finite, the
// largest sums.

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/concord-compute/concord/runtime/half"
	"github.com/concord-compute/concord/source"
)

// The rules by which weights of the family gemm_q have scales, which its definition FACTORS has: GemmQOne is one scale
// for a block. The others have a scale for GemmQLarge weights, too: GemmQLeast has for each block a factor of it, a
// factor of a least number that is subtracted, and codes from zero; GemmQHalves has a factor, with a sign, for each
// half of a block.
const (
	GemmQOne = iota
	GemmQLeast
	GemmQHalves
)

// GemmQBlock is the number of weights of the family gemm_q that have one scale, and GemmQRows that of the rows
// of a panel. The length of a row is a multiple of GemmQBlock, and the number of rows one of GemmQRows. Where
// weights have scales for GemmQLarge of them, too, the length is a multiple of that.
const GemmQBlock, GemmQRows, GemmQLarge = 32, 16, 256

func init() {
	Register(Family{
		ID: "gemm_q", Doc: "activations in 8 bits, and their products with weights of 8 or 4 to 6 bits in blocks of 32",
		Kernels: []string{"quantize_blocks", "gemm_q"}, Defines: []string{"BITS", "FACTORS", "GROUP"},
		Check:  oneOf(map[string][]string{"BITS": {"4", "5", "6", "8"}, "FACTORS": {"0", "1", "2"}}),
		Source: sources, Tile: gemmQTile, Arguments: gemmQArguments, Work: quantizedWork,
		Reference: refGemmQ, Bound: knows(gemmQLaunch), Rows: gemmQRows, Cases: gemmQCases,
	})
}

// gemmQForm is how a program of the family stores weights.
type gemmQForm struct{ bits, factors int }

// gemmQForms are those that exist. csrc/cpu/gemm_q.h has them as FORMS.
var gemmQForms = []gemmQForm{{8, GemmQOne}, {4, GemmQOne}, {4, GemmQLeast}, {6, GemmQHalves}, {5, GemmQOne},
	{5, GemmQLeast}}

// String is "bits=4", with " k" where there are factors.
func (f gemmQForm) String() string {
	if f.factors != GemmQOne {
		return fmt.Sprintf("bits=%d k", f.bits)
	}
	return fmt.Sprintf("bits=%d", f.bits)
}

// GemmQForms returns the forms of weights that exist: their bits and rules of scales.
func GemmQForms() (list [][2]int) {
	for _, f := range gemmQForms {
		list = append(list, [2]int{f.bits, f.factors})
	}
	return list
}

// GemmQScales returns the 16-bit numbers that a block of a panel has of scales and factors, on average.
func GemmQScales(factors int) int {
	if factors != GemmQOne {
		return 10 * GemmQRows / 8
	}
	return GemmQRows
}

// less is what a weight is less than its code.
func (f gemmQForm) less() int {
	if f.factors == GemmQLeast {
		return 0
	}
	return 1 << (f.bits - 1)
}

// code returns the code of a weight of a matrix with that many blocks in a row.
func (f gemmQForm) code(w []byte, blocks, row, col int) int {
	e := col % GemmQBlock
	word := func(i int) int {
		return int(w[(((row/GemmQRows*blocks+col/GemmQBlock)*f.bits+i)*GemmQRows+row%GemmQRows)*4+e%4])
	}
	switch high := f.bits - 4; high {
	case 0:
		return word(e%16/4) >> (e / 16 * 4) & 15
	case 4:
		return word(e / 4)
	default: // the high bits begin in word 4
		at := e / 4 * high
		return word(e%16/4)>>(e/16*4)&15 | word(4+at/8)>>(at%8)&(1<<high-1)<<4
	}
}

// block returns the integer of a block of a row of weights with a row of activations, its factor and, with
// least numbers, the factor of the sum of the activations, which is to be subtracted.
func (f gemmQForm) block(w, by, q []byte, blocks, row, b int) (s, step, least float32) {
	low, high := 0, 0
	for e := range GemmQBlock / 2 {
		low += (f.code(w, blocks, row, b*GemmQBlock+e) - f.less()) * int(int8(q[b*GemmQBlock+e]))
		high += (f.code(w, blocks, row, b*GemmQBlock+16+e) - f.less()) * int(int8(q[b*GemmQBlock+16+e]))
	}
	scale := func(at int) float32 { return half.Float16(binary.LittleEndian.Uint16(by[2*at:])).Float32() }
	at := row/GemmQRows*blocks + b
	if f.factors == GemmQOne {
		return float32(low + high), scale(at*GemmQRows + row%GemmQRows), 0
	}
	at = (at - b%8) * GemmQScales(f.factors)
	part := by[2*(at+(2+b%8)*GemmQRows)+row%GemmQRows:]
	d := scale(at + row%GemmQRows)
	if f.factors == GemmQHalves {
		return float32(int(int8(part[0]))*low + int(int8(part[GemmQRows]))*high), d, 0
	}
	return float32(low + high), d * float32(part[0]), scale(at+GemmQRows+row%GemmQRows) * float32(part[GemmQRows])
}

func gemmQTile(_ *source.Unit, kernel string) (rows, cols int) {
	if kernel == "gemm_q" {
		return 4, GemmQRows
	}
	return 0, 1
}

func gemmQCases(f *Family) (list []Case) {
	quantize := func(note string, rows, cols, k int, x func() []float64) Case {
		return f.Case("quantize_blocks", "f32", fmt.Sprintf("rows=%d cols=%d k=%d%s", rows, cols, k, note),
			rows*k/GemmQBlock).
			with(in("f32", rows*cols, x), out("i8", rows*k), out("f32", rows*k/GemmQBlock), out("i32", rows*k/16), uintArg(rows),
				uintArg(cols), uintArg(k)).
			exact("the factor is the nearest float, and each product is rounded once to float and once to a whole number")
	}
	for _, s := range [][3]int{{1, 1, 32}, {0, 5, 32}, {1, 0, 32}, {1, 0, 0}, {2, 32, 32}, {5, 33, 64}, {7, 1000, 1024},
		{64, 31, 96}} {
		list = append(list, quantize("", s[0], s[1], s[2], Uniform("f32", s[0]*s[1], 71, -3, 3)))
	}
	list = append(list,
		quantize(" ties", 1, 255, 256, func() []float64 { // factors of 1 and of 2
			x := make([]float64, 255)
			for i := range x {
				x[i] = float64(i)/2 - 63.5
				if i%32 == 0 {
					x[i] = 127 / float64(1+i/32%2)
				}
			}
			return x
		}),
		quantize(" tiny", 2, 33, 64, Uniform("f32", 66, 72, -1e-6, 1e-6)),
		quantize(" huge", 2, 33, 64, Uniform("f32", 66, 73, -3e38, 3e38)),
		quantize(" NaN and Inf", 3, 300, 320, mixed(mixed(Uniform("f32", 900, 74, -1, 1), math.NaN(), 17), math.Inf(-1),
			899)))

	product := func(form gemmQForm, note string, m, n, k int, q, w func() []float64, scales float64) Case {
		blocks, panels := k/GemmQBlock, (n+GemmQRows-1)/GemmQRows
		sums := func() []float64 { // those of the bytes
			s := make([]float64, max(2*m*blocks, 1))
			for i, b := range Encode("u32", q())[:m*k] {
				s[i/16] += float64(int8(b))
			}
			return s
		}
		count := panels * blocks * GemmQScales(form.factors)
		by := in("u16", count, func() []float64 { // halves between 2⁻⁷ and 2, and any bytes or those below 64
			x := Uniform("u16", count, 85, 0, 65536)()
			for i := range x {
				v := int(x[i])
				if at := i % (10 * GemmQRows); form.factors == GemmQOne || at < 2*GemmQRows {
					v = v&0x9fff | 0x2000
				} else if form.factors == GemmQLeast {
					v &= 0x3f3f
				}
				x[i] = float64(v)
			}
			return x
		})
		c := f.Case("gemm_q", "f32", fmt.Sprintf("%v m=%d n=%d k=%d%s", form, m, n, k, note), m, n).
			with(in("u32", m*k/4, q), in("f32", m*blocks, mixed(Uniform("f32", m*blocks, 83, 0.5, 2), scales, 0)),
				in("i32", 2*m*blocks, sums),
				in("u32", panels*GemmQRows*blocks*form.bits, w), by, out("f32", m*n), uintArg(m), uintArg(n), uintArg(k)).
			within("(2·k/32 + 9)·ε·Σ|s·(by·scale)|", "the integer s of a block is exact; two products are rounded, for least "+
				"numbers four and a difference, and up to k/32 sums, here and in the reference",
				gemmQBound(form, m, n, k)).define("BITS", fmt.Sprint(form.bits))
		if form.factors != GemmQOne {
			c = c.define("FACTORS", fmt.Sprint(form.factors))
		}
		return c
	}
	words := func(n int, v uint32) func() []float64 { return constant(n, float64(v)) }
	for _, form := range gemmQForms {
		any := func(m, n, k int) (q, w func() []float64) {
			return Uniform("u32", m*k/4, 81, 0, 0), Uniform("u32", (n+GemmQRows-1)/GemmQRows*GemmQRows*k/GemmQBlock*form.bits,
				82, 0, 0)
		}
		shapes := [][3]int{{1, 1, 32}, {0, 3, 32}, {2, 0, 32}, {2, 3, 0}, {1, 64, 512}, {4, 16, 64}, {5, 9, 768},
			{7, 33, 1024}, {13, 7, 96}, {33, 20, 2560}, {1, 257, 4096}}
		if form.factors != GemmQOne {
			shapes = [][3]int{{1, 1, 256}, {2, 3, 0}, {1, 64, 512}, {5, 9, 768}, {13, 33, 1024}, {1, 257, 4096}}
		}
		for _, s := range shapes {
			m, n, k := s[0], s[1], s[2]
			q, w := any(m, n, k)
			list = append(list, product(form, "", m, n, k, q, w, 1))
		}
		q, w := any(6, 21, 1280)
		list = append(list, product(form, "", 6, 21, 1280, q, w, 1).grouped(32),
			product(form, " a scale of NaN", 6, 21, 1280, q, w, math.NaN()),
			product(form, " all -128 and the largest code", 7, 18, 8192, words(7*2048, 0x80808080),
				words(32*256*form.bits, 0xffffffff), 1),
			product(form, " all 127 and code 0", 2, 9, 2560, words(2*640, 0x7f7f7f7f), words(16*80*form.bits, 0), 1))
	}
	return list
}

// gemmQBound returns the bound of products, from their inputs.
func gemmQBound(form gemmQForm, m, n, k int) func(int, [][]float64, []float64) []float64 {
	return func(_ int, in [][]float64, ref []float64) []float64 {
		q, w, by, blocks := Encode("u32", in[0]), Encode("u32", in[3]), Encode("u16", in[4]), k/GemmQBlock
		bound := make([]float64, len(ref))
		for at, r := range ref {
			if at >= m*n || r != r {
				continue
			}
			i, j, size := at/n, at%n, 0.0
			for b := range blocks {
				s, step, least := form.block(w, by, q[i*k:], blocks, j, b)
				sum := in[2][2*(i*blocks+b)] + in[2][2*(i*blocks+b)+1]
				size += (math.Abs(float64(s)*float64(step)) + math.Abs(sum*float64(least))) * math.Abs(in[1][i*blocks+b])
			}
			bound[at] = float64(2*blocks+9) * Roundoff("f32") * size
		}
		return bound
	}
}

func gemmQArguments(c *Call) bool {
	if c.Kernel == "quantize_blocks" {
		rows, cols, k := int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
		if k%GemmQBlock != 0 || k < cols {
			c.Fail(6, "rows of %d bytes are not a multiple of %d, or have no room for %d elements", k, GemmQBlock, cols)
		}
		if rows == 0 || k == 0 {
			return false
		}
		needAll(c, "f32", c.Product(rows, cols), 0)
		needAll(c, "i8", c.Product(rows, k), 1)
		needAll(c, "f32", c.Product(rows, k/GemmQBlock), 2)
		needAll(c, "i32", c.Product(rows, k/16), 3)
		return true
	}
	m, n, k := int(c.Int(6)), int(c.Int(7)), int(c.Int(8))
	if m == 0 || n == 0 {
		return false
	}
	form, unit := gemmQFormOf(c), GemmQBlock
	if !slices.Contains(gemmQForms, form) {
		c.Fail(3, "no weights have BITS=%d with FACTORS=%d", form.bits, form.factors)
	}
	if form.factors != GemmQOne {
		unit = GemmQLarge
	}
	if k%unit != 0 {
		c.Fail(8, "rows of %d weights are not a multiple of %d", k, unit)
	}
	places := c.Product((n+GemmQRows-1)/GemmQRows*GemmQRows, k/GemmQBlock)
	needAll(c, "u32", c.Product(m, k/4), 0)
	needAll(c, "f32", c.Product(m, k/GemmQBlock), 1)
	needAll(c, "i32", c.Product(m, k/16), 2)
	needAll(c, "u32", c.Product(places, form.bits), 3)
	needAll(c, "u16", c.Product(places/GemmQRows, GemmQScales(form.factors)), 4)
	needAll(c, "f32", c.Product(m, n), 5)
	return true
}

// GemmQForm returns the bits of a weight of a program of the family gemm_q, and its rule of scales.
func GemmQForm(c *Call) (bits, factors int) {
	f := gemmQFormOf(c)
	return f.bits, f.factors
}

func gemmQFormOf(c *Call) gemmQForm {
	return gemmQForm{bits: c.number("BITS", 8), factors: c.number("FACTORS", GemmQOne)}
}

// quantizedWork is the work of a product of quantized rows, and of the kernel beside it that quantizes them.
func quantizedWork(c *Call, bytes float64) (operations, moved float64) {
	if strings.HasPrefix(c.Kernel, "quantize") {
		return 4 * float64(c.Int(4)) * float64(c.Int(5)), bytes
	}
	return 2 * float64(c.Int(6)) * float64(c.Int(7)) * float64(c.Int(8)), bytes
}

func refGemmQ(c *Call) error {
	if c.Kernel == "quantize_blocks" {
		return refQuantizeBlocks(c)
	}
	m, n, k, form := int(c.Int(6)), int(c.Int(7)), int(c.Int(8)), gemmQFormOf(c)
	q, scales, sums, w, by, y := c.Bytes(0), c.F32(1), c.I32(2), c.Bytes(3), c.Bytes(4), c.F32(5)
	blocks := k / GemmQBlock
	for i := range m {
		for j := range n {
			all := float32(0)
			for b := range blocks {
				s, step, least := form.block(w, by, q[i*k:], blocks, j, b)
				sum, scale := float32(sums[2*(i*blocks+b)]+sums[2*(i*blocks+b)+1]), scales[i*blocks+b]
				if form.factors == GemmQLeast {
					s = float32(float32(float32(s*step)-float32(sum*least)) * scale)
				} else {
					s = float32(s * float32(step*scale))
				}
				all += s
			}
			y[i*n+j] = all
		}
	}
	return nil
}

func refQuantizeBlocks(c *Call) error {
	rows, cols, k := int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
	x, q, scales, sums := c.F32(0), c.I8(1), c.F32(2), c.I32(3)
	for i := range rows * k / GemmQBlock {
		row, from := i*GemmQBlock/k, i*GemmQBlock%k
		block := x[row*cols+min(from, cols) : row*cols+min(from+GemmQBlock, cols)]
		most, good := float32(1e-5), true
		for _, v := range block {
			good = good && v-v == 0
			most = max(most, v, -v)
		}
		scales[i], sums[2*i], sums[2*i+1] = most*(float32(1)/127), 0, 0
		if !good {
			scales[i] = float32(math.NaN())
		}
		for j := range GemmQBlock {
			v := 0.0
			if good && j < len(block) {
				v = math.RoundToEven(float64(block[j] * (127 / most)))
			}
			q[i*GemmQBlock+j] = int8(v)
			sums[2*i+j/16] += int32(v)
		}
	}
	return nil
}
