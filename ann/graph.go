package ann

// The graph of HNSW: its layers of links, and how searches and insertions go through it.
//
// The links of a vector are a number and so many nodes, in memory of fixed size. Insertions change the links of
// a vector under one of the locks. Searches read them without a lock, one atomic load each: they may see some
// of the old links and some of the new ones, all of which are nodes of the graph.
//
// What is nearest to a node need not lead to it: where links are dropped for nearer ones, a node could lose all
// that lead to it. So the first layer has a tree: the first link of a node is its parent, and neither it nor
// the link from the parent is ever dropped. From every node each other one can be reached.
//
// Nodes that are inserted at once do not come to each other. So the one of two that is linked last then compares
// itself with those that were linked meanwhile.
//
// A vector that is there already is not linked, but listed as a copy: copies would take each other's links, and
// then nothing would lead from them to other vectors.

import (
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
)

type graph struct {
	m      int
	seed   uint64
	factor float64  // of levels
	first  []uint32 // the links in the first layer: for each node their number and 2·m places
	level  []uint8  // the highest layer of each node
	at     []uint32 // where its links in the other layers begin in upper, in units of m + 1
	upper  []uint32
	// for a node with copies 1 + the last of them, for a copy 1 + the next, where the first follows the last;
	// otherwise 0. nil if there are none
	copies []uint32
	*joint
}

// joint is what all copies of a graph have in common.
type joint struct {
	entry    atomic.Uint64 // the node where insertions begin, and 1 + its level above; 0 if there is none
	entering sync.Mutex
	arrived  []uint32 // the nodes that the Add that runs has linked, in that order; guarded by entering
	locks    [1 << 10]sync.Mutex
}

const topLevel = 32

func newGraph(o HNSWOptions) graph {
	return graph{m: o.M, seed: o.Seed, factor: 1 / math.Log(float64(o.M)), joint: new(joint)}
}

// extend adds nodes up to n, without links.
func (g *graph) extend(n int) {
	have := len(g.level)
	g.first = append(g.first, make([]uint32, (n-have)*(2*g.m+1))...)
	for i := have; i < n; i++ {
		level := g.levelOf(i)
		g.level = append(g.level, uint8(level))
		g.at = append(g.at, uint32(len(g.upper)/(g.m+1)))
		g.upper = append(g.upper, make([]uint32, level*(g.m+1))...)
	}
	g.copies = append(g.copies, make([]uint32, n-len(g.copies))...)
}

// levelOf returns the level of a node: a random number that follows from the seed and the node alone.
func (g *graph) levelOf(node int) int {
	r := rand.New(rand.NewPCG(g.seed, uint64(node)))
	return min(int(-math.Log(1-r.Float64())*g.factor), topLevel)
}

// arrivals returns how many nodes the Add that runs has linked.
func (j *joint) arrivals() int {
	j.entering.Lock()
	defer j.entering.Unlock()
	return len(j.arrived)
}

// arrive says that a node is linked, and returns those that were after the first before.
func (j *joint) arrive(node uint32, before int) (meanwhile []uint32) {
	j.entering.Lock()
	defer j.entering.Unlock()
	meanwhile = j.arrived[before:]
	j.arrived = append(j.arrived, node)
	return meanwhile
}

// links returns the links of a node in a layer: their number, and the places for them.
func (g *graph) links(node uint32, layer int) []uint32 {
	if layer == 0 {
		size := 2*g.m + 1
		return g.first[int(node)*size:][:size]
	}
	size := g.m + 1
	return g.upper[(int(g.at[node])+layer-1)*size:][:size]
}

// begin returns the node where insertions begin and its level, or ok false if the graph is empty.
func (g *graph) begin() (node uint32, level int, ok bool) { return entered(g.entry.Load()) }

func entered(e uint64) (node uint32, level int, ok bool) { return uint32(e), int(e>>32) - 1, e != 0 }

// searcher is the memory of one search or insertion at a time. What the device reads and writes is the device's memory.
type searcher struct {
	v       *view
	query   array
	code    array     // the query in bytes, with option Codes
	moved   []float32 // and before
	rows    array     // the nodes that are compared next, and their distances
	dist    array
	args    kernels.Ranking
	visited []uint16 // the nodes that were seen: those whose number is round
	round   uint16
	starts  []candidate // where a search in a layer begins
	next    []candidate // nodes to follow, as a heap with the nearest in front: the numbers are inverted
	best    []candidate // the nearest nodes found, as a heap with the farthest in front
	copied  bool        // the nearest nodes may be copies
	chosen  []candidate
	kept    []candidate
	layers  []candidate // the links of a node that is inserted, layer by layer from above, with noCandidate after each
	links   []candidate
	met     []candidate
	reach   [topLevel + 1]candidate // in each layer the farthest that an insertion found, if there was no room for more
}

// together is the number of vectors whose links are followed at a time: their links and the vectors that these
// lead to come from memory side by side.
const together = 4

// mostStarts is the number of nodes of the layer above, of those that were compared, with which a search in a
// layer begins.
const mostStarts = 16

// noCandidate is no node: there are fewer.
const noCandidate = candidate(math.MaxUint64)

// searchers keeps searchers that are not in use.
type searchers struct{ idle[*searcher] }

func (ss *searchers) take(v *view) (*searcher, error) {
	s, ok := ss.idle.take()
	if !ok {
		s = &searcher{moved: make([]float32, v.e.dim)}
		w := work{e: v.e}
		for _, err := range []error{w.grow(&s.query, runtime.F32, v.e.dim), w.grow(&s.code, runtime.I8, v.e.dim),
			w.grow(&s.rows, runtime.U32, together*2*v.m),
			w.grow(&s.dist, runtime.F32, together*2*v.m)} {
			if err != nil {
				s.close()
				return nil, err
			}
		}
	}
	if n := len(v.level); len(s.visited) < n {
		s.visited, s.round = make([]uint16, n+n/4), 0
	}
	s.v = v
	s.args = kernels.Ranking{Metric: v.e.metric.onNearest(), Type: "f32", Dim: v.e.dim, Vectors: v.rows}
	if v.codes != nil {
		s.args.Type, s.args.Vectors = "i8", v.codes
	}
	return s, nil
}

// ask takes a query. It returns it in the form of points.
func (s *searcher) ask(query []float32) []byte {
	copy(s.query.host, bytesOf(query))
	if s.v.codes == nil {
		return s.query.host
	}
	s.v.code.coding.encode(s.code.host, s.v.code.moved(s.moved, query))
	return s.code.host
}

// again computes the distances of the best from the query's floats, if they are those of codes, or of vectors
// in the same direction.
func (s *searcher) again() {
	if s.v.codes == nil && !(s.copied && s.args.Metric == "cosine") {
		return
	}
	s.args.Type, s.args.Vectors = "f32", s.v.rows
	list := elements[uint32](s.rows.host)
	for lo := 0; lo < len(s.best); lo += len(list) {
		some := s.best[lo:min(lo+len(list), len(s.best))]
		for i, c := range some {
			list[i] = c.row()
		}
		for i, d := range s.compare(s.query.host, len(some)) {
			some[i] = candidateOf(d, list[i])
		}
	}
}

// give takes back a searcher, which keeps no view.
func (ss *searchers) give(s *searcher) {
	s.v = nil
	ss.idle.give(s)
}

func (s *searcher) close() {
	s.query.close()
	s.code.close()
	s.rows.close()
	s.dist.close()
}

func (ss *searchers) close() { ss.drain((*searcher).close) }

// compare returns the distances of the first n nodes of s.rows from a query, in the memory of s.dist.
func (s *searcher) compare(query []byte, n int) []float32 {
	s.args.Query, s.args.Rows, s.args.Distances = query, elements[uint32](s.rows.host)[:n],
		elements[float32](s.dist.host)[:n]
	if s.v.e.ranker != nil {
		s.v.e.ranker.Rank(&s.args)
		return s.args.Distances
	}
	x := elements[float32](query)[:s.v.e.dim]
	for i, node := range s.args.Rows {
		s.args.Distances[i] = float32(s.v.e.metric.distance(x, elements[float32](s.v.row(node))))
	}
	return s.args.Distances
}

// one returns a node with its distance.
func (s *searcher) one(query []byte, node uint32) candidate {
	elements[uint32](s.rows.host)[0] = node
	return candidateOf(s.compare(query, 1)[0], node)
}

// stray reports whether a node has no distance from itself, since its components are NaN or infinite. No search
// would go on from it, so it has no links: only comparing with all vectors finds it, which a search does if it
// has not found enough.
func (s *searcher) stray(node uint32) bool {
	d := s.one(s.v.point(node), node).distance()
	return d != d
}

// descend follows links of the layers from high down to above low, always to the nearest node. It leaves the
// nearest that it saw in the last layer in s.starts.
func (v *view) descend(s *searcher, query []byte, at candidate, high, low int) {
	list := elements[uint32](s.rows.host)
	s.starts = append(s.starts[:0], at)
	for layer := high; layer > low; {
		links := v.links(at.row(), layer)
		m := 0
		for i := range int(atomic.LoadUint32(&links[0])) {
			if node := atomic.LoadUint32(&links[1+i]); int(node) < len(v.level) { // others were added since the view
				list[m] = node
				m++
			}
		}
		nearer := at
		for i, d := range s.compare(query, m) {
			c := candidateOf(d, list[i])
			nearer = min(nearer, c)
			if layer == low+1 && !slices.Contains(s.starts, c) {
				s.starts = offer(s.starts, c, mostStarts)
			}
		}
		if nearer == at {
			layer--
		}
		at = nearer
	}
	if !slices.Contains(s.starts, at) {
		s.starts = offer(s.starts, at, mostStarts)
	}
}

// explore finds the ef nearest nodes of a layer that can be reached from those in s.starts, those that f
// admits. It leaves them in s.best, a heap.
//
// The first nodes are followed even if others are nearer: they may be in places from which different ones are
// reached. With few links for each, that is more of them.
func (v *view) explore(s *searcher, query []byte, layer, ef int, f found) {
	if s.round++; s.round == 0 {
		clear(s.visited)
		s.round = 1
	}
	visited, mine, list := s.visited[:len(v.level)], s.round, elements[uint32](s.rows.host)
	next, best := s.next[:0], s.best[:0]
	for _, c := range s.starts {
		visited[c.row()] = mine
		next = push(next, ^c)
		if f.all || v.admitted(c.row(), f) {
			best = offer(best, c, ef)
		}
	}
	var lists [together][]uint32
	for round := 0; ; round++ {
		m := 0
		for m < together && len(next) > 0 && (round*v.m < mostStarts || len(best) < ef || ^next[0] <= best[0]) {
			var c candidate
			c, next = pop(next)
			links := v.links((^c).row(), layer)
			for i := 0; i < len(links); i += 16 { // fetches all of them, while others are looked for
				atomic.LoadUint32(&links[i])
			}
			lists[m] = links
			m++
		}
		if m == 0 {
			break
		}
		n := 0
		for _, links := range lists[:m] {
			for i := range links[1 : 1+min(int(atomic.LoadUint32(&links[0])), len(links)-1)] {
				node := atomic.LoadUint32(&links[1+i])
				if int(node) >= len(visited) { // it was added since the view; those of a damaged file may be any
					continue
				}
				list[n] = node
				unseen := 0 // added without a branch, which would often go the other way than expected
				if visited[node] != mine {
					unseen = 1
				}
				visited[node] = mine
				n += unseen
			}
		}
		if n == 0 {
			continue
		}
		s.args.Bound = 0
		if len(best) == ef {
			s.args.Bound = best[0].distance()
		}
		for i, d := range s.compare(query, n) {
			c := candidateOf(d, list[i])
			if len(best) == ef && c > best[0] {
				continue
			}
			next = push(next, ^c)
			if f.all || v.admitted(c.row(), f) {
				best = offer(best, c, ef)
			}
		}
	}
	s.next, s.best, s.args.Bound = next, best, 0
}

// found says which nodes may be found: all that the view shows, or those that admits has and, if seen is set,
// that are not hidden.
type found struct {
	all, seen bool
	admits    bitset
}

func (v *view) finds(node uint32, f found) bool {
	return int(node) < len(v.ids) && (f.all || (!f.seen || v.live.has(int(node))) && f.admits.has(int(node)))
}

// admitted reports whether a node or one of its copies may be found.
func (v *view) admitted(node uint32, f found) bool {
	if v.finds(node, f) {
		return true
	}
	for copied := range v.copiesOf(node) {
		if v.finds(copied, f) {
			return true
		}
	}
	return false
}

// copiesOf returns the copies of a node in the order in which they were added.
func (g *graph) copiesOf(node uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		if g.copies == nil {
			return
		}
		last := atomic.LoadUint32(&g.copies[node])
		for x := last; x != 0; {
			if x = atomic.LoadUint32(&g.copies[x-1]); !yield(x-1) || x == last {
				return
			}
		}
	}
}

// withCopies adds the copies of the nearest nodes, which are as far as these: while nodes were looked for,
// these did not take the places of others. It leaves the ef nearest in s.best.
func (v *view) withCopies(s *searcher, ef int, f found) {
	if v.copies == nil {
		return
	}
	slices.Sort(s.best)
	best := s.next[:0]
	for _, c := range s.best {
		if len(best) == ef && c > best[0] {
			break
		}
		if v.finds(c.row(), f) {
			best = offer(best, c, ef)
		}
		for copied := range v.copiesOf(c.row()) {
			x := c>>32<<32 | candidate(copied)
			if len(best) == ef && x > best[0] {
				break
			}
			s.copied = true
			if v.finds(copied, f) {
				best = offer(best, x, ef)
			}
		}
	}
	s.next, s.best = s.best, best
}
