package tensor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is computed from transposed tensors and read through another transposition lies as these tensors do,
// whether it is stored or not.
func TestStoredAsItIsRead(t *testing.T) {
	s := scope(t)
	x, y := gaussian(s, 1, 1, 1000, 96), gaussian(s, 2, 1, 1000, 96)
	require.NoError(t, Eval(t.Context(), x, y))
	product := func() *Tensor { return x.T().Mul(y.T()).T() }
	assert.Len(t, tasks(t, product().Softmax(-1)), 1)
	// The sine is stored, as it is read for sums of columns and again for results.
	sine := x.T().Sin()
	columns := sine.T().Div(sine.T().Square().Sum(0).Add(1))
	p, err := newPlan([]*Tensor{columns}, true, nil)
	require.NoError(t, err)
	require.Len(t, p.tasks, 2)
	k := p.tasks[0].(*kernel)
	assert.Equal(t, []int{1, 96}, k.outs[0].to.strides)
	assert.Zero(t, k.layout.Rank(), "all elements are adjacent, in one order")
	// A result lies as its shape says, and what it is read with decides for an argument of a product.
	p, err = newPlan([]*Tensor{x.T().Sin()}, true, nil)
	require.NoError(t, err)
	assert.Equal(t, []int{1000, 1}, p.tasks[0].(*kernel).outs[0].to.strides)
	for _, r := range []*Tensor{product().Softmax(-1), columns, sine.Reshape(-1).CumSum(0),
		sine.MatMul(y).Add(sine.Sum(-1).Unsqueeze(-1))} {
		want := unfusedOf(t, r)
		assert.InDeltaSlice(t, want[0], values[float32](t, r), 1e-3)
	}
}

// What a function computes from several operations that are not stored is stored itself if columns are reduced
// of it, since all of them would be computed twice.
func TestSharedWorkIsNotComputedTwice(t *testing.T) {
	s := scope(t)
	x := gaussian(s, 1, 1, 1024, 1024)
	require.NoError(t, Eval(t.Context(), x))
	y := x.Div(x.Square().Sum(0).Add(1)).LayerNorm(nil, nil, 1e-5).LayerNorm(nil, nil, 1e-5)
	p, err := newPlan([]*Tensor{y.Div(y.Square().Sum(0).Add(1))}, true, nil)
	require.NoError(t, err)
	require.Len(t, p.tasks, 3)
	var names []string
	for _, task := range p.tasks {
		names = append(names, task.(*kernel).names...)
	}
	n := 0
	for _, name := range names {
		if name == "rsqrt" {
			n++
		}
	}
	assert.Equal(t, 2, n, "%v", names)
}
