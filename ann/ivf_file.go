package ann

// An IVF index in a file.

import (
	"cmp"
	"context"
	"io"
	"slices"
)

// WriteTo implements [Index]. It puts the vectors in order first, as [IVF.Compact] does, and waits for changes
// that run.
func (x *IVF) WriteTo(to io.Writer) (int64, error) {
	x.writeLock.Lock()
	defer x.writeLock.Unlock()
	if err := x.check(context.Background()); err != nil {
		return 0, err
	}
	if err := x.compact(context.Background()); err != nil {
		return 0, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	o, sizes := x.o, make([]uint32, len(x.lists))
	for l, list := range x.lists {
		sizes[l] = uint32(len(list))
	}
	return x.writeTo(to, saved{IVF: &o, Trained: x.trained}, data("byid", x.byID()), data("order", x.ranks()),
		data("lists", sizes), data("centres", x.centres.host))
}

// sections implements contents.
func (x *IVF) sections() []section {
	list := []section{data("ids", x.ids)}
	if k := x.centres.codes; k != nil {
		list = append(list, data("book", k.book.Values), section{name: "codes", parts: k.parts()})
	}
	return append(list, section{name: "vectors", parts: x.store().parts(len(x.ids))})
}

// readLists reads what a file of kind ivf has besides vectors. It checks sizes that do not depend on the
// contents, and checkLists the rest.
func (m *image) readLists() error {
	n, all := len(m.parts["lists"])/4, len(m.parts["centres"])/4
	if m.IVF.Check() != nil || m.IVF.Probes < 1 || m.Trained < 0 {
		return corruptFile("options of lists: %+v of %d vectors", *m.IVF, m.Trained)
	}
	if n == 0 || all != n*m.Dim && (n > 1 || all > 0) {
		return corruptFile("%d lists have centres of %d components", n, all)
	}
	m.codes = m.parts["codes"]
	if err := cmp.Or(column(m, "lists", &m.sizes, n), column(m, "centres", &m.middle, all),
		column(m, "book", &m.book, 0, 16*m.Dim)); err != nil {
		return err
	}
	if _, ok := m.parts["byid"]; ok {
		return column(m, "byid", &m.byID, m.Rows)
	}
	m.byID = (&table{ids: m.ids}).byID() // a file of before there was this section
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
		book = 16 * m.Dim
		for _, size := range m.sizes {
			blocks += (int(size) + perBlock - 1) / perBlock
		}
	}
	if 2*m.IVF.Codes > m.Dim || len(m.book) != book || len(m.codes) != blocks*perBlock*m.IVF.Codes {
		return corruptFile("codes of %d bytes for %d vectors of %d components are %d bytes, and their values %d", m.IVF.Codes,
			m.Rows, m.Dim, len(m.codes), len(m.book))
	}
	for _, x := range m.book {
		if x-x != 0 {
			return corruptFile("%v as a value of codes, as earlier versions wrote for vectors that are not finite: such an "+
				"index has to be built again", x)
		}
	}
	for _, x := range m.middle {
		if x != x {
			return corruptFile("%v in a centre", x)
		}
	}
	return m.checkByID()
}

// open implements contents.
func (x *IVF) open(_ context.Context, m *image, _ bool) error {
	x.lists, x.trained, x.grouped = make([][]uint32, len(m.sizes)), m.Trained, true
	return nil
}

// fill implements contents. The index has its number of lists already.
func (x *IVF) fill(m *image) (err error) {
	if len(m.middle) > 0 {
		if x.centres, err = x.newCentres(context.Background(), slices.Clone(m.middle)); err == nil && len(m.book) > 0 {
			if x.centres.codes, err = x.coder.newCodes(m.Dim, m.book); err == nil {
				err = x.centres.codes.hold(m.sizes, m.codes)
			}
		}
		if err != nil {
			return err
		}
	}
	x.rank(m.order)
	next, rows := 0, make([]uint32, m.Rows)
	x.inList = make([]uint32, m.Rows)
	for l, size := range m.sizes {
		x.lists[l] = rows[next : next+int(size) : next+int(size)]
		for i := range x.lists[l] {
			x.lists[l][i], x.inList[next+i] = uint32(next+i), uint32(l)
		}
		next += int(size)
	}
	return nil
}
