package tensors

// 200 random chains of operations as compiled functions on cpu:0, fused and operation by operation, in turn
// (make bench-tensors). Of those that seem slower, the shortest of up to 300 calls counts, of the others that
// of 28.

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	. "github.com/concord-compute/concord/tensor"
)

// link is one operation of a chain: a is the tensor so far, x and y have its shape, row and column stretch to it.
type link struct {
	name string
	of   func(a, x, y, row, column *Tensor) *Tensor
}

var links = []link{
	{"add", func(a, x, _, _, _ *Tensor) *Tensor { return a.Add(x) }},
	{"sub", func(a, _, y, _, _ *Tensor) *Tensor { return a.Sub(y) }},
	{"mul", func(a, x, _, _, _ *Tensor) *Tensor { return a.Mul(x) }},
	{"div", func(a, _, y, _, _ *Tensor) *Tensor { return a.Div(y) }},
	{"mul 1.5", func(a, _, _, _, _ *Tensor) *Tensor { return a.Mul(1.5) }},
	{"add row", func(a, _, _, row, _ *Tensor) *Tensor { return a.Add(row) }},
	{"mul column", func(a, _, _, _, column *Tensor) *Tensor { return a.Mul(column) }},
	{"relu", func(a, _, _, _, _ *Tensor) *Tensor { return a.Relu() }},
	{"tanh", func(a, _, _, _, _ *Tensor) *Tensor { return a.Tanh() }},
	{"sigmoid", func(a, _, _, _, _ *Tensor) *Tensor { return a.Sigmoid() }},
	{"gelu", func(a, _, _, _, _ *Tensor) *Tensor { return a.GELU() }},
	{"gelu by tanh", func(a, _, _, _, _ *Tensor) *Tensor { return a.GELUTanh() }},
	{"silu", func(a, _, _, _, _ *Tensor) *Tensor { return a.SiLU() }},
	{"softplus", func(a, _, _, _, _ *Tensor) *Tensor { return a.Softplus() }},
	{"log1p of square", func(a, _, _, _, _ *Tensor) *Tensor { return a.Square().Log1p() }},
	{"sqrt of abs", func(a, _, _, _, _ *Tensor) *Tensor { return a.Abs().Sqrt() }},
	{"sin", func(a, _, _, _, _ *Tensor) *Tensor { return a.Sin() }},
	{"where", func(a, x, y, _, _ *Tensor) *Tensor { return Where(a.Gt(x), a, y) }},
	{"softmax", func(a, _, _, _, _ *Tensor) *Tensor { return a.Softmax(-1) }},
	{"softmax of columns", func(a, _, _, _, _ *Tensor) *Tensor { return a.Softmax(0) }},
	{"layer norm", func(a, _, _, _, _ *Tensor) *Tensor { return a.LayerNorm(nil, nil, 1e-5) }},
	{"less the mean", func(a, _, _, _, _ *Tensor) *Tensor { return a.Sub(a.Mean(-1).Unsqueeze(-1)) }},
	{"over the sum of columns", func(a, _, _, _, _ *Tensor) *Tensor { return a.Div(a.Square().Sum(0).Add(1)) }},
	{"flip", func(a, _, _, _, _ *Tensor) *Tensor { return a.Flip(-1) }},
	{"transposed twice", func(a, x, _, _, _ *Tensor) *Tensor {
		return a.Transpose(0, 1).Mul(x.Transpose(0, 1)).Transpose(0, 1)
	}},
}

func BenchmarkChains(b *testing.B) {
	type way struct {
		scope *Scope
		args  []*Tensor
		f     *Func
	}
	sizes := [][2]int{{64, 64}, {1024, 1024}, {4096, 256}, {37, 5003}}
	var ways [2]way
	for i := range ways {
		ways[i].scope = scope(b, runtime.Config{NoFusion: i == 1})
	}
	r := rand.New(rand.NewPCG(1, 2))
	type chain struct {
		ratio float64
		text  string
	}
	var chains []chain
	for b.Loop() {
		chains = nil
		for range 200 {
			size := sizes[r.IntN(len(sizes))]
			var list []link
			text := fmt.Sprintf("%d×%d", size[0], size[1])
			for range 2 + r.IntN(9) {
				l := links[r.IntN(len(links))]
				list, text = append(list, l), text+", "+l.name
			}
			for i := range ways {
				w := &ways[i]
				w.args = nil
				for k, shape := range [][]int{{size[0], size[1]}, {size[0], size[1]}, {size[0], size[1]}, {size[1]}, {size[0], 1}} {
					w.args = append(w.args, Uniform(w.scope, F32, uint64(k), 0.1, 2, shape...))
				}
				require.NoError(b, Eval(b.Context(), w.args...))
				w.f = Compile(w.scope, func(a ...*Tensor) []*Tensor {
					t := a[0]
					for _, l := range list {
						t = l.of(t, a[1], a[2], a[3], a[4])
					}
					return []*Tensor{t}
				})
			}
			var best [2]time.Duration
			// A chain that seems slower is measured longer.
			for round := 0; round < 30 || round < 300 && best[1] < best[0]; round++ {
				for i := range ways {
					w := &ways[i]
					start := time.Now()
					out, err := w.f.Call(b.Context(), w.args...)
					if err == nil {
						err = out[0].Sync(b.Context())
					}
					require.NoError(b, err)
					// The shortest of many, since other programs delay single calls by more than a chain takes.
					if d := time.Since(start); round > 1 && (best[i] == 0 || d < best[i]) {
						best[i] = d
					}
				}
			}
			chains = append(chains, chain{float64(best[1]) / float64(best[0]),
				fmt.Sprintf("%v beside %v: %s", best[0], best[1], text)})
		}
	}
	slices.SortFunc(chains, func(x, y chain) int { return cmp.Compare(x.ratio, y.ratio) })
	slower := 0
	for _, c := range chains {
		if c.ratio < 1 {
			slower++
		}
	}
	for _, c := range chains[:min(max(slower, 5), 40)] {
		b.Logf("%.2f %s", c.ratio, c.text)
	}
	b.ReportMetric(chains[0].ratio, "ratio-least")
	b.ReportMetric(chains[len(chains)/2].ratio, "ratio-median")
	b.ReportMetric(float64(slower), "slower")
}
