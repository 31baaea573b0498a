package kernels

// The family l2_distance and its cases.

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

func init() {
	Register(Family{
		ID: "l2_distance", Doc: "squared distance of every query to every vector",
		Kernels: []string{"l2_distance_fp32", "l2_distance_fp16", "l2_distance_int8"},
		Source:  sources, Tile: productTile, Arguments: l2Arguments, Work: l2Work, Reference: refL2,
		Bound: knows(l2Launch), Rows: l2Rows,
		Cases: l2Cases,
	})
}

// l2Types has the element type of each kernel.
var l2Types = map[string]string{"l2_distance_fp32": "f32", "l2_distance_fp16": "f16", "l2_distance_int8": "i8"}

func l2Cases(f *Family) (list []Case) {
	for _, k := range f.Kernels {
		t := l2Types[k]
		for _, s := range [][3]int{{1, 1, 1}, {0, 3, 4}, {3, 0, 4}, {2, 3, 0}, {1, 1, 31}, {3, 1025, 2}, {64, 64, 16},
			{65, 63, 17},
			{31, 33, 127}, {2, 5, 784}, {257, 1031, 3}} {
			q, v, dim := s[0], s[1], s[2]
			list = append(list, l2Case(f, k, t, fmt.Sprintf("q=%d v=%d dim=%d", q, v, dim), s,
				Uniform(t, q*dim, 11, -1, 1), Uniform(t, v*dim, 12, -1, 1)))
		}
		// For i8, 255²·40,000 is above 2^31, so that a sum in 32 bits overflows. Mesa's llvmpipe
		// ends loops after 2^16 iterations, so no case has more.
		long := 5000
		if t == "i8" {
			long = 40000
		}
		list = append(list, l2Case(f, k, t, fmt.Sprintf("q=1 v=2 dim=%d furthest apart", long), [3]int{1, 2, long},
			constant(long, -128), constant(2*long, 127)))
		if t != "i8" {
			list = append(list,
				l2Case(f, k, t, "q=9 v=70 dim=49 pixels", [3]int{9, 70, 49}, pixels(9*49, 13), pixels(70*49, 14)).
					exact("whole numbers below 2^24 add up exactly in any order"),
				l2Case(f, k, t, "q=3 v=5 dim=33 NaN and Inf", [3]int{3, 5, 33}, mixed(Uniform(t, 99, 15, -1, 1), math.NaN(), 33),
					mixed(Uniform(t, 165, 16, -1, 1), math.Inf(1), 34)))
		}
	}
	return list
}

// pixels are whole numbers from 0 to 255.
func pixels(n int, seed uint64) func() []float64 { return Uniform("u8", n, seed, 0, 255) }

func l2Case(f *Family, k, t, shape string, s [3]int, queries, vectors func() []float64) Case {
	q, v, dim := s[0], s[1], s[2]
	c := f.Case(k, t, shape, q, v).with(in(t, q*dim, queries), in(t, v*dim, vectors), out("f32", q*v),
		uintArg(q), uintArg(v), uintArg(dim))
	if t == "i8" {
		return c.within("7ε·d", "the integer sum is exact; it is rounded to float, divided (2.5 ulp = 5ε), and the "+
			"reference rounds once",
			relative("f32", 7, nil))
	}
	return c.within("ε·(dim + 4)·d", "each difference rounds once, and its error counts twice in the square; the square "+
		"and the additions round once "+
		"each; all terms are positive; the reference rounds once",
		relative("f32", float64(dim+4), func([][]float64, int) float64 { return float64(dim) }))
}

func l2Arguments(c *Call) bool {
	t, queries, vectors, dim := l2Types[c.Kernel], int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	results := c.Product(queries, vectors)
	if results == 0 {
		return false
	}
	needAll(c, t, c.Product(queries, dim), 0)
	needAll(c, t, c.Product(vectors, dim), 1)
	needAll(c, "f32", results, 2)
	return true
}

// l2Work counts a difference, a product and a sum for each component.
func l2Work(c *Call, bytes float64) (operations, moved float64) {
	return 3 * float64(c.Int(3)) * float64(c.Int(4)) * float64(c.Int(5)), bytes
}

// refL2 computes Σ (q - v)², the dot product of the difference with itself.
func refL2(c *Call) error {
	t := l2Types[c.Kernel]
	queries, vectors, dim := int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	if t == "i8" {
		return refL2Int(c)
	}
	getQ, getV, out := c.Get(0, t), c.Get(1, t), c.F32(2)
	rows := make([][]float64, vectors)
	for v := range rows {
		rows[v] = refRead(getV, v*dim, dim, 1)
	}
	// Parallel, and with several queries in each pass over the vectors, because the command's demo
	// runs the reference on large sizes.
	const together = 8
	return c.Parallel(queries, together, func(lo, hi int) {
		diff := make([]float64, dim)
		for ; lo < hi; lo += together {
			some := make([][]float64, min(together, hi-lo))
			for i := range some {
				some[i] = refRead(getQ, (lo+i)*dim, dim, 1)
			}
			for v, y := range rows {
				for i, x := range some {
					floats.SubTo(diff, x, y)
					out[(lo+i)*vectors+v] = float32(floats.Dot(diff, diff))
				}
			}
		}
	})
}

// refL2Int computes Σ (q - v)² exactly, and then one division by 127².
func refL2Int(c *Call) error {
	queries, vectors, dim := int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	x, y, out := c.I8(0), c.I8(1), c.F32(2)
	for q := range queries {
		for v := range vectors {
			sum := int64(0)
			for d := range dim {
				diff := int64(x[q*dim+d]) - int64(y[v*dim+d])
				sum += diff * diff
			}
			out[q*vectors+v] = float32(float64(sum) / (127 * 127))
		}
	}
	return nil
}
