package ann

// Insertions into the graph of HNSW.

import (
	"slices"
	"sync/atomic"
)

// set replaces links, whose lock the caller holds.
func set(links []uint32, nodes []candidate) {
	for i, c := range nodes {
		atomic.StoreUint32(&links[1+i], c.row())
	}
	atomic.StoreUint32(&links[0], uint32(len(nodes)))
}

// original returns the node among the nearest of a new one, in order, that has its vector: d is the distance of
// the new node from itself.
func (v *view) original(node uint32, d candidate, nearest []candidate) (of uint32, ok bool) {
	for _, c := range nearest {
		if c.distance() != d.distance() && !(v.e.metric.onNearest() == "cosine" && c.distance() < parallel) {
			break
		}
		if v.e.metric.same(elements[float32](v.row(node)), elements[float32](v.row(c.row()))) {
			return c.row(), true
		}
	}
	return 0, false
}

// parallel is above the distance that rounding makes of vectors in the same direction.
const parallel = 1e-5

// addCopy lists a new node as a copy of another. Searches meanwhile come to all that were there before.
func (v *view) addCopy(of, node uint32) {
	lock := &v.locks[of%uint32(len(v.locks))]
	lock.Lock()
	defer lock.Unlock()
	if last := v.copies[of]; last == 0 {
		atomic.StoreUint32(&v.copies[node], node+1)
	} else {
		atomic.StoreUint32(&v.copies[node], atomic.LoadUint32(&v.copies[last-1]))
		atomic.StoreUint32(&v.copies[last-1], node+1)
	}
	atomic.StoreUint32(&v.copies[of], node+1)
}

// insert links a new node.
func (v *view) insert(s *searcher, node uint32) {
	level, before := int(v.level[node]), v.arrivals()
	begin, top, ok := v.begin()
	self := s.one(v.point(node), node)
	stray := self.distance() != self.distance()
	if ok && stray {
		return
	}
	if !ok || s.stray(begin) {
		first := v.enter(s, node, level, stray)
		begin, top, _ = v.begin()
		if first || stray {
			return
		}
	}
	query := v.point(node)
	v.descend(s, query, s.one(query, begin), top, level)
	s.layers = s.layers[:0]
	for layer := range s.reach {
		s.reach[layer] = noCandidate
	}
	for layer := min(level, top); layer >= 0; layer-- {
		v.explore(s, query, layer, v.o.EfConstruction, found{all: true})
		slices.Sort(s.best)
		if n := len(s.best); n == v.o.EfConstruction {
			s.reach[layer] = s.best[n-1]
		}
		if of, ok := v.original(node, self, s.best); ok {
			v.addCopy(of, node)
			return
		}
		// Where the nearest are an island, what was seen in the layer above leads to other ones.
		for _, c := range s.starts {
			if at, there := slices.BinarySearch(s.best, c); !there {
				s.best = slices.Insert(s.best, at, c)
			}
		}
		s.starts = append(s.starts[:0], s.best[:min(mostStarts, len(s.best))]...)
		s.layers = append(s.layers, v.choose(s, s.best, v.m)...)
		s.layers = append(s.layers, noCandidate)
	}
	// From the first layer upwards: an insertion that comes down to this node then finds its links in every layer below.
	for layer := 0; len(s.layers) > 0; layer++ {
		s.layers = s.layers[:len(s.layers)-1]
		first := len(s.layers)
		for first > 0 && s.layers[first-1] != noCandidate {
			first--
		}
		v.connect(s, node, layer, s.layers[first:])
		s.layers = s.layers[:first]
	}
	if level > top {
		v.entering.Lock()
		if _, top, _ := v.begin(); level > top {
			v.entry.Store(uint64(level+1)<<32 | uint64(node))
		}
		v.entering.Unlock()
	}
	v.meet(s, node, v.arrive(node, before))
}

// meet links a node with those that were linked while it was inserted, where it would have been if it had come to
// them.
func (v *view) meet(s *searcher, node uint32, meanwhile []uint32) {
	query, list := v.point(node), elements[uint32](s.rows.host)
	s.met = s.met[:0]
	for part := range slices.Chunk(meanwhile, len(list)) {
		copy(list, part)
		for i, d := range s.compare(query, len(part)) {
			s.met = append(s.met, candidateOf(d, list[i]))
		}
	}
	for layer := range int(v.level[node]) + 1 {
		s.links = s.links[:0]
		for _, c := range s.met {
			if layer <= int(v.level[c.row()]) && c < s.reach[layer] {
				s.links = append(s.links, c)
			}
		}
		if len(s.links) == 0 {
			continue
		}
		links := v.links(node, layer)
		n := int(atomic.LoadUint32(&links[0]))
		for i := range n {
			list[i] = atomic.LoadUint32(&links[1+i])
		}
		for i, d := range s.compare(query, n) {
			if !slices.ContainsFunc(s.links, func(c candidate) bool { return c.row() == list[i] }) {
				s.links = append(s.links, candidateOf(d, list[i]))
			}
		}
		slices.Sort(s.links)
		s.links = append(s.links[:0], v.choose(s, s.links, v.m)...)
		for _, c := range s.links {
			if slices.Contains(s.met, c) {
				v.linkBack(s, node, c.row(), layer, false)
				v.linkBack(s, c.row(), node, layer, false)
			}
		}
	}
}

// enter makes a node the one where searches begin, if there is none or only a stray, and reports whether it did.
func (v *view) enter(s *searcher, node uint32, level int, stray bool) bool {
	v.entering.Lock()
	defer v.entering.Unlock()
	begin, _, ok := v.begin()
	if ok && (stray || !s.stray(begin)) { // a stray is where searches begin only while there is no other node
		return false
	}
	v.entry.Store(uint64(level+1)<<32 | uint64(node))
	return true
}

// connect links a node with others in both directions. In the first layer the nearest node that has room for
// another child becomes its parent.
func (v *view) connect(s *searcher, node uint32, layer int, chosen []candidate) {
	if layer == 0 {
		v.join(s, node, chosen)
	} else {
		lock := &v.locks[node%uint32(len(v.locks))]
		lock.Lock()
		links := v.links(node, layer)
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
		v.linkBack(s, c.row(), node, layer, false)
	}
}

// join sets the links of a new node in the first layer, and makes it the child of one of the nearest, s.best,
// or else of a node below the nearest in the tree, the leaves of which have room. No other node links to it
// before.
func (v *view) join(s *searcher, node uint32, chosen []candidate) {
	lock := &v.locks[node%uint32(len(v.locks))]
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
		set(v.links(node, 0), s.links)
		lock.Unlock()
		if v.linkBack(s, parent, node, 0, i < len(s.best)+mostBelow) || i == len(s.best)+mostBelow {
			return
		}
		if i >= len(s.best) {
			below = v.child(below)
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

// linkBack adds a link, and drops others if there are too many. To adopt a node is to become its parent, which
// returns false if there is no room beside the links that have to stay.
func (v *view) linkBack(s *searcher, from, to uint32, layer int, adopt bool) bool {
	lock := &v.locks[from%uint32(len(v.locks))]
	lock.Lock()
	defer lock.Unlock()
	links := v.links(from, layer)
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
	for i, d := range s.compare(v.point(from), n+1) {
		all = append(all, candidateOf(d, list[i]))
	}
	slices.Sort(all)
	s.next = all
	chosen := v.choose(s, all, n)
	if layer == 0 {
		if chosen = v.keep(s, from, to, adopt, all, chosen); len(chosen) > n {
			return false
		}
	}
	set(links, chosen)
	return true
}

// keep adds the links of the tree to those chosen of all candidates, in the place of others if there are too
// many, with the parent in front. If a node is to be adopted, one place has to remain for another link, or it
// returns too many.
func (v *view) keep(s *searcher, from, to uint32, adopt bool, all, chosen []candidate) []candidate {
	up := v.links(from, 0)[1]
	tree := func(c candidate) bool {
		if c.row() == to {
			return adopt
		}
		parent, ok := v.parent(c.row())
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

// choose returns up to m of sorted candidates, each of which is nearer to the node that they are candidates for
// than to any one before: so links lead in different directions.
func (v *view) choose(s *searcher, all []candidate, m int) []candidate {
	chosen, checked := s.chosen[:0], v.e.dev.Choices().Of(graphChecked)
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
			for _, d := range s.compare(v.point(c.row()), len(some)) {
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
