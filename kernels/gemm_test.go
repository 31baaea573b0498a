package kernels

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestApart compares apart with a check of every element of every matrix.
func TestApart(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 12))
	for range 20000 {
		count, m, n, ld, step := 1+r.IntN(6), 1+r.IntN(5), 1+r.IntN(5), r.IntN(14), r.IntN(30)
		seen, want := map[int]bool{}, true
		for z := range count {
			for i := range m * n {
				at := z*step + i/n*ld + i%n
				want = want && !seen[at]
				seen[at] = true
			}
		}
		require.Equal(t, want, apart(count, m, n, ld, step), "%d of %d x %d, %d and %d apart", count, m, n, ld, step)
	}
}
