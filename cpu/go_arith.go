package cpu

// add, sub, mul, div in Go, with their scalar and broadcast forms.

import (
	"strings"

	"github.com/concord-compute/concord/kernels"
)

func init() {
	for _, op := range []string{"add", "sub", "mul", "div"} {
		native("arith", op, goArith)
		native("arith", op+"_scalar", goArith)
		native("arith", op+"_broadcast", goArith)
	}
	native("arith", "scalar_sub", goArith)
	native("arith", "scalar_div", goArith)
}

func goArith(c *call) error {
	switch t := c.Type("T"); t {
	case "f64":
		return arithFloat[float64](c, t)
	case "f32", "f16", "bf16":
		return arithFloat[float32](c, t)
	case "i8":
		return arithInt[int8](c)
	case "i16":
		return arithInt[int16](c)
	case "i32":
		return arithInt[int32](c)
	case "i64":
		return arithInt[int64](c)
	case "u8":
		return arithInt[uint8](c)
	case "u16":
		return arithInt[uint16](c)
	case "u32":
		return arithInt[uint32](c)
	}
	return arithInt[uint64](c)
}

func arithFloat[F number](c *call, t string) error {
	read := func(i int) func(lo, hi int, scratch []F) []F { v := viewOf[F](c, i, t); return v.read }
	gather := func(i int) func(at []int, dst []F) {
		v := viewOf[F](c, i, t)
		return func(at []int, dst []F) {
			for j, p := range at {
				dst[j] = v.at(p)
			}
		}
	}
	out := viewOf[F](c, 2, t)
	return arith(c, func(i int) F { return F(c.Float(i)) }, read, gather, out.target, out.write, divideFloat[F])
}

func arithInt[I integerElem](c *call) error {
	read := func(i int) func(lo, hi int, scratch []I) []I {
		v := kernels.Elements[I](&c.Call, i)
		return func(lo, hi int, _ []I) []I { return v[lo:hi] }
	}
	gather := func(i int) func(at []int, dst []I) {
		v := kernels.Elements[I](&c.Call, i)
		return func(at []int, dst []I) {
			for j, p := range at {
				dst[j] = v[p]
			}
		}
	}
	return arith(c, func(i int) I { return I(c.Int(i)) }, read, gather, read(2), func(int, []I) {}, nil)
}

func divideFloat[F number](out, a, b []F) {
	for i := range out {
		out[i] = a[i] / b[i]
	}
}

// arith computes out = a op b, one piece of the arrays at a time. A scalar operand is repeated
// to the length of a piece once.
func arith[E integerElem | number](c *call, scalar func(i int) E, read func(i int) func(lo, hi int, scratch []E) []E,
	gather func(i int) func(at []int, dst []E), target func(lo, hi int, scratch []E) []E, write func(lo int, x []E),
	divide func(out, a, b []E)) error {
	op, form, _ := strings.Cut(strings.TrimPrefix(c.Kernel, "scalar_"), "_")
	left := strings.HasPrefix(c.Kernel, "scalar_")
	if form == "broadcast" {
		return arithBroadcast(c, op, gather, target, write, divide)
	}
	var operand [2]func(lo, hi int, scratch []E) []E
	for k := range operand {
		if left && k == 0 || form == "scalar" && k == 1 {
			var filled [piece]E
			for i := range filled {
				filled[i] = scalar(k)
			}
			operand[k] = func(lo, hi int, _ []E) []E { return filled[:hi-lo] }
			continue
		}
		operand[k] = read(k)
	}
	return pieces(c, int(c.Int(3)), func(lo, hi int) {
		var sa, sb, so [piece]E
		x := target(lo, hi, so[:])
		arithPiece(op, x, operand[0](lo, hi, sa[:]), operand[1](lo, hi, sb[:]), divide)
		write(lo, x)
	})
}

func arithBroadcast[E integerElem | number](c *call, op string, gather func(i int) func(at []int, dst []E),
	target func(lo, hi int, scratch []E) []E, write func(lo int, x []E), divide func(out, a, b []E)) error {
	n, at := broadcastOf(c)
	a, b := gather(0), gather(1)
	return pieces(c, n, func(lo, hi int) {
		var places [piece]int
		var sa, sb, so [piece]E
		for k, g := range []func([]int, []E){a, b} {
			for i := lo; i < hi; i++ {
				places[i-lo] = at(k, i)
			}
			g(places[:hi-lo], [][]E{sa[:], sb[:]}[k])
		}
		x := target(lo, hi, so[:])
		arithPiece(op, x, sa[:hi-lo], sb[:hi-lo], divide)
		write(lo, x)
	})
}

// broadcastOf returns the number of elements of the result, and a function that gives the index in
// operand 0 or 1 for element i of the result.
func broadcastOf(c *call) (n int, at func(operand, i int) int) {
	v := make([]int, 12)
	for j := range v {
		v[j] = int(c.Int(3 + j))
	}
	d, strides := v[:4], [2][]int{v[4:8], v[8:]}
	return d[0] * d[1] * d[2] * d[3], func(operand, i int) (place int) {
		for j := 3; j >= 0; j-- {
			place += i % d[j] * strides[operand][j]
			i /= d[j]
		}
		return place
	}
}

func arithPiece[E integerElem | number](op string, out, a, b []E, divide func(out, a, b []E)) {
	a, b = a[:len(out)], b[:len(out)]
	switch op {
	case "add":
		for i := range out {
			out[i] = a[i] + b[i]
		}
	case "sub":
		for i := range out {
			out[i] = a[i] - b[i]
		}
	case "mul":
		for i := range out {
			out[i] = a[i] * b[i]
		}
	case "div":
		divide(out, a, b)
	}
}
