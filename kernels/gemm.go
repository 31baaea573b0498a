package kernels

// The families gemm, gemm_batch and gemm_bias; gemm_cases.go has their cases.

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"github.com/concord-compute/concord/source"
)

var gemmDefines = []string{"T", "TRANS_A", "TRANS_B", "TYPE_A", "TYPE_B", "OUT"}

// productTypes are the types of gemm and gemm_batch. Integers of 8 bits have gemm_i8.
var productTypes = append(slices.Clone(floatTypes), "i32", "i64")

func init() {
	Register(Family{
		ID: "gemm", Doc: "C = alpha·op(A)·op(B) + beta·C for any m, n, k and transposes",
		Kernels: []string{"gemm"}, Types: productTypes, Defines: gemmDefines, Check: checkGemm, Source: sources,
		Tile: productTile, Arguments: gemmArguments, Work: gemmWork, Reference: refGemm,
		Cases: gemmCases,
	})
	Register(Family{
		ID: "gemm_batch", Doc: "gemm for a batch of matrices with any strides between them",
		Kernels: []string{"gemm_batch"}, Types: productTypes, Defines: gemmDefines, Check: checkGemm, Source: sources,
		Tile: productTile, Arguments: gemmArguments, Work: gemmWork, Reference: refGemm,
		Cases: batchCases,
	})
	Register(Family{
		ID: "gemm_bias", Doc: "gemm followed by a bias for each column and an activation",
		Kernels: []string{"gemm_bias"}, Types: floatTypes, Defines: append(slices.Clone(gemmDefines), "ACT"), Check: checkAct,
		Source: sources, Tile: productTile, Arguments: gemmArguments, Work: gemmWork, Reference: refGemm,
		Cases: biasCases,
	})
}

// Activations are the activations of gemm_bias: the value of the definition ACT, and the
// kernel of the family activation that computes the same function ("" for none).
var Activations = []struct{ Act, Kernel string }{
	{"none", ""}, {"relu", "relu"}, {"sigmoid", "sigmoid"}, {"tanh", "tanh_act"}, {"gelu", "gelu"}, {"silu", "swish"},
	{"gelu_tanh", "gelu_tanh"},
}

// activationKernel returns the Kernel of the entry of Activations with that Act, or "".
func activationKernel(act string) string {
	for _, a := range Activations {
		if a.Act == act {
			return a.Kernel
		}
	}
	return ""
}

// checkGemm checks a definition of any gemm family of floats but ACT.
func checkGemm(d source.Define) error {
	if d.Name != "TYPE_A" && d.Name != "TYPE_B" {
		return checkOut(d)
	}
	if d.Value != "f16" && d.Value != "bf16" {
		return fmt.Errorf("%s=%s is neither f16 nor bf16, the types of 16 bits of a matrix in a product of T=f32", d.Name,
			d.Value)
	}
	return nil
}

// operandType returns the type in which A or B of a program is stored: TYPE_A or TYPE_B, or T.
func (c *Call) operandType(define string) string {
	if t, ok := c.Define(define); ok {
		return t
	}
	return c.Type("T")
}

func checkAct(d source.Define) error {
	if d.Name != "ACT" {
		return checkGemm(d)
	}
	var all []string
	for _, a := range Activations {
		all = append(all, a.Act)
	}
	if !slices.Contains(all, d.Value) {
		return fmt.Errorf("ACT=%s is not one of %s", d.Value, strings.Join(all, " "))
	}
	return nil
}

// gemmArguments checks a launch of a kernel of any gemm family, gemm_i8 included: each matrix has to be
// in its buffer, and no two rows of the results may have an element in common.
func gemmArguments(c *Call) bool {
	t, result := c.Type("T"), c.outType()
	m, n, k, ldc := int(c.Int(0)), int(c.Int(1)), int(c.Int(2)), int(c.Int(10))
	count, step := 1, [3]int{}
	switch {
	case c.Kernel == "gemm_batch":
		count, step = int(c.Int(11)), [3]int{int(c.Int(12)), int(c.Int(13)), int(c.Int(14))}
	case c.Kernel == "gemm_i8":
		t, result = "i8", "i32"
	}
	if m == 0 || n == 0 || count == 0 {
		return false
	}
	if c.Kernel != "gemm_i8" && c.Float(3) == 0 { // if alpha is 0, A and B are not read
		k = 0
	}
	ta, tb := t, t
	if c.Kernel != "gemm_i8" {
		ta, tb = c.operandType("TYPE_A"), c.operandType("TYPE_B")
	}
	needMatrices(c, 4, ta, flip(c.Flag("TRANS_A"), m, k), count, step[0])
	needMatrices(c, 6, tb, flip(c.Flag("TRANS_B"), k, n), count, step[1])
	needMatrices(c, 9, result, [2]int{m, n}, count, step[2])
	if !apart(count, m, n, ldc, step[2]) {
		c.Fail(9, "rows of %d elements overlap: the leading dimension is %d, and %d matrices are %d elements apart", n, ldc,
			count, step[2])
	}
	if c.Kernel == "gemm_bias" {
		needAll(c, result, n, 11)
	}
	return true
}

// gemmWork counts elements between the rows of a matrix, which a leading dimension leaves out, not, and C twice
// if it is read.
func gemmWork(c *Call, _ float64) (operations, moved float64) {
	t, result := [2]string{c.operandType("TYPE_A"), c.operandType("TYPE_B")}, c.outType()
	m, n, k, batch, shared := float64(c.Int(0)), float64(c.Int(1)), float64(c.Int(2)), 1.0, [2]bool{}
	switch c.Kernel {
	case "gemm_batch":
		batch, shared = float64(c.Int(11)), [2]bool{c.Int(12) == 0, c.Int(13) == 0}
	case "gemm_i8":
		t, result = [2]string{"i8", "i8"}, "i32"
	}
	if c.Float(3) == 0 {
		k = 0
	}
	operations = 2 * batch * m * n * k
	for i, elements := range []float64{m * k, k * n} {
		if !shared[i] {
			elements *= batch
		}
		moved += elements * float64(SizeOf(t[i]))
	}
	results := batch * m * n
	moved += results * float64(SizeOf(result))
	if c.Float(8) != 0 {
		operations += 2 * results
		moved += results * float64(SizeOf(result))
	}
	if c.Kernel == "gemm_bias" {
		operations += results
		moved += n * float64(SizeOf(result))
	}
	return operations, moved
}

// needMatrices ends the launch if buffer argument i is too small for count matrices of the given shape
// that are step elements apart. The argument after the buffer is their leading dimension.
func needMatrices(c *Call, i int, t string, shape [2]int, count, step int) {
	if rows, cols := shape[0], shape[1]; rows > 0 && cols > 0 {
		needAll(c, t, c.Product(rows-1, int(c.Int(i+1)))+c.Product(count-1, step)+cols, i)
	}
}

// apart reports whether no two rows of count matrices of m rows of n elements have an element in
// common. The rows of one matrix may lie between those of another.
func apart(count, m, n, ld, step int) bool {
	if m == 1 {
		ld = n
	}
	if ld < n {
		return false
	}
	for far := step; count > 1 && far < (m-1)*ld+n; far += step {
		row, col := far/ld, far%ld // row and column of the first matrix at which another one begins
		if col < n || ld-col < n && row+1 < m {
			return false
		}
		count--
	}
	return true
}

// refGemm computes C = alpha·op(A)·op(B) + beta·C, once or for each matrix of a batch, or with a
// bias and an activation.
func refGemm(c *Call) error {
	t := c.Type("T")
	m, n, k, alpha, beta := int(c.Int(0)), int(c.Int(1)), int(c.Int(2)), c.Float(3), c.Float(8)
	lda, ldb, ldc := int(c.Int(5)), int(c.Int(7)), int(c.Int(10))
	count, step := 1, [3]int{}
	if c.Kernel == "gemm_batch" {
		count, step = int(c.Int(11)), [3]int{int(c.Int(12)), int(c.Int(13)), int(c.Int(14))}
	}
	if alpha == 0 { // A and B are not read
		k = 0
	}
	if !IsFloat(t) {
		return refGemmInt(c, t, k, count, step)
	}
	ta, rowsA, colsA := refTrans(c, "TRANS_A", m, k)
	tb, rowsB, colsB := refTrans(c, "TRANS_B", k, n)
	result := c.outType()
	finish, set := refFinish(c, result), c.Set(9, result)
	for z := range count {
		a := refMatrix(c, 4, c.operandType("TYPE_A"), rowsA, colsA, z*step[0], lda)
		b := refMatrix(c, 6, c.operandType("TYPE_B"), rowsB, colsB, z*step[1], ldb)
		out := blas64.General{Rows: m, Cols: n, Stride: n, Data: make([]float64, m*n)}
		if beta != 0 { // else C is not read
			out = refMatrix(c, 9, result, m, n, z*step[2], ldc)
		}
		switch {
		case k == 0:
			floats.Scale(beta, out.Data)
			floats.AddConst(alpha*0, out.Data) // NaN where alpha is not finite
		case a.Stride >= a.Cols && b.Stride >= b.Cols && finite(a.Data, b.Data):
			blas64.Gemm(ta, tb, alpha, a, b, beta, out)
		default:
			refGemmLoop(ta, tb, k, alpha, a, b, beta, out)
		}
		for i := range m {
			for j := range n {
				set(z*step[2]+i*ldc+j, finish(j, out.Data[i*out.Stride+j]))
			}
		}
	}
	return nil
}

// refGemmInt computes the product of integers modulo 2^64 and stores the low bits.
func refGemmInt(c *Call, t string, k, count int, step [3]int) error {
	m, n, alpha, beta := int(c.Int(0)), int(c.Int(1)), c.Int(3), c.Int(8)
	lda, ldb, ldc := int(c.Int(5)), int(c.Int(7)), int(c.Int(10))
	transA, transB := c.Flag("TRANS_A"), c.Flag("TRANS_B")
	get := func(arg, first, ld, i, j int, trans bool) int64 {
		if trans {
			i, j = j, i
		}
		if t == "i32" {
			return int64(c.I32(arg)[first+i*ld+j])
		}
		return c.I64(arg)[first+i*ld+j]
	}
	for z := range count {
		for i := range m {
			for j := range n {
				sum := int64(0)
				for p := range k {
					sum += get(4, z*step[0], lda, i, p, transA) * get(6, z*step[1], ldb, p, j, transB)
				}
				if sum *= alpha; beta != 0 {
					sum += beta * get(9, z*step[2], ldc, i, j, false)
				}
				if at := z*step[2] + i*ldc + j; t == "i32" {
					c.I32(9)[at] = int32(sum)
				} else {
					c.I64(9)[at] = sum
				}
			}
		}
	}
	return nil
}

// refFinish returns the function that follows the product x in column j: the bias and the
// activation, if the kernel has them.
func refFinish(c *Call, t string) func(j int, x float64) float64 {
	if c.Kernel != "gemm_bias" {
		return func(_ int, x float64) float64 { return x }
	}
	name, _ := c.Define("ACT")
	act, bias := refActivations[activationKernel(name)], c.Get(11, t)
	return func(j int, x float64) float64 {
		if x += bias(j); act != nil {
			x = act(x)
		}
		return x
	}
}

// refGemmLoop computes the product by its definition. gonum leaves out products with a zero
// of A and so does not return NaN for 0·NaN and 0·∞.
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

// refTrans returns whether a rows×cols operand is stored transposed, and its size as stored.
func refTrans(c *Call, define string, rows, cols int) (t blas.Transpose, storedRows, storedCols int) {
	if c.Flag(define) {
		return blas.Trans, cols, rows
	}
	return blas.NoTrans, rows, cols
}

// refMatrix copies a matrix that begins at element first, with its leading dimension. Rows may
// have elements in common; then the copy has fewer than rows·cols elements.
func refMatrix(c *Call, arg int, t string, rows, cols, first, ld int) blas64.General {
	if rows <= 1 {
		ld = cols
	}
	x := blas64.General{Rows: rows, Cols: cols, Stride: ld}
	if rows > 0 && cols > 0 {
		x.Data = refRead(c.Get(arg, t), first, (rows-1)*ld+cols, 1)
	}
	return x
}
