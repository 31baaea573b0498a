package ann

// An IVF index in a file.

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/concord-compute/concord/runtime"
)

// WriteTo implements [Index]. It puts the vectors in order first, as [IVF.Compact] does, and waits for changes
// that run.
func (x *IVF) WriteTo(to io.Writer) (int64, error) {
	x.writing.Lock()
	defer x.writing.Unlock()
	if err := x.check(context.Background()); err != nil {
		return 0, err
	}
	if err := x.compact(context.Background()); err != nil {
		return 0, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	o := x.o
	c := saved{Kind: o.kind(), Metric: x.e.metric.String(), Dim: x.e.dim, Rows: len(x.ids), Precision: x.e.code.String(),
		MaxRows: o.MaxRows, IVF: &o, Trained: x.trained}
	if x.scaled && x.e.code.Precision == INT8Scaled {
		c.Scale = x.e.code.scale
	}
	sizes := make([]uint32, len(x.lists))
	for l, list := range x.lists {
		sizes[l] = uint32(len(list))
	}
	computed := []section{{name: "byid", data: bytesOf(byID(x.ids))}, {name: "order", data: bytesOf(x.ranks())},
		{name: "lists", data: bytesOf(sizes)},
		{name: "centres", data: bytesOf(x.centres.host)}}
	return writeIndex(to, c, x.kept, append(computed, x.sections()...))
}

// sections returns what a file has besides the configuration and what WriteTo computes.
func (x *IVF) sections() []section {
	list := []section{{name: "ids", data: bytesOf(x.ids)}}
	if k := x.centres.codes; k != nil {
		list = append(list, section{name: "book", data: bytesOf(k.book.Values)}, section{name: "codes", parts: k.parts()})
	}
	return append(list, section{name: "vectors", parts: x.store.parts(len(x.ids))})
}

// readLists reads what a file of kind ivf has besides vectors. It checks sizes that do not depend on the
// contents, and checkLists the rest.
func (m *image) readLists() error {
	parts, n := m.parts, len(m.parts["lists"])/4
	there, ok := parts["byid"]
	switch middle := len(parts["centres"]); {
	case m.IVF.Check() != nil || m.IVF.Probes < 1 || m.Trained < 0:
		return corruptFile("options of lists: %+v of %d vectors", *m.IVF, m.Trained)
	case n == 0 || len(parts["lists"])%4 != 0 || middle%(4*m.Dim) != 0 || middle/(4*m.Dim) != n && (n > 1 || middle > 0):
		return corruptFile("%d lists have centres of %d bytes", n, middle)
	case ok && len(there) != 4*m.Rows:
		return corruptFile("%d rows in the order of their ids, of %d", len(there)/4, m.Rows)
	}
	m.sizes, m.middle, m.book, m.codes = elements[uint32](parts["lists"]), parts["centres"], parts["book"], parts["codes"]
	if m.byID = elements[uint32](there); !ok { // a file of before there was this section
		m.byID = byID(m.ids)
	}
	return nil
}

// checkLists checks the contents that readLists does not.
func (m *image) checkLists() error {
	n, all := len(m.sizes), 0
	for _, size := range m.sizes {
		if all += int(size); all > m.Rows {
			break
		}
	}
	if all != m.Rows {
		return corruptFile("%d lists have other than %d vectors", n, m.Rows)
	}
	blocks, book := 0, 0
	if m.IVF.Codes > 0 && len(m.middle) > 0 {
		book = 64 * m.Dim
		for _, size := range m.sizes {
			blocks += (int(size) + perBlock - 1) / perBlock
		}
	}
	if 2*m.IVF.Codes > m.Dim || len(m.book) != book || len(m.codes) != blocks*perBlock*m.IVF.Codes {
		return corruptFile("codes of %d bytes for %d vectors of %d components are %d bytes, and their values %d", m.IVF.Codes,
			m.Rows, m.Dim, len(m.codes), len(m.book))
	}
	for _, x := range elements[float32](m.book) {
		if x-x != 0 {
			return corruptFile("%v as a value of codes, as earlier versions wrote for vectors that are not finite: such an "+
				"index has to be built again", x)
		}
	}
	for _, x := range elements[float32](m.middle) {
		if x != x {
			return corruptFile("%v in a centre", x)
		}
	}
	last := int64(-1) // ascending ids are all different, and so are their rows
	for _, row := range m.byID {
		if int(row) >= m.Rows || m.ids[row] <= last {
			return corruptFile("row %d is not that of the id after %d", row, last)
		}
		last = m.ids[row]
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
	x.ids, x.nodes, x.lists, x.mapped = m.ids, places{ids: m.ids, order: m.byID}, make([][]uint32, len(m.sizes)), true
	x.next, x.trained, x.grouped = uint64(m.Rows), m.Trained, true
	x.late = sync.OnceValue(func() error { return m.fill(x) })
	if release != nil {
		x.kept = m.sums("ids", "codes", "vectors")
	}
	if !inPlace { // then nothing has to keep the file
		if err := x.check(ctx); err != nil {
			return nil, false, errors.Join(err, x.Close())
		}
		x.own()
	}
	return x, inPlace, nil
}

// fill checks a file, and gives its lists to an index, but for their number, which that has.
func (m *image) fill(x *IVF) error {
	err := m.check()
	if err != nil {
		return err
	}
	if len(m.middle) > 0 {
		stream := x.coarse.dev.Stream()
		if x.centres.buf, err = x.coarse.dev.Alloc(runtime.F32, len(m.middle)/4); err == nil {
			x.centres.n, x.centres.host = len(m.sizes), slices.Clone(elements[float32](m.middle))
			x.centres.buf.SetTag("centres")
			if err = stream.Write(context.Background(), x.centres.buf, 0, m.middle); err == nil {
				err = stream.Sync(context.Background())
			}
		}
		if err == nil && len(m.book) > 0 {
			if x.centres.codes, err = x.coder.newCodes(m.Dim, elements[float32](m.book)); err == nil {
				err = x.centres.codes.hold(m.sizes, m.codes)
			}
		}
		if err != nil {
			return err
		}
	}
	next := 0
	x.of, x.added = make([]uint32, m.Rows), make([]uint64, m.Rows)
	rows := make([]uint32, m.Rows)
	for l, size := range m.sizes {
		x.lists[l] = rows[next : next+int(size) : next+int(size)]
		for i := range x.lists[l] {
			x.lists[l][i], x.of[next+i] = uint32(next+i), uint32(l)
		}
		next += int(size)
	}
	for i := range x.added {
		x.added[i] = uint64(i)
		if len(m.order) > 0 {
			x.added[i] = uint64(m.order[i])
		}
	}
	return nil
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

// places knows the rows of ids. Making a map of them takes longer than opening a file in all other respects, so
// that an index of a file has them in order until it changes. The zero value is empty.
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
