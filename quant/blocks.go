package quant

// What codecs of blocks share, TQ1_0, and bytes with scales apart.

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/half"
)

// tooLarge returns the fault of the number of largest magnitude, whose scale is too large, or too large for something.
func tooLarge(x []float32, something string) error {
	at := 0
	for i, v := range x {
		if math.Abs(float64(v)) > math.Abs(float64(x[at])) {
			at = i
		}
	}
	return &fault{at, fmt.Sprintf("is %v, which needs a scale that is too large%s", x[at], something), driver.ErrNumerical}
}

// putHalf stores a scale of numbers.
func putHalf(to []byte, d float32, x []float32) error {
	h := half.ToFloat16(float64(d))
	if h&0x7c00 == 0x7c00 {
		return tooLarge(x, " for a float16")
	}
	binary.LittleEndian.PutUint16(to, uint16(h))
	return nil
}

// getHalf reads a scale. The exponent of a normal one is that of a float32 less 112.
func getHalf(from []byte) float32 {
	h := binary.LittleEndian.Uint16(from)
	if e := h & 0x7c00; e == 0 || e == 0x7c00 {
		return half.Float16(h).Float32()
	}
	return math.Float32frombits(uint32(h)&0x8000<<16 | uint32(h)&0x7fff<<13 + 112<<23)
}

// finiteHalf reports whether stored scales are numbers.
func finiteHalf(from []byte) bool { return binary.LittleEndian.Uint16(from)&0x7c00 != 0x7c00 }

// eachBlock calls f for every block of the data with its numbers and its largest magnitude.
func eachBlock(to codes, x []float32, bytes, numbers int, f func(data []byte, x []float32, most float32) error) error {
	for i := 0; i*bytes < len(to.data); i++ {
		part := x[i*numbers : (i+1)*numbers]
		most, err := largest(part)
		if err == nil {
			err = f(to.data[i*bytes:(i+1)*bytes], part, most)
		}
		if err != nil {
			return at(err, i*numbers)
		}
	}
	return nil
}

// eachBad calls bad for every block of the data until one has a bad byte.
func eachBad(from codes, bytes int, bad func(data []byte) (int, bool)) (int, bool) {
	for i := 0; i < len(from.data); i += bytes {
		if at, ok := bad(from.data[i : i+bytes]); ok {
			return i + at, true
		}
	}
	return 0, false
}

// TQ1_0: a byte has five ternary digits as a fraction of 256, so that multiplications by three bring out digit
// after digit.

// powers has 3^i modulo 256.
var powers = [5]byte{1, 3, 9, 27, 81}

// fraction returns the byte of a number of five digits.
func fraction(q int) byte { return byte((q*256 + 242) / 243) }

// digit returns digit i of a byte.
func digit(b byte, i int) byte { return byte(uint16(b*powers[i]) * 3 >> 8) }

// tq1Runs are the parts of a block: the first byte, the first number, and the number of bytes.
var tq1Runs = [3]struct{ b, first, n, digits int }{{0, 0, 32, 5}, {32, 160, 16, 5}, {48, 240, 4, 4}}

func encodeTQ1(_ Layout, to codes, x []float32) error {
	return eachBlock(to, x, 54, 256, func(data []byte, x []float32, most float32) error {
		if err := putHalf(data[52:], most, x); err != nil {
			return err
		}
		r := reciprocal(most)
		for _, run := range tq1Runs {
			for m := range run.n {
				q := 0
				for i := range run.digits {
					q = 3*q + int(trit(x[run.first+m+run.n*i]*r, 0.5))
				}
				if run.digits == 4 {
					q *= 3
				}
				data[run.b+m] = fraction(q)
			}
		}
		return nil
	})
}

func decodeTQ1(_ Layout, x []float32, from codes) {
	for data := from.data; len(data) > 0; data, x = data[54:], x[256:] {
		value := values(getHalf(data[52:]))
		for _, run := range tq1Runs {
			for m, b := range data[run.b : run.b+run.n] {
				for i := range run.digits {
					x[run.first+m+run.n*i] = value[digit(b, i)]
				}
			}
		}
	}
}

func badTQ1(_ Layout, from codes) (int, bool) {
	return eachBad(from, 54, func(data []byte) (int, bool) {
		for i, b := range data[:52] {
			if i >= 48 && tq1Codes[b] != 3 || tq1Codes[b] == 0 {
				return i, true
			}
		}
		return 52, !finiteHalf(data[52:])
	})
}

// tq1Codes has 3 for bytes whose last digit is zero, 1 for others that exist, and 0 for those that do not.
var tq1Codes = func() (list [256]byte) {
	for q := range 243 {
		list[fraction(q)] = 1
		if q%3 == 0 {
			list[fraction(q)] = 3
		}
	}
	return list
}()

// Bytes with separate scales.

// putBytes stores x·r, halves away from zero.
func putBytes(to []byte, x []float32, r float32) {
	for i, v := range x {
		to[i] = byte(int8(math.Round(float64(v * r))))
	}
}

func encodeBytes(_ Layout, to codes, x []float32) error {
	n := len(to.data) / len(to.scales)
	return eachBlock(to, x, n, n, func(data []byte, x []float32, most float32) error {
		d := most / 127
		to.scales[0], to.scales = d, to.scales[1:]
		putBytes(data, x, reciprocal(d))
		return nil
	})
}

func decodeBytes(_ Layout, x []float32, from codes) {
	n := len(from.data) / len(from.scales)
	for i, d := range from.scales {
		getBytes(x[i*n:(i+1)*n], from.data[i*n:(i+1)*n], d)
	}
}

// getNibbles decodes 32 numbers in 16 bytes, codes less 8, the first 16 in the low bits.
func getNibbles(x []float32, from []byte, d float32) {
	low, high := x[:16], x[16:32]
	for i, b := range from[:16] {
		low[i], high[i] = float32(int(b&15)-8)*d, float32(int(b>>4)-8)*d
	}
}

func getBytes(x []float32, from []byte, d float32) {
	for i, b := range from[:len(x)] {
		x[i] = float32(int8(b)) * d
	}
}
