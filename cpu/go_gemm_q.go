package cpu

// Activations of 8 bits and their products with blocks of weights of 8 and 4 bits in Go.

import (
	"math"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/half"
)

func init() {
	native("gemm_q", "quantize_blocks", goQuantizeBlocks)
	native("gemm_q", "gemm_q", goGemmQ)
}

func goQuantizeBlocks(c *call) error {
	rows, cols, k := int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
	x, q, scales, sums := c.F32(0), c.I8(1), c.F32(2), c.I32(3)
	blocks := k / kernels.GemmQBlock
	return c.Parallel(rows*blocks, grain/kernels.GemmQBlock, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			from := i % blocks * kernels.GemmQBlock
			block := x[i/blocks*cols:][min(from, cols):min(from+kernels.GemmQBlock, cols)]
			to := q[i*kernels.GemmQBlock : (i+1)*kernels.GemmQBlock]
			most := math.Float32bits(1e-5) // the bits of magnitudes have their order, with those of NaN last
			for _, v := range block {
				most = max(most, math.Float32bits(v)&^(1<<31))
			}
			clear(to)
			m := math.Float32frombits(most)
			sum, by, scale := int32(0), 127/m, m*(float32(1)/127)
			if most < math.Float32bits(float32(math.Inf(1))) {
				for j, v := range block {
					to[j] = int8(math.RoundToEven(float64(v * by)))
					sum += int32(to[j])
				}
			} else {
				scale = float32(math.NaN())
			}
			scales[i], sums[i] = scale, sum
		}
	})
}

// goGemmQ computes the integers of a block for the rows of a panel together.
func goGemmQ(c *call) error {
	const rows, block = kernels.GemmQRows, kernels.GemmQBlock
	m, n, k, bits := int(c.Int(6)), int(c.Int(7)), int(c.Int(8)), kernels.GemmQBits(&c.Call)
	q, scales, sums, w, by, y := c.Bytes(0), c.F32(1), c.I32(2), c.Bytes(3), c.U16(4), c.F32(5)
	blocks := k / block
	return c.Parallel((n+rows-1)/rows, max(1, grain/max(k*m*rows, 1)), func(lo, hi int) {
		for p := lo; p < hi; p++ {
			for i := range m {
				var all [rows]float32
				for b := range blocks {
					var s [rows]int32
					at := p*blocks + b
					words, x := w[at*bits*rows*4:(at+1)*bits*rows*4], q[i*k+b*block:i*k+(b+1)*block]
					for e := range bits * 4 { // the places of the bytes of a row
						codes, near := words[e/4*rows*4+e%4:], int32(int8(x[e]))
						if bits == 8 {
							for r := range s {
								s[r] += int32(codes[4*r]) * near
							}
							continue
						}
						far := int32(int8(x[e+16]))
						for r := range s {
							s[r] += int32(codes[4*r]&15)*near + int32(codes[4*r]>>4)*far
						}
					}
					less, scale := sums[i*blocks+b]<<(bits-1), scales[i*blocks+b]
					for r := range all {
						d := half.Float16(by[at*rows+r]).Float32() * scale
						all[r] += float32(float32(s[r]-less) * d) // rounded before the sum
					}
				}
				copy(y[i*n+p*rows:(i+1)*n], all[:])
			}
		}
	})
}
