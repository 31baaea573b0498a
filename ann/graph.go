package ann

// The graph of HNSW: its layers of links, and how searches and insertions go through it.
//
// The links of a vector are a number and so many nodes, in memory of fixed size. Insertions change the links of a vector under one of the locks. Searches
// read them without a lock, one atomic load each: they may see some of the old links and some of the new ones, all of which
// are nodes of the graph.
//
// What is nearest to a node need not lead to it: where links are dropped for nearer ones, a node could lose all that lead to it. So the first layer has a tree: the
// first link of a node is its parent, and neither it nor the link from the parent is ever dropped. From every node each other one can be reached.
//
// A vector that is there already is not linked, but listed as a copy: copies would take each other's links, and then nothing would lead from them to other vectors.

import (
	"fmt"
	"iter"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

type graph struct {
	m      int
	seed   uint64
	factor float64  // of levels
	first  []uint32 // the links in the first layer: for each node their number and 2·m places
	mapped bool     // first, level and upper are the memory of a file, which is not to be changed, and the links in first were not checked
	level  []uint8  // the highest layer of each node
	at     []uint32 // where its links in the other layers begin in upper, in units of m + 1
	upper  []uint32
	hides  []uint64 // a bit for each node that no search returns
	copies []uint32 // for a node with copies 1 + the last of them, for a copy 1 + the next, where the first follows the last; otherwise 0. nil if there are none

	entry    atomic.Uint64 // the node where searches begin, and 1 + its level above; 0 if there is none
	entering sync.Mutex
	locks    [1 << 10]sync.Mutex
}

const topLevel = 32

func newGraph(o HNSWOptions) graph {
	return graph{m: o.M, seed: o.Seed, factor: 1 / math.Log(float64(o.M))}
}

// become takes the contents of another graph, which no one else uses.
func (g *graph) become(x *graph) {
	g.first, g.mapped, g.level, g.at, g.upper, g.hides, g.copies = x.first, x.mapped, x.level, x.at, x.upper, x.hides, x.copies
	g.entry.Store(x.entry.Load())
}

// extend adds nodes up to n, hidden and without links.
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
	for len(g.hides) < (n+63)/64 {
		g.hides = append(g.hides, 0)
	}
	for i := have; i < n; i++ {
		g.hide(i, true)
	}
}

// levelOf returns the level of a node: a random number that follows from the seed and the node alone.
func (g *graph) levelOf(node int) int {
	r := rand.New(rand.NewPCG(g.seed, uint64(node)))
	return min(int(-math.Log(1-r.Float64())*g.factor), topLevel)
}

func (g *graph) hide(node int, hide bool) {
	word, bit := &g.hides[node/64], uint64(1)<<(node%64)
	if hide {
		atomic.OrUint64(word, bit)
	} else {
		atomic.AndUint64(word, ^bit)
	}
}

func (g *graph) hidden(node uint32) bool {
	return atomic.LoadUint64(&g.hides[node/64])>>(node%64)&1 != 0
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

// set replaces links, whose lock the caller holds.
func set(links []uint32, nodes []candidate) {
	for i, c := range nodes {
		atomic.StoreUint32(&links[1+i], c.row())
	}
	atomic.StoreUint32(&links[0], uint32(len(nodes)))
}

// checkLinks checks the links in some layers: a search of them comes only to nodes of the layer.
func (g *graph) checkLinks(low, high int) error {
	for node, level := range g.level {
		for layer := low; layer <= min(high, int(level)); layer++ {
			links := g.links(uint32(node), layer)
			if int(links[0]) >= len(links) {
				return fmt.Errorf("ann: %d links of vector %d: %w", links[0], node, runtime.ErrCorrupt)
			}
			for _, to := range links[1 : 1+links[0]] {
				if int(to) >= len(g.level) || int(g.level[to]) < layer {
					return fmt.Errorf("ann: a link from vector %d to %d in layer %d: %w", node, to, layer, runtime.ErrCorrupt)
				}
			}
		}
	}
	return nil
}

// begin returns the node where searches begin and its level, or ok false if the graph is empty.
func (g *graph) begin() (node uint32, level int, ok bool) {
	e := g.entry.Load()
	return uint32(e), int(e>>32) - 1, e != 0
}

// searcher is the memory of one search or insertion at a time. What the device reads and writes is the device's memory.
type searcher struct {
	h       *HNSW
	query   array
	code    array // the query in bytes, with option Codes
	rows    array // the nodes that are compared next, and their distances
	dist    array
	args    driver.Ranking
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
}

// together is the number of vectors whose links are followed at a time: their links and the vectors that these lead to come from memory side by side.
const together = 4

// mostStarts is the number of nodes of the layer above, of those that were compared, with which a search in a layer begins.
const mostStarts = 16

// noCandidate is no node: there are fewer.
const noCandidate = candidate(math.MaxUint64)

// searchers keeps searchers that are not in use.
type searchers struct{ idle[*searcher] }

func (ss *searchers) take(h *HNSW) (*searcher, error) {
	s, ok := ss.idle.take()
	if !ok {
		s = &searcher{h: h}
		w := work{e: h.e}
		for _, err := range []error{w.grow(&s.query, runtime.F32, h.e.dim), w.grow(&s.code, runtime.I8, h.e.dim), w.grow(&s.rows, runtime.U32, together*2*h.o.M),
			w.grow(&s.dist, runtime.F32, together*2*h.o.M)} {
			if err != nil {
				s.close()
				return nil, err
			}
		}
	}
	if n := len(h.level); len(s.visited) < n {
		s.visited, s.round = make([]uint16, n+n/4), 0
	}
	s.args = driver.Ranking{Metric: h.e.metric.onNearest(), Type: runtime.F32, Dim: h.e.dim, Vectors: h.rows}
	if h.codes != nil {
		s.args.Type, s.args.Vectors = runtime.I8, h.codes
	}
	return s, nil
}

// ask takes a query. It returns it in the form of points.
func (s *searcher) ask(query []float32) []byte {
	copy(s.query.host, bytesOf(query))
	if s.h.codes == nil {
		return s.query.host
	}
	s.h.code.encode(s.code.host, query)
	return s.code.host
}

// again computes the distances of the best from the query's floats, if they are those of codes, or of vectors in the same direction.
func (s *searcher) again() {
	if s.h.codes == nil && !(s.copied && s.args.Metric == "cosine") {
		return
	}
	s.args.Type, s.args.Vectors = runtime.F32, s.h.rows
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

func (s *searcher) close() {
	s.query.close()
	s.code.close()
	s.rows.close()
	s.dist.close()
}

func (ss *searchers) close() { ss.drain((*searcher).close) }

// compare returns the distances of the first n nodes of s.rows from a query, in the memory of s.dist.
func (s *searcher) compare(query []byte, n int) []float32 {
	s.args.Query, s.args.Rows, s.args.Distances = query, elements[uint32](s.rows.host)[:n], elements[float32](s.dist.host)[:n]
	if s.h.e.ranker != nil {
		s.h.e.ranker.Rank(&s.args)
		return s.args.Distances
	}
	x := elements[float32](query)[:s.h.e.dim]
	for i, node := range s.args.Rows {
		s.args.Distances[i] = float32(s.h.e.metric.distance(x, elements[float32](s.h.row(node))))
	}
	return s.args.Distances
}

// one returns a node with its distance.
func (s *searcher) one(query []byte, node uint32) candidate {
	elements[uint32](s.rows.host)[0] = node
	return candidateOf(s.compare(query, 1)[0], node)
}

// stray reports whether a node has no distance from itself, since its components are NaN or infinite. No search would go on from it, so it has no links: only
// comparing with all vectors finds it, which a search does if it has not found enough.
func (s *searcher) stray(node uint32) bool {
	d := s.one(s.h.point(node), node).distance()
	return d != d
}

// descend follows links of the layers from high down to above low, always to the nearest node. It leaves the nearest that it saw in the last layer in s.starts.
func (h *HNSW) descend(s *searcher, query []byte, at candidate, high, low int) {
	list := elements[uint32](s.rows.host)
	s.starts = append(s.starts[:0], at)
	for layer := high; layer > low; {
		links := h.links(at.row(), layer)
		n := int(atomic.LoadUint32(&links[0]))
		for i := range n {
			list[i] = atomic.LoadUint32(&links[1+i])
		}
		nearer := at
		for i, d := range s.compare(query, n) {
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

// explore finds the ef nearest nodes of a layer that can be reached from those in s.starts, those that f admits. It leaves them in s.best, a heap.
//
// The first nodes are followed even if others are nearer: they may be in places from which different ones are reached. With few links for each, that is more of them.
func (h *HNSW) explore(s *searcher, query []byte, layer, ef int, f found) {
	if s.round++; s.round == 0 {
		clear(s.visited)
		s.round = 1
	}
	visited, mine, list := s.visited[:len(h.level)], s.round, elements[uint32](s.rows.host)
	next, best := s.next[:0], s.best[:0]
	for _, c := range s.starts {
		visited[c.row()] = mine
		next = push(next, ^c)
		if f.all || h.admitted(c.row(), f) {
			best = offer(best, c, ef)
		}
	}
	var lists [together][]uint32
	for round := 0; ; round++ {
		m := 0
		for m < together && len(next) > 0 && (round*h.m < mostStarts || len(best) < ef || ^next[0] <= best[0]) {
			var c candidate
			c, next = pop(next)
			links := h.links((^c).row(), layer)
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
				if int(node) >= len(visited) { // those of a damaged file may be any
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
			if f.all || h.admitted(c.row(), f) {
				best = offer(best, c, ef)
			}
		}
	}
	s.next, s.best, s.args.Bound = next, best, 0
}

// found says which nodes may be found: all, or those that admits has and, if seen is set, that are not hidden.
type found struct {
	all, seen bool
	admits    bitset
}

func (h *HNSW) finds(node uint32, f found) bool {
	return (!f.seen || !h.hidden(node)) && f.admits.has(int(node))
}

// admitted reports whether a node or one of its copies may be found.
func (h *HNSW) admitted(node uint32, f found) bool {
	if h.finds(node, f) {
		return true
	}
	for copied := range h.copiesOf(node) {
		if h.finds(copied, f) {
			return true
		}
	}
	return false
}

// copiesOf returns the copies of a node in the order in which they were added.
func (h *HNSW) copiesOf(node uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		if h.copies == nil {
			return
		}
		last := atomic.LoadUint32(&h.copies[node])
		for x := last; x != 0; {
			if x = atomic.LoadUint32(&h.copies[x-1]); !yield(x-1) || x == last {
				return
			}
		}
	}
}

// withCopies adds the copies of the nearest nodes, which are as far as these: while nodes were looked for, these did not take the places of others. It leaves the ef nearest in s.best.
func (h *HNSW) withCopies(s *searcher, ef int, f found) {
	if h.copies == nil {
		return
	}
	slices.Sort(s.best)
	best := s.next[:0]
	for _, c := range s.best {
		if len(best) == ef && c > best[0] {
			break
		}
		if f.all || h.finds(c.row(), f) {
			best = offer(best, c, ef)
		}
		for copied := range h.copiesOf(c.row()) {
			x := c>>32<<32 | candidate(copied)
			if len(best) == ef && x > best[0] {
				break
			}
			s.copied = true
			if f.all || h.finds(copied, f) {
				best = offer(best, x, ef)
			}
		}
	}
	s.next, s.best = s.best, best
}

// original returns the node among the nearest of a new one, in order, that has its vector: d is the distance of the new node from itself.
func (h *HNSW) original(node uint32, d candidate, nearest []candidate) (of uint32, ok bool) {
	for _, c := range nearest {
		if c.distance() != d.distance() && !(h.e.metric.onNearest() == "cosine" && c.distance() < parallel) {
			break
		}
		if h.e.metric.same(elements[float32](h.row(node)), elements[float32](h.row(c.row()))) {
			return c.row(), true
		}
	}
	return 0, false
}

// parallel is above the distance that rounding makes of vectors in the same direction.
const parallel = 1e-5

// addCopy lists a new node as a copy of another. Searches meanwhile come to all that were there before.
func (h *HNSW) addCopy(of, node uint32) {
	lock := &h.locks[of%uint32(len(h.locks))]
	lock.Lock()
	defer lock.Unlock()
	if last := h.copies[of]; last == 0 {
		atomic.StoreUint32(&h.copies[node], node+1)
	} else {
		atomic.StoreUint32(&h.copies[node], atomic.LoadUint32(&h.copies[last-1]))
		atomic.StoreUint32(&h.copies[last-1], node+1)
	}
	atomic.StoreUint32(&h.copies[of], node+1)
}

// insert links a new node.
func (h *HNSW) insert(s *searcher, node uint32) {
	level := int(h.level[node])
	begin, top, ok := h.begin()
	self := s.one(h.point(node), node)
	stray := self.distance() != self.distance()
	if ok && stray {
		return
	}
	if !ok || s.stray(begin) {
		first := h.enter(s, node, level, stray)
		begin, top, _ = h.begin()
		if first || stray {
			return
		}
	}
	query := h.point(node)
	h.descend(s, query, s.one(query, begin), top, level)
	s.layers = s.layers[:0]
	for layer := min(level, top); layer >= 0; layer-- {
		h.explore(s, query, layer, h.o.EfConstruction, found{all: true})
		slices.Sort(s.best)
		if of, ok := h.original(node, self, s.best); ok {
			h.addCopy(of, node)
			return
		}
		// Where the nearest are an island, what was seen in the layer above leads to other ones.
		for _, c := range s.starts {
			if at, there := slices.BinarySearch(s.best, c); !there {
				s.best = slices.Insert(s.best, at, c)
			}
		}
		s.starts = append(s.starts[:0], s.best[:min(mostStarts, len(s.best))]...)
		s.layers = append(s.layers, h.choose(s, s.best, h.m)...)
		s.layers = append(s.layers, noCandidate)
	}
	// From the first layer upwards: an insertion that comes down to this node then finds its links in every layer below.
	for layer := 0; len(s.layers) > 0; layer++ {
		s.layers = s.layers[:len(s.layers)-1]
		first := len(s.layers)
		for first > 0 && s.layers[first-1] != noCandidate {
			first--
		}
		h.connect(s, node, layer, s.layers[first:])
		s.layers = s.layers[:first]
	}
	if level > top {
		h.entering.Lock()
		if _, top, _ := h.begin(); level > top {
			h.entry.Store(uint64(level+1)<<32 | uint64(node))
		}
		h.entering.Unlock()
	}
}

// enter makes a node the one where searches begin, if there is none or only a stray, and reports whether it did.
func (h *HNSW) enter(s *searcher, node uint32, level int, stray bool) bool {
	h.entering.Lock()
	defer h.entering.Unlock()
	begin, _, ok := h.begin()
	if ok && (stray || !s.stray(begin)) { // a stray is where searches begin only while there is no other node
		return false
	}
	h.entry.Store(uint64(level+1)<<32 | uint64(node))
	return true
}

// connect links a node with others in both directions. In the first layer the nearest node that has room for another child becomes its parent.
func (h *HNSW) connect(s *searcher, node uint32, layer int, chosen []candidate) {
	if layer == 0 {
		h.join(s, node, chosen)
	} else {
		lock := &h.locks[node%uint32(len(h.locks))]
		lock.Lock()
		links := h.links(node, layer)
		s.links = append(s.links[:0], chosen...)
		for _, other := range links[1 : 1+links[0]] { // which another insertion has linked with this node meanwhile
			if len(s.links) < len(links)-1 && !slices.ContainsFunc(s.links, func(c candidate) bool { return c.row() == other }) {
				s.links = append(s.links, candidate(other))
			}
		}
		set(links, s.links)
		lock.Unlock()
	}
	for _, c := range s.links {
		h.linkBack(s, c.row(), node, layer, false)
	}
}

// join sets the links of a new node in the first layer, and makes it the child of one of the nearest, s.best, or else of a node below the nearest in the tree, the leaves of
// which have room. No other node links to it before.
func (h *HNSW) join(s *searcher, node uint32, chosen []candidate) {
	lock := &h.locks[node%uint32(len(h.locks))]
	below := s.best[0].row()
	for i := 0; ; i++ {
		parent := below
		if i < len(s.best) {
			parent = s.best[i].row()
		}
		s.links = append(s.links[:0], candidate(parent))
		for _, c := range chosen {
			if c.row() != parent {
				s.links = append(s.links, c)
			}
		}
		lock.Lock()
		set(h.links(node, 0), s.links)
		lock.Unlock()
		if h.linkBack(s, parent, node, 0, i < len(s.best)+mostBelow) || i == len(s.best)+mostBelow {
			return
		}
		if i >= len(s.best) {
			below = h.child(below)
		}
	}
}

// mostBelow ends the way down, as in graphs of old files the first links may be no tree.
const mostBelow = 1000

// parent returns the first link of a node in the first layer.
func (g *graph) parent(node uint32) (parent uint32, ok bool) {
	links := g.links(node, 0)
	return atomic.LoadUint32(&links[1]), atomic.LoadUint32(&links[0]) > 0
}

// child returns a node whose parent is a given one. There is one, as that has no room.
func (g *graph) child(node uint32) uint32 {
	links := g.links(node, 0)
	up, _ := g.parent(node)
	for i := range links[1 : 1+min(int(atomic.LoadUint32(&links[0])), len(links)-1)] {
		to := atomic.LoadUint32(&links[1+i])
		if parent, ok := g.parent(to); ok && parent == node && to != up {
			return to
		}
	}
	return node
}

// linkBack adds a link, and drops others if there are too many. To adopt a node is to become its parent, which returns false if there is no room beside the links that have to stay.
func (h *HNSW) linkBack(s *searcher, from, to uint32, layer int, adopt bool) bool {
	lock := &h.locks[from%uint32(len(h.locks))]
	lock.Lock()
	defer lock.Unlock()
	links := h.links(from, layer)
	n := int(links[0])
	if slices.Contains(links[1:1+n], to) {
		return true
	}
	if n < len(links)-1 {
		atomic.StoreUint32(&links[1+n], to)
		atomic.StoreUint32(&links[0], uint32(n+1))
		return true
	}
	list := elements[uint32](s.rows.host)
	copy(list, links[1:])
	list[n] = to
	all := s.next[:0]
	for i, d := range s.compare(h.point(from), n+1) {
		all = append(all, candidateOf(d, list[i]))
	}
	slices.Sort(all)
	s.next = all
	chosen := h.choose(s, all, n)
	if layer == 0 {
		if chosen = h.keep(s, from, to, adopt, all, chosen); len(chosen) > n {
			return false
		}
	}
	set(links, chosen)
	return true
}

// keep adds the links of the tree to those chosen of all candidates, in the place of others if there are too many, with the parent in front. If a node is to be adopted, one
// place has to remain for another link, or it returns too many.
func (h *HNSW) keep(s *searcher, from, to uint32, adopt bool, all, chosen []candidate) []candidate {
	up := h.links(from, 0)[1]
	tree := func(c candidate) bool {
		if c.row() == to {
			return adopt
		}
		parent, ok := h.parent(c.row())
		return c.row() == up || ok && parent == from
	}
	kept := s.kept[:0]
	if adopt {
		for _, c := range all {
			if tree(c) {
				kept = append(kept, c)
			}
		}
		if len(kept) >= len(all)-1 {
			return all
		}
		kept = kept[:0]
	}
	i := 0
	for _, c := range all { // chosen is a part of it in the same order
		if i < len(chosen) && chosen[i] == c {
			i++
		} else if tree(c) {
			kept = append(kept, c)
		}
	}
	for i := len(chosen) - 1; i >= 0 && len(chosen)+len(kept) > len(all)-1; i-- {
		if !tree(chosen[i]) {
			chosen = slices.Delete(chosen, i, i+1)
		}
	}
	chosen = append(chosen, kept...)
	for i, c := range chosen {
		if c.row() == up {
			chosen[0], chosen[i] = c, chosen[0]
		}
	}
	s.kept, s.chosen = kept, chosen
	return chosen
}

// reached returns the nodes to which a search in the first layer can come, and their copies.
func (g *graph) reached() bitset {
	found := newBitset(len(g.level))
	begin, _, ok := g.begin()
	if !ok {
		return found
	}
	found.put(int(begin), true)
	for next := []uint32{begin}; len(next) > 0; {
		node := next[len(next)-1]
		next = next[:len(next)-1]
		links := g.links(node, 0)
		for _, to := range links[1 : 1+links[0]] {
			if !found.has(int(to)) {
				found.put(int(to), true)
				next = append(next, to)
			}
		}
		if g.copies != nil && g.copies[node] != 0 {
			for x := g.copies[g.copies[node]-1]; !found.has(int(x - 1)); x = g.copies[x-1] {
				found.put(int(x-1), true)
			}
		}
	}
	return found
}

// lost returns the number of vectors that are linked with others, or copies, and that no search comes to. There are some in files of before there was a tree.
func (g *graph) lost() (n int) {
	found := g.reached()
	for node := range g.level {
		if !found.has(node) && !g.hidden(uint32(node)) && (g.links(uint32(node), 0)[0] > 0 || g.copies != nil && g.copies[node] != 0) {
			n++
		}
	}
	return n
}

// checkCopies checks the lists of copies of a file: each ends, and no two of them meet.
func (g *graph) checkCopies() error {
	if g.copies == nil {
		return nil
	}
	bad := func(node int) error { return corruptFile("the copies of vector %d", node) }
	copied, seen := newBitset(len(g.copies)), newBitset(len(g.copies))
	for node, x := range g.copies {
		if int64(x) > int64(len(g.copies)) {
			return bad(node)
		}
		if x != 0 {
			copied.put(int(x-1), true)
		}
	}
	for node, last := range g.copies {
		if last == 0 || copied.has(node) {
			continue
		}
		for x := g.copies[last-1]; ; x = g.copies[x-1] {
			if x == 0 || seen.has(int(x-1)) {
				return bad(node)
			}
			if seen.put(int(x-1), true); x == last {
				break
			}
		}
	}
	for node := range g.copies {
		if copied.has(node) != seen.has(node) {
			return bad(node)
		}
	}
	return nil
}

// checked is the number of chosen nodes that are compared with a candidate at a time: mostly one of the first ones decides.
const checked = 8

// choose returns up to m of sorted candidates, each of which is nearer to the node that they are candidates for than to any one before: so links
// lead in different directions.
func (h *HNSW) choose(s *searcher, all []candidate, m int) []candidate {
	chosen := s.chosen[:0]
	list := elements[uint32](s.rows.host)
	for _, c := range all {
		if len(chosen) == m {
			break
		}
		good := true
		for lo := 0; lo < len(chosen) && good; lo += checked {
			some := chosen[lo:min(lo+checked, len(chosen))]
			for i, other := range some {
				list[i] = other.row()
			}
			for _, d := range s.compare(h.point(c.row()), len(some)) {
				good = good && d >= c.distance() && (d != 0 || c.distance() != 0) // of equal vectors one is enough
			}
		}
		if good {
			chosen = append(chosen, c)
		}
	}
	s.chosen = chosen
	return chosen
}

// count returns the number of hidden nodes.
func (g *graph) count() (n int) {
	for _, word := range g.hides {
		n += bits.OnesCount64(word)
	}
	return n
}
