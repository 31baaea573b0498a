package golden

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// TestJudge: wrong data, wrong gradients, panics and a done context are errors; what is lacking is skipped.
func TestJudge(t *testing.T) {
	d, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer d.Close()
	scope := tensor.NewScope(d)
	defer func() { assert.NoError(t, scope.Close()) }()
	cases, err := Load()
	require.NoError(t, err)
	find := func(name string) Case {
		i := slices.IndexFunc(cases, func(c Case) bool { return c.Name == name })
		require.GreaterOrEqual(t, i, 0, name)
		return cases[i]
	}
	first := func(op string) Case {
		i := slices.IndexFunc(cases, func(c Case) bool { return c.Op == op })
		require.GreaterOrEqual(t, i, 0, op)
		return cases[i]
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	off := func(a *Array) *Array {
		b := *a
		b.Data = slices.Clone(a.Data)
		b.Data[0] += 0.01
		return &b
	}
	output, gradient, broken, only, lacks := first("softmax"), first("softmax"), first("softmax"), first("softmax"),
		first("softmax")
	output.Outputs = []Array{*off(&output.Outputs[0])}
	gradient.Grads = []*Array{off(gradient.Grads[0])}
	broken.Attrs = Attrs{}
	only.Only = "f64"
	lacks.Op = "no_such"
	for what, c := range map[string]struct {
		Case
		ctx       context.Context
		skip, err string
	}{
		"right":        {first("softmax"), t.Context(), "", ""},
		"a formula":    {find("formula/" + first("layer_norm").Name), t.Context(), "", ""},
		"output":       {output, t.Context(), "", "output 0: element 0 is"},
		"gradient":     {gradient, t.Context(), "", "gradient 0: element 0 is"},
		"panic":        {broken, t.Context(), "", "panic: "},
		"not in f32":   {only, t.Context(), "for f64 only", ""},
		"no operation": {lacks, t.Context(), "has no no_such yet", ""},
		"cancelled":    {first("softmax"), ended, "", context.Canceled.Error()},
	} {
		skip, err := c.Judge(c.ctx, scope, tensor.F32, Plain, Evaluated)
		if c.err == "" {
			assert.NoError(t, err, what)
		} else {
			assert.ErrorContains(t, err, c.err, what)
		}
		assert.Contains(t, skip, c.skip, what)
		assert.Equal(t, c.skip == "", skip == "", "%s: %s", what, skip)
	}
}

// TestSample: each operation is there, and about as many of its cases as there should be.
func TestSample(t *testing.T) {
	cases, err := Load()
	require.NoError(t, err)
	count := func(cases []Case) map[string]int {
		n := map[string]int{}
		for _, c := range cases {
			if !c.Formula {
				n[c.Op]++
			}
		}
		return n
	}
	all, some := count(cases), count(Sample(cases, 16))
	assert.ElementsMatch(t, slices.Collect(maps.Keys(all)), slices.Collect(maps.Keys(some)))
	for op, n := range some {
		assert.LessOrEqual(t, n, all[op]/16+1, op)
	}
	assert.Equal(t, all, count(Sample(cases, 1)))
}
