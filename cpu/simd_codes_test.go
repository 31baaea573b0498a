package cpu

// Tests of codes on memory between guard pages, in every instruction set: every bit is that of the
// implementation in Go.

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
)

func TestCodes(t *testing.T) {
	plain := &device{}
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 17)
		floats := func(n int) []float32 {
			x := elementsOf[float32](f.bytes(4 * n))
			for i := range x {
				x[i] = float32(f.r.NormFloat64())
			}
			return x
		}
		for trial := range 50 {
			bytes := 1 + f.r.IntN(20)
			if trial == 0 {
				bytes = 128
			}
			b := &kernels.CodeBook{Bytes: bytes, Dim: 2*bytes + f.r.IntN(70)}
			b.Values = floats(16 * b.Dim)
			n := f.r.IntN(300)
			points, codes, want := floats(n*b.Dim), f.bytes(n*bytes), make([]byte, n*bytes)
			for i := range points {
				if f.r.IntN(50) == 0 {
					points[i] = b.Values[16*(i%b.Dim)+f.r.IntN(16)]
				}
			}
			if n > 3 {
				points[b.Dim] = float32(math.NaN())
				points[2*b.Dim] = float32(math.Inf(1))
			}
			d.EncodeRows(b, points, codes)
			plain.EncodeRows(b, points, want)
			require.Equal(t, want, codes)
			blocks := f.bytes((n + kernels.CodeBlock - 1) / kernels.CodeBlock * kernels.CodeBlock * bytes)
			for i := range n {
				for j := range bytes {
					blocks[i/kernels.CodeBlock*kernels.CodeBlock*bytes+j*kernels.CodeBlock+i%kernels.CodeBlock] = codes[i*bytes+j]
				}
			}
			point, table, again := floats(b.Dim), f.bytes(b.TableSize()), make([]byte, b.TableSize())
			if trial%10 == 1 { // there are no distances between values
				for i := range b.Values {
					b.Values[i] = 0
				}
			}
			base, step := d.CodeTable(b, point, table)
			wantBase, wantStep := plain.CodeTable(b, point, again)
			require.Equal(t, [2]float32{wantBase, wantStep}, [2]float32{base, step})
			require.Equal(t, again[:32*bytes], table[:32*bytes])
			for _, limit := range []int{0, f.r.IntN(60 * bytes), f.r.IntN(254 * bytes), math.MaxInt16} {
				found, places := elementsOf[uint32](f.bytes(4*(n+1))), make([]uint32, n+1)
				require.Equal(t, plain.RankCodes(b, again, blocks, n, limit, places),
					d.RankCodes(b, table, blocks, n, limit, found), "%d vectors, limit %d", n, limit)
			}
			if n > 0 && b.Dim < 100 { // what a table says is about the distance of what codes stand for
				found := plain.RankCodes(b, again, blocks, n, math.MaxInt16, make([]uint32, n+1))
				require.Len(t, found, n)
				for i, x := range found {
					far := 0.0
					for p := range 2 * bytes {
						for c := b.Part(p); c < b.Part(p+1); c++ {
							y := float64(point[c]) - float64(b.Values[16*c+int(codes[i*bytes+p/2]>>(p%2*4)&15)])
							far += y * y
						}
					}
					if got := float64(base) + float64(x&0xffff)*float64(step); math.Abs(far-got) > float64(bytes)*float64(step)+1e-3 {
						require.Equal(t, far, got)
					}
				}
			}
			for _, x := range []float64{math.NaN(), math.Inf(-1), 1e20} {
				point[f.r.IntN(b.Dim)] = float32(x)
				base, step = d.CodeTable(b, point, table)
				require.False(t, base < math.MaxFloat32 && step < math.MaxFloat32, "%v: %v %v", x, base, step)
				wantBase, wantStep = plain.CodeTable(b, point, again)
				require.False(t, wantBase < math.MaxFloat32 && wantStep < math.MaxFloat32)
			}
			f.free()
		}
	})
}
