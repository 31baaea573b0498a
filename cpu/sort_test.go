package cpu

// Whole computations by several launches: sorting of long rows, and sums of rows in any order by sorting their ids.

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

// sortRows sorts rows of n keys by as many launches as it takes, and returns keys and values.
func sortRows(t testing.TB, d *device, defines []source.Define, keys, values []byte, rows,
	n int) (sortedKeys, sortedValues []byte) {
	t.Helper()
	k, v := make([]byte, len(keys)), make([]byte, len(values))
	one, sizes := [3]int{1, 1, 1}, []any{uint32(rows), uint32(n)}
	require.NoError(t, invoke(t, d, "sort_pairs", "sort_blocks", defines, one,
		append([]any{keys, values, k, v}, sizes...)...))
	k2, v2 := make([]byte, len(keys)), make([]byte, len(values))
	for width := kernels.SortBlock; width < n; width *= 2 {
		require.NoError(t, invoke(t, d, "sort_pairs", "sort_merge", defines, one,
			append(append([]any{k, v, k2, v2}, sizes...), uint32(width))...))
		k, k2, v, v2 = k2, k, v2, v
	}
	return k, v
}

func TestSortLongRows(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, n := range []int{1, 1024, 1025, 5000, 40009} {
			x, places := make([]float64, 2*n), make([]float64, 2*n)
			for i := range x {
				if x[i] = float64(r.IntN(n) - n/2); r.IntN(50) == 0 {
					x[i] = math.NaN()
				}
				places[i] = float64(i % n)
			}
			for _, descending := range []string{"0", "1"} {
				keys, values := sortRows(t, d, define("T", "f64", "DESCENDING", descending), kernels.Encode("f64", x),
					kernels.Encode("u32", places), 2, n)
				for row := range 2 {
					want := make([]int, n)
					for i := range want {
						want[i] = i
					}
					slices.SortStableFunc(want, func(i, j int) int {
						// cmp.Compare has NaN before all numbers, so that they are last if the numbers and the order are reversed.
						c := -cmp.Compare(-x[row*n+i], -x[row*n+j])
						if descending == "1" {
							return -c
						}
						return c
					})
					for i, place := range want {
						require.EqualValues(t, place, binary.NativeEndian.Uint32(values[4*(row*n+i):]), fmt.Sprint(n, descending, i))
						got := math.Float64frombits(binary.NativeEndian.Uint64(keys[8*(row*n+i):]))
						require.True(t, same([]float64{x[row*n+place]}, []float64{got}))
					}
				}
			}
		}
	})
}

// TestGradientOfRows adds rows at ids in any order: by sorting the ids, and one after the other.
func TestGradientOfRows(t *testing.T) {
	const table, count, n = 70, 5000, 9
	eachDevice(t, func(t *testing.T, d *device) {
		r := rand.New(rand.NewPCG(5, 6))
		ids, places, x, want := make([]float64, count), make([]float64, count), make([]float64, count*n),
			make([]float64, table*n)
		for i := range ids {
			ids[i], places[i] = float64(r.IntN(table)), float64(i)
			for j := range n {
				x[i*n+j] = float64(r.IntN(100)) // sums are exact
				want[int(ids[i])*n+j] += x[i*n+j]
			}
		}
		sorted, order := sortRows(t, d, define("T", "u32"), kernels.Encode("u32", ids), kernels.Encode("u32", places), 1,
			count)
		out := make([]byte, 4*table*n)
		args := append([]any{kernels.Encode("f32", x), sorted, order, out}, sizesAfter(nil, count, count, table, n)...)
		require.NoError(t, invoke(t, d, "segment", "segment_add", nil, [3]int{1, 1, 1}, args...))
		require.Equal(t, want, kernels.Decode("f32", out))
	})
}
