package cpu

// Tests of w2a8 on memory between guard pages, in every instruction set.

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

func TestTernaryShapes(t *testing.T) {
	eachBytes(t, func(t *testing.T, d *device) {
		f := newFence(t, 15)
		noise := func(n int) []byte {
			b := f.bytes(n)
			for i := range b {
				b[i] = byte(f.r.Uint32())
			}
			return b
		}
		for range 200 {
			m, n, k := f.r.IntN(20), f.r.IntN(20), kernels.W2A8Group*f.r.IntN(8)
			q, w, sums, out := noise(m*k), noise(n*k/4), noise(4*m), noise(4*m*n)
			require.NoError(t, invoke(t, d, "w2a8", "w2a8", []source.Define{{Name: "OUT", Value: "i32"}}, [3]int{1, 1, 1}, q,
				f.numbers("f32", m), sums, w,
				f.numbers("f32", n), out, uint32(m), uint32(n), uint32(k)))
			less, got := kernels.Decode("i32", sums), kernels.Decode("i32", out)
			for i := range m {
				for j := range n {
					sum := -int32(less[i])
					for p := range k {
						sum += int32(w[j*k/4+p/kernels.W2A8Group*64+p%64]>>(p%kernels.W2A8Group/64*2)&3) * int32(int8(q[i*k+p]))
					}
					require.Equal(t, sum, int32(got[i*n+j]), "m=%d n=%d k=%d: %d, %d", m, n, k, i, j)
				}
			}
			f.free()
		}
		for range 200 {
			rows, cols := f.r.IntN(9), f.r.IntN(700)
			k := cols + f.r.IntN(70)
			x, q, scales, sums := f.numbers("f32", rows*cols), noise(rows*k), noise(4*rows), noise(4*rows)
			require.NoError(t, invoke(t, d, "w2a8", "quantize_rows", nil, [3]int{1, 1, 1}, x, q, scales, sums, uint32(rows),
				uint32(cols), uint32(k)))
			numbers, scale, sum := kernels.Decode("f32", x), kernels.Decode("f32", scales), kernels.Decode("i32", sums)
			for i := range rows {
				most, all := float32(1e-5), 0.0
				for _, v := range numbers[i*cols : (i+1)*cols] {
					most = max(most, float32(math.Abs(v)))
				}
				require.Equal(t, 127/most, float32(scale[i]))
				for j := range k {
					want := 0.0
					if j < cols {
						want = math.RoundToEven(float64(float32(numbers[i*cols+j]) * (127 / most)))
					}
					require.Equal(t, int8(want), int8(q[i*k+j]), "cols=%d k=%d: %d, %d", cols, k, i, j)
					all += want
				}
				assert.Equal(t, all, sum[i])
			}
			f.free()
		}
	})
}
