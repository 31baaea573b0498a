package cpu

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/source"
)

// The cases that are as networks have them are known, so that the tests of all cases run vector functions of
// the catalog, and few others are.
func TestKnownMaps(t *testing.T) {
	found := map[string]int{}
	for _, c := range kernels.Cases(expr.Family) {
		u, err := kernels.Unit(expr.Family, &source.Features{FP64: true}, c.Defines...)
		require.NoError(t, err)
		m, _, err := expr.OfUnit(u)
		require.NoError(t, err)
		if k := known(m); k != nil {
			found[k.name]++
			if k.norm {
				assert.InDelta(t, 0.001, k.epsilon, 1e-9, c.Shape)
				assert.Contains(t, []float32{1, 70, 1030, 5000}, k.columns)
			}
		}
	}
	assert.Len(t, found, len(knownMaps), "each map has cases: %v", found)
	x := expr.Input(0, expr.F32)
	for _, e := range []*expr.Expr{x, x.Sum(), x.Sub(x.Largest()).Exp(), x.Mul(x.Number(0.5))} {
		m, err := expr.New(e)
		require.NoError(t, err)
		assert.Nil(t, known(m), m.String())
	}
}
