package kernels

// The families gather and scatter and their cases: rows by index, with duplicates and
// with indices that are no rows.

import (
	"fmt"
	"math"
	"math/rand/v2"
)

var gatherFamily = &Family{
	ID: "gather", Doc: "rows of a table by index; zeros where an index is no row",
	Kernels: []string{"gather"}, Types: allTypes, Defines: []string{"T"},
	cases: func(f *Family) (list []Case) {
		for _, t := range f.Types {
			for i, s := range moveShapes {
				if t != "f32" && i%3 != 1 {
					continue
				}
				rows, count, n := s[0], s[1], s[2]
				global, local := ElementsGrid(count * n)
				list = append(list, f.newCase("gather", t, fmt.Sprintf("%d of %d rows of %d", count, rows, n)).
					with(global, local, in(t, rows*n, uniform(t, rows*n, 41, -1e4, 1e4)), in("u32", count, rowIndices(count, rows)),
						out(t, count*n), uintArg(rows), uintArg(count), uintArg(n)).exact("bits are moved"))
			}
		}
		return list
	},
}

// moveShapes are rows of the table, number of indices, elements of a row.
var moveShapes = [][3]int{{1, 1, 1}, {5, 7, 3}, {0, 4, 2}, {4, 0, 2}, {9, 300, 33}, {70, 31, 0}, {257, 100, 64}, {3, 65, 1}, {1000, 2000, 17}}

// rowIndices is rows with repetitions, some of them beyond the last.
func rowIndices(count, rows int) func() []float64 {
	return func() []float64 {
		r := rand.New(rand.NewPCG(42, uint64(rows)))
		x := make([]float64, max(count, 1))
		for i := range x {
			x[i] = float64(r.IntN(rows + 1))
			if i%13 == 5 {
				x[i] = math.MaxUint32
			}
		}
		return x
	}
}

// addable are the types of scatter_add: those with atomic operations everywhere.
var addable = map[string]bool{"f32": true, "i32": true, "u32": true}

var scatterFamily = &Family{
	ID: "scatter", Doc: "rows put or added where an index says; of duplicates the last one, or all",
	Kernels: []string{"scatter_last", "scatter", "scatter_add"}, Types: allTypes, Defines: []string{"T"},
	cases: func(f *Family) (list []Case) {
		for _, t := range f.Types {
			for i, s := range moveShapes {
				if t != "f32" && i%3 != 1 {
					continue
				}
				rows, count, n := s[0], s[1], s[2]
				shape := fmt.Sprintf("%d into %d rows of %d", count, rows, n)
				from, index := in(t, count*n, uniform(t, count*n, 43, -1e4, 1e4)), in("u32", count, rowIndices(count, rows))
				into := inout(t, rows*n, uniform(t, rows*n, 44, -1e4, 1e4))
				sizes := []Arg{uintArg(rows), uintArg(count), uintArg(n)}
				global, local := ElementsGrid(count * n)
				list = append(list, f.newCase("scatter", t, shape).
					with(global, local, append([]Arg{from, index, in("u32", rows, lastIndices(count, rows)), into}, sizes...)...).exact("bits are moved"))
				if addable[t] {
					list = append(list, scatterAdd(f.newCase("scatter_add", t, shape).
						with(global, local, append([]Arg{from, index, into}, sizes...)...), rows, count, n))
				}
				if t == "f32" {
					global, local = ElementsGrid(count)
					list = append(list, f.newCase("scatter_last", t, shape).
						with(global, local, index, inout("u32", rows, constant(rows, 0)), sizes[0], sizes[1]).exact("places are compared"))
				}
			}
		}
		return list
	},
}

// lastIndices is what scatter_last gives for rowIndices.
func lastIndices(count, rows int) func() []float64 {
	return func() []float64 {
		last := make([]float64, max(rows, 1))
		for i, row := range rowIndices(count, rows)()[:count] {
			if int(row) < rows {
				last[int(row)] = float64(i + 1)
			}
		}
		return last
	}
}

func scatterAdd(c Case, rows, count, n int) Case {
	if !isFloat(c.DType) {
		return c.exact("integers wrap modulo 2^bits, in any order")
	}
	return c.within("ε·(c + 1)·(|y| + Σ|x|), c = rows with that index, y what was there",
		"no partial sum exceeds |y| + Σ|x|, whatever the order, and each of c additions rounds one; the reference rounds once",
		func(_ int, in [][]float64, ref []float64) []float64 {
			b, added := make([]float64, len(ref)), make([]float64, len(ref))
			for i := range rows * n {
				b[i] = math.Abs(in[2][i])
			}
			for i := range count {
				for j := range n {
					if row := int(in[1][i]); row < rows {
						b[row*n+j] += math.Abs(in[0][i*n+j])
						added[row*n+j]++
					}
				}
			}
			for i := range b {
				if added[i] == 0 {
					b[i] = 0 // it stays
				}
				b[i] *= roundoff(c.DType) * (added[i] + 1)
			}
			return b
		})
}
