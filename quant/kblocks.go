package quant

// ggml's blocks of blocks: Q4_K and Q6_K. Their encoders search for scales; all sums are in float32 and in ggml's
// order, since other sums would choose other scales.

import (
	"math"
)

// Bytes of blocks of 256: Q4_K has two scales of 16 bits, eight scales and eight minima of 6 bits in 12 bytes, and
// nibbles; Q6_K has low nibbles, high pairs of bits, sixteen scales of 8 bits and one of 16.
const (
	q4kBytes = 2 + 2 + 12 + 128
	q6kBytes = 128 + 64 + 16 + 2
)

// near rounds to the nearest whole number, halves to even, as ggml does: by adding a number so large that a
// float32 has no digits behind the point. Beyond 2^22, infinite (steps for numbers that are too small for their
// reciprocals) and NaN, the sum's low bits are something else, but the same on every processor.
func near(x float32) int {
	const unit = 1 << 22 // the sum has 23 bits behind its first one, which stands for 2 · unit
	return int(math.Float32bits(x+3*unit)&(2*unit-1)) - unit
}

func clamp(x, low, high int) int { return max(low, min(high, x)) }

// line is a scale and a minimum that numbers are fitted to.
type line struct{ scale, least float32 }

// fitLine searches the line and the codes from 0 to 15 with the least weighted square error, from 21 sizes of steps.
func fitLine(x, weight []float32, l []int) line {
	low, high := x[0], x[0]
	var sumW, sumX float32
	for i, v := range x {
		low, high = min(low, v), max(high, v)
		sumW += weight[i]
		sumX += float32(weight[i] * v)
	}
	low = min(low, 0)
	if high == low {
		clear(l)
		return line{0, -low}
	}
	const most = 15
	step := most / (high - low)
	best := line{1 / step, low}
	codes := func(step, low float32, l []int) {
		for i, v := range x {
			l[i] = clamp(near(step*(v-low)), 0, most)
		}
	}
	miss := func(f line, l []int) (sum float32) {
		for i, v := range x {
			d := float32(f.scale*float32(l[i])) + f.least - v
			sum += float32(weight[i] * float32(d*d))
		}
		return sum
	}
	codes(step, low, l)
	least := miss(best, l)
	var other [32]int
	try := other[:len(x)]
	for is := range 21 {
		// ggml counts codes from the least number of the best line so far.
		codes((float32(-1)+float32(0.1*float32(is))+most)/(high-best.least), best.least, try)
		var sumL, sumL2, sumXL float32
		for i, v := range x {
			w, c := weight[i], float32(try[i])
			sumL += float32(w * c)
			sumL2 += float32(float32(w*c) * c)
			sumXL += float32(float32(w*c) * v)
		}
		d := float32(sumW*sumL2) - float32(sumL*sumL)
		if d <= 0 {
			continue
		}
		f := line{(float32(sumW*sumXL) - float32(sumX*sumL)) / d, (float32(sumL2*sumX) - float32(sumL*sumXL)) / d}
		if f.least > 0 {
			f = line{sumXL / sumL2, 0}
		}
		if e := miss(f, try); e < least {
			copy(l, try)
			least, best = e, f
		}
	}
	return line{best.scale, -best.least}
}

// fitScale searches the scale and the codes from -32 to 31 whose errors, weighted by the squares of numbers, are least.
func fitScale(x []float32, l []int) float32 {
	const most = 32
	var top, size float32
	for _, v := range x {
		if a := float32(math.Abs(float64(v))); a > size {
			size, top = a, v
		}
	}
	if size < tiny {
		for i := range l {
			l[i] = -most // the codes that are stored as zeros
		}
		return 0
	}
	codes := func(step float32, f func(i, c int)) {
		for i, v := range x {
			f(i, clamp(near(step*v), -most, most-1))
		}
	}
	sums := func(step float32) (sumXL, sumL2 float32) {
		codes(step, func(i, c int) {
			w := float32(x[i] * x[i])
			sumXL += float32(float32(w*x[i]) * float32(c))
			sumL2 += float32(float32(w*float32(c)) * float32(c))
		})
		return sumXL, sumL2
	}
	set := func(i, c int) { l[i] = c }
	step := -most / top
	codes(step, set)
	sumXL, sumL2 := sums(step)
	scale := float32(0)
	if sumL2 != 0 {
		scale = sumXL / sumL2
	}
	best := float32(scale * sumXL)
	for is := -9; is <= 9; is++ {
		if is == 0 {
			continue
		}
		step := -(most + float32(0.1*float32(is))) / top
		if sumXL, sumL2 := sums(step); sumL2 > 0 && float32(sumXL*sumXL) > float32(best*sumL2) {
			codes(step, set)
			scale = sumXL / sumL2
			best = float32(scale * sumXL)
		}
	}
	return scale
}

// tiny is the magnitude below which ggml takes blocks of Q6_K for zero.
const tiny float32 = 1e-15

// pairOf6 returns scale and minimum j of the 12 bytes of Q4_K.
func pairOf6(s []byte, j int) (scale, least int) {
	if j < 4 {
		return int(s[j] & 63), int(s[j+4] & 63)
	}
	return int(s[j+4]&15 | s[j-4]>>6<<4), int(s[j+4]>>4 | s[j]>>6<<4)
}

func encodeQ4K(_ Layout, to codes, x []float32) error {
	return eachBlock(to, x, q4kBytes, 256, func(data []byte, x []float32, _ float32) error {
		var l [256]int
		var fits [8]line
		var most line
		for j := range fits {
			part, weight := x[32*j:32*j+32], [32]float32{}
			squares := float32(0)
			for _, v := range part {
				squares += float32(v * v)
			}
			mean := float32(math.Sqrt(float64(squares / 32)))
			for i, v := range part {
				weight[i] = mean + float32(math.Abs(float64(v)))
			}
			fits[j] = fitLine(part, weight[:], l[32*j:32*j+32])
			most.scale, most.least = max(most.scale, fits[j].scale), max(most.least, fits[j].least)
		}
		if most.scale-most.scale != 0 || most.least-most.least != 0 { // squares overflowed
			return tooLarge(x, " to be searched for")
		}
		if err := putHalf(data, most.scale/63, x); err != nil {
			return err
		}
		if err := putHalf(data[2:], most.least/63, x); err != nil {
			return err
		}
		var step line
		if most.scale > 0 {
			step.scale = 63 / most.scale
		}
		if most.least > 0 {
			step.least = 63 / most.least
		}
		s := data[4:16]
		for j, f := range fits {
			scale, least := byte(clamp(near(step.scale*f.scale), 0, 63)), byte(clamp(near(step.least*f.least), 0, 63))
			if j < 4 {
				s[j], s[j+4] = scale, least
			} else {
				s[j+4] = scale&15 | least<<4
				s[j-4] |= scale >> 4 << 6
				s[j] |= least >> 4 << 6
			}
		}
		for j := range fits {
			scale, least := pairOf6(s, j)
			d, m := getHalf(data)*float32(scale), getHalf(data[2:])*float32(least)
			if d == 0 {
				continue
			}
			for i := 32 * j; i < 32*j+32; i++ {
				l[i] = clamp(near((x[i]+m)/d), 0, 15)
			}
		}
		for i := range 128 {
			at := i/32*64 + i%32
			data[16+i] = byte(l[at] | l[at+32]<<4)
		}
		return nil
	})
}

func decodeQ4K(_ Layout, x []float32, from codes) {
	for data := from.data; len(data) > 0; data, x = data[q4kBytes:], x[256:] {
		for j := range 8 {
			scale, least := pairOf6(data[4:16], j)
			d, m := getHalf(data)*float32(scale), getHalf(data[2:])*float32(least)
			for i, b := range data[16+j/2*32 : 48+j/2*32] {
				x[32*j+i] = float32(d*float32(b>>(j%2*4)&15)) - m
			}
		}
	}
}

// scalesOfQ4K stores the scale, the least number, and the factors of both for the eight blocks, as the kernel
// gemm_q has them for a row of a panel.
func scalesOfQ4K(data, by []byte, row int) {
	copy(by[2*row:], data[:2])
	copy(by[32+2*row:], data[2:4])
	for j := range 8 {
		scale, least := pairOf6(data[4:16], j)
		by[64+32*j+row], by[80+32*j+row] = byte(scale), byte(least)
	}
}

func badQ4K(_ Layout, from codes) (int, bool) {
	return eachBad(from, q4kBytes, func(data []byte) (int, bool) {
		return 0, !finiteHalf(data) || !finiteHalf(data[2:])
	})
}

func encodeQ6K(_ Layout, to codes, x []float32) error {
	return eachBlock(to, x, q6kBytes, 256, func(data []byte, x []float32, _ float32) error {
		var l [256]int
		var scales [16]float32
		top := float32(0) // of the scales, the one of largest magnitude
		for j := range scales {
			scales[j] = fitScale(x[16*j:16*j+16], l[16*j:16*j+16])
			if math.IsNaN(float64(scales[j])) || math.Abs(float64(scales[j])) > math.Abs(float64(top)) {
				top = scales[j] // and stays NaN
			}
		}
		if top-top != 0 {
			return tooLarge(x, " to be searched for")
		}
		clear(data)
		if max(top, -top) < tiny {
			return nil
		}
		step := -128 / top
		if err := putHalf(data[208:], 1/step, x); err != nil {
			return err
		}
		for j, s := range scales {
			scale := int8(min(127, near(step*s)))
			data[192+j] = byte(scale)
			d := getHalf(data[208:]) * float32(scale)
			if d == 0 {
				continue
			}
			for i := 16 * j; i < 16*j+16; i++ {
				l[i] = clamp(near(x[i]/d), -32, 31)
			}
		}
		for i, c := range l {
			low, high, bit := q6place(i)
			c += 32
			data[low] |= byte(c&15) << (bit / 4 * 4)
			data[high] |= byte(c>>4) << bit
		}
		return nil
	})
}

// q6place returns the bytes with the low and the high bits of a number, and the shift of the high ones; the low
// ones are a high nibble from shift 4 on.
func q6place(i int) (low, high, bit int) {
	half, k, m := i/128, i%128/32, i%32
	return 64*half + k%2*32 + m, 128 + 32*half + m, 2 * k
}

func decodeQ6K(_ Layout, x []float32, from codes) {
	for data := from.data; len(data) > 0; data, x = data[q6kBytes:], x[256:] {
		d := getHalf(data[208:])
		for i := range 256 {
			low, high, bit := q6place(i)
			c := int(data[low]>>(bit/4*4)&15|data[high]>>bit&3<<4) - 32
			x[i] = float32(d*float32(int8(data[192+i/16]))) * float32(c)
		}
	}
}

// scalesOfQ6K stores the scale and those of the halves of the eight blocks, as the kernel gemm_q has them for a
// row of a panel.
func scalesOfQ6K(data, by []byte, row int) {
	copy(by[2*row:], data[208:210])
	for j := range 16 {
		by[64+16*j+row] = data[192+j]
	}
}

func badQ6K(_ Layout, from codes) (int, bool) {
	return eachBad(from, q6kBytes, func(data []byte) (int, bool) { return 208, !finiteHalf(data[208:]) })
}
