package quant

// Blocks of codes of two bits, four in a byte, the first in the low bits, with a float32 per block apart.

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/runtime/driver"
)

// none is the invalid code of formats in which all codes exist.
const none = 4

// quarter describes one such format.
type quarter struct {
	name, about string
	blocks      []int      // numbers of a block that are allowed, first the default, or 0 if there is none
	levels      [4]float32 // the value of each code, in units of the scale
	// of kindLevels, for the vector functions, which find them behind levels: quotients above them have the codes
	// 1, 2 and 3
	between [3]float64
	invalid byte // the code that does not exist and reads as zero
	zeros   bool // asymmetric blocks exist, and the code of zero is subtracted from levels
	// scale returns the scale of a block, and the code of zero. most is its largest magnitude.
	scale func(x []float32, most float32, asymmetric bool) (scale, zero float32)
	code  func(q *quarter, x, scale, zero float32) byte
	kind  uint8 // scale and code as the vector functions know them
}

// The kinds of csrc/cpu/quant.h.
const (
	kindTrits = iota
	kindFromTwo
	kindHalves
	kindLevels
	kindEven
)

func (q quarter) codec() codec {
	for c := range q.between {
		if q.kind == kindLevels {
			q.between[c] = q.edge(byte(c))
		}
	}
	return codec{name: q.name, about: q.about, short: true, group: q.group, check: q.check, encode: q.encode,
		decode: q.decode, bad: q.bad, quarter: &q,
		vector: vectors{simd.QuantQuarterEncode, simd.QuantQuarterDecode}}
}

// edge returns what is between the largest quotient with a code and the least one with the next code, to which
// quotients are rounded from there on.
func (q *quarter) edge(c byte) float64 {
	number := func(i int) float32 { // in the order of numbers
		if i < 0 {
			return -math.Float32frombits(uint32(-i))
		}
		return math.Float32frombits(uint32(i))
	}
	low, high := -int(math.Float32bits(2)), int(math.Float32bits(2))
	least := low + sort.Search(high-low, func(i int) bool { return nearestLevel(q, number(low+i), 1, 0) > c })
	return (float64(number(least-1)) + float64(number(least))) / 2
}

func (q *quarter) block(l Layout) int {
	if l.Block == 0 {
		return q.blocks[0]
	}
	return l.Block
}

func (q *quarter) group(l Layout) (int, int, int) {
	if l.Asymmetric {
		return q.block(l), q.block(l) / 4, 2
	}
	return q.block(l), q.block(l) / 4, 1
}

func (q *quarter) check(l Layout) error {
	if l.Tile != (Tile{}) || l.Asymmetric && !q.zeros {
		return fmt.Errorf("the format has no such parameter: %w", driver.ErrInvalidArgument)
	}
	if l.Block == 0 {
		l.Block = q.blocks[0]
	}
	if l.Block == 0 {
		return fmt.Errorf("its Block has to be said, one of %v: %w", q.blocks[1:], driver.ErrInvalidArgument)
	}
	if !slices.Contains(q.blocks, l.Block) {
		return fmt.Errorf("block of %d is not one of %v: %w", l.Block, q.blocks, driver.ErrInvalidArgument)
	}
	return nil
}

// blocks calls f for every block with the codes of it. The last may be shorter.
func (q *quarter) each(l Layout, c codes, x []float32, f func(c codes, x []float32) error) error {
	numbers, bytes, scales := q.group(l)
	for i := 0; i*numbers < len(x); i++ {
		part := x[i*numbers : min((i+1)*numbers, len(x))]
		block := codes{data: c.data[i*bytes : i*bytes+(len(part)+3)/4], scales: c.scales[i*scales : (i+1)*scales]}
		if err := f(block, part); err != nil {
			return at(err, i*numbers)
		}
	}
	return nil
}

func (q quarter) encode(l Layout, to codes, x []float32) error {
	return q.each(l, to, x, func(to codes, x []float32) error {
		most, err := largest(x)
		if err != nil {
			return err
		}
		scale, zero := q.scale(x, most, l.Asymmetric)
		if scale-scale != 0 {
			return tooLarge(x, "")
		}
		to.scales[0] = scale
		if l.Asymmetric {
			to.scales[1] = zero
		}
		clear(to.data)
		for i, v := range x {
			to.data[i/4] |= q.code(&q, v, scale, zero) << (2 * (i % 4))
		}
		return nil
	})
}

func (q quarter) decode(l Layout, x []float32, from codes) {
	_ = q.each(l, from, x, func(from codes, x []float32) error {
		zero := float32(0)
		if q.zeros {
			if zero = 2; l.Asymmetric {
				zero = from.scales[1]
			}
		}
		var value [4]float32
		for c, level := range q.levels {
			value[c] = (level - zero) * from.scales[0]
		}
		for i := range x {
			x[i] = value[from.data[i/4]>>(2*(i%4))&3]
		}
		return nil
	})
}

func (q quarter) bad(_ Layout, from codes) (int, bool) {
	for i, b := range from.data {
		for ; q.invalid != none && b != 0; b >>= 2 {
			if b&3 == q.invalid {
				return i, true
			}
		}
	}
	return 0, false
}

// The scales.

func absmax(_ []float32, most float32, _ bool) (float32, float32) {
	if most == 0 {
		return 1, 0
	}
	return most, 0
}

func absmaxOfOneAndAHalf(_ []float32, most float32, _ bool) (float32, float32) {
	if most <= 1e-8 {
		return 1, 0
	}
	return most / 1.5, 0
}

// evenLevels is for levels that are whole numbers. Without asymmetry the code of zero is 2.
func evenLevels(x []float32, most float32, asymmetric bool) (float32, float32) {
	if !asymmetric {
		s, _ := absmax(nil, most, false)
		return s, 2
	}
	low, high := x[0], x[0]
	for _, v := range x {
		low, high = min(low, v), max(high, v)
	}
	s := (high - low) / 3
	if s == 0 {
		s = 1
	}
	return s, float32(math.Round(float64(-low / s)))
}

// The codes.

func nearestTrit(_ *quarter, x, scale, _ float32) byte { return trit(x+x, scale) }

func nearestFromTwo(_ *quarter, x, scale, _ float32) byte { return trit(x+x, scale) + 1 }

func aboveHalf(_ *quarter, x, scale, _ float32) byte {
	switch y := x / scale; {
	case y > 0.5:
		return 1
	case y < -0.5:
		return 3
	}
	return 0
}

// nearestLevel returns the first of the nearest levels.
func nearestLevel(q *quarter, x, scale, _ float32) (code byte) {
	y, best := x/scale, float32(math.Inf(1))
	for c, level := range q.levels {
		if d := float32(math.Abs(float64(y - level))); d < best {
			code, best = byte(c), d
		}
	}
	return code
}

func nearestEven(_ *quarter, x, scale, zero float32) byte {
	return byte(max(0, min(3, math.Round(float64(x/scale))+float64(zero))))
}
