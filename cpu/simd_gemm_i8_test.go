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
			alpha, beta := f.r.Uint32(), f.r.Uint32()*uint32(f.r.IntN(2))
			transA, transB := f.r.IntN(2) == 0, f.r.IntN(2) == 0
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
			a, lda := buffer(m, k, 1, transA)
			b, ldb := buffer(k, n, 1, transB)
			c, ldc := buffer(m, n, 4, false)
			want := kernels.Decode("i32", c)
			defines := []source.Define{{Name: "TRANS_A", Value: zeroOne(transA)}, {Name: "TRANS_B", Value: zeroOne(transB)}}
			require.NoError(t, invoke(t, d, "gemm_i8", "gemm_i8", defines, [3]int{1, 1, 1}, uint32(m), uint32(n), uint32(k),
				alpha, a, uint32(lda),
				b, uint32(ldb), beta, c, uint32(ldc)))
			element := func(x []byte, ld, row, col int, across bool) uint32 {
				if across {
					row, col = col, row
				}
				return uint32(int8(x[row*ld+col]))
			}
			for i := range m {
				for j := range n {
					sum := uint32(0)
					for p := range k {
						sum += element(a, lda, i, p, transA) * element(b, ldb, p, j, transB)
					}
					at := i*ldc + j
					want[at] = float64(int32(alpha*sum + beta*uint32(int32(want[at]))))
				}
			}
			require.Equal(t, want, kernels.Decode("i32", c), "m=%d n=%d k=%d", m, n, k)
			f.free()
		}
	})
}
