package kernels

// The family gemm_i8 and its cases: the smallest and largest elements, sums that wrap.

import (
	"fmt"

	"github.com/concord-compute/concord/source"
)

func init() {
	Register(Family{
		ID: "gemm_i8", Doc: "gemm of 8-bit integers with a result of 32 bits, exact",
		Kernels: []string{"gemm_i8"}, Defines: []string{"TRANS_A", "TRANS_B"},
		Source: sources, Tile: productTile, Arguments: gemmArguments, Work: gemmWork, Reference: refGemmI8,
		Cases: func(f *Family) (list []Case) {
			for _, s := range []gemmShape{
				{m: 1, n: 1, k: 1, alpha: 1}, {m: 0, n: 3, k: 2, alpha: 1}, {m: 3, n: 5, k: 0, alpha: 1, beta: 2},
				{m: 2, n: 3, k: 5, alpha: 1},
				{m: 31, n: 33, k: 32, alpha: -3, beta: 7}, {m: 64, n: 64, k: 16, alpha: 1},
				{m: 65, n: 63, k: 17, alpha: 1, beta: 1},
				{m: 1, n: 257, k: 1000, alpha: 1}, {m: 257, n: 1, k: 31, alpha: 1},
				{m: 17, n: 19, k: 23, alpha: 2, beta: 1, pad: 3},
				{m: 13, n: 40, k: 1031, alpha: 1 << 20, beta: 1<<31 - 1, note: " wraps"},
				{m: 12, n: 32, k: 520, alpha: 1, note: " all -128"},
			} {
				for trans := range 4 {
					s.transA, s.transB = trans&1 != 0, trans&2 != 0
					if trans == 0 || s.m == 65 || s.m == 17 || s.m == 13 {
						list = append(list, gemmI8Case(f, s))
					}
				}
			}
			return list
		},
	})
}

func gemmI8Case(f *Family, s gemmShape) Case {
	rowsA, colsA, rowsB, colsB := s.m, s.k, s.k, s.n
	if s.transA {
		rowsA, colsA = colsA, rowsA
	}
	if s.transB {
		rowsB, colsB = colsB, rowsB
	}
	lda, ldb, ldc := colsA+s.pad, colsB+s.pad, s.n+s.pad
	a, b := Uniform("i8", rowsA*lda, 41, 0, 0), Uniform("i8", rowsB*ldb, 42, 0, 0)
	if s.note == " all -128" {
		a, b = constant(rowsA*lda, -128), constant(rowsB*ldb, -128)
	}
	shape := fmt.Sprintf("m=%d n=%d k=%d alpha=%g beta=%g%s", s.m, s.n, s.k, s.alpha, s.beta, s.note)
	if s.pad > 0 {
		shape += " padded"
	}
	def := func(name string, on bool) source.Define {
		if on {
			shape += " " + name
			return source.Define{Name: name, Value: "1"}
		}
		return source.Define{Name: name, Value: "0"}
	}
	defA, defB := def("TRANS_A", s.transA), def("TRANS_B", s.transB)
	c := f.Case("gemm_i8", "i8", shape, s.m, s.n).with(uintArg(s.m), uintArg(s.n), uintArg(s.k), value("i32", s.alpha),
		in("i8", rowsA*lda, a), uintArg(lda), in("i8", rowsB*ldb, b), uintArg(ldb), value("i32", s.beta),
		inout("i32", s.m*ldc, Uniform("i32", s.m*ldc, 43, 0, 0)), uintArg(ldc))
	c.Defines = append(c.Defines, defA, defB)
	return c.exact("integers wrap modulo 2^32")
}

// refGemmI8 computes C = alpha·op(A)·op(B) + beta·C modulo 2^32.
func refGemmI8(c *Call) error {
	m, n, k, alpha, beta := int(c.Int(0)), int(c.Int(1)), int(c.Int(2)), uint32(c.Int(3)), uint32(c.Int(8))
	lda, ldb, ldc := int(c.Int(5)), int(c.Int(7)), int(c.Int(10))
	transA, transB := c.Flag("TRANS_A"), c.Flag("TRANS_B")
	a, b, out := c.I8(4), c.I8(6), c.I32(9)
	element := func(x []int8, ld, row, col int, trans bool) int64 {
		if trans {
			row, col = col, row
		}
		return int64(x[row*ld+col])
	}
	for i := range m {
		for j := range n {
			sum := int64(0) // does not overflow for any k, which has 32 bits
			for p := range k {
				sum += element(a, lda, i, p, transA) * element(b, ldb, p, j, transB)
			}
			at := &out[i*ldc+j]
			x := uint32(sum) * alpha
			if beta != 0 {
				x += beta * uint32(*at)
			}
			*at = int32(x)
		}
	}
	return nil
}
