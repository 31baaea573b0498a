package cpu

// sort_pairs in Go. Keys and values are moved as unsigned numbers, and keys compared as unsigned numbers that have
// their order.

import (
	"unsafe"

	"github.com/concord-compute/concord/kernels"
)

func init() {
	native("sort_pairs", "sort_blocks", sortPairs)
	native("sort_pairs", "sort_merge", sortPairs)
}

// sorting has the arguments of one launch of a kernel of sort_pairs.
type sorting[K, V unsigned] struct {
	call             *call
	rows, n          int
	sign, inf, flip  K // the sign bit and the bits of infinity, 0 where the type has none; all ones for descending order
	keys, keysOut    []K
	values, valueOut []V
}

func sortPairs(c *call) error {
	return bySize(c, c.Type("T"), sortKeys[uint8], sortKeys[uint16], sortKeys[uint32], sortKeys[uint64])
}

func sortKeys[K unsigned](c *call) error {
	return bySize(c, c.Type("VALUE"), sortAs[K, uint8], sortAs[K, uint16], sortAs[K, uint32], sortAs[K, uint64])
}

func sortAs[K, V unsigned](c *call) error {
	s := sorting[K, V]{call: c, rows: int(c.Int(4)), n: int(c.Int(5)), keys: kernels.Elements[K](&c.Call, 0),
		values:  kernels.Elements[V](&c.Call, 1),
		keysOut: kernels.Elements[K](&c.Call, 2), valueOut: kernels.Elements[V](&c.Call, 3)}
	t := c.Type("T")
	if t[0] != 'u' {
		s.sign = K(1) << (8*unsafe.Sizeof(s.sign) - 1)
	}
	s.inf = K(map[string]uint64{"f32": 0xff << 23, "f64": 0x7ff << 52, "f16": 0x1f << 10, "bf16": 0xff << 7}[t])
	if c.Flag("DESCENDING") {
		s.flip = ^K(0)
	}
	if c.Kernel == "sort_merge" {
		return s.merge(int(c.Int(6)))
	}
	return s.blocks()
}

// key returns the unsigned number of key i.
func (s *sorting[K, V]) key(i int) K {
	x := s.keys[i]
	if s.inf == 0 {
		return x ^ s.sign ^ s.flip
	}
	size := x &^ s.sign
	switch {
	case size > s.inf: // NaN
		x = ^K(0)
	case size == 0:
		x = s.sign
	case x != size:
		x = ^x
	default:
		x |= s.sign
	}
	return x ^ s.flip
}

// blocks sorts blocks byte by byte of the keys, from the lowest on. Bytes that are the same in all keys are left out.
func (s *sorting[K, V]) blocks() error {
	const most = kernels.SortBlock
	parts, bytes := (s.n+most-1)/most, int(unsafe.Sizeof(s.sign))
	return s.call.Parallel(s.rows*parts, 1+s.call.Choose(goGrain)/min(s.n, most), func(lo, hi int) {
		var keys [most]K
		var lists [2][most]uint16
		var counts [8][256]uint16
		for g := lo; g < hi; g++ {
			within := g % parts * most
			first, n := g/parts*s.n+within, min(s.n-within, most)
			from, to := &lists[0], &lists[1]
			clear(counts[:bytes])
			for i := range n {
				key := s.key(first + i)
				keys[i], from[i] = key, uint16(i)
				for b := range bytes {
					counts[b][byte(key>>(8*b))]++
				}
			}
			for b := range bytes {
				count, shift := &counts[b], 8*b
				if int(count[byte(keys[0]>>shift)]) == n {
					continue
				}
				place := uint16(0)
				for i, k := range count {
					count[i] = place
					place += k
				}
				for _, i := range from[:n] {
					digit := byte(keys[i%most] >> shift)
					to[count[digit]%most] = i
					count[digit]++
				}
				from, to = to, from
			}
			in, out := s.keys[first:first+n], s.keysOut[first:first+n]
			values, valuesOut := s.values[first:first+n], s.valueOut[first:first+n]
			for i, f := range from[:n] {
				out[i], valuesOut[i] = in[f], values[f]
			}
		}
	})
}

// merge merges parts of the results: where a part begins in the two runs follows from its place.
func (s *sorting[K, V]) merge(width int) error {
	return s.call.Parallel(s.rows*s.n, 4*s.call.Choose(goGrain), func(lo, hi int) {
		for lo < hi {
			row, within := lo/s.n*s.n, lo%s.n
			pair := within / width &^ 1 * width
			a, middle, end := row+pair, row+min(pair+width, s.n), row+min(pair+2*width, s.n)
			stop := min(hi, end)
			i := s.taken(a, middle, end, lo-a)
			lo = s.mergeRuns(i, middle, middle+(lo-a)-(i-a), end, lo, stop)
		}
	})
}

// mergeRuns merges the runs from i to middle and from j to end to results lo to stop. The loop has no branch
// that depends on the keys, since it would be predicted wrong half of the time.
func (s *sorting[K, V]) mergeRuns(i, middle, j, end, lo, stop int) int {
	if i < middle && j < end {
		x, y := s.key(i), s.key(j)
		for lo < stop {
			first := 0
			if x <= y {
				first = 1
			}
			from, next, limit := j, j+1, end
			if first != 0 {
				from, next, limit = i, i+1, middle
			}
			s.keysOut[lo], s.valueOut[lo] = s.keys[from], s.values[from]
			i += first
			j += 1 - first
			lo++
			if next == limit {
				break
			}
			k := s.key(next)
			if first != 0 {
				x = k
			}
			if first == 0 {
				y = k
			}
		}
	}
	// The rest of one run.
	from := i
	if i == middle {
		from = j
	}
	n := copy(s.keysOut[lo:stop], s.keys[from:])
	copy(s.valueOut[lo:stop], s.values[from:])
	return lo + n
}

// taken returns the place in the first run, from a to middle, of the first element that is not among the first
// n results. The second run ends at end.
func (s *sorting[K, V]) taken(a, middle, end, n int) int {
	lo, hi := max(0, n-(end-middle)), min(n, middle-a)
	for lo < hi {
		mid := lo + (hi-lo)/2
		// Of the first run, element mid is among them if it is not larger than the last one that the second would give.
		if s.key(a+mid) <= s.key(middle+n-mid-1) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return a + lo
}
