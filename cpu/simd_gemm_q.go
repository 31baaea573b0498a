package cpu

// Activations of 8 bits and their products with blocks of weights in vector instructions
// (csrc/cpu/gemm_q.h).

import (
	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

func init() {
	vector("gemm_q", "quantize_blocks", bindQuantizeBlocks)
	vector("gemm_q", "gemm_q", bindGemmQ)
}

func bindQuantizeBlocks(*source.Unit) goFunc {
	return func(c *call) error {
		return c.spread(int(c.Int(4))*(int(c.Int(6))/kernels.GemmQBlock), 5*kernels.GemmQBlock, quantizeBlocks)
	}
}

func quantizeBlocks(c *call, lo, hi int) {
	c.device.simd.run(simd.GemmQBlocks, uint64(lo), uint64(hi), uint64(c.Int(5)), uint64(c.Int(6)/kernels.GemmQBlock),
		c.at(0), c.at(1), c.at(2), c.at(3))
}

// bindGemmQ divides the rows of weights among the threads.
func bindGemmQ(*source.Unit) goFunc {
	return func(c *call) error {
		m, n, k := int(c.Int(6)), int(c.Int(7)), int(c.Int(8))
		bits, _ := kernels.GemmQForm(&c.Call)
		return c.spread((n+gemmQRows-1)/gemmQRows, gemmQRows*k/8*bits*max(m, 1), gemmQSome)
	}
}

func gemmQSome(c *call, lo, hi int) {
	m, n, k, op := int(c.Int(6)), int(c.Int(7)), int(c.Int(8)), simd.GemmQ
	bits, factors := kernels.GemmQForm(&c.Call)
	if c.device.simd.multipliesBytes() {
		op = simd.GemmQFour
	}
	lo, hi = lo*gemmQRows, min(hi*gemmQRows, n)
	c.device.simd.run(op, uint64(m), uint64(hi-lo), uint64(k), c.at(0), c.at(1), c.at(2), c.at(3)+uint64(lo*(k/8)*bits),
		c.at(4)+uint64(lo*(k/kernels.GemmQBlock)*kernels.GemmQScales(factors)/8),
		c.at(5)+uint64(4*lo), uint64(n), uint64(bits+16*factors))
}

// gemmQRows are two panels, which the vector functions compute together.
const gemmQRows = 2 * kernels.GemmQRows
