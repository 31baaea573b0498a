package cpu

// fill, copy, cast and transpose in vector instructions.

import (
	"math"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/half"
	"github.com/concord-compute/concord/source"
)

func init() {
	vector("fill", "fill", bindFill)
	vector("copy", "copy", bindCopy)
	vector("cast", "cast", bindCast)
	vector("transpose", "transpose", bindTranspose)
}

// fillPattern returns scalar argument i converted to an element, repeated to fill 8 bytes.
func fillPattern(c *call, i int, t string) uint64 {
	size := kernels.SizeOf(t)
	bits := uint64(0)
	switch t {
	case "f32":
		bits = uint64(math.Float32bits(float32(c.Float(i))))
	case "f64":
		bits = math.Float64bits(c.Float(i))
	case "f16":
		bits = uint64(half.ToFloat16(c.Float(i)))
	case "bf16":
		bits = uint64(half.ToBFloat16(c.Float(i)))
	default:
		bits = uint64(c.Int(i))
	}
	for ; size < 8; size *= 2 {
		bits = bits&(1<<(8*size)-1) | bits<<(8*size)
	}
	return bits
}

func bindFill(u *source.Unit) goFunc {
	size := typeSize(typeNumber(u, "T"))
	part := func(c *call, lo, hi int) {
		bits, past := fillPattern(c, 1, c.Type("T")), flag(overflows(int(c.Int(2))*size))
		c.device.simd.run(simd.Fill, c.at(0)+uint64(lo*size), uint64((hi-lo)*size), bits, past)
	}
	return func(c *call) error { return c.spread(int(c.Int(2)), 2*size, part) }
}

func bindCopy(u *source.Unit) goFunc {
	size := typeSize(typeNumber(u, "T"))
	part := func(c *call, lo, hi int) {
		in, out, past := c.at(0)+uint64(lo*size), c.at(1)+uint64(lo*size), flag(overflows(int(c.Int(2))*size))
		c.device.simd.run(simd.Copy, out, in, uint64((hi-lo)*size), past)
	}
	return func(c *call) error { return c.spread(int(c.Int(2)), 2*size, part) }
}

// bindCast returns the function for cast, or nil for 64-bit integers, for which there is a Go kernel.
func bindCast(u *source.Unit) goFunc {
	from, to := typeNumber(u, "FROM"), typeNumber(u, "TO")
	for _, t := range []uint64{from, to} {
		if name := simdTypes[t]; name == "i64" || name == "u64" {
			return nil
		}
	}
	read, write := typeSize(from), typeSize(to)
	part := func(c *call, lo, hi int) {
		in, out, past := c.at(0)+uint64(lo*read), c.at(1)+uint64(lo*write), flag(overflows(int(c.Int(2))*write))
		c.device.simd.run(simd.Cast, 0, from, to, uint64(hi-lo), in, out, past)
	}
	return func(c *call) error { return c.spread(int(c.Int(2)), read+write, part) }
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
	band, some := 256/size, 4096/size
	if rows <= 3*band {
		band = rows
	}
	bands := (rows + band - 1) / band
	parts := (8*c.device.threads + batch*bands - 1) / (batch * bands)
	wide := max(some, ((cols+parts-1)/parts+some-1)/some*some)
	parts = (cols + wide - 1) / wide
	where := uint64(0)
	if l2, _ := cacheSizes(); overflows(all * size) {
		where = 1
	} else if all*size > 4*l2 {
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
