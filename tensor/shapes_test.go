package tensor

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Shapes and steps are arguments of programs: an expression needs one for each number of dimensions that its operands
// cannot do without, whatever their lengths.
func TestShapesShareAProgram(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Scope) {
		var compiles int64
		for i := range 12 {
			rows, columns := 2+i, 3+i%5
			x, column := gaussian(s, 1, 1, rows, columns), gaussian(s, 2, 1, rows, 1)
			require.NoError(t, Eval(t.Context(), x, column))
			before := s.engine.programs.Len()
			require.NoError(t, Eval(t.Context(), x.Mul(x).Exp()))                      // dense
			require.NoError(t, Eval(t.Context(), x.Add(column).Exp()))                 // two dimensions
			require.NoError(t, Eval(t.Context(), x.T().Mul(x.T()).Exp()))              // dense in another order
			require.NoError(t, Eval(t.Context(), x.Narrow(0, 1, rows-1).Add(1).Exp())) // one dimension, from an element on
			if i == 0 {
				compiles = s.Device().Stats().Compiles
			} else {
				assert.Equal(t, before, s.engine.programs.Len(), "%d×%d", rows, columns)
			}
		}
		assert.Equal(t, compiles, s.Device().Stats().Compiles)
	})
}

// BenchmarkNewShape is an expression of a shape that it has not had before.
func BenchmarkNewShape(b *testing.B) {
	s := scope(b)
	i := 0
	for b.Loop() {
		i++
		in := s.Scope()
		x := From(in, numbers(64*(1+i%1000)), 64, 1+i%1000)
		require.NoError(b, Eval(b.Context(), x.Add(x.Narrow(1, 0, 1)).Tanh()), fmt.Sprint(i))
		require.NoError(b, in.Close())
	}
}
