package cpu

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/source"
)

// The cases that are as networks have them are computed by rows, so that the tests of all cases run these vector
// functions, and few others are.
func TestRowMaps(t *testing.T) {
	found := map[*rowMap]int{}
	for _, family := range []string{expr.Family, "softmax", "norm"} {
		for _, c := range kernels.Cases(family) {
			u, err := kernels.Unit(family, &source.Features{FP64: true}, c.Defines...)
			require.NoError(t, err)
			d, defined := expr.DefinedOf(u, c.Kernel)
			if !defined {
				d.Map, _, err = expr.OfUnit(u)
				require.NoError(t, err)
			}
			r := byRows(d.Map)
			if r != nil {
				found[r.rowMap]++
			}
			assert.True(t, r != nil || !defined, "%s has a loop", c.Name())
		}
	}
	assert.Len(t, found, len(rowMaps), "each map has cases")
	x, y, n := expr.Input(0, expr.F32), expr.Input(1, expr.F32), expr.Float(expr.F32, 0.5)
	half := expr.Input(0, expr.F16)
	for _, e := range []*expr.Expr{x, x.Sum(), x.Sub(x.Largest()).Exp(), x.Mul(n), half.Softmax(),
		half.Softmax().Output(expr.BF16), x.Softmax().Output(expr.F16),
		x.Softmax().Mul(n), x.Exp().Softmax(), x.Normalize(n), x.Normalize(n).Mul(y), x.Normalize(y).Mul(y),
		x.RMSNormalize(n).Mul(n), x.RMSNormalize(n).Add(y)} {
		m, err := expr.New(e)
		require.NoError(t, err)
		assert.Nil(t, byRows(m), m.String())
	}
}

// Operands that commute may have any order and any number.
func TestRowMapsOfOrders(t *testing.T) {
	x := expr.Input(2, expr.F32).Normalize(expr.Float(expr.F32, 0.25))
	gamma, beta := expr.Input(0, expr.F32), expr.Input(1, expr.F32)
	for _, e := range []*expr.Expr{x.Mul(gamma).Add(beta), gamma.Mul(x).Add(beta), beta.Add(x.Mul(gamma)),
		beta.Add(gamma.Mul(x))} {
		m, err := expr.New(e)
		require.NoError(t, err)
		r := byRows(m)
		require.NotNil(t, r, m.String())
		assert.Equal(t, []int{2, 0, 1}, r.Inputs)
		assert.Equal(t, 0.25, r.Number(1, nil))
	}
}

// Casts to 16 bits round once in vector instructions, too, also between denormal numbers.
func TestCastsRoundOnce(t *testing.T) {
	x := []float64{0x1p-134 + 0x1p-200, -0x1p-134 - 0x1p-180, 0x1p-134, 0x1.8p-133 + 0x1p-170, 1 + 0x1p-11 + 0x1p-40,
		1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-11, 65519.999999, 65520, 3.4e38, 3.396e38, 1e300, 0x1p-25 + 0x1p-60, 0x1p-25, 0,
		math.Copysign(0, -1), math.Inf(-1)}
	eachDevice(t, func(t *testing.T, d *device) {
		for _, to := range []string{"f16", "bf16"} {
			out := make([]byte, 2*len(x))
			defines := []source.Define{{Name: "FROM", Value: "f64"}, {Name: "TO", Value: to}}
			require.NoError(t, invoke(t, d, "cast", "cast", defines, [3]int{len(x), 1, 1}, kernels.Encode("f64", x), out,
				uint64(len(x))))
			assert.Equal(t, kernels.Encode(to, x), out, to)
		}
	})
}
