package cpu

// References of gemm and of the L2 distances.

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
)

func init() {
	for _, kernel := range []string{"gemm", "gemm_batch", "gemm_bias"} {
		reference(kernel, kernel, refGemm)
	}
	reference("l2_distance", "l2_distance_fp32", func(c *Call) error { return refL2(c, "f32") })
	reference("l2_distance", "l2_distance_fp16", func(c *Call) error { return refL2(c, "f16") })
	reference("l2_distance", "l2_distance_int8", refL2Int)
}

// refGemm: C = alpha·op(A)·op(B) + beta·C, once or for each matrix of a batch, or with a
// bias and an activation.
func refGemm(c *Call) error {
	t := refType(c, "T")
	g := gemmOf(c, refSize(t), c.define("TRANS_A"), c.define("TRANS_B"))
	ta, rowsA, colsA := refTrans(c, "TRANS_A", g.m, g.k)
	tb, rowsB, colsB := refTrans(c, "TRANS_B", g.k, g.n)
	finish, set := refFinish(c, t), refSet(c, 9, t)
	for z := range g.count {
		a := refMatrix(c, 4, t, rowsA, colsA, z*g.step[0], g.ld[0])
		b := refMatrix(c, 6, t, rowsB, colsB, z*g.step[1], g.ld[1])
		out := blas64.General{Rows: g.m, Cols: g.n, Stride: g.n, Data: make([]float64, g.m*g.n)}
		if g.beta != 0 { // else C is not read
			out = refMatrix(c, 9, t, g.m, g.n, z*g.step[2], g.ld[2])
		}
		switch {
		case g.k == 0:
			floats.Scale(g.beta, out.Data)
			floats.AddConst(g.alpha*0, out.Data) // NaN where alpha is not finite
		case finite(a.Data, b.Data):
			blas64.Gemm(ta, tb, g.alpha, a, b, g.beta, out)
		default:
			refGemmLoop(ta, tb, g.k, g.alpha, a, b, g.beta, out)
		}
		for i := range g.m {
			for j := range g.n {
				set(z*g.step[2]+i*g.ld[2]+j, finish(j, out.Data[i*g.n+j]))
			}
		}
	}
	return nil
}

// refFinish is what comes after a product, by column.
func refFinish(c *Call, t string) func(j int, x float64) float64 {
	if !c.addsBias() {
		return func(_ int, x float64) float64 { return x }
	}
	bias, act := refGet(c, gemmBias, t), c.activation(refActivations)
	return func(j int, x float64) float64 { return act(x + bias(j)) }
}

// refGemmLoop is the formula as it stands. gonum leaves out products with a zero
// of A, which hides that 0·NaN and 0·∞ are NaN.
func refGemmLoop(ta, tb blas.Transpose, k int, alpha float64, a, b blas64.General, beta float64, c blas64.General) {
	at := func(x blas64.General, trans blas.Transpose, i, j int) float64 {
		if trans == blas.Trans {
			i, j = j, i
		}
		return x.Data[i*x.Stride+j]
	}
	for i := range c.Rows {
		for j := range c.Cols {
			sum := 0.0
			for p := range k {
				sum += at(a, ta, i, p) * at(b, tb, p, j)
			}
			x := &c.Data[i*c.Stride+j]
			if sum *= alpha; beta != 0 {
				sum += beta * *x
			}
			*x = sum
		}
	}
}

// refTrans returns how a rows×cols operand is stored.
func refTrans(c *Call, define string, rows, cols int) (t blas.Transpose, storedRows, storedCols int) {
	if v, _ := c.Define(define); v == "1" {
		return blas.Trans, cols, rows
	}
	return blas.NoTrans, rows, cols
}

// refMatrix copies a matrix that begins at element first, without the padding of its rows.
func refMatrix(c *Call, arg int, t string, rows, cols, first, ld int) blas64.General {
	get := refGet(c, arg, t)
	x := blas64.General{Rows: rows, Cols: cols, Stride: max(cols, 1), Data: make([]float64, 0, rows*cols)}
	for i := range rows {
		x.Data = append(x.Data, refRead(get, first+i*ld, cols, 1)...)
	}
	return x
}

// refL2: Σ (q - v)², the dot product of the difference with itself.
func refL2(c *Call, t string) error {
	queries, vectors, dim := int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	getQ, getV, out := refGet(c, 0, t), refGet(c, 1, t), c.F32(2)
	rows := make([][]float64, vectors)
	for v := range rows {
		rows[v] = refRead(getV, v*dim, dim, 1)
	}
	// On all threads, and once through the vectors for some queries: the demo waits for it.
	const together = 8
	return c.Parallel(queries, together, func(lo, hi int) {
		diff := make([]float64, dim)
		for ; lo < hi; lo += together {
			some := make([][]float64, min(together, hi-lo))
			for i := range some {
				some[i] = refRead(getQ, (lo+i)*dim, dim, 1)
			}
			for v, y := range rows {
				for i, x := range some {
					floats.SubTo(diff, x, y)
					out[(lo+i)*vectors+v] = float32(floats.Dot(diff, diff))
				}
			}
		}
	})
}

// refL2Int: Σ (q - v)² exactly, then one division by 127².
func refL2Int(c *Call) error {
	queries, vectors, dim := int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	x, y, out := c.I8(0), c.I8(1), c.F32(2)
	for q := range queries {
		for v := range vectors {
			sum := int64(0)
			for d := range dim {
				diff := int64(x[q*dim+d]) - int64(y[v*dim+d])
				sum += diff * diff
			}
			out[q*vectors+v] = float32(float64(sum) / (127 * 127))
		}
	}
	return nil
}
