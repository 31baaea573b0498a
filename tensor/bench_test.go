package tensor

// Benchmarks of compiled functions on cpu:0: go test -run '^$' -bench . ./tensor

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func gaussian(s *Scope, seed uint64, scale float32, shape ...int) *Tensor {
	r := rand.New(rand.NewPCG(seed, 1))
	data := make([]float32, count(shape))
	for i := range data {
		data[i] = scale * float32(r.NormFloat64())
	}
	return From(s, data, shape...)
}

// bench measures a compiled function, whose results are the arguments of the next call where feed says so.
func bench(b *testing.B, f func(args ...*Tensor) []*Tensor, feed int, args ...*Tensor) {
	s := args[0].scope
	c := Compile(s, f)
	p, err := c.Plan(b.Context(), args...)
	require.NoError(b, err)
	b.Logf("\n%v", p)
	b.ReportAllocs()
	for b.Loop() {
		out, err := c.Call(b.Context(), args...)
		if err != nil {
			b.Fatal(err)
		}
		copy(args[:feed], out)
		if err := s.engine.stream.Sync(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// adam is one step of Adam for a parameter.
func adam(w, m, v, g *Tensor, rate *Tensor) (next, nm, nv *Tensor) {
	nm = m.Mul(0.9).Add(g.Mul(0.1))
	nv = v.Mul(0.999).Add(g.Square().Mul(0.001))
	return w.Sub(nm.Mul(rate).Div(nv.Sqrt().Add(1e-8))), nm, nv
}

// The network of the specification: 784-512-256-10, batches of 128, cross entropy, Adam.
func BenchmarkMLP(b *testing.B) {
	s := scope(b)
	x := gaussian(s, 1, 1, 128, 784)
	labels := Iota(s, I32, 128).Rem(10).Unsqueeze(1).Eq(Iota(s, I32, 10)).Cast(F32)
	require.NoError(b, Eval(b.Context(), labels))
	sizes := []int{784, 512, 256, 10}
	var params []*Tensor
	for i := range 3 {
		params = append(params, gaussian(s, uint64(i), 0.05, sizes[i], sizes[i+1]), Full(s, F32, 0, sizes[i+1]))
	}
	for range 2 {
		for _, p := range params[:6] {
			params = append(params, Zeros(s, F32, p.shape...))
		}
	}
	rate := Full(s, F32, 0.001)
	bench(b, func(a ...*Tensor) []*Tensor {
		p, m, v := a[:6], a[6:12], a[12:18]
		h := a[18]
		for i := range 3 {
			h = h.MatMul(p[2*i]).Add(p[2*i+1])
			if i < 2 {
				h = h.Relu()
			}
		}
		loss := h.LogSoftmax(-1).Mul(a[19]).Sum().Div(-128)
		var next, nm, nv []*Tensor
		for i, g := range Grad(loss, p...) {
			x, y, z := adam(p[i], m[i], v[i], g, a[20])
			next, nm, nv = append(next, x), append(nm, y), append(nv, z)
		}
		return append(append(append(next, nm...), nv...), loss)
	}, 18, append(params, x, labels, rate)...)
}

func BenchmarkSoftmax(b *testing.B) {
	s := scope(b)
	bench(b, func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Softmax(-1)} }, 0, gaussian(s, 1, 1, 4096, 1024))
}

func BenchmarkGELU(b *testing.B) {
	s := scope(b)
	bench(b, func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].GELU()} }, 0, gaussian(s, 1, 1, 4096, 1024))
}

func BenchmarkSum(b *testing.B) {
	s := scope(b)
	bench(b, func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Sum()} }, 0, gaussian(s, 1, 1, 4096, 4096))
}

// A step of generation by weights that are transposed outside the compiled function, which is done once.
func BenchmarkCapturedWeights(b *testing.B) {
	s := scope(b)
	w := gaussian(s, 1, 1, 3200, 3200).T().Copy()
	bench(b, func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].MatMul(w)} }, 0, gaussian(s, 2, 1, 1, 3200))
}

// BenchmarkConvChannelsLast has a convolution with filters of one element, and the product that it should be as
// fast as.
func BenchmarkConvChannelsLast(b *testing.B) {
	s := scope(b)
	x, w := gaussian(s, 1, 1, 8, 56, 56, 64), gaussian(s, 2, 1, 64, 64, 1, 1)
	b.Run("conv", func(b *testing.B) {
		bench(b, func(a ...*Tensor) []*Tensor {
			return []*Tensor{Conv(a[0].Permute(0, 3, 1, 2), a[1], nil, ConvOptions{}).Permute(0, 2, 3, 1)}
		}, 0, x, w)
	})
	b.Run("product", func(b *testing.B) {
		bench(b, func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].MatMul(a[1].Reshape(64, 64).T())} }, 0, x, w)
	})
}
