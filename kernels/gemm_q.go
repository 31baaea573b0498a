package kernels

// The family gemm_q and its cases: blocks that are padded, ties of rounding, numbers that are not finite, the largest sums.

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/concord-compute/concord/runtime/half"
	"github.com/concord-compute/concord/source"
)

// GemmQBlock is the number of weights of the family gemm_q that have one scale, and GemmQRows that of the rows of a panel: the length of a
// row is a multiple of the first, and the weights are those of whole panels.
const GemmQBlock, GemmQRows = 32, 16

func init() {
	Register(Family{
		ID: "gemm_q", Doc: "activations in 8 bits, and their products with weights of 8 or 4 bits in blocks of 32",
		Kernels: []string{"quantize_blocks", "gemm_q"}, Defines: []string{"BITS", "GROUP"}, Check: checkGemmQ,
		Source: sources, Tile: gemmQTile, Arguments: gemmQArguments, Work: gemmQWork, Reference: refGemmQ, Cases: gemmQCases,
	})
}

func checkGemmQ(d source.Define) error {
	if d.Name == "BITS" && d.Value != "4" && d.Value != "8" {
		return fmt.Errorf("BITS=%s is neither 4 nor 8", d.Value)
	}
	return nil
}

func gemmQTile(_ *source.Unit, kernel string) (rows, cols int) {
	if kernel == "gemm_q" {
		return 4, GemmQRows
	}
	return 0, 1
}

// gemmQPlace returns the byte of a weight among those of a matrix with that many blocks in a row, and the shift of its code.
func gemmQPlace(bits, blocks, row, col int) (at, shift int) {
	block, e := row/GemmQRows*blocks+col/GemmQBlock, col%GemmQBlock
	if bits == 4 {
		e, shift = e%16, e/16*4
	}
	return ((block*bits+e/4)*GemmQRows+row%GemmQRows)*4 + e%4, shift
}

func gemmQCases(f *Family) (list []Case) {
	quantize := func(note string, rows, cols, k int, x func() []float64) Case {
		return f.Case("quantize_blocks", "f32", fmt.Sprintf("rows=%d cols=%d k=%d%s", rows, cols, k, note), rows*k/GemmQBlock).
			with(in("f32", rows*cols, x), out("i8", rows*k), out("f32", rows*k/GemmQBlock), out("i32", rows*k/GemmQBlock), uintArg(rows), uintArg(cols), uintArg(k)).
			exact("the factor is the nearest float, and each product is rounded once to float and once to a whole number")
	}
	for _, s := range [][3]int{{1, 1, 32}, {0, 5, 32}, {1, 0, 32}, {1, 0, 0}, {2, 32, 32}, {5, 33, 64}, {7, 1000, 1024}, {64, 31, 96}} {
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
		quantize(" tiny", 2, 33, 64, Uniform("f32", 66, 72, -1e-6, 1e-6)), quantize(" huge", 2, 33, 64, Uniform("f32", 66, 73, -3e38, 3e38)),
		quantize(" NaN and Inf", 3, 300, 320, mixed(mixed(Uniform("f32", 900, 74, -1, 1), math.NaN(), 17), math.Inf(-1), 899)))

	product := func(bits int, note string, m, n, k int, q, w func() []float64, scales float64) Case {
		blocks, panels := k/GemmQBlock, (n+GemmQRows-1)/GemmQRows
		sums := func() []float64 { // those of the bytes
			s := make([]float64, max(m*blocks, 1))
			for i, b := range Encode("u32", q())[:m*k] {
				s[i/GemmQBlock] += float64(int8(b))
			}
			return s
		}
		c := f.Case("gemm_q", "f32", fmt.Sprintf("bits=%d m=%d n=%d k=%d%s", bits, m, n, k, note), m, n).
			with(in("u32", m*k/4, q), in("f32", m*blocks, mixed(Uniform("f32", m*blocks, 83, 0.5, 2), scales, 0)), in("i32", m*blocks, sums),
				in("u32", panels*GemmQRows*blocks*bits, w), in("f16", panels*GemmQRows*blocks, Uniform("f16", panels*GemmQRows*blocks, 85, -2, 2)),
				out("f32", m*n), uintArg(m), uintArg(n), uintArg(k)).
			within("(2·k/32 + 7)·ε·Σ|s·(by·scale)|", "the integer s of a block is exact; two products are rounded, and up to k/32 sums, here and in the reference",
				gemmQBound(bits, m, n, k))
		c.Defines = append(c.Defines, source.Define{Name: "BITS", Value: fmt.Sprint(bits)})
		return c
	}
	words := func(n int, v uint32) func() []float64 { return constant(n, float64(v)) }
	for _, bits := range []int{8, 4} {
		any := func(m, n, k int) (q, w func() []float64) {
			return Uniform("u32", m*k/4, 81, 0, 0), Uniform("u32", (n+GemmQRows-1)/GemmQRows*GemmQRows*k/GemmQBlock*bits, 82, 0, 0)
		}
		for _, s := range [][3]int{{1, 1, 32}, {0, 3, 32}, {2, 0, 32}, {2, 3, 0}, {1, 64, 512}, {4, 16, 64}, {5, 9, 768}, {7, 33, 1024}, {13, 7, 96}, {33, 20, 2560}, {1, 257, 4096}} {
			m, n, k := s[0], s[1], s[2]
			q, w := any(m, n, k)
			list = append(list, product(bits, "", m, n, k, q, w, 1))
		}
		q, w := any(6, 21, 1280)
		list = append(list, product(bits, "", 6, 21, 1280, q, w, 1).grouped(32), product(bits, " a scale of NaN", 6, 21, 1280, q, w, math.NaN()),
			product(bits, " all -128 and the largest code", 7, 18, 8192, words(7*2048, 0x80808080), words(32*256*bits, 0xffffffff), 1),
			product(bits, " all 127 and code 0", 2, 9, 2560, words(2*640, 0x7f7f7f7f), words(16*80*bits, 0), 1))
	}
	return list
}

// gemmQBound returns the bound of products, from their inputs.
func gemmQBound(bits, m, n, k int) func(int, [][]float64, []float64) []float64 {
	return func(_ int, in [][]float64, ref []float64) []float64 {
		q, w, blocks := Encode("u32", in[0]), Encode("u32", in[3]), k/GemmQBlock
		bound := make([]float64, len(ref))
		for at, r := range ref {
			if at >= m*n || r != r {
				continue
			}
			i, j, size := at/n, at%n, 0.0
			for b := range blocks {
				s := -float64(int(1)<<(bits-1)) * in[2][i*blocks+b]
				for e := b * GemmQBlock; e < (b+1)*GemmQBlock; e++ {
					place, shift := gemmQPlace(bits, blocks, j, e)
					s += float64(w[place]>>shift&(1<<bits-1)) * float64(int8(q[i*k+e]))
				}
				size += math.Abs(s * in[4][(j/GemmQRows*blocks+b)*GemmQRows+j%GemmQRows] * in[1][i*blocks+b])
			}
			bound[at] = float64(2*blocks+7) * Roundoff("f32") * size
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
		needAll(c, "i32", c.Product(rows, k/GemmQBlock), 3)
		return true
	}
	m, n, k := int(c.Int(6)), int(c.Int(7)), int(c.Int(8))
	if m == 0 || n == 0 {
		return false
	}
	if k%GemmQBlock != 0 {
		c.Fail(8, "rows of %d weights are not a multiple of %d", k, GemmQBlock)
	}
	places := c.Product((n+GemmQRows-1)/GemmQRows*GemmQRows, k/GemmQBlock)
	needAll(c, "u32", c.Product(m, k/4), 0)
	needAll(c, "f32", c.Product(m, k/GemmQBlock), 1)
	needAll(c, "i32", c.Product(m, k/GemmQBlock), 2)
	needAll(c, "u32", c.Product(places, GemmQBits(c)), 3)
	needAll(c, "f16", places, 4)
	needAll(c, "f32", c.Product(m, n), 5)
	return true
}

// GemmQBits returns the bits of a weight of a program of the family gemm_q.
func GemmQBits(c *Call) int {
	if v, ok := c.Define("BITS"); ok && v == "4" {
		return 4
	}
	return 8
}

func gemmQWork(c *Call, bytes float64) (operations, moved float64) {
	if c.Kernel == "quantize_blocks" {
		return 4 * float64(c.Int(4)) * float64(c.Int(5)), bytes
	}
	return 2 * float64(c.Int(6)) * float64(c.Int(7)) * float64(c.Int(8)), bytes
}

func refGemmQ(c *Call) error {
	if c.Kernel == "quantize_blocks" {
		return refQuantizeBlocks(c)
	}
	m, n, k, bits := int(c.Int(6)), int(c.Int(7)), int(c.Int(8)), GemmQBits(c)
	q, scales, sums, w, by, y := c.Bytes(0), c.F32(1), c.I32(2), c.Bytes(3), c.Bytes(4), c.F32(5)
	blocks, less := k/GemmQBlock, int64(1)<<(bits-1)
	for i := range m {
		for j := range n {
			all := float32(0)
			for b := range blocks {
				s := -less * int64(sums[i*blocks+b])
				for e := b * GemmQBlock; e < (b+1)*GemmQBlock; e++ {
					place, shift := gemmQPlace(bits, blocks, j, e)
					s += int64(w[place]>>shift&(1<<bits-1)) * int64(int8(q[i*k+e]))
				}
				scale := half.Float16(binary.LittleEndian.Uint16(by[2*((j/GemmQRows*blocks+b)*GemmQRows+j%GemmQRows):])).Float32()
				scale *= scales[i*blocks+b]
				all += float32(float32(int32(s)) * scale)
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
		scales[i], sums[i] = most*(float32(1)/127), 0
		if !good {
			scales[i] = float32(math.NaN())
		}
		for j := range GemmQBlock {
			v := 0.0
			if good && j < len(block) {
				v = math.RoundToEven(float64(block[j] * (127 / most)))
			}
			q[i*GemmQBlock+j] = int8(v)
			sums[i] += int32(v)
		}
	}
	return nil
}
