package kernels

// The family vector_add, sums of arrays by vectors of any width, and its cases.

import (
	"fmt"
	"slices"

	"github.com/concord-compute/concord/source"
)

func init() {
	Register(Family{
		ID: "vector_add", Doc: "sums of arrays, WIDTH neighbouring elements an item: 1, 2, 4, 8 or 16",
		Kernels: []string{"vector_add"}, Types: []string{"f32", "f64", "f16"}, Defines: []string{"T", "WIDTH"},
		Source: sources, Check: oneOf(map[string][]string{"WIDTH": vectorWidths}), Tile: vectorAddTile,
		Arguments: elementwise(3, 0, 1, 2),
		Work:      func(c *Call, bytes float64) (operations, moved float64) { return float64(c.Int(3)), bytes },
		Reference: refVectorAdd, Native: vectorAddNative, Cases: vectorAddCases,
		Bound: knows(vectorAddLaunch), Rows: elementRows(3, 0, 1, 2),
	})
}

// vectorWidths are the widths of OpenCL's vectors that memory is read and written by.
var vectorWidths = []string{"1", "2", "4", "8", "16"}

func vectorAddTile(u *source.Unit, _ string) (rows, cols int) {
	width, ok := u.Define("WIDTH")
	if !ok {
		return 0, 4
	}
	n := 1
	for range slices.Index(vectorWidths, width) {
		n *= 2
	}
	return 0, n
}

func vectorAddCases(f *Family) (list []Case) {
	for _, t := range f.Types {
		for _, width := range vectorWidths {
			for _, n := range []int{0, 1, 3, 15, 16, 17, 257, 65537} {
				a, b := operands("add", t, n, n)
				list = append(list, arithBound(f.Case("vector_add", t, fmt.Sprintf("n=%d WIDTH=%s", n, width), n), "add", t, 0, 1).
					with(in(t, n, a), in(t, n, b), out(t, n), ulongArg(n)).define("WIDTH", width))
			}
			a, b := pairs(t)
			list = append(list, arithBound(f.Case("vector_add", t, "special values WIDTH="+width, len(a)), "add", t, 0, 1).
				with(in(t, len(a), numbers(a)), in(t, len(a), numbers(b)), out(t, len(a)), ulongArg(len(a))).
				define("WIDTH", width))
		}
	}
	return list
}

// refVectorAdd computes out[i] = a[i] + b[i].
func refVectorAdd(c *Call) error {
	t := c.Type("T")
	a, b, set := c.Get(0, t), c.Get(1, t), c.Set(2, t)
	for i := range int(c.Int(3)) {
		set(i, a(i)+b(i))
	}
	return nil
}

// vectorAddNative is the host's, which adds as many elements at a time as it likes.
func vectorAddNative(u *source.Unit, _ string) Func {
	switch t, _ := u.Define("T"); t {
	case "", "f32":
		return nativeVectorAdd[float32]
	case "f64":
		return nativeVectorAdd[float64]
	}
	return nativeHalfAdd
}

func nativeHalfAdd(c *Call) error {
	a, b, set := c.Get(0, "f16"), c.Get(1, "f16"), c.Set(2, "f16")
	return c.Parallel(int(c.Int(3)), 1<<12, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			set(i, a(i)+b(i))
		}
	})
}

func nativeVectorAdd[T float32 | float64](c *Call) error {
	a, b, out := Elements[T](c, 0), Elements[T](c, 1), Elements[T](c, 2)
	return c.Parallel(int(c.Int(3)), 1<<14, func(lo, hi int) {
		x, y, sum := a[lo:hi], b[lo:hi], out[lo:hi]
		for i := range sum {
			sum[i] = x[i] + y[i]
		}
	})
}
