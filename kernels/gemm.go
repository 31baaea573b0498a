package kernels

// The family gemm and its cases: tiles that do not fit, transposes, padding, NaN
// where nothing may be read.

import (
	"fmt"
	"math"

	"github.com/concord-compute/concord/source"
)

var gemmFamily = &Family{
	ID: "gemm", Doc: "C = alpha·op(A)·op(B) + beta·C for any m, n, k and transposes",
	Kernels: []string{"gemm"}, Types: floatTypes, Defines: []string{"T", "TRANS_A", "TRANS_B"},
	cases: gemmCases,
}

// gemmShape is one product.
type gemmShape struct {
	m, n, k        int
	transA, transB bool
	alpha, beta    float64
	pad            int // leading dimensions are that much longer than a row
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
		list = append(list, gemmCase(f, "f32", s))
		for trans := 1; trans < 4 && (s.m == 65 || s.m == 17 || s.m == 2); trans++ {
			s.transA, s.transB = trans&1 != 0, trans&2 != 0
			list = append(list, gemmCase(f, "f32", s))
		}
	}
	for _, t := range []string{"f64", "f16", "bf16"} {
		list = append(list, gemmCase(f, t, gemmShape{m: 2, n: 3, k: 5, alpha: 1}),
			gemmCase(f, t, gemmShape{m: 65, n: 63, k: 129, alpha: 0.5, beta: 2, transB: true}),
			gemmCase(f, t, gemmShape{m: 17, n: 131, k: 33, alpha: 1, transA: true, pad: 1}))
	}
	return list
}

func gemmCase(f *Family, t string, s gemmShape) Case {
	rowsA, colsA, rowsB, colsB := s.m, s.k, s.k, s.n
	if s.transA {
		rowsA, colsA = colsA, rowsA
	}
	if s.transB {
		rowsB, colsB = colsB, rowsB
	}
	lda, ldb, ldc := colsA+s.pad, colsB+s.pad, s.n+s.pad
	a, b, c := uniform(t, rowsA*lda, 8, -1, 1), uniform(t, rowsB*ldb, 9, -1, 1), uniform(t, s.m*ldc, 10, -1, 1)
	switch s.note {
	case " NaN in C":
		c = constant(s.m*ldc, math.NaN()) // beta is 0: C is not read
	case " NaN in A, Inf in B":
		a, b = mixed(a, math.NaN(), 3*lda+1, 64*lda+17), mixed(b, math.Inf(1), 2*ldb+5, 17*ldb+66)
	}
	if s.m*s.n == 0 {
		c = constant(1, 77)
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
	global, local := GemmGrid(s.m, s.n)
	k := f.newCase("gemm", t, shape).with(global, local, uintArg(s.m), uintArg(s.n), uintArg(s.k), value(scalarOf(t), s.alpha),
		in(t, rowsA*lda, a), uintArg(lda), in(t, rowsB*ldb, b), uintArg(ldb), value(scalarOf(t), s.beta),
		inout(t, s.m*ldc, c), uintArg(ldc))
	k.Defines = append(k.Defines, defA, defB)
	return k.within("ε·((k+2)·|alpha|·Σ|a||b| + 2|beta·c| + |result|)",
		"a sum of k products, in any order, fused or not, errs by at most k·ε·Σ|a||b|; alpha, beta and the reference round once more",
		func(_ int, in [][]float64, ref []float64) []float64 { return gemmBound(t, s, lda, ldb, ldc, in, ref) })
}

func gemmBound(t string, s gemmShape, lda, ldb, ldc int, in [][]float64, ref []float64) []float64 {
	u, tiny := roundoff(t), flush(t)
	a, b, c := in[4], in[6], in[9]
	bound := make([]float64, len(ref))
	for i := range s.m {
		for j := range s.n {
			sum := 0.0
			for p := range s.k {
				x, y := i*lda+p, p*ldb+j
				if s.transA {
					x = p*lda + i
				}
				if s.transB {
					y = j*ldb + p
				}
				sum += math.Abs(a[x] * b[y])
			}
			at := i*ldc + j
			e := float64(s.k+2) * math.Abs(s.alpha) * sum
			if s.beta != 0 {
				e += 2 * math.Abs(s.beta*c[at])
			}
			bound[at] = stored(t, ref[at], u*(e+math.Abs(ref[at]))+float64(s.k)*tiny)
		}
	}
	return bound
}
