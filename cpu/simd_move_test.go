package cpu

// Tests of transpose and topk with sizes for which the kernels use different methods.

import (
	"bytes"
	"math"
	"testing"

	"github.com/klauspost/cpuid/v2"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/source"
)

// TestTransposePast calls the kernel with stores past the caches for results of any size, at every
// alignment, in one call and in bands from the last to the first.
func TestTransposePast(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("no vectors")
		}
		f := newFence(t, 10)
		for i := range 600 {
			size := 1 << (i % 4)
			rows, cols := 1+f.r.IntN(1500/size), 1+f.r.IntN(70)
			if i%3 == 0 {
				rows, cols = cols, rows
			}
			skip := f.r.IntN(64/size) * size
			in, out, want := f.bytes(rows*cols*size), f.bytes(rows*cols*size + skip)[skip:], make([]byte, rows*cols*size)
			for j := range in {
				in[j] = byte(f.r.Uint32())
			}
			for r := range rows {
				for c := range cols {
					copy(want[(c*rows+r)*size:][:size], in[(r*cols+c)*size:])
				}
			}
			band := rows
			if f.r.IntN(2) == 0 && rows > 3*256/size {
				band = 256 / size * (1 + f.r.IntN(2))
			}
			for r := (rows - 1) / band * band; r >= 0; r -= band {
				for c := 0; c < cols; c += 40 {
					d.simd.run(simd.Transpose, uint64(size), uint64(rows), uint64(cols), address(in), address(out),
						uint64(r), uint64(min(r+band, rows)), uint64(c), uint64(min(c+40, cols)), uint64(i/4%3))
				}
			}
			require.Equal(t, want, out, "%d rows of %d, %d bytes each, skip %d, in bands of %d", rows, cols, size, skip, band)
			f.free()
		}
	})
}

// TestTopKOrders has rows in which the order of the values, equal values and NaN make the kernel replace
// its candidates again and again.
func TestTopKOrders(t *testing.T) {
	exact := openIndex(t, referenceIndex)
	const n = 1500
	orders := []func(i int) float64{
		func(i int) float64 { return float64(n - i) },
		func(i int) float64 { return float64(i - n) },
		func(int) float64 { return -2.5 },
		func(i int) float64 { return math.Copysign(0, float64(i%2)-0.5) },
		func(i int) float64 { return float64(-(i * 7919 % 1499 / 4)) },
		func(i int) float64 {
			return map[bool]float64{true: math.NaN(), false: float64(i % 90)}[i%3 > 0 || i < 700]
		},
		func(i int) float64 { return map[bool]float64{true: math.Inf(-1), false: float64(n - i)}[i%40 == 0] },
		func(i int) float64 { return map[bool]float64{true: float64(-i), false: math.Inf(1)}[i%100 == 1] },
		func(i int) float64 { return float64(i%2) * 0x1p-149 },
	}
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 11)
		for _, typ := range floatTypes {
			for _, k := range []int{1, 2, 5, 8, 16, 17, 31, 32, 33, 64, 65, 100} {
				for o, order := range orders {
					m := n - f.r.IntN(70)
					values := make([]float64, m)
					for i := range values {
						values[i] = order(i)
					}
					in := f.bytes(m * kernels.SizeOf(typ))
					copy(in, kernels.Encode(typ, values))
					var got [2][2][]byte
					for i, on := range []*device{d, exact} {
						got[i] = [2][]byte{f.bytes(k * kernels.SizeOf(typ)), f.bytes(4 * k)}
						require.NoError(t, invoke(t, on, "topk", "topk", []source.Define{{Name: "T", Value: typ}}, [3]int{1, 1, 1},
							in, got[i][0], got[i][1], uint32(1), uint32(m), uint32(k)))
					}
					require.Equal(t, got[1], got[0], "%s, order %d, %d of %d", typ, o, k, m)
					f.free()
				}
			}
		}
	})
}

// Every value of the band's choice gives whole tiles, also of matrices whose results are stored past the caches.
func TestTransposeBands(t *testing.T) {
	eachSet(t, func(t *testing.T, d *device) {
		const rows, cols = 1024, 640
		in, want := make([]float32, rows*cols), make([]float32, rows*cols)
		for i := range in {
			in[i] = float32(i)
			want[i%cols*rows+i/cols] = in[i]
		}
		cache := &cpuid.CPU.Cache
		defer func(l3 int) { cache.L3 = l3 }(cache.L3)
		for _, l3 := range []int{1 << 16, 1 << 30} { // results are stored past the caches, or not
			cache.L3 = l3
			for _, band := range []int{256, 257, 300, 511, 512, 900, 1024} {
				set, err := choice.NewSet(map[string]int{turnBand.Name: band, turnFew.Name: 1})
				require.NoError(t, err)
				d.Choose(set)
				block, err := d.scratch.take(4 * rows * cols) // aligned, as the memory of devices is
				require.NoError(t, err)
				out := block.data[:4*rows*cols]
				require.NoError(t, invoke(t, d, "transpose", "transpose", nil, [3]int{cols, rows, 1}, bytesOf(in), out,
					uint32(rows), uint32(cols)))
				require.True(t, bytes.Equal(bytesOf(want), out), "a band of %d bytes", band)
				d.scratch.give(block)
			}
		}
		d.Choose(nil)
	})
}
