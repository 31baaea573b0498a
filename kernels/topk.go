package kernels

// The family topk and its cases: ties, NaN, rows longer than a group, k up to the
// whole row.

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

func init() {
	Register(Family{
		ID: "topk", Doc: "the k smallest values of each row in ascending order, with their indices",
		Kernels: []string{"topk"}, Types: floatTypes, Defines: []string{"T", "GROUP"},
		Source: sources, Arguments: topkArguments, Reference: refTopK, Bound: exactly, Rows: topkRows,
		Cases: func(f *Family) (list []Case) {
			for _, t := range f.Types {
				for i, s := range [][3]int{{1, 1, 1}, {0, 4, 2}, {2, 0, 0}, {3, 4, 0}, {3, 2, 2}, {5, 31, 3}, {4, 257, 257},
					{2, 1000, 10},
					{7, 1009, 128}, {1, 65537, 17}, {2, 3001, 1025}} {
					if t != "f32" && i != 0 && i != 5 && i != 8 {
						continue
					}
					n := s[0] * s[1]
					list = append(list, topkCase(f, t, "", s, Uniform(t, n, 17, -1e3, 1e3)))
				}
				n := 600
				zero := constant(n, 0)
				nan := mixed(Uniform(t, 2*n, 18, -1, 1), math.NaN(), 0, 5, n-1, n+1)
				late := Uniform(t, 2*2048, 20, -1, 1)
				for i := range 100 { // more elements than an implementation reads in one step
					late = mixed(late, math.NaN(), i, 2048+i)
				}
				odd := numbers(append(Special(t), Special(t)...))
				list = append(list,
					topkCase(f, t, " all equal", [3]int{1, n, 300}, zero),
					topkCase(f, t, " few values", [3]int{1, n, 301}, uniformSteps(n)),
					topkCase(f, t, " NaN", [3]int{2, n, n}, nan),
					topkCase(f, t, " NaN first", [3]int{2, 2048, 3}, late),
					topkCase(f, t, " NaN first", [3]int{2, 2048, 32}, late),
					topkCase(f, t, " special values", [3]int{1, 32, 32}, odd),
					topkCase(f, t, " special values", [3]int{2, 16, 9}, odd))
			}
			for _, items := range []int{32, 256} {
				list = append(list, topkCase(f, "f32", "", [3]int{7, 1009, 128}, Uniform("f32", 7*1009, 17, -1e3, 1e3)).grouped(
					items))
			}
			return list
		},
	})
}

// uniformSteps returns random elements with only four values, among them 0 and -0.
func uniformSteps(n int) func() []float64 {
	return func() []float64 {
		x := Uniform("u8", n, 19, 0, 3)()
		for i, v := range x {
			x[i] = []float64{-1, math.Copysign(0, -1), 0, 2}[int(v)&3]
		}
		return x
	}
}

func topkCase(f *Family, t, note string, s [3]int, data func() []float64) Case {
	rows, n, k := s[0], s[1], s[2]
	return f.Case("topk", t, fmt.Sprintf("rows=%d n=%d k=%d%s", rows, n, k, note), rows).
		with(in(t, rows*n, data), out(t, rows*k), out("u32", rows*k), uintArg(rows), uintArg(n), uintArg(k)).
		exact("values are selected, not computed, and the order is total: by value, then by index, NaN last")
}

func topkArguments(c *Call) bool {
	t, rows, n, k := c.Type("T"), int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	results := c.Product(rows, k)
	if results == 0 || n == 0 {
		return false
	}
	needAll(c, t, c.Product(rows, n), 0)
	needAll(c, t, results, 1)
	needAll(c, "u32", results, 2)
	return true
}

// refTopK sorts the indices of a row by value, NaN last, equal values by index. It is
// parallel, as the command's demo runs it on large sizes.
func refTopK(c *Call) error {
	t, rows, n, k := c.Type("T"), int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	get, size := c.Get(0, t), SizeOf(t)
	bits, set := refGetBits(c, 0, size), refSetBits(c, 1, size)
	places := c.U32(2)
	return c.Parallel(rows, 1, func(lo, hi int) {
		order := make([]int, n)
		for r := lo; r < hi; r++ {
			x := refRead(get, r*n, n, 1)
			for i := range order {
				order[i] = i
			}
			slices.SortFunc(order, func(i, j int) int { return cmp.Or(refOrder(x[i], x[j], false), i-j) })
			for i := range min(k, n) {
				set(r*k+i, bits(r*n+order[i]))
				places[r*k+i] = uint32(order[i])
			}
		}
	})
}
