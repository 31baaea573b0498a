package tensor

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/choice"
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

// withCosts gives the device of a scope costs until the test ends.
func withCosts(t *testing.T, s *Scope, values map[string]int) {
	t.Helper()
	set, err := choice.NewSet(values)
	require.NoError(t, err)
	s.Device().Choices().Try(set)
	t.Cleanup(func() { s.Device().Choices().Try(nil) })
}

// TestCosts: what is stored, and which loops become one kernel, follows from the costs of the device, and results do
// not.
func TestCosts(t *testing.T) {
	s := scope(t)
	tall := gaussian(s, 1, 1, 1000, 96)
	graphs := map[string]func() []*Tensor{
		// A sine that a kernel visits twice, where the elements of its rows do not lie side by side.
		"columns": func() []*Tensor {
			sine := tall.T().Sin()
			return []*Tensor{sine.T().Div(sine.T().Square().Sum(0).Add(1))}
		},
		// Two loops of one size that read nothing in common.
		"loops": func() []*Tensor {
			return []*Tensor{Iota(s, F32, 100, 50).Mul(3), gaussian(s, 2, 1, 100, 50).Add(1)}
		},
		// A root that a kernel would compute for each of many elements.
		"root": func() []*Tensor { return []*Tensor{gaussian(s, 2, 1, 100, 50).Mul(Full(s, F32, 2, 1).Sqrt())} },
	}
	results := func(name string) (tasks int, costs Costs, numbers []float32) {
		ts := graphs[name]()
		p, err := Explain(ts...)
		require.NoError(t, err)
		for _, x := range ts {
			list, err := Read[float32](t.Context(), x)
			require.NoError(t, err)
			numbers = append(numbers, list...)
		}
		return len(p.Tasks), p.Costs, numbers
	}
	for _, c := range []struct {
		graph  string
		values map[string]int
		fewer  bool // tasks than with the defaults
	}{
		{"columns", map[string]int{"tensor.task": 50000000}, true}, // launches are dear
		{"columns", map[string]int{"tensor.task": 500}, false},
		{"columns", map[string]int{"tensor.move.1m": 80, "tensor.move.4m": 80}, true},
		{"columns", map[string]int{"tensor.move.1m": 3}, false},
		{"columns", map[string]int{"tensor.move.1m": 3, "tensor.functions": 10}, true},
		{"columns", map[string]int{"tensor.functions": 3200}, false},
		{"loops", map[string]int{"tensor.many": 8192}, true},
		{"loops", map[string]int{"tensor.many": 1024}, false},
		{"root", map[string]int{"tensor.many": 8192}, true},
		{"root", map[string]int{"tensor.many": 1024}, false},
	} {
		usual, defaults, want := results(c.graph)
		assert.Equal(t, Costs{Task: 10000, Move: [4]int{2, 3, 5, 12}, Functions: 100, Many: 4096}, defaults)
		withCosts(t, s, c.values)
		tasks, costs, got := results(c.graph)
		assert.NotEqual(t, defaults, costs)
		again, _, _ := results(c.graph)
		assert.Equal(t, tasks, again)
		if c.fewer {
			assert.Less(t, tasks, usual, "%s with %v", c.graph, c.values)
		} else {
			assert.Equal(t, usual, tasks, "%s with %v", c.graph, c.values)
		}
		assert.InDeltaSlice(t, want, got, 1e-5)
		s.Device().Choices().Try(nil)
	}
}

// TestCostsOfOneMoment: all passes of a plan decide by the same costs, also if a table comes between two of them.
func TestCostsOfOneMoment(t *testing.T) {
	s := scope(t)
	ts := []*Tensor{Iota(s, F32, 100, 50).Mul(3), gaussian(s, 2, 1, 100, 50).Add(1)}
	want, err := newPlan(ts, true, nil)
	require.NoError(t, err)
	for _, after := range []string{"graph", "choose", "schedule"} {
		got, err := newPlan(ts, true, func(pass string, _ fmt.Stringer) {
			if pass == after {
				withCosts(t, s, map[string]int{"tensor.many": 8192})
			}
		})
		require.NoError(t, err)
		assert.Equal(t, want.costs, got.costs, after)
		assert.Len(t, got.tasks, len(want.tasks), after)
		s.Device().Choices().Try(nil)
	}
	withCosts(t, s, map[string]int{"tensor.many": 8192})
	other, err := newPlan(ts, true, nil)
	require.NoError(t, err)
	assert.Less(t, len(other.tasks), len(want.tasks), "the costs make a difference")
}

// TestCheapFunctions: a function that takes no longer than an addition is computed by each kernel that needs it.
func TestCheapFunctions(t *testing.T) {
	s := scope(t)
	e := gaussian(s, 1, 1, 64, 32).Exp()
	stored := func() bool {
		list, err := ExplainPasses(e.Sum(-1), e.Mul(2))
		require.NoError(t, err)
		i := slices.IndexFunc(list, func(p Pass) bool { return p.Name == "choose" })
		return strings.Contains(list[i].Text, "several kernels need it, and it is expensive")
	}
	assert.True(t, stored())
	withCosts(t, s, map[string]int{"tensor.functions": 10})
	assert.False(t, stored())
}

// TestCostsMeasured: costs of a table of the device are measured ones.
func TestCostsMeasured(t *testing.T) {
	s := scope(t)
	state := s.Device().Choices()
	x := Iota(s, F32, 9).Add(1)
	p, err := Explain(x)
	require.NoError(t, err)
	assert.Zero(t, p.Costs.Measured)
	assert.Equal(t, "task 10000, element 2 up to 1 MiB, 3 up to 4 MiB, 5 up to 16 MiB, else 12, functions 100 %, "+
		"kernel of its own from 4096 elements (defaults)", p.Costs.String())
	table := state.New(map[string]int{"tensor.move.4m": 3, "tensor.task": 20000})
	require.NoError(t, state.Use(table))
	defer func() { require.NoError(t, state.Use(nil)) }()
	p, err = Explain(x)
	require.NoError(t, err)
	assert.Equal(t, 20000, p.Costs.Task)
	assert.Equal(t, table.Made, p.Costs.Measured)
	assert.Contains(t, p.Costs.String(), "(from a table of 20")
	f := Compile(s, func(args ...*Tensor) []*Tensor { return []*Tensor{args[0].Exp()} })
	defer f.Close()
	plan, err := f.Plan(t.Context(), x)
	require.NoError(t, err)
	assert.Equal(t, p.Costs, plan.Costs)
	require.NoError(t, state.Use(state.New(map[string]int{"kernels.gemm.each": 4})))
	p, err = Explain(x)
	require.NoError(t, err)
	assert.Zero(t, p.Costs.Measured, "of something else")
}

// TestMain sees to it that plans are those of the defaults, whatever was tuned on the machine.
func TestMain(m *testing.M) {
	if err := os.Setenv("CONCORD_TUNE", "off"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
