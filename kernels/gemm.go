package kernels

// The families gemm, gemm_batch and gemm_bias and their cases: sizes that are not multiples of a
// tile, transposes, padding, NaN in memory that must not be read; batches with gaps between the
// matrices, with interleaved matrices and with a shared A or B; a bias and each activation.

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"github.com/concord-compute/concord/source"
)

var gemmDefines = []string{"T", "TRANS_A", "TRANS_B", "OUT"}

// productTypes are the types of gemm and gemm_batch. Integers of 8 bits have gemm_i8.
var productTypes = append(slices.Clone(floatTypes), "i32", "i64")

func init() {
	Register(Family{
		ID: "gemm", Doc: "C = alpha·op(A)·op(B) + beta·C for any m, n, k and transposes",
		Kernels: []string{"gemm"}, Types: productTypes, Defines: gemmDefines, Check: checkOut, Source: sources, Tile: productTile, Arguments: gemmArguments, Work: gemmWork, Reference: refGemm,
		Cases: gemmCases,
	})
	Register(Family{
		ID: "gemm_batch", Doc: "gemm for a batch of matrices with any strides between them",
		Kernels: []string{"gemm_batch"}, Types: productTypes, Defines: gemmDefines, Check: checkOut, Source: sources, Tile: productTile, Arguments: gemmArguments, Work: gemmWork, Reference: refGemm,
		Cases: batchCases,
	})
	Register(Family{
		ID: "gemm_bias", Doc: "gemm followed by a bias for each column and an activation",
		Kernels: []string{"gemm_bias"}, Types: floatTypes, Defines: append(slices.Clone(gemmDefines), "ACT"), Check: checkAct, Source: sources, Tile: productTile, Arguments: gemmArguments, Work: gemmWork, Reference: refGemm,
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

func checkAct(d source.Define) error {
	if d.Name != "ACT" {
		return checkOut(d)
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

// gemmResults are the pairs of the type of matrices and that of their products, besides f32.
var gemmResults = [][2]string{{"f64", "f64"}, {"f16", "f16"}, {"f16", "f32"}, {"bf16", "bf16"}, {"bf16", "f32"}}

// gemmShape describes one matrix product.
type gemmShape struct {
	m, n, k        int
	transA, transB bool
	alpha, beta    float64
	pad            int // leading dimension minus length of a row
	note           string
}

func gemmCases(f *Family) (list []Case) {
	for _, s := range []gemmShape{
		{m: 1, n: 1, k: 1, alpha: 1}, {m: 0, n: 5, k: 5, alpha: 1}, {m: 5, n: 0, k: 5, alpha: 1},
		{m: 3, n: 5, k: 0, alpha: 1, beta: 2}, {m: 3, n: 5, k: 0, alpha: 1}, {m: 2, n: 3, k: 5, alpha: 1},
		{m: 31, n: 33, k: 32, alpha: 1.5, beta: -0.5}, {m: 64, n: 64, k: 16, alpha: 1}, {m: 65, n: 63, k: 17, alpha: 1, beta: 1},
		{m: 127, n: 131, k: 67, alpha: 1}, {m: 1, n: 257, k: 1000, alpha: 1}, {m: 257, n: 1, k: 31, alpha: 1},
		{m: 17, n: 19, k: 23, alpha: 2, beta: 1, pad: 3}, {m: 7, n: 9, k: 11, beta: 3, note: " alpha=0"},
		{m: 5, n: 70, k: 9, alpha: 1, note: " NaN in C"}, {m: 66, n: 67, k: 18, alpha: 1, note: " NaN in A, Inf in B"},
	} {
		list = append(list, gemmCase(f, "f32", "f32", s))
		for trans := 1; trans < 4 && (s.m == 65 || s.m == 17 || s.m == 2); trans++ {
			s.transA, s.transB = trans&1 != 0, trans&2 != 0
			list = append(list, gemmCase(f, "f32", "f32", s))
		}
	}
	for _, r := range gemmResults {
		t, result := r[0], r[1]
		list = append(list, gemmCase(f, t, result, gemmShape{m: 2, n: 3, k: 5, alpha: 1}),
			gemmCase(f, t, result, gemmShape{m: 65, n: 63, k: 129, alpha: 0.5, beta: 2, transB: true}),
			gemmCase(f, t, result, gemmShape{m: 17, n: 131, k: 33, alpha: 1, transA: true, pad: 1}))
	}
	for _, t := range []string{"i32", "i64"} {
		for _, s := range []gemmShape{{m: 1, n: 1, k: 1, alpha: 1}, {m: 0, n: 5, k: 5, alpha: 1}, {m: 3, n: 5, k: 0, alpha: 1, beta: 2},
			{m: 7, n: 9, k: 11, beta: 3, note: " alpha=0"}, {m: 65, n: 63, k: 129, alpha: -3, beta: 1 << 30, pad: 3}, {m: 67, n: 131, k: 17, alpha: 1}} {
			for trans := 0; trans < 4 && (trans == 0 || s.m > 60); trans++ {
				s.transA, s.transB = trans&1 != 0, trans&2 != 0
				list = append(list, gemmCase(f, t, t, s))
			}
		}
	}
	return list
}

// batchCases returns cases with gaps between the matrices, with rows of the matrices C
// interleaved (woven), and with one A or B for the whole batch.
func batchCases(f *Family) (list []Case) {
	for _, b := range []gemmBatch{
		{gemmShape: gemmShape{m: 1, n: 1, k: 1, alpha: 1}, count: 3},
		{gemmShape: gemmShape{m: 2, n: 3, k: 5, alpha: 1}, count: 0},
		{gemmShape: gemmShape{m: 2, n: 3, k: 5, alpha: 1, beta: 1}, count: 1},
		{gemmShape: gemmShape{m: 0, n: 3, k: 5, alpha: 1}, count: 3},
		{gemmShape: gemmShape{m: 3, n: 17, k: 0, alpha: 1, beta: 2}, count: 3, gap: 1},
		{gemmShape: gemmShape{m: 3, n: 1, k: 17, alpha: 1}, count: 17, sharedB: true},
		{gemmShape: gemmShape{m: 17, n: 3, k: 64, alpha: 1, beta: -0.5}, count: 3, gap: 5, sharedA: true},
		{gemmShape: gemmShape{m: 64, n: 64, k: 64, alpha: 1}, count: 3},
		{gemmShape: gemmShape{m: 65, n: 63, k: 17, alpha: 0.5, beta: 1, pad: 3}, count: 3, gap: 7},
		{gemmShape: gemmShape{m: 17, n: 19, k: 23, alpha: 1, beta: 2}, count: 5, woven: true},
		{gemmShape: gemmShape{m: 3, n: 64, k: 17, alpha: 1}, count: 4, sharedA: true, sharedB: true},
		{gemmShape: gemmShape{m: 7, n: 9, k: 11, beta: 3, note: " alpha=0"}, count: 2},
		{gemmShape: gemmShape{m: 17, n: 33, k: 9, alpha: 1, note: " NaN in C"}, count: 2},
	} {
		list = append(list, batchCase(f, "f32", "f32", b))
		for trans := 1; trans < 4 && (b.m == 65 || b.m == 17 && b.n > 3); trans++ {
			b.transA, b.transB = trans&1 != 0, trans&2 != 0
			list = append(list, batchCase(f, "f32", "f32", b))
		}
	}
	for _, r := range gemmResults {
		t, result := r[0], r[1]
		list = append(list, batchCase(f, t, result, gemmBatch{gemmShape: gemmShape{m: 2, n: 3, k: 5, alpha: 1}, count: 3, gap: 1}),
			batchCase(f, t, result, gemmBatch{gemmShape: gemmShape{m: 65, n: 17, k: 64, alpha: 0.5, beta: 2, transB: true}, count: 3, woven: true}),
			batchCase(f, t, result, gemmBatch{gemmShape: gemmShape{m: 17, n: 67, k: 33, alpha: 1, transA: true, pad: 1}, count: 2, sharedB: true}))
	}
	for _, t := range []string{"i32", "i64"} {
		list = append(list, batchCase(f, t, t, gemmBatch{gemmShape: gemmShape{m: 2, n: 3, k: 5, alpha: 1}, count: 0}),
			batchCase(f, t, t, gemmBatch{gemmShape: gemmShape{m: 17, n: 19, k: 23, alpha: 1, beta: 2, transB: true}, count: 5, woven: true}),
			batchCase(f, t, t, gemmBatch{gemmShape: gemmShape{m: 65, n: 67, k: 33, alpha: -1, transA: true, pad: 1}, count: 3, sharedB: true}))
	}
	return list
}

// biasCases returns cases with every activation, applied to sums from about -8 to 8.
func biasCases(f *Family) (list []Case) {
	for _, s := range []gemmShape{
		{m: 1, n: 1, k: 1, alpha: 1}, {m: 0, n: 5, k: 5, alpha: 1}, {m: 3, n: 5, k: 0, alpha: 1, beta: 2}, {m: 3, n: 17, k: 0, alpha: 1},
		{m: 64, n: 64, k: 64, alpha: 1}, {m: 17, n: 1, k: 64, alpha: 1}, {m: 1, n: 257, k: 17, alpha: 1, beta: 1},
		{m: 65, n: 63, k: 17, alpha: 2, beta: 1, pad: 3}, {m: 7, n: 9, k: 11, beta: 3, note: " alpha=0"}, {m: 5, n: 70, k: 9, alpha: 1, note: " NaN in C"},
	} {
		list = append(list, biasCase(f, "f32", "f32", "none", s))
		for trans := 1; trans < 4 && s.m == 65; trans++ {
			s.transA, s.transB = trans&1 != 0, trans&2 != 0
			list = append(list, biasCase(f, "f32", "f32", "none", s))
		}
	}
	for _, a := range Activations[1:] {
		list = append(list, biasCase(f, "f32", "f32", a.Act, gemmShape{m: 3, n: 5, k: 3, alpha: 8}),
			biasCase(f, "f32", "f32", a.Act, gemmShape{m: 65, n: 131, k: 17, alpha: 2, beta: 1, pad: 1}))
	}
	list = append(list, biasCase(f, "f32", "f32", "relu", gemmShape{m: 17, n: 67, k: 33, alpha: 1, transA: true, transB: true}))
	for _, p := range [][2]string{{"f64", "gelu_tanh"}, {"f16", "gelu_tanh"}, {"f64", "none"}, {"f64", "tanh"}, {"f64", "gelu"}, {"f16", "none"}, {"f16", "relu"}, {"f16", "silu"},
		{"bf16", "none"}, {"bf16", "sigmoid"}, {"bf16", "gelu"}} {
		for _, r := range gemmResults {
			if r[0] == p[0] {
				list = append(list, biasCase(f, r[0], r[1], p[1], gemmShape{m: 3, n: 5, k: 3, alpha: 8}),
					biasCase(f, r[0], r[1], p[1], gemmShape{m: 17, n: 67, k: 33, alpha: 2, beta: 1}))
			}
		}
	}
	return list
}

func gemmCase(f *Family, t, result string, s gemmShape) Case {
	return s.begin(f, "gemm", t, result, s.place(1, 0)).within("ε·((k+2)·|alpha|·Σ|a||b| + 2|beta·c| + |result|)", gemmWhy,
		func(_ int, in [][]float64, ref []float64) []float64 {
			return gemmBound(t, result, s, s.place(1, 0), in, ref)
		}).wraps(t)
}

// wraps states that the results are exact if the type is one of integers.
func (c Case) wraps(t string) Case {
	if IsFloat(t) {
		return c
	}
	c.Bound = nil
	return c.exact("integers wrap modulo a power of two")
}

const gemmWhy = "a sum of k products, in any order, fused or not, errs by at most k·ε·Σ|a||b|; the products with alpha and beta and the reference round once more each"

// gemmBatch describes a batch of count products.
type gemmBatch struct {
	gemmShape
	count, gap              int // gap: elements between one matrix and the next
	sharedA, sharedB, woven bool
}

func (b *gemmBatch) place() gemmPlace {
	p := b.gemmShape.place(b.count, b.gap)
	p.share(0, b.sharedA)
	p.share(1, b.sharedB)
	if b.woven {
		p.ld[2], p.stride[2], p.length[2] = b.n*b.count, b.n, b.m*b.n*b.count
	}
	return p
}

func batchCase(f *Family, t, result string, b gemmBatch) Case {
	p := b.place()
	c := b.begin(f, "gemm_batch", t, result, p)
	c.Sizes = []int{b.count, b.m, b.n}
	c.Args = append(c.Args, uintArg(b.count), ulongArg(p.stride[0]), ulongArg(p.stride[1]), ulongArg(p.stride[2]))
	c.Shape = fmt.Sprintf("%d× %s", b.count, c.Shape)
	if b.gap > 0 {
		c.Shape += " gaps"
	}
	if b.sharedA {
		c.Shape += " one A"
	}
	if b.sharedB {
		c.Shape += " one B"
	}
	if b.woven {
		c.Shape += " woven"
	}
	return c.within("ε·((k+2)·|alpha|·Σ|a||b| + 2|beta·c| + |result|)", gemmWhy,
		func(_ int, in [][]float64, ref []float64) []float64 {
			return gemmBound(t, result, b.gemmShape, p, in, ref)
		}).wraps(t)
}

func biasCase(f *Family, t, result, act string, s gemmShape) Case {
	p := s.place(1, 0)
	c := s.begin(f, "gemm_bias", t, result, p)
	c.Args = append(c.Args, in(result, s.n, Uniform(result, s.n, 11, -2, 2)))
	if act != "none" {
		c.Shape += " " + act
		c.Defines = append(c.Defines, source.Define{Name: "ACT", Value: act})
	}
	return c.within("ε·(D·((k+3)·|alpha|·Σ|a||b| + 3|beta·c| + |bias|) + E·|result|)",
		"the sum errs as in gemm, with one more rounding; an activation whose derivative is at most D multiplies that error by D, and adds its own, E, which is that of the family activation",
		func(_ int, in [][]float64, ref []float64) []float64 { return biasBound(t, result, act, s, p, in, ref) })
}

// gemmPlace is the layout of the matrices A, B and C of a case: how many there are, and for each of
// the three the leading dimension, the stride between matrices and the length of the buffer.
type gemmPlace struct {
	count              int
	ld, stride, length [3]int
}

// place returns the layout of count matrices one after another with a gap between them.
func (s *gemmShape) place(count, gap int) (p gemmPlace) {
	p.count = count
	for i, rowsCols := range [3][2]int{flip(s.transA, s.m, s.k), flip(s.transB, s.k, s.n), {s.m, s.n}} {
		p.ld[i] = rowsCols[1] + s.pad
		size := rowsCols[0] * p.ld[i]
		p.stride[i] = size + gap
		p.length[i] = max(count-1, 0)*p.stride[i] + size
	}
	return p
}

// share changes the layout, if on, so that all products have the same matrix i (0 is A, 1 is B).
func (p *gemmPlace) share(i int, on bool) {
	if on {
		p.length[i] -= max(p.count-1, 0) * p.stride[i]
		p.stride[i] = 0
	}
}

func flip(on bool, rows, cols int) [2]int {
	if on {
		return [2]int{cols, rows}
	}
	return [2]int{rows, cols}
}

// begin returns a case with the arguments and definitions that all three kernels have.
func (s *gemmShape) begin(f *Family, kernel, t, result string, p gemmPlace) Case {
	a, b, c := Uniform(t, p.length[0], 8, -1, 1), Uniform(t, p.length[1], 9, -1, 1), Uniform(t, p.length[2], 10, -1, 1)
	switch s.note {
	case " NaN in C":
		c = constant(p.length[2], math.NaN()) // beta is 0: C is not read
	case " NaN in A, Inf in B":
		a, b = mixed(a, math.NaN(), 3*p.ld[0]+1, 64*p.ld[0]+17), mixed(b, math.Inf(1), 2*p.ld[1]+5, 17*p.ld[1]+66)
	}
	if s.m*s.n == 0 {
		c = constant(p.length[2], 77)
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
	k := f.Case(kernel, t, shape, s.m, s.n).with(uintArg(s.m), uintArg(s.n), uintArg(s.k), value(scalarOf(t), s.alpha),
		in(t, p.length[0], a), uintArg(p.ld[0]), in(t, p.length[1], b), uintArg(p.ld[1]), value(scalarOf(t), s.beta),
		inout(result, p.length[2], c), uintArg(p.ld[2]))
	k.Defines = append(k.Defines, defA, defB)
	k.results(t, result)
	return k
}

// visit calls f for every element of C with its index in the buffer, its column, the sum of its
// products, and the sum of their magnitudes.
func (s *gemmShape) visit(p gemmPlace, in [][]float64, f func(at, j int, sum, size float64)) {
	a, b := in[4], in[6]
	for z := range p.count {
		a0, b0, c0 := z*p.stride[0], z*p.stride[1], z*p.stride[2]
		for i := range s.m {
			for j := range s.n {
				sum, size := 0.0, 0.0
				for q := range s.k {
					x, y := a0+i*p.ld[0]+q, b0+q*p.ld[1]+j
					if s.transA {
						x = a0 + q*p.ld[0] + i
					}
					if s.transB {
						y = b0 + j*p.ld[1] + q
					}
					sum += a[x] * b[y]
					size += math.Abs(a[x] * b[y])
				}
				f(c0+i*p.ld[2]+j, j, sum, size)
			}
		}
	}
}

func gemmBound(t, result string, s gemmShape, p gemmPlace, in [][]float64, ref []float64) []float64 {
	u, tiny := Roundoff(t), Smallest(t)
	bound := make([]float64, len(ref))
	s.visit(p, in, func(at, _ int, _, size float64) {
		e := float64(s.k+2) * math.Abs(s.alpha) * size
		if s.beta != 0 {
			e += 2 * math.Abs(s.beta*in[9][at])
		}
		bound[at] = Stored(result, ref[at], u*(e+math.Abs(ref[at]))+float64(s.k)*tiny)
	})
	return bound
}

func biasBound(t, result, act string, s gemmShape, p gemmPlace, in [][]float64, ref []float64) []float64 {
	u, tiny := Roundoff(t), Smallest(t)
	steepest, own := 1.0, func(float64) float64 { return 1 }
	if e, ok := activationErrors[activationKernel(act)]; ok {
		steepest, own = 1.13, e.of // the largest derivative of all activations, that of gelu
	}
	bound := make([]float64, len(ref))
	s.visit(p, in, func(at, j int, sum, size float64) {
		x, e := s.alpha*sum+in[11][j], float64(s.k+3)*math.Abs(s.alpha)*size+math.Abs(in[11][j])
		if s.beta != 0 {
			x += s.beta * in[9][at]
			e += 3 * math.Abs(s.beta*in[9][at])
		}
		bound[at] = Stored(result, ref[at], u*(steepest*e+own(x)*math.Abs(ref[at]))+(float64(s.k)+2+math.Abs(x))*tiny)
	})
	return bound
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
	needMatrices(c, 4, t, flip(c.Flag("TRANS_A"), m, k), count, step[0])
	needMatrices(c, 6, t, flip(c.Flag("TRANS_B"), k, n), count, step[1])
	needMatrices(c, 9, result, [2]int{m, n}, count, step[2])
	if !apart(count, m, n, ldc, step[2]) {
		c.Fail(9, "rows of %d elements overlap: the leading dimension is %d, and %d matrices are %d elements apart", n, ldc, count, step[2])
	}
	if c.Kernel == "gemm_bias" {
		needAll(c, result, n, 11)
	}
	return true
}

// gemmWork counts elements between the rows of a matrix, which a leading dimension leaves out, not, and C twice if it is read.
func gemmWork(c *Call, _ float64) (operations, moved float64) {
	t, result := c.Type("T"), c.outType()
	m, n, k, batch, shared := float64(c.Int(0)), float64(c.Int(1)), float64(c.Int(2)), 1.0, [2]bool{}
	switch c.Kernel {
	case "gemm_batch":
		batch, shared = float64(c.Int(11)), [2]bool{c.Int(12) == 0, c.Int(13) == 0}
	case "gemm_i8":
		t, result = "i8", "i32"
	}
	if c.Float(3) == 0 {
		k = 0
	}
	operations = 2 * batch * m * n * k
	for i, elements := range []float64{m * k, k * n} {
		if !shared[i] {
			elements *= batch
		}
		moved += elements * float64(SizeOf(t))
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
		a := refMatrix(c, 4, t, rowsA, colsA, z*step[0], lda)
		b := refMatrix(c, 6, t, rowsB, colsB, z*step[1], ldb)
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
