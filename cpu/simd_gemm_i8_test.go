package cpu

// Tests of gemm_i8 on memory between guard pages, in every instruction set.

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source"

	"github.com/concord-compute/concord/kernels"
)

func TestGemmI8Shapes(t *testing.T) {
	eachBytes(t, func(t *testing.T, d *device) {
		f := newFence(t, 10)
		for i := range 300 {
			m, n, k := f.r.IntN(71), f.r.IntN(71), f.r.IntN(71)
			if i%100 == 99 && !brief() {
				m, n, k = 1+f.r.IntN(200), 1+f.r.IntN(200), 1+f.r.IntN(900)
			}
			g := gemmI8{m: m, n: n, k: k, alpha: f.r.Uint32(), beta: f.r.Uint32() * uint32(f.r.IntN(2)),
				transA: f.r.IntN(2) == 0, transB: f.r.IntN(2) == 0}
			pad := f.r.IntN(2) * f.r.IntN(5)
			buffer := func(rows, cols, size int, across bool) ([]byte, int) {
				if across {
					rows, cols = cols, rows
				}
				count := 0
				if rows*cols > 0 {
					count = (rows-1)*(cols+pad) + cols
				}
				b := f.bytes(count * size)
				for i := range b {
					b[i] = byte(f.r.Uint32())
				}
				return b, cols + pad
			}
			a, lda := buffer(m, k, 1, g.transA)
			b, ldb := buffer(k, n, 1, g.transB)
			c, ldc := buffer(m, n, 4, false)
			g.a, g.b, g.lda, g.ldb, g.ldc = decodeI8(a), decodeI8(b), lda, ldb, ldc
			for _, v := range kernels.Decode("i32", c) {
				g.out = append(g.out, int32(v))
			}
			defines := []source.Define{{Name: "TRANS_A", Value: zeroOne(g.transA)}, {Name: "TRANS_B", Value: zeroOne(g.transB)}}
			require.NoError(t, invoke(t, d, "gemm_i8", "gemm_i8", defines, [3]int{1, 1, 1}, uint32(m), uint32(n), uint32(k),
				g.alpha, a, uint32(lda),
				b, uint32(ldb), g.beta, c, uint32(ldc)))
			for i := range m {
				for j := range n {
					sum := uint32(0)
					for p := range k {
						sum += uint32(g.left(i, p)) * uint32(g.right(p, j))
					}
					g.finish(i, j, sum)
				}
			}
			for i, v := range kernels.Decode("i32", c) {
				require.Equal(t, g.out[i], int32(v), "m=%d n=%d k=%d at %d", m, n, k, i)
			}
			f.free()
		}
	})
}

func decodeI8(b []byte) []int8 {
	x := make([]int8, len(b))
	for i, v := range b {
		x[i] = int8(v)
	}
	return x
}
