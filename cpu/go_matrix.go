package cpu

// gemm and the L2 distances in Go: products of rows with rows. The result is cut
// into tiles; the rows that a tile needs are copied (converted, transposed) into
// panels that stay in the cache, and 4×2 results at a time are kept in registers.

import (
	"math"

	"github.com/concord-compute/concord/internal/precise"
)

func init() {
	for _, kernel := range []string{"gemm", "gemm_batch", "gemm_bias"} {
		floats := typed(goGemm[float32], goGemm[float64])
		native(kernel, kernel, func(c *call) error {
			switch c.Type("T") {
			case "i32":
				return goGemmInt(c, c.I32(4), c.I32(6), c.I32(9))
			case "i64":
				return goGemmInt(c, c.I64(4), c.I64(6), c.I64(9))
			}
			return floats(c)
		})
	}
	native("gemm_i8", "gemm_i8", func(c *call) error { return goGemmInt(c, c.I8(4), c.I8(6), c.I32(9)) })
	native("l2_distance", "l2_distance_fp32", func(c *call) error { return goL2(c, "f32") })
	native("l2_distance", "l2_distance_fp16", func(c *call) error { return goL2(c, "f16") })
	native("l2_distance", "l2_distance_int8", goL2Int)
}

// rowProductsMost is the largest number of multiply-adds in a range of more than one tile: some hundredths of a
// second. A launch can be stopped only between two ranges.
const rowProductsMost = 1 << 28

// panelElem is the constraint of the elements of panels.
type panelElem interface {
	float32 | float64 | int32 | int64
}

// rowProducts computes, in parallel, an m×n result in which element (i, j) is a sum over row i of the left
// and row j of the right operand, and calls out with each. The pack functions copy elements p0
// to p1 of row i of an operand into a panel. micro computes a part of the sums of 4×2
// results; S is the type of the whole sums.
func rowProducts[F panelElem, S float32 | float64 | int64](c *call, m, n, k int,
	packLeft, packRight func(i, p0, p1 int, dst []F), micro func(a0, a1, a2, a3, b0, b1 []F) [8]F,
	out func(i, j int, sums []S)) error {
	tileRows, tileCols, tileDepth := c.Choose(goRows), c.Choose(goCols), c.Choose(goDepth)
	across := (n + tileCols - 1) / tileCols
	tiles := across * ((m + tileRows - 1) / tileRows)
	if tiles == 0 {
		return c.ctx.Err()
	}
	threads := c.device.threads
	some := min(c.each(tiles, threadRanges), rowProductsMost/(tileRows*tileCols)/max(k, 1))
	return c.ranges(tiles, max(some, 1), threads, func(_ *call, lo, hi int) {
		left, right := make([]F, tileRows*tileDepth), make([]F, tileCols*tileDepth)
		sums := make([]S, tileRows*tileCols)
		for t := lo; t < hi; t++ {
			i0, j0 := t/across*tileRows, t%across*tileCols
			rows, cols := min(tileRows, m-i0), min(tileCols, n-j0)
			clear(sums)
			for p0 := 0; p0 < k; p0 += tileDepth {
				p1 := min(p0+tileDepth, k)
				depth := p1 - p0
				for i := range rows {
					packLeft(i0+i, p0, p1, left[i*depth:(i+1)*depth])
				}
				for j := range cols {
					packRight(j0+j, p0, p1, right[j*depth:(j+1)*depth])
				}
				panelProducts(left, right, rows, cols, depth, micro, sums, tileCols)
			}
			for i := range rows {
				out(i0+i, j0, sums[i*tileCols:i*tileCols+cols])
			}
		}
	})
}

func panelProducts[F panelElem, S float32 | float64 | int64](left, right []F, rows, cols, depth int,
	micro func(a0, a1, a2, a3, b0, b1 []F) [8]F, sums []S, wide int) {
	row := func(x []F, i, n int) []F { // rows beyond the last are replaced by the last
		i = min(i, n-1)
		return x[i*depth : (i+1)*depth]
	}
	for i := 0; i < rows; i += 4 {
		a0, a1, a2, a3 := row(left, i, rows), row(left, i+1, rows), row(left, i+2, rows), row(left, i+3, rows)
		for j := 0; j < cols; j += 2 {
			s := micro(a0, a1, a2, a3, row(right, j, cols), row(right, j+1, cols))
			for r := range min(4, rows-i) {
				for q := range min(2, cols-j) {
					sums[(i+r)*wide+j+q] += S(s[2*r+q])
				}
			}
		}
	}
}

// dots returns the dot products of 4 rows a with 2 rows b.
func dots[F panelElem](a0, a1, a2, a3, b0, b1 []F) [8]F {
	var s00, s01, s10, s11, s20, s21, s30, s31 F
	n := len(a0)
	a1, a2, a3, b0, b1 = a1[:n], a2[:n], a3[:n], b0[:n], b1[:n]
	for p, x := range a0 {
		y, z := b0[p], b1[p]
		s00 += x * y
		s01 += x * z
		x = a1[p]
		s10 += x * y
		s11 += x * z
		x = a2[p]
		s20 += x * y
		s21 += x * z
		x = a3[p]
		s30 += x * y
		s31 += x * z
	}
	return [8]F{s00, s01, s10, s11, s20, s21, s30, s31}
}

// distances returns Σ(a-b)² for 4 rows a and 2 rows b.
func distances[F panelElem](a0, a1, a2, a3, b0, b1 []F) [8]F {
	var s00, s01, s10, s11, s20, s21, s30, s31 F
	n := len(a0)
	a1, a2, a3, b0, b1 = a1[:n], a2[:n], a3[:n], b0[:n], b1[:n]
	for p, x := range a0 {
		y, z := b0[p], b1[p]
		d, e := x-y, x-z
		s00 += d * d
		s01 += e * e
		x = a1[p]
		d, e = x-y, x-z
		s10 += d * d
		s11 += e * e
		x = a2[p]
		d, e = x-y, x-z
		s20 += d * d
		s21 += e * e
		x = a3[p]
		d, e = x-y, x-z
		s30 += d * d
		s31 += e * e
	}
	return [8]F{s00, s01, s10, s11, s20, s21, s30, s31}
}

// rowsOf returns a function that packs rows of a matrix that begins at element first; columnsOf
// returns one that packs columns.
func rowsOf[F number](x view[F], first, ld int) func(i, p0, p1 int, dst []F) {
	return func(i, p0, p1 int, dst []F) {
		copy(dst, x.read(first+i*ld+p0, first+i*ld+p1, dst)) // for 16-bit types read has already converted into dst
	}
}

func columnsOf[F number](x view[F], first, ld int) func(i, p0, p1 int, dst []F) {
	return func(i, p0, p1 int, dst []F) {
		for p := p0; p < p1; p++ {
			dst[p-p0] = x.at(first + p*ld + i)
		}
	}
}

// goGemm computes C = alpha·op(A)·op(B) + beta·C, once or for each matrix of a batch, or with a
// bias and an activation.
func goGemm[F number](c *call, t string) error {
	transA, transB := c.Flag("TRANS_A"), c.Flag("TRANS_B")
	g := gemmOf(c)
	result := c.Type("OUT")
	a, b, out := viewOf[F](c, 4, c.Type("TYPE_A")), viewOf[F](c, 6, c.Type("TYPE_B")),
		viewOf[F](c, 9, result)
	alpha, beta, finish := F(g.alpha), F(g.beta), goFinish[F](c, result)
	for z := range g.count {
		left, right, first := rowsOf(a, z*g.step[0], g.ld[0]), columnsOf(b, z*g.step[1], g.ld[1]), z*g.step[2]
		if transA {
			left = columnsOf(a, z*g.step[0], g.ld[0])
		}
		if transB {
			right = rowsOf(b, z*g.step[1], g.ld[1])
		}
		err := rowProducts(c, g.m, g.n, g.k, left, right, dots[F], func(i, j int, sums []F) {
			at := first + i*g.ld[2] + j
			for q, s := range sums {
				x := alpha * s
				if beta != 0 {
					x += beta * out.at(at+q)
				}
				out.set(at+q, finish(j+q, x))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// goFinish returns the function that follows the product x in column j: the bias and the activation,
// if the kernel has them.
func goFinish[F number](c *call, t string) func(j int, x F) F {
	if !c.addsBias() {
		return func(_ int, x F) F { return x }
	}
	bias, act := viewOf[F](c, gemmBias, t), c.activation(goActivations)
	return func(j int, x F) F { return F(act(float64(x + bias.at(j)))) }
}

// goL2 computes Σ (q - v)² in float32.
func goL2(c *call, t string) error {
	queries, vectors, dim := int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	left, right, out := rowsOf(viewOf[float32](c, 0, t), 0, dim), rowsOf(viewOf[float32](c, 1, t), 0, dim), c.F32(2)
	return rowProducts(c, queries, vectors, dim, left, right, distances[float32], func(i, j int, sums []float32) {
		copy(out[i*vectors+j:], sums)
	})
}

// goL2Int sums exactly and divides once. A part of a sum is at most 1024·255², which fits in
// 32 bits.
func goL2Int(c *call) error {
	queries, vectors, dim := int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	rows := func(x []int8) func(i, p0, p1 int, dst []int32) {
		return func(i, p0, p1 int, dst []int32) {
			for j, v := range x[i*dim+p0 : i*dim+p1] {
				dst[j] = int32(v)
			}
		}
	}
	out := c.F32(2)
	return rowProducts(c, queries, vectors, dim, rows(c.I8(0)), rows(c.I8(1)), distances[int32],
		func(i, j int, sums []int64) {
			for q, s := range sums {
				out[i*vectors+j+q] = float32(float64(s) / 16129)
			}
		})
}

// goActivations compute in float64, as Go has no such functions for float32; the results are rounded.
var goActivations = map[string]func(x float64) float64{
	"relu": func(x float64) float64 {
		if x < 0 {
			return 0
		}
		return x
	},
	"sigmoid":  precise.Sigmoid,
	"tanh_act": math.Tanh,
	"gelu":     precise.GELU,
	"gelu_tanh": func(x float64) float64 {
		return x * precise.Sigmoid(1.59576912160573071176*(x+0.044715*x*x*x))
	},
	"swish": func(x float64) float64 { return x * precise.Sigmoid(x) },
}
