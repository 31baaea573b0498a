package ann

// An HNSW index in a file.

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/concord-compute/concord/runtime"
)

// WriteTo implements [Index]. It waits for changes that run.
func (h *HNSW) WriteTo(to io.Writer) (int64, error) {
	h.writeLock.Lock()
	defer h.writeLock.Unlock()
	if err := h.check(context.Background()); err != nil {
		return 0, err
	}
	o := h.o
	c := saved{Scale: h.code.scale, Directions: h.code.directions, HNSW: &o, Entry: h.entry.Load()}
	return h.writeTo(to, c, data("byid", h.byID()), section{name: "order"}, data("hides", h.live.inverse(len(h.ids))))
}

// sections implements contents.
func (h *HNSW) sections() []section {
	list := []section{data("ids", h.ids), data("level", h.level), data("first", h.first), data("upper", h.upper)}
	if slices.ContainsFunc(h.copies, func(x uint32) bool { return x != 0 }) {
		list = append(list, data("copies", h.copies))
	}
	if h.o.Codes {
		if h.code.centre != nil {
			list = append(list, data("centre", h.code.centre))
		}
		list = append(list, section{name: "codes", parts: h.codes.parts(len(h.ids))})
	}
	return append(list, section{name: "vectors", parts: h.stores[0].parts(len(h.ids))})
}

// readGraph reads what a file of kind hnsw has besides vectors. It checks the sizes, and checkGraph the contents.
func (m *image) readGraph() error {
	o := *m.HNSW
	o.MaxRows = m.MaxRows
	o, err := o.withDefaults()
	if err != nil || o.M != m.HNSW.M || o.EfConstruction != m.HNSW.EfConstruction {
		return corruptFile("options of the graph: %+v", *m.HNSW)
	}
	m.HNSW = &o
	g, n := newGraph(o), m.Rows
	m.graph = &g
	if _, ok := m.parts["codes"]; ok && !o.Codes {
		return corruptFile("codes in a file of a graph without them")
	}
	if err := cmp.Or(column(m, "level", &g.level, n), column(m, "hides", &m.hides, (n+63)/64),
		column(m, "first", &g.first, n*(2*g.m+1)),
		column(m, "upper", &g.upper, len(m.parts["upper"])/(4*(g.m+1))*(g.m+1)),
		optional(m, "copies", &g.copies, n), column(m, "centre", &m.centre, m.Dim, 0),
		optional(m, "codes", &m.codes, n*m.Dim)); err != nil {
		return err
	}
	if there, ok := m.parts["byid"]; ok {
		return column(m, "byid", &m.byID, min(len(there)/4, n))
	}
	return m.check() // a file of before there was this section
}

// checkGraph checks the graph of a file: no search of it leaves its memory.
func (m *image) checkGraph() error {
	g, n := m.graph, m.Rows
	if gone := slices.ContainsFunc(m.hides, func(x uint64) bool { return x != 0 }); gone {
		m.live = bitset(m.hides).inverse(n)
	}
	g.at = make([]uint32, n)
	at := 0
	for i, level := range g.level {
		if level > topLevel {
			return corruptFile("a vector in layer %d", level)
		}
		g.at[i] = uint32(at)
		at += int(level)
	}
	if len(g.upper) != at*(g.m+1) {
		return corruptFile("the links of the upper layers are %d bytes", 4*len(g.upper))
	}
	g.copies = slices.Clone(g.copies) // which searches follow without looking for an end that is not there
	if err := errors.Join(g.checkLinks(1, topLevel), g.checkCopies()); err != nil {
		return err
	}
	for i := n; i < 64*len(m.hides); i++ {
		if bitset(m.hides).has(i) {
			return corruptFile("vector %d of %d is hidden", i, n)
		}
	}
	for i, id := range m.ids {
		if id < 0 {
			return corruptFile("the id %d of vector %d", id, i)
		}
	}
	there := (&table{ids: m.ids, live: m.live}).kept()
	g.entry.Store(m.Entry)
	node, level, ok := g.begin()
	// after an Add that was given up all may be removed
	if ok && (int(node) >= n || int(g.level[node]) != level) || !ok && len(there) > 0 {
		return corruptFile("the first vector of searches is %d in layer %d", node, level)
	}
	if _, ok := m.parts["byid"]; !ok {
		m.byID = (&table{ids: m.ids, live: m.live}).byID()
	}
	if len(m.byID) != len(there) {
		return corruptFile("%d vectors in the order of their ids, of %d", len(m.byID), len(there))
	}
	return m.checkByID()
}

// open implements contents.
func (h *HNSW) open(_ context.Context, m *image, inPlace bool) error {
	h.gone = m.Rows - len(m.byID)
	shown := func() func() { return func() { h.publish(len(h.ids)) } } // last, so that searches see the copies
	h.mapped = append(h.mapped, copied(&h.first), copied(&h.level), copied(&h.upper), shown)
	if m.Rows > 0 && h.o.Codes {
		if err := h.takeCodes(m, inPlace); err != nil {
			return err
		}
	}
	h.publish(len(h.ids))
	return nil
}

// fill implements contents.
func (h *HNSW) fill(m *image) error {
	h.graph, h.live = *m.graph, m.live
	h.publish(len(h.ids))
	return nil
}

// takeCodes takes the codes of a file's vectors: where they are if inPlace is set, which says that the vectors
// keep the file. A file without them has them made again.
func (h *HNSW) takeCodes(m *image, inPlace bool) (err error) {
	h.code = nodeCoding{coding: coding{INT8Scaled, m.Scale}, directions: m.Directions}
	if m.centre != nil {
		h.code.centre = slices.Clone(m.centre)
	}
	var base *runtime.Buffer
	if inPlace && m.codes != nil {
		if base, err = h.e.dev.Wrap(m.codes, runtime.I8, runtime.ForReading, func() {}); err == nil {
			base, err = h.codes.checked(base)
		}
	} else {
		base, err = h.codes.alloc(m.Rows)
	}
	if err != nil {
		return err
	}
	if h.codes.setBuffer(base, inPlace && m.codes != nil); h.codes.mapped {
		return nil
	}
	if m.codes != nil {
		copy(h.codes.visible, m.codes)
	} else {
		h.code.encode(h.codes.visible, elements[float32](m.vectors), m.Dim)
	}
	return nil
}
