package cpu

// transpose in Go.

import "github.com/concord-compute/concord/kernels"

func init() { native("transpose", "transpose", goTranspose) }

// bySize calls the implementation for the size of the elements of type t.
func bySize(c *call, t string, f8, f16, f32, f64 func(c *call) error) error {
	switch kernels.SizeOf(t) {
	case 1:
		return f8(c)
	case 2:
		return f16(c)
	case 4:
		return f32(c)
	}
	return f64(c)
}

type unsigned interface {
	uint8 | uint16 | uint32 | uint64
}

// goTranspose computes out[c·rows + r] = in[r·cols + c] for each matrix, bit for bit.
func goTranspose(c *call) error {
	return bySize(c, c.Type("T"), transposeBits[uint8], transposeBits[uint16], transposeBits[uint32],
		transposeBits[uint64])
}

func transposeBits[U unsigned](c *call) error {
	in, out := kernels.Elements[U](&c.Call, 0), kernels.Elements[U](&c.Call, 1)
	rows, cols := int(c.Int(2)), int(c.Int(3))
	tile := c.Choose(goTile)
	bands := (cols + tile - 1) / tile
	return c.Parallel(c.Global[2]*bands, 1, func(lo, hi int) {
		for b := lo; b < hi; b++ {
			at := b / bands * rows * cols
			j0 := b % bands * tile
			j1 := min(j0+tile, cols)
			for i0 := 0; i0 < rows; i0 += tile {
				for j := j0; j < j1; j++ {
					to := out[at+j*rows : at+j*rows+rows]
					for i := i0; i < min(i0+tile, rows); i++ {
						to[i] = in[at+i*cols+j]
					}
				}
			}
		}
	})
}
