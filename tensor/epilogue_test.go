package tensor

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEpilogue compares products with a bias and each activation in one task with the same operations on a
// stored product.
func TestEpilogue(t *testing.T) {
	s := scope(t)
	acts := map[string]func(x *Tensor) *Tensor{"none": func(x *Tensor) *Tensor { return x }, "relu": (*Tensor).Relu,
		"sigmoid": (*Tensor).Sigmoid,
		"tanh":    (*Tensor).Tanh, "gelu": (*Tensor).GELU, "silu": (*Tensor).SiLU, "gelu_tanh": (*Tensor).GELUTanh}
	require.Len(t, epilogues(), len(acts)*4)
	for name, act := range acts {
		for _, typ := range []Type{F32, F64, F16, BF16} {
			a, b := gaussian(s, 1, 1, 2, 5, 7).Cast(typ), gaussian(s, 2, 1, 7, 11).Cast(typ)
			bias := gaussian(s, 3, 1, 3, 11).Cast(typ)
			require.NoError(t, Eval(t.Context(), a, b, bias))
			row := bias.Index(0, 1)
			for swapped, y := range []*Tensor{act(a.MatMul(b).Add(row)), act(row.Add(a.MatMul(b)))} {
				plan := tasks(t, y)
				require.Len(t, plan, 1, "%s %v", name, typ)
				assert.True(t, strings.HasPrefix(plan[0], "matmul add"), plan[0])
				product := a.MatMul(b)
				require.NoError(t, Eval(t.Context(), product))
				want := act(product.Add(row)).Cast(F64)
				require.NoError(t, Eval(t.Context(), y))
				eps := map[Type]float64{F64: 1e-13, F32: 1e-5, F16: 1e-2, BF16: 8e-2}[typ]
				have := values[float64](t, y.Cast(F64))
				for i, v := range values[float64](t, want) {
					require.InDelta(t, v, have[i], eps*(1+math.Abs(v)), "%s %v %d: element %d", name, typ, swapped, i)
				}
			}
		}
	}
}

// What is not a product's epilogue stays a kernel: a bias of rows, a product that is needed itself, products of
// batches.
func TestNoEpilogue(t *testing.T) {
	s := scope(t)
	a, b, bias, column := gaussian(s, 1, 1, 2, 5, 7), gaussian(s, 2, 1, 2, 7, 5), gaussian(s, 3, 1, 5),
		gaussian(s, 4, 1, 5, 1)
	require.NoError(t, Eval(t.Context(), a, b, bias, column))
	x, y := a.Index(0, 0), b.Index(0, 1)
	c := x.MatMul(y)
	assert.Len(t, tasks(t, c.Add(bias), c), 2)
	assert.Len(t, tasks(t, x.MatMul(y).Add(column).Relu()), 2)
	assert.Len(t, tasks(t, x.MatMul(y).Sub(bias)), 2)
	assert.Len(t, tasks(t, x.MatMul(y).T().Add(bias)), 2)
	assert.Len(t, tasks(t, a.MatMul(b).Add(bias)), 2)
	assert.Len(t, tasks(t, x.MatMul(y).Add(x.MatMul(y).Mul(2))), 3)
	two := x.MatMul(y)
	assert.Len(t, tasks(t, two.Add(bias).Relu(), two.Add(bias).Exp()), 2) // the product, and both in a loop that is small
	// A view of the product is asked for.
	p := x.MatMul(y)
	z := p.Add(bias).Tanh()
	assert.Len(t, tasks(t, z, p.Slice(Range{Start: 1, Stop: 3})), 2)
	require.NoError(t, Eval(t.Context(), z))
	assert.Len(t, tasks(t, x.MatMul(y).Add(bias).Flip(0)), 2)
	// Only the first rows of the product are asked for.
	rows := x.MatMul(y).Add(bias).Narrow(0, 0, 2)
	assert.Len(t, tasks(t, rows), 2)
	require.NoError(t, Eval(t.Context(), rows))
	all := x.MatMul(y)
	require.NoError(t, Eval(t.Context(), all))
	assert.InDeltaSlice(t, values[float32](t, all.Add(bias))[:10], values[float32](t, rows), 1e-5)
}
