package cpu

// Activations of 8 bits and their products with ternary weights in vector instructions (csrc/cpu/w2a8.h).

import (
	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/source"
)

func init() {
	vector("w2a8", "quantize_rows", bindQuantizeRows)
	vector("w2a8", "w2a8", bindW2A8)
}

func bindQuantizeRows(*source.Unit) goFunc {
	return func(c *call) error {
		rows, cols, k := int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
		return c.spread(rows, 4*cols+k, quantizeSome)
	}
}

func quantizeSome(c *call, lo, hi int) {
	cols, k := int(c.Int(5)), int(c.Int(6))
	c.device.simd.run(simd.W2A8Rows, uint64(hi-lo), uint64(cols), uint64(k), c.at(0)+uint64(4*lo*cols),
		c.at(1)+uint64(lo*k), c.at(2)+uint64(4*lo), c.at(3)+uint64(4*lo))
}

// bindW2A8 divides the rows of weights among the threads.
func bindW2A8(u *source.Unit) goFunc {
	_, whole := u.Define("OUT")
	part := func(c *call, lo, hi int) {
		m, n, k, op := int(c.Int(6)), int(c.Int(7)), int(c.Int(8)), simd.W2A8
		if c.device.simd.multipliesBytes() {
			op = simd.W2A8Four
		}
		lo, hi = lo*w2a8Rows, min(hi*w2a8Rows, n)
		c.device.simd.run(op, uint64(m), uint64(hi-lo), uint64(k), c.at(0), c.at(1), c.at(2), c.at(3)+uint64(lo*(k/4)),
			c.at(4)+uint64(4*lo),
			c.at(5)+uint64(4*lo), uint64(n), flag(whole))
	}
	return func(c *call) error {
		m, n, k := int(c.Int(6)), int(c.Int(7)), int(c.Int(8))
		// A product of bytes takes about the time of reading a byte of weights, which has four codes.
		return c.spread((n+w2a8Rows-1)/w2a8Rows, w2a8Rows*k/4*max(m, 1), part)
	}
}

// w2a8Rows is a multiple of the rows of weights that the vector functions compute together.
const w2a8Rows = 4
