package ann

// What searches of an HNSW index see while it changes.

// view is a state of the index. Searches each see one as it was published, in which links and copies alone may
// change: they then lead to nodes that were added since, which are not in the view.
type view struct {
	e     *engine
	o     HNSWOptions
	state uint64
	rows  []byte // the memory of the vectors
	codes []byte // that of their codes, or without Codes nil
	code  nodeCoding
	// of the nodes; in a published view of those that searches find, which are followed by those that are being linked
	ids  []int64
	gone int // removed vectors
	graph

	count int    // of a published view: the vectors that are there
	start uint64 // and where its searches begin, as entry says it
}

// publish lets searches that begin from now on see the index as it is, with the first vectors. The caller holds
// writing, or nobody else uses h.
func (h *HNSW) publish(shown int) {
	v := h.view
	v.ids, v.count, v.start = h.ids[:shown], h.nodes.len(), h.entry.Load()
	// as the last copy of a vector, from which searches come to the first, may be a new one
	v.copies = h.copies[:cap(h.copies)]
	h.now.Store(&v)
}

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
// ones are not linked it hides these.
func (h *HNSW) show(first int, linked bool) {
	h.knowing.Lock()
	defer h.knowing.Unlock()
	var hide []uint32
	for i, id := range h.ids[first:] {
		node := uint32(first + i)
		if !linked {
			hide = append(hide, node)
			continue
		}
		if old, ok := h.nodes.rows[id]; ok {
			hide = append(hide, old)
		}
		h.nodes.rows[id] = node
	}
	h.changed(hide)
}

// changed publishes a change after which nodes are hidden.
func (h *HNSW) changed(hide []uint32) {
	h.hide(hide)
	h.gone += len(hide)
	h.state++
	h.publish(len(h.ids))
}
