package kernels

// The family nearest and its cases: ties, NaN, zero vectors, fewer vectors than k, parts without
// vectors, lists with gaps.

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/concord-compute/concord/source"
)

// NearestMissing is the place of an element of the lists of nearest that is no vector, because there
// were fewer than k. Its distance is NaN.
const NearestMissing = math.MaxUint32

// NearestParts returns the number of parts for a launch of nearest over so many vectors on a GPU with units compute
// units, of which runtime's Info.ComputeUnits tells. On cpu:0 one part is enough, since it divides a part among
// its threads.
func NearestParts(vectors, units int) int {
	return max(1, min(4*units, vectors/1024))
}

var nearestMetrics = []string{"l2", "ip", "cosine"}

const nearestMost, nearestLargest = 128, 1024 // MAX_K, unless defined, and its largest value

func init() {
	Register(Family{
		ID: "nearest", Doc: "the k nearest of many vectors for each of a few queries, and of several such lists",
		Kernels: []string{"nearest", "nearest_merge"}, Types: []string{"f32", "f16", "bf16", "i8"},
		Defines: []string{"T", "METRIC", "MAX_K", "GROUP"}, Check: checkNearest,
		Source: sources, Arguments: nearestArguments, Work: nearestWork, Reference: refNearest,
		Bound: nearestLaunch,
		Cases: nearestCases,
	})
}

func checkNearest(d source.Define) error {
	n, _ := strconv.Atoi(d.Value)
	switch {
	case d.Name == "METRIC" && !slices.Contains(nearestMetrics, d.Value):
		return fmt.Errorf("METRIC=%s is not one of %s", d.Value, strings.Join(nearestMetrics, " "))
	case d.Name == "MAX_K" && (n < 1 || n > nearestLargest || n&(n-1) != 0):
		return fmt.Errorf("MAX_K=%s is not a power of two up to %d", d.Value, nearestLargest)
	}
	return nil
}

// nearestShape describes a launch of nearest: how many queries, vectors, components, results and parts.
type nearestShape struct{ queries, vectors, dim, k, parts int }

func nearestCases(f *Family) (list []Case) {
	for _, t := range f.Types {
		for _, metric := range nearestMetrics {
			for i, s := range []nearestShape{{1, 1, 1, 1, 1}, {0, 3, 4, 2, 1}, {2, 0, 4, 3, 2}, {1, 5, 0, 2, 1},
				{1, 7, 3, 10, 1}, {2, 300, 16, 10, 7},
				{3, 1031, 64, 10, 5}, {1, 129, 128, 128, 1}, {5, 257, 31, 1, 300}, {1, 65537, 8, 17, 4}, {2, 2003, 100, 100, 1},
				// the last ones have more queries than a register has sums
				{37, 1031, 64, 10, 3}, {70, 500, 33, 3, 1}, {20, 130, 7, 40, 1}} {
				if metric == "cosine" && s.queries > 5 {
					continue
				}
				if metric == "cosine" && s.k > 20 {
					s.vectors, s.k = min(s.vectors, 1009), 20 // so that no two distances are nearly equal
				}
				if t == "f32" || i%3 == 2 || s.dim == 64 {
					list = append(list, nearestCase(f, t, metric, "", s,
						nearestData(t, metric, s.queries*s.dim, 51), nearestData(t, metric, s.vectors*s.dim, 52)))
				}
			}
			s := nearestShape{2, 600, 33, 128, 2}
			if metric == "cosine" {
				s.vectors, s.k = 150, 30
			}
			zero := func() []float64 { // and equal vectors, in all blocks of an implementation
				x := nearestData(t, metric, s.vectors*s.dim, 53)()
				for v := 0; v < s.vectors; v += 7 {
					copy(x[v*s.dim:(v+1)*s.dim], x[:s.dim])
				}
				for v := 5; v < s.vectors; v += 101 {
					clear(x[v*s.dim : (v+1)*s.dim])
				}
				return x
			}
			counts := []int{2}
			if metric == "l2" {
				counts = append(counts, 33)
			}
			for _, s.queries = range counts {
				s := s
				query := func() []float64 {
					x := nearestData(t, metric, s.queries*s.dim, 54)()
					clear(x[s.dim:])
					return x
				}
				list = append(list, nearestCase(f, t, metric, " equal and zero vectors", s, query, zero))
			}
			if IsFloat(t) {
				s := nearestShape{1, 40, 33, 40, 1}
				zero := []int{}
				for d := range 33 {
					zero = append(zero, 3*33+d)
				}
				list = append(list, nearestCase(f, t, metric, " NaN and Inf", s, nearestData(t, metric, 33, 55),
					mixed(mixed(mixed(nearestData(t, metric, 40*33, 56), math.NaN(), 33, 66, 39*33), math.Inf(1), 34, 35*33, 36*33+5),
						0, zero...)))
			}
		}
	}
	for _, t := range []string{"f32", "bf16"} { // whose squares are no floats
		for i, by := range []float64{1e25, 1e-25} {
			s := nearestShape{2, 300, 33, 10, 2}
			scaled := func(n int, seed uint64, by float64) func() []float64 {
				return func() []float64 {
					x := nearestData(t, "cosine", n, seed)()
					floats.Scale(by, x)
					return x
				}
			}
			list = append(list, nearestCase(f, t, "cosine", fmt.Sprintf(" times %g", by), s, scaled(66, 59, by),
				scaled(300*33, 60+uint64(i), 1/by)),
				nearestCase(f, t, "cosine", fmt.Sprintf(" both times %g", by), s, scaled(66, 59, by),
					scaled(300*33, 62+uint64(i), by)))
		}
	}
	large := nearestShape{2, 3001, 24, 1000, 3}
	c := nearestCase(f, "f32", "l2", " MAX_K=1024", large, nearestData("f32", "l2", 48, 57),
		nearestData("f32", "l2", 3001*24, 58))
	list = append(list, c.define("MAX_K", "1024").grouped(64))

	for _, s := range [][3]int{{1, 1, 1}, {0, 2, 3}, {3, 5, 10}, {2, 264, 10}, {1, 3, 128}, {1, 2000, 7}, {2, 37, 33}} {
		list = append(list, mergeCase(f, s))
	}
	c = mergeCase(f, [3]int{2, 5, 1000}).define("MAX_K", "1024")
	c.Shape += " MAX_K=1024"
	return append(list, c, mergeCase(f, [3]int{2, 264, 10}).grouped(32))
}

// nearestData returns components for which float computes l2 and ip exactly, so that every device finds
// the same vectors, whatever its order of additions. For cosine no distances of a case are so close that the
// order could depend on rounding, which a test checks.
func nearestData(t, metric string, n int, seed uint64) func() []float64 {
	switch {
	case t == "i8":
		return Uniform(t, n, seed, 0, 0)
	case metric == "cosine":
		return Uniform(t, n, seed, -1, 1)
	}
	return func() []float64 {
		x := Uniform("u8", n, seed, 0, 0)()
		for i := range x {
			x[i] = math.Trunc(x[i]/2) - 50
		}
		return x
	}
}

func nearestCase(f *Family, t, metric, note string, s nearestShape, queries, vectors func() []float64) Case {
	n := s.queries * s.parts * s.k
	c := f.Case("nearest", t, fmt.Sprintf("%s q=%d v=%d dim=%d k=%d parts=%d%s", metric, s.queries, s.vectors, s.dim, s.k,
		s.parts, note), s.parts, s.queries).
		with(in(t, s.queries*s.dim, queries), in(t, s.vectors*s.dim, vectors), out("f32", n), out("u32", n),
			uintArg(s.queries), uintArg(s.vectors), uintArg(s.dim), uintArg(s.k), uintArg(s.parts)).define("METRIC", metric)
	if metric != "cosine" {
		return c.exact("sums of whole numbers below 2^24 are exact in any order, and those of bytes are rounded once; the " +
			"order is total")
	}
	return c.within("distances ε·(2·dim + 25), places equal",
		"the product errs by at most dim·ε·|q|·|v| and each norm by (dim/2 + 1)·ε; two square roots (3 ulp = 6ε each), two "+
			"divisions "+
			"(2.5 ulp = 5ε each) and a subtraction follow; no two distances are close enough for the order to depend on that",
		func(arg int, _ [][]float64, ref []float64) []float64 {
			if arg == 3 {
				return nil
			}
			return slices.Repeat([]float64{Roundoff(t) * float64(2*s.dim+25)}, len(ref))
		})
}

// mergeCase returns a case of nearest_merge with lists that have many equal distances, infinities, NaN,
// gaps, and every place at most once.
func mergeCase(f *Family, s [3]int) Case {
	rows, lists, k := s[0], s[1], s[2]
	n := rows * lists * k
	distances := func() []float64 {
		x := Uniform("u8", n, 61, 0, 0)()
		for i, v := range x {
			switch v {
			case 7:
				x[i] = math.Inf(1)
			case 8:
				x[i] = math.NaN()
			case 9:
				x[i] = math.Copysign(0, -1)
			default:
				x[i] = v/4 - 10
			}
		}
		return x
	}
	places := func() []float64 {
		x := make([]float64, max(n, 1))
		for i := range x {
			if x[i] = float64((i*7919 + 13) % len(x)); i%11 == 3 || k > 1 && i/k%lists == 2 {
				x[i] = NearestMissing
			}
		}
		return x
	}
	return f.Case("nearest_merge", "f32", fmt.Sprintf("rows=%d lists=%d k=%d", rows, lists, k), rows).
		with(in("f32", n, distances), in("u32", n, places), out("f32", rows*k), out("u32", rows*k),
			uintArg(rows), uintArg(lists), uintArg(k)).
		exact("candidates are selected, not computed, and the order is total: by distance, then by place, NaN last")
}

func nearestArguments(c *Call) bool {
	most, merge := nearestMost, c.Kernel == "nearest_merge"
	if v, ok := c.Define("MAX_K"); ok {
		most, _ = strconv.Atoi(v)
	}
	if merge {
		rows, lists, k := int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
		if rows == 0 || k == 0 {
			return false
		}
		nearestK(c, 6, k, most)
		if lists > 0 && k > math.MaxUint32/lists {
			c.Fail(5, "%d lists of %d are more than 2^32 candidates", lists, k)
		}
		n := c.Product(rows, lists, k)
		needAll(c, "f32", n, 0)
		needAll(c, "u32", n, 1)
		needAll(c, "f32", c.Product(rows, k), 2)
		needAll(c, "u32", c.Product(rows, k), 3)
		return true
	}
	t, queries, vectors, dim, k, parts := c.Type("T"), int(c.Int(4)), int(c.Int(5)), int(c.Int(6)), int(c.Int(7)),
		int(c.Int(8))
	results := c.Product(queries, parts, k)
	if results == 0 {
		return false
	}
	nearestK(c, 7, k, most)
	needAll(c, t, c.Product(queries, dim), 0)
	needAll(c, t, c.Product(vectors, dim), 1)
	needAll(c, "f32", results, 2)
	needAll(c, "u32", results, 3)
	return true
}

func nearestK(c *Call, i, k, most int) {
	if k > most {
		c.Fail(i, "%d are more than MAX_K, which is %d", k, most)
	}
}

// refNearest computes all distances by their definitions, rounds them to float, and sorts them.
func refNearest(c *Call) error {
	if c.Kernel == "nearest_merge" {
		return refNearestMerge(c)
	}
	queries, vectors, dim, k, parts := int(c.Int(4)), int(c.Int(5)), int(c.Int(6)), int(c.Int(7)), int(c.Int(8))
	getQ, getV := refComponent(c, 0), refComponent(c, 1)
	metric, _ := c.Define("METRIC")
	each := (vectors + parts - 1) / parts
	return c.Parallel(parts, 1, func(lo, hi int) {
		for p := lo; p < hi; p++ {
			first, end := min(p*each, vectors), min((p+1)*each, vectors)
			for q := range queries {
				x := refRead(getQ, q*dim, dim, 1)
				found := make([]refFound, 0, end-first)
				for v := first; v < end; v++ {
					found = append(found, refFound{float32(refDistance(metric, x, refRead(getV, v*dim, dim, 1))), uint32(v)})
				}
				refBest(c, found, (q*parts+p)*k, k)
			}
		}
	})
}

// refComponent returns a function that reads buffer argument i.
func refComponent(c *Call, i int) func(at int) float64 {
	if t := c.Type("T"); t != "i8" {
		return c.Get(i, t)
	}
	x := c.I8(i)
	return func(at int) float64 { return float64(x[at]) }
}

func refDistance(metric string, x, y []float64) float64 {
	switch metric {
	case "ip":
		return 0 - floats.Dot(x, y)
	case "cosine":
		a, b := floats.Norm(x, 2), floats.Norm(y, 2)
		if a == 0 || b == 0 {
			return 1
		}
		return 1 - min(max(floats.Dot(x, y)/(a*b), -1), 1) // NaN if either is not finite
	}
	diff := make([]float64, len(x))
	floats.SubTo(diff, x, y)
	return floats.Dot(diff, diff)
}

// refFound is a vector that was found: its distance and place.
type refFound struct {
	distance float32
	place    uint32
}

// refBest sorts candidates and stores the first k as the results from index at on.
func refBest(c *Call, found []refFound, at, k int) {
	slices.SortStableFunc(found, func(a, b refFound) int {
		return cmp.Or(refOrder(float64(a.distance), float64(b.distance), false), cmp.Compare(a.place, b.place))
	})
	distances, places := c.F32(2), c.U32(3)
	for i := range k {
		distances[at+i], places[at+i] = float32(math.NaN()), NearestMissing
		if i < len(found) {
			distances[at+i], places[at+i] = found[i].distance+0, found[i].place
		}
	}
}

func refNearestMerge(c *Call) error {
	rows, lists, k := int(c.Int(4)), int(c.Int(5)), int(c.Int(6))
	distances, places := c.F32(0), c.U32(1)
	for r := range rows {
		var found []refFound
		for i := r * lists * k; i < (r+1)*lists*k; i++ {
			if places[i] != NearestMissing {
				found = append(found, refFound{distances[i], places[i]})
			}
		}
		refBest(c, found, r*k, k)
	}
	return nil
}

// nearestWork counts the operations of distances, and no comparisons.
func nearestWork(c *Call, bytes float64) (operations, moved float64) {
	if c.Kernel == "nearest_merge" {
		return 0, bytes
	}
	each := 3.0 // a difference, a product and a sum
	switch metric, _ := c.Define("METRIC"); metric {
	case "ip":
		each = 2
	case "cosine":
		each = 4 // two products and two sums
	}
	return each * float64(c.Int(4)) * float64(c.Int(5)) * float64(c.Int(6)), bytes
}
