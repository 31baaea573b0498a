package tensors

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tensor"
)

// TestCastRows casts rows of lengths around those that are converted together, between all types: rows that lie side
// by side, rows with elements between them, and columns; and in an expression of more than a cast.
func TestCastRows(t *testing.T) {
	ctx := t.Context()
	s := scope(t, runtime.Config{})
	const rows = 3
	lengths := []int{1, 255, 256, 257, 700, 1100}
	if testing.Short() {
		lengths = []int{1, 257, 700}
	}
	for _, n := range lengths {
		data := make([]float64, rows*(n+3))
		for i := range data {
			data[i] = float64(i * 7 % 128)
		}
		all := tensor.From(s, data, rows, n+3)
		for _, from := range driver.Types() {
			whole := all.Cast(from)
			require.NoError(t, tensor.Eval(ctx, whole))
			for _, to := range driver.Types() {
				for name, c := range map[string]struct {
					x  *tensor.Tensor
					at func(i int) float64
				}{
					"whole": {whole.Cast(to), func(i int) float64 { return data[i] }},
					"rows":  {whole.Narrow(1, 2, n).Cast(to), func(i int) float64 { return data[i/n*(n+3)+2+i%n] }},
					"columns": {whole.T().Cast(to), func(i int) float64 {
						return data[i%rows*(n+3)+i/rows]
					}},
					"sum": {whole.Narrow(1, 1, n).Cast(to).Add(whole.Narrow(1, 1, n).Cast(to)).Cast(tensor.F32),
						func(i int) float64 {
							if x := 2 * data[i/n*(n+3)+1+i%n]; to != tensor.I8 || x < 128 {
								return x
							} else {
								return x - 256
							}
						}},
				} {
					got, err := tensor.Read[float64](ctx, c.x.Cast(tensor.F64))
					require.NoError(t, err)
					for i, x := range got {
						require.Equal(t, c.at(i), x, "element %d of %s, %d elements in a row, %v to %v", i, name, n, from, to)
					}
				}
			}
		}
	}
}
