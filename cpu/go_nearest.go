package cpu

// The nearest vectors: the division among threads, which the vector kernels share, the distances
// in Go, and merging.

import (
	"cmp"
	"math"
	"slices"
	"unsafe"

	"github.com/concord-compute/concord/kernels"
)

func init() {
	native("nearest", "nearest", goNearest)
	native("nearest", "nearest_merge", goNearestMerge)
}

// neighbor is a vector that was found, in the layout of csrc/cpu/heap.h. The key has the order of the
// distances; NaN comes last.
type neighbor struct {
	key   uint64
	place int64
}

// noNeighbor comes after every vector.
var noNeighbor = neighbor{math.MaxUint64, kernels.NearestMissing}

func (a neighbor) compare(b neighbor) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.place, b.place))
}

// distanceKey returns the key of a distance, and distance the number of a key.
func distanceKey(x float32) uint64 {
	if x != x {
		return math.MaxUint64
	}
	u := math.Float64bits(float64(x + 0)) // -0 becomes 0
	if u>>63 != 0 {
		return ^u
	}
	return u | 1<<63
}

func (a neighbor) distance() float32 {
	if a.key>>63 == 0 {
		return float32(math.Float64frombits(^a.key))
	}
	return float32(math.Float64frombits(a.key ^ 1<<63)) // of the largest key, a NaN
}

// offer puts a vector into a heap, whose first element is its largest, if it comes before that.
func offer(heap []neighbor, one neighbor) {
	if one.compare(heap[0]) >= 0 {
		return
	}
	i := 0
	for {
		child := 2*i + 1
		if child+1 < len(heap) && heap[child].compare(heap[child+1]) < 0 {
			child++
		}
		if child >= len(heap) || one.compare(heap[child]) >= 0 {
			break
		}
		heap[i] = heap[child]
		i = child
	}
	heap[i] = one
}

// store writes a list of results from element at on of arguments 2 and 3.
func (c *call) store(list []neighbor, at int) {
	distances, places := c.F32(2)[at:], c.U32(3)[at:]
	for i, f := range list {
		distances[i], places[i] = f.distance(), uint32(f.place)
	}
}

// search has the arguments of a launch of nearest.
type search struct {
	*call
	t, metric                       string
	queries, vectors, dim, k, parts int
}

func searchOf(c *call) search {
	metric, ok := c.Define("METRIC")
	if !ok {
		metric = "l2"
	}
	return search{c, c.Type("T"), metric, int(c.Int(4)), int(c.Int(5)), int(c.Int(6)), int(c.Int(7)), int(c.Int(8))}
}

// bytes returns the number of bytes that a search reads per vector, at least 1.
func (s *search) bytes() int { return max(s.dim*kernels.SizeOf(s.t), 1) }

// run calls scan for ranges of vectors, on all threads, with the heaps of one thread: for each query, k
// elements after one that scan may use. Threads divide the parts among them, or, if there are few, each
// part. Each vector is in one heap of its part at most, so that the k best of all heaps do not
// depend on the division.
func (s *search) run(scan func(lo, hi int, heaps []neighbor)) error {
	each, threads := (s.vectors+s.parts-1)/s.parts, s.device.threads
	if !threadsPay(0, float64(s.vectors)*float64(s.bytes())) {
		threads = 1
	}
	size := s.queries * (s.k + 1)
	room, err := s.device.scratch.take(int64(threads*size) * int64(unsafe.Sizeof(neighbor{})))
	if err != nil {
		return err
	}
	defer s.device.scratch.give(room)
	all := unsafe.Slice((*neighbor)(unsafe.Pointer(unsafe.SliceData(room.data))), threads*size)
	heaps := make(chan []neighbor, threads)
	for i := range threads {
		heaps <- all[i*size : (i+1)*size]
	}
	if s.parts >= 2*threads {
		return s.ranges(s.parts, 1, threads, func(_ *call, p, _ int) {
			own := <-heaps
			fillWith(own, noNeighbor)
			first := min(p*each, s.vectors)
			scan(first, min(first+each, s.vectors), own)
			s.finish(p, own)
			heaps <- own
		})
	}
	for p := range s.parts {
		fillWith(all, noNeighbor)
		first := min(p*each, s.vectors)
		n := min(each, s.vectors-first)
		if n <= 0 {
			s.finish(p, all)
			continue
		}
		if err := s.ranges(n, max(1, min((n+4*threads-1)/(4*threads), mostBytes/s.bytes())), threads, func(_ *call, lo, hi int) {
			own := <-heaps
			scan(first+lo, first+hi, own)
			heaps <- own
		}); err != nil {
			return err
		}
		s.finish(p, all)
	}
	return nil
}

func fillWith[T any](x []T, v T) {
	for i := range x {
		x[i] = v
	}
}

// finish stores the k best of one or more sets of heaps as the results of a part.
func (s *search) finish(part int, heaps []neighbor) {
	size := s.queries * (s.k + 1)
	for q := range s.queries {
		own := q*(s.k+1) + 1
		best := heaps[own : own+s.k]
		if len(heaps) > size {
			best = slices.Clone(best)
			for i := own + size; i < len(heaps); i += size {
				best = append(best, heaps[i:i+s.k]...)
			}
		}
		slices.SortFunc(best, neighbor.compare)
		s.store(best[:s.k], (q*s.parts+part)*s.k)
	}
}

// goNearest computes each distance in float; the sums of bytes are exact.
func goNearest(c *call) error {
	s := searchOf(c)
	if s.t == "i8" {
		row := func(arg int) func(i int, _ []int8) []int8 {
			x := c.I8(arg)
			return func(i int, _ []int8) []int8 { return x[i*s.dim : (i+1)*s.dim] }
		}
		return goSearch(&s, row(0), row(1), byteSums)
	}
	row := func(arg int) func(i int, room []float32) []float32 {
		x := viewOf[float32](c, arg, s.t)
		return func(i int, room []float32) []float32 { return x.read(i*s.dim, (i+1)*s.dim, room) }
	}
	return goSearch(&s, row(0), row(1), floatSums)
}

// goSearch runs a search whose functions query and vector return rows, possibly in room, and whose function
// sums returns the sum of a metric and, for cosine, that of the squares of v.
func goSearch[E float32 | int8](s *search, query, vector func(i int, room []E) []E, sums func(metric string, q, v []E) (sum, square float32)) error {
	queries, norms := make([][]E, s.queries), make([]float64, s.queries)
	for q := range queries {
		queries[q] = query(q, make([]E, s.dim))
		_, square := sums("cosine", queries[q], queries[q])
		norms[q] = math.Sqrt(float64(square))
	}
	return s.run(func(lo, hi int, heaps []neighbor) {
		room := make([]E, s.dim)
		for v := lo; v < hi; v++ {
			y := vector(v, room)
			for q, x := range queries {
				d, square := sums(s.metric, x, y)
				switch {
				case s.metric == "ip":
					d = 0 - d
				case s.metric == "cosine" && (square == 0 || norms[q] == 0):
					d = 1
				case s.metric == "cosine":
					d = float32(1 - min(max(float64(d)/(math.Sqrt(float64(square))*norms[q]), -1), 1))
				}
				offer(heaps[q*(s.k+1)+1:(q+1)*(s.k+1)], neighbor{distanceKey(d), int64(v)})
			}
		}
	})
}

func floatSums(metric string, q, v []float32) (sum, square float32) {
	var s, t [4]float32
	v = v[:len(q)]
	for i, x := range q {
		y := v[i]
		switch metric {
		case "l2":
			s[i%4] += (x - y) * (x - y)
		case "cosine":
			t[i%4] += y * y
			fallthrough
		default:
			s[i%4] += x * y
		}
	}
	return s[0] + s[1] + (s[2] + s[3]), t[0] + t[1] + (t[2] + t[3])
}

func byteSums(metric string, q, v []int8) (sum, square float32) {
	s, t := 0, 0
	for i, x := range q {
		x, y := int(x), int(v[i])
		switch metric {
		case "l2":
			s += (x - y) * (x - y)
		case "cosine":
			t += y * y
			fallthrough
		default:
			s += x * y
		}
	}
	return float32(s), float32(t)
}

// goNearestMerge selects from the candidates of each row.
func goNearestMerge(c *call) error {
	rows, n, k := int(c.Int(4)), int(c.Int(5))*int(c.Int(6)), int(c.Int(6))
	distances, places := c.F32(0), c.U32(1)
	return c.Parallel(rows, max(1, grain/max(n, 1)), func(lo, hi int) {
		heap := make([]neighbor, k)
		for r := lo; r < hi; r++ {
			fillWith(heap, noNeighbor)
			for i := r * n; i < (r+1)*n; i++ {
				if places[i] != kernels.NearestMissing {
					offer(heap, neighbor{distanceKey(distances[i]), int64(places[i])})
				}
			}
			slices.SortFunc(heap, neighbor.compare)
			c.store(heap, r*k)
		}
	})
}
