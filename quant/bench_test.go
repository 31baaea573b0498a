package quant

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkCodec encodes and decodes 16,384 numbers, which stay in the second-level cache, on one processor.
func BenchmarkCodec(b *testing.B) {
	const n = 1 << 14
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rand.IntN(3)-1) * 0.5
	}
	for _, f := range []Format{I2SM1, I2SM2, TQ10, TQ20, Q40, Q80, I2SB, RA, RB, RTL1K, RTL1Q, I8Rows, Q4K, Q6K} {
		for _, v := range providers() {
			m, err := New(Layout{Format: f, Rows: 1, Cols: n})
			require.NoError(b, err)
			rate := func(b *testing.B) { b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gvalues/s") }
			b.Run(fmt.Sprintf("%v/%s/encode", f, v.name), func(b *testing.B) {
				for b.Loop() {
					require.NoError(b, encodeBy(v, m, x))
				}
				rate(b)
			})
			b.Run(fmt.Sprintf("%v/%s/decode", f, v.name), func(b *testing.B) {
				for b.Loop() {
					require.NoError(b, decodeBy(v, x, m))
				}
				rate(b)
			})
		}
	}
}

// BenchmarkStream encodes and decodes 64 million numbers from memory, on all processors.
func BenchmarkStream(b *testing.B) {
	const n = 64 << 20
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%3-1) * 0.5
	}
	for _, f := range []Format{I2SM1, TQ10, TQ20, Q40, Q80} {
		m, err := New(Layout{Format: f, Rows: 1, Cols: n})
		require.NoError(b, err)
		b.Run(f.String()+"/encode", func(b *testing.B) {
			b.SetBytes(4 * n)
			for b.Loop() {
				require.NoError(b, Encode(m, x))
			}
		})
		b.Run(f.String()+"/decode", func(b *testing.B) {
			b.SetBytes(4 * n)
			for b.Loop() {
				require.NoError(b, Decode(x, m))
			}
		})
	}
}
