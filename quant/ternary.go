package quant

// Weights to ternary numbers, and the formats of the file writer's rule.

import (
	"fmt"
	"math"

	"github.com/concord-compute/concord/runtime/driver"
)

// Method is a rule by which weights become ternary: which s, and which of -s, 0 and s is near.
type Method uint8

// The methods.
const (
	// Exact: s is the largest magnitude, and all numbers have to be -s, 0 or s already, within a thousandth of s
	Exact   Method = iota + 1
	AbsMean        // s is the mean magnitude, at least 1e-5; for training
	AbsMax         // s is the largest magnitude, or 1 if all are zero
)

// exactZero is the magnitude below which Exact takes a number for zero.
const exactZero = 1e-6

// leastMean is the smallest scale of AbsMean and of activations.
const leastMean = 1e-5

// exactOne returns the magnitude from which Exact takes a number for the scale.
func exactOne(scale float32) float32 { return scale - float32(scale*1e-3) }

// Scale returns the scale of a method for weights. Exact refuses numbers that are not ternary with
// driver.ErrInvalidArgument. The mean is that of float64 sums of pieces of 65,536 numbers, so that it does not depend
// on the number of processors.
func Scale(m Method, x []float32) (float32, error) {
	if len(x) == 0 {
		return 0, fmt.Errorf("quant: scale of no numbers: %w", driver.ErrInvalidArgument)
	}
	most, err := fastest().largest(x)
	if err != nil {
		return 0, fmt.Errorf("quant: scale: %w", err)
	}
	switch m {
	case Exact:
		if err := checkExact(x, most); err != nil {
			return 0, fmt.Errorf("quant: scale: %w", err)
		}
		return most, nil
	case AbsMean:
		return max(float32(magnitudes(x)/float64(len(x))), leastMean), nil
	case AbsMax:
		if most == 0 {
			return 1, nil
		}
		return most, nil
	}
	return 0, fmt.Errorf("quant: %d is no method: %w", m, driver.ErrInvalidArgument)
}

// magnitudes returns the sum of all |x|: eight sums of each piece, joined in pairs.
func magnitudes(x []float32) float64 {
	pieces := make([]float64, (len(x)+pieceNumbers-1)/pieceNumbers)
	_ = spread(len(pieces), pieceNumbers, func(lo, hi int) error {
		for i := lo; i < hi; i++ {
			piece := x[i*pieceNumbers : min((i+1)*pieceNumbers, len(x))]
			var s [8]float64
			for ; len(piece) >= 8; piece = piece[8:] {
				for j := range s {
					s[j] += math.Abs(float64(piece[j]))
				}
			}
			for j, v := range piece {
				s[j] += math.Abs(float64(v))
			}
			pieces[i] = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
		}
		return nil
	})
	sum := 0.0
	for _, p := range pieces {
		sum += p
	}
	return sum
}

// Ternary writes to each number of y that of -s, 0 and s which is nearest to the one of x, halves away from zero. x and
// y may be the same memory. s is that of Scale or one's own; it is positive and finite.
func Ternary(y, x []float32, s float32) error {
	switch {
	case len(y) != len(x):
		return fmt.Errorf("quant: ternary: %d numbers for %d: %w", len(y), len(x), driver.ErrDimension)
	case s <= 0 || s-s != 0:
		return fmt.Errorf("quant: ternary: scale %v: %w", s, driver.ErrInvalidArgument)
	}
	if _, err := fastest().largest(x); err != nil {
		return fmt.Errorf("quant: ternary: %w", err)
	}
	value := [3]float32{-s, 0, s}
	return spread(len(x), 1, func(lo, hi int) error {
		for i, v := range x[lo:hi] {
			y[lo+i] = value[trit(v+v, s)]
		}
		return nil
	})
}

// trit returns 0, 1 or 2 for a number up to -limit, between, and from limit on. A NaN is 1.
func trit(x, limit float32) byte {
	if x >= limit {
		return 2
	}
	if x <= -limit {
		return 0
	}
	return 1
}

// checkExact returns a fault for the first number that Exact does not take.
func checkExact(x []float32, scale float32) error {
	one := exactOne(scale)
	for i, v := range x {
		if a := float32(math.Abs(float64(v))); a >= exactZero && a < one {
			return &fault{i, fmt.Sprintf("is %v, which is neither zero nor the scale %v: choose ternary numbers by another "+
				"method first", v, scale), driver.ErrInvalidArgument}
		}
	}
	return nil
}

// values returns the numbers of the codes 0 to 3, of which 3 does not exist and is zero.
func values(scale float32) [4]float32 {
	zero := 0 * scale
	return [4]float32{-1 * scale, zero, scale, zero}
}

// interleaved returns the bytes of a group: byte b has numbers b, b+bytes, b+2·bytes and b+3·bytes, the first
// in the top bits. Of I2SM3 these are the columns of four rows.
func interleaved(l Layout) int {
	switch l.Format {
	case I2SM2:
		return 16
	case I2SM3:
		return l.Cols
	}
	return 32
}

func encodeInterleaved(l Layout, to codes, x []float32) error {
	if err := checkExact(x, to.scale); err != nil {
		return err
	}
	n := interleaved(l)
	for data := to.data; len(data) > 0; data, x = data[n:], x[4*n:] {
		for b := range data[:n] {
			data[b] = trit(x[b], exactZero)<<6 | trit(x[b+n], exactZero)<<4 | trit(x[b+2*n], exactZero)<<2 | trit(x[b+3*n],
				exactZero)
		}
	}
	return nil
}

func decodeInterleaved(l Layout, x []float32, from codes) {
	n, value := interleaved(l), values(from.scale)
	for data := from.data; len(data) > 0; data, x = data[n:], x[4*n:] {
		for b, c := range data[:n] {
			x[b], x[b+n], x[b+2*n], x[b+3*n] = value[c>>6], value[c>>4&3], value[c>>2&3], value[c&3]
		}
	}
}

// getQuarters decodes groups of 128 numbers in 32 bytes, the first 32 in the low bits.
func getQuarters(x []float32, from []byte, scale float32) {
	value := values(scale)
	for ; len(x) > 0; x, from = x[128:], from[32:] {
		for b, c := range from[:32] {
			x[b], x[b+32], x[b+64], x[b+96] = value[c&3], value[c>>2&3], value[c>>4&3], value[c>>6]
		}
	}
}

// badInterleaved finds a byte with a code 3.
func badInterleaved(_ Layout, from codes) (int, bool) { return findThree(from.data) }

func findThree(data []byte) (int, bool) {
	for i, c := range data {
		if c&(c>>1)&0x55 != 0 {
			return i, true
		}
	}
	return 0, false
}

// Four rows in a byte.

func groupFourRows(l Layout) (int, int, int) { return 4 * l.Cols, l.Cols, 0 }

func checkFourRows(l Layout) error {
	switch {
	case l.Block != 0 || l.Tile != (Tile{}) || l.Asymmetric:
		return fmt.Errorf("the format has no Block, Tile or Asymmetric: %w", driver.ErrInvalidArgument)
	case l.Rows%4 != 0:
		return fmt.Errorf("the number of rows is not a multiple of 4: %w", driver.ErrDimension)
	}
	return nil
}
