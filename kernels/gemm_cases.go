package kernels

// The cases of the families gemm, gemm_batch and gemm_bias: sizes that are not multiples of a
// tile, transposes, padding, NaN in memory that must not be read; batches with gaps between the
// matrices, with interleaved matrices and with a shared A or B; a bias and each activation.

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// gemmResults are the pairs of the type of matrices and that of their products, besides f32.
var gemmResults = [][2]string{{"f64", "f64"}, {"f16", "f16"}, {"f16", "f32"}, {"bf16", "bf16"}, {"bf16", "f32"}}

// gemmShape describes one matrix product.
type gemmShape struct {
	m, n, k        int
	transA, transB bool
	alpha, beta    float64
	pad            int // leading dimension minus length of a row
	note           string
	types          [2]string // TYPE_A and TYPE_B, or "" for T
}

// stored returns the type in which matrix i is stored (0 is A, 1 is B).
func (s *gemmShape) stored(i int, t string) string {
	if s.types[i] != "" {
		return s.types[i]
	}
	return t
}

func gemmCases(f *Family) (list []Case) {
	for _, s := range []gemmShape{
		{m: 1, n: 1, k: 1, alpha: 1}, {m: 0, n: 5, k: 5, alpha: 1}, {m: 5, n: 0, k: 5, alpha: 1},
		{m: 3, n: 5, k: 0, alpha: 1, beta: 2}, {m: 3, n: 5, k: 0, alpha: 1}, {m: 2, n: 3, k: 5, alpha: 1},
		{m: 31, n: 33, k: 32, alpha: 1.5, beta: -0.5}, {m: 64, n: 64, k: 16, alpha: 1},
		{m: 65, n: 63, k: 17, alpha: 1, beta: 1},
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
	for _, s := range []gemmShape{{m: 1, n: 257, k: 1000}, {m: 130, n: 1, k: 8209, transB: true},
		{m: 3, n: 700, k: 150, beta: -0.5, pad: 3}, {m: 5, n: 700, k: 150, transB: true, pad: 1},
		{m: 700, n: 7, k: 150, beta: 2}, {m: 700, n: 8, k: 150, transA: true}, {m: 65, n: 63, k: 129},
		{m: 2, n: 3, k: 0, beta: 1}} {
		for i, types := range [][2]string{{"", "bf16"}, {"", "f16"}, {"bf16", ""}, {"f16", "bf16"}, {}} {
			s.alpha, s.types = 1+float64(i)/2, types
			list = append(list, gemmCase(f, "f32", "f32", s))
		}
	}
	for i, sides := range [][]string{{"16", "4", "4", "16", "0"}, {"8", "4", "16", "16", "16"},
		{"4", "16", "4", "64", "4"}, {"16", "4", "8", "32", "4"}} {
		c := gemmCase(f, "f32", "f32", gemmShape{m: 165, n: 139, k: 71, alpha: 1.5, beta: 1, pad: 3, transA: i&1 != 0,
			transB: i&2 != 0, note: " tile " + strings.Join(sides, "×")})
		for j, t := range productTiles {
			c = c.define(t.define, sides[j])
		}
		list = append(list, c)
	}
	for _, t := range []string{"i32", "i64"} {
		for _, s := range []gemmShape{{m: 1, n: 1, k: 1, alpha: 1}, {m: 0, n: 5, k: 5, alpha: 1},
			{m: 3, n: 5, k: 0, alpha: 1, beta: 2},
			{m: 7, n: 9, k: 11, beta: 3, note: " alpha=0"}, {m: 65, n: 63, k: 129, alpha: -3, beta: 1 << 30, pad: 3},
			{m: 67, n: 131, k: 17, alpha: 1}} {
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
		list = append(list, batchCase(f, t, result, gemmBatch{gemmShape: gemmShape{m: 2, n: 3, k: 5, alpha: 1}, count: 3,
			gap: 1}),
			batchCase(f, t, result, gemmBatch{gemmShape: gemmShape{m: 65, n: 17, k: 64, alpha: 0.5, beta: 2, transB: true},
				count: 3, woven: true}),
			batchCase(f, t, result, gemmBatch{gemmShape: gemmShape{m: 17, n: 67, k: 33, alpha: 1, transA: true, pad: 1},
				count: 2, sharedB: true}))
	}
	for _, t := range []string{"i32", "i64"} {
		list = append(list, batchCase(f, t, t, gemmBatch{gemmShape: gemmShape{m: 2, n: 3, k: 5, alpha: 1}, count: 0}),
			batchCase(f, t, t, gemmBatch{gemmShape: gemmShape{m: 17, n: 19, k: 23, alpha: 1, beta: 2, transB: true}, count: 5,
				woven: true}),
			batchCase(f, t, t, gemmBatch{gemmShape: gemmShape{m: 65, n: 67, k: 33, alpha: -1, transA: true, pad: 1}, count: 3,
				sharedB: true}))
	}
	return list
}

// biasCases returns cases with every activation, applied to sums from about -8 to 8.
func biasCases(f *Family) (list []Case) {
	for _, s := range []gemmShape{
		{m: 1, n: 1, k: 1, alpha: 1}, {m: 0, n: 5, k: 5, alpha: 1}, {m: 3, n: 5, k: 0, alpha: 1, beta: 2},
		{m: 3, n: 17, k: 0, alpha: 1},
		{m: 64, n: 64, k: 64, alpha: 1}, {m: 17, n: 1, k: 64, alpha: 1}, {m: 1, n: 257, k: 17, alpha: 1, beta: 1},
		{m: 65, n: 63, k: 17, alpha: 2, beta: 1, pad: 3}, {m: 7, n: 9, k: 11, beta: 3, note: " alpha=0"},
		{m: 5, n: 70, k: 9, alpha: 1, note: " NaN in C"},
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
	list = append(list, biasCase(f, "f32", "f32", "relu", gemmShape{m: 17, n: 67, k: 33, alpha: 1, transA: true,
		transB: true}))
	for _, p := range [][2]string{{"f64", "gelu_tanh"}, {"f16", "gelu_tanh"}, {"f64", "none"}, {"f64", "tanh"},
		{"f64", "gelu"}, {"f16", "none"}, {"f16", "relu"}, {"f16", "silu"},
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

const gemmWhy = "a sum of k products, in any order, fused or not, errs by at most k·ε·Σ|a||b|; the products with " +
	"alpha and beta and the reference round once more each"

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
		c = c.define("ACT", act)
		c.Shape += " " + act
	}
	return c.within("ε·(D·((k+3)·|alpha|·Σ|a||b| + 3|beta·c| + |bias|) + E·|result|)",
		"the sum errs as in gemm, with one more rounding; an activation whose derivative is at most D multiplies that "+
			"error by D, and adds its own, E, which is that of the family activation",
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

// begin returns a case with the arguments and definitions that all products of matrices have.
func (s *gemmShape) begin(f *Family, kernel, t, result string, p gemmPlace) Case {
	ta, tb := s.stored(0, t), s.stored(1, t)
	a, b, c := Uniform(ta, p.length[0], 8, -1, 1), Uniform(tb, p.length[1], 9, -1, 1),
		Uniform(result, p.length[2], 10, -1, 1)
	switch s.note {
	case " all -128":
		a, b = constant(p.length[0], -128), constant(p.length[1], -128)
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
	k := f.Case(kernel, t, shape, s.m, s.n).with(uintArg(s.m), uintArg(s.n), uintArg(s.k), value(scalarOf(t), s.alpha),
		in(ta, p.length[0], a), uintArg(p.ld[0]), in(tb, p.length[1], b), uintArg(p.ld[1]), value(scalarOf(t), s.beta),
		inout(result, p.length[2], c), uintArg(p.ld[2]))
	for i, name := range []string{"TRANS_A", "TRANS_B"} {
		on := "0"
		if [2]bool{s.transA, s.transB}[i] {
			on = "1"
			k.Shape += " " + name
		}
		k = k.define(name, on)
	}
	for i, name := range []string{"TYPE_A", "TYPE_B"} {
		if s.types[i] != "" {
			k.Shape += " " + name + "=" + s.types[i]
			k = k.define(name, s.types[i])
		}
	}
	if slices.Contains(f.Defines, "OUT") {
		k = k.results(t, result)
	}
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
