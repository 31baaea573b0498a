package tensor

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the plans of TestPasses as they are now")

// TestPasses compares what each pass of the planner decides for some graphs with the files in testdata/plans.
func TestPasses(t *testing.T) {
	s := scope(t)
	x, w, b := gaussian(s, 1, 1, 64, 32), gaussian(s, 2, 1, 32, 16), gaussian(s, 3, 1, 16)
	tall := gaussian(s, 4, 1, 1000, 96)
	heads := gaussian(s, 5, 1, 2, 4, 10, 8)
	sine, e := tall.T().Sin(), x.Exp()
	for name, ts := range map[string][]*Tensor{
		"softmax":     {x.Softmax(-1)},
		"layernorm":   {x.LayerNorm(nil, nil, 1e-5)},
		"product":     {x.MatMul(w).Add(b).Softmax(-1)},
		"epilogue":    {x.MatMul(w).Add(b).Relu()},
		"columns":     {sine.T().Div(sine.T().Square().Sum(0).Add(1))},
		"several":     {e.Sum(-1), e.Mul(2), e.MatMul(w)},
		"parts":       {Concat(0, x.MatMul(w), w.Exp()).Pad(0, [2]int{1, 1})},
		"attention":   {Attention(heads, heads, heads, AttentionOptions{Causal: true})},
		"convolution": cnnStep(s),
	} {
		t.Run(name, func(t *testing.T) {
			list, err := ExplainPasses(ts...)
			require.NoError(t, err)
			var out strings.Builder
			for _, p := range list {
				fmt.Fprintf(&out, "== %s\n%s", p.Name, p.Text)
			}
			file := filepath.Join("testdata", "plans", name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(out.String()), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), out.String())
		})
	}
}

// A pass changes nothing of the value that it is given: what it makes of it is the same each time.
func TestPassesArePure(t *testing.T) {
	ts := cnnStep(scope(t))
	g, err := newGraph(ts)
	require.NoError(t, err)
	l := layout(g)
	c := choose(g, l, true)
	p, err := lower(c)
	require.NoError(t, err)
	ordered, err := schedule(p)
	require.NoError(t, err)
	before := []string{g.String(), l.String(), c.String(), p.String(), ordered.String()}
	fused := fuseReaders(l)(fuseEpilogues(ordered)).String()
	assert.Equal(t, fused, fuseReaders(l)(fuseEpilogues(ordered)).String())
	again, err := lower(c)
	require.NoError(t, err)
	assert.Equal(t, p.String(), again.String())
	assert.Equal(t, c.String(), choose(g, l, true).String())
	assert.Equal(t, before, []string{g.String(), l.String(), c.String(), p.String(), ordered.String()})
	planned, err := newPlan(ts, true, nil)
	require.NoError(t, err)
	whole := fmt.Sprint(planned.describe(), allocate(planned))
	once, rest := planned.constants()
	assert.NotEmpty(t, once)
	assert.Len(t, planned.tasks, len(once)+len(rest.tasks))
	assert.NotEqual(t, whole, fmt.Sprint(rest.describe(), allocate(rest)))
	assert.Equal(t, whole, fmt.Sprint(planned.describe(), allocate(planned)))
}

// cnnStep returns the results of a step of training of a small convolutional network: the new parameters, the states of
// Adam and the loss.
func cnnStep(s *Scope) []*Tensor {
	x, labels := gaussian(s, 1, 1, 32, 1, 28, 28), Iota(s, I32, 32).Rem(10).Unsqueeze(1).Eq(Iota(s, I32, 10)).Cast(F32)
	params := []*Tensor{gaussian(s, 2, 0.1, 8, 1, 3, 3), gaussian(s, 3, 0.1, 8), gaussian(s, 4, 0.1, 16, 8, 3, 3),
		gaussian(s, 5, 0.1, 16),
		gaussian(s, 6, 0.05, 16*5*5, 64), gaussian(s, 7, 0.1, 64), gaussian(s, 8, 0.1, 64, 10), gaussian(s, 9, 0.1, 10)}
	rate := Full(s, F32, 0.001)
	h := x
	for i := range 2 {
		h = Conv(h, params[2*i], params[2*i+1], ConvOptions{}).Relu().MaxPool([]int{2, 2}, PoolOptions{})
	}
	h = h.Reshape(32, -1).MatMul(params[4]).Add(params[5]).Relu().MatMul(params[6]).Add(params[7])
	loss := h.LogSoftmax(-1).Mul(labels).Sum().Div(-32)
	results := []*Tensor{loss}
	for i, g := range Grad(loss, params...) {
		m, v := gaussian(s, uint64(10+i), 0.1, params[i].shape...), Zeros(s, F32, params[i].shape...)
		next, nm, nv := adam(params[i], m, v, g, rate)
		results = append(results, next, nm, nv)
	}
	return results
}

// BenchmarkPlan measures the planning of a step of training of a convolutional network.
func BenchmarkPlan(b *testing.B) {
	ts := cnnStep(scope(b))
	for _, t := range ts {
		require.NoError(b, t.err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := newPlan(ts, true, nil); err != nil {
			b.Fatal(err)
		}
	}
}
