package quant

// The formats once more, number by number and in float64, from the formulas of their descriptions.

import (
	"encoding/binary"
	"math"

	"github.com/concord-compute/concord/runtime/half"
)

// away rounds halves away from zero.
func away(x float64) float64 { return math.Copysign(math.Floor(math.Abs(x)+0.5), x) }

func sign(x float32) int {
	switch {
	case math.Abs(float64(x)) < 1e-6:
		return 0
	case x > 0:
		return 1
	}
	return -1
}

func most(x []float32) float32 {
	m := 0.0
	for _, v := range x {
		m = max(m, math.Abs(float64(v)))
	}
	return float32(m)
}

func tailOf(scale float32) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, math.Float32bits(scale)), make([]byte, 28)...)
}

func halfOf(d float32) []byte {
	return binary.LittleEndian.AppendUint16(nil, uint16(half.ToFloat16(float64(d))))
}

// reference encodes by the descriptions. It knows every format that can be written but those of which there is a golden
// file alone, such as Q4_K.
func reference(l Layout, x []float32) (data []byte, scales []float32) {
	rows, cols := l.Rows, l.Cols
	at := func(r, c int) float32 { return x[r*cols+c] }
	group := func(n int, f func(x []float32)) {
		for i := 0; i < len(x); i += n {
			f(x[i:min(i+n, len(x))])
		}
	}
	switch l.Format {
	case I2SM1, I2SM2:
		n := map[Format]int{I2SM1: 128, I2SM2: 64}[l.Format]
		data = make([]byte, len(x)/4)
		for i, v := range x {
			j := i % n
			data[i/n*n/4+j%(n/4)] |= byte(sign(v)+1) << (6 - 2*(j/(n/4)))
		}
		data = append(data, tailOf(most(x))...)
	case W2A8M4:
		data = make([]byte, len(x)/4)
		for t16 := range rows / 16 {
			for t32 := range cols / 32 {
				for i := range 16 {
					for j := range 32 {
						T := 2*i + j/16
						row, col := (T/16)*8+T%8, j%16+16*((T%16)/8)
						v := uint32(sign(at(t16*16+row, t32*32+col)) + 2)
						place := ((t16*(cols/32)+t32)*512 + i*32 + j)
						word, o := place/16, place%16
						bit := 8*(o%4) + 2*(o/4)
						data[4*word+bit/8] |= byte(v << (bit % 8))
					}
				}
			}
		}
		n := l.Block
		if n == 0 || n > rows {
			n = rows
		}
		group(n*cols, func(x []float32) { scales = append(scales, half.ToBFloat16(float64(most(x))).Float32()) })
	case TQ10, TQ20:
		group(256, func(x []float32) {
			d := most(x)
			r := float32(0)
			if d != 0 {
				r = 1 / d
			}
			trits := make([]int, 256)
			for i, v := range x {
				trits[i] = int(away(float64(v*r))) + 1
			}
			if l.Format == TQ20 {
				block := make([]byte, 64)
				for i := range 256 {
					block[i/128*32+i%32] |= byte(trits[i] << (i % 128 / 32 * 2))
				}
				data = append(data, block...)
			} else {
				for b := range 52 {
					q := 0
					for i := range 5 {
						switch {
						case b < 32:
							q = q*3 + trits[b+32*i]
						case b < 48:
							q = q*3 + trits[160+b-32+16*i]
						case i < 4:
							q = q*3 + trits[240+b-48+4*i]
						default:
							q *= 3
						}
					}
					data = append(data, byte(math.Ceil(float64(q)*256/243)))
				}
			}
			data = append(data, halfOf(d)...)
		})
	case Q40:
		group(32, func(x []float32) {
			top := float32(0)
			for _, v := range x {
				if math.Abs(float64(v)) > math.Abs(float64(top)) {
					top = v
				}
			}
			d := top / -8
			data = append(data, halfOf(d)...)
			q := make([]int, 32)
			for i, v := range x {
				q[i] = 8
				if d != 0 {
					y := v * (1 / d)
					q[i] = min(15, int(math.Floor(float64(float32(float64(y)+8.5)))))
					if math.IsInf(float64(1/d), 0) {
						q[i] = 0
					}
				}
			}
			for i := range 16 {
				data = append(data, byte(q[i]|q[i+16]<<4))
			}
		})
	case Q80:
		group(32, func(x []float32) {
			d := most(x) / 127
			data = append(data, halfOf(d)...)
			for _, v := range x {
				y := float32(0)
				if d != 0 {
					y = v * (1 / d)
				}
				data = append(data, byte(int(away(float64(y)))))
			}
		})
	case I8Rows, I8All:
		n := cols
		if l.Format == I8All {
			n = rows * cols
		}
		group(n, func(x []float32) {
			d := most(x) / 127
			scales = append(scales, d)
			for _, v := range x {
				y := float32(0)
				if d != 0 {
					y = v * (1 / d)
				}
				data = append(data, byte(int(away(float64(y)))))
			}
		})
	case I2SB, RA, RB, RTL1K, RTL2K, RTL1Q, RTL2Q:
		block := map[Format]int{I2SB: 128, RA: 32, RB: 32, RTL1K: 64, RTL2K: 128, RTL1Q: 64}[l.Format]
		if l.Block != 0 {
			block = l.Block
		}
		group(block, func(x []float32) {
			s := most(x)
			zero := 2.0
			switch {
			case l.Format == RB || l.Format == RTL1K || l.Format == RTL2K:
				if s <= 1e-8 {
					s = 1
				} else {
					s /= 1.5
				}
			case l.Asymmetric:
				low, high := float32(math.Inf(1)), float32(math.Inf(-1))
				for _, v := range x {
					low, high = min(low, v), max(high, v)
				}
				if s = (high - low) / 3; s == 0 {
					s = 1
				}
				zero = away(float64(-low / s))
			case s == 0:
				s = 1
			}
			scales = append(scales, s)
			if l.Asymmetric {
				scales = append(scales, float32(zero))
			}
			bytes := make([]byte, (len(x)+3)/4)
			for i, v := range x {
				y := float64(v / s)
				var code int
				switch l.Format {
				case I2SB:
					code = int(max(-1, min(1, away(y)))) + 1
				case RA:
					code = int(max(-2, min(1, away(y)))) + 2
				case RB:
					if y > 0.5 {
						code = 1
					} else if y < -0.5 {
						code = 3
					}
				case RTL1K, RTL2K:
					levels := []float32{-1, -0.33, 0.33, 1}
					if l.Format == RTL2K {
						levels = []float32{-1.2, -0.4, 0.4, 1.2}
					}
					for c, level := range levels {
						if math.Abs(float64(float32(y)-level)) < math.Abs(float64(float32(y)-levels[code])) {
							code = c
						}
					}
				default:
					code = int(max(0, min(3, away(y)+zero)))
				}
				bytes[i/4] |= byte(code << (2 * (i % 4)))
			}
			data = append(data, bytes...)
		})
	case MTL1:
		BM, BY, bm := l.Tile.BM, l.Tile.BY, l.Tile.Sub
		by := 256 / bm
		K := cols
		data = make([]byte, rows*cols/4)
		for r := range rows {
			for p := range cols / 2 {
				index := 3*sign(at(r, 2*p)) + sign(at(r, 2*p+1)) + 4
				R, s, g, i := r/BM, r%BM/bm, r%bm/16, r%16
				C, t, h := p/(BY/2), p%(BY/2)/(by/2), p%(by/2)/2
				offset := (((((R*(K/BY)+C)*(BM/bm)+s)*(BY/by)+t)*(bm/16)+g)*(by/4)+h)*16 + i
				if p%2 == 0 {
					index <<= 4
				}
				data[offset] |= byte(index)
			}
		}
		data = append(data, tailOf(most(x))...)
	case MTL2:
		M, K, BM, BY := rows, cols, l.Tile.BM, l.Tile.BY
		K2 := K % BY
		K3 := K - K2
		pi := []int{0, 2, 1, 3}
		indices, signs, pairs := make([]byte, M*K3/6), make([]byte, M*K3/24), make([]byte, M*K2/4)
		for r := range rows {
			R, s, i := r/BM, r%BM/32, r%32
			pos := 8*pi[i/8] + i%8
			for u := range K3 / 3 {
				v := 9*sign(at(r, 3*u)) + 3*sign(at(r, 3*u+1)) + sign(at(r, 3*u+2))
				C, t := u/(BY/3), u%(BY/3)/2
				index := int(math.Abs(float64(v)))
				if u%2 == 0 {
					index <<= 4
				}
				indices[(((R*(K3/BY)+C)*(BM/32)+s)*(BY/6)+t)*32+pos] |= byte(index)
				if v < 0 {
					tile := ((R*(K3/BY)+C)*(BM/32)+s)*(BY/24) + u%(BY/3)/8
					e, h, c := u%8, i/16, i%16
					word := tile*32 + 2*c
					w := binary.LittleEndian.Uint16(signs[word:]) | 1<<(15-(2*e+h))
					binary.LittleEndian.PutUint16(signs[word:], w)
				}
			}
			for p := range K2 / 2 {
				index := 3*sign(at(r, K3+2*p)) + sign(at(r, K3+2*p+1)) + 4
				C, t := p/16, p%16/2
				if p%2 == 0 {
					index <<= 4
				}
				pairs[(((R*(K2/32)+C)*(BM/32)+s)*8+t)*32+pos] |= byte(index)
			}
		}
		data = append(append(indices, signs...), pairs...)
		for least := (K-256)*M/3*5/8 + 256*M/2*4/8; len(data) < least || len(data)%32 != 0; {
			data = append(data, 0)
		}
		data = append(data, tailOf(most(x))...)
	}
	return data, scales
}
