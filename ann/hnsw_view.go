package ann

// What searches of an HNSW index see while it changes.

import "slices"

// view is a state of the index. Searches each see one as it was published, in which links and copies alone may
// change: they then lead to nodes that were added since, which are not in the view.
type view struct {
	e     *engine
	o     HNSWOptions
	state uint64
	rows  []byte // the memory of the vectors
	codes []byte // that of their codes, or without Codes nil
	code  nodeCoding
	ids   []int64 // of the nodes that searches find, which are followed by those that are being linked
	live  bitset  // those of them that are not removed
	gone  int     // the number of the others
	graph
	count int    // the vectors that are there
	start uint64 // where its searches begin, as entry says it
}

// view returns a view of the index as it is, with the first vectors. The caller holds writeLock, or nobody else
// uses h.
func (h *HNSW) view(shown int) *view {
	v := &view{e: h.e, o: h.o, state: h.state, rows: h.stores[0].visible, codes: h.codes.visible, code: h.code,
		ids: h.ids[:shown], live: h.live, gone: h.gone, graph: h.graph, count: shown - h.gone, start: h.entry.Load()}
	// as the last copy of a vector, from which searches come to the first, may be a new one
	v.copies = h.copies[:cap(h.copies)]
	return v
}

// publish lets searches that begin from now on see the index as it is, with the first vectors. The caller holds
// writeLock, or nobody else uses h.
func (h *HNSW) publish(shown int) { h.now.Store(h.view(shown)) }

// row returns the memory of a vector.
func (v *view) row(node uint32) []byte {
	size := 4 * v.e.dim
	return v.rows[int(node)*size:][:size]
}

// point returns the memory of a vector as distances in the graph are computed with it.
func (v *view) point(node uint32) []byte {
	if v.codes != nil {
		return v.codes[int(node)*v.e.dim:][:v.e.dim]
	}
	return v.row(node)
}

// show lets searches find the nodes from first on, and no longer those that have had their ids; or if the new
// ones are not linked it removes these.
func (h *HNSW) show(first int, linked bool) {
	h.tableLock.Lock()
	defer h.tableLock.Unlock()
	var gone []int
	for node := first; node < len(h.ids); node++ {
		if !linked {
			gone = append(gone, node)
		} else if old, ok := h.row(h.ids[node]); ok {
			gone = append(gone, old)
		}
	}
	if linked {
		h.index(first)
	}
	h.changed(gone)
}

// changed removes nodes, which views that were published before keep, and publishes the change.
func (h *HNSW) changed(gone []int) {
	if len(gone) > 0 {
		h.live = slices.Clone(h.live)
	}
	h.remove(gone)
	h.state++
	h.publish(len(h.ids))
}
