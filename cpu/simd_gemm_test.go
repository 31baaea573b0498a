package cpu

// Products beside those of gonum, between guard pages.

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

// gemmTrial is one product between guard pages, or count of them if that is not 0, or with
// a bias if act is not "".
type gemmTrial struct {
	typ            string
	m, n, k        int
	transA, transB bool
	alpha, beta    float64
	pad            int

	count, gap int
	shared     [2]bool // all products have the same A, B
	woven      bool    // the rows of each C lie between those of the others
	act        string
	types      [2]string // of A and B, unless they are ""
}

// stored returns the type of A or B, and its definition.
func (g *gemmTrial) stored(i int) (typ string, defines []source.Define) {
	if g.types[i] == "" {
		return g.typ, nil
	}
	return g.types[i], []source.Define{{Name: []string{"TYPE_A", "TYPE_B"}[i], Value: g.types[i]}}
}

// lay returns the leading dimension of operand i, the number of elements from one matrix to the
// next, and that of all matrices.
func (g *gemmTrial) lay(i, rows, cols int) (ld, step, n int) {
	count := max(g.count, 1)
	ld = cols + g.pad
	if rows > 0 && cols > 0 {
		n = (rows-1)*ld + cols
	}
	switch {
	case i < 2 && g.shared[i]:
		return ld, 0, n
	case i == 2 && g.woven:
		ld = count * (cols + g.pad)
		return ld, cols + g.pad, max(rows-1, 0)*ld + (count-1)*(cols+g.pad) + cols
	}
	step = n + g.gap
	return ld, step, (count-1)*step + n
}

func (g *gemmTrial) run(t testing.TB, d *device, f *fence) error {
	t.Helper()
	flip := func(on bool, a, b int) (int, int) {
		if on {
			return b, a
		}
		return a, b
	}
	rows, cols := flip(g.transA, g.m, g.k)
	lda, stepA, na := g.lay(0, rows, cols)
	rows, cols = flip(g.transB, g.k, g.n)
	ldb, stepB, nb := g.lay(1, rows, cols)
	ldc, stepC, nc := g.lay(2, g.m, g.n)
	typeA, defineA := g.stored(0)
	typeB, defineB := g.stored(1)
	a, b, c := f.numbers(typeA, na), f.numbers(typeB, nb), f.numbers(g.typ, nc)
	before := kernels.Decode(g.typ, c)
	if g.beta == 0 {
		for i := range before {
			before[i] = math.NaN()
		}
		copy(c, kernels.Encode(g.typ, before))
	}
	old := bytes.Clone(c)
	scalar := func(v float64) any {
		if g.typ == "f64" {
			return v
		}
		return float32(v)
	}
	kernel, defines := "gemm", []source.Define{{Name: "T", Value: g.typ}, {Name: "TRANS_A", Value: zeroOne(g.transA)},
		{Name: "TRANS_B", Value: zeroOne(g.transB)}}
	defines = append(append(defines, defineA...), defineB...)
	args := []any{uint32(g.m), uint32(g.n), uint32(g.k), scalar(g.alpha), a, uint32(lda), b, uint32(ldb), scalar(g.beta),
		c, uint32(ldc)}
	bias, act := make([]float64, g.n), func(x float64) float64 { return x }
	switch {
	case g.count > 0:
		kernel, args = "gemm_batch", append(args, uint32(g.count), uint64(stepA), uint64(stepB), uint64(stepC))
	case g.act != "":
		data := f.numbers(g.typ, g.n)
		kernel, args, defines = "gemm_bias", append(args, data), append(defines, source.Define{Name: "ACT", Value: g.act})
		bias = kernels.Decode(g.typ, data)
		act = (&call{Call: Call{Unit: biasUnit(t, defines)}}).activation(goActivations)
	}
	if err := invoke(t, d, kernel, kernel, defines, [3]int{1, 1, 1}, args...); err != nil {
		return err
	}
	x, y, got, size := kernels.Decode(typeA, a), kernels.Decode(typeB, b), kernels.Decode(g.typ, c), kernels.SizeOf(g.typ)
	u := map[string]float64{"f64": 0x1p-52, "f32": 0x1p-24, "f16": 0x1p-10, "bf16": 0x1p-7}[g.typ]
	small := 0x1p-24
	if g.typ == "f64" {
		small = 0x1p-52
	}
	product := func(z int, x, y []float64) []float64 {
		operand := func(x []float64, trans bool, step, rows, cols, ld int) (blas.Transpose, blas64.General) {
			t := blas.NoTrans
			if rows, cols = flip(trans, rows, cols); trans {
				t = blas.Trans
			}
			return t, blas64.General{Rows: rows, Cols: cols, Stride: ld, Data: x[z*step:]}
		}
		ta, a := operand(x, g.transA, stepA, g.m, g.k, lda)
		tb, b := operand(y, g.transB, stepB, g.k, g.n, ldb)
		out := blas64.General{Rows: g.m, Cols: g.n, Stride: max(g.n, 1), Data: make([]float64, g.m*g.n)}
		if g.m > 0 && g.n > 0 && g.k > 0 {
			blas64.Gemm(ta, tb, 1, a, b, 0, out)
		}
		return out.Data
	}
	ax, ay := magnitudes(x), magnitudes(y)
	for z := range max(g.count, 1) {
		sums, weights := product(z, x, y), product(z, ax, ay)
		for i := range g.m {
			for j := range g.n {
				sum, weight, at := sums[i*g.n+j], weights[i*g.n+j], z*stepC+i*ldc+j
				sum = g.alpha*sum + bias[j]
				weight = math.Abs(g.alpha)*weight + math.Abs(bias[j])
				allowed := small * float64(g.k+4) * weight
				if g.beta != 0 {
					sum += g.beta * before[at]
					allowed += u * math.Abs(g.beta*before[at])
				}
				want := act(sum)
				allowed *= 1.13 // the largest derivative of an activation
				if g.typ == "f16" {
					allowed += 0x1p-24 // the distance of denormal halves
				}
				if allowed += 2 * u * math.Abs(want); g.act != "" {
					allowed += 60 * small * math.Abs(want)
				}
				if !(math.Abs(want-got[at]) <= allowed) {
					require.Equal(t, want, got[at], "%+v at %d,%d of %d", *g, i, j, z)
				}
				copy(old[at*size:], c[at*size:(at+1)*size])
			}
		}
	}
	require.True(t, bytes.Equal(old, c), "%+v wrote between the rows", *g)
	f.free()
	return nil
}

func biasUnit(t testing.TB, defines []source.Define) *source.Unit {
	t.Helper()
	u, err := kernels.Unit("gemm_bias", &source.Features{FP64: true}, defines...)
	require.NoError(t, err)
	return u
}

func zeroOne(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// anyGemm returns a small random product.
func (f *fence) anyGemm(i int) gemmTrial {
	g := gemmTrial{typ: []string{"f32", "f64", "f32", "f64", "f16", "bf16"}[f.r.IntN(6)],
		m: f.r.IntN(71), n: f.r.IntN(71), k: f.r.IntN(71), transA: f.r.IntN(3) == 0, transB: f.r.IntN(3) == 0,
		alpha: []float64{1, 1, 0.5, 0}[f.r.IntN(4)], beta: []float64{0, 1, -2}[f.r.IntN(3)], pad: f.r.IntN(2) * f.r.IntN(9)}
	switch i % 10 { // narrow products use other methods
	case 0:
		g.m = f.r.IntN(5)
	case 1:
		g.n = f.r.IntN(5)
	case 2:
		g.k = f.r.IntN(5)
	}
	return g
}

func TestGemmShapes(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 3)
		count := 1500
		if brief() || d.simd == nil {
			count = 200
		}
		for i := range count {
			g := f.anyGemm(i)
			require.NoError(t, g.run(t, d, f), "%+v", g)
		}
	})
}

func TestGemmBatch(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 8)
		count := 600
		if brief() || d.simd == nil {
			count = 100
		}
		for i := range count {
			g := f.anyGemm(i)
			g.count, g.gap, g.woven = 1+f.r.IntN(7), f.r.IntN(2)*f.r.IntN(9), f.r.IntN(4) == 0
			g.shared = [2]bool{f.r.IntN(4) == 0, f.r.IntN(3) == 0}
			require.NoError(t, g.run(t, d, f), "%+v", g)
		}
		if d.simd == nil || brief() {
			return
		}
		// Batches in which threads share each product, in which each thread computes whole products, and
		// that are computed as one product.
		for _, g := range []gemmTrial{
			{typ: "f32", m: 64, n: 64, k: 64, alpha: 1, count: 40}, {typ: "f16", m: 40, n: 70, k: 90, alpha: 1, beta: 1,
				count: 40, woven: true},
			{typ: "f64", m: 200, n: 200, k: 200, alpha: 1, count: 3}, {typ: "f32", m: 60, n: 150, k: 120, alpha: 1, count: 9,
				shared: [2]bool{false, true}},
		} {
			require.NoError(t, g.run(t, d, f), "%+v", g)
		}
	})
}

func TestGemmBias(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 9)
		count := 600
		if brief() || d.simd == nil {
			count = 100
		}
		for i := range count {
			g := f.anyGemm(i)
			g.act = kernels.Activations[f.r.IntN(len(kernels.Activations))].Act
			require.NoError(t, g.run(t, d, f), "%+v", g)
		}
		if d.simd == nil || brief() {
			return
		}
		for i, a := range kernels.Activations { // several panels along every side
			g := gemmTrial{typ: []string{"f32", "f64", "f16", "bf16"}[i%4], m: 300, n: 500, k: 1100, alpha: 0.3, beta: 1,
				act: a.Act}
			require.NoError(t, g.run(t, d, f), "%+v", g)
		}
	})
}

func magnitudes(x []float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = math.Abs(v)
	}
	return y
}

func TestGemmLarge(t *testing.T) {
	if brief() {
		t.Skip("large products")
	}
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("the Go kernel has one method for all sizes")
		}
		f := newFence(t, 4)
		for i := range 16 {
			g := gemmTrial{typ: []string{"f32", "f64", "f16", "bf16"}[i%4], m: 1 + f.r.IntN(500), n: 1 + f.r.IntN(700),
				k:      1 + f.r.IntN(1400),
				transA: i&4 != 0, transB: i&8 != 0, alpha: 1.5, beta: float64(i % 3), pad: f.r.IntN(5)}
			require.NoError(t, g.run(t, d, f), "%+v", g)
		}
	})
}

// Products with few columns, which are whole registers, and a depth that is divided.
func TestGemmNarrow(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 16)
		for i, n := range []int{8, 16, 32, 64} {
			for j, act := range []string{"", "gelu"} {
				for _, k := range []int{700, 5003} {
					g := gemmTrial{typ: []string{"f32", "f64"}[i/2^j], m: 61 + 40*i, n: n, k: k, alpha: 0.5, beta: float64(2 * j),
						pad: 3 * j, act: act}
					require.NoError(t, g.run(t, d, f), "%+v", g)
				}
			}
		}
	})
}
