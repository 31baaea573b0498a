package expr

// The order in which elements of maps with reductions are visited.

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestColumns reduces columns of 64×32 elements, which lie side by side in memory, and rows of as many. What is
// the same for all columns, or all rows, has no say in the order.
func TestColumns(t *testing.T) {
	x, y := Input(0, F32), Input(1, F32)
	m, err := New(Apply(Sum, x.Mul(y)))
	require.NoError(t, err)
	across, along := []int{1, 32}, []int{64, 1}
	for _, c := range []struct {
		x, y    []int
		dims    []int
		columns bool
	}{
		{across, across, []int{32, 64}, true},
		{across, []int{0, 1}, []int{32, 64}, true},
		{across, []int{1, 0}, []int{32, 64}, true},
		{along, []int{0, 1}, []int{32, 64}, false},
		{along, across, []int{32, 64}, false},
		{[]int{0, 1}, []int{0, 1}, []int{32, 64}, false},
	} {
		l := Layout{Dims: c.dims, Operands: []Operand{{Steps: c.x}, {Steps: c.y}, {Steps: []int{1, 0}}}}
		assert.Equal(t, c.columns, m.columns(&l), "%v and %v", c.x, c.y)
	}
}

// TestPlacesInReversedRows checks that a layout keeps the order of elements that places count, and turns it for sums.
func TestPlacesInReversedRows(t *testing.T) {
	x := Input(0, F32)
	for e, step := range map[*Expr]int{x.ArgLargest(): -1, x.Sum(): 1} {
		m, err := New(e)
		require.NoError(t, err)
		l, err := m.Layout(Layout{Dims: []int{8, 32}, Operands: []Operand{{First: 31, Steps: []int{32, -1}},
			{Steps: []int{1, 0}}}})
		require.NoError(t, err)
		assert.Equal(t, step, l.Operands[0].Steps[1], "%v", m)
	}
}

// TestPlaceWithBounds checks that the float64 evaluation knows a place only as far as the bounds of elements decide it.
func TestPlaceWithBounds(t *testing.T) {
	m, err := New(Input(0, F32).ArgSmallest())
	require.NoError(t, err)
	for _, c := range []struct {
		x, bounds []float64
		place     uint64
		open      bool
	}{
		{[]float64{3, 1, 2, 1}, []float64{0, 0, 0, 0}, 1, false},
		{[]float64{3, 1, 2}, []float64{0.5, 0.5, 0.25}, 1, false},
		{[]float64{3, 1, 2}, []float64{0, 0.5, 0.5}, 1, true},
		{[]float64{3, math.NaN(), 2, math.NaN()}, []float64{0, 0, 0, 0}, 1, false},
		{nil, nil, 0, false},
	} {
		e := evaluation{m: m, values: make([]Value, len(m.nodes))}
		e.row(len(c.x), func(j int) []Value { return []Value{{Float: c.x[j], Bound: c.bounds[j]}} }, nil, 0)
		v := e.values[m.outputs[0].node]
		assert.Equal(t, c.place, v.Int, "%v", c)
		assert.Equal(t, c.open, math.IsInf(v.Bound, 1), "%v", c)
	}
}
