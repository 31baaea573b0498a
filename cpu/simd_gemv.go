package cpu

// gemv in vector instructions (csrc/cpu/gemv.h).

import (
	"math"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/source"
)

func init() { vector("gemv", "gemv", bindGemv) }

// bindGemv returns a function that divides the rows among the threads, or, for a transposed product, parts of
// the matrix. How the matrix is divided depends on its size alone, and so does the result.
func bindGemv(u *source.Unit) goFunc {
	typ := typeNumber(u, "T")
	out := typ
	if _, ok := u.Define("OUT"); ok {
		out = 0
	}
	size := typeSize(typ)
	_, wide := wideType(typ)
	return func(c *call) error {
		m, k, alpha, beta := int(c.Int(0)), int(c.Int(1)), math.Float64bits(c.Float(2)), math.Float64bits(c.Float(6))
		a, lda, x, y, set := c.at(3), int(c.Int(4)), c.at(5), c.at(7), c.device.simd
		if c.Float(2) == 0 {
			k = 0
		}
		trans := c.Flag("TRANS_A")
		depth, parts := k, 1 // rows of a part, and parts
		if trans && k > 0 {
			depth = max(c.Choose(gemvRows), c.Choose(gemvPart)<<10/max(size*m, 1))
			parts = (k + depth - 1) / depth
		}
		room, err := c.device.scratch.take(int64(wide * (m*parts + k)))
		if err != nil {
			return err
		}
		defer c.device.scratch.give(room)
		sums := address(room.data)
		if size == 2 {
			from := x
			x = sums + uint64(wide*m*parts)
			set.run(simd.Widen, flag(c.Type("T") == "bf16"), 1, uint64(k), from, uint64(k), x, uint64(k))
		}
		store := func(_ *call, lo, hi int) {
			set.run(simd.GemvStore, out, uint64(hi-lo), uint64(parts), sums+uint64(wide*lo), uint64(m), alpha, beta,
				y+uint64(lo*typeSize(out)))
		}
		if !trans {
			return c.spread(m, size*max(k, 1), func(_ *call, lo, hi int) {
				set.run(simd.GemvRows, typ, uint64(hi-lo), uint64(k), a+uint64(lo*lda*size), uint64(lda), x, sums+uint64(wide*lo))
				store(c, lo, hi)
			})
		}
		block := c.Choose(gemvBlock)
		across := (m + block - 1) / block
		if err := c.spread(parts*across, size*min(m, block)*max(depth, 1), func(_ *call, lo, hi int) {
			for i := lo; i < hi; i++ {
				p, j := i/across*depth, i%across*block
				set.run(simd.GemvColumns, typ, uint64(max(min(depth, k-p), 0)), uint64(min(block, m-j)),
					a+uint64((p*lda+j)*size), uint64(lda),
					x+uint64(wide*p), sums+uint64(wide*(i/across*m+j)))
			}
		}); err != nil {
			return err
		}
		return c.spread(m, wide*parts, store)
	}
}
