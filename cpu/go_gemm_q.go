package cpu

// Activations of 8 bits and their products with blocks of weights in Go.

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
	return c.Parallel(rows*blocks, c.Choose(goGrain)/kernels.GemmQBlock, func(lo, hi int) {
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
			by, scale := 127/m, m*(float32(1)/127)
			sum := sums[2*i : 2*i+2]
			clear(sum)
			if most < math.Float32bits(float32(math.Inf(1))) {
				for j, v := range block {
					to[j] = int8(math.RoundToEven(float64(v * by)))
					sum[j/16] += int32(to[j])
				}
			} else {
				scale = float32(math.NaN())
			}
			scales[i] = scale
		}
	})
}

// goGemmQ computes the integers of a block for the rows of a panel together.
func goGemmQ(c *call) error {
	const rows, block = kernels.GemmQRows, kernels.GemmQBlock
	m, n, k := int(c.Int(6)), int(c.Int(7)), int(c.Int(8))
	bits, factors := kernels.GemmQForm(&c.Call)
	unit := kernels.GemmQScales(factors)
	q, scales, sums, w, by, y := c.Bytes(0), c.F32(1), c.I32(2), c.Bytes(3), c.U16(4), c.F32(5)
	blocks := k / block
	return c.Parallel((n+rows-1)/rows, max(1, c.Choose(goGrain)/max(k*m*rows, 1)), func(lo, hi int) {
		for p := lo; p < hi; p++ {
			for i := range m {
				var all [rows]float32
				for b := range blocks {
					at := p*blocks + b
					words, x := w[at*bits*rows*4:(at+1)*bits*rows*4], q[i*k+b*block:i*k+(b+1)*block]
					low, high := gemmQIntegers(bits, words, x)
					scale, sum := scales[i*blocks+b], sums[2*(i*blocks+b):]
					if factors == kernels.GemmQOne {
						for r, d := range by[at*rows : (at+1)*rows] {
							s := low[r] + high[r] - (sum[0]+sum[1])<<(bits-1)
							all[r] += float32(float32(s) * (half.Float16(d).Float32() * scale)) // rounded before the sum
						}
						continue
					}
					whole, parts := by[(at-b%8)*unit:], c.Bytes(4)[2*((at-b%8)*unit+(2+b%8)*rows):]
					for r := range all {
						d, first, second := half.Float16(whole[r]).Float32(), parts[r], parts[rows+r]
						if factors == kernels.GemmQHalves {
							s := int32(int8(first))*(low[r]-sum[0]<<(bits-1)) + int32(int8(second))*(high[r]-sum[1]<<(bits-1))
							all[r] += float32(float32(s) * (d * scale))
							continue
						}
						least := half.Float16(whole[rows+r]).Float32() * float32(second)
						v := float32(float32(low[r]+high[r])*(d*float32(first))) - float32(float32(sum[0]+sum[1])*least)
						all[r] += float32(v * scale)
					}
				}
				copy(y[i*n+p*rows:(i+1)*n], all[:])
			}
		}
	})
}

// gemmQIntegers returns the sums of products of the codes of a block of each row of a panel with activations,
// those of the block's first half and of its second one. For 8 bits all are in the first.
func gemmQIntegers(bits int, words, x []byte) (low, high [kernels.GemmQRows]int32) {
	const word = 4 * kernels.GemmQRows
	if bits == 8 {
		for e, v := range x {
			codes := words[e/4*word+e%4:]
			for r := range low {
				low[r] += int32(codes[4*r]) * int32(int8(v))
			}
		}
		return low, high
	}
	for e := range 16 { // the places of the bytes of a row
		codes, near, far := words[e/4*word+e%4:], int32(int8(x[e])), int32(int8(x[e+16]))
		if bits == 4 {
			for r := range low {
				low[r] += int32(codes[4*r]&15) * near
				high[r] += int32(codes[4*r]>>4) * far
			}
			continue
		}
		above := bits - 4
		at, mask := e/4*above, byte(1<<above-1)
		first, second := words[(4+at/8)*word+e%4:], words[(4+(at+4*above)/8)*word+e%4:]
		shift, shift2 := at%8, (at+4*above)%8
		for r := range low {
			low[r] += int32(codes[4*r]&15|first[4*r]>>shift&mask<<4) * near
			high[r] += int32(codes[4*r]>>4|second[4*r]>>shift2&mask<<4) * far
		}
	}
	return low, high
}
