package kernels

// The family sort_pairs and its cases: ties, NaN, and rows around the sizes of blocks and runs.

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/concord-compute/concord/source"
)

// SortBlock is the number of elements that sort_blocks sorts, and the width of the first runs of sort_merge.
const SortBlock = 1024

func init() {
	Register(Family{
		ID: "sort_pairs", Doc: "a stable sort of the keys of each row with their values, ascending or descending",
		Kernels: []string{"sort_blocks", "sort_merge"}, Types: allTypes,
		Defines: []string{"T", "GROUP", "VALUE", "DESCENDING"},
		Source:  sources, Check: oneOf(map[string][]string{"VALUE": allTypes}), Tile: sortTile, Arguments: sortArguments,
		Reference: refSort, Bound: exactly, Rows: sortRows, Cases: sortCases,
	})
}

// sortTile returns how many elements of a row a group of sort_blocks sorts.
func sortTile(_ *source.Unit, kernel string) (rows, cols int) {
	if kernel == "sort_merge" {
		return 0, 1
	}
	return 0, SortBlock
}

func sortArguments(c *Call) bool {
	total := c.Product(int(c.Int(4)), int(c.Int(5)))
	if c.Kernel == "sort_merge" && c.Int(6) == 0 {
		c.Fail(6, "runs have no elements")
	}
	needAll(c, c.Type("T"), total, 0, 2)
	needAll(c, c.Type("VALUE"), total, 1, 3)
	return total > 0
}

// sortCase is a launch of one of the kernels; for sort_blocks the width is 0.
type sortCase struct {
	rows, n, width int
	keys, values   string
	descending     bool
	note           string
}

func sortCases(f *Family) (list []Case) {
	add := func(s sortCase) {
		data := Uniform(s.keys, s.rows*s.n, 51, -1e3, 1e3)
		switch s.note {
		case " few keys":
			data = uniformSteps(s.rows * s.n)
		case " NaN":
			data = mixed(mixed(data, math.NaN(), 0, 3, 700, s.n-1), math.Inf(1), 1, 600)
		case " special values":
			data = repeated(Special(s.keys), s.rows*s.n)
		}
		list = append(list, s.build(f, data))
	}
	for _, t := range f.Types {
		for i, s := range [][3]int{{1, 1, 0}, {3, 2, 0}, {2, 1025, 0}, {5, 300, 0}, {0, 4, 0}, {4, 0, 0}, {2, 31, 0},
			{1, 5000, 0}} {
			if t == "f32" || i == 2 {
				add(sortCase{rows: s[0], n: s[1], keys: t, values: "u32"})
			}
		}
		for i, s := range [][3]int{{2, 3001, 1024}, {2, 3001, 2048}, {1, 1, 1024}, {3, 7, 1}, {3, 7, 4}, {1, 70001, 65536},
			{2, 10, math.MaxUint32}} {
			if t == "f32" || i == 0 {
				add(sortCase{rows: s[0], n: s[1], width: s[2], keys: t, values: "u32"})
			}
		}
		if IsFloat(t) {
			for _, width := range []int{0, 512} {
				for _, note := range []string{" NaN", " special values", " few keys"} {
					add(sortCase{rows: 2, n: 1001, width: width, keys: t, values: "u32", note: note})
				}
			}
		}
	}
	for _, width := range []int{0, 1024} {
		add(sortCase{rows: 2, n: 2500, width: width, keys: "f32", values: "u8", descending: true})
		add(sortCase{rows: 2, n: 2500, width: width, keys: "i8", values: "i64"})
		add(sortCase{rows: 2, n: 2500, width: width, keys: "u64", values: "i16", descending: true})
	}
	add(sortCase{rows: 2, n: 1001, keys: "f16", values: "u32", descending: true, note: " special values"})
	add(sortCase{rows: 2, n: 1001, keys: "f64", values: "u32", descending: true, note: " special values"})
	for _, group := range []int{32, 256} {
		s := sortCase{rows: 2, n: 2500, keys: "f32", values: "u32"}
		list = append(list, s.build(f, Uniform("f32", s.rows*s.n, 51, -1e3, 1e3)).grouped(group))
	}
	return list
}

// repeated returns n numbers of a list, in an order in which equal ones are apart.
func repeated(list []float64, n int) func() []float64 {
	return func() []float64 {
		x := make([]float64, max(n, 1))
		for i := range x {
			x[i] = list[i*7%len(list)]
		}
		return x
	}
}

func (s *sortCase) build(f *Family, keys func() []float64) Case {
	kernel, shape := "sort_blocks", fmt.Sprintf("%d×%d", s.rows, s.n)
	sizes := []Arg{uintArg(s.rows), uintArg(s.n)}
	if s.width > 0 {
		kernel, shape = "sort_merge", fmt.Sprintf("%s runs of %d", shape, s.width)
		sizes = append(sizes, uintArg(s.width))
	}
	c := f.Case(kernel, s.keys, shape+" with "+s.values+s.note, s.rows, s.n)
	if s.values != "u32" {
		c = c.define("VALUE", s.values)
	}
	if s.descending {
		c = c.define("DESCENDING", "1")
		c.Shape += " descending"
	}
	data := keys
	if s.width > 0 {
		data = func() []float64 { return s.runs(keys()) }
	}
	total := s.rows * s.n
	return c.with(append([]Arg{in(s.keys, total, data), in(s.values, total, Uniform(s.values, total, 52, 0, 1)),
		out(s.keys, total), out(s.values, total)}, sizes...)...).exact("bits are moved")
}

// runs sorts runs of keys, so that sort_merge can merge them. They stay sorted when they are rounded.
func (s *sortCase) runs(x []float64) []float64 {
	for r := range s.rows {
		for lo := 0; lo < s.n; lo += s.width {
			run := x[r*s.n+lo:][:min(s.width, s.n-lo)]
			slices.SortStableFunc(run, func(a, b float64) int { return refOrder(a, b, s.descending) })
		}
	}
	return x
}

// refOrder compares two numbers; NaN is larger than every number.
func refOrder(a, b float64, descending bool) int {
	if descending {
		a, b = b, a
	}
	switch {
	case a < b, b != b && a == a:
		return -1
	case b < a, a != a && b == b:
		return 1
	}
	return 0
}

// refSort sorts blocks of each row, or all that sort_merge merges: two runs at a time.
func refSort(c *Call) error {
	t, rows, n, width := c.Type("T"), int(c.Int(4)), int(c.Int(5)), SortBlock
	if c.Kernel == "sort_merge" {
		width = 2 * int(c.Int(6))
	}
	var compare func(i, j int) int
	if descending := c.Flag("DESCENDING"); IsFloat(t) {
		get := c.Get(0, t)
		compare = func(i, j int) int { return refOrder(get(i), get(j), descending) }
	} else {
		get := refGetInt(c, 0, t)
		list := make([]*big.Int, rows*n)
		for i := range list {
			list[i] = get(i)
		}
		compare = func(i, j int) int { return list[i].Cmp(list[j]) * refOne(descending, -1, 1) }
	}
	key, value := SizeOf(t), SizeOf(c.Type("VALUE"))
	getKey, getValue, setKey, setValue := refGetBits(c, 0, key), refGetBits(c, 1, value), refSetBits(c, 2, key),
		refSetBits(c, 3, value)
	for r := range rows {
		for lo := 0; lo < n; lo += width {
			order := make([]int, min(width, n-lo))
			for i := range order {
				order[i] = r*n + lo + i
			}
			slices.SortStableFunc(order, compare)
			for i, from := range order {
				setKey(r*n+lo+i, getKey(from))
				setValue(r*n+lo+i, getValue(from))
			}
		}
	}
	return nil
}
