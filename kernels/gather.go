package kernels

// The families gather and scatter and their cases: rows by index, with duplicate indices and
// with indices beyond the first and the last row.

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
)

func init() {
	Register(Family{
		ID: "gather", Doc: "rows of a table by index of any integer type; zeros for an index without a row, or the " +
			"nearest row",
		Kernels: []string{"gather", "gather_parts"}, Types: allTypes, Defines: []string{"T", "INDEX", "CLAMP"},
		Source: sources, Check: indexCheck, Arguments: gatherArguments, Work: gatherWork, Reference: refGather,
		Bound: exactly, Rows: gatherRows,
		Native: gatherNative,
		Cases: func(f *Family) (list []Case) {
			add := func(t, index string, s [3]int, clamp bool) {
				rows, count, n := s[0], s[1], s[2]
				list = append(list, f.Case("gather", t, fmt.Sprintf("%d of %d rows of %d", count, rows, n), count, n).
					with(in(t, rows*n, Uniform(t, rows*n, 41, -1e4, 1e4)), in("u32", count, rowIndices(count, rows)),
						out(t, count*n), uintArg(rows), uintArg(count), uintArg(n)).exact("bits are moved").indexed(1, index, clamp))
			}
			for _, t := range f.Types {
				for i, s := range moveShapes {
					if t == "f32" || i%3 == 1 {
						add(t, "u32", s, false)
					}
				}
			}
			list = append(list, partsCases(f)...)
			for i, index := range intTypes { // of signed and unsigned types some are clamped
				for _, s := range [][3]int{{9, 300, 33}, {0, 4, 2}} {
					add("f32", index, s, i%2 == 0)
				}
			}
			return list
		},
	})
}

// partsCases are those of gather_parts: parts, rows, indices, elements of a row, the distance of rows, and what
// lies between parts.
func partsCases(f *Family) (list []Case) {
	for _, t := range f.Types {
		for i, s := range [][6]int{{1, 1, 1, 1, 1, 0}, {3, 9, 20, 5, 5, 0}, {4, 50, 33, 1, 1, 0}, {2, 40, 31, 7, 1, 11},
			{5, 8, 60, 3, 10, 4}, {2, 6, 5, 4, 0, 0}, {3, 0, 4, 2, 2, 0},
			{0, 4, 5, 2, 2, 0}, {2, 4, 0, 2, 2, 0}, {2, 300, 700, 64, 64, 0}} {
			if t != "f32" && i != 2 && i != 3 {
				continue
			}
			parts, rows, count, n, step := s[0], s[1], s[2], s[3], s[4]
			part := max(rows-1, 0)*step + n + s[5]
			list = append(list, f.Case("gather_parts", t, fmt.Sprintf("%d of %d×%d rows of %d, %d apart", count, parts, rows, n,
				step), parts, count, n).
				with(in(t, parts*part, Uniform(t, parts*part, 46, -1e4, 1e4)), in("u32", count, rowIndices(count, rows)),
					out(t, parts*count*n),
					uintArg(parts), uintArg(rows), uintArg(count), uintArg(n), ulongArg(part), ulongArg(step)).exact("bits are moved"))
		}
	}
	return list
}

// indexCheck checks the definitions INDEX and CLAMP.
var indexCheck = oneOf(map[string][]string{"INDEX": intTypes})

// indexed changes argument i of a case, indices of type u32, to another type, in which some indices are
// negative or larger than any row.
func (c Case) indexed(i int, index string, clamp bool) Case {
	if index != "u32" {
		c = c.define("INDEX", index)
		c.Shape += " by " + index
	}
	if clamp {
		c = c.define("CLAMP", "1")
		c.Shape += " clamped"
	}
	lo, hi := rangeOf(index)
	fill := c.Args[i].Fill
	c.Args[i].Type, c.Args[i].Fill = index, func() []float64 {
		x := fill()
		for j := range x {
			switch {
			case x[j] == math.MaxUint32:
				x[j] = hi
			case j%17 == 4:
				x[j] = max(lo, -1)
			case j%17 == 9:
				x[j] = lo
			default:
				x[j] = min(x[j], hi)
			}
		}
		return x
	}
	return c
}

// moveShapes are sizes of cases: rows of the table, number of indices, elements of a row.
var moveShapes = [][3]int{{1, 1, 1}, {5, 7, 3}, {0, 4, 2}, {4, 0, 2}, {9, 300, 33}, {70, 31, 0}, {257, 100, 64},
	{3, 65, 1}, {1000, 2000, 17}}

// rowIndices returns random row indices with repetitions, some of them beyond the last row.
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

// addable are the types of scatter_add: those with atomic operations on all devices.
var addable = map[string]bool{"f32": true, "i32": true, "u32": true}

func init() {
	Register(Family{
		ID: "scatter", Doc: "rows stored or added at the rows that indices name; for duplicates the last one is stored, or " +
			"all are added",
		Kernels: []string{"scatter_last", "scatter", "scatter_runs", "scatter_add"}, Types: allTypes, Defines: []string{"T"},
		Source: sources, Arguments: scatterArguments, Work: scatterWork, Reference: refScatter, Native: scatterNative,
		Bound: knows(scatterLaunch), Rows: scatterRows,
		Cases: func(f *Family) (list []Case) {
			for _, t := range f.Types {
				for i, s := range moveShapes {
					if t != "f32" && i%3 != 1 {
						continue
					}
					rows, count, n := s[0], s[1], s[2]
					shape := fmt.Sprintf("%d into %d rows of %d", count, rows, n)
					from, index := in(t, count*n, Uniform(t, count*n, 43, -1e4, 1e4)), in("u32", count, rowIndices(count, rows))
					into := inout(t, rows*n, Uniform(t, rows*n, 44, -1e4, 1e4))
					sizes := []Arg{uintArg(rows), uintArg(count), uintArg(n)}
					list = append(list, f.Case("scatter", t, shape, count, n).
						with(append([]Arg{from, index, in("u32", rows, lastIndices(count, rows)), into}, sizes...)...).exact(
						"bits are moved"))
					list = append(list, f.Case("scatter_runs", t, shape, count, n).
						with(append([]Arg{from, in("u32", count, sortedIndices(count, rows)), in("u32", count, func() []float64 {
							return sortedOrder(count, rows)
						}), into}, sizes...)...).exact("bits are moved"))
					if addable[t] {
						list = append(list, scatterAdd(f.Case("scatter_add", t, shape, count, n).
							with(append([]Arg{from, index, into}, sizes...)...), rows, count, n))
					}
					if t == "f32" {
						list = append(list, f.Case("scatter_last", t, shape, count).
							with(index, inout("u32", rows, constant(rows, 0)), sizes[0], sizes[1]).exact("places are compared"))
					}
				}
			}
			return list
		},
	})
}

// lastIndices returns the result of scatter_last for rowIndices.
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

// sortedOrder returns the numbers of rowIndices in the order of these.
func sortedOrder(count, rows int) []float64 {
	index, order := rowIndices(count, rows)(), make([]float64, max(count, 1))
	for i := range order {
		order[i] = float64(i)
	}
	slices.SortStableFunc(order, func(a, b float64) int { return cmp.Compare(index[int(a)], index[int(b)]) })
	return order
}

// sortedIndices returns rowIndices in their order.
func sortedIndices(count, rows int) func() []float64 {
	return func() []float64 {
		index := rowIndices(count, rows)()
		slices.Sort(index)
		return index
	}
}

func scatterAdd(c Case, rows, count, n int) Case {
	if !IsFloat(c.DType) {
		return c.exact("integers wrap modulo 2^bits, in any order")
	}
	return c.within("ε·(c + 1)·(|y| + Σ|x|), c = number of rows with that index, y = the element before",
		"no partial sum exceeds |y| + Σ|x|, whatever the order, and each of the c additions rounds one; the reference "+
			"rounds once",
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
					b[i] = 0 // no row is added to it
				}
				b[i] *= Roundoff(c.DType) * (added[i] + 1)
			}
			return b
		})
}

func gatherArguments(c *Call) bool {
	if c.Kernel == "gather_parts" {
		parts, rows, count, n := int(c.Int(3)), int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
		results := c.Product(parts, count, n)
		if results == 0 {
			return false
		}
		if rows > 0 {
			last := c.Sum(c.Product(parts-1, int(c.Int(7))), c.Product(rows-1, int(c.Int(8))))
			needAll(c, c.Type("T"), c.Sum(last, n), 0)
		}
		needAll(c, c.Type("INDEX"), count, 1)
		needAll(c, c.Type("T"), results, 2)
		return true
	}
	return rowArguments(c, 0, 1, 2, int(c.Int(3)), int(c.Int(4)), int(c.Int(5)))
}

// gatherWork leaves out the rows of the table beyond as many as there are indices.
func gatherWork(c *Call, bytes float64) (operations, moved float64) {
	if c.Kernel == "gather_parts" { // each result is read once, and stored
		size := float64(SizeOf(c.Type("T")))
		used := 2*size*float64(c.Int(3))*float64(c.Int(5))*float64(c.Int(6)) +
			float64(c.Int(5))*float64(SizeOf(c.Type("INDEX")))
		return 0, min(bytes, used)
	}
	return 0, bytes - c.unused(int(c.Int(3)), int(c.Int(4)), int(c.Int(5)))
}

// rowsOf returns a function that sets to to the rows that the indices from lo on name: -1 for an index without a row.
// Argument i has the indices.
func rowsOf(c *Call, i, rows int) func(lo int, to []int) {
	switch clamp := c.Flag("CLAMP"); c.Type("INDEX") {
	case "i8":
		return rowsBy(c.I8(i), rows, clamp)
	case "i16":
		return rowsBy(c.I16(i), rows, clamp)
	case "i32":
		return rowsBy(c.I32(i), rows, clamp)
	case "i64":
		return rowsBy(c.I64(i), rows, clamp)
	case "u8":
		return rowsBy(c.U8(i), rows, clamp)
	case "u16":
		return rowsBy(c.U16(i), rows, clamp)
	case "u64":
		return rowsBy(c.U64(i), rows, clamp)
	default:
		return rowsBy(c.U32(i), rows, clamp)
	}
}

func rowsBy[I int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](index []I, rows int,
	clamp bool) func(int, []int) {
	return func(lo int, to []int) {
		for i, v := range index[lo : lo+len(to)] {
			switch {
			case v >= 0 && uint64(v) < uint64(rows):
				to[i] = int(v)
			case !clamp || rows == 0:
				to[i] = -1
			case v < 0:
				to[i] = 0
			default:
				to[i] = rows - 1
			}
		}
	}
}

// refRows returns a function that returns the row that index at names, or -1.
func refRows(c *Call, i, rows int) func(at int) int {
	get, last := refGetInt(c, i, c.Type("INDEX")), big.NewInt(int64(rows)-1)
	return func(at int) int {
		x := get(at)
		if c.Flag("CLAMP") {
			x = refOne(x.Sign() < 0, new(big.Int), refOne(x.Cmp(last) > 0, last, x))
		}
		if x.Sign() < 0 || x.Cmp(last) > 0 {
			return -1
		}
		return int(x.Int64())
	}
}

func scatterArguments(c *Call) bool {
	switch c.Kernel {
	case "scatter_last":
		needAll(c, "u32", int(c.Int(3)), 0)
		needAll(c, "u32", int(c.Int(2)), 1)
		return true
	case "scatter_add":
		return rowArguments(c, 2, 1, 0, int(c.Int(3)), int(c.Int(4)), int(c.Int(5)))
	}
	if c.Int(6) > 0 && c.Kernel == "scatter_runs" {
		needAll(c, "u32", int(c.Int(5)), 2)
	} else if c.Int(6) > 0 {
		needAll(c, "u32", int(c.Int(4)), 2)
	}
	return rowArguments(c, 3, 1, 0, int(c.Int(4)), int(c.Int(5)), int(c.Int(6)))
}

// scatterWork leaves out the rows of the table beyond as many as there are indices, and counts those twice that
// are added to.
func scatterWork(c *Call, bytes float64) (operations, moved float64) {
	switch c.Kernel {
	case "scatter", "scatter_runs":
		return 0, bytes - c.unused(int(c.Int(4)), int(c.Int(5)), int(c.Int(6)))
	case "scatter_add":
		rows, count, n := int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
		used := float64(min(rows, count)) * float64(n) * float64(SizeOf(c.Type("T")))
		return float64(count) * float64(n), bytes - c.unused(rows, count, n) + used
	}
	return 0, bytes
}

// rowArguments checks the buffers of gather or scatter: argument table has rows rows of n elements,
// argument list has count rows, and argument index has count numbers.
func rowArguments(c *Call, table, index, list, rows, count, n int) bool {
	if n == 0 {
		return false
	}
	needAll(c, c.Type("T"), c.Product(rows, n), table)
	needAll(c, c.Type("INDEX"), count, index)
	needAll(c, c.Type("T"), c.Product(count, n), list)
	return true
}

// refGather computes out[i] = in[index[i]] for rows of n elements; an index without a row gives zeros.
func refGather(c *Call) error {
	if c.Kernel == "gather_parts" {
		return refGatherParts(c)
	}
	t, rows, count, n := c.Type("T"), int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	get, row, set := refGetBits(c, 0, SizeOf(t)), refRows(c, 1, rows), refSetBits(c, 2, SizeOf(t))
	for i := range count {
		for j := range n {
			if r := row(i); r >= 0 {
				set(i*n+j, get(r*n+j))
			} else {
				set(i*n+j, 0)
			}
		}
	}
	return nil
}

// refGatherParts computes gather_parts by its formula.
func refGatherParts(c *Call) error {
	size, parts, rows, count, n := SizeOf(c.Type("T")), int(c.Int(3)), int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
	part, step := int(c.Int(7)), int(c.Int(8))
	get, row, set := refGetBits(c, 0, size), refRows(c, 1, rows), refSetBits(c, 2, size)
	for p := range parts {
		for i := range count {
			for j := range n {
				x := uint64(0)
				if r := row(i); r >= 0 {
					x = get(p*part + r*step + j)
				}
				set((p*count+i)*n+j, x)
			}
		}
	}
	return nil
}

// refScatterRuns computes out[r] = in[order[k]] for the last of the entries k with index[k] = r.
func refScatterRuns(c *Call) error {
	t, rows, count, n := c.Type("T"), int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
	get, index, order, set := refGetBits(c, 0, SizeOf(t)), c.U32(1), c.U32(2), refSetBits(c, 3, SizeOf(t))
	last := map[uint32]int{}
	for k := range count {
		last[index[k]] = k
	}
	for row, k := range last {
		if int(row) < rows && int(order[k]) < count {
			for j := range n {
				set(int(row)*n+j, get(int(order[k])*n+j))
			}
		}
	}
	return nil
}

// refScatterLast computes last[r] = the largest i + 1 with index[i] = r.
func refScatterLast(c *Call) error {
	rows, count := int(c.Int(2)), int(c.Int(3))
	index, last := c.U32(0), c.U32(1)
	for i := range count {
		if row := int(index[i]); row < rows {
			last[row] = max(last[row], uint32(i+1))
		}
	}
	return nil
}

func refScatter(c *Call) error {
	switch c.Kernel {
	case "scatter_last":
		return refScatterLast(c)
	case "scatter_add":
		return refScatterAdd(c)
	case "scatter_runs":
		return refScatterRuns(c)
	}
	return refScatterOnce(c)
}

// refScatterOnce computes out[r] = in[last[r] - 1] where last[r] is not 0.
func refScatterOnce(c *Call) error {
	t, rows, count, n := c.Type("T"), int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
	get, index, last, set := refGetBits(c, 0, SizeOf(t)), c.U32(1), c.U32(2), refSetBits(c, 3, SizeOf(t))
	for i := range count {
		if row := int(index[i]); row < rows && last[row] == uint32(i+1) {
			for j := range n {
				set(row*n+j, get(i*n+j))
			}
		}
	}
	return nil
}

// refScatterAdd computes out[index[i]] += in[i], rounded once.
func refScatterAdd(c *Call) error {
	t, rows, count, n := c.Type("T"), int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	index := c.U32(1)
	if !IsFloat(t) {
		get, old, set := refGetInt(c, 0, t), refGetInt(c, 2, t), refSetInt(c, 2, t)
		eachAdded(index, rows, count, n, func(from, to int) { set(to, new(big.Int).Add(old(to), get(from))) })
		return nil
	}
	get, set := c.Get(0, t), c.Set(2, t)
	sums := refRead(c.Get(2, t), 0, rows*n, 1)
	eachAdded(index, rows, count, n, func(from, to int) { sums[to] += get(from) })
	refWrite(set, sums)
	return nil
}

func eachAdded(index []uint32, rows, count, n int, f func(from, to int)) {
	for i := range count {
		if row := int(index[i]); row < rows {
			for j := range n {
				f(i*n+j, row*n+j)
			}
		}
	}
}
