package quant

// The searches for scales of ggml's blocks of blocks, such as Q4_K and Q6_K. All sums are in float32 and in ggml's
// order, since other sums would choose other scales.

import (
	"math"
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

// lines are the sizes of steps that fitLine tries: those for which the largest number has the largest code, and
// as many more as tries says for larger codes of it, from first on in tenths.
type lines struct {
	first float32
	tries int
}

// fitLine searches the line and the codes from 0 to last with the least weighted square error.
func fitLine(x, weight []float32, l []int, last int, s lines) line {
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
	most := float32(last)
	step := most / (high - low)
	best := line{1 / step, low}
	codes := func(step, low float32, l []int) {
		for i, v := range x {
			l[i] = clamp(near(step*(v-low)), 0, last)
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
	for is := range s.tries {
		// ggml counts codes from the least number of the best line so far.
		codes((s.first+float32(0.1*float32(is))+most)/(high-best.least), best.least, try)
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

// factorsAt6 returns factor j of the scale and of the least number from the 12 bytes of eight of each.
func factorsAt6(s []byte, j int) (scale, least int) {
	if j < 4 {
		return int(s[j] & 63), int(s[j+4] & 63)
	}
	return int(s[j+4]&15 | s[j-4]>>6<<4), int(s[j+4]>>4 | s[j]>>6<<4)
}

// recode makes the codes that are nearest by the factors as they are stored, and those of l where these are zero.
func (b *block) recode(data []byte, x []float32, l []int, q []byte) {
	n, low, high := b.part(), -b.less, 1<<b.bits()-1-b.less
	for i := 0; i < len(l); i += n {
		d, m := b.line(data, i/n)
		for j, c := range l[i : i+n] {
			if d != 0 {
				c = clamp(near((x[i+j]+m)/d), low, high)
			}
			q[i+j] = byte(c - low)
		}
	}
}

// search is the fit of blocks with factors of 6 bits and least numbers.
func (s lines) search(b *block, data []byte, x []float32, _ float32, q []byte) error {
	var l [mostNumbers]int
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
		fits[j] = fitLine(part, weight[:], l[32*j:32*j+32], 1<<b.bits()-1, s)
		most.scale, most.least = max(most.scale, fits[j].scale), max(most.least, fits[j].least)
	}
	if most.scale-most.scale != 0 || most.least-most.least != 0 { // squares overflowed
		return tooLarge(x, " to be searched for")
	}
	if err := putHalf(data[b.scale:], most.scale/63, x); err != nil {
		return err
	}
	if err := putHalf(data[b.scale+2:], most.least/63, x); err != nil {
		return err
	}
	var step line
	if most.scale > 0 {
		step.scale = 63 / most.scale
	}
	if most.least > 0 {
		step.least = 63 / most.least
	}
	f := data[b.factors:]
	for j, fit := range fits {
		scale, least := byte(clamp(near(step.scale*fit.scale), 0, 63)), byte(clamp(near(step.least*fit.least), 0, 63))
		if j < 4 {
			f[j], f[j+4] = scale, least
		} else {
			f[j+4] = scale&15 | least<<4
			f[j-4] |= scale >> 4 << 6
			f[j] |= least >> 4 << 6
		}
	}
	b.recode(data, x, l[:], q)
	return nil
}

// searchHalves is the fit of blocks with factors of 8 bits for 16 numbers.
func searchHalves(b *block, data []byte, x []float32, _ float32, q []byte) error {
	var l [mostNumbers]int
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
	if max(top, -top) < tiny {
		clear(data)
		clear(q)
		return nil
	}
	step := -128 / top
	if err := putHalf(data[b.scale:], 1/step, x); err != nil {
		return err
	}
	for j, s := range scales {
		data[b.factors+j] = byte(int8(min(127, near(step*s))))
	}
	b.recode(data, x, l[:], q)
	return nil
}
