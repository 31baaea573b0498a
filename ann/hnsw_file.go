package ann

// An HNSW index in a file.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/concord-compute/concord/runtime"
)

// WriteTo implements [Index]. It waits for changes that run.
func (h *HNSW) WriteTo(to io.Writer) (int64, error) {
	h.writing.Lock()
	defer h.writing.Unlock()
	if err := h.check(context.Background()); err != nil {
		return 0, err
	}
	if h.mapped {
		if err := h.checkLinks(0, 0); err != nil {
			return 0, err
		}
	}
	o := h.o
	c := saved{Kind: h.kind, Metric: h.e.metric.String(), Dim: h.e.dim, Rows: len(h.ids), Precision: h.e.code.String(),
		MaxRows: h.o.MaxRows,
		Scale:   h.code.scale, Directions: h.code.directions, HNSW: &o, Entry: h.entry.Load()}
	computed := []section{{name: "byid", data: bytesOf(h.byID(h.ids))}, {name: "order"},
		{name: "hides", data: bytesOf(h.hides)}}
	return writeIndex(to, c, h.kept, append(computed, h.sections()...))
}

// sections returns what a file has besides the configuration, what says which vectors are hidden, and what
// follows from that.
func (h *HNSW) sections() []section {
	list := []section{{name: "ids", data: bytesOf(h.ids)}, {name: "level", data: h.level},
		{name: "first", data: bytesOf(h.first)}, {name: "upper", data: bytesOf(h.upper)}}
	if slices.ContainsFunc(h.copies, func(x uint32) bool { return x != 0 }) {
		list = append(list, section{name: "copies", data: bytesOf(h.copies)})
	}
	if h.o.Codes {
		if h.code.centre != nil {
			list = append(list, section{name: "centre", data: bytesOf(h.code.centre)})
		}
		list = append(list, section{name: "codes", data: h.codes[:len(h.ids)*h.e.dim]})
	}
	return append(list, section{name: "vectors", data: h.rows[:len(h.ids)*4*h.e.dim]})
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
	there, ok := m.parts["byid"]
	if len(m.parts["level"]) != n || len(m.parts["hides"]) != (n+63)/64*8 || len(m.parts["first"]) != 4*n*(2*g.m+1) ||
		len(m.parts["upper"])%(4*(g.m+1)) != 0 ||
		len(there)%4 != 0 || len(there) > 4*n {
		return corruptFile("the links of %d vectors are %d bytes", n, len(m.parts["first"]))
	}
	codes, stored := m.parts["codes"]
	if stored && (!o.Codes || len(codes) != n*m.Dim) {
		return corruptFile("codes of %d vectors of %d components are %d bytes", n, m.Dim, len(codes))
	}
	g.level, g.first, g.upper, g.mapped = m.parts["level"], elements[uint32](m.parts["first"]),
		elements[uint32](m.parts["upper"]), true
	if centre := m.parts["centre"]; len(centre) != 0 && len(centre) != 4*m.Dim {
		return corruptFile("the centre of codes of %d components is %d bytes", m.Dim, len(centre))
	}
	if copies, ok := m.parts["copies"]; ok {
		if len(copies) != 4*n {
			return corruptFile("the copies of %d vectors are %d bytes", n, len(copies))
		}
		g.copies = elements[uint32](copies)
	}
	m.graph, m.codes = &g, codes
	if ok {
		m.byID = elements[uint32](there)
		return nil
	}
	return m.check() // a file of before there was this section
}

// checkGraph checks the graph of a file: no search of it leaves its memory.
func (m *image) checkGraph() error {
	g, n := m.graph, m.Rows
	g.hides = slices.Clone(elements[uint64](m.parts["hides"]))
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
	for i := n; i < 64*len(g.hides); i++ {
		if g.hides[i/64]>>(i%64)&1 != 0 {
			return corruptFile("vector %d of %d is hidden", i, n)
		}
	}
	g.entry.Store(m.Entry)
	node, level, ok := g.begin()
	// after an Add that was given up all may be hidden
	if ok && (int(node) >= n || int(g.level[node]) != level) || !ok && g.count() < n {
		return corruptFile("the first vector of searches is %d in layer %d", node, level)
	}
	for i, id := range m.ids {
		if id < 0 {
			return corruptFile("the id %d of vector %d", id, i)
		}
	}
	if _, ok := m.parts["byid"]; !ok {
		m.byID = g.byID(m.ids)
	}
	last := int64(-1) // ascending ids are all different, and so are their vectors
	for _, node := range m.byID {
		if int(node) >= n || g.hidden(node) || m.ids[node] <= last {
			return corruptFile("vector %d is not that of the id after %d", node, last)
		}
		last = m.ids[node]
	}
	if len(m.byID) != n-g.count() {
		return corruptFile("%d vectors in the order of their ids, of %d", len(m.byID), n-g.count())
	}
	return nil
}

// byID returns the nodes that are not hidden in the order of their ids.
func (g *graph) byID(ids []int64) []uint32 {
	var nodes []uint32
	for i := range ids {
		if !g.hidden(uint32(i)) {
			nodes = append(nodes, uint32(i))
		}
	}
	slices.SortFunc(nodes, func(a, b uint32) int { return cmp.Compare(ids[a], ids[b]) })
	return nodes
}

// hnsw makes an HNSW index of a file. inPlace says that it has the file's memory, and calls release.
func (m *image) hnsw(ctx context.Context, o Options, release func()) (ix Index, inPlace bool, err error) {
	if o.Device != "" {
		return nil, false, fmt.Errorf("ann: a device for an index of kind hnsw: %w", runtime.ErrUnsupported)
	}
	dev, _, err := o.open(ctx, "hnsw")
	if err != nil {
		return nil, false, err
	}
	defer dev.Close()
	options := *m.HNSW
	options.MaxDim = m.Dim
	h, err := NewHNSW(dev, m.Dim, m.metric, options)
	if err != nil {
		return nil, false, err
	}
	if m.Rows > 0 {
		if h.base, inPlace, err = m.store(ctx, h.e.dev, release); err == nil {
			h.rows, err = runtime.HostBytes(h.base)
		}
		if err == nil && options.Codes {
			err = h.takeCodes(m, inPlace)
		}
		if err != nil {
			return nil, inPlace, errors.Join(err, h.Close())
		}
	}
	h.ids, h.nodes, h.gone, h.mapped = m.ids, places{ids: m.ids, order: m.byID}, len(m.ids)-len(m.byID), true
	if release != nil {
		h.kept = m.sums("ids", "level", "first", "upper", "codes", "vectors")
	}
	h.late = sync.OnceValue(func() error {
		err := m.check()
		if err == nil {
			h.graph = *m.graph
			h.publish(len(h.ids))
		}
		return err
	})
	h.publish(len(h.ids))
	if !inPlace { // then nothing has to keep the file
		if err = h.check(ctx); err == nil {
			err = h.own()
		}
		if err != nil {
			return nil, false, errors.Join(err, h.Close())
		}
	}
	return h, inPlace, nil
}

// takeCodes takes the codes of a file's vectors: where they are if inPlace is set, which says that the vectors
// keep the file. A file without them has them made again.
func (h *HNSW) takeCodes(m *image, inPlace bool) (err error) {
	h.code = nodeCoding{coding: coding{INT8Scaled, m.Scale}, directions: m.Directions}
	if len(m.parts["centre"]) > 0 {
		h.code.centre = slices.Clone(elements[float32](m.parts["centre"]))
	}
	if inPlace && m.codes != nil {
		h.codes = m.codes
		return nil
	}
	if h.coded, h.codes, err = h.alloc(runtime.I8, m.Rows); err != nil {
		return err
	}
	if m.codes != nil {
		copy(h.codes, m.codes)
	} else {
		h.code.encode(h.codes, elements[float32](m.vectors), m.Dim)
	}
	return nil
}
