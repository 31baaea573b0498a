package cpu

// transpose in vector instructions.

import (
	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/source"
)

func init() {
	vector("transpose", "transpose", bindTranspose)
}

func bindTranspose(u *source.Unit) goFunc {
	size := typeSize(typeNumber(u, "T"))
	return func(c *call) error {
		return c.transpose(size, int(c.Int(2)), int(c.Int(3)), c.Global[2], c.at(0), c.at(1))
	}
}

// transpose transposes batch matrices of rows×cols elements of size bytes, none of which is 0. A matrix is divided
// into bands of rows, or into parts of bands if there are few, for the threads.
func (c *call) transpose(size, rows, cols, batch int, in, out uint64) error {
	all, set := rows*cols*batch, c.device.simd
	// The height of several tiles of csrc/cpu/move.h, or of the whole matrix if its rows are so few
	// that the tiles are along them.
	band, some := roundUpInt(c.Choose(turnBand), 256)/size, c.Choose(turnRow)/size
	if rows <= c.Choose(turnFew)*band {
		band = rows
	}
	bands := (rows + band - 1) / band
	parts := (c.Choose(turnRanges)*c.device.threads + batch*bands - 1) / (batch * bands)
	wide := max(some, ((cols+parts-1)/parts+some-1)/some*some)
	parts = (cols + wide - 1) / wide
	where := uint64(0)
	if l2, _ := cacheSizes(); c.overflows(all * size) {
		where = 1
	} else if all*size > c.share(turnNear, l2) {
		where = 2
	}
	return c.spread(batch*bands*parts, 2*band*min(cols, wide)*size, func(_ *call, lo, hi int) {
		for b := lo; b < hi; {
			m, first, part, n := b/(bands*parts), b/parts%bands, b%parts, 1
			if parts == 1 {
				n = min(bands-first, hi-b)
			}
			at := uint64(m * rows * cols * size)
			set.run(simd.Transpose, uint64(size), uint64(rows), uint64(cols), in+at, out+at, uint64(first*band),
				uint64(min((first+n)*band, rows)), uint64(part*wide), uint64(min((part+1)*wide, cols)), where)
			b += n
		}
	})
}
