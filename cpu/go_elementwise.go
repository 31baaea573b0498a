package cpu

// fill, copy, transpose and the activations in Go.

import (
	"math"

	"github.com/concord-compute/concord/internal/precise"
	"github.com/concord-compute/concord/kernels"
)

func init() {
	native("fill", "fill", goFill)
	native("copy", "copy", goCopy)
	native("transpose", "transpose", goTranspose)
	for name, f := range goActivations {
		native("activation", name, typed(
			func(c *call, t string) error { return goActivation[float32](c, t, f) },
			func(c *call, t string) error { return goActivation[float64](c, t, f) }))
	}
}

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

// goFill computes out[i] = value, converted once.
func goFill(c *call) error {
	t := c.Type("T")
	var bits uint64
	switch t {
	case "f32":
		bits = uint64(math.Float32bits(float32(c.Float(1))))
	case "f64":
		bits = math.Float64bits(c.Float(1))
	case "f16", "bf16":
		var b [1]uint16
		v := view[float32]{bits: b[:], bf16: t == "bf16"}
		v.set(0, float32(c.Float(1)))
		bits = uint64(b[0])
	default:
		bits = uint64(c.Int(1))
	}
	return bySize(c, t, fillBits[uint8](bits), fillBits[uint16](bits), fillBits[uint32](bits), fillBits[uint64](bits))
}

type unsigned interface {
	uint8 | uint16 | uint32 | uint64
}

func fillBits[U unsigned](bits uint64) goFunc {
	return func(c *call) error {
		out := kernels.Elements[U](&c.Call, 0)
		return c.Parallel(int(c.Int(2)), grain, func(lo, hi int) {
			for i := range out[lo:hi] {
				out[lo+i] = U(bits)
			}
		})
	}
}

// goCopy computes out[i] = in[i], bit for bit.
func goCopy(c *call) error {
	size, in, out := kernels.SizeOf(c.Type("T")), c.Bytes(0), c.Bytes(1)
	return c.Parallel(int(c.Int(2)), 1<<16, func(lo, hi int) {
		copy(out[lo*size:hi*size], in[lo*size:hi*size])
	})
}

// goTranspose computes out[c·rows + r] = in[r·cols + c] for each matrix, bit for bit.
func goTranspose(c *call) error {
	return bySize(c, c.Type("T"), transposeBits[uint8], transposeBits[uint16], transposeBits[uint32],
		transposeBits[uint64])
}

func transposeBits[U unsigned](c *call) error {
	in, out := kernels.Elements[U](&c.Call, 0), kernels.Elements[U](&c.Call, 1)
	rows, cols := int(c.Int(2)), int(c.Int(3))
	const tile = 32 // both sides of a tile stay in the first cache
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

// goActivations compute in float64, as Go has no such functions for float32; the results are rounded.
var goActivations = map[string]func(x float64) float64{
	"relu": func(x float64) float64 {
		if x < 0 {
			return 0
		}
		return x
	},
	"sigmoid":  precise.Sigmoid,
	"tanh_act": math.Tanh,
	"gelu":     precise.GELU,
	"gelu_tanh": func(x float64) float64 {
		return x * precise.Sigmoid(1.59576912160573071176*(x+0.044715*x*x*x))
	},
	"swish": func(x float64) float64 { return x * precise.Sigmoid(x) },
}

func goActivation[F number](c *call, t string, f func(float64) float64) error {
	in, out := viewOf[F](c, 0, t), viewOf[F](c, 1, t)
	return pieces(c, int(c.Int(2)), func(lo, hi int) {
		var sx, sy [piece]F
		xs, ys := in.read(lo, hi, sx[:]), out.target(lo, hi, sy[:])
		for i, x := range xs {
			ys[i] = F(f(float64(x)))
		}
		out.write(lo, ys)
	})
}
