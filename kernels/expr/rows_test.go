package expr

// The order in which elements of maps with reductions are visited.

import (
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
