package kernels

// The family take_along and its cases: elements along an axis, by indices within and beyond it.

import (
	"fmt"

	"github.com/concord-compute/concord/source"
)

func init() {
	Register(Family{
		ID: "take_along", Doc: "elements along the middle axis of outer × axis × inner, each by an index of any integer type",
		Kernels: []string{"take_along"}, Types: allTypes, Defines: []string{"T", "INDEX", "CLAMP"},
		Source: sources, Check: indexCheck, Arguments: takeArguments, Work: takeWork, Reference: refTake, Native: takeNative,
		Bound: exactly, Rows: takeRows,
		Cases: func(f *Family) (list []Case) {
			add := func(t, index string, s [4]int, clamp bool) {
				outer, axis, count, inner := s[0], s[1], s[2], s[3]
				results := outer * count * inner
				list = append(list, f.Case("take_along", t, fmt.Sprintf("%d of %d×%d×%d", count, outer, axis, inner), outer, count,
					inner).
					with(in(t, outer*axis*inner, Uniform(t, outer*axis*inner, 45, -1e4, 1e4)),
						in("u32", results, rowIndices(results, axis)),
						out(t, results), uintArg(outer), uintArg(axis), uintArg(count), uintArg(inner)).exact("bits are moved").indexed(1,
					index, clamp))
			}
			for _, t := range f.Types {
				for i, s := range [][4]int{{1, 1, 1, 1}, {3, 7, 5, 1}, {2, 0, 3, 2}, {0, 4, 3, 2}, {5, 31, 33, 7},
					{1, 1000, 70001, 1}, {2, 3, 0, 4}} {
					if t == "f32" || i%4 == 0 {
						add(t, "u32", s, false)
					}
				}
			}
			add("f16", "i64", [4]int{5, 31, 33, 7}, false)
			add("f16", "i8", [4]int{5, 31, 33, 7}, true)
			return list
		},
	})
}

func takeArguments(c *Call) bool {
	outer, axis, count, inner := int(c.Int(3)), int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
	results := c.Product(outer, count, inner)
	if results == 0 {
		return false
	}
	needAll(c, c.Type("T"), c.Product(outer, axis, inner), 0)
	needAll(c, c.Type("INDEX"), results, 1)
	needAll(c, c.Type("T"), results, 2)
	return true
}

// takeWork leaves out the elements beyond as many as there are results.
func takeWork(c *Call, bytes float64) (operations, moved float64) {
	outer, axis, count, inner := int(c.Int(3)), int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
	return 0, bytes - c.unused(axis, count, outer*inner)
}

// refTake computes take_along by its formula.
func refTake(c *Call) error {
	size, outer, axis, count, inner := SizeOf(c.Type("T")), int(c.Int(3)), int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
	get, index, set := refGetBits(c, 0, size), refRows(c, 1, axis), refSetBits(c, 2, size)
	for o := range outer {
		for i := range count {
			for j := range inner {
				at, v := (o*count+i)*inner+j, uint64(0)
				if k := index(at); k >= 0 {
					v = get((o*axis+k)*inner + j)
				}
				set(at, v)
			}
		}
	}
	return nil
}

func takeNative(u *source.Unit, _ string) Func {
	t, _ := u.Define("T")
	return map[int]Func{1: nativeTake[uint8], 2: nativeTake[uint16], 4: nativeTake[uint32],
		8: nativeTake[uint64]}[SizeOf(t)]
}

func nativeTake[E Elem](c *Call) error {
	outer, axis, count, inner := int(c.Int(3)), int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
	in, read, out, each := Elements[E](c, 0), rowsOf(c, 1, axis), Elements[E](c, 2), count*inner
	return c.Parallel(outer*each, 1<<13, func(lo, hi int) {
		var list [someIndices]int
		for ; lo < hi; lo += someIndices {
			some := list[:min(hi-lo, someIndices)]
			read(lo, some)
			column, table := lo%inner, lo/each*axis
			next := (lo/each + 1) * each // where the next table begins
			for i, k := range some {
				at := lo + i
				if at == next {
					table, next = table+axis, next+each
				}
				if out[at] = 0; k >= 0 {
					out[at] = in[(table+k)*inner+column]
				}
				if column++; column == inner {
					column = 0
				}
			}
		}
	})
}
