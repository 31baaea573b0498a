package cpu

// Tests of gemm_q on memory between guard pages, in every instruction set: its bits are those of the definition.

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/half"
	"github.com/concord-compute/concord/source"
)

func TestBlockProducts(t *testing.T) {
	eachBytes(t, func(t *testing.T, d *device) {
		f, forms := newFence(t, 16), kernels.GemmQForms()
		noise := func(n int) []byte {
			b, what := f.bytes(n), f.r.IntN(4) // all 0, -1 or -128, or any
			for i := range b {
				b[i] = [4]byte{0, 255, 128, byte(f.r.Uint32())}[what]
			}
			return b
		}
		for range 50 * len(forms) {
			m, n, blocks, form := f.r.IntN(20), f.r.IntN(70), f.r.IntN(8), forms[f.r.IntN(len(forms))]
			bits, factors, unit, large := form[0], form[1], 16, form[1] != kernels.GemmQOne
			if large {
				blocks, unit = 8*f.r.IntN(3), 20
			}
			defines := []source.Define{{Name: "BITS", Value: fmt.Sprint(bits)}, {Name: "FACTORS", Value: fmt.Sprint(factors)}}
			panels, k := (n+15)/16, 32*blocks
			q, w, by, out := noise(m*k), noise(panels*blocks*bits*64), noise(panels*blocks*unit*2), f.bytes(4*m*n)
			scales, sums := f.numbers("f32", m*blocks), f.bytes(8*m*blocks)
			for i := 0; i < len(by); i += 2 {
				if at := i / 2 % 160; !large || at < 32 {
					binary.LittleEndian.PutUint16(by[i:], uint16(half.ToFloat16(f.r.NormFloat64())))
				}
			}
			for i := range 2 * m * blocks {
				sum := int32(0)
				for _, v := range q[16*i : 16*i+16] {
					sum += int32(int8(v))
				}
				binary.LittleEndian.PutUint32(sums[4*i:], uint32(sum))
			}
			require.NoError(t, invoke(t, d, "gemm_q", "gemm_q", defines, [3]int{1, 1, 1}, q, scales, sums, w, by, out, uint32(m),
				uint32(n), uint32(k)))
			x := kernels.Decode("f32", scales)
			number := func(at int) float32 { return half.Float16(binary.LittleEndian.Uint16(by[2*at:])).Float32() }
			for i := range m {
				for j := range n {
					want := float32(0)
					for b := range blocks {
						s, all, at, scale := [2]int{}, 0, j/16*blocks+b, float32(x[i*blocks+b])
						word := func(i, e int) int { return int(w[(at*bits+i)*64+j%16*4+e%4]) }
						for e := range 32 {
							code, v := 0, int(int8(q[i*k+32*b+e]))
							switch code = word(e%16/4, e) >> (e / 16 * 4) & 15; bits {
							case 8:
								code = word(e/4, e)
							case 5:
								code += 16 * (word(4, e) >> (e / 4) & 1)
							case 6:
								code += 16 * (word(4+e/16, e) >> (e % 16 / 4 * 2) & 3)
							}
							if factors != kernels.GemmQLeast {
								code -= 1 << (bits - 1)
							}
							s[e/16] += code * v
							all += v
						}
						if !large {
							want += float32(float32(s[0]+s[1]) * (number(at*16+j%16) * scale))
							continue
						}
						from := (at - b%8) * 20
						first, second := by[2*(from+(2+b%8)*16)+j%16], by[2*(from+(2+b%8)*16)+16+j%16]
						if step := number(from + j%16); factors == kernels.GemmQHalves {
							want += float32(float32(s[0]*int(int8(first))+s[1]*int(int8(second))) * (step * scale))
						} else {
							v := float32(float32(s[0]+s[1])*(step*float32(first))) - float32(
								float32(all)*(number(from+16+j%16)*float32(second)))
							want += float32(v * scale)
						}
					}
					got := math.Float32frombits(binary.LittleEndian.Uint32(out[4*(i*n+j):]))
					require.Equal(t, want, got, "bits=%d factors=%d m=%d n=%d k=%d: %d, %d", bits, factors, m, n, k, i, j)
				}
			}
			f.free()
		}
		for range 150 {
			rows, cols := f.r.IntN(9), f.r.IntN(700)
			k := (cols + f.r.IntN(70) + 31) / 32 * 32
			x, q, scales, sums := f.numbers("f32", rows*cols), f.bytes(rows*k), f.bytes(rows*k/8), f.bytes(rows*k/4)
			require.NoError(t, invoke(t, d, "gemm_q", "quantize_blocks", nil, [3]int{1, 1, 1}, x, q, scales, sums, uint32(rows),
				uint32(cols), uint32(k)))
			numbers, scale, sum := kernels.Decode("f32", x), kernels.Decode("f32", scales), kernels.Decode("i32", sums)
			for i := range rows * k / 32 {
				from := i * 32 % max(k, 1)
				block := numbers[i*32/k*cols+min(from, cols) : i*32/k*cols+min(from+32, cols)]
				most, all := float32(1e-5), [2]float64{}
				for _, v := range block {
					most = max(most, float32(math.Abs(v)))
				}
				require.Equal(t, most*float32(1.0/127), float32(scale[i]))
				for j := range 32 {
					want := 0.0
					if j < len(block) {
						want = math.RoundToEven(float64(float32(block[j]) * (127 / most)))
					}
					require.Equal(t, int8(want), int8(q[i*32+j]), "cols=%d k=%d: %d, %d", cols, k, i, j)
					all[j/16] += want
				}
				require.Equal(t, all[:], sum[2*i:2*i+2])
			}
			f.free()
		}
	})
}
