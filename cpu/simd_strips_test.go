package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGemmStrips computes products in strips between guard pages, with sizes that are no multiples of a
// tile, and with more threads than strips.
func TestGemmStrips(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("the Go kernel has no strips")
		}
		f, count, threads := newFence(t, 13), 24, d.threads
		defer func() { d.threads = threads }()
		if brief() {
			count = 4
		}
		for i := range count {
			d.threads = []int{threads, 1, 8}[i%3]
			g := gemmTrial{typ: []string{"f32", "f64", "bf16"}[i/2%3], m: 20*d.simd.rows + 1 + f.r.IntN(100),
				n: 65 + f.r.IntN(200), k: 9 + f.r.IntN(150),
				transA: f.r.IntN(3) == 0, transB: f.r.IntN(3) == 0, alpha: 0.5, beta: float64(i % 2),
				pad: f.r.IntN(2) * f.r.IntN(9)}
			if i%4 == 0 {
				g.act = "relu"
			}
			require.NoError(t, g.run(t, d, f), "%+v", g)
		}
	})
}
