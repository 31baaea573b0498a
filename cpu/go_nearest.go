package cpu

// The nearest vectors: the division among threads, which the vector kernels share, the distances
// in Go, and merging.

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/half"
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

// orderKey returns a key that has the order of numbers, with both zeros equal and NaN last.
func orderKey(x float64) uint64 {
	if x != x {
		return math.MaxUint64
	}
	u := math.Float64bits(x + 0) // -0 becomes 0
	if u>>63 != 0 {
		return ^u
	}
	return u | 1<<63
}

// distance returns the number of a key.
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

// search is a launch of nearest: its arguments, and what its threads share. Later launches reuse it.
type search struct {
	*call
	t, metric                       string
	queries, vectors, dim, k, parts int
	each, first                     int // vectors of a part; the first of the part that the threads divide
	size                            int // of the heaps of a thread

	scan    func(lo, hi int, heaps []neighbor) // puts a range of vectors into heaps
	vector  vectorScan                         // what scan needs if it is run
	run     func(lo, hi int, heaps []neighbor) // scanVectors and scanMany, as functions
	runMany func(lo, hi int, heaps []neighbor)
	several func(c *call, lo, hi int) // onePart and aRange, as functions
	within  func(c *call, lo, hi int)

	mu   sync.Mutex
	all  []neighbor   // the heaps of all threads
	idle [][]neighbor // those of threads that do not scan
	best []neighbor
}

var searches = sync.Pool{New: func() any {
	s := new(search)
	s.run, s.runMany, s.several, s.within = s.scanVectors, s.scanMany, s.onePart, s.aRange
	return s
}}

// searchOf reads the arguments of a launch. The caller calls done.
func searchOf(c *call) *search {
	s := searches.Get().(*search)
	s.call, s.t = c, c.Type("T")
	s.queries, s.vectors, s.dim, s.k, s.parts = int(c.Int(4)), int(c.Int(5)), int(c.Int(6)), int(c.Int(7)), int(c.Int(8))
	var ok bool
	if s.metric, ok = c.Define("METRIC"); !ok {
		s.metric = "l2"
	}
	return s
}

// done makes s available for other launches, after its threads have ended.
func (s *search) done() {
	s.call, s.scan, s.vector, s.all = nil, nil, vectorScan{}, nil
	clear(s.idle)
	s.idle = s.idle[:0]
	searches.Put(s)
}

// bytes returns the number of bytes that a search reads per vector, at least 1.
func (s *search) bytes() int { return max(s.dim*kernels.SizeOf(s.t), 1) }

// find calls scan for ranges of vectors, on all threads, with the heaps of one thread: for each query, k
// elements after one that scan may use. Threads divide the parts among them, or, if there are few, each
// part. Each vector is in one heap of its part at most, so that the k best of all heaps do not
// depend on the division.
func (s *search) find(scan func(lo, hi int, heaps []neighbor)) error {
	threads := s.device.threads
	if !s.threadsPay(0, float64(s.vectors)*float64(s.bytes())) {
		threads = 1
	}
	s.scan, s.each, s.size = scan, (s.vectors+s.parts-1)/s.parts, s.queries*(s.k+1)
	room, err := s.device.scratch.take(int64(threads*s.size) * int64(unsafe.Sizeof(neighbor{})))
	if err != nil {
		return err
	}
	defer s.device.scratch.give(room)
	all := unsafe.Slice((*neighbor)(unsafe.Pointer(unsafe.SliceData(room.data))), threads*s.size)
	s.all = all
	for i := range threads {
		s.idle = append(s.idle, all[i*s.size:(i+1)*s.size])
	}
	if s.parts >= 2*threads {
		return s.ranges(s.parts, 1, threads, s.several)
	}
	for p := range s.parts {
		fillWith(all, noNeighbor)
		s.first = min(p*s.each, s.vectors)
		if n := min(s.each, s.vectors-s.first); n > 0 {
			if err := s.ranges(n, max(1, min(s.call.each(n, threadRanges), s.mostBytes()/s.bytes())), threads,
				s.within); err != nil {
				return err
			}
		}
		s.finish(p, all)
	}
	return nil
}

// onePart scans part p and stores its results.
func (s *search) onePart(_ *call, p, _ int) {
	own := s.take()
	fillWith(own, noNeighbor)
	first := min(p*s.each, s.vectors)
	s.scan(first, min(first+s.each, s.vectors), own)
	s.finishOne(p, own)
	s.give(own)
}

// aRange scans a range of the part that is being divided.
func (s *search) aRange(_ *call, lo, hi int) {
	own := s.take()
	s.scan(s.first+lo, s.first+hi, own)
	s.give(own)
}

// take returns the heaps of a thread; there are as many as threads that scan at a time.
func (s *search) take() []neighbor {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.idle[len(s.idle)-1]
	s.idle = s.idle[:len(s.idle)-1]
	return own
}

// thread returns the number of the thread whose heaps these are.
func (s *search) thread(own []neighbor) int {
	return int(uintptr(unsafe.Pointer(&own[0]))-uintptr(unsafe.Pointer(&s.all[0]))) / int(unsafe.Sizeof(neighbor{})) /
		s.size
}

func (s *search) give(own []neighbor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, own)
}

func fillWith[T any](x []T, v T) {
	for i := range x {
		x[i] = v
	}
}

// finish stores the k best of the heaps of all threads as the results of a part.
func (s *search) finish(part int, heaps []neighbor) {
	if len(heaps) == s.size {
		s.finishOne(part, heaps)
		return
	}
	for q := range s.queries {
		s.best = s.best[:0]
		for i := q*(s.k+1) + 1; i < len(heaps); i += s.size {
			s.best = append(s.best, heaps[i:i+s.k]...)
		}
		slices.SortFunc(s.best, neighbor.compare)
		s.store(s.best[:s.k], (q*s.parts+part)*s.k)
	}
}

// finishOne does the same for the heaps of one thread.
func (s *search) finishOne(part int, heaps []neighbor) {
	for q := range s.queries {
		best := heaps[q*(s.k+1)+1 : (q+1)*(s.k+1)]
		slices.SortFunc(best, neighbor.compare)
		s.store(best, (q*s.parts+part)*s.k)
	}
}

// goNearest computes each distance in float; the sums of bytes are exact.
func goNearest(c *call) error {
	s := searchOf(c)
	defer s.done()
	if s.t == "i8" {
		row := func(arg int) func(i int, _ []int8) []int8 {
			x := c.I8(arg)
			return func(i int, _ []int8) []int8 { return x[i*s.dim : (i+1)*s.dim] }
		}
		return goSearch(s, row(0), row(1), byteSums)
	}
	row := func(arg int) func(i int, room []float32) []float32 {
		x := viewOf[float32](c, arg, s.t)
		return func(i int, room []float32) []float32 { return x.read(i*s.dim, (i+1)*s.dim, room) }
	}
	return goSearch(s, row(0), row(1), floatSums)
}

// goSearch runs a search whose functions query and vector return rows, possibly in room, and whose function
// sums returns the sum of a metric and, for cosine, that of the squares of v.
func goSearch[E float32 | int8](s *search, query, vector func(i int, room []E) []E,
	sums func(metric string, q, v []E) (sum, square float32)) error {
	queries, norms := make([][]E, s.queries), make([]float64, s.queries)
	for q := range queries {
		queries[q] = query(q, make([]E, s.dim))
		_, square := sums("cosine", queries[q], queries[q])
		norms[q] = math.Sqrt(float64(square))
	}
	return s.find(func(lo, hi int, heaps []neighbor) {
		room := make([]E, s.dim)
		for v := lo; v < hi; v++ {
			y := vector(v, room)
			for q, x := range queries {
				d, square := sums(s.metric, x, y)
				key := orderKey(float64(goDistance(s.metric, x, y, d, square, norms[q])))
				offer(heaps[q*(s.k+1)+1:(q+1)*(s.k+1)], neighbor{key, int64(v)})
			}
		}
	})
}

// goRank computes the distances of a ranking in Go.
func goRank(r *kernels.Ranking) {
	switch r.Type {
	case "i8":
		query, vectors := elementsOf[int8](r.Query), elementsOf[int8](r.Vectors)
		rank(r, query[:r.Dim], func(row int) []int8 { return vectors[row*r.Dim : (row+1)*r.Dim] }, byteSums)
	case "f32":
		query, vectors := elementsOf[float32](r.Query), elementsOf[float32](r.Vectors)
		rank(r, query[:r.Dim], func(row int) []float32 { return vectors[row*r.Dim : (row+1)*r.Dim] }, floatSums)
	default:
		wide, vectors := make([]float32, r.Dim), elementsOf[uint16](r.Vectors)
		rank(r, elementsOf[float32](r.Query)[:r.Dim], func(row int) []float32 {
			for i, x := range vectors[row*r.Dim : (row+1)*r.Dim] {
				if wide[i] = half.BFloat16(x).Float32(); r.Type == "f16" {
					wide[i] = half.Float16(x).Float32()
				}
			}
			return wide
		}, floatSums)
	}
}

func elementsOf[T any](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}

func rank[E float32 | int8](r *kernels.Ranking, query []E, vector func(row int) []E,
	sums func(metric string, q, v []E) (sum, square float32)) {
	_, square := sums("cosine", query, query)
	norm := math.Sqrt(float64(square))
	for i, row := range r.Rows {
		v := vector(int(row))
		sum, square := sums(r.Metric, query, v)
		r.Distances[i] = goDistance(r.Metric, query, v, sum, square, norm)
	}
}

// goDistance returns the distance of a metric for the sums of a vector and the norm of the query.
func goDistance[E float32 | int8](metric string, q, v []E, sum, square float32, norm float64) float32 {
	switch metric {
	case "ip":
		return 0 - sum
	case "l2":
		return sum
	}
	root := math.Sqrt(float64(square))
	x := float64(sum) / (root * norm)
	if !(min(root, norm) >= nearShort) || max(root, norm) > nearLong || x > nearParallel {
		return preciseCosine(q, v)
	}
	return float32(1 - max(x, -1))
}

// The numbers of csrc/cpu/nearest.h: the cosine above which a distance has lost too many digits, and the
// lengths between which no square leaves the range of float.
const nearParallel, nearShort, nearLong = 1 - 0x1p-10, 0x1p-40, 0x1p60

// preciseCosine computes the distance where float would lose it. Above a cosine of a half it does so from the
// difference of the directions.
func preciseCosine[E float32 | int8](q, v []E) float32 {
	product, square, other := 0., 0., 0.
	for i, x := range q {
		x, y := float64(x), float64(v[i])
		product, square, other = product+x*y, square+x*x, other+y*y
	}
	if square == 0 || other == 0 {
		return 1
	}
	a, b := math.Sqrt(square), math.Sqrt(other)
	x := product / a / b
	if !(x > 0.5) {
		return float32(1 - max(x, -1))
	}
	far := 0.
	for i, x := range q {
		d := float64(x)/a - float64(v[i])/b
		far += d * d
	}
	return float32(far / 2)
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
	return c.Parallel(rows, max(1, c.Choose(goGrain)/max(n, 1)), func(lo, hi int) {
		heap := make([]neighbor, k)
		for r := lo; r < hi; r++ {
			fillWith(heap, noNeighbor)
			for i := r * n; i < (r+1)*n; i++ {
				if places[i] != kernels.NearestMissing {
					offer(heap, neighbor{orderKey(float64(distances[i])), int64(places[i])})
				}
			}
			slices.SortFunc(heap, neighbor.compare)
			c.store(heap, r*k)
		}
	})
}
