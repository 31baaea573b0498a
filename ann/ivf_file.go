package ann

// An IVF index in a file.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/concord-compute/concord/runtime"
)

// WriteTo implements [Index]. It puts the vectors in order first, as [IVF.Compact] does, and waits for changes that run.
func (x *IVF) WriteTo(to io.Writer) (int64, error) {
	x.writing.Lock()
	defer x.writing.Unlock()
	if err := x.check(); err != nil {
		return 0, err
	}
	if err := x.compact(context.Background()); err != nil {
		return 0, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	o := x.o
	c := saved{Kind: o.kind(), Metric: x.e.metric.String(), Dim: x.e.dim, Rows: len(x.ids), Precision: x.e.code.String(), MaxRows: o.MaxRows, IVF: &o, Trained: x.trained}
	if x.scaled && x.e.code.Precision == INT8Scaled {
		c.Scale = x.e.code.scale
	}
	sizes := make([]uint32, len(x.lists))
	for l, list := range x.lists {
		sizes[l] = uint32(len(list))
	}
	others := []section{{name: "ids", data: bytesOf(x.ids)}, {name: "byid", data: bytesOf(byID(x.ids))}, {name: "order", data: bytesOf(x.ranks())}, {name: "lists", data: bytesOf(sizes)},
		{name: "centres", data: bytesOf(x.centres.host)}}
	if k := x.centres.codes; k != nil {
		others = append(others, section{name: "book", data: bytesOf(k.book.Values)}, section{name: "codes", parts: k.parts()})
	}
	return writeIndex(to, c, x.store.parts(len(x.ids)), others...)
}

// readLists checks what a file of kind ivf has besides vectors.
func (m *image) readLists(parts map[string][]byte) error {
	corrupt := func(format string, args ...any) error {
		return fmt.Errorf("ann: "+format+": %w", append(args, runtime.ErrCorrupt)...)
	}
	n := len(parts["lists"]) / 4
	switch middle := len(parts["centres"]); {
	case m.IVF.Check() != nil || m.IVF.Probes < 1 || m.Trained < 0:
		return corrupt("options of lists: %+v of %d vectors", *m.IVF, m.Trained)
	case n == 0 || len(parts["lists"])%4 != 0 || middle%(4*m.Dim) != 0 || middle/(4*m.Dim) != n && (n > 1 || middle > 0):
		return corrupt("%d lists have centres of %d bytes", n, middle)
	}
	m.sizes, m.middle = elements[uint32](parts["lists"]), parts["centres"]
	all := 0
	for _, size := range m.sizes {
		if all += int(size); all > m.Rows {
			break
		}
	}
	if all != m.Rows {
		return corrupt("%d lists have other than %d vectors", n, m.Rows)
	}
	m.book, m.codes = parts["book"], parts["codes"]
	blocks, book := 0, 0
	if m.IVF.Codes > 0 && len(m.middle) > 0 {
		book = 64 * m.Dim
		for _, size := range m.sizes {
			blocks += (int(size) + perBlock - 1) / perBlock
		}
	}
	if 2*m.IVF.Codes > m.Dim || len(m.book) != book || len(m.codes) != blocks*perBlock*m.IVF.Codes {
		return corrupt("codes of %d bytes for %d vectors of %d components are %d bytes, and their values %d", m.IVF.Codes, m.Rows, m.Dim, len(m.codes), len(m.book))
	}
	if there, ok := parts["byid"]; ok {
		m.byID = elements[uint32](there)
	} else { // a file of before there was this section
		m.byID = byID(m.ids)
	}
	for _, x := range elements[float32](m.book) {
		if x-x != 0 {
			return corrupt("%v as a value of codes, as earlier versions wrote for vectors that are not finite: such an index has to be built again", x)
		}
	}
	for _, x := range elements[float32](m.middle) {
		if x != x {
			return corrupt("%v in a centre", x)
		}
	}
	last := int64(-1) // ascending ids are all different, and so are their rows
	for _, row := range m.byID {
		if int(row) >= m.Rows || m.ids[row] <= last {
			return corrupt("row %d is not that of the id after %d", row, last)
		}
		last = m.ids[row]
	}
	if len(m.byID) != m.Rows {
		return corrupt("%d rows in the order of their ids, of %d", len(m.byID), m.Rows)
	}
	return nil
}

// ivf makes an IVF index of a file. inPlace says that it has the file's memory, and calls release.
func (m *image) ivf(ctx context.Context, o Options, release func()) (ix Index, inPlace bool, err error) {
	dev, why, err := o.open(ctx, "ivf")
	if err != nil {
		return nil, false, err
	}
	defer dev.Close()
	options := *m.IVF
	options.Precision, options.MaxDim, options.MaxRows = m.code.Precision, m.Dim, m.MaxRows
	x, err := NewIVF(dev, m.Dim, m.metric, options)
	if err != nil {
		return nil, false, err
	}
	x.fallback = why
	x.e.code, x.scaled = m.code, m.Scale != 0
	if len(m.middle) > 0 {
		stream := x.coarse.dev.Stream()
		if x.centres.buf, err = x.coarse.dev.Alloc(runtime.F32, len(m.middle)/4); err == nil {
			x.centres.n, x.centres.host = len(m.sizes), slices.Clone(elements[float32](m.middle))
			x.centres.buf.SetTag("centres")
			if err = stream.Write(ctx, x.centres.buf, 0, m.middle); err == nil {
				err = stream.Sync(ctx)
			}
		}
		if err == nil && len(m.book) > 0 {
			if x.centres.codes, err = x.coder.newCodes(m.Dim, elements[float32](m.book)); err == nil {
				err = x.centres.codes.hold(m.sizes, m.codes)
			}
		}
		if err != nil {
			return nil, false, errors.Join(err, x.Close())
		}
	}
	if m.Rows > 0 {
		base, there, err := m.store(ctx, x.e.dev, release)
		switch {
		case err == nil:
			x.store.hold(base, there)
			inPlace = there
		case short(err): // then the file's memory is the host's
			x.store.keep(m.vectors, release)
			inPlace = release != nil
		default:
			return nil, false, errors.Join(err, x.Close())
		}
	}
	next := 0
	x.of, x.lists = make([]uint32, m.Rows), make([][]uint32, len(m.sizes))
	rows := make([]uint32, m.Rows)
	for l, size := range m.sizes {
		x.lists[l] = rows[next : next+int(size) : next+int(size)]
		for i := range x.lists[l] {
			x.lists[l][i], x.of[next+i] = uint32(next+i), uint32(l)
		}
		next += int(size)
	}
	x.ids, x.added, x.next, x.trained, x.grouped = slices.Clone(m.ids), make([]uint64, m.Rows), uint64(m.Rows), m.Trained, true
	for i := range x.added {
		x.added[i] = uint64(i)
		if len(m.order) > 0 {
			x.added[i] = uint64(m.order[i])
		}
	}
	x.nodes = places{ids: x.ids, order: slices.Clone(m.byID)}
	return x, inPlace, nil
}

// byID returns rows in the order of their ids.
func byID(ids []int64) []uint32 {
	rows := make([]uint32, len(ids))
	for i := range rows {
		rows[i] = uint32(i)
	}
	slices.SortFunc(rows, func(a, b uint32) int { return cmp.Compare(ids[a], ids[b]) })
	return rows
}

// places knows the rows of ids. Making a map of them takes longer than opening a file in all other respects, so that an index of a file has them in order until it changes. The
// zero value is empty.
type places struct {
	rows  map[int64]uint32
	ids   []int64  // without rows: the ids by row
	order []uint32 // and the rows in the order of their ids
}

func (p *places) len() int { return len(p.rows) + len(p.order) }

func (p *places) row(id int64) (uint32, bool) {
	if len(p.order) == 0 {
		row, ok := p.rows[id]
		return row, ok
	}
	i, ok := slices.BinarySearchFunc(p.order, id, func(row uint32, id int64) int { return cmp.Compare(p.ids[row], id) })
	if !ok {
		return 0, false
	}
	return p.order[i], true
}

// withMap returns the same places with a map, which changes need: it is made before the change excludes searches.
func (p places) withMap() places {
	if p.rows == nil {
		p.rows = make(map[int64]uint32, len(p.order))
		for _, row := range p.order {
			p.rows[p.ids[row]] = row
		}
		p.ids, p.order = nil, nil
	}
	return p
}
