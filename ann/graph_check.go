package ann

// Checks of the graph of HNSW.

import (
	"fmt"

	"github.com/concord-compute/concord/runtime"
)

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
		for copied := range g.copiesOf(node) {
			if found.has(int(copied)) {
				break // a file may link copies, each of which would go through all
			}
			found.put(int(copied), true)
		}
	}
	return found
}

// lost returns the number of live vectors that are linked with others, or copies, and that no search comes to. There
// are some in files of before there was a tree.
func (g *graph) lost(live bitset) (n int) {
	found := g.reached()
	for node := range g.level {
		if !found.has(node) && live.has(node) && (g.links(uint32(node), 0)[0] > 0 || g.copies != nil &&
			g.copies[node] != 0) {
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
