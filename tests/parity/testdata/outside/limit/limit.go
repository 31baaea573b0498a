// Package limit is a family of kernels in a module of its own: importing it adds the family
// to the catalog.
package limit

import (
	"embed"
	"fmt"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/source"
)

//go:embed limit.cl
var text embed.FS

func init() {
	kernels.Register(kernels.Family{
		ID: "limit", Doc: "numbers moved into a range",
		Kernels: []string{"limit"}, Types: []string{"f32", "f64", "f16"}, Defines: []string{"T"},
		Source: text, Arguments: arguments, Reference: reference, Native: native, Cases: cases,
	})
}

// arguments checks that both buffers have as many numbers as the last argument says.
func arguments(c *kernels.Call) bool {
	n, size := int(c.Int(4)), kernels.SizeOf(c.Type("T"))
	c.Need(0, n, size)
	c.Need(1, n, size)
	return n > 0
}

func reference(c *kernels.Call) error {
	t, lo, hi := c.Type("T"), c.Float(2), c.Float(3)
	in, out := c.Get(0, t), c.Set(1, t)
	for i := range int(c.Int(4)) {
		out(i, inside(in(i), lo, hi))
	}
	return nil
}

func inside[F float32 | float64](x, lo, hi F) F {
	switch {
	case x < lo:
		return lo
	case x > hi:
		return hi
	}
	return x
}

// native leaves f16 to the portable text.
func native(u *source.Unit, _ string) kernels.Func {
	switch t, _ := u.Define("T"); t {
	case "f32":
		return run[float32]
	case "f64":
		return run[float64]
	}
	return nil
}

func run[F float32 | float64](c *kernels.Call) error {
	in, out, lo, hi := kernels.Elements[F](c, 0), kernels.Elements[F](c, 1), F(c.Float(2)), F(c.Float(3))
	return c.Parallel(int(c.Int(4)), 4096, func(from, to int) {
		for i := from; i < to; i++ {
			out[i] = inside(in[i], lo, hi)
		}
	})
}

func cases(f *kernels.Family) (list []kernels.Case) {
	for _, t := range f.Types {
		scalar := t
		if t == "f16" {
			scalar = "f32"
		}
		for _, n := range []int{1, 257, 65537} {
			c := f.Case("limit", t, fmt.Sprintf("n=%d", n), n)
			c.Args = []kernels.Arg{
				{Dir: kernels.In, Type: t, Len: n, Fill: kernels.Uniform(t, n, 1, -4, 4)},
				{Dir: kernels.Out, Type: t, Len: n},
				{Dir: kernels.Value, Type: scalar, V: -1},
				{Dir: kernels.Value, Type: scalar, V: 2},
				{Dir: kernels.Value, Type: "u64", V: float64(n)},
			}
			c.Tolerance, c.Why = "equal", "a number is taken as it is"
			list = append(list, c)
		}
	}
	return list
}
