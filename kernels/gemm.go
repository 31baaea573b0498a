package kernels

// The families gemm, gemm_batch and gemm_bias; gemm_cases.go has their cases.

import (
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
)

var gemmDefines = tiled(productTiles, gemmValues, "T", "TRANS_A", "TRANS_B", "TYPE_A", "TYPE_B", "OUT")

// productTypes are the types of gemm and gemm_batch. Integers of 8 bits have gemm_i8.
var productTypes = append(slices.Clone(floatTypes), "i32", "i64")

func init() {
	Register(Family{
		ID: "gemm", Doc: "C = alpha·op(A)·op(B) + beta·C for any m, n, k and transposes",
		Kernels: []string{"gemm"}, Types: productTypes, Defines: gemmDefines, Check: oneOf(gemmValues), Source: sources,
		Tile: gemmTile, Arguments: gemmArguments, Work: gemmWork, Reference: refGemm,
		Bound: knows(gemmLaunch), Rows: gemmRows,
		Cases: gemmCases,
	})
	Register(Family{
		ID: "gemm_batch", Doc: "gemm for a batch of matrices with any strides between them",
		Kernels: []string{"gemm_batch"}, Types: productTypes, Defines: gemmDefines, Check: oneOf(gemmValues),
		Source: sources, Tile: gemmTile, Arguments: gemmArguments, Work: gemmWork, Reference: refGemm,
		Bound: knows(gemmLaunch), Rows: gemmRows,
		Cases: batchCases,
	})
	Register(Family{
		ID: "gemm_bias", Doc: "gemm followed by a bias for each column and an activation",
		Kernels: []string{"gemm_bias"}, Types: floatTypes, Defines: append(slices.Clone(gemmDefines), "ACT"),
		Check: oneOf(gemmValues), Source: sources, Tile: gemmTile, Arguments: gemmArguments, Work: gemmWork,
		Reference: refGemm, Bound: knows(gemmLaunch), Rows: gemmRows, Cases: biasCases,
	})
}

// gemmValues are the values of definitions: of T=f32 a matrix may have a type of 16 bits, and results of other types
// may be f32. The values of ACT are those of Activations.
var gemmValues = map[string][]string{"TYPE_A": {"f16", "bf16"}, "TYPE_B": {"f16", "bf16"}, "OUT": {"f32"}}

func init() {
	for _, a := range Activations {
		gemmValues["ACT"] = append(gemmValues["ACT"], a.Act)
	}
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

// gemmTypes returns the types of the elements of A, B and C.
func gemmTypes(c *Call) [3]string {
	if c.Kernel == "gemm_i8" {
		return [3]string{"i8", "i8", "i32"}
	}
	return [3]string{c.Type("TYPE_A"), c.Type("TYPE_B"), c.Type("OUT")}
}

// gemmCount returns the number of products, and of A, B and C the elements from one matrix to the next.
func gemmCount(c *Call) (count int, step [3]int) {
	if c.Kernel != "gemm_batch" {
		return 1, step
	}
	return int(c.Int(11)), [3]int{int(c.Int(12)), int(c.Int(13)), int(c.Int(14))}
}

// gemmArguments checks a launch of a kernel of any gemm family, gemm_i8 included: each matrix has to be
// in its buffer, and no two rows of the results may have an element in common.
func gemmArguments(c *Call) bool {
	types, m, n, k, ldc := gemmTypes(c), int(c.Int(0)), int(c.Int(1)), int(c.Int(2)), int(c.Int(10))
	count, step := gemmCount(c)
	if m == 0 || n == 0 || count == 0 {
		return false
	}
	if c.Kernel != "gemm_i8" && c.Float(3) == 0 { // if alpha is 0, A and B are not read
		k = 0
	}
	needMatrices(c, 4, types[0], flip(c.Flag("TRANS_A"), m, k), count, step[0])
	needMatrices(c, 6, types[1], flip(c.Flag("TRANS_B"), k, n), count, step[1])
	needMatrices(c, 9, types[2], [2]int{m, n}, count, step[2])
	if !apart(count, m, n, ldc, step[2]) {
		c.Fail(9, "rows of %d elements overlap: the leading dimension is %d, and %d matrices are %d elements apart", n, ldc,
			count, step[2])
	}
	if c.Kernel == "gemm_bias" {
		needAll(c, types[2], n, 11)
	}
	return true
}

// gemmWork counts elements between the rows of a matrix, which a leading dimension leaves out, not, and C twice
// if it is read.
func gemmWork(c *Call, _ float64) (operations, moved float64) {
	types, m, n, k := gemmTypes(c), float64(c.Int(0)), float64(c.Int(1)), float64(c.Int(2))
	count, step := gemmCount(c)
	if c.Float(3) == 0 {
		k = 0
	}
	results, size := float64(count)*m*n, float64(SizeOf(types[2]))
	operations, moved = 2*results*k, results*size
	for i, elements := range []float64{m * k, k * n} {
		if step[i] != 0 { // else all products have the same matrix
			elements *= float64(count)
		}
		moved += elements * float64(SizeOf(types[i]))
	}
	if c.Float(8) != 0 {
		operations += 2 * results
		moved += results * size
	}
	if c.Kernel == "gemm_bias" {
		operations += results
		moved += n * size
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
	types, m, n, k, alpha, beta := gemmTypes(c), int(c.Int(0)), int(c.Int(1)), int(c.Int(2)), c.Float(3), c.Float(8)
	lda, ldb, ldc := int(c.Int(5)), int(c.Int(7)), int(c.Int(10))
	count, step := gemmCount(c)
	if alpha == 0 { // A and B are not read
		k = 0
	}
	if !IsFloat(types[0]) {
		return refGemmInt(c, types, k, count, step)
	}
	ta, rowsA, colsA := refTrans(c, "TRANS_A", m, k)
	tb, rowsB, colsB := refTrans(c, "TRANS_B", k, n)
	finish, set := refFinish(c, types[2]), c.Set(9, types[2])
	for z := range count {
		a := refMatrix(c, 4, types[0], rowsA, colsA, z*step[0], lda)
		b := refMatrix(c, 6, types[1], rowsB, colsB, z*step[1], ldb)
		out := blas64.General{Rows: m, Cols: n, Stride: n, Data: make([]float64, m*n)}
		if beta != 0 { // else C is not read
			out = refMatrix(c, 9, types[2], m, n, z*step[2], ldc)
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
func refGemmInt(c *Call, types [3]string, k, count int, step [3]int) error {
	m, n, alpha, beta, ldc := int(c.Int(0)), int(c.Int(1)), c.Int(3), c.Int(8), int(c.Int(10))
	elements := func(i int, t string) func(at int) int64 {
		get, unused := refGetBits(c, i, SizeOf(t)), 64-8*SizeOf(t)
		return func(at int) int64 { return int64(get(at)<<unused) >> unused } // with its sign
	}
	a, b, old := elements(4, types[0]), elements(6, types[1]), elements(9, types[2])
	downA, acrossA, downB, acrossB := int(c.Int(5)), 1, int(c.Int(7)), 1
	if c.Flag("TRANS_A") {
		downA, acrossA = acrossA, downA
	}
	if c.Flag("TRANS_B") {
		downB, acrossB = acrossB, downB
	}
	set := refSetBits(c, 9, SizeOf(types[2]))
	for z := range count {
		for i := range m {
			for j := range n {
				sum := int64(0)
				for p := range k {
					sum += a(z*step[0]+i*downA+p*acrossA) * b(z*step[1]+p*downB+j*acrossB)
				}
				at := z*step[2] + i*ldc + j
				if sum *= alpha; beta != 0 {
					sum += beta * old(at)
				}
				set(at, uint64(sum))
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
