package kernels

// The family segment and its cases: rows combined by sorted ids, among them long segments, ids without a row
// and entries of rows that do not exist.

import (
	"fmt"
	"math"
	"math/big"
)

func init() {
	Register(Family{
		ID: "segment", Doc: "rows added to, or compared with, the row of their segment, in a fixed order",
		Kernels: []string{"segment_add", "segment_max", "segment_min"}, Types: allTypes, Defines: []string{"T", "ORDER"},
		Source: sources, Arguments: segmentArguments, Work: segmentWork, Reference: refSegment,
		Bound: knows(segmentLaunch), Rows: segmentRows, Cases: segmentCases,
	})
}

func segmentArguments(c *Call) bool {
	rows, count, segments, n := int(c.Int(4)), int(c.Int(5)), int(c.Int(6)), int(c.Int(7))
	total := c.Product(segments, n)
	if total == 0 {
		return false
	}
	needAll(c, c.Type("T"), c.Product(rows, n), 0)
	needAll(c, "u32", count, 1)
	if inOrder(c) {
		needAll(c, "u32", count, 2)
	}
	needAll(c, c.Type("T"), total, 3)
	return true
}

// segmentWork leaves out the rows beyond as many as there are entries, and counts twice the results of all
// segments that entries can name, since they are read, too.
func segmentWork(c *Call, bytes float64) (operations, moved float64) {
	rows, count, segments, n := int(c.Int(4)), int(c.Int(5)), int(c.Int(6)), int(c.Int(7))
	used := float64(min(segments, count)) * float64(n) * float64(SizeOf(c.Type("T")))
	return float64(count) * float64(n), bytes - c.unused(rows, count, n) - c.unused(segments, count, n) + used
}

// inOrder reports whether entries name their rows.
func inOrder(c *Call) bool {
	v, ok := c.Define("ORDER")
	return !ok || v == "1"
}

func segmentCases(f *Family) (list []Case) {
	for _, t := range f.Types {
		for _, k := range f.Kernels {
			for i, s := range [][4]int{{1, 1, 1, 1}, {7, 20, 5, 3}, {3, 0, 4, 2}, {0, 9, 4, 2}, {50, 1000, 3, 33},
				{100, 300, 400, 17}, {9, 65537, 2, 1}, {4, 4, 0, 3}} {
				if t == "f32" || i == 1 || i == 4 {
					list = append(list, segmentCase(f, k, t, s, true, ""))
				}
			}
			if t == "f32" || t == "i8" {
				list = append(list, segmentCase(f, k, t, [4]int{1000, 900, 7, 5}, false, ""))
			}
			if IsFloat(t) {
				list = append(list, segmentCase(f, k, t, [4]int{40, 60, 5, 9}, true, " NaN"))
			}
		}
	}
	return list
}

// segmentCase makes a case of rows, entries, segments and elements of a row.
func segmentCase(f *Family, k, t string, s [4]int, order bool, note string) Case {
	rows, count, segments, n := s[0], s[1], s[2], s[3]
	ids := func() []float64 {
		x := make([]float64, max(count, 1))
		for i := range x { // ascending, of segments of different lengths, and the last ones of no segment
			x[i] = math.Floor(math.Pow(float64(i)/float64(max(count, 1)), 2) * float64(segments+1))
		}
		return x
	}
	places := func() []float64 {
		x := make([]float64, max(count, 1))
		for i := range x {
			x[i] = float64((i*7919 + 3) % max(rows, 1))
			if i%29 == 11 {
				x[i] = float64(rows)
			} else if i%29 == 12 {
				x[i] = math.MaxUint32
			}
		}
		return x
	}
	data := Uniform(t, rows*n, 61, -1e3, 1e3)
	if note != "" {
		data = mixed(mixed(data, math.NaN(), 5, 100, 200), math.Inf(1), 7, 101)
	}
	c := f.Case(k, t, fmt.Sprintf("%d of %d rows of %d in %d segments%s", count, rows, n, segments, note), segments,
		n).with(
		in(t, rows*n, data), in("u32", count, ids), in("u32", count, places),
		inout(t, segments*n, Uniform(t, segments*n, 62, -1e3, 1e3)),
		uintArg(rows), uintArg(count), uintArg(segments), uintArg(n))
	if !order {
		c = c.define("ORDER", "0")
		c.Shape += " as they are"
	}
	if k != "segment_add" || !IsFloat(t) {
		return c.exact("comparisons do not round; sums of integers wrap")
	}
	return c.within("ε·((min(c, 128 + c/128) + 1)·(|y| + Σ|x|) + |result|) for c entries, y = the element before",
		"rows are summed in blocks of 128, and the blocks and y one after the other; the reference rounds once",
		func(_ int, in [][]float64, ref []float64) []float64 {
			b, sum, added := make([]float64, len(ref)), make([]float64, len(ref)), make([]int, len(ref))
			for i := range segments * n {
				sum[i] = math.Abs(in[3][i])
			}
			for k := range count {
				row, id := k, int(in[1][k])
				if order {
					row = int(in[2][k])
				}
				for j := range n {
					if id < segments && row < rows {
						sum[id*n+j] += math.Abs(in[0][row*n+j])
						added[id*n+j]++
					}
				}
			}
			for i, a := range added {
				if a > 0 {
					b[i] = Stored(t, ref[i], Roundoff(t)*(float64(min(a, 128+a/128)+1)*sum[i]+math.Abs(ref[i])))
				}
			}
			return b
		})
}

// refSegment combines the rows one after the other. It does not depend on the order of ids.
func refSegment(c *Call) error {
	t, rows, count, segments, n := c.Type("T"), int(c.Int(4)), int(c.Int(5)), int(c.Int(6)), int(c.Int(7))
	id, row := c.U32(1), func(k int) int { return k }
	if inOrder(c) {
		order := c.U32(2)
		row = func(k int) int { return int(order[k]) }
	}
	each := func(f func(from, to int)) {
		for k := range count {
			if s, r := int(id[k]), row(k); s < segments && r < rows {
				for j := range n {
					f(r*n+j, s*n+j)
				}
			}
		}
	}
	if !IsFloat(t) {
		get, old, set := refGetInt(c, 0, t), refGetInt(c, 3, t), refSetInt(c, 3, t)
		combine := refIntReductions[c.Kernel[len("segment_"):]]
		if combine == nil {
			combine = func(x, y *big.Int) *big.Int { return x.Add(x, y) }
		}
		each(func(from, to int) { set(to, combine(old(to), get(from))) })
		return nil
	}
	get, set := c.Get(0, t), c.Set(3, t)
	values, sums, touched := refRead(c.Get(3, t), 0, segments*n, 1), make([]float64, segments*n), make([]bool, segments*n)
	each(func(from, to int) {
		touched[to] = true
		switch c.Kernel {
		case "segment_add":
			sums[to] += get(from)
		case "segment_max":
			values[to] = refMax([]float64{values[to], get(from)})
		default:
			values[to] = -refMax([]float64{-values[to], -get(from)})
		}
	})
	for i, v := range values {
		if c.Kernel == "segment_add" {
			v += sums[i]
		}
		if touched[i] {
			set(i, v)
		}
	}
	return nil
}
