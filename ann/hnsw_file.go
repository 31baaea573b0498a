package ann

// An HNSW index in a file.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/concord-compute/concord/runtime"
)

// WriteTo implements [Index]. It waits for changes that run.
func (h *HNSW) WriteTo(to io.Writer) (int64, error) {
	h.writing.Lock()
	defer h.writing.Unlock()
	h.mu.RLock()
	defer h.mu.RUnlock()
	if err := h.check(); err != nil {
		return 0, err
	}
	if err := h.sound(); err != nil { // damaged links would get a right checksum
		return 0, err
	}
	o := h.o
	c := saved{Kind: h.kind, Metric: h.e.metric.String(), Dim: h.e.dim, Rows: len(h.ids), Precision: h.e.code.String(), MaxRows: h.o.MaxRows,
		Scale: h.code.scale, HNSW: &o, Entry: h.entry.Load()}
	vectors := h.rows[:len(h.ids)*4*h.e.dim]
	return writeIndex(to, c, func() ([]byte, error) {
		part := vectors[:min(len(vectors), 4<<20)]
		vectors = vectors[len(part):]
		return part, nil
	}, section{name: "ids", data: bytesOf(h.ids)}, section{name: "byid", data: bytesOf(h.byID(h.ids))}, section{name: "order"}, section{name: "level", data: h.level}, section{name: "hides", data: bytesOf(h.hides)},
		section{name: "first", data: bytesOf(h.first)}, section{name: "upper", data: bytesOf(h.upper)})
}

// readGraph reads and checks the graph of a file: no search of it leaves its memory.
func (m *image) readGraph(parts map[string][]byte) (*graph, error) {
	corrupt := func(format string, args ...any) (*graph, error) {
		return nil, fmt.Errorf("ann: "+format+": %w", append(args, runtime.ErrCorrupt)...)
	}
	o := *m.HNSW
	o.MaxRows = m.MaxRows
	o, err := o.withDefaults()
	if err != nil || o.M != m.HNSW.M || o.EfConstruction != m.HNSW.EfConstruction {
		return corrupt("options of the graph: %+v", *m.HNSW)
	}
	m.HNSW = &o
	g := newGraph(o)
	n := m.Rows
	if len(parts["level"]) != n || len(parts["hides"]) != (n+63)/64*8 || len(parts["first"]) != 4*n*(2*g.m+1) {
		return corrupt("the links of %d vectors are %d bytes", n, len(parts["first"]))
	}
	g.level, g.hides = slices.Clone(parts["level"]), slices.Clone(elements[uint64](parts["hides"]))
	g.first, g.upper = elements[uint32](parts["first"]), slices.Clone(elements[uint32](parts["upper"]))
	g.at = make([]uint32, 0, n)
	at := 0
	for _, level := range g.level {
		if level > topLevel {
			return corrupt("a vector in layer %d", level)
		}
		g.at = append(g.at, uint32(at))
		at += int(level)
	}
	if len(parts["upper"]) != 4*at*(g.m+1) {
		return corrupt("the links of the upper layers are %d bytes", len(parts["upper"]))
	}
	if err := g.checkLinks(1, topLevel); err != nil {
		return nil, err
	}
	for i := n; i < 64*len(g.hides); i++ {
		if g.hides[i/64]>>(i%64)&1 != 0 {
			return corrupt("vector %d of %d is hidden", i, n)
		}
	}
	g.entry.Store(m.Entry)
	node, level, ok := g.begin()
	if ok && (int(node) >= n || int(g.level[node]) != level) || !ok && g.count() < n { // after an Add that was given up all may be hidden
		return corrupt("the first vector of searches is %d in layer %d", node, level)
	}
	for i, id := range m.ids {
		if id < 0 {
			return corrupt("the id %d of vector %d", id, i)
		}
	}
	if there, ok := parts["byid"]; ok {
		m.byID = elements[uint32](there)
	} else { // a file of before there was this section
		m.byID = g.byID(m.ids)
	}
	last := int64(-1) // ascending ids are all different, and so are their vectors
	for _, node := range m.byID {
		if int(node) >= n || g.hidden(node) || m.ids[node] <= last {
			return corrupt("vector %d is not that of the id after %d", node, last)
		}
		last = m.ids[node]
	}
	if len(m.byID) != n-g.count() {
		return corrupt("%d vectors in the order of their ids, of %d", len(m.byID), n-g.count())
	}
	return &g, nil
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
			floats := elements[float32](m.vectors)
			if h.coded, h.codes, err = h.alloc(runtime.I8, m.Rows); err == nil {
				h.code = coding{INT8Scaled, m.Scale}
				h.code.encode(h.codes, floats)
			}
		}
		if err != nil {
			return nil, inPlace, errors.Join(err, h.Close())
		}
	}
	h.ids = slices.Clone(m.ids)
	h.graph.become(m.graph)
	h.nodes = places{ids: h.ids, order: slices.Clone(m.byID)}
	h.gone = len(h.ids) - len(m.byID)
	if !inPlace { // then nothing has to keep the file
		if err := h.own(); err != nil {
			return nil, false, errors.Join(err, h.Close())
		}
	}
	return h, inPlace, nil
}
